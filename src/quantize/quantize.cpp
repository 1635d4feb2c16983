#include "trocar/quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "quantize/ops.h"
#include "quantize/ranges.h"
#include "trocar/error.h"
#include "util/elements.h"

namespace trocar {

namespace {

using quantizing::Affine;
using quantizing::Candidate;

constexpr std::int64_t least_opset = 13;  // scales for each channel
constexpr std::int64_t opset_int4 = 21;   // blocks, and integers of 4 bits

std::uint64_t constant_bytes(const Graph& graph) {
    std::uint64_t all = 0;
    for (const auto id : graph.tensors()) {
        const auto& tensor = graph.tensor(id);
        all += tensor.constant && !tensor.uses.empty() ? tensor.constant->stored_bytes() : 0;
    }
    return all;
}

class Quantizer {
public:
    Quantizer(Quantized& result, const std::vector<TensorRange>& ranges,
              const QuantizeOptions& options)
        : graph_(result.model.graph), result_(result), options_(options) {
        for (const auto& range : ranges) {
            ranges_[range.tensor] = range;
        }
    }

    void run() {
        const auto all = quantizing::candidates(result_.model, options_, result_.ops);
        if (options_.scheme == QuantizeScheme::int8) {
            // Ranges are looked up before names change.
            share_ranges();
            for (const auto& one : all) {
                weights(one);
            }
            for (const auto tensor : quantizing::quantized_tensors(graph_, all)) {
                activation(tensor);
            }
        } else {
            for (const auto& one : all) {
                if (one.weight) {
                    weights(one);
                }
            }
        }
        graph_.remove_unused();
    }

private:
    const TensorRange* range(TensorId id) const {
        const auto at = ranges_.find(graph_.tensor(id).name);
        return at == ranges_.end() ? nullptr : &at->second;
    }
    // Where an op only passes numbers on, both sides have the range of its input.
    void share_ranges() {
        for (const auto id : graph_.ops()) {
            const auto& op = graph_.op(id);
            if (quantizing::passes_numbers_on(op) && !op.outputs.empty()) {
                const auto from = ranges_.find(graph_.tensor(op.inputs[0]).name);
                const auto& to = graph_.tensor(op.outputs[0]).name;
                if (from != ranges_.end() && ranges_.contains(to)) {
                    ranges_[to] = {to, from->second.low, from->second.high};
                }
            }
        }
    }
    Affine affine(TensorId id) const {
        const auto* found = range(id);
        if (found == nullptr) {
            throw Error(
                Fault::input,
                fmt::format("there is no range for the tensor '{}'", graph_.tensor(id).name),
                "calibrate with the same model and options");
        }
        return quantizing::affine_int8(found->low, found->high);
    }

    TensorId scalar(const std::string& stem, const Constant& value) {
        return graph_.add_constant(graph_.fresh_name(stem), value);
    }

    // All readers of a tensor read what is left of it in 8 bits.
    void activation(TensorId id) {
        const auto how = affine(id);
        const auto name = graph_.tensor(id).name;
        const auto scale =
            scalar(name + "/scale", Constant::of(DType::f32, {}, std::vector<float>{how.scale}));
        const auto zero = scalar(
            name + "/zero_point",
            Constant::of(DType::i8, {},
                         std::vector<std::int8_t>{static_cast<std::int8_t>(how.zero_point)}));
        OpSpec quantize;
        quantize.type = "QuantizeLinear";
        quantize.name = name + "/QuantizeLinear";
        OpSpec dequantize;
        dequantize.type = "DequantizeLinear";
        dequantize.name = name + "/DequantizeLinear";
        // `insert_on` puts the tensor first.
        const auto first = graph_.insert_on(id, std::move(quantize));
        graph_.set_input(first, 1, scale);
        graph_.set_input(first, 2, zero);
        const auto codes = graph_.op(first).outputs[0];
        graph_.set_type(codes, with_dtype(graph_.tensor(id).type, DType::i8));
        const auto second = graph_.insert_on(codes, std::move(dequantize));
        graph_.set_input(second, 1, scale);
        graph_.set_input(second, 2, zero);
        graph_.set_type(graph_.op(second).outputs[0], graph_.tensor(id).type);
    }
    static Type with_dtype(Type type, DType dtype) {
        type.dtype = dtype;
        return type;
    }

    void weights(const Candidate& one) {
        const auto op = one.op;
        if (!one.weight) {
            return;
        }
        const auto slot = *one.weight;
        const auto id = graph_.op(op).inputs[slot];
        if (options_.scheme == QuantizeScheme::weights_f16 ||
            options_.scheme == QuantizeScheme::weights_bf16) {
            graph_.set_input(op, slot, narrow(op, id));
            return;
        }
        std::vector<float> scales;
        graph_.set_input(op, slot, integers(op, id, one.axis, scales));
        if (one.bias && options_.scheme == QuantizeScheme::int8) {
            const auto input = affine(graph_.op(op).inputs[one.activations[0]]);
            graph_.set_input(op, *one.bias,
                             bias(op, graph_.op(op).inputs[*one.bias], input.scale, scales));
        }
    }

    TensorId narrow(OpId reader, TensorId id) {
        const auto to = options_.scheme == QuantizeScheme::weights_f16 ? DType::f16 : DType::bf16;
        const auto constant = *graph_.tensor(id).constant;
        const auto name = graph_.tensor(id).name;
        const auto stored =
            graph_.add_constant(graph_.fresh_name(name + "/stored"),
                                constant_of_numbers(to, constant.shape(), numbers_of(constant)));
        return put(reader, "Cast", name, {stored}, {{"to", std::int64_t{1}, {}, {}}});
    }

    TensorId put(OpId reader, const std::string& type, const std::string& name,
                 std::vector<TensorId> inputs, std::vector<Attribute> attributes) {
        OpSpec spec;
        spec.type = type;
        spec.name = name + "/" + type;
        spec.inputs = std::move(inputs);
        spec.attributes = std::move(attributes);
        spec.origin = graph_.op(reader).origin;
        spec.outputs = {graph_.add_tensor(graph_.fresh_name(name + "/real"), {})};
        const auto made = spec.outputs[0];
        graph_.insert_before(reader, std::move(spec));
        return made;
    }

    // Integers with a scale for each place along `axis` (or for all of it, or for each block).
    TensorId integers(OpId reader, TensorId id, std::int64_t axis, std::vector<float>& scales) {
        const auto name = graph_.tensor(id).name;
        const auto constant = *graph_.tensor(id).constant;
        const auto& shape = constant.shape();
        auto numbers = numbers_of(constant);
        const bool blocks = options_.scheme == QuantizeScheme::weights_int4;
        const auto along = static_cast<std::size_t>(axis);
        // Blocks lie along the other one of the first two axes.
        const auto blocked = blocks ? (along == 0 ? std::size_t{1} : along - 1) : along;
        std::size_t inner = 1;
        for (std::size_t i = blocked + 1; i < shape.size(); ++i) {
            inner *= static_cast<std::size_t>(shape[i]);
        }
        const auto length = static_cast<std::size_t>(shape[blocked]);
        const auto size = blocks                 ? static_cast<std::size_t>(options_.block)
                          : options_.per_channel ? std::size_t{1}
                                                 : length;
        const double largest_code = blocks ? 7 : std::ldexp(1.0, options_.weight_bits - 1) - 1;
        const auto groups = (length + size - 1) / size;
        // Scales have the shape of the weights with `blocked` shortened, or a row of the axis
        // alone.
        const auto scale_at = [&](std::size_t i) {
            const auto place = i / inner % length / size;
            return blocks ? (i / inner / length * groups + place) * inner + i % inner : place;
        };
        const auto count =
            blocks ? numbers.size() / std::max<std::size_t>(length, 1) * groups : groups;
        std::vector<double> most(count, 0);
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            auto& held = most[scale_at(i)];
            held = std::max(held, std::abs(numbers[i]));
        }
        scales.assign(count, 1);
        for (std::size_t i = 0; i < count; ++i) {
            const auto scale = static_cast<float>(most[i] / largest_code);
            scales[i] = scale > 0 ? scale : 1;
        }
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            numbers[i] =
                std::clamp(std::nearbyint(numbers[i] / static_cast<double>(scales[scale_at(i)])),
                           -largest_code, largest_code);
        }
        const auto dtype = blocks ? DType::i4 : DType::i8;
        Shape scale_shape{static_cast<std::int64_t>(count)};
        std::vector<Attribute> attributes;
        if (blocks) {
            scale_shape = shape;
            scale_shape[blocked] = static_cast<std::int64_t>(groups);
            attributes = {{"axis", static_cast<std::int64_t>(blocked), {}, {}},
                          {"block_size", static_cast<std::int64_t>(size), {}, {}}};
        } else if (options_.per_channel) {
            attributes = {{"axis", axis, {}, {}}};
        } else {
            scale_shape = {};
        }
        const auto codes = graph_.add_constant(graph_.fresh_name(name + "/quantized"),
                                               constant_of_numbers(dtype, shape, numbers));
        const auto scale = graph_.add_constant(graph_.fresh_name(name + "/scale"),
                                               Constant::of(DType::f32, scale_shape, scales));
        return put(reader, "DequantizeLinear", name, {codes, scale}, std::move(attributes));
    }

    // 32 bits, in steps of the products of input and weight.
    TensorId bias(OpId reader, TensorId id, float input, const std::vector<float>& weights) {
        const auto name = graph_.tensor(id).name;
        const auto constant = *graph_.tensor(id).constant;
        const auto numbers = numbers_of(constant);
        std::vector<float> scales(weights.size());
        for (std::size_t i = 0; i < scales.size(); ++i) {
            scales[i] = input * weights[i];
        }
        if (scales.size() != 1 && scales.size() != numbers.size()) {
            return id;  // broadcast: it stays as it is
        }
        std::vector<std::int32_t> codes(numbers.size());
        for (std::size_t i = 0; i < codes.size(); ++i) {
            const double step = static_cast<double>(scales[scales.size() == 1 ? 0 : i]);
            codes[i] = static_cast<std::int32_t>(
                std::clamp(std::nearbyint(numbers[i] / step), -2147483648.0, 2147483647.0));
        }
        const bool rows = scales.size() > 1 || constant.shape().size() == 1;
        if (rows && scales.size() == 1) {
            scales.assign(numbers.size(), scales[0]);
        }
        const auto stored = graph_.add_constant(graph_.fresh_name(name + "/quantized"),
                                                Constant::of(DType::i32, constant.shape(), codes));
        const auto scale = graph_.add_constant(
            graph_.fresh_name(name + "/scale"),
            Constant::of(DType::f32,
                         rows ? Shape{static_cast<std::int64_t>(scales.size())} : Shape{}, scales));
        std::vector<Attribute> attributes;
        if (rows) {
            attributes = {{"axis", static_cast<std::int64_t>(constant.shape().size()) - 1, {}, {}}};
        }
        return put(reader, "DequantizeLinear", name, {stored, scale}, std::move(attributes));
    }

    Graph& graph_;
    Quantized& result_;
    const QuantizeOptions& options_;
    std::map<std::string, TensorRange> ranges_;
};

}  // namespace

Quantized quantize(const Model& model, const std::vector<TensorRange>& ranges,
                   const QuantizeOptions& options) {
    if (model.dialect != "onnx") {
        throw Error(Fault::unsupported,
                    fmt::format("models of the dialect '{}' cannot be quantised", model.dialect),
                    "`trocar convert` maps it to onnx");
    }
    if (options.weight_bits < 2 || options.weight_bits > 8) {
        throw Error(Fault::usage, "a weight has 2 to 8 bits");
    }
    if (options.block < 1) {
        throw Error(Fault::usage, "a block has at least one element");
    }
    Quantized result;
    result.model = clone(model);
    const auto wanted = options.scheme == QuantizeScheme::weights_int4 ? opset_int4 : least_opset;
    if (result.model.opset() < wanted) {
        throw Error(Fault::unsupported,
                    fmt::format("the model is of opset {}; this wants {} or newer",
                                result.model.opset(), wanted),
                    "export it again with a newer opset");
    }
    result.folded = fold_batch_norms(result.model);
    result.constant_bytes_before = constant_bytes(result.model.graph);
    Quantizer(result, ranges, options).run();
    result.constant_bytes_after = constant_bytes(result.model.graph);
    return result;
}

}  // namespace trocar
