#include "mapping/integers.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "util/elements.h"

namespace trocar::mapping {

namespace {

using IntegerKind = IntegerOp::Kind;
using Scales = std::shared_ptr<const Quantization>;

constexpr double most_steps = 127;           // of a weight
constexpr double off_a_step = 0.001;         // that rounding to f32 may leave
constexpr double largest_bias = 1U << 30;    // of 32 bits, with room for sums
constexpr std::size_t worth_storing = 1024;  // elements

std::int64_t zero_point(const Quantization& how) {
    return how.zero_points.empty() ? 0 : how.zero_points[0];
}
Scales scales_of(float scale, std::int64_t zero_point) {
    Quantization made;
    made.scales = {scale};
    made.zero_points = {zero_point};
    return std::make_shared<const Quantization>(std::move(made));
}
bool same_scales(const Quantization& a, const Quantization& b) {
    return a.scales == b.scales && zero_point(a) == zero_point(b);
}

// The smallest step, but not below `least`, of which all these numbers are multiples, up to 127
// times; 0 when all are 0. Small, because a bias is rounded to it.
std::optional<double> step_of(const std::vector<double>& numbers, double least) {
    double most = 0;
    for (const auto number : numbers) {
        most = std::max(most, std::abs(number));
    }
    if (most == 0) {
        return 0.0;
    }
    if (!std::isfinite(most)) {
        return std::nullopt;
    }
    for (double steps = 1; steps <= most_steps; ++steps) {
        const double step = most / steps;
        if (std::all_of(numbers.begin(), numbers.end(), [&](double number) {
                const double times = number / step;
                return std::abs(times - std::round(times)) <= off_a_step;
            })) {
            const double finer = least > 0 ? std::floor(step / least) : most_steps;
            return step / std::clamp(finer, 1.0, std::floor(most_steps / steps));
        }
    }
    return std::nullopt;
}

// Weights as 8-bit integers with a scale for each channel.
struct Weights {
    std::vector<std::int8_t> numbers;
    std::vector<float> scales;
};
// `least`: steps that a channel has at least; empty: any.
std::optional<Weights> integers_of(const Constant& constant, std::size_t axis,
                                   const std::vector<double>& least = {}) {
    if (constant.dtype() != DType::f32 || axis >= constant.shape().size()) {
        return std::nullopt;
    }
    const auto numbers = numbers_of(constant);
    const auto& shape = constant.shape();
    const auto channels = static_cast<std::size_t>(shape[axis]);
    std::size_t inner = 1;
    for (auto i = axis + 1; i < shape.size(); ++i) {
        inner *= static_cast<std::size_t>(shape[i]);
    }
    Weights made;
    made.numbers.resize(numbers.size());
    std::vector<std::vector<double>> of_channel(channels);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        of_channel[i / inner % channels].push_back(numbers[i]);
    }
    std::vector<double> steps(channels, 0);
    for (std::size_t c = 0; c < channels; ++c) {
        const auto step = step_of(of_channel[c], c < least.size() ? least[c] : 0);
        if (!step) {
            return std::nullopt;
        }
        steps[c] = *step;
    }
    // A channel of zeros has the steps of the others.
    const double largest = channels == 0 ? 0 : *std::max_element(steps.begin(), steps.end());
    for (std::size_t c = 0; c < channels; ++c) {
        const double step = steps[c] > 0 ? steps[c] : largest > 0 ? largest : 1;
        made.scales.push_back(static_cast<float>(
            steps[c] > 0 || c >= least.size() ? step : std::max(step, least[c])));
    }
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        made.numbers[i] = static_cast<std::int8_t>(
            std::lround(numbers[i] / static_cast<double>(made.scales[i / inner % channels])));
    }
    return made;
}

class Absorber {
public:
    Absorber(Graph& graph, const Integers& integers, const std::string& activation)
        : graph_(graph), integers_(integers), activation_(activation) {}

    std::size_t run() {
        for (const auto id : graph_.ops()) {
            make_signed(id);
        }
        const auto range = graph_.ops();
        for (const auto id : std::vector<OpId>(range.begin(), range.end())) {
            if (graph_.contains(id)) {  // no op before it took its place
                step(id);
            }
        }
        graph_.remove_unused();
        for (const auto id : graph_.ops()) {
            if (count_ > 0 && rule_of(id) != nullptr && rule_of(id)->weights) {
                store_weights(id, *rule_of(id));
            }
        }
        return count_;
    }

private:
    bool is(OpId id, const std::string& type) const {
        return id != OpId::none && graph_.op(id).type == type && graph_.op(id).domain.empty();
    }

    // 8 bits without sign become 8 bits with one, inside the graph.
    void make_signed(OpId id) {
        if (!is(id, integers_.quantize)) {
            return;
        }
        const auto output = graph_.op(id).outputs[0];
        const auto& tensor = graph_.tensor(output);
        const bool inside =
            std::all_of(tensor.uses.begin(), tensor.uses.end(),
                        [&](const Use& use) { return is(use.op, integers_.dequantize); });
        if (tensor.type.dtype != DType::u8 || !tensor.quantization || tensor.is_output || !inside) {
            return;
        }
        auto how = *tensor.quantization;
        how.zero_points.resize(how.scales.size(), 0);
        for (auto& zero : how.zero_points) {
            zero -= 128;
        }
        auto type = tensor.type;
        type.dtype = DType::i8;
        graph_.set_type(output, type);
        graph_.set_quantization(output, std::make_shared<const Quantization>(std::move(how)));
    }

    // The int8 tensor with one scale that a tensor of real numbers was made of.
    std::optional<TensorId> integers_behind(TensorId real) const {
        if (real == TensorId::none || !is(graph_.tensor(real).producer, integers_.dequantize)) {
            return std::nullopt;
        }
        const auto from = graph_.op(graph_.tensor(real).producer).inputs[0];
        return has_one_scale(from) ? std::optional(from) : std::nullopt;
    }
    bool has_one_scale(TensorId tensor) const {
        const auto& facts = graph_.tensor(tensor);
        return facts.type.dtype == DType::i8 && facts.quantization &&
               facts.quantization->scales.size() == 1;
    }
    const Quantization& scales(TensorId tensor) const {
        return *graph_.tensor(tensor).quantization;
    }

    const IntegerOp* rule_of(OpId id) const {
        const auto& op = graph_.op(id);
        const auto found = std::find_if(integers_.ops.begin(), integers_.ops.end(),
                                        [&](const IntegerOp& one) { return one.type == op.type; });
        return op.domain.empty() && found != integers_.ops.end() ? &*found : nullptr;
    }

    void step(OpId id) {
        if (is(id, integers_.quantize)) {
            requantize(id);
            return;
        }
        const auto& op = graph_.op(id);
        const auto* const rule = rule_of(id);
        if (rule == nullptr || op.outputs.size() != 1 || op.outputs[0] == TensorId::none) {
            return;
        }
        const bool done =
            rule->kind == IntegerKind::same ? passed_on(id, *rule) : computed(id, *rule);
        count_ += done ? 1 : 0;
    }

    // Integers made of integers: the same ones, or others without the way through real numbers.
    void requantize(OpId id) {
        const auto& op = graph_.op(id);
        const auto from = integers_behind(op.inputs[0]);
        const auto output = op.outputs[0];
        if (!from || !has_one_scale(output)) {
            return;
        }
        if (same_scales(scales(*from), scales(output)) && !graph_.tensor(output).is_output) {
            graph_.replace_uses(output, *from);
        } else {
            graph_.set_input(id, 0, *from);
        }
    }

    TensorId like(TensorId real, Scales how) {
        auto type = graph_.tensor(real).type;
        type.dtype = DType::i8;
        const auto made =
            graph_.add_tensor(graph_.fresh_name(graph_.tensor(real).name + "/int8"), type);
        graph_.set_quantization(made, std::move(how));
        return made;
    }

    // The one number that some ops take beside the tensor, as an integer of that tensor.
    bool set_number(OpSpec& made, std::size_t slot, const Quantization& how, TensorId output) {
        const auto& facts = graph_.tensor(made.inputs[slot]);
        if (!facts.constant || facts.constant->element_count() != 1) {
            return false;
        }
        const double number = numbers_of(*facts.constant)[0];
        const double exact =
            number / static_cast<double>(how.scales[0]) + static_cast<double>(zero_point(how));
        const double nearest = std::clamp(std::round(exact), -128.0, 127.0);
        // Less than all others may be the least of them where only the largest counts.
        const auto& uses = graph_.tensor(output).uses;
        const bool least =
            exact < -128 && std::all_of(uses.begin(), uses.end(), [&](const Use& use) {
                const auto* const reader = rule_of(use.op);
                return reader != nullptr && reader->largest;
            });
        if (!least && std::abs(exact - nearest) > off_a_step) {
            return false;
        }
        const std::vector<std::int8_t> integer = {static_cast<std::int8_t>(nearest)};
        made.inputs[slot] =
            graph_.add_constant(graph_.fresh_name(facts.name + "/int8"),
                                Constant::of(DType::i8, facts.constant->shape(), integer));
        graph_.set_quantization(made.inputs[slot], std::make_shared<const Quantization>(how));
        return true;
    }

    // op(dequantised x) becomes dequantised op(x).
    bool passed_on(OpId id, const IntegerOp& rule) {
        const auto& op = graph_.op(id);
        const auto from = op.inputs.empty() ? std::nullopt : integers_behind(op.inputs[0]);
        if (!from || op.text(activation_, "NONE") != "NONE") {
            return false;
        }
        const auto output = op.outputs[0];
        OpSpec made = op;
        made.inputs[0] = *from;
        if (rule.number &&
            !set_number(made, static_cast<std::size_t>(*rule.number), scales(*from), output)) {
            return false;
        }
        const auto inner = like(output, graph_.tensor(*from).quantization);
        made.outputs = {inner};
        OpSpec real;
        real.type = integers_.dequantize;
        real.name = made.name + "/" + real.type;
        real.origin = made.origin;
        real.metadata = made.metadata;
        real.inputs = {inner};
        graph_.insert_before(id, std::move(made));
        graph_.replace(id, std::move(real));
        return true;
    }

    // The op that quantises a tensor, when all its readers do, alike.
    std::optional<OpId> only_quantized(TensorId real) const {
        const auto& tensor = graph_.tensor(real);
        std::optional<OpId> first;
        for (const auto& use : tensor.uses) {
            if (!is(use.op, integers_.quantize) || !has_one_scale(graph_.op(use.op).outputs[0])) {
                return std::nullopt;
            }
            if (first && !same_scales(scales(graph_.op(*first).outputs[0]),
                                      scales(graph_.op(use.op).outputs[0]))) {
                return std::nullopt;
            }
            if (!first || graph_.before(use.op, *first)) {
                first = use.op;
            }
        }
        return tensor.is_output ? std::nullopt : first;
    }

    bool computed(OpId id, const IntegerOp& rule) {
        OpSpec made = graph_.op(id);
        const auto real = made.outputs[0];
        const auto behind = only_quantized(real);
        if (!behind) {
            return false;
        }
        const auto output = graph_.op(*behind).outputs[0];
        std::optional<TensorId> first;  // activation
        for (std::size_t slot = 0; slot < made.inputs.size(); ++slot) {
            const auto is_slot = [&](const std::optional<int>& wanted) {
                return wanted && static_cast<std::size_t>(*wanted) == slot;
            };
            const auto input = made.inputs[slot];
            if (input == TensorId::none || is_slot(rule.weights) || is_slot(rule.bias) ||
                graph_.tensor(input).type.dtype != DType::f32) {
                continue;  // below, or no real numbers
            }
            const auto from = integers_behind(input);
            if (!from) {
                return false;
            }
            made.inputs[slot] = *from;
            first = first ? first : from;
        }
        if (!first || (rule.weights && !set_weights(made, rule, *first))) {
            return false;
        }
        if (rule.kind == IntegerKind::joined) {
            for (auto& input : made.inputs) {
                input = requantized(id, input, graph_.tensor(output).quantization);
            }
        }
        const auto quantize = *behind;
        for (const auto& use : std::vector<Use>(graph_.tensor(real).uses)) {
            if (use.op != quantize) {
                graph_.replace_uses(graph_.op(use.op).outputs[0], output);
            }
        }
        if (rule.kind == IntegerKind::fixed &&
            (scales(output).scales[0] != static_cast<float>(rule.scale) ||
             zero_point(scales(output)) != rule.zero_point)) {
            const auto inner =
                like(real, scales_of(static_cast<float>(rule.scale), rule.zero_point));
            made.outputs = {inner};
            graph_.insert_before(quantize, std::move(made));
            graph_.set_input(quantize, 0, inner);
            return true;
        }
        made.outputs = {};  // those of the op that quantises
        graph_.replace(quantize, std::move(made));
        return true;
    }

    TensorId requantized(OpId before, TensorId integers, const Scales& how) {
        if (same_scales(scales(integers), *how)) {
            return integers;
        }
        OpSpec made;
        made.type = integers_.quantize;
        made.name = graph_.op(before).name + "/" + made.type;
        made.origin = graph_.op(before).origin;
        made.metadata = graph_.op(before).metadata;
        made.inputs = {integers};
        const auto output = like(integers, how);
        made.outputs = {output};
        graph_.insert_before(before, std::move(made));
        return output;
    }

    // An op that computes on real numbers among others that do not: its weights are kept small.
    void store_weights(OpId id, const IntegerOp& rule) {
        const auto slot = static_cast<std::size_t>(*rule.weights);
        const auto& op = graph_.op(id);
        if (slot >= op.inputs.size() || op.inputs[slot] == TensorId::none) {
            return;
        }
        const auto real = op.inputs[slot];
        const auto& weights = graph_.tensor(real);
        if (!weights.constant || weights.is_input || weights.uses.size() != 1 ||
            weights.constant->element_count() < worth_storing) {
            return;
        }
        const auto found = integers_of(*weights.constant, rule.axis);
        if (!found) {
            return;
        }
        OpSpec made;
        made.type = integers_.dequantize;
        made.name = op.name + "/" + made.type;
        made.origin = op.origin;
        made.metadata = op.metadata;
        made.inputs = {add_weights(real, *found, rule.axis)};
        made.outputs = {graph_.add_tensor(graph_.fresh_name(weights.name + "/real"), weights.type)};
        const auto output = made.outputs[0];
        graph_.insert_before(id, std::move(made));
        graph_.set_input(id, slot, output);
    }

    TensorId add_weights(TensorId real, const Weights& weights, std::size_t axis) {
        Quantization how;
        how.scales = weights.scales;
        how.zero_points.assign(how.scales.size(), 0);
        how.axis = static_cast<int>(axis);
        const auto& facts = graph_.tensor(real);
        const auto made =
            graph_.add_constant(graph_.fresh_name(facts.name + "/int8"),
                                Constant::of(DType::i8, facts.constant->shape(), weights.numbers));
        graph_.set_quantization(made, std::make_shared<const Quantization>(std::move(how)));
        return made;
    }

    bool set_weights(OpSpec& made, const IntegerOp& rule, TensorId input) {
        const auto slot = static_cast<std::size_t>(*rule.weights);
        if (slot >= made.inputs.size() || made.inputs[slot] == TensorId::none) {
            return false;
        }
        const auto& weights = graph_.tensor(made.inputs[slot]);
        if (!weights.constant || weights.is_input) {
            return false;
        }
        const double scale = static_cast<double>(scales(input).scales[0]);
        std::optional<TensorId> bias;
        const auto bias_slot =
            rule.bias ? static_cast<std::size_t>(*rule.bias) : made.inputs.size();
        std::vector<double> least;
        if (bias_slot < made.inputs.size() && made.inputs[bias_slot] != TensorId::none &&
            graph_.tensor(made.inputs[bias_slot]).constant) {
            least = numbers_of(*graph_.tensor(made.inputs[bias_slot]).constant);
            for (auto& number : least) {
                number = std::abs(number) / (scale * largest_bias);
            }
        }
        const auto found = integers_of(*weights.constant, rule.axis, least);
        if (!found) {
            return false;
        }
        if (bias_slot < made.inputs.size() && made.inputs[bias_slot] != TensorId::none) {
            bias = integer_bias(made.inputs[bias_slot], scale, found->scales);
            if (!bias) {
                return false;
            }
            made.inputs[bias_slot] = *bias;
        }
        made.inputs[slot] = add_weights(made.inputs[slot], *found, rule.axis);
        return true;
    }

    std::optional<TensorId> integer_bias(TensorId tensor, double scale,
                                         const std::vector<float>& of_weights) {
        const auto& facts = graph_.tensor(tensor);
        if (!facts.constant || facts.is_input || facts.constant->dtype() != DType::f32) {
            return std::nullopt;
        }
        const auto numbers = numbers_of(*facts.constant);
        if (numbers.size() != of_weights.size()) {
            return std::nullopt;
        }
        Quantization how;
        std::vector<std::int32_t> integers;
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            how.scales.push_back(static_cast<float>(scale * static_cast<double>(of_weights[i])));
            const double integer = std::round(numbers[i] / static_cast<double>(how.scales.back()));
            if (!(std::abs(integer) <= 2 * largest_bias - 1)) {
                return std::nullopt;
            }
            integers.push_back(static_cast<std::int32_t>(integer));
        }
        how.zero_points.assign(how.scales.size(), 0);
        const auto made = graph_.add_constant(
            graph_.fresh_name(facts.name + "/int32"),
            Constant::of(DType::i32, {static_cast<std::int64_t>(integers.size())}, integers));
        graph_.set_quantization(made, std::make_shared<const Quantization>(how));
        return made;
    }

    Graph& graph_;
    const Integers& integers_;
    const std::string& activation_;  // attribute
    std::size_t count_ = 0;
};

}  // namespace

std::size_t use_integers(Graph& graph, const RuleFile& rules) {
    return rules.integers.quantize.empty()
               ? 0
               : Absorber(graph, rules.integers, rules.fused.attribute).run();
}

}  // namespace trocar::mapping
