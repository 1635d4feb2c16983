#include "trocar/compare_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "util/text.h"

namespace trocar {

namespace {

// A layer on a side: what was found in both modes.
struct Entry {
    const Layer* layer = nullptr;
    std::size_t side = 0;
    std::size_t set = 0;
    const LayerComparison* isolated = nullptr;
    const LayerComparison* cumulative = nullptr;

    const LayerComparison* main() const { return isolated != nullptr ? isolated : cumulative; }
    Verdict verdict() const {
        const auto* one = main();
        return one == nullptr ? Verdict::incomparable : one->verdict;
    }
};

const TensorComparison* worst_tensor(const LayerComparison* result) {
    if (result == nullptr || result->tensors.empty()) {
        return nullptr;
    }
    return &*std::max_element(result->tensors.begin(), result->tensors.end(),
                              [](const auto& a, const auto& b) { return a.factor < b.factor; });
}

double badness(const Entry& entry) {
    const auto* tensor = worst_tensor(entry.main());
    if (entry.verdict() == Verdict::incomparable) {
        return 1e300;
    }
    return tensor == nullptr ? 0 : tensor->factor;
}

std::vector<Entry> entries_of(const Comparison& comparison) {
    std::map<std::array<std::size_t, 3>, Entry> found;
    for (const auto& result : comparison.results) {
        auto& entry = found[{result.set, result.layer, result.side}];
        entry.layer = &comparison.layers.at(result.layer);
        entry.side = result.side;
        entry.set = result.set;
        (result.cumulative ? entry.cumulative : entry.isolated) = &result;
    }
    std::vector<Entry> entries;
    for (auto& [key, entry] : found) {
        entries.push_back(entry);
    }
    return entries;
}

Cell number(double value, const char* why) {
    if (std::isinf(value)) {
        return Cell(value > 0 ? "inf" : "-inf");
    }
    return std::isnan(value) ? Cell::unavailable(why) : Cell(value);
}

Cell error_cell(const LayerComparison* result) {
    if (result == nullptr) {
        return Cell::unavailable("not asked for");
    }
    return number(relative_error(*result), "not compared");
}

Table layer_table(const Comparison& comparison, bool sets) {
    const bool several = comparison.sides.size() > 2;
    Table table;
    table.key = "layers";
    table.title = "Layers";
    table.columns = {
        {.key = "set", .title = "Set", .hidden = !sets},
        {.key = "layer", .title = "#"},
        {.key = "type", .title = "Type"},
        {.key = "name", .title = "Layer"},
        {.key = "side", .title = "Side", .hidden = !several},
        {.key = "verdict", .title = "Verdict"},
        {.key = "factor", .title = "× tolerance"},
        {.key = "max_abs", .title = "Max abs"},
        {.key = "error", .title = "Rel error"},
        {.key = "cumulative_error", .title = "Arriving"},
        {.key = "amplification", .title = "Ampl.", .show = Show::ratio, .optional = 7},
        {.key = "cumulative_verdict", .title = "Arriving verdict", .optional = 6},
        {.key = "sqnr_db", .title = "SQNR dB", .optional = 2},
        {.key = "max_ulp", .title = "ULP", .show = Show::count, .optional = 4},
        {.key = "cosine", .title = "Cosine", .optional = 5},
        {.key = "mismatch_share", .title = "Off", .show = Show::percent, .optional = 3},
        {.key = "worst_index", .title = "Worst at", .optional = 3},
        {.key = "worst_reference", .title = "There", .optional = 4},
        {.key = "worst_found", .title = "Here", .optional = 4},
        {.key = "tensor", .title = "Tensor", .hidden = true},
        {.key = "rtol", .title = "rtol", .hidden = true},
        {.key = "atol", .title = "atol", .hidden = true},
        {.key = "smallest_rtol", .title = "Smallest rtol", .hidden = true},
        {.key = "smallest_atol", .title = "Smallest atol", .hidden = true},
        {.key = "end", .title = "End", .hidden = true},
        {.key = "seconds", .title = "Time", .show = Show::seconds, .hidden = true},
        {.key = "reference_seconds", .title = "Time there", .show = Show::seconds, .hidden = true},
        {.key = "module", .title = "Module", .hidden = true},
        {.key = "ops", .title = "Ops", .hidden = true},
        {.key = "reason", .title = "Why"},
    };
    return table;
}

void add_metrics(std::vector<Cell>& cells, const TensorComparison* tensor) {
    constexpr std::size_t columns = 12;
    if (tensor == nullptr || !tensor->difference) {
        cells.insert(cells.end(), columns, Cell::unavailable("not compared"));
        return;
    }
    const auto& d = *tensor->difference;
    const auto shape = tensor->reference.shape();
    const bool off = !std::isnan(d.worst_a) || !std::isnan(d.worst_b);
    cells.push_back(number(d.sqnr_db, "no finite numbers"));
    cells.push_back(d.max_ulp ? Cell(std::uint64_t{*d.max_ulp}) : Cell::unavailable("not floats"));
    cells.push_back(number(d.cosine, "all zero"));
    cells.push_back(d.count > 0
                        ? Cell(static_cast<double>(d.mismatches) / static_cast<double>(d.count))
                        : Cell::unavailable("no elements"));
    cells.push_back(off && shape ? Cell(element_index(*shape, d.worst))
                                 : Cell::unavailable("none is off"));
    for (const double value : {d.worst_a, d.worst_b}) {
        cells.push_back(off && std::isnan(value) ? Cell("NaN") : number(value, "none is off"));
    }
    cells.emplace_back(tensor->tensor);
    cells.emplace_back(tensor->tolerance.rtol);
    cells.emplace_back(tensor->tolerance.atol);
    cells.push_back(number(needed_rtol(d.corners, 0), "no finite numbers"));
    cells.push_back(number(needed_atol(d.corners, 0), "no finite numbers"));
}

Row layer_row(const Comparison& comparison, const Entry& entry) {
    const auto* result = entry.main();
    const auto* tensor = worst_tensor(result);
    const auto alone = entry.isolated != nullptr ? relative_error(*entry.isolated) : NAN;
    const auto arriving = entry.cumulative != nullptr ? relative_error(*entry.cumulative) : NAN;
    Row row;
    auto& cells = row.cells;
    cells.emplace_back(std::uint64_t{entry.set});
    cells.emplace_back(std::uint64_t{entry.layer->number});
    cells.emplace_back(entry.layer->type);
    cells.emplace_back(entry.layer->name);
    cells.emplace_back(comparison.sides.at(entry.side));
    cells.emplace_back(name(entry.verdict()));
    cells.push_back(tensor == nullptr ? Cell::unavailable("not compared")
                                      : number(tensor->factor, "not compared"));
    cells.push_back(tensor == nullptr || !tensor->difference
                        ? Cell::unavailable("not compared")
                        : number(tensor->difference->max_abs, "no finite numbers"));
    cells.push_back(error_cell(entry.isolated));
    cells.push_back(error_cell(entry.cumulative));
    cells.push_back(alone > 0 && std::isfinite(arriving)
                        ? Cell(arriving / alone)
                        : Cell::unavailable("no error of its own"));
    cells.push_back(entry.cumulative == nullptr ? Cell::unavailable("not asked for")
                                                : Cell(name(entry.cumulative->verdict)));
    add_metrics(cells, tensor);
    cells.emplace_back(name(result->end));
    cells.emplace_back(result->seconds);
    cells.emplace_back(result->reference_seconds);
    cells.push_back(entry.layer->module.empty() ? Cell::unavailable("the file does not tell")
                                                : Cell(entry.layer->module));
    cells.emplace_back(entry.layer->ops);
    const auto why = !result->reason.empty() ? result->reason
                     : tensor != nullptr     ? tensor->reason
                                             : std::string();
    cells.emplace_back(why);
    return row;
}

// All tensors with all that was measured, for programs.
Table tensor_table(const Comparison& comparison) {
    Table table;
    table.key = "tensors";
    table.hidden = true;
    for (const auto* key : {"set",
                            "layer",
                            "side",
                            "mode",
                            "tensor",
                            "reference_type",
                            "found_type",
                            "verdict",
                            "factor",
                            "rtol",
                            "atol",
                            "max_abs",
                            "mean_abs",
                            "p50_abs",
                            "p99_abs",
                            "max_rel",
                            "max_ulp",
                            "mse",
                            "normalized_l2",
                            "sqnr_db",
                            "psnr_db",
                            "cosine",
                            "mismatches",
                            "nan_mismatches",
                            "infinity_mismatches",
                            "argmax_agreement",
                            "layout",
                            "reason"}) {
        table.columns.push_back({.key = key, .title = key});
    }
    for (const auto& result : comparison.results) {
        for (const auto& tensor : result.tensors) {
            Row row;
            row.cells = {Cell(std::uint64_t{result.set}),
                         Cell(std::uint64_t{comparison.layers.at(result.layer).number}),
                         Cell(comparison.sides.at(result.side)),
                         Cell(result.cumulative ? "cumulative" : "isolated"),
                         Cell(tensor.tensor),
                         Cell(type_text(tensor.reference)),
                         Cell(type_text(tensor.found)),
                         Cell(name(tensor.verdict)),
                         number(tensor.factor, "not compared"),
                         Cell(tensor.tolerance.rtol),
                         Cell(tensor.tolerance.atol)};
            if (tensor.difference) {
                const auto& d = *tensor.difference;
                for (const double value :
                     {d.max_abs, d.mean_abs, d.p50_abs, d.p99_abs, d.max_rel}) {
                    row.cells.push_back(number(value, "no finite numbers"));
                }
                row.cells.push_back(d.max_ulp ? Cell(std::uint64_t{*d.max_ulp})
                                              : Cell::unavailable("not floats"));
                for (const double value :
                     {d.mse, d.normalized_l2, d.sqnr_db, d.psnr_db, d.cosine}) {
                    row.cells.push_back(number(value, "no finite numbers"));
                }
                row.cells.emplace_back(std::uint64_t{d.mismatches});
                row.cells.emplace_back(std::uint64_t{d.nan_mismatches});
                row.cells.emplace_back(std::uint64_t{d.infinity_mismatches});
                row.cells.push_back(number(d.argmax_agreement, "no rows"));
            } else {
                row.cells.insert(row.cells.end(), 15, Cell::unavailable("not compared"));
            }
            row.cells.push_back(!tensor.layout.empty() ? Cell(tensor.layout)
                                : tensor.difference    ? Cell("row-major")
                                                       : Cell::unavailable("not compared"));
            row.cells.push_back(tensor.reason.empty() ? Cell::unavailable("it passes")
                                                      : Cell(tensor.reason));
            table.rows.push_back(std::move(row));
        }
    }
    return table;
}

Section counts(const Comparison& comparison, const std::vector<Entry>& entries) {
    Section section{.key = "comparison", .title = "Comparison", .scalars = {}};
    section.scalars.push_back(
        {"reference", "Reference", comparison.sides.front(), Show::plain, ""});
    for (std::size_t side = 1; side < comparison.sides.size(); ++side) {
        std::array<std::size_t, 4> found{};
        const Entry* first = nullptr;
        const Entry* worst = nullptr;
        const Entry* arriving = nullptr;
        for (const auto& entry : entries) {
            if (entry.side != side) {
                continue;
            }
            ++found[static_cast<std::size_t>(entry.verdict())];
            if (entry.verdict() == Verdict::fail && first == nullptr) {
                first = &entry;
            }
            if (entry.verdict() != Verdict::incomparable &&
                (worst == nullptr || badness(entry) > badness(*worst))) {
                worst = &entry;
            }
            arriving = entry.cumulative != nullptr ? &entry : arriving;
        }
        const auto key = [&](const char* what) {
            return side == 1 ? std::string(what) : fmt::format("{}_{}", what, side);
        };
        section.scalars.push_back({key("side"), "Against it", comparison.sides[side], Show::plain,
                                   fmt::format("{} PASS, {} WARN, {} FAIL, {} INCOMPARABLE",
                                               found[0], found[1], found[2], found[3])});
        const auto place = [](const Entry* entry) {
            return fmt::format("layer {} ({} '{}')", entry->layer->number, entry->layer->type,
                               entry->layer->name);
        };
        section.scalars.push_back(
            {key("first_failure"), "First that fails",
             first == nullptr ? Cell::unavailable("none fails") : Cell(place(first)), Show::plain,
             ""});
        if (worst != nullptr) {
            section.scalars.push_back({key("worst"), "Furthest off", Cell(place(worst)),
                                       Show::plain,
                                       fmt::format("{:.3g} times its tolerance", badness(*worst))});
        }
        if (arriving != nullptr) {
            section.scalars.push_back({key("arriving"), "Error at the end",
                                       error_cell(arriving->cumulative), Show::plain,
                                       fmt::format("relative, after {}", place(arriving))});
        }
    }
    return section;
}

}  // namespace

Report comparison_report(const Comparison& comparison, const ComparisonView& view) {
    Report report;
    report.tool = "compare";
    const auto entries = entries_of(comparison);
    auto shown = entries;
    if (view.only_bad) {
        std::erase_if(shown, [](const Entry& entry) {
            return entry.verdict() == Verdict::pass &&
                   (entry.cumulative == nullptr || entry.cumulative->verdict == Verdict::pass);
        });
    }
    if (view.worst_first || (view.most > 0 && shown.size() > view.most)) {
        std::stable_sort(shown.begin(), shown.end(),
                         [](const Entry& a, const Entry& b) { return badness(a) > badness(b); });
        if (view.most > 0 && shown.size() > view.most) {
            shown.resize(view.most);
        }
        if (!view.worst_first) {
            std::stable_sort(shown.begin(), shown.end(), [](const Entry& a, const Entry& b) {
                return std::tuple(a.set, a.layer->number, a.side) <
                       std::tuple(b.set, b.layer->number, b.side);
            });
        }
    }
    const bool sets = std::any_of(entries.begin(), entries.end(),
                                  [](const Entry& entry) { return entry.set > 0; });
    auto table = layer_table(comparison, sets);
    for (const auto& entry : shown) {
        table.rows.push_back(layer_row(comparison, entry));
    }
    table.columns.back().hidden = std::all_of(
        table.rows.begin(), table.rows.end(),
        [](const Row& row) { return std::get<std::string>(row.cells.back().value).empty(); });
    if (shown.size() < entries.size()) {
        table.note = fmt::format("{} of {} layers are not shown", entries.size() - shown.size(),
                                 entries.size());
    }
    if (!table.rows.empty()) {
        report.tables.push_back(std::move(table));
    }
    report.tables.push_back(tensor_table(comparison));
    report.sections.push_back(counts(comparison, entries));
    report.order = {"layers", "comparison"};
    report.notes = comparison.notes;
    report.partial = !comparison.complete;
    report.verdict =
        std::none_of(comparison.results.begin(), comparison.results.end(),
                     [](const auto& result) { return result.verdict == Verdict::fail; }) &&
        std::none_of(entries.begin(), entries.end(), [](const Entry& entry) {
            return entry.verdict() == Verdict::incomparable && entry.main()->end != RunEnd::done;
        });
    return report;
}

}  // namespace trocar
