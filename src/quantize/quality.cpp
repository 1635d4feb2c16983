#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <optional>

#include "quantize/ops.h"
#include "trocar/error.h"
#include "trocar/quantize.h"
#include "trocar/session.h"
#include "trocar/tool.h"
#include "util/elements.h"
#include "util/op_label.h"
#include "util/take_places.h"

namespace trocar {

namespace {

// Signal against the difference, summed over all inputs.
struct Sums {
    double signal = 0;
    double noise = 0;
    std::string type;

    void add(const Value& a, const Value& b) {
        if (a.dtype() != b.dtype() || !is_float(a.dtype()) || a.shape() != b.shape()) {
            return;
        }
        constexpr std::size_t piece = 4096;
        std::array<double, piece> x{};
        std::array<double, piece> y{};
        const auto count = a.element_count();
        for (std::size_t at = 0; at < count; at += piece) {
            const auto some = std::min(piece, count - at);
            decode(a.dtype(), a.bytes(), at, std::span(x).first(some));
            decode(b.dtype(), b.bytes(), at, std::span(y).first(some));
            for (std::size_t i = 0; i < some; ++i) {
                const double off = y[i] - x[i];
                if (std::isfinite(x[i]) && std::isfinite(off)) {
                    signal += x[i] * x[i];
                    noise += off * off;
                }
            }
        }
    }
    double sqnr_db() const {
        return noise == 0    ? std::numeric_limits<double>::infinity()
               : signal == 0 ? -std::numeric_limits<double>::infinity()
                             : 10 * std::log10(signal / noise);
    }
};

// The place of the largest number, in each row of a batch.
std::vector<std::size_t> choices(const Value& value) {
    const auto numbers = value.as<float>();
    const auto& shape = value.shape();
    const auto rows = shape.size() > 1 ? static_cast<std::size_t>(shape[0]) : std::size_t{1};
    const auto each = numbers.size() / std::max<std::size_t>(rows, 1);
    std::vector<std::size_t> all;
    for (std::size_t row = 0; row < rows && each > 0; ++row) {
        const auto some = numbers.subspan(row * each, each);
        all.push_back(
            static_cast<std::size_t>(std::max_element(some.begin(), some.end()) - some.begin()));
    }
    return all;
}
bool has_choices(const std::vector<NamedValue>& outputs) {
    return !outputs.empty() && outputs[0].value.is_tensor() &&
           outputs[0].value.dtype() == DType::f32;
}

void count_choices(const std::vector<NamedValue>& before, const std::vector<NamedValue>& after,
                   std::int64_t label, Quality& quality) {
    if (!has_choices(before) || !has_choices(after)) {
        return;
    }
    const auto a = choices(before[0].value);
    const auto b = choices(after[0].value);
    if (a.size() != b.size()) {
        return;
    }
    quality.choices += a.size();
    for (std::size_t i = 0; i < a.size(); ++i) {
        quality.agreeing += a[i] == b[i] ? 1 : 0;
    }
    if (label >= 0 && a.size() == 1) {
        ++quality.labelled;
        quality.right_before += a[0] == static_cast<std::size_t>(label) ? 1 : 0;
        quality.right_after += b[0] == static_cast<std::size_t>(label) ? 1 : 0;
    }
}

// Of a tensor, what another model still has of it.
Value remaining(Value value, const std::vector<KeptPlaces>& kept) {
    for (const auto& [axis, places] : kept) {
        auto shape = value.shape();
        if (axis >= shape.size() || places.empty() || places.back() >= shape[axis]) {
            return value;
        }
        const auto bytes = take_places(value.bytes(), value.dtype(), shape, axis, places);
        shape[axis] = static_cast<std::int64_t>(places.size());
        value = Value::copy(value.dtype(), shape, bytes);
    }
    return value;
}

// Compares what ops make with what the same tensors were before.
class Pair {
public:
    Pair(const Model& before, const Model& after, const std::shared_ptr<Engine>& engine,
         const std::shared_ptr<Engine>& engine_after, bool layers, const KeptTensors& kept = {})
        : places_(kept) {
        if (layers) {
            for (const auto id : before.graph.ops()) {
                for (const auto output : before.graph.op(id).outputs) {
                    if (output != TensorId::none &&
                        after.graph.find_tensor(before.graph.tensor(output).name)) {
                        order_.push_back(before.graph.tensor(output).name);
                        sums_[order_.back()].type = before.graph.op(id).type;
                    }
                }
            }
            watch(keep_, [this](const std::string& name, const Value& value) {
                const auto at = places_.find(name);
                kept_[name] = at == places_.end() ? value : remaining(value, at->second);
            });
            watch(compare_, [this](const std::string& name, const Value& value) {
                if (const auto at = kept_.find(name); at != kept_.end()) {
                    sums_[name].add(at->second, value);
                }
            });
        }
        SessionOptions first;
        SessionOptions second;
        if (layers) {
            first.tools = {&keep_};
            second.tools = {&compare_};
        }
        before_ = std::make_unique<Session>(before, engine, first);
        after_ = std::make_unique<Session>(after, engine_after, second);
    }

    // The outputs of both.
    std::pair<std::vector<NamedValue>, std::vector<NamedValue>> run(
        const std::vector<NamedValue>& inputs) {
        kept_.clear();
        auto a = before_->run(inputs);
        auto b = after_->run(inputs);
        for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
            auto& sums = outputs_[a[i].name];
            sums.add(a[i].value, b[i].value);
        }
        return {std::move(a), std::move(b)};
    }

    std::vector<LayerQuality> layers() const {
        std::vector<LayerQuality> all;
        for (const auto& name : order_) {
            const auto& sums = sums_.at(name);
            if (sums.signal > 0 || sums.noise > 0) {
                all.push_back({name, sums.type, sums.sqnr_db()});
            }
        }
        return all;
    }
    std::vector<LayerQuality> outputs() const {
        std::vector<LayerQuality> all;
        for (const auto& [name, sums] : outputs_) {
            all.push_back({name, "", sums.sqnr_db()});
        }
        return all;
    }

private:
    template <class F>
    void watch(Tool& tool, F callback) {
        tool.after(where([this](const Graph& graph, OpId op) {
                       const auto& outputs = graph.op(op).outputs;
                       return std::any_of(outputs.begin(), outputs.end(), [&](TensorId id) {
                           return id != TensorId::none && sums_.contains(graph.tensor(id).name);
                       });
                   }),
                   [this, callback](const Port& port) {
                       const std::lock_guard lock(mutex_);
                       for (std::size_t i = 0; i < port.output_count(); ++i) {
                           const auto id = port.op().outputs[i];
                           if (id != TensorId::none && port.output(i).is_tensor() &&
                               sums_.contains(port.graph().tensor(id).name)) {
                               callback(port.graph().tensor(id).name, port.output(i));
                           }
                       }
                   })
            .outside_bodies();
    }

    KeptTensors places_;
    Tool keep_;
    Tool compare_;
    std::mutex mutex_;
    std::vector<std::string> order_;
    std::map<std::string, Sums> sums_;
    std::map<std::string, Sums> outputs_;
    std::map<std::string, Value> kept_;
    std::unique_ptr<Session> before_;
    std::unique_ptr<Session> after_;
};

}  // namespace

Quality compare_quality(const Model& before, const Model& after,
                        const std::shared_ptr<Engine>& engine, const InputSets& inputs,
                        const Labels& labels, const QualityProgress& progress,
                        const QualityOptions& options) {
    const auto& engine_after = options.engine_after ? options.engine_after : engine;
    std::optional<Pair> pair;
    if (options.layers) {
        pair.emplace(before, after, engine, engine_after, true, options.kept);
    }
    // The decisions are those of the models as they run, with all that the engine fuses.
    Pair plain(before, after, engine, engine_after, false);
    Quality quality;
    std::vector<NamedValue> values;
    for (std::size_t number = 0; inputs(number, values); ++number) {
        if (pair) {
            pair->run(values);
        }
        const auto [a, b] = plain.run(values);
        ++quality.samples;
        count_choices(a, b, labels ? labels(number) : -1, quality);
        if (progress) {
            progress("comparison", number + 1);
        }
    }
    if (pair) {
        quality.layers = pair->layers();
    }
    quality.outputs = plain.outputs();
    return quality;
}

std::vector<Sensitivity> sensitivity(const Model& model, const std::shared_ptr<Engine>& engine,
                                     const InputSets& inputs,
                                     const std::vector<TensorRange>& ranges,
                                     const QuantizeOptions& options,
                                     const QuantizeProgress& progress) {
    const auto folded = quantizing::prepared(model, options.scheme).model;
    std::vector<QuantizedOp> fates;
    std::vector<Sensitivity> all;
    const auto candidates = quantizing::candidates(folded, options, fates);
    for (const auto& one : candidates) {
        const auto wanted = one.op;
        auto alone = options;
        alone.keep = where([wanted](const Graph&, OpId op) { return op != wanted; });
        const auto made = quantize(folded, ranges, alone);
        Pair pair(folded, made.model, engine, engine, false);
        std::vector<NamedValue> values;
        for (std::size_t number = 0; inputs(number, values); ++number) {
            pair.run(values);
        }
        double worst = std::numeric_limits<double>::infinity();
        for (const auto& output : pair.outputs()) {
            worst = std::min(worst, output.sqnr_db);
        }
        all.push_back({op_label(folded.graph, wanted), folded.graph.op(wanted).type, worst});
        if (progress) {
            progress("ops", all.size());
        }
    }
    std::stable_sort(all.begin(), all.end(), [](const Sensitivity& a, const Sensitivity& b) {
        return a.sqnr_db < b.sqnr_db;
    });
    return all;
}

}  // namespace trocar
