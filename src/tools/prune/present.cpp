#include "tools/prune/present.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>

#include "prune/weights.h"
#include "trocar/counting.h"
#include "util/elements.h"

namespace trocar::prune_tool_parts {

namespace {

Cell number(const std::optional<std::uint64_t>& value) {
    return value ? Cell(std::uint64_t{*value}) : Cell::unavailable("shapes are not known");
}

double density(std::uint64_t nonzero, const Shape& shape) {
    const auto all = element_count(shape);
    return all == 0 ? 0 : static_cast<double>(nonzero) / static_cast<double>(all);
}

}  // namespace

Totals totals_of(const Model& model, const Shapes& shapes) {
    Totals totals;
    totals.macs = 0;
    const auto& graph = model.graph;
    std::set<TensorId> seen;
    for (const auto id : graph.ops()) {
        const auto& op = graph.op(id);
        const auto macs = macs_of(model, id, shapes);
        double share = 1;
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            const auto place = op.inputs[slot] == TensorId::none
                                   ? std::nullopt
                                   : pruning::constant_behind(model, op.inputs[slot]);
            if (!place) {
                continue;
            }
            const auto& constant = value_at(graph, *place);
            const bool numbers = is_numeric(constant.dtype());
            const bool parameter =
                is_parameter(role(op, slot, constant.dtype(), constant.shape(), model.dialect)) &&
                passing(op, model.dialect) == Passing::no;
            const bool fresh = parameter && seen.insert(place->tensor).second;
            const bool summed =
                macs && *macs > 0 &&
                weight_axes(op, slot, constant.shape().size(), model.dialect).has_value();
            const auto left = (fresh || summed) && numbers ? pruning::nonzero(constant)
                                                           : constant.element_count();
            if (fresh) {
                totals.parameters += constant.element_count();
                totals.nonzero += left;
                totals.bytes += constant.stored_bytes();
            }
            share = summed ? density(left, constant.shape()) : share;
        }
        // Not counted: no sum of products, or a shape that is not known.
        *totals.macs += macs.value_or(0);
        totals.macs_nonzero += share * static_cast<double>(macs.value_or(0));
    }
    if (*totals.macs == 0) {
        totals.macs.reset();
    }
    return totals;
}

Table weight_table(const Model& before, const Pruned& pruned, const Shapes& shapes,
                   const Quality& quality) {
    Table table{
        .key = "weights",
        .title = "Weights",
        .columns = {{.key = "layer", .title = "Layer"},
                    {.key = "type", .title = "Type"},
                    {.key = "tensor", .title = "Tensor", .hidden = true},
                    {.key = "shape_before", .title = "Shape", .optional = 3},
                    {.key = "shape_after", .title = "Shape after", .optional = 3},
                    {.key = "elements_before", .title = "Elements", .show = Show::count},
                    {.key = "elements_after", .title = "After", .show = Show::count},
                    {.key = "nonzero_before", .title = "Not 0", .show = Show::count, .optional = 1},
                    {.key = "nonzero_after", .title = "After", .show = Show::count, .optional = 1},
                    {.key = "sparsity", .title = "Zeros", .show = Show::percent},
                    {.key = "macs_before", .title = "MACs", .show = Show::compact, .optional = 2},
                    {.key = "macs_after", .title = "After", .show = Show::compact, .optional = 2},
                    {.key = "sqnr_db", .title = "SQNR", .show = Show::decibels}},
        .rows = {},
        .note = {}};
    std::map<std::string, double> by_tensor;
    for (const auto& layer : quality.layers) {
        by_tensor[layer.tensor] = layer.sqnr_db;
    }
    for (const auto& weight : pruned.weights) {
        if (weight.tensor.empty()) {
            continue;  // no constant that could be pruned; the other table says why
        }
        Cell sqnr = Cell::unavailable("not compared: --data, --input or --fill says on what");
        std::optional<std::uint64_t> macs_before;
        std::optional<std::uint64_t> macs_after;
        if (weight.op != OpId::none) {
            const auto& outputs = before.graph.op(weight.op).outputs;
            const auto at = outputs.empty() || outputs[0] == TensorId::none
                                ? by_tensor.end()
                                : by_tensor.find(before.graph.tensor(outputs[0]).name);
            if (at != by_tensor.end()) {
                sqnr = decibels(at->second);
            }
            macs_before = macs_of(before, weight.op, shapes);
            macs_after = macs_of(pruned.model, weight.op, pruned.shapes);
        }
        table.rows.push_back(
            {.cells = {weight.name, weight.type, weight.tensor, shape_text(weight.before),
                       shape_text(weight.after), std::uint64_t{element_count(weight.before)},
                       std::uint64_t{element_count(weight.after)}, weight.nonzero_before,
                       weight.nonzero_after, 1 - density(weight.nonzero_after, weight.after),
                       number(macs_before), number(macs_after), std::move(sqnr)}});
    }
    return table;
}

Table left_table(const Pruned& pruned, bool channels) {
    Table table{.key = "left",
                .title = channels ? "Output channels that stay" : "Left alone",
                .columns = {{.key = "layer", .title = "Layer"},
                            {.key = "type", .title = "Type"},
                            {.key = "why", .title = "Why"}},
                .rows = {},
                .note = {}};
    for (const auto& weight : pruned.weights) {
        if (!weight.why.empty()) {
            table.rows.push_back({.cells = {weight.name, weight.type, weight.why}});
        }
    }
    return table;
}

}  // namespace trocar::prune_tool_parts
