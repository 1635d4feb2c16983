#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "profile/instrument.h"

namespace trocar::profiling {

namespace {

class Layers final : public Instrument {
public:
    Layers(const Model& model, const std::shared_ptr<Engine>& engine,
           const std::vector<NamedValue>& inputs, const Selector& cut)
        : model_(model), inputs_(inputs), session_(model, engine, options_of(cut)) {
        layers_.resize(session_.plan().segments.size());
    }

    double run() override {
        const auto begin = now_ns();
        const auto outputs = session_.run(inputs_, [&](const SegmentRun& run) {
            auto& layer = layers_[run.number];
            const auto spent = static_cast<double>(run.nanoseconds);
            layer.start_ns.push_back(now_ns() - spent - begin);
            layer.spent_ns.push_back(spent);
            if (first_) {
                see(run);
            }
        });
        first_ = false;
        return now_ns() - begin;
    }

    void report(Profile& to) override {
        const auto counts = count_events();
        to.programs = layers_.size();
        to.folded = session_.plan().folded;
        to.resolution_ns = 1;
        for (std::size_t i = 0; i < layers_.size(); ++i) {
            auto& part = to.parts.emplace_back();
            const auto& ops = session_.plan().segments[i].ops;
            describe(model_.graph, ops, part);
            if (ops.size() > 1) {
                part.name = fmt::format("{} … {}", part.name, name_of(ops.back()));
            }
            auto& layer = layers_[i];
            part.cold_ns = layer.spent_ns.front();
            part.total_ns.assign(layer.spent_ns.begin() + 1, layer.spent_ns.end());
            part.self_ns = part.total_ns;
            part.start_ns.assign(layer.start_ns.begin() + 1, layer.start_ns.end());
            part.counts = counts.empty() ? std::nullopt : std::optional(counts[i]);
        }
        count_memory(to);
    }

private:
    struct Layer {
        std::vector<double> start_ns;
        std::vector<double> spent_ns;
    };

    // What the processor counts in each layer, in one more run; empty where it does not. What is
    // done between two layers counts to the second.
    std::vector<Counts> count_events() {
        HardwareCounters counters;
        if (!counters.unavailable().empty()) {
            return {};
        }
        std::vector<Counts> counts(layers_.size());
        Counts before;
        counters.start();
        session_.run(inputs_, [&](const SegmentRun& run) {
            const auto now = counters.read();
            counts[run.number] = {now.cycles - before.cycles,
                                  now.instructions - before.instructions,
                                  now.cache_misses - before.cache_misses};
            before = now;
        });
        return counts;
    }

    static SessionOptions options_of(const Selector& cut) {
        SessionOptions options;
        options.cut = cut;
        return options;
    }

    std::string name_of(OpId id) const {
        const auto& name = model_.graph.op(id).name;
        return name.empty() ? model_.graph.describe(id) : name;
    }

    void see(const SegmentRun& run) {
        for (std::size_t i = 0; i < run.outputs.size(); ++i) {
            sizes_[run.segment.outputs[i]] = bytes_of(type_of(run.outputs[i]));
        }
    }

    std::optional<std::uint64_t> size(TensorId id) const {
        const auto found = sizes_.find(id);
        if (found != sizes_.end()) {
            return found->second;
        }
        for (const auto& input : inputs_) {
            if (input.name == model_.graph.tensor(id).name) {
                return bytes_of(type_of(input.value));
            }
        }
        return std::nullopt;
    }

    std::uint64_t constant_bytes(const Segment& segment) const {
        std::set<const Constant*> counted;
        std::uint64_t bytes = 0;
        for (const auto id : segment.ops) {
            for (const auto input : model_.graph.op(id).inputs) {
                const auto* constant =
                    input == TensorId::none ? nullptr : session_.plan().constants[index(input)];
                if (constant != nullptr && counted.insert(constant).second) {
                    bytes += constant->stored_bytes();
                }
            }
        }
        return bytes;
    }

    void count_memory(Profile& to) const {
        Memory memory;
        for (const auto id : model_.graph.inputs()) {
            memory.hold(size(id).value_or(0));
        }
        for (std::size_t i = 0; i < to.parts.size(); ++i) {
            const auto& segment = session_.plan().segments[i];
            bool known = true;
            const auto sum = [&](const std::vector<TensorId>& tensors) {
                std::uint64_t bytes = 0;
                for (const auto id : tensors) {
                    known = known && size(id).has_value();
                    bytes += size(id).value_or(0);
                }
                return bytes;
            };
            const auto written = sum(segment.outputs);
            const auto read = sum(segment.inputs);
            memory.run(to.parts[i], i, written, sum(segment.dead));
            if (known) {
                to.parts[i].bytes = read + written + constant_bytes(segment);
            }
        }
        memory.report(to);
    }

    const Model& model_;
    const std::vector<NamedValue>& inputs_;
    Session session_;
    std::vector<Layer> layers_;
    std::map<TensorId, std::optional<std::uint64_t>> sizes_;
    bool first_ = true;
};

}  // namespace

std::unique_ptr<Instrument> time_layers(const Model& model, const std::shared_ptr<Engine>& engine,
                                        const std::vector<NamedValue>& inputs,
                                        const Selector& cut) {
    return std::make_unique<Layers>(model, engine, inputs, cut);
}

}  // namespace trocar::profiling
