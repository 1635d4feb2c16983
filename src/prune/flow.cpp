#include "prune/flow.h"

#include <fmt/format.h>

#include <algorithm>

#include "util/op_label.h"

namespace trocar::pruning {

const std::map<std::string_view, Flow::Rule>& Flow::rules() {
    static const auto made = [] {
        std::map<std::string_view, Rule> all{
            {"Conv", &Flow::conv},
            {"ConvTranspose", &Flow::conv_transpose},
            {"Gemm", &Flow::gemm},
            {"MatMul", &Flow::matmul},
            {"BatchNormalization", &Flow::normalize_channels},
            {"InstanceNormalization", &Flow::normalize_channels},
            {"LayerNormalization", &Flow::normalize_last},
            {"Softmax", &Flow::softmax},
            {"LogSoftmax", &Flow::softmax},
            {"Hardmax", &Flow::softmax},
            {"Concat", &Flow::concat},
            {"Flatten", &Flow::reshape},
            {"Reshape", &Flow::reshape},
            {"Squeeze", &Flow::reshape},
            {"Unsqueeze", &Flow::reshape},
            {"Transpose", &Flow::transpose},
            {"Gather", &Flow::gather},
            {"Resize", &Flow::resize},
            {"Upsample", &Flow::resize},
            {"Pad", &Flow::pad},
            {"Slice", &Flow::slice},
            {"Split", &Flow::split},
            {"Shape", &Flow::ask_shape},
        };
        for (const auto* type : {"Relu",
                                 "LeakyRelu",
                                 "Sigmoid",
                                 "Tanh",
                                 "Clip",
                                 "HardSwish",
                                 "HardSigmoid",
                                 "Elu",
                                 "Selu",
                                 "Celu",
                                 "Gelu",
                                 "Erf",
                                 "Exp",
                                 "Log",
                                 "Sqrt",
                                 "Neg",
                                 "Abs",
                                 "Softplus",
                                 "Softsign",
                                 "Mish",
                                 "Swish",
                                 "Identity",
                                 "Dropout",
                                 "Cast",
                                 "Floor",
                                 "Ceil",
                                 "Round",
                                 "Sign",
                                 "Not",
                                 "Reciprocal",
                                 "ThresholdedRelu",
                                 "Sin",
                                 "Cos",
                                 "IsNaN",
                                 "IsInf"}) {
            all.emplace(type, &Flow::unary);
        }
        for (const auto* type :
             {"Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Mean", "Sum", "PRelu", "Where",
              "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or", "Xor"}) {
            all.emplace(type, &Flow::elementwise);
        }
        for (const auto* type : {"MaxPool", "AveragePool", "LpPool", "GlobalAveragePool",
                                 "GlobalMaxPool", "GlobalLpPool"}) {
            all.emplace(type, &Flow::pool);
        }
        for (const auto* type : {"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1",
                                 "ReduceL2", "ReduceProd", "ReduceSumSquare"}) {
            all.emplace(type, &Flow::reduce);
        }
        return all;
    }();
    return made;
}

Flow::Flow(const Model& model, const Shapes& shapes)
    : model_(model), graph_(model.graph), shapes_(shapes), tensors_(model.graph.tensor_limit()) {
    for (const auto id : graph_.ops()) {
        walk(id);
    }
    close();
}

void Flow::walk(OpId id) {
    const auto& one = op(id);
    for (const auto captured : one.captures) {
        freeze_tensor(captured, fmt::format("a body of '{}' reads it", label(id)));
    }
    const bool own = one.domain.empty() || one.domain == "ai.onnx";
    const auto rule = own ? rules().find(one.type) : rules().end();
    const bool makes = own && (one.type == "Conv" || one.type == "ConvTranspose" ||
                               one.type == "Gemm" || one.type == "MatMul");
    if (!makes && !has_channels(one)) {
        return;  // what comes out has channels of which none can go
    }
    if (rule == rules().end()) {
        unknown(id);
        return;
    }
    for (const auto out : one.outputs) {
        if (out != TensorId::none && !shape(out) && !graph_.tensor(out).uses.empty()) {
            freeze_inputs(id,
                          fmt::format("the shape of '{}' is not known", graph_.tensor(out).name));
            return;
        }
    }
    (this->*rule->second)(id);
}

// What nobody can take account of.
void Flow::close() {
    for (const auto id : graph_.outputs()) {
        freeze_tensor(id, fmt::format("'{}' is an output of the model", graph_.tensor(id).name));
    }
    for (const auto& [tensor, held] : constants_) {
        check_uses(held);
    }
}

bool Flow::has_channels(const Op& one) const {
    return std::any_of(one.inputs.begin(), one.inputs.end(), [&](TensorId id) {
        return id != TensorId::none &&
               std::any_of(tensors_[index(id)].begin(), tensors_[index(id)].end(),
                           [](const Axis& axis) { return axis != nullptr; });
    });
}

TensorId Flow::input(OpId id, std::size_t slot) const {
    return slot < op(id).inputs.size() ? op(id).inputs[slot] : TensorId::none;
}
TensorId Flow::output(OpId id, std::size_t slot) const {
    return slot < op(id).outputs.size() ? op(id).outputs[slot] : TensorId::none;
}
Axis Flow::channels(TensorId id, std::size_t axis) const {
    if (id == TensorId::none) {
        return nullptr;
    }
    const auto& all = tensors_[index(id)];
    return axis < all.size() ? all[axis] : nullptr;
}
void Flow::give(TensorId id, std::size_t axis, Axis channels) {
    if (id == TensorId::none || channels == nullptr) {
        return;
    }
    const auto& known = shape(id);
    if (!known || axis >= known->size() ||
        static_cast<std::size_t>((*known)[axis]) != channels->size()) {
        freeze(channels, fmt::format("the shape of '{}' does not fit", graph_.tensor(id).name));
        return;
    }
    auto& all = tensors_[index(id)];
    all.resize(std::max(all.size(), axis + 1));
    all[axis] = std::move(channels);
}
std::string Flow::label(OpId id) const {
    return op_label(graph_, id);
}

// --- Ops that compute ------------------------------------------------------------------------

void Flow::unknown(OpId id) {
    freeze_inputs(
        id, fmt::format("how channels go through '{}' ({}) is not known", label(id), op(id).type));
}

void Flow::unary(OpId id) {
    const auto& all = tensors_[index(input(id, 0))];
    for (std::size_t slot = 0; slot < op(id).outputs.size(); ++slot) {
        const auto out = output(id, slot);
        for (std::size_t i = 0; out != TensorId::none && shape(out) && i < all.size(); ++i) {
            give(out, i, all[i]);
        }
    }
}

// The operands are aligned at their last axes; those with 1 are repeated.
void Flow::elementwise(OpId id) {
    const auto out = output(id);
    if (out == TensorId::none || !shape(out)) {
        return freeze_inputs(id,
                             fmt::format("the shape of what '{}' makes is not known", label(id)));
    }
    for (std::size_t axis = 0; axis < shape(out)->size(); ++axis) {
        same_axis(id, axis, shape(out)->size(), *shape(out));
    }
}

// One axis that all operands of an op have in common.
void Flow::same_axis(OpId id, std::size_t axis, std::size_t rank, const Shape& whole) {
    struct Operand {
        std::size_t slot, axis;
        Axis list;
    };
    std::vector<Operand> operands;
    Axis all;
    for (std::size_t slot = 0; slot < op(id).inputs.size(); ++slot) {
        const auto read = op(id).inputs[slot];
        if (read == TensorId::none) {
            continue;
        }
        const auto& known = shape(read);
        if (!known) {
            return freeze_inputs(
                id, fmt::format("the shape of '{}' is not known", graph_.tensor(read).name));
        }
        const auto missing = rank - std::min(rank, known->size());
        if (axis < missing) {
            continue;
        }
        const auto own = axis - missing;
        auto list = channels(read, own);
        if ((*known)[own] != whole[axis] || whole[axis] == 1) {
            freeze(list, fmt::format("'{}' repeats it", label(id)));
            continue;
        }
        all = all == nullptr ? list : all;
        operands.push_back({slot, own, std::move(list)});
    }
    if (all == nullptr) {
        return;
    }
    for (const auto& operand : operands) {
        if (operand.list != nullptr) {
            unite(all, operand.list);
        } else if (!demand(id, operand.slot, operand.axis, all)) {
            freeze(all, fmt::format("'{}' combines it with '{}', whose channels stay", label(id),
                                    graph_.tensor(op(id).inputs[operand.slot]).name));
        }
    }
    give(output(id), axis, all);
}

// Channels that an op makes, with its bias.
void Flow::made(OpId id, std::size_t axis, const Axis& out, std::size_t bias_slot) {
    const auto bias = input(id, bias_slot);
    if (bias != TensorId::none) {
        const auto known = shape(bias);
        const bool last =
            known && !known->empty() && static_cast<std::size_t>(known->back()) == out->size();
        if (known && element_count(*known) == 1) {
            // the same for all channels
            freeze(out->size() == 1 ? out : nullptr, "it is one channel");
        } else if (!last || !demand(id, bias_slot, known->size() - 1, out)) {
            freeze(out, fmt::format("the bias of '{}' is no constant of its channels", label(id)));
        }
    }
    give(output(id), axis, out);
}

void Flow::conv(OpId id) {
    const auto in = channels(input(id, 0), 1);
    freeze_but(input(id, 0), {1}, fmt::format("'{}' moves along it", label(id)));
    const auto weight = constant_shape(id, 1);
    if (!weight || weight->size() < 3) {
        return freeze(in, fmt::format("the weights of '{}' are no constant", label(id)));
    }
    const auto group =
        static_cast<std::size_t>(std::max<std::int64_t>(op(id).integer("group", 1), 1));
    if (group > 1) {
        return grouped_conv(id, group, *weight);
    }
    if (in != nullptr && !demand(id, 1, 1, in)) {
        freeze(in, fmt::format("the weights of '{}' do not fit", label(id)));
    }
    const auto out = fresh(static_cast<std::size_t>((*weight)[0]));
    const auto place = constant_behind(model_, input(id, 1));
    if (!demand(id, 1, 0, out)) {
        return;
    }
    sources_.push_back({id, *place, place->axis(0), out, true});
    made(id, 1, out, 2);
}

// A depthwise convolution has the channels of its input. Other groups stay groups of one size: of
// each of them the same places go.
void Flow::grouped_conv(OpId id, std::size_t group, const Shape& weight) {
    const auto in = channels(input(id, 0), 1);
    const auto count = static_cast<std::size_t>(weight[0]);
    const auto place = constant_behind(model_, input(id, 1));
    if (count % group != 0 || (in != nullptr && in->size() % group != 0)) {
        return freeze(in, fmt::format("the groups of '{}' do not fit", label(id)));
    }
    Axis out;
    const bool depthwise = weight[1] == 1;
    if (depthwise) {
        if (in == nullptr || in->size() != group) {
            return freeze(in, fmt::format("the groups of '{}' do not fit", label(id)));
        }
        auto list = std::make_shared<std::vector<Atom>>(count);
        for (std::size_t i = 0; i < count; ++i) {
            (*list)[i] = (*in)[i / (count / group)];
        }
        out = std::move(list);
        groups_.push_back({id, in});
    } else {
        if (in != nullptr) {
            unite_across(in, group);
            const auto first = std::make_shared<std::vector<Atom>>(
                in->begin(), in->begin() + static_cast<std::ptrdiff_t>(in->size() / group));
            if (!demand(id, 1, 1, first)) {
                freeze(in, fmt::format("the weights of '{}' do not fit", label(id)));
            }
        }
        out = fresh(count);
        unite_across(out, group);
    }
    if (!demand(id, 1, 0, out)) {
        return freeze(out, fmt::format("the weights of '{}' do not fit", label(id)));
    }
    sources_.push_back({id, *place, place->axis(0), out, !depthwise});
    made(id, 1, out, 2);
}

void Flow::conv_transpose(OpId id) {
    const auto in = channels(input(id, 0), 1);
    freeze_but(input(id, 0), {1}, fmt::format("'{}' moves along it", label(id)));
    const auto weight = constant_shape(id, 1);
    if (!weight || weight->size() < 3 || op(id).integer("group", 1) != 1) {
        return freeze(in,
                      fmt::format("the weights of '{}' are no constant, or in groups", label(id)));
    }
    if (in != nullptr && !demand(id, 1, 0, in)) {
        freeze(in, fmt::format("the weights of '{}' do not fit", label(id)));
    }
    const auto out = fresh(static_cast<std::size_t>((*weight)[1]));
    const auto place = constant_behind(model_, input(id, 1));
    if (demand(id, 1, 1, out)) {
        sources_.push_back({id, *place, place->axis(1), out, true});
        made(id, 1, out, 2);
    }
}

void Flow::gemm(OpId id) {
    const auto first = input(id, 0);
    freeze_but(first, {1}, fmt::format("it is no channel to '{}'", label(id)));
    const auto in = channels(first, 1);
    const auto weight = constant_shape(id, 1);
    if (!weight || weight->size() != 2 || op(id).integer("transA", 0) != 0) {
        freeze(in, fmt::format("the weights of '{}' are no constant", label(id)));
        return freeze_tensor(input(id, 1), fmt::format("'{}' multiplies by it", label(id)));
    }
    const std::size_t across = op(id).integer("transB", 0) != 0 ? 0 : 1;
    if (in != nullptr && !demand(id, 1, 1 - across, in)) {
        freeze(in, fmt::format("the weights of '{}' do not fit", label(id)));
    }
    const auto out = fresh(static_cast<std::size_t>((*weight)[across]));
    const auto place = constant_behind(model_, input(id, 1));
    if (demand(id, 1, across, out)) {
        sources_.push_back({id, *place, place->axis(across), out, true});
        made(id, 1, out, 2);
    }
}

void Flow::matmul(OpId id) {
    const auto a = input(id, 0);
    const auto b = input(id, 1);
    const auto& first = shape(a);
    const auto& second = shape(b);
    if (!first || !second || first->size() < 2 || second->size() < 2) {
        return freeze_inputs(id, fmt::format("the shapes of '{}' are not known", label(id)));
    }
    const auto rank = shape(output(id))->size();
    const auto place = constant_behind(model_, b);
    const auto inner = channels(a, first->size() - 1);
    const auto other = channels(b, second->size() - 2);
    if (inner != nullptr && other != nullptr) {
        unite(inner, other);
    } else if (inner != nullptr && !demand(id, 1, second->size() - 2, inner)) {
        freeze(inner, fmt::format("'{}' sums over it with '{}', whose places stay", label(id),
                                  graph_.tensor(b).name));
    } else if (other != nullptr && !demand(id, 0, first->size() - 1, other)) {
        freeze(other, fmt::format("'{}' sums over it with '{}', whose places stay", label(id),
                                  graph_.tensor(a).name));
    }
    for (std::size_t axis = 0; axis + 2 < rank; ++axis) {
        same_axis(id, axis, rank, *shape(output(id)));
    }
    give(output(id), rank - 2, channels(a, first->size() - 2));
    if (place && second->size() == 2) {
        const auto out = fresh(static_cast<std::size_t>(second->back()));
        if (demand(id, 1, 1, out)) {
            sources_.push_back({id, *place, place->axis(1), out, true});
            give(output(id), rank - 1, out);
        }
    } else {
        give(output(id), rank - 1, channels(b, second->size() - 1));
    }
}

void Flow::normalize_channels(OpId id) {
    const auto list = channels(input(id, 0), 1);
    freeze_but(input(id, 0), {1}, fmt::format("'{}' works along it", label(id)));
    if (list == nullptr) {
        return;
    }
    for (std::size_t slot = 1; slot < op(id).inputs.size(); ++slot) {
        if (!demand(id, slot, 0, list)) {
            return freeze(
                list, fmt::format("a factor of '{}' is no constant of its channels", label(id)));
        }
    }
    if (op(id).outputs.size() > 1) {
        return freeze(list, fmt::format("'{}' is in training", label(id)));
    }
    give(output(id), 1, list);
}

void Flow::normalize_last(OpId id) {
    const auto& known = shape(input(id, 0));
    const auto from = known ? axis_of(op(id).integer("axis", -1), known->size()) : 0;
    const auto& all = tensors_[index(input(id, 0))];
    for (std::size_t axis = 0; axis < all.size(); ++axis) {
        if (axis >= from || op(id).outputs.size() > 1) {
            freeze(all[axis], fmt::format("'{}' normalises over it", label(id)));
        } else {
            give(output(id), axis, all[axis]);
        }
    }
}

void Flow::softmax(OpId id) {
    const auto& known = shape(input(id, 0));
    const bool old = model_.opset() < 13;
    const auto at = known ? axis_of(op(id).integer("axis", old ? 1 : -1), known->size()) : 0;
    const auto& all = tensors_[index(input(id, 0))];
    for (std::size_t axis = 0; axis < all.size(); ++axis) {
        if (axis == at || (old && axis > at) || !known) {
            freeze(all[axis], fmt::format("'{}' works over it", label(id)));
        } else {
            give(output(id), axis, all[axis]);
        }
    }
}

void Flow::pool(OpId id) {
    freeze_but(input(id, 0), {0, 1}, fmt::format("'{}' moves along it", label(id)));
    for (std::size_t slot = 0; slot < op(id).outputs.size(); ++slot) {
        for (const auto axis : {std::size_t{0}, std::size_t{1}}) {
            // Places of the largest numbers count channels too.
            if (slot > 0 && output(id, slot) != TensorId::none) {
                freeze(channels(input(id, 0), axis), fmt::format("'{}' numbers it", label(id)));
            }
            give(output(id, slot), axis, channels(input(id, 0), axis));
        }
    }
}

void Flow::reduce(OpId id) {
    const auto& known = shape(input(id, 0));
    auto axes = integers(id, 1, "axes");
    const bool computed = input(id, 1) != TensorId::none && !axes;
    if (!known || computed) {
        return freeze_inputs(id, fmt::format("the axes of '{}' are not known", label(id)));
    }
    const bool all = !axes || axes->empty();
    if (all && op(id).integer("noop_with_empty_axes", 0) != 0) {
        return unary(id);
    }
    const bool keeps = op(id).integer("keepdims", 1) != 0;
    std::size_t to = 0;
    for (std::size_t axis = 0; axis < known->size(); ++axis) {
        const bool gone = all || std::any_of(axes->begin(), axes->end(), [&](std::int64_t one) {
                              return axis_of(one, known->size()) == axis;
                          });
        if (gone) {
            freeze(channels(input(id, 0), axis), fmt::format("'{}' works over it", label(id)));
        } else {
            give(output(id), to, channels(input(id, 0), axis));
        }
        to += !gone || keeps ? 1 : 0;
    }
}

}  // namespace trocar::pruning
