#include "trocar/quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "quantize/ops.h"
#include "quantize/ranges.h"
#include "trocar/counting.h"
#include "trocar/error.h"
#include "util/elements.h"
#include "util/op_label.h"

namespace trocar {

namespace {

using quantizing::Affine;
using quantizing::Candidate;
using quantizing::WeightSlot;

// With fewer elements in a block its scale takes more room than they do.
constexpr std::int64_t fewest_in_block = 8;
constexpr double largest_bias = 1U << 30;  // of 32 bits, with room for sums

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
        for (const auto id : graph_.ops()) {
            op_names_.insert(graph_.op(id).name);
        }
    }

    void run() {
        auto all = quantizing::candidates(result_.model, options_, result_.ops);
        const bool static_ranges = options_.scheme == QuantizeScheme::int8;
        if (static_ranges) {
            if (ranges_.empty() && !all.empty()) {
                throw Error(Fault::input, "there is no range for any tensor",
                            "calibrate with the same model and options");
            }
            share_ranges();
            std::erase_if(all, [this](const Candidate& one) { return lacks_range(one); });
        }
        // Ranges are looked up before names change.
        for (const auto& one : all) {
            weights(one);
        }
        if (static_ranges) {
            for (const auto tensor : quantizing::quantized_tensors(graph_, all, options_.outputs)) {
                activation(tensor);
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
    // An op that calibration saw nothing of stays, and says so.
    bool lacks_range(const Candidate& one) {
        for (const auto tensor : quantizing::quantized_tensors(graph_, {one}, options_.outputs)) {
            if (range(tensor) == nullptr) {
                const auto label = op_label(graph_, one.op);
                const auto at =
                    std::find_if(result_.ops.begin(), result_.ops.end(),
                                 [&](const QuantizedOp& op) { return op.name == label; });
                at->quantized = false;
                at->why = fmt::format("no finite f32 was seen of '{}'", graph_.tensor(tensor).name);
                return true;
            }
        }
        return false;
    }
    Affine affine(TensorId id) const {
        const auto* found = range(id);
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
        quantize.name = fresh_op_name(name + "/QuantizeLinear");
        OpSpec dequantize;
        dequantize.type = "DequantizeLinear";
        dequantize.name = fresh_op_name(name + "/DequantizeLinear");
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
        for (const auto& weight : one.weights) {
            const auto id = graph_.op(op).inputs[weight.slot];
            if (options_.scheme == QuantizeScheme::weights_f16 ||
                options_.scheme == QuantizeScheme::weights_bf16) {
                graph_.set_input(op, weight.slot, narrow(op, id));
                continue;
            }
            const bool with_bias = one.bias && options_.scheme == QuantizeScheme::int8;
            const auto step =
                with_bias ? affine(graph_.op(op).inputs[one.activations[0]]).scale : 0.0F;
            const auto bias_id = with_bias ? graph_.op(op).inputs[*one.bias] : TensorId::none;
            const auto how = grid(id, weight, bias_id, step);
            graph_.set_input(op, weight.slot, integers(op, id, how));
            if (with_bias) {
                graph_.set_input(op, *one.bias, bias(op, bias_id, step, how.scales));
            }
        }
    }

    TensorId narrow(OpId reader, TensorId id) {
        auto& made = narrowed_.try_emplace(id, TensorId::none).first->second;
        if (made != TensorId::none) {
            return made;  // another op reads the same weights
        }
        const auto to = options_.scheme == QuantizeScheme::weights_f16 ? DType::f16 : DType::bf16;
        const auto constant = *graph_.tensor(id).constant;
        const auto name = graph_.tensor(id).name;
        const auto stored =
            graph_.add_constant(graph_.fresh_name(name + "/stored"),
                                constant_of_numbers(to, constant.shape(), numbers_of(constant)));
        made = put(reader, "Cast", name, {stored}, {{"to", std::int64_t{1}, {}, {}}});
        share(id, made);
        return made;
    }

    // Engines want names that no other op has.
    std::string fresh_op_name(const std::string& stem) {
        auto name = stem;
        for (int number = 2; !op_names_.insert(name).second; ++number) {
            name = fmt::format("{}_{}", stem, number);
        }
        return name;
    }

    TensorId put(OpId reader, const std::string& type, const std::string& name,
                 std::vector<TensorId> inputs, std::vector<Attribute> attributes) {
        OpSpec spec;
        spec.type = type;
        spec.name = fresh_op_name(name + "/" + type);
        spec.inputs = std::move(inputs);
        spec.attributes = std::move(attributes);
        spec.origin = graph_.op(reader).origin;
        spec.outputs = {graph_.add_tensor(graph_.fresh_name(name + "/real"), {})};
        const auto made = spec.outputs[0];
        graph_.insert_before(reader, std::move(spec));
        return made;
    }

    // Which elements of a weight have one scale: those of a place along `axis`, all, or those of a
    // block along it.
    struct Grid {
        std::size_t axis = 0;
        std::size_t inner = 1;   // elements behind the axis
        std::size_t length = 1;  // of the axis
        std::size_t size = 1;    // places with one scale
        std::size_t groups = 1;
        bool blocks = false;
        std::vector<float> scales = {};

        std::size_t at(std::size_t element) const {
            const auto place = element / inner % length / size;
            return blocks ? (element / inner / length * groups + place) * inner + element % inner
                          : place;
        }
    };

    Grid grid(TensorId id, const WeightSlot& weight, TensorId bias, float step) const {
        const auto& constant = *graph_.tensor(id).constant;
        const auto& shape = constant.shape();
        const auto numbers = numbers_of(constant);
        Grid how;
        const auto summed = shape[static_cast<std::size_t>(weight.summed)];
        how.blocks = options_.scheme == QuantizeScheme::weights_int4 &&
                     summed >= std::min(options_.block, fewest_in_block);
        how.axis = static_cast<std::size_t>(how.blocks ? weight.summed : weight.axis);
        how.inner = element_count(std::span(shape).subspan(how.axis + 1));
        how.length = std::max<std::size_t>(static_cast<std::size_t>(shape[how.axis]), 1);
        how.size = how.blocks ? std::min(static_cast<std::size_t>(options_.block), how.length)
                   : options_.per_channel ? 1
                                          : how.length;
        how.groups = (how.length + how.size - 1) / how.size;
        std::vector<double> most(how.blocks ? numbers.size() / how.length * how.groups : how.groups,
                                 0);
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            auto& held = most[how.at(i)];
            held = std::max(held, std::abs(numbers[i]));
        }
        const auto largest = most.empty() ? 0 : *std::max_element(most.begin(), most.end());
        const auto biases = bias == TensorId::none ? std::vector<double>{}
                                                   : numbers_of(*graph_.tensor(bias).constant);
        for (std::size_t i = 0; i < most.size(); ++i) {
            // A channel of zeros has the steps of the others: its bias is counted in them.
            double scale = (most[i] > 0 ? most[i] : largest) / largest_code();
            for (std::size_t k = 0; k < biases.size(); ++k) {
                if (most.size() == 1 || biases.size() != most.size() || k == i) {
                    scale = std::max(scale, std::abs(biases[k]) / (largest_bias * double{step}));
                }
            }
            how.scales.push_back(static_cast<float>(scale));
            if (!(how.scales.back() >= std::numeric_limits<float>::min())) {
                how.scales.back() = largest > 0 ? std::numeric_limits<float>::min() : 1;
            }
        }
        return how;
    }
    double largest_code() const {
        return options_.scheme == QuantizeScheme::weights_int4
                   ? 7
                   : std::ldexp(1.0, options_.weight_bits - 1) - 1;
    }

    TensorId integers(OpId reader, TensorId id, const Grid& how) {
        const auto key = std::tuple(id, how.axis, how.scales);
        auto& made = integers_.try_emplace(key, TensorId::none).first->second;
        if (made != TensorId::none) {
            return made;  // another op reads the same weights
        }
        const auto name = graph_.tensor(id).name;
        const auto constant = *graph_.tensor(id).constant;
        auto numbers = numbers_of(constant);
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            numbers[i] =
                std::clamp(std::nearbyint(numbers[i] / static_cast<double>(how.scales[how.at(i)])),
                           -largest_code(), largest_code());
        }
        const bool one = how.groups == 1 && !how.blocks && !options_.per_channel;
        auto shape = one ? Shape{} : Shape{static_cast<std::int64_t>(how.scales.size())};
        std::vector<Attribute> attributes;
        if (!one) {
            attributes = {{"axis", static_cast<std::int64_t>(how.axis), {}, {}}};
        }
        if (how.blocks) {
            shape = constant.shape();
            shape[how.axis] = static_cast<std::int64_t>(how.groups);
            attributes.push_back({"block_size", static_cast<std::int64_t>(how.size), {}, {}});
        }
        const auto dtype = options_.scheme == QuantizeScheme::weights_int4 ? DType::i4 : DType::i8;
        const auto codes =
            graph_.add_constant(graph_.fresh_name(name + "/quantized"),
                                constant_of_numbers(dtype, constant.shape(), numbers));
        const auto scale = graph_.add_constant(graph_.fresh_name(name + "/scale"),
                                               Constant::of(DType::f32, shape, how.scales));
        made = put(reader, "DequantizeLinear", name, {codes, scale}, std::move(attributes));
        share(id, made);
        return made;
    }

    // Weights alone: who passes the same ones on to others (a table that is transposed for the last
    // layer) takes the smaller ones too, or both would be stored.
    void share(TensorId weights, TensorId made) {
        for (const auto& use : std::vector<Use>(graph_.tensor(weights).uses)) {
            if (options_.scheme != QuantizeScheme::int8 && use.slot != Use::captured &&
                passing(graph_.op(use.op)) != Passing::no && !options_.keep(graph_, use.op)) {
                graph_.set_input(use.op, use.slot, made);
            }
        }
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
    std::set<std::string> op_names_;
    // What was made of a weight.
    std::map<TensorId, TensorId> narrowed_;
    std::map<std::tuple<TensorId, std::size_t, std::vector<float>>, TensorId> integers_;
};

}  // namespace

Quantized quantize(const Model& model, const std::vector<TensorRange>& ranges,
                   const QuantizeOptions& options) {
    if (options.weight_bits < 2 || options.weight_bits > 8) {
        throw Error(Fault::usage, "a weight has 2 to 8 bits");
    }
    if (options.block < 1) {
        throw Error(Fault::usage, "a block has at least one element");
    }
    auto prepared = quantizing::prepared(model, options.scheme);
    Quantized result;
    result.constant_bytes_before = constant_bytes(prepared.model.graph);
    result.model = std::move(prepared.model);
    result.folded = prepared.folded;
    Quantizer(result, ranges, options).run();
    result.constant_bytes_after = constant_bytes(result.model.graph);
    return result;
}

}  // namespace trocar
