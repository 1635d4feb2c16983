#include "tools/diff/models.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trocar/error.h"
#include "util/text.h"

namespace trocar::diff {

namespace {

GraphDiffOptions chosen(const ModelOptions& options, Context& context) {
    GraphDiffOptions how;
    how.tolerance = options.tolerance;
    how.names = options.names;
    how.cancel = [&context] { return context.interrupted(); };
    for (const auto& word :
         options.ignore.empty() ? std::vector<std::string>{} : split(options.ignore, ',')) {
        const auto kind = trim(word);
        if (kind == "metadata") {
            how.metadata = false;
        } else if (kind == "types") {
            how.types = false;
        } else if (kind == "weights") {
            how.constants = false;
        } else {
            throw Error(Fault::usage, fmt::format("--ignore {} is no kind of difference", kind),
                        "metadata, types and weights are, with commas between them");
        }
    }
    return how;
}

Cell maybe(const std::string& text) {
    return text.empty() ? Cell::unavailable("none") : Cell(text);
}

Cell number(double value) {
    if (std::isinf(value)) {
        return Cell(value > 0 ? "inf" : "-inf");
    }
    return std::isnan(value) ? Cell::unavailable("no finite numbers") : Cell(value);
}

template <class List>
bool has_scope(const List& list) {
    return std::any_of(list.begin(), list.end(),
                       [](const auto& one) { return !one.scope.empty(); });
}

Table lone_table(const char* key, const char* title, const std::vector<GraphDiff::Lone>& ops) {
    Table table{.key = key,
                .title = title,
                .columns = {{.key = "scope", .title = "In", .hidden = !has_scope(ops)},
                            {.key = "op", .title = "Op"},
                            {.key = "type", .title = "Type"},
                            {.key = "outputs", .title = "Writes"}},
                .rows = {},
                .note = {}};
    for (const auto& op : ops) {
        table.rows.push_back(
            {.cells = {op.scope, op.op, op.type, fmt::format("{}", join(op.outputs, ", "))}});
    }
    return table;
}

Table changed_table(const std::vector<GraphDiff::Changed>& ops) {
    Table table{.key = "changed",
                .title = "Ops changed",
                .columns = {{.key = "scope", .title = "In", .hidden = !has_scope(ops)},
                            {.key = "op", .title = "Op"},
                            {.key = "type", .title = "Type"},
                            {.key = "name_b", .title = "Name in B", .hidden = true},
                            {.key = "what", .title = "What"}},
                .rows = {},
                .note = {}};
    for (const auto& op : ops) {
        for (const auto& what : op.what) {
            table.rows.push_back({.cells = {op.scope, op.op, op.type, maybe(op.name_b), what}});
        }
    }
    return table;
}

Table weight_table(const GraphDiff& diff, std::size_t worst) {
    Table table{.key = "weights",
                .title = "Constants changed",
                .columns = {{.key = "scope", .title = "In", .hidden = !has_scope(diff.constants)},
                            {.key = "tensor", .title = "Constant"},
                            {.key = "name_b", .title = "Name in B", .hidden = true},
                            {.key = "op", .title = "Read by", .optional = 2},
                            {.key = "type", .title = "Type"},
                            {.key = "type_a", .title = "In A", .hidden = true},
                            {.key = "type_b", .title = "In B", .hidden = true},
                            {.key = "changed", .title = "Changed", .show = Show::count},
                            {.key = "max_abs", .title = "Max abs"},
                            {.key = "mean_abs", .title = "Mean abs", .optional = 3},
                            {.key = "sqnr_db", .title = "SQNR dB"},
                            {.key = "cosine", .title = "Cosine", .optional = 2},
                            {.key = "max_ulp", .title = "ULP", .show = Show::count, .hidden = true},
                            {.key = "mse", .title = "MSE", .hidden = true},
                            {.key = "nan_mismatches", .title = "NaN≠", .hidden = true}},
                .rows = {},
                .note = {}};
    std::vector<const GraphDiff::Elements*> shown;
    for (const auto& one : diff.constants) {
        shown.push_back(&one);
    }
    if (worst > 0 && shown.size() > worst) {
        const auto badness = [](const GraphDiff::Elements* one) {
            return one->difference && !std::isnan(one->difference->sqnr_db)
                       ? one->difference->sqnr_db
                       : -1e9;
        };
        std::stable_sort(shown.begin(), shown.end(),
                         [&](const auto* x, const auto* y) { return badness(x) < badness(y); });
        shown.resize(worst);
        table.note = fmt::format("the {} worst of {}", worst, diff.constants.size());
    }
    for (const auto* one : shown) {
        Row row;
        row.cells = {one->scope,
                     one->tensor,
                     maybe(one->name_b),
                     one->op,
                     one->type_a == one->type_b ? one->type_a : one->type_a + " → " + one->type_b,
                     one->type_a,
                     one->type_b};
        if (one->difference) {
            const auto& d = *one->difference;
            row.cells.insert(
                row.cells.end(),
                {Cell(std::uint64_t{one->changed}), number(d.max_abs), number(d.mean_abs),
                 number(d.sqnr_db), number(d.cosine),
                 d.max_ulp ? Cell(std::uint64_t{*d.max_ulp}) : Cell::unavailable("not floats"),
                 number(d.mse), Cell(std::uint64_t{d.nan_mismatches})});
        } else {
            row.cells.insert(row.cells.end(), 8, Cell::unavailable("not comparable"));
        }
        table.rows.push_back(std::move(row));
    }
    return table;
}

Table fact_table(const char* key, const char* title, const std::vector<GraphDiff::Fact>& facts) {
    Table table{.key = key,
                .title = title,
                .columns = {{.key = "scope", .title = "In", .hidden = !has_scope(facts)},
                            {.key = "what", .title = "What"},
                            {.key = "a", .title = "A"},
                            {.key = "b", .title = "B"}},
                .rows = {},
                .note = {}};
    for (const auto& fact : facts) {
        table.rows.push_back({.cells = {fact.scope, fact.what, maybe(fact.a), maybe(fact.b)}});
    }
    return table;
}

Section outcome(const GraphDiff& diff, const GraphDiffOptions& how) {
    Section section{.key = "comparison", .title = "Comparison", .scalars = {}};
    const auto add = [&](const char* key, const char* title, std::size_t value,
                         std::string note = {}) {
        section.scalars.push_back({key, title, std::uint64_t{value}, Show::count, std::move(note)});
    };
    const auto ignored = [](bool counts) { return counts ? "" : "ignored"; };
    add("matched", "Ops in both", diff.matched,
        fmt::format("of {} and {}", diff.ops_a, diff.ops_b));
    add("removed", "Only in A", diff.removed.size());
    add("added", "Only in B", diff.added.size());
    add("changed", "Ops changed", diff.changed.size());
    add("same_constants", "Same constants", diff.same_constants,
        how.constants ? "" : "or not compared");
    add("constants", "Constants changed", diff.constants.size(), ignored(how.constants));
    if (how.tolerance.atol > 0 || how.tolerance.rtol > 0) {
        add("within", "Within", diff.within,
            fmt::format("|b − a| ≤ {} + {}·|a|", how.tolerance.atol, how.tolerance.rtol));
    }
    add("types", "Types changed", diff.types.size(), ignored(how.types));
    add("interface", "Inputs and outputs", diff.interface.size());
    add("metadata", "Metadata", diff.metadata.size(), ignored(how.metadata));
    add("renamed_ops", "Ops renamed", diff.renamed_ops,
        how.names ? "" : "no difference without --names");
    add("renamed_tensors", "Tensors renamed", diff.renamed_tensors, "");
    section.scalars.push_back({"same", "Same", diff.same(how), Show::plain, ""});
    return section;
}

}  // namespace

Report compare_models(const std::string& a, const std::string& b, const ModelOptions& options,
                      Context& context) {
    const auto how = chosen(options, context);
    const auto left = context.load(a);
    const auto right = context.load(b);
    const auto diff = diff_models(left, right, how);
    Report report;
    report.tool = "diff";
    report.context = {{"a", "A", a, Show::plain, left.format},
                      {"b", "B", b, Show::plain, right.format},
                      {"rtol", "rtol", options.tolerance.rtol, Show::plain, ""},
                      {"atol", "atol", options.tolerance.atol, Show::plain, ""}};
    const auto add = [&](Table table) {
        if (!table.rows.empty()) {
            report.tables.push_back(std::move(table));
        }
    };
    add(lone_table("removed", "Only in A", diff.removed));
    add(lone_table("added", "Only in B", diff.added));
    add(changed_table(diff.changed));
    if (how.constants) {
        add(weight_table(diff, options.worst));
    }
    if (how.types) {
        add(fact_table("types", "Types changed", diff.types));
    }
    add(fact_table("interface", "Inputs and outputs", diff.interface));
    if (how.metadata) {
        add(fact_table("metadata", "Metadata", diff.metadata));
    }
    report.sections.push_back(outcome(diff, how));
    report.verdict = diff.same(how);
    report.partial = !diff.complete;
    report.order = {"removed", "added",     "changed",  "weights",
                    "types",   "interface", "metadata", "comparison"};
    return report;
}

}  // namespace trocar::diff
