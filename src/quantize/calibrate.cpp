#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <tuple>

#include "quantize/ops.h"
#include "quantize/ranges.h"
#include "trocar/error.h"
#include "trocar/session.h"
#include "trocar/tool.h"

namespace trocar {

namespace {

using quantizing::Histogram;

// What is seen of a tensor.
struct Seen {
    double low = std::numeric_limits<double>::infinity();
    double high = -std::numeric_limits<double>::infinity();
    std::uint64_t left_out = 0;
    Histogram histogram;
};

class Watcher {
public:
    Watcher(const Model& model, const QuantizeOptions& options) : model_(model) {
        std::vector<QuantizedOp> fates;
        const auto& graph = model.graph;
        for (const auto id : quantizing::quantized_tensors(
                 graph, quantizing::candidates(model, options, fates), options.outputs)) {
            seen_[graph.tensor(id).name];
        }
        tool_
            .after(where([this](const Graph& at, OpId op) {
                       return std::any_of(
                           at.op(op).outputs.begin(), at.op(op).outputs.end(), [&](TensorId id) {
                               return id != TensorId::none && seen_.contains(at.tensor(id).name);
                           });
                   }),
                   [this](const Port& port) {
                       for (std::size_t i = 0; i < port.output_count(); ++i) {
                           const auto id = port.op().outputs[i];
                           if (id != TensorId::none) {
                               look(port.graph().tensor(id).name, port.output(i));
                           }
                       }
                   })
            .outside_bodies();
    }

    void pass(const std::shared_ptr<Engine>& engine, const InputSets& inputs, bool histograms,
              const QuantizeProgress& progress) {
        histograms_ = histograms;
        if (histograms) {
            for (auto& [name, seen] : seen_) {
                seen.histogram = Histogram(std::max(std::abs(seen.low), std::abs(seen.high)));
            }
        }
        SessionOptions options;
        options.tools = {&tool_};
        Session session(model_, engine, options);
        std::vector<NamedValue> values;
        std::size_t number = 0;
        for (; inputs(number, values); ++number) {
            for (const auto& value : values) {
                look(value.name, value.value);
            }
            session.run(values);
            if (progress) {
                progress(histograms ? "distributions" : "ranges", number + 1);
            }
        }
        if (number == 0) {
            throw Error(Fault::input, "there are no inputs to calibrate with");
        }
    }

    const std::map<std::string, Seen>& seen() const { return seen_; }

private:
    void look(const std::string& name, const Value& value) {
        const auto at = seen_.find(name);
        if (at == seen_.end() || !value.is_tensor() || value.dtype() != DType::f32) {
            return;
        }
        const std::lock_guard lock(mutex_);
        auto& seen = at->second;
        const auto numbers = value.as<float>();
        if (histograms_) {
            seen.histogram.add(numbers);
            return;
        }
        for (const float number : numbers) {
            if (std::isfinite(number)) {
                seen.low = std::min(seen.low, static_cast<double>(number));
                seen.high = std::max(seen.high, static_cast<double>(number));
            } else {
                ++seen.left_out;
            }
        }
    }

    const Model& model_;
    Tool tool_;
    std::map<std::string, Seen> seen_;
    std::mutex mutex_;
    bool histograms_ = false;
};

void cut(const Seen& seen, const QuantizeOptions& options, TensorRange& range) {
    if (options.method == RangeMethod::mse) {
        std::tie(range.low, range.high) = seen.histogram.least_error(seen.low, seen.high);
        return;
    }
    const double edge = options.method == RangeMethod::percentile
                            ? seen.histogram.percentile(options.percentile / 100)
                            : seen.histogram.least_divergence(seen.low, seen.high);
    range.low = std::max(range.low, -edge);
    range.high = std::min(range.high, edge);
}

}  // namespace

std::vector<TensorRange> calibrate(const Model& model, const std::shared_ptr<Engine>& engine,
                                   const InputSets& inputs, const QuantizeOptions& options,
                                   const QuantizeProgress& progress) {
    // As it will be quantised: with normalisations in the weights.
    const auto prepared = quantizing::prepared(model, options.scheme);
    Watcher watcher(prepared.model, options);
    watcher.pass(engine, inputs, false, progress);
    const bool histograms = options.method != RangeMethod::min_max;
    if (histograms) {
        watcher.pass(engine, inputs, true, progress);
    }
    std::vector<TensorRange> ranges;
    for (const auto& [name, seen] : watcher.seen()) {
        if (!(seen.low <= seen.high)) {
            continue;  // nothing finite was seen
        }
        TensorRange range{name, seen.low, seen.high, seen.left_out};
        if (histograms) {
            cut(seen, options, range);
        }
        ranges.push_back(std::move(range));
    }
    if (ranges.empty() && !watcher.seen().empty()) {
        throw Error(Fault::input,
                    "no finite number was seen in calibration, so there are no ranges",
                    "look at the data for NaN and infinity: `trocar dump` counts them for each op");
    }
    return ranges;
}

RangeMethod parse_range_method(const std::string& text) {
    if (text == "min-max") {
        return RangeMethod::min_max;
    }
    if (text == "percentile") {
        return RangeMethod::percentile;
    }
    if (text == "entropy") {
        return RangeMethod::entropy;
    }
    if (text == "mse") {
        return RangeMethod::mse;
    }
    throw Error(Fault::usage, fmt::format("'{}' is no way to choose a range", text),
                "one of min-max, percentile, entropy, mse");
}

QuantizeScheme parse_quantize_scheme(const std::string& text) {
    constexpr std::pair<const char*, QuantizeScheme> schemes[] = {
        {"int8", QuantizeScheme::int8},
        {"weights-int8", QuantizeScheme::weights_int8},
        {"weights-int4", QuantizeScheme::weights_int4},
        {"weights-f16", QuantizeScheme::weights_f16},
        {"weights-bf16", QuantizeScheme::weights_bf16}};
    for (const auto& [name, scheme] : schemes) {
        if (text == name) {
            return scheme;
        }
    }
    throw Error(Fault::usage, fmt::format("'{}' is no scheme of quantisation", text),
                "one of int8, weights-int8, weights-int4, weights-f16, weights-bf16");
}

}  // namespace trocar
