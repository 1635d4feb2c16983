#include "ops/survey.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lab/signature.h"
#include "ops/load.h"
#include "trocar/counting.h"
#include "trocar/error.h"
#include "util/sha256.h"
#include "util/text.h"

namespace trocar::ops {

namespace {

// Of weights that are smaller nobody makes sparse kernels.
constexpr std::size_t least_sparse = 1024;
// Blocked layouts of ONNX Runtime: the same ops, under a domain of their own.
constexpr std::string_view blocked_domain = "com.microsoft.nchwc";

double size_of(const Value& value) {
    return value.is_tensor() && value.dtype() != DType::string
               ? static_cast<double>(value.bytes().size())
               : 0;
}

// "half of them zero": how sparse the weights of an op are, in words that few models differ in.
std::string sparsity(const Constant& constant) {
    if (constant.is_sparse() || constant.is_string() || constant.element_count() < least_sparse ||
        bits(constant.dtype()) % 8 != 0) {
        return "";
    }
    const auto bytes = constant.bytes();
    const std::size_t width = bits(constant.dtype()) / 8;
    std::size_t zeros = 0;
    for (std::size_t i = 0; i + width <= bytes.size(); i += width) {
        zeros += std::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(i),
                             bytes.begin() + static_cast<std::ptrdiff_t>(i + width),
                             [](std::byte b) { return b == std::byte{0}; })
                     ? 1
                     : 0;
    }
    const auto share = static_cast<double>(zeros) / static_cast<double>(constant.element_count());
    return share >= 0.9 ? "zeros 90 %" : share >= 0.5 ? "zeros 50 %" : "";
}

void add_shape(std::vector<std::pair<std::string, double>>& numbers, const char* what,
               const Shape& shape) {
    for (std::size_t i = 0; i < shape.size(); ++i) {
        numbers.emplace_back(fmt::format("{}.{}", what, i), static_cast<double>(shape[i]));
    }
}

void add_attributes(std::vector<std::pair<std::string, double>>& numbers, const Op& op) {
    for (const auto& attribute : op.attributes) {
        if (const auto* one = std::get_if<std::int64_t>(&attribute.value)) {
            numbers.emplace_back(attribute.name, static_cast<double>(*one));
        } else if (const auto* list = std::get_if<std::vector<std::int64_t>>(&attribute.value)) {
            for (std::size_t i = 0; i < list->size() && i < 8; ++i) {
                numbers.emplace_back(fmt::format("{}.{}", attribute.name, i),
                                     static_cast<double>((*list)[i]));
            }
        }
    }
}

TensorFacts facts_of(const Value& value) {
    TensorFacts facts;
    facts.dtype = value.dtype();
    if (value.is_tensor()) {
        facts.shape = value.shape();
    }
    return facts;
}

class Describer {
public:
    Describer(const Chain& chain, const Part& part, std::span<const Value> inputs,
              std::span<const Value> outputs)
        : chain_(chain), part_(part), inputs_(inputs), outputs_(outputs) {}

    OpConfig config(View unit) {
        OpConfig config;
        config.unit = unit;
        config.text = lab::signature(chain_, part_, inputs_);
        for (const auto& input : inputs_) {
            config.features.input_bytes += size_of(input);
            names_.push_back(value_text(input));
        }
        for (const auto id : part_.ops) {
            add(config, chain_.model().graph.op(id));
        }
        for (const auto& output : outputs_) {
            config.features.output_bytes += size_of(output);
        }
        if (!inputs_.empty() && inputs_[0].is_tensor()) {
            config.features.dtype = name(inputs_[0].dtype());
            add_shape(config.features.numbers, "in", inputs_[0].shape());
        }
        if (!outputs_.empty() && outputs_[0].is_tensor()) {
            add_shape(config.features.numbers, "out", outputs_[0].shape());
        }
        config.inputs = fmt::format("{}", join(names_, ", "));
        config.text += fmt::format("unit {}\n", unit == View::deployed ? "fused" : "source");
        config.key = sha256_of(config.text).substr(0, 24);
        return config;
    }

private:
    TensorFacts facts(TensorId id) const {
        TensorFacts none;
        none.present = id != TensorId::none;
        if (!none.present) {
            return none;
        }
        if (const auto* constant = chain_.constant(id)) {
            TensorFacts facts;
            facts.constant = constant;
            facts.dtype = constant->dtype();
            facts.shape = constant->shape();
            return facts;
        }
        for (std::size_t i = 0; i < part_.inputs.size() && i < inputs_.size(); ++i) {
            if (part_.inputs[i] == id) {
                return facts_of(inputs_[i]);
            }
        }
        for (std::size_t i = 0; i < part_.outputs.size() && i < outputs_.size(); ++i) {
            if (part_.outputs[i] == id) {
                return facts_of(outputs_[i]);
            }
        }
        return none;
    }

    void add(OpConfig& config, const Op& op) {
        auto& features = config.features;
        Op plain = op;
        const bool blocked = op.domain == blocked_domain;
        if (blocked) {
            plain.domain.clear();
        }
        const auto type = op.type + (blocked ? " (blocked)" : "");
        features.type += (features.type.empty() ? "" : " + ") + type;
        features.attributes += lab::op_text(op) + "\n";
        OpFacts all;
        all.op = &plain;
        all.dialect = chain_.model().dialect;
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            all.inputs.push_back(facts(op.inputs[slot]));
            if (const auto* constant = all.inputs.back().constant) {
                const auto bytes = static_cast<double>(constant->stored_bytes());
                if (bytes > 0 && features.weight_bytes == 0 && constant->shape().size() > 1) {
                    add_shape(features.numbers, "weight", constant->shape());
                }
                features.weight_bytes += bytes;
                names_.push_back(constant->shape().empty()
                                     ? fmt::format("{} scalar", name(constant->dtype()))
                                     : fmt::format("{} {}", name(constant->dtype()),
                                                   join(constant->shape(), "x")));
                if (const auto zeros = sparsity(*constant); !zeros.empty()) {
                    config.text += fmt::format("input {}: {}\n", slot, zeros);
                    features.attributes += zeros + "\n";
                }
            }
        }
        for (const auto output : op.outputs) {
            all.outputs.push_back(facts(output));
        }
        add_attributes(features.numbers, op);
        const auto counted = count(all);
        if (counted.counted == Counted::unknown) {
            config.uncounted = counted.why;
        }
        features.macs += static_cast<double>(counted.macs);
        features.other_flops += static_cast<double>(counted.other_flops);
    }

    const Chain& chain_;
    const Part& part_;
    std::span<const Value> inputs_;
    std::span<const Value> outputs_;
    std::vector<std::string> names_;
};

}  // namespace

Survey::Survey(const Model& model, const std::shared_ptr<Engine>& engine,
               const std::vector<NamedValue>& inputs, View unit,
               const std::map<std::size_t, std::string>& skip,
               const std::function<void(std::size_t)>& doing)
    : engine_(engine), unit_(unit) {
    if (unit == View::deployed) {
        deployed_ = deploy(model, *engine);
    }
    chain_ = std::make_unique<Chain>(unit == View::deployed ? deployed_.model : model);
    parts_ = make_parts(*chain_, {});
    walk(inputs, skip, doing);
}

const std::vector<std::uint64_t>& Survey::memory() const {
    if (!memory_.empty()) {
        return memory_;
    }
    double weights = 0;
    double values = 0;
    for (const auto& found : found_) {
        const auto& features = found.op.config.features;
        weights += static_cast<double>(found.op.count) * features.weight_bytes;
        values = std::max(values, features.input_bytes + features.output_bytes);
    }
    const auto bytes = std::min(weights + values, 2.0 * static_cast<double>(last_cache_bytes()));
    memory_.assign(static_cast<std::size_t>(bytes) / sizeof(std::uint64_t), 1);
    return memory_;
}

CompileOptions Survey::how() const {
    CompileOptions how;
    how.optimize = unit_ == View::deployed ? CompileOptions::Optimize::none
                                           : CompileOptions::Optimize::engine_default;
    return how;
}

Survey::Ready Survey::compile(std::size_t part, const std::vector<Value>& inputs) const {
    return compile(chain_->extract(parts_[part], inputs), part, inputs);
}

Survey::Ready Survey::compile(const Model& model, std::size_t part,
                              const std::vector<Value>& inputs) const {
    Ready ready;
    ready.program = engine_->compile(model, how());
    const auto& graph = chain_->model().graph;
    const auto& ids = parts_[part].inputs;
    for (const auto& wanted : ready.program->input_names()) {
        const auto at = std::find_if(ids.begin(), ids.end(),
                                     [&](TensorId id) { return graph.tensor(id).name == wanted; });
        if (at == ids.end()) {
            throw Error(Fault::unsupported,
                        fmt::format("it wants an input '{}' that it is not given", wanted));
        }
        ready.inputs.push_back(inputs[static_cast<std::size_t>(at - ids.begin())]);
    }
    return ready;
}

void Survey::walk(const std::vector<NamedValue>& inputs,
                  const std::map<std::size_t, std::string>& skip,
                  const std::function<void(std::size_t)>& doing) {
    const auto& graph = chain_->model().graph;
    std::map<TensorId, Value> values;
    for (const auto& input : inputs) {
        if (const auto id = graph.find_tensor(input.name)) {
            values[*id] = input.value;
        }
    }
    std::map<TensorId, std::size_t> makers;
    std::map<std::size_t, std::vector<Value>> fed;  // what parts read whose outputs are alive
    std::map<std::string, std::size_t> known;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        const auto& part = parts_[i];
        Found found;
        found.part = i;
        std::vector<Value> made;
        try {
            for (const auto id : part.inputs) {
                const auto at = values.find(id);
                if (at == values.end()) {
                    throw Error(Fault::engine, fmt::format("its input '{}' was not computed",
                                                           graph.tensor(id).name));
                }
                found.inputs.push_back(at->second);
            }
            if (const auto reason = skip.find(i); reason != skip.end()) {
                throw Error(Fault::engine, reason->second);
            }
            if (doing) {
                doing(i);
            }
            auto ready = compile(i, found.inputs);
            std::vector<Value> outputs(ready.program->output_names().size());
            ready.program->run(ready.inputs, outputs);
            for (const auto id : part.outputs) {
                const auto names = ready.program->output_names();
                const auto at = std::find(names.begin(), names.end(), graph.tensor(id).name);
                made.push_back(at == names.end()
                                   ? Value()
                                   : outputs[static_cast<std::size_t>(at - names.begin())]);
                values[id] = made.back();
                makers[id] = i;
            }
        } catch (const Error& error) {
            found.op.failure = error.what();
        }
        double largest = -1;
        for (std::size_t k = 0; k < found.inputs.size(); ++k) {
            const auto maker = makers.find(part.inputs[k]);
            if (maker != makers.end() && size_of(found.inputs[k]) > largest &&
                fed.contains(maker->second)) {
                largest = size_of(found.inputs[k]);
                found.producer = maker->second;
                found.producer_inputs = fed[maker->second];
            }
        }
        fed[i] = found.inputs;
        found.op.config = Describer(*chain_, part, found.inputs, made).config(unit_);
        const auto [at, fresh] = known.emplace(found.op.config.key, found_.size());
        if (fresh) {
            found_.push_back(std::move(found));
        }
        auto& op = found_[at->second].op;
        ++op.count;
        op.sites.push_back(part.name);
        for (const auto id : part.dead) {
            values.erase(id);
            if (const auto maker = makers.find(id); maker != makers.end()) {
                fed.erase(maker->second);
                makers.erase(maker);
            }
        }
    }
}

}  // namespace trocar::ops
