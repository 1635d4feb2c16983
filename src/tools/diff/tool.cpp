#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include "tools/diff/models.h"
#include "tools/diff/pairs.h"
#include "trocar/command.h"
#include "trocar/error.h"
#include "util/text.h"

namespace trocar {

namespace {

using diff::Matched;
using diff::Pair;

struct Options {
    std::string a;
    std::string b;
    Tolerance tolerance;
    std::int64_t worst = 0;
    bool all = false;
    bool common = false;
    std::string ignore;
    bool names = false;
};

// Two files are models; dumps are folders.
bool are_models(const Options& options) {
    std::error_code ignored;
    const bool first = std::filesystem::is_regular_file(options.a, ignored);
    const bool second = std::filesystem::is_regular_file(options.b, ignored);
    if (first != second && std::filesystem::is_directory(first ? options.b : options.a, ignored)) {
        throw Error(Fault::usage,
                    fmt::format("'{}' is a file and '{}' a folder", first ? options.a : options.b,
                                first ? options.b : options.a),
                    "two models are compared, or two dumps");
    }
    return first && second;
}

std::string op_text(const DumpRecord& record) {
    return fmt::format("op {} ({} '{}')", record.op, record.type, record.name);
}

std::string tensor_text(const DumpRecord& record) {
    return record.iterations.empty()
               ? record.tensor
               : fmt::format("{} @{}", record.tensor, join(record.iterations, "."));
}

std::string type_of(const DumpRecord& record) {
    return record.kind == "tensor"
               ? fmt::format("{} {}", name(record.dtype), shape_text(record.shape))
               : record.kind;
}

Cell number(double value, const char* why) {
    if (std::isinf(value)) {
        return Cell(value > 0 ? "inf" : "-inf");
    }
    return std::isnan(value) ? Cell::unavailable(why) : Cell(value);
}

Table pair_table(bool sets) {
    Table table;
    table.key = "tensors";
    table.title = "Tensors";
    table.columns = {
        {.key = "set", .title = "Set", .hidden = !sets},
        {.key = "op", .title = "Op"},
        {.key = "type", .title = "Type"},
        {.key = "tensor", .title = "Tensor"},
        {.key = "outcome", .title = "Outcome"},
        {.key = "by", .title = "By", .optional = 2},
        {.key = "max_abs", .title = "Max abs"},
        {.key = "mean_abs", .title = "Mean abs", .optional = 3},
        {.key = "max_rel", .title = "Max rel", .optional = 1},
        {.key = "max_ulp", .title = "ULP", .show = Show::count, .optional = 3},
        {.key = "sqnr_db", .title = "SQNR dB"},
        {.key = "cosine", .title = "Cosine", .optional = 4},
        {.key = "mismatch_share", .title = "Off", .show = Show::percent, .optional = 1},
        {.key = "nan_mismatches", .title = "NaN≠", .show = Show::count, .optional = 2},
        {.key = "infinity_mismatches", .title = "Inf≠", .show = Show::count, .optional = 2},
        {.key = "worst_index", .title = "Worst at", .optional = 2},
        {.key = "worst_a", .title = "A", .optional = 2},
        {.key = "worst_b", .title = "B", .optional = 2},
        {.key = "type_a", .title = "In A", .hidden = true},
        {.key = "type_b", .title = "In B", .hidden = true},
        {.key = "name", .title = "Name", .hidden = true},
        {.key = "scope", .title = "In", .hidden = true},
    };
    return table;
}

void add_difference(std::vector<Cell>& cells, const Pair& pair) {
    constexpr std::size_t columns = 12;
    if (!pair.difference) {
        const char* why = pair.outcome == Pair::Outcome::same_bits ? "the same bits"
                          : pair.by.empty()                        ? "not comparable"
                                                                   : "the tensors are not there";
        cells.insert(cells.end(), columns, Cell::unavailable(why));
        return;
    }
    const auto& d = *pair.difference;
    const bool off = !std::isnan(d.worst_a) || !std::isnan(d.worst_b);
    cells.push_back(number(d.max_abs, "no finite numbers"));
    cells.push_back(number(d.mean_abs, "no finite numbers"));
    cells.push_back(number(d.max_rel, "no finite numbers"));
    cells.push_back(
        d.max_ulp ? Cell(std::uint64_t{*d.max_ulp})
                  : Cell::unavailable(std::isnan(d.max_abs) ? "no finite numbers" : "not floats"));
    cells.push_back(number(d.sqnr_db, "no finite numbers"));
    cells.push_back(number(d.cosine, "all zero"));
    cells.push_back(d.count > 0
                        ? Cell(static_cast<double>(d.mismatches) / static_cast<double>(d.count))
                        : Cell::unavailable("no elements"));
    cells.emplace_back(std::uint64_t{d.nan_mismatches});
    cells.emplace_back(std::uint64_t{d.infinity_mismatches});
    cells.push_back(off ? Cell(element_index(pair.a->shape, d.worst))
                        : Cell::unavailable("none is off"));
    for (const double value : {d.worst_a, d.worst_b}) {
        cells.push_back(off && std::isnan(value) ? Cell("NaN") : number(value, "none is off"));
    }
}

Row pair_row(const Pair& pair) {
    Row row;
    row.cells = {Cell(pair.a->set),
                 Cell(pair.a->op),
                 Cell(pair.a->type),
                 Cell(tensor_text(*pair.a)),
                 Cell(outcome_text(pair.outcome)),
                 pair.by.empty() ? Cell::unavailable("not compared") : Cell(pair.by)};
    add_difference(row.cells, pair);
    for (const auto& text : {type_of(*pair.a), type_of(*pair.b), pair.a->name, pair.a->scope}) {
        row.cells.emplace_back(text);
    }
    return row;
}

// The pairs to show, in the order of the dump.
std::vector<const Pair*> chosen(const Matched& matched, const Options& options) {
    std::vector<const Pair*> shown;
    for (const auto& pair : matched.pairs) {
        if (options.all || !pair.agrees() ||
            (options.worst > 0 && pair.outcome != Pair::Outcome::same_bits)) {
            shown.push_back(&pair);
        }
    }
    const auto most = static_cast<std::size_t>(options.worst);
    if (options.worst > 0 && shown.size() > most) {
        auto by_badness = shown;
        std::stable_sort(by_badness.begin(), by_badness.end(),
                         [](const Pair* x, const Pair* y) { return badness(*x) > badness(*y); });
        by_badness.resize(most);
        std::erase_if(shown, [&](const Pair* pair) {
            return std::find(by_badness.begin(), by_badness.end(), pair) == by_badness.end();
        });
    }
    return shown;
}

std::size_t count(const Matched& matched, Pair::Outcome outcome) {
    return static_cast<std::size_t>(
        std::count_if(matched.pairs.begin(), matched.pairs.end(),
                      [&](const Pair& pair) { return pair.outcome == outcome; }));
}

Section outcome_section(const Matched& matched, const Options& options) {
    Section section{.key = "comparison", .title = "Comparison", .scalars = {}};
    const auto add = [&](const char* key, const char* title, std::size_t number,
                         std::string note = {}) {
        section.scalars.push_back(
            {key, title, std::uint64_t{number}, Show::count, std::move(note)});
    };
    add("tensors", "Tensors in both", matched.pairs.size());
    add("same_bits", "Same bits", count(matched, Pair::Outcome::same_bits));
    add("within", "Within", count(matched, Pair::Outcome::within),
        fmt::format("|b − a| ≤ {} + {}·|a|", options.tolerance.atol, options.tolerance.rtol));
    add("differ", "Differ", count(matched, Pair::Outcome::differs));
    add("other_type", "Other type", count(matched, Pair::Outcome::other_type));
    add("other_shape", "Other shape", count(matched, Pair::Outcome::other_shape));
    add("unknown", "Not comparable", count(matched, Pair::Outcome::incomparable));
    add("missing", "Only in A", matched.missing.size());
    add("extra", "Only in B", matched.extra.size());
    const auto first = std::find_if(matched.pairs.begin(), matched.pairs.end(),
                                    [](const Pair& pair) { return !pair.agrees(); });
    section.scalars.push_back({"first", "First that differs",
                               first == matched.pairs.end() ? Cell::unavailable("none differs")
                                                            : Cell(tensor_text(*first->a)),
                               Show::plain,
                               first == matched.pairs.end() ? "" : op_text(*first->a)});
    return section;
}

Table lonely_table(const char* key, const char* title,
                   const std::vector<const DumpRecord*>& records) {
    Table table{.key = key,
                .title = title,
                .columns = {{.key = "op", .title = "Op"},
                            {.key = "type", .title = "Type"},
                            {.key = "tensor", .title = "Tensor"},
                            {.key = "is", .title = "Is"}},
                .rows = {},
                .note = {}};
    for (const auto* record : records) {
        table.rows.push_back({.cells = {Cell(record->op), Cell(record->type),
                                        Cell(tensor_text(*record)), Cell(type_of(*record))}});
    }
    return table;
}

void add_warnings(Report& report, const Dump& a, const Dump& b) {
    for (const auto* dump : {&a, &b}) {
        if (dump->end != "complete") {
            report.warnings.push_back(
                fmt::format("the dump '{}' is not complete: {}", dump->folder.string(),
                            dump->end.empty() ? "it was cut short" : dump->end));
        }
    }
    for (std::size_t set = 0; set < std::min(a.sets.size(), b.sets.size()); ++set) {
        for (const auto& input : a.sets[set]) {
            const auto other =
                std::find_if(b.sets[set].begin(), b.sets[set].end(),
                             [&](const DumpInput& one) { return one.name == input.name; });
            if (other != b.sets[set].end() && a.hash_kind == b.hash_kind &&
                other->hash != input.hash) {
                report.warnings.push_back(fmt::format(
                    "the input '{}' of set {} is not the same in both", input.name, set));
            }
        }
    }
}

Report run(const Options& options, Context& context) {
    if (options.tolerance.rtol < 0 || options.tolerance.atol < 0 || options.worst < 0) {
        throw Error(Fault::usage, "--rtol, --atol and --worst take numbers from 0 on");
    }
    for (const auto& path : {options.a, options.b}) {
        std::error_code ignored;
        if (!std::filesystem::exists(path, ignored)) {
            throw Error(Fault::input, fmt::format("there is no '{}'", path),
                        "two model files, or two folders of `trocar dump`, are compared");
        }
    }
    if (are_models(options)) {
        if (options.all || options.common) {
            throw Error(Fault::usage, "--all and --common are about dumps, and these are models");
        }
        return diff::compare_models(options.a, options.b,
                                    {options.tolerance, options.ignore, options.names,
                                     static_cast<std::size_t>(options.worst)},
                                    context);
    }
    if (!options.ignore.empty() || options.names) {
        throw Error(Fault::usage, "--ignore and --names are about models, and these are dumps");
    }
    const auto a = read_dump(options.a);
    const auto b = read_dump(options.b);
    auto matched = diff::match(a, b);
    Report report;
    report.tool = "diff";
    for (std::size_t i = 0; i < matched.pairs.size(); ++i) {
        if (context.interrupted()) {
            report.partial = true;
            matched.pairs.resize(i);
            break;
        }
        diff::compare(matched.pairs[i], a, b, options.tolerance);
        context.progress("tensors", i + 1, matched.pairs.size());
    }
    report.context = {{"a", "A", options.a, Show::plain, ""},
                      {"b", "B", options.b, Show::plain, ""},
                      {"rtol", "rtol", options.tolerance.rtol, Show::plain, ""},
                      {"atol", "atol", options.tolerance.atol, Show::plain, ""}};
    auto table = pair_table(a.sets.size() > 1);
    for (const auto* pair : chosen(matched, options)) {
        table.rows.push_back(pair_row(*pair));
    }
    const bool by_statistics =
        std::any_of(matched.pairs.begin(), matched.pairs.end(),
                    [](const Pair& pair) { return pair.by == "statistics"; });
    report.sections.push_back(outcome_section(matched, options));
    if (!table.rows.empty()) {
        report.tables.push_back(std::move(table));
    }
    for (const auto& [key, title, records] : {std::tuple{"missing", "Only in A", &matched.missing},
                                              std::tuple{"extra", "Only in B", &matched.extra}}) {
        if (!records->empty() && !options.common) {
            report.tables.push_back(lonely_table(key, title, *records));
        }
    }
    if (by_statistics) {
        report.notes.emplace_back(
            "where tensors were not written, their statistics were compared: that numbers agree "
            "one by one is not known there");
    }
    add_warnings(report, a, b);
    const bool lonely = !matched.missing.empty() || !matched.extra.empty();
    report.verdict = std::all_of(matched.pairs.begin(), matched.pairs.end(),
                                 [](const Pair& pair) { return pair.agrees(); }) &&
                     (options.common || !lonely);
    report.order = {"tensors", "missing", "extra", "comparison"};
    return report;
}

std::function<Report(Context&)> bind(Args& args) {
    const auto options = std::make_shared<Options>();
    args.positional(options->a, "A", "Model file, or folder of a dump, to compare with");
    args.positional(options->b, "B", "The other one, of the same kind");
    args.option("--rtol", options->tolerance.rtol, "NUMBER",
                "Relative tolerance: |b − a| ≤ atol + rtol·|a|; 0 by default");
    args.option("--atol", options->tolerance.atol, "NUMBER", "Absolute tolerance; 0 by default");
    args.option("--worst", options->worst, "N",
                "Show the N worst tensors, of dumps also such that are within the tolerance");
    args.section("Dumps");
    args.flag("--all", options->all, "Show all tensors, not only those that differ");
    args.flag("--common", options->common, "Only what is in both: the rest is no difference");
    args.section("Models");
    args.option("--ignore", options->ignore, "KINDS",
                "What is no difference: metadata, types, weights, with commas between them");
    args.flag("--names", options->names, "Other names of ops and tensors are differences too");
    args.section("");
    args.example("trocar diff before.onnx after.onnx",
                 "What changed in a model: ops, attributes, wiring, weights, metadata");
    args.example("trocar diff before.dump after.dump", "Are two dumps the same, bit for bit?");
    args.example("trocar diff source.dump deployed.dump --rtol 1e-4 --atol 1e-6 --common --worst 5",
                 "Where does the engine's fused graph differ most?");
    return [options](Context& context) { return run(*options, context); };
}

}  // namespace

extern const Command diff_tool{
    .name = "diff",
    .summary = "Compare two models op by op, or two dumps tensor by tensor",
    .bind = bind,
};

}  // namespace trocar
