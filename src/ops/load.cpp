#include "ops/load.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "trocar/error.h"
#include "util/clock.h"
#include "util/samples.h"

namespace trocar::ops {

namespace {

constexpr std::size_t most_copies = 512;   // of inputs
constexpr std::size_t most_programs = 48;  // of an op with weights of its own
constexpr std::size_t fewest_layers = 8;
// An op that takes less than this is run so often in one program that calling it weighs little.
constexpr double small_ns = 20e3;
constexpr std::size_t small_copies = 16;
constexpr std::size_t most_layers = 64;

void call(Survey::Ready& ready, const std::vector<Value>& inputs) {
    // New every time: the engine gives outputs memory of its own, as it does inside a model.
    std::vector<Value> outputs(ready.program->output_names().size());
    ready.program->run(inputs, outputs);
}

std::size_t port_count(const Survey::Ready& ready) {
    return ready.program->input_names().size() + ready.program->output_names().size();
}

std::vector<Value> copies(const std::vector<Value>& values) {
    std::vector<Value> made;
    for (const auto& value : values) {
        made.push_back(value.is_tensor() && value.dtype() != DType::string
                           ? Value::copy(value.dtype(), value.shape(), value.bytes())
                           : value);
    }
    return made;
}

std::size_t bytes_of(const std::vector<Value>& values) {
    std::size_t bytes = 0;
    for (const auto& value : values) {
        bytes += value.is_tensor() && value.dtype() != DType::string ? value.bytes().size() : 0;
    }
    return bytes;
}

// So many that they do not fit into the last cache together, by a good margin.
std::size_t ring_size(std::size_t bytes_each, std::size_t most) {
    return std::clamp<std::size_t>(
        2 * last_cache_bytes() / std::max<std::size_t>(bytes_each, 1) + 1, 2, most);
}

class Reuse : public Load {
public:
    explicit Reuse(Survey::Ready ready) : ready_(std::move(ready)) {}
    double run(std::uint64_t calls) override {
        const auto start = now_ns();
        for (std::uint64_t i = 0; i < calls; ++i) {
            call(ready_, ready_.inputs);
        }
        return now_ns() - start;
    }
    std::size_t ports() const override { return port_count(ready_); }

protected:
    Survey::Ready ready_;
};

class Ring : public Load {
public:
    explicit Ring(std::vector<Survey::Ready> programs, std::size_t sets)
        : programs_(std::move(programs)) {
        const auto first = programs_.front().inputs;
        for (std::size_t i = 0; i < sets; ++i) {
            inputs_.push_back(copies(first));
        }
    }
    double run(std::uint64_t calls) override {
        const auto start = now_ns();
        for (std::uint64_t i = 0; i < calls; ++i) {
            call(programs_[at_ % programs_.size()], inputs_[at_ % inputs_.size()]);
            ++at_;
        }
        return now_ns() - start;
    }
    std::size_t ports() const override { return port_count(programs_.front()); }

private:
    std::vector<Survey::Ready> programs_;
    std::vector<std::vector<Value>> inputs_;
    std::size_t at_ = 0;
};

class Cold : public Reuse {
public:
    explicit Cold(Survey::Ready ready) : Reuse(std::move(ready)), other_(2 * last_cache_bytes()) {}
    double run(std::uint64_t calls) override {
        double spent = 0;
        for (std::uint64_t i = 0; i < calls; ++i) {
            std::memset(other_.data(), static_cast<int>(++fill_ & 0x7fU), other_.size());
            const auto start = now_ns();
            call(ready_, ready_.inputs);
            spent += now_ns() - start;
        }
        return spent;
    }

private:
    std::vector<unsigned char> other_;
    unsigned fill_ = 0;
};

// The op that makes its input.
struct Producer {
    Survey::Ready ready;
    // For each input of the op, the output of the producer that it is; or none.
    std::vector<std::size_t> fed;

    void feed(std::vector<Value>& inputs) {
        std::vector<Value> made(ready.program->output_names().size());
        ready.program->run(ready.inputs, made);
        for (std::size_t k = 0; k < fed.size(); ++k) {
            if (fed[k] != Found::none) {
                inputs[k] = made[fed[k]];
            }
        }
    }
};

class InSitu : public Reuse {
public:
    // `rest`: what the ops between two calls read and write.
    InSitu(Survey::Ready ready, std::optional<Producer> producer,
           const std::vector<std::uint64_t>& rest)
        : Reuse(std::move(ready)), producer_(std::move(producer)), rest_(rest) {}
    double run(std::uint64_t calls) override {
        double spent = 0;
        auto inputs = ready_.inputs;
        for (std::uint64_t i = 0; i < calls; ++i) {
            constexpr std::size_t words_of_line = 8;
            std::uint64_t sum = 0;
            for (std::size_t k = 0; k < rest_.size(); k += words_of_line) {
                sum += rest_[k];
            }
            read_ = sum;
            if (producer_) {
                producer_->feed(inputs);
            }
            const auto start = now_ns();
            call(ready_, inputs);
            spent += now_ns() - start;
        }
        return spent;
    }

private:
    std::optional<Producer> producer_;
    const std::vector<std::uint64_t>& rest_;
    volatile std::uint64_t read_ = 0;  // so that it is read
};

class Layers : public Reuse {
public:
    Layers(Survey::Ready ready, std::size_t layers) : Reuse(std::move(ready)), layers_(layers) {}
    std::uint64_t operators() const override { return layers_; }

private:
    std::size_t layers_;
};

// Constants with memory of their own, so that none is shared with another copy.
void own_constants(Model& model) {
    for (const auto id : model.graph.tensors()) {
        const auto& constant = model.graph.tensor(id).constant;
        if (constant && !constant->is_sparse() && !constant->is_string()) {
            model.graph.set_constant(
                id, Constant::copy(constant->dtype(), constant->shape(), constant->bytes()));
        }
    }
}

std::unique_ptr<Load> streamed_weights(const Survey& survey, const Found& found) {
    const auto weights = static_cast<std::size_t>(found.op.config.features.weight_bytes);
    if (weights == 0) {
        throw Error(Fault::unsupported, "it has no weights to stream");
    }
    std::vector<Survey::Ready> programs;
    const auto count = ring_size(weights, most_programs);
    for (std::size_t i = 0; i < count; ++i) {
        auto model = survey.chain().extract(survey.parts()[found.part], found.inputs);
        own_constants(model);
        programs.push_back(survey.compile(model, found.part, found.inputs));
    }
    return std::make_unique<Ring>(std::move(programs),
                                  ring_size(bytes_of(found.inputs), most_copies));
}

std::unique_ptr<Load> chained(const Survey& survey, const Found& found) {
    const auto& part = survey.parts()[found.part];
    if (part.ops.size() != 1 || found.inputs.empty() || part.outputs.size() != 1 ||
        !found.inputs[0].is_tensor()) {
        throw Error(Fault::unsupported, "only an op with one output can be put behind itself");
    }
    auto model = survey.chain().extract(part, found.inputs);
    auto& graph = model.graph;
    const auto& original = graph.op(graph.first());
    const OpSpec spec = original;
    const auto& first = survey.chain().model().graph.tensor(part.inputs[0]).name;
    const auto input = graph.find_tensor(first);
    const auto slot =
        std::find(spec.inputs.begin(), spec.inputs.end(), input.value_or(TensorId::none)) -
        spec.inputs.begin();
    if (!input || slot == static_cast<std::ptrdiff_t>(spec.inputs.size()) ||
        graph.op_count() != 1) {
        throw Error(Fault::unsupported, "its input cannot be replaced by its output");
    }
    // What it gives has to be what it takes: only a run tells.
    auto alone = survey.compile(found.part, found.inputs);
    std::vector<Value> outputs(alone.program->output_names().size());
    alone.program->run(alone.inputs, outputs);
    if (!outputs[0].is_tensor() || outputs[0].dtype() != found.inputs[0].dtype() ||
        outputs[0].shape() != found.inputs[0].shape()) {
        throw Error(Fault::unsupported, "its output is not of the shape of its input");
    }
    const auto weights = static_cast<std::size_t>(found.op.config.features.weight_bytes);
    const auto layers =
        weights == 0 ? fewest_layers
                     : std::clamp(2 * last_cache_bytes() / weights, fewest_layers, most_layers);
    auto last = spec.outputs[0];
    const auto type = graph.tensor(last).type;
    for (std::size_t layer = 1; layer < layers; ++layer) {
        auto next = spec;
        next.name += fmt::format("_{}", layer);
        for (auto& one : next.inputs) {
            if (one == TensorId::none) {
                continue;
            }
            const auto constant = graph.tensor(one).constant;
            if (one == *input) {
                one = last;
            } else if (constant && !constant->is_sparse() && !constant->is_string()) {
                one = graph.add_constant(
                    "", Constant::copy(constant->dtype(), constant->shape(), constant->bytes()));
            }
        }
        next.outputs = {graph.add_tensor("", type)};
        last = next.outputs[0];
        graph.append(std::move(next));
    }
    graph.set_outputs({last});
    return std::make_unique<Layers>(survey.compile(model, found.part, found.inputs), layers);
}

// The op many times beside each other in one program, all reading the same.
std::unique_ptr<Load> reused(const Survey& survey, const Found& found) {
    auto alone = std::make_unique<Reuse>(survey.compile(found.part, found.inputs));
    alone->run(4);
    const auto& part = survey.parts()[found.part];
    if (alone->run(16) > 16 * small_ns || part.ops.size() != 1) {
        return alone;
    }
    auto model = survey.chain().extract(part, found.inputs);
    auto& graph = model.graph;
    if (graph.op_count() != 1) {
        return alone;
    }
    const OpSpec spec = graph.op(graph.first());
    auto outputs = std::vector<TensorId>(graph.outputs().begin(), graph.outputs().end());
    const auto given = outputs.size();
    for (std::size_t copy = 1; copy < small_copies; ++copy) {
        auto next = spec;
        next.name += fmt::format("_{}", copy);
        for (auto& output : next.outputs) {
            if (output == TensorId::none) {
                continue;
            }
            const bool asked =
                std::find(outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(given),
                          output) != outputs.begin() + static_cast<std::ptrdiff_t>(given);
            output = graph.add_tensor("", graph.tensor(output).type);
            if (asked) {
                outputs.push_back(output);
            }
        }
        graph.append(std::move(next));
    }
    graph.set_outputs(outputs);
    return std::make_unique<Layers>(survey.compile(model, found.part, found.inputs), small_copies);
}

std::unique_ptr<Load> in_situ(const Survey& survey, const Found& found) {
    auto ready = survey.compile(found.part, found.inputs);
    if (found.producer == Found::none) {  // it reads the model's inputs
        return std::make_unique<InSitu>(std::move(ready), std::nullopt, survey.memory());
    }
    auto producer = survey.compile(found.producer, found.producer_inputs);
    std::vector<std::size_t> fed;
    const auto outputs = producer.program->output_names();
    for (const auto& name : ready.program->input_names()) {
        const auto at = std::find(outputs.begin(), outputs.end(), name);
        fed.push_back(at == outputs.end() ? Found::none
                                          : static_cast<std::size_t>(at - outputs.begin()));
    }
    return std::make_unique<InSitu>(std::move(ready), Producer{std::move(producer), std::move(fed)},
                                    survey.memory());
}

// The largest cache that Linux lists for a core; 0: it lists none. The C library's answer is that
// of all sockets on some processors.
std::size_t cache_in(const std::filesystem::path& folder) {
    std::size_t most = 0;
    std::error_code failure;
    for (std::filesystem::directory_iterator at(folder, failure), end; !failure && at != end;
         at.increment(failure)) {
        std::ifstream file(at->path() / "size");
        std::size_t size = 0;
        std::string unit;
        if (file >> size >> unit) {
            most = std::max(most, size * (unit == "K" ? 1024U : unit == "M" ? 1048576U : 1U));
        }
    }
    return most;
}

// `width` ops beside each other, `depth` behind each other, that do nothing.
Survey::Ready nothing(Engine& engine, std::size_t width, std::size_t depth) {
    Model model;
    model.format = "onnx";
    model.dialect = "onnx";
    model.ir_version = 8;
    model.opsets = {{"", 17}};
    model.graph.name = "nothing";
    const auto type = Type::tensor(DType::f32, Shape{1});
    std::vector<TensorId> outputs;
    Survey::Ready ready;
    for (std::size_t i = 0; i < width; ++i) {
        auto at = model.graph.add_input(fmt::format("in{}", i), type);
        for (std::size_t k = 0; k < depth; ++k) {
            const auto next = model.graph.add_tensor(fmt::format("t{}_{}", i, k), type);
            model.graph.append({.type = "Identity", .inputs = {at}, .outputs = {next}});
            at = next;
        }
        outputs.push_back(at);
        ready.inputs.push_back(Value::tensor(DType::f32, {1}));
    }
    model.graph.set_outputs(outputs);
    CompileOptions how;
    how.optimize = CompileOptions::Optimize::none;
    ready.program = engine.compile(model, how);
    return ready;
}

}  // namespace

std::size_t last_cache_bytes() {
    if (const auto size = cache_in("/sys/devices/system/cpu/cpu0/cache")) {
        return size;
    }
    for (const int level : {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE}) {
        if (const auto size = ::sysconf(level); size > 0) {
            return static_cast<std::size_t>(size);
        }
    }
    return std::size_t{32} << 20U;
}

std::unique_ptr<Load> make_load(const Survey& survey, const Found& found, CacheMode mode) {
    if (!found.op.failure.empty()) {
        throw Error(Fault::engine, found.op.failure);
    }
    switch (mode) {
        case CacheMode::reuse:
            return reused(survey, found);
        case CacheMode::stream_inputs: {
            std::vector<Survey::Ready> one;
            one.push_back(survey.compile(found.part, found.inputs));
            return std::make_unique<Ring>(std::move(one),
                                          ring_size(bytes_of(found.inputs), most_copies));
        }
        case CacheMode::stream_weights:
            return streamed_weights(survey, found);
        case CacheMode::cold:
            return std::make_unique<Cold>(survey.compile(found.part, found.inputs));
        case CacheMode::in_situ:
            return in_situ(survey, found);
        default:
            return chained(survey, found);
    }
}

std::unique_ptr<Load> make_whole(const Model& model, Engine& engine,
                                 const std::vector<NamedValue>& inputs) {
    Survey::Ready ready;
    ready.program = engine.compile(model, {});
    for (const auto& wanted : ready.program->input_names()) {
        for (const auto& input : inputs) {
            if (input.name == wanted) {
                ready.inputs.push_back(input.value);
            }
        }
    }
    if (ready.inputs.size() != ready.program->input_names().size()) {
        throw Error(Fault::input, "not all inputs of the model are given");
    }
    return std::make_unique<Reuse>(std::move(ready));
}

namespace {

constexpr std::size_t cost_depth = 33;
constexpr std::size_t cost_width = 5;

}  // namespace

CallCostMeter::CallCostMeter(Engine& engine) {
    loads_.push_back(std::make_unique<Reuse>(nothing(engine, 1, 1)));
    loads_.push_back(std::make_unique<Reuse>(nothing(engine, 1, cost_depth)));
    loads_.push_back(std::make_unique<Reuse>(nothing(engine, cost_width, 1)));
}
CallCostMeter::~CallCostMeter() = default;

CallCost CallCostMeter::measure(int rounds) {
    constexpr std::uint64_t calls = 20;
    std::vector<std::vector<double>> times(loads_.size());
    for (int round = 0; round <= rounds; ++round) {
        for (std::size_t i = 0; i < loads_.size(); ++i) {
            const auto spent = loads_[i]->run(calls) / static_cast<double>(calls);
            if (round > 0) {  // the first one warms up
                times[i].push_back(spent);
            }
        }
    }
    const auto one = quantile(times[0], 0.5);
    CallCost cost;
    cost.node_ns = std::max(0.0, (quantile(times[1], 0.5) - one) / (cost_depth - 1));
    cost.run_ns = std::max(0.0, one - cost.node_ns);
    cost.port_ns =
        std::max(0.0, ((quantile(times[2], 0.5) - one) / (cost_width - 1) - cost.node_ns) / 2);
    return cost;
}

}  // namespace trocar::ops
