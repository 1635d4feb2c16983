#include <fmt/format.h>

#include <cmath>

#include "quantize/ops.h"
#include "quantize/opset.h"
#include "trocar/error.h"
#include "trocar/quantize.h"
#include "util/elements.h"

namespace trocar {

namespace {

std::optional<std::vector<double>> numbers(const Graph& graph, TensorId id) {
    if (id == TensorId::none || !graph.tensor(id).constant || graph.tensor(id).is_input) {
        return std::nullopt;
    }
    const auto& constant = *graph.tensor(id).constant;
    if (constant.is_sparse() || constant.dtype() != DType::f32) {
        return std::nullopt;
    }
    return numbers_of(constant);
}

TensorId constant(Graph& graph, const std::string& stem, const Shape& shape,
                  const std::vector<double>& all) {
    const std::vector<float> narrow(all.begin(), all.end());
    return graph.add_constant(graph.fresh_name(stem), Constant::of(DType::f32, shape, narrow));
}

bool fold(Graph& graph, OpId id) {
    const auto& norm = graph.op(id);
    if (norm.type != "BatchNormalization" || !norm.domain.empty() || norm.inputs.size() < 5 ||
        norm.integer("training_mode", 0) != 0) {
        return false;
    }
    const auto between = norm.inputs[0];
    const auto& tensor = graph.tensor(between);
    if (tensor.producer == OpId::none || tensor.uses.size() != 1 || tensor.is_output) {
        return false;
    }
    const auto producer = tensor.producer;
    const auto& conv = graph.op(producer);
    if (conv.type != "Conv" || !conv.domain.empty() || conv.inputs.size() < 2) {
        return false;
    }
    const auto weights = numbers(graph, conv.inputs[1]);
    const auto scale = numbers(graph, norm.inputs[1]);
    const auto shift = numbers(graph, norm.inputs[2]);
    const auto mean = numbers(graph, norm.inputs[3]);
    const auto variance = numbers(graph, norm.inputs[4]);
    const bool has_bias = conv.inputs.size() > 2 && conv.inputs[2] != TensorId::none;
    auto bias = has_bias ? numbers(graph, conv.inputs[2]) : std::vector<double>{};
    if (!weights || !scale || !shift || !mean || !variance || !bias) {
        return false;
    }
    const auto shape = graph.tensor(conv.inputs[1]).constant->shape();
    const auto channels = static_cast<std::size_t>(shape[0]);
    bias->resize(channels, 0);
    if (scale->size() != channels || shift->size() != channels || mean->size() != channels ||
        variance->size() != channels || channels == 0) {
        return false;
    }
    double epsilon = 1e-5;
    if (const auto* attribute = norm.attribute("epsilon")) {
        if (const auto* given = std::get_if<float>(&attribute->value)) {
            epsilon = static_cast<double>(*given);
        }
    }
    auto made = *weights;
    const auto each = made.size() / channels;
    for (std::size_t c = 0; c < channels; ++c) {
        const double factor = (*scale)[c] / std::sqrt((*variance)[c] + epsilon);
        for (std::size_t i = 0; i < each; ++i) {
            made[c * each + i] *= factor;
        }
        (*bias)[c] = ((*bias)[c] - (*mean)[c]) * factor + (*shift)[c];
    }
    const auto stem = graph.tensor(conv.inputs[1]).name;
    graph.set_input(producer, 1, constant(graph, stem + "/folded", shape, made));
    graph.set_input(producer, 2, constant(graph, stem + "/folded_bias", {shape[0]}, *bias));
    // The convolution takes the place of the two: what is read keeps its name.
    OpSpec spec = static_cast<const OpSpec&>(graph.op(producer));
    spec.outputs.clear();
    graph.replace(id, std::move(spec));
    graph.remove_unused();
    return true;
}

// Constants that an op writes, or passes on as they are, become constants of the graph.
void hoist_constants(Graph& graph) {
    for (auto id = graph.first(); id != OpId::none;) {
        const auto next = graph.next(id);
        const auto& op = graph.op(id);
        const bool fits = op.domain.empty() && op.outputs.size() == 1 &&
                          op.outputs[0] != TensorId::none && !graph.tensor(op.outputs[0]).is_output;
        const auto* value = fits && op.type == "Constant" ? op.attribute("value") : nullptr;
        const auto* given = value == nullptr ? nullptr : std::get_if<Constant>(&value->value);
        if (given != nullptr && given->dtype() == DType::f32) {
            const auto name = graph.tensor(op.outputs[0]).name;
            const auto made = graph.add_constant(graph.fresh_name(name), *given);
            graph.remove(id, {{op.outputs[0], made}});
            if (!graph.find_tensor(name)) {
                graph.rename(made, name);
            }
        } else if (fits && op.type == "Identity" && numbers(graph, op.inputs[0])) {
            graph.remove(id, {{op.outputs[0], op.inputs[0]}});
        }
        id = next;
    }
}

}  // namespace

quantizing::Prepared quantizing::prepared(const Model& model, QuantizeScheme scheme) {
    constexpr std::int64_t scales_for_channels = 13;
    constexpr std::int64_t integers_of_4_bits = 21;
    if (model.dialect != "onnx") {
        throw Error(Fault::unsupported,
                    fmt::format("models of the dialect '{}' cannot be quantised", model.dialect),
                    "`trocar convert` maps it to onnx");
    }
    Prepared made;
    made.model = clone(model);
    raise_opset(made.model,
                scheme == QuantizeScheme::weights_int4 ? integers_of_4_bits : scales_for_channels);
    hoist_constants(made.model.graph);
    made.folded = fold_batch_norms(made.model);
    return made;
}

std::size_t fold_batch_norms(Model& model) {
    std::size_t count = 0;
    auto& graph = model.graph;
    for (auto id = graph.first(); id != OpId::none;) {
        const auto next = graph.next(id);
        count += fold(graph, id) ? 1 : 0;
        id = next;
    }
    return count;
}

}  // namespace trocar
