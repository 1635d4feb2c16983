#include "prune/weights.h"

#include <algorithm>
#include <array>

#include "util/elements.h"

namespace trocar::pruning {

namespace {

constexpr std::size_t weight_piece = 4096;

bool is_standard(const Model& model, const Op& op, std::string_view type) {
    return model.dialect == "onnx" && op.type == type &&
           (op.domain.empty() || op.domain == "ai.onnx");
}

// Why a constant cannot be pruned; empty: it can.
std::string unfit(const Constant& constant) {
    if (!is_float(constant.dtype()) || !is_numeric(constant.dtype()) ||
        bits(constant.dtype()) % 8 != 0) {
        return "its weights are no floating-point numbers";
    }
    return constant.element_count() == 0 ? "its weights have no elements" : "";
}

// Does a value come from constants alone? Then it is a weight in another form.
bool is_derived(const Model& model, TensorId id, Passing& how) {
    const auto& graph = model.graph;
    for (;;) {
        const auto& tensor = graph.tensor(id);
        if (tensor.constant) {
            return true;
        }
        if (tensor.producer == OpId::none) {
            return false;
        }
        const auto& op = graph.op(tensor.producer);
        if (is_constant_op(model, op)) {
            return true;
        }
        const auto passed = passing(op, model.dialect);
        if (passed == Passing::no || op.inputs.empty() || op.inputs[0] == TensorId::none) {
            return false;
        }
        how = passed == Passing::unchanged ? how : passed;
        id = op.inputs[0];
    }
}

void add_weight(const Model& model, OpId id, std::size_t slot, bool chosen,
                std::vector<Weight>& all) {
    const auto& graph = model.graph;
    const auto& op = graph.op(id);
    auto how = Passing::unchanged;
    if (op.inputs[slot] == TensorId::none || !is_derived(model, op.inputs[slot], how)) {
        return;
    }
    Weight weight;
    weight.op = id;
    weight.slot = slot;
    const auto place = constant_behind(model, op.inputs[slot]);
    if (!place) {
        // Of ranks that weights have, as it is not known here.
        if (!weight_axes(op, slot, 2, model.dialect) && !weight_axes(op, slot, 3, model.dialect) &&
            !weight_axes(op, slot, 4, model.dialect)) {
            return;
        }
        weight.why = how == Passing::dequantized ? "its weights are quantised: prune first"
                     : graph.tensor(op.inputs[slot]).is_input
                         ? "its weights are an input with a default"
                         : "ops between change the form of its weights";
        all.push_back(std::move(weight));
        return;
    }
    const auto& constant = value_at(graph, *place);
    const auto rank = constant.shape().size();
    if (role(op, slot, constant.dtype(), constant.shape(), model.dialect) != Role::weight) {
        return;
    }
    auto axes = weight_axes(op, slot, rank, model.dialect);
    if (axes) {
        axes = WeightAxes{place->axis(axes->output), place->axis(axes->reduced)};
    } else if (!chosen) {
        return;  // a table, or a factor of something elementwise
    }
    weight.why = unfit(constant);
    weight.place = *place;
    weight.axes = axes;
    all.push_back(std::move(weight));
}

}  // namespace

std::optional<Place> constant_behind(const Model& model, TensorId tensor) {
    const auto& graph = model.graph;
    Place place;
    for (auto id = tensor;;) {
        const auto& t = graph.tensor(id);
        if (const auto kept = constant_place(model, id)) {
            // From version 4 on, a constant that is an input too may be overridden.
            if (t.is_input && model.dialect == "onnx" && model.ir_version >= 4) {
                return std::nullopt;
            }
            place.tensor = kept->tensor;
            place.maker = kept->maker;
            return place;
        }
        if (t.producer == OpId::none) {
            return std::nullopt;
        }
        const auto& op = graph.op(t.producer);
        const bool transposes = is_standard(model, op, "Transpose");
        if ((!transposes && !is_standard(model, op, "Identity")) || op.inputs.empty() ||
            op.inputs[0] == TensorId::none) {
            return std::nullopt;
        }
        if (transposes) {
            const auto turned = op.integers("perm");
            if (turned.empty()) {
                return std::nullopt;
            }
            std::vector<std::size_t> axes(turned.size());
            for (std::size_t i = 0; i < axes.size(); ++i) {
                const auto from = place.axis(i);
                if (from >= turned.size() || turned[from] < 0) {
                    return std::nullopt;
                }
                axes[i] = static_cast<std::size_t>(turned[from]);
            }
            place.axes = std::move(axes);
        }
        id = op.inputs[0];
    }
}

std::vector<Weight> weights_of(const Model& model, const PruneOptions& options) {
    std::vector<Weight> all;
    const auto& graph = model.graph;
    for (const auto id : graph.ops()) {
        const bool chosen = options.at.has_value();
        if ((chosen && !(*options.at)(graph, id)) || options.keep(graph, id) ||
            passing(graph.op(id), model.dialect) != Passing::no) {
            continue;
        }
        for (std::size_t slot = 0; slot < graph.op(id).inputs.size(); ++slot) {
            add_weight(model, id, slot, chosen, all);
        }
    }
    return all;
}

std::uint64_t nonzero(const Constant& constant) {
    if (constant.is_sparse()) {
        return nonzero(constant.values());
    }
    std::uint64_t count = 0;
    std::array<double, weight_piece> numbers{};
    const auto all = constant.element_count();
    for (std::size_t at = 0; at < all; at += weight_piece) {
        const auto some = std::span(numbers).first(std::min(weight_piece, all - at));
        decode(constant.dtype(), constant.bytes(), at, some);
        count += static_cast<std::uint64_t>(
            std::count_if(some.begin(), some.end(), [](double x) { return x != 0; }));
    }
    return count;
}

Constant masked(const Constant& constant, const std::vector<std::uint8_t>& kept) {
    const auto dense = constant.is_sparse() ? densify(constant) : constant;
    const auto bytes = dense.bytes();
    std::vector<std::byte> made(bytes.begin(), bytes.end());
    const auto width = bits(dense.dtype()) / 8;
    for (std::size_t i = 0; i < kept.size(); ++i) {
        if (kept[i] == 0) {
            std::fill_n(made.begin() + static_cast<std::ptrdiff_t>(i * width), width, std::byte{0});
        }
    }
    return Constant::copy(dense.dtype(), dense.shape(), made);
}

}  // namespace trocar::pruning
