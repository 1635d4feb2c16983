#include "trocar/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "lab/outputs.h"
#include "trocar/error.h"
#include "trocar/statistics.h"

namespace trocar {

namespace {

bool same_value(const Value& a, const Value& b) {
    if (a.kind() != b.kind() || a.dtype() != b.dtype() || a.shape() != b.shape()) {
        return false;
    }
    if (a.is_tensor() && bits(a.dtype()) != 0) {
        const auto x = a.bytes();
        const auto y = b.bytes();
        return x.data() == y.data() || std::equal(x.begin(), x.end(), y.begin(), y.end());
    }
    return a.kind() == Value::Kind::none;
}

// What the default tolerance is for a tensor of the reference.
Tolerance tolerance_of(const Value& a, double length) {
    if (!has_statistics(a)) {
        return {};
    }
    const auto rms = statistics(a, {.spread = StatisticsOptions::Spread::none}).rms;
    return default_tolerance(a.dtype(), length, rms);
}

bool may_be_random(const Graph& graph, const Part& part) {
    static const std::set<std::string, std::less<>> types = {
        "RandomNormal",      "RandomUniform", "RandomNormalLike",
        "RandomUniformLike", "Multinomial",   "Bernoulli"};
    return std::any_of(part.ops.begin(), part.ops.end(), [&](OpId id) {
        const auto& op = graph.op(id);
        return types.contains(op.type) || (op.type == "Dropout" && op.inputs.size() > 2);
    });
}

class Comparer {
public:
    Comparer(const Chain& chain, const std::vector<Part>& parts, std::vector<Side>& sides,
             const CompareOptions& options)
        : chain_(chain), parts_(parts), sides_(sides), options_(options) {
        for (const auto& side : sides) {
            comparison_.sides.push_back(side.label());
        }
        for (std::size_t i = 0; i < parts.size(); ++i) {
            comparison_.layers.push_back(describe_layer(chain, parts[i], i));
        }
    }

    Comparison run(const std::vector<std::vector<NamedValue>>& sets) {
        total_ = sets.size() * parts_.size();
        for (set_ = 0; set_ < sets.size() && !stopped_; ++set_) {
            start(sets[set_]);
            for (std::size_t i = 0; i < parts_.size() && !stopped_; ++i) {
                if (options_.progress) {
                    options_.progress(set_ * parts_.size() + i, total_);
                }
                layer(i);
                forget(parts_[i]);
            }
        }
        comparison_.complete = !stopped_;
        return std::move(comparison_);
    }

private:
    const Graph& graph() const { return chain_.model().graph; }

    void start(const std::vector<NamedValue>& inputs) {
        values_.assign(sides_.size(), std::vector<Value>(graph().tensor_limit()));
        for (const auto id : graph().inputs()) {
            const auto& tensor = graph().tensor(id);
            Value value = tensor.constant ? Value::of(*tensor.constant) : Value();
            for (const auto& input : inputs) {
                if (input.name == tensor.name) {
                    value = fit_optional(input.value, tensor.type);
                }
            }
            for (auto& side : values_) {
                side[index(id)] = value;
            }
        }
        without_.assign(graph().tensor_limit(), false);
        longest_ = 1;
    }

    std::vector<Value> inputs_of(std::size_t side, const Part& part) const {
        std::vector<Value> inputs;
        for (const auto id : part.inputs) {
            inputs.push_back(values_[side][index(id)]);
        }
        return inputs;
    }

    void keep(std::size_t side, const Part& part, const std::vector<Value>& outputs) {
        for (std::size_t i = 0; i < part.outputs.size(); ++i) {
            values_[side][index(part.outputs[i])] = outputs[i];
        }
    }

    void forget(const Part& part) {
        for (auto& side : values_) {
            for (const auto id : part.dead) {
                side[index(id)] = {};
            }
        }
    }

    LayerComparison begin(std::size_t number, std::size_t side, bool cumulative) const {
        LayerComparison result;
        result.layer = number;
        result.side = side;
        result.set = set_;
        result.cumulative = cumulative;
        return result;
    }

    void add(LayerComparison result) {
        judge(result, comparison_.layers[result.layer], options_.judging);
        if (options_.on_result && !options_.on_result(result)) {
            stopped_ = true;
        }
        comparison_.results.push_back(std::move(result));
    }

    // The reference cannot run the layer: nobody can be compared.
    void give_up(std::size_t number, RunEnd end, const std::string& reason) {
        for (const auto id : parts_[number].outputs) {
            without_[index(id)] = true;
        }
        for (std::size_t side = 1; side < sides_.size(); ++side) {
            auto result = begin(number, side, false);
            result.end = end;
            result.reason = fmt::format("the reference: {}", reason);
            add(std::move(result));
        }
    }

    void layer(std::size_t number) {
        const auto& part = parts_[number];
        for (const auto id : part.inputs) {
            if (without_[index(id)]) {
                give_up(number, RunEnd::failed,
                        fmt::format("'{}' has no value", graph().tensor(id).name));
                return;
            }
        }
        const auto inputs = inputs_of(0, part);
        auto golden = sides_[0].run(part, inputs);
        if (golden.end != RunEnd::done) {
            give_up(number, golden.end, golden.reason);
            return;
        }
        bool random = may_be_random(graph(), part) && changes(part, inputs, golden.outputs);
        keep(0, part, golden.outputs);
        std::vector<Type> types;
        for (const auto& output : golden.outputs) {
            types.push_back(type_of(output));
        }
        for (std::size_t side = 1; side < sides_.size() && !stopped_; ++side) {
            compare_side(number, side, inputs, golden, types, random);
        }
    }

    // Does the reference itself give other values the next time?
    bool changes(const Part& part, const std::vector<Value>& inputs,
                 const std::vector<Value>& outputs) {
        const auto again = sides_[0].run(part, inputs);
        return again.end != RunEnd::done ||
               !std::equal(outputs.begin(), outputs.end(), again.outputs.begin(),
                           again.outputs.end(), same_value);
    }

    // What may arrive after several layers, the longest sums of all of them taken into account.
    Tolerance accumulated(const Tolerance& alone, std::size_t number, double length) const {
        const double scale = std::sqrt(longest_ / length * static_cast<double>(number + 1));
        return {.rtol = alone.rtol * scale, .atol = alone.atol * scale};
    }

    void compare_side(std::size_t number, std::size_t side, const std::vector<Value>& inputs,
                      const PartRun& golden, const std::vector<Type>& types, bool& random) {
        const auto& part = parts_[number];
        const auto own = inputs_of(side, part);
        const auto length = reduction_length(chain_, part, inputs);
        longest_ = std::max(longest_, length);
        const bool same_inputs = std::equal(inputs.begin(), inputs.end(), own.begin(), same_value);
        const auto measure = [&](bool cumulative, const PartRun& run) {
            auto result = begin(number, side, cumulative);
            if (run.end == RunEnd::done) {
                result = compare_outputs(chain_, part, inputs, golden.outputs, run.outputs);
                result.layer = number;
                result.side = side;
                result.set = set_;
                result.cumulative = cumulative;
            }
            if (cumulative) {  // errors add up along the way
                for (auto& tensor : result.tensors) {
                    tensor.by_default = accumulated(tensor.by_default, number, length);
                }
            }
            result.end = run.end;
            result.reason = run.reason;
            if (!run.refused.empty()) {
                result.reason += lab::refusal_hint(golden.outputs, run.refused, [&](auto i) {
                    return tolerance_of(golden.outputs[i], length);
                });
            }
            result.seconds = run.seconds;
            result.reference_seconds = golden.seconds;
            if (random) {
                result.tensors.clear();
                result.reason = "the reference gives other values each time: the layer is random";
            }
            return result;
        };
        PartRun alone;
        if (options_.isolated || same_inputs) {
            alone = sides_[side].run(part, inputs, types);
            auto result = measure(false, alone);
            if (options_.isolated) {
                judge(result, comparison_.layers[number], options_.judging);
                if (result.verdict == Verdict::fail && !random &&
                    changes(part, inputs, golden.outputs)) {
                    random = true;
                    result = measure(false, alone);
                }
                if (options_.on_values && alone.end == RunEnd::done) {
                    judge(result, comparison_.layers[number], options_.judging);
                    options_.on_values(result, inputs, golden.outputs, alone.outputs);
                }
                add(std::move(result));
            }
        }
        PartRun chained = same_inputs ? alone : PartRun{};
        if (!same_inputs && options_.cumulative && !random) {
            chained = sides_[side].run(part, own, types);
        }
        if (options_.cumulative) {
            auto result = measure(true, chained);
            add(std::move(result));
        }
        const bool usable = options_.cumulative && chained.end == RunEnd::done && !random &&
                            chained.outputs.size() == part.outputs.size();
        // A side that cannot run a layer goes on with what the reference computed.
        keep(side, part, usable ? chained.outputs : golden.outputs);
    }

    const Chain& chain_;
    const std::vector<Part>& parts_;
    std::vector<Side>& sides_;
    const CompareOptions& options_;
    Comparison comparison_;
    std::vector<std::vector<Value>> values_;  // by side and TensorId
    std::vector<bool> without_;               // by TensorId: the reference has no value
    std::size_t set_ = 0;
    std::size_t total_ = 0;
    double longest_ = 1;  // sum so far
    bool stopped_ = false;
};

}  // namespace

Layer describe_layer(const Chain& chain, const Part& part, std::size_t number) {
    Layer layer;
    layer.number = number;
    layer.name = part.name;
    layer.type = part.type;
    layer.module = part.module;
    for (const auto id : part.ops) {
        layer.ops.push_back(chain.model().graph.describe(id));
    }
    return layer;
}

LayerComparison compare_outputs(const Chain& chain, const Part& part, std::span<const Value> inputs,
                                std::span<const Value> reference, std::span<const Value> found) {
    LayerComparison result;
    const auto length = reduction_length(chain, part, inputs);
    for (std::size_t i = 0; i < part.outputs.size(); ++i) {
        lab::compare_value(result.tensors, chain.model().graph.tensor(part.outputs[i]).name,
                           reference[i], found[i],
                           [&](const Value& a) { return tolerance_of(a, length); });
    }
    return result;
}

Comparison compare(const Chain& chain, const std::vector<Part>& parts, std::vector<Side>& sides,
                   const std::vector<std::vector<NamedValue>>& sets,
                   const CompareOptions& options) {
    if (sides.size() < 2) {
        throw Error(Fault::usage, "a comparison needs two sides");
    }
    return Comparer(chain, parts, sides, options).run(sets);
}

}  // namespace trocar
