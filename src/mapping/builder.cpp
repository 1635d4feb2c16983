#include <fmt/format.h>

#include "mapping/evaluate.h"
#include "util/op_label.h"

namespace trocar::mapping {

const Quantization* quantization_of(const Tensor& tensor) {
    const auto* held = tensor.quantization.get();
    return held != nullptr && !held->scales.empty() && is_integer(tensor.type.dtype) ? held
                                                                                     : nullptr;
}

std::string Builder::fresh_name(const std::string& stem) const {
    // Neither a name of the target, nor one that the source's tensors will bring.
    auto name = target_.fresh_name(stem);
    for (int i = 2; source_.find_tensor(name) || target_.find_tensor(name); ++i) {
        name = fmt::format("{}_{}", stem, i);
    }
    return name;
}

std::string Builder::unused(const std::string& stem) {
    auto name = stem;
    for (int i = 2; !op_names_.insert(name).second; ++i) {
        name = fmt::format("{}_{}", stem, i);
    }
    return name;
}

void Builder::rename(OpId op, const std::string& name) {
    if (op_names_.insert(name).second) {
        target_.rename(op, name);
    }
}

TensorId Builder::constant(const Constant& value, const std::string& stem) {
    const auto& name = source_.op(match_->ops.back()).outputs;
    const auto base = name.empty() || name[0] == TensorId::none
                          ? stem
                          : fmt::format("{}/{}", source_.tensor(name[0]).name, stem);
    const auto made = target_.add_constant(fresh_name(base), value);
    constants_.push_back(made);
    return made;
}

std::vector<TensorId> Builder::append(OpSpec spec, std::size_t count) {
    const auto& anchor = source_.op(match_->ops.back());
    const auto base = anchor.outputs.empty() || anchor.outputs[0] == TensorId::none
                          ? anchor.name
                          : source_.tensor(anchor.outputs[0]).name;
    for (std::size_t i = 0; i < count; ++i) {
        spec.outputs.push_back(
            target_.add_tensor(fresh_name(fmt::format("{}/{}", base, spec.type)), {}));
    }
    const auto label = op_label(source_, match_->ops.back());
    spec.name = unused(fmt::format("{}/{}", label, spec.type));
    spec.origin = anchor.origin;
    spec.metadata = {{"source", fmt::format("{} '{}'", anchor.type, label)}};
    const auto outputs = spec.outputs;
    ops_.push_back(target_.append(std::move(spec)));
    return outputs;
}

TensorId Builder::tensor(TensorId source, bool raw) {
    const auto& facts = source_.tensor(source);
    if (!raw && quantization_of(facts) != nullptr) {
        return dequantized(source);
    }
    if (const auto at = made_.find(source); at != made_.end()) {
        return at->second;
    }
    if (!facts.constant) {
        throw Declined{fmt::format("'{}' is not there", facts.name)};
    }
    const auto made = target_.add_constant(
        target_.find_tensor(facts.name) ? fresh_name(facts.name) : facts.name, *facts.constant);
    made_[source] = made;
    sources_.push_back(source);
    return made;
}

TensorId Builder::dequantized(TensorId source) {
    if (const auto at = real_.find(source); at != real_.end()) {
        return at->second;
    }
    if (own_.dequantize.empty()) {
        throw Declined{"these rules do not know quantised tensors"};
    }
    const auto& facts = source_.tensor(source);
    const auto& how = *quantization_of(facts);
    OpSpec spec;
    spec.type = own_.dequantize;
    spec.inputs = {tensor(source, true)};
    add_quantization(spec, facts, how);
    const auto made = append(std::move(spec), 1)[0];
    target_.rename(made, fresh_name(facts.name + "/real"));
    real_[source] = made;
    real_since_.push_back(source);
    return made;
}

TensorId Builder::quantized(TensorId source, TensorId real) {
    if (own_.quantize.empty()) {
        throw Declined{"these rules do not know quantised tensors"};
    }
    const auto& facts = source_.tensor(source);
    OpSpec spec;
    spec.type = own_.quantize;
    spec.inputs = {real};
    add_quantization(spec, facts, *quantization_of(facts));
    return append(std::move(spec), 1)[0];
}

void Builder::add_quantization(OpSpec& spec, const Tensor& tensor, const Quantization& how) {
    const auto one = how.scales.size() == 1;
    const Shape shape = one ? Shape{} : Shape{static_cast<std::int64_t>(how.scales.size())};
    spec.inputs.push_back(constant(Constant::of(DType::f32, shape, how.scales), "scale"));
    auto zeros = how.zero_points;
    zeros.resize(how.scales.size(), 0);
    RuleValue::List items;
    for (const auto zero : zeros) {
        items.emplace_back(zero);
    }
    const auto points =
        constant_of(one ? items[0] : RuleValue::list(std::move(items)), tensor.type.dtype);
    spec.inputs.push_back(constant(points, "zero_point"));
    if (!one) {
        spec.attributes.push_back({"axis", std::int64_t{how.axis}, {}, {}});
    }
}

void Builder::begin(const Match& match) {
    match_ = &match;
    ops_.clear();
    constants_.clear();
    sources_.clear();
    real_since_.clear();
}

void Builder::roll_back() {
    for (auto op = ops_.rbegin(); op != ops_.rend(); ++op) {
        const auto outputs = target_.op(*op).outputs;
        target_.remove(*op);
        for (const auto output : outputs) {
            if (target_.contains(output)) {
                target_.remove_tensor(output);
            }
        }
    }
    for (const auto constant : constants_) {
        target_.remove_tensor(constant);
    }
    for (const auto source : sources_) {
        target_.remove_tensor(made_.at(source));
        made_.erase(source);
    }
    for (const auto source : real_since_) {
        real_.erase(source);
    }
    begin(*match_);
}

}  // namespace trocar::mapping
