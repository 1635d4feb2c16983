#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "tools/summary/present.h"
#include "tools/summary/tree.h"
#include "trocar/selector.h"
#include "util/text.h"

namespace trocar::summary {
namespace {

constexpr std::size_t longest_list = 200;  // rows of a list that nobody asked to see whole

// A share of nothing is not shown as a number.
Cell share(std::uint64_t part, std::uint64_t whole) {
    return part == 0 || whole == 0 ? Cell() : Cell(ratio(part, whole));
}

// What a layer does not have.
Cell some(std::uint64_t value) {
    return value == 0 ? Cell() : Cell(value);
}

Cell zero_cell(const Sums& sums, const std::string& why_not) {
    if (sums.weights == 0) {
        return why_not.empty() ? Cell() : Cell::unavailable(why_not);
    }
    return ratio(sums.zeros, sums.weights);
}

Cell intensity(const Sums& sums) {
    std::uint64_t moved = sums.read + sums.written;
    std::uint64_t flops = sums.flops();
    return moved == 0 || flops == 0 ? Cell() : Cell(std::round(ratio(flops, moved) * 1000) / 1000);
}

// A number that lacks ops whose work is not known is not shown as if it were whole.
Cell unless(const std::string& why, std::uint64_t value) {
    return why.empty() ? Cell(value) : Cell::unavailable(why);
}

std::string why_unsized(const OpRow& row) {
    return row.sums.unsized == 0 || row.has_bodies ? "" : "a shape is unknown";
}

const char* counted_text(const OpRow& row) {
    switch (row.count.counted) {
        case Counted::arithmetic:
            return "arithmetic";
        case Counted::movement:
            return "movement";
        case Counted::unknown:
            break;
    }
    return row.taken ? "unknown" : "not taken";
}

// Every tensor with its dtype, for programs: "f32 1x3x224x224".
std::vector<std::string> full_texts(const OpRow& row, const std::vector<TensorId>& ids) {
    std::vector<std::string> texts;
    for (TensorId id : ids) {
        if (id == TensorId::none) {
            texts.emplace_back("none");
            continue;
        }
        const Fact& fact = row.scope->fact(id);
        texts.push_back(fact.shape ? fmt::format("{} {}", name(fact.dtype), shape_text(*fact.shape))
                                   : text_of(fact));
    }
    return texts;
}

// What a layer reads apart from its parameters, and what it writes.
Cell input_cell(const Summary& s, const Layer& layer) {
    if (layer.first == OpRow::none) {
        return "";
    }
    const OpRow& row = s.rows.rows[layer.first];
    const Op& op = row.scope->graph->op(row.op);
    std::vector<std::string> texts;
    for (TensorId id : op.inputs) {
        if (id != TensorId::none && row.scope->fact(id).constant == nullptr) {
            texts.push_back(text_of(row.scope->fact(id)));
        }
    }
    return fmt::format("{}", join(texts, ", "));
}

Cell output_cell(const Summary& s, const Layer& layer) {
    if (layer.last == OpRow::none) {
        return "";
    }
    return fmt::format("{}", join(output_texts(s.rows.rows[layer.last]), ", "));
}

Row layer_row(const Summary& s, const Layer& layer) {
    const OpRow* op = layer.row == OpRow::none ? nullptr : &s.rows.rows[layer.row];
    const Sums& sums = layer.sums;
    bool uncounted = op != nullptr && op->count.counted == Counted::unknown;
    std::string why = uncounted ? op->count.why : "";
    std::string unsized = op == nullptr ? "" : !op->taken ? op->count.why : why_unsized(*op);
    if (op == nullptr && sums.uncounted > 0 && sums.flops() == 0) {
        uncounted = true;
        why = "its ops are not counted";
    }
    if (op == nullptr && sums.unsized > 0 && sums.read + sums.written == 0) {
        unsized = "shapes are unknown";
    }
    Row row;
    row.depth = layer.depth;
    row.cells = {
        layer.label,
        layer.times > 1 ? Cell(fmt::format("×{}", layer.times)) : Cell(""),
        layer.type,
        op == nullptr ? std::string() : op->attributes,
        input_cell(s, layer),
        output_cell(s, layer),
        some(sums.parameters),
        share(sums.parameters, s.rows.total.parameters),
        some(sums.parameter_bytes),
        zero_cell(sums, op == nullptr ? "" : op->no_zeros),
        layer.pattern.empty() ? Cell() : Cell(layer.pattern),
        why.empty() ? some(sums.macs) : Cell::unavailable(why),
        uncounted ? Cell() : share(sums.macs, s.rows.total.macs),
        why.empty() ? some(sums.flops()) : Cell::unavailable(why),
        unless(unsized, sums.read),
        unless(unsized, sums.written),
        intensity(sums),
    };
    return row;
}

std::vector<Column> layer_columns() {
    return {
        {.key = "layer", .title = "Layer", .tree = true},
        {.key = "times", .title = "×"},
        {.key = "type", .title = "Type"},
        {.key = "attributes", .title = "Attributes", .optional = 2},
        {.key = "inputs", .title = "Inputs", .optional = 9},
        {.key = "outputs", .title = "Output"},
        {.key = "parameters", .title = "Params", .show = Show::count},
        {.key = "parameters_ratio", .title = "%", .show = Show::percent, .optional = 5},
        {.key = "parameter_bytes", .title = "Param bytes", .show = Show::bytes, .optional = 8},
        {.key = "zero_ratio", .title = "Zeros", .show = Show::percent, .optional = 6},
        {.key = "zero_pattern", .title = "Pattern", .optional = 7},
        {.key = "macs", .title = "MACs", .show = Show::compact},
        {.key = "macs_ratio", .title = "%", .show = Show::percent, .optional = 3},
        {.key = "flops", .title = "FLOPs", .show = Show::compact, .optional = 10},
        {.key = "read_bytes", .title = "Read", .show = Show::bytes, .optional = 11},
        {.key = "written_bytes", .title = "Written", .show = Show::bytes, .optional = 11},
        {.key = "intensity_flop_per_byte", .title = "FLOP/B", .optional = 12},
    };
}

// Columns in which no row has anything to say.
void drop_empty_columns(Table& table, std::initializer_list<const char*> keys) {
    for (std::size_t c = table.columns.size(); c-- > 0;) {
        bool candidate = std::any_of(keys.begin(), keys.end(),
                                     [&](const char* key) { return table.columns[c].key == key; });
        bool empty = std::all_of(table.rows.begin(), table.rows.end(), [&](const Row& row) {
            const auto* text = std::get_if<std::string>(&row.cells[c].value);
            const auto* number = std::get_if<double>(&row.cells[c].value);
            return row.cells[c].missing() ||
                   (text != nullptr && (text->empty() || *text == "dense")) ||
                   (number != nullptr && *number < 0.001);
        });
        if (candidate && empty) {
            table.columns.erase(table.columns.begin() + static_cast<std::ptrdiff_t>(c));
            for (Row& row : table.rows) {
                row.cells.erase(row.cells.begin() + static_cast<std::ptrdiff_t>(c));
            }
        }
    }
}

std::uint64_t sort_key(const Layer& layer, const std::string& by) {
    if (by == "params") {
        return layer.sums.parameters;
    }
    return by == "bytes" ? layer.sums.read + layer.sums.written : layer.sums.macs;
}

// The layers of a list that `--select` wants: ops of the model's graph with their bodies.
void select_layers(const Summary& s, const std::string& text, std::vector<Layer>& layers) {
    Selector selector = parse_selector(text);
    std::erase_if(layers, [&](const Layer& layer) {
        std::size_t at = layer.row;
        while (s.rows.rows[at].inside != OpRow::none) {
            at = s.rows.rows[at].inside;
        }
        return !selector(*s.scope->graph, s.rows.rows[at].op);
    });
}

Row total_row(const std::string& label, const Summary& s, const Sums& sums) {
    Layer total;
    total.label = label;
    total.sums = sums;
    total.type = fmt::format("{} {}", sums.ops, sums.ops == 1 ? "op" : "ops");
    Row row = layer_row(s, total);
    row.strong = true;
    return row;
}

}  // namespace

Table op_table(const Summary& s) {
    Table table;
    table.key = "ops";
    table.title = "Ops";
    table.hidden = true;
    for (const char* key : {"row",
                            "op",
                            "name",
                            "module",
                            "type",
                            "attributes",
                            "inside",
                            "body",
                            "runs",
                            "inputs",
                            "outputs",
                            "parameters",
                            "shared_parameters",
                            "parameter_bytes",
                            "buffers",
                            "zero_ratio",
                            "zero_pattern",
                            "macs",
                            "effective_macs",
                            "other_flops",
                            "flops",
                            "read_bytes",
                            "written_bytes",
                            "intensity_flop_per_byte",
                            "output_bytes",
                            "counted",
                            "shapes"}) {
        table.columns.push_back({.key = key, .title = key});
    }
    table.rows.reserve(s.rows.rows.size());
    for (std::size_t i = 0; i < s.rows.rows.size(); ++i) {
        const OpRow& r = s.rows.rows[i];
        const Op& op = r.scope->graph->op(r.op);
        std::string why = r.count.counted == Counted::unknown ? r.count.why : "";
        std::string unsized = !r.taken ? r.count.why : why_unsized(r);
        Row row;
        row.cells = {
            i,
            r.place,
            op.name,
            op.origin.module.empty() ? Cell() : Cell(op.origin.module),
            r.type,
            r.attributes,
            r.inside == OpRow::none ? Cell() : Cell(r.inside),
            r.body.empty() ? Cell() : Cell(r.body),
            r.times_known ? Cell(r.times)
                          : Cell::unavailable("the number of iterations is unknown"),
            full_texts(r, op.inputs),
            full_texts(r, op.outputs),
            r.sums.parameters,
            r.sums.shared_parameters,
            r.sums.parameter_bytes,
            r.sums.buffers,
            zero_cell(r.sums, r.no_zeros),
            r.pattern.empty() ? Cell() : Cell(r.pattern),
            unless(why, r.sums.macs),
            unless(why, r.sums.effective_macs),
            unless(why, r.sums.other_flops),
            unless(why, r.sums.flops()),
            unless(unsized, r.sums.read),
            unless(unsized, r.sums.written),
            unsized.empty() && why.empty() ? intensity(r.sums) : Cell(),
            r.output_bytes ? Cell(*r.output_bytes) : Cell::unavailable("a shape is unknown"),
            counted_text(r),
            shapes_from(r),
        };
        table.rows.push_back(std::move(row));
    }
    return table;
}

Table layer_table(const Summary& s, const Options& options) {
    Table table;
    table.key = "layers";
    table.columns = layer_columns();
    bool sorted = options.sort != "order";
    bool listed = options.flat || sorted || !options.select.empty() || options.top > 0 ||
                  !has_modules(s.rows);
    std::vector<Layer> layers;
    if (listed) {
        layers = layer_list(s.rows);
        if (!options.select.empty()) {
            select_layers(s, options.select, layers);
        }
        if (sorted || options.top > 0) {
            // Ops with bodies stand for what is in them.
            std::erase_if(layers, [](const Layer& layer) { return layer.depth > 0; });
        }
        if (sorted) {
            std::stable_sort(layers.begin(), layers.end(), [&](const Layer& a, const Layer& b) {
                return sort_key(a, options.sort) > sort_key(b, options.sort);
            });
        }
    } else {
        TreeOptions tree{.depth = static_cast<int>(std::min<std::int64_t>(options.depth, 1000)),
                         .collapse = !options.expand};
        layers = layer_tree(s.rows, tree);
    }
    std::size_t limit = options.top > 0 ? static_cast<std::size_t>(options.top)
                        : options.expand || options.depth > 0 ? layers.size()
                                                              : longest_list;
    std::size_t shown = std::min(layers.size(), limit);
    Sums selected;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        if (layers[i].depth == 0) {
            selected.add(layers[i].sums);
        }
        if (i < shown) {
            table.rows.push_back(layer_row(s, layers[i]));
        }
    }
    if (shown < layers.size()) {
        table.note = options.top > 0
                         ? fmt::format("{} of {} ops", shown, layers.size())
                         : fmt::format(
                               "and {} more rows: --expand shows all, --top N --sort macs the "
                               "largest, --json has every op",
                               show(Cell(layers.size() - shown), Show::count));
    }
    if (!options.select.empty()) {
        table.rows.push_back(total_row("selected", s, selected));
    }
    table.rows.push_back(total_row("total", s, s.rows.total));
    drop_empty_columns(table, {"times", "zero_ratio", "zero_pattern", "attributes"});
    if (s.rows.total.parameters == 0) {
        drop_empty_columns(table, {"parameters", "parameters_ratio", "parameter_bytes"});
    }
    return table;
}

Table type_table(const Summary& s) {
    Table table;
    table.key = "types";
    table.title = "By op type";
    table.columns = {
        {.key = "type", .title = "Type"},
        {.key = "ops", .title = "Ops", .show = Show::count},
        {.key = "parameters", .title = "Params", .show = Show::count},
        {.key = "parameters_ratio", .title = "%", .show = Show::percent},
        {.key = "macs", .title = "MACs", .show = Show::count},
        {.key = "macs_ratio", .title = "%", .show = Show::percent},
        {.key = "flops", .title = "FLOPs", .show = Show::compact, .optional = 1},
        {.key = "read_bytes", .title = "Read", .show = Show::bytes, .optional = 2},
        {.key = "written_bytes", .title = "Written", .show = Show::bytes, .optional = 2},
        {.key = "not_counted", .title = "Not counted", .show = Show::count, .optional = 3},
    };
    std::vector<std::pair<std::string, Sums>> types(s.rows.by_type.begin(), s.rows.by_type.end());
    std::stable_sort(types.begin(), types.end(), [](const auto& a, const auto& b) {
        return std::tuple(a.second.macs, a.second.flops(), a.second.ops) >
               std::tuple(b.second.macs, b.second.flops(), b.second.ops);
    });
    const Sums& total = s.rows.total;
    for (const auto& [type, sums] : types) {
        auto known = [&sums = sums](std::uint64_t n) {
            return sums.uncounted == sums.ops ? Cell::unavailable("not counted") : some(n);
        };
        Row row;
        row.cells = {type,
                     sums.ops,
                     some(sums.parameters),
                     share(sums.parameters, total.parameters),
                     known(sums.macs),
                     share(sums.macs, total.macs),
                     known(sums.flops()),
                     sums.read,
                     sums.written,
                     some(sums.uncounted)};
        table.rows.push_back(std::move(row));
    }
    drop_empty_columns(table, {"not_counted"});
    return table;
}

Table uncounted_table(const Summary& s) {
    Table table;
    table.key = "uncounted";
    table.title = "Not counted";
    table.columns = {{.key = "type", .title = "Type"},
                     {.key = "ops", .title = "Ops", .show = Show::count},
                     {.key = "reason", .title = "Reason"},
                     {.key = "example", .title = "Example", .optional = 1}};
    for (const Uncounted& u : s.rows.uncounted) {
        Row row;
        row.cells = {u.type, u.ops, u.why, u.example};
        table.rows.push_back(std::move(row));
    }
    return table;
}

}  // namespace trocar::summary
