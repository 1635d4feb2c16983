#include "trocar/engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "engines/reference/machine.h"
#include "trocar/error.h"
#include "trocar/version.h"

namespace trocar {

namespace reference {
namespace {

constexpr const char* engine_name = "reference";

EngineInfo own_info() {
    EngineInfo info;
    info.name = engine_name;
    info.available = true;
    info.version = version();
    info.can.dialects = {"onnx"};
    info.can.providers = {"CPUExecutionProvider"};
    info.can.deterministic = true;
    info.can.host_calls = true;
    info.can.kernel_times = true;
    return info;
}

bool shares(const Value& output, const Value& input) {
    if (!output.is_tensor() || !input.is_tensor() || output.dtype() == DType::string ||
        input.dtype() == DType::string) {
        return false;
    }
    const auto of = output.bytes();
    const auto in = input.bytes();
    return !of.empty() && of.data() >= in.data() && of.data() < in.data() + in.size();
}

class ReferenceProgram final : public Program {
public:
    ReferenceProgram(const Model& model, const CompileOptions& options)
        : library_(clone(model)), machine_(options.host, options.time_kernels) {
        const auto& graph = library_.model().graph;
        for (const auto id : graph.inputs()) {
            const auto& tensor = graph.tensor(id);
            slots_.push_back(tensor.constant ? none : input_names_.size());
            if (!tensor.constant) {
                input_names_.push_back(tensor.name);
            }
        }
        for (const auto id : graph.outputs()) {
            output_names_.push_back(graph.tensor(id).name);
        }
    }

    std::span<const std::string> input_names() const override { return input_names_; }
    std::span<const std::string> output_names() const override { return output_names_; }

    void run(std::span<const Value> inputs, std::span<Value> outputs) override {
        if (inputs.size() != input_names_.size() || outputs.size() != output_names_.size()) {
            throw Error(Fault::usage,
                        fmt::format("the program takes {} inputs and gives {} outputs, not {} and "
                                    "{}",
                                    input_names_.size(), output_names_.size(), inputs.size(),
                                    outputs.size()));
        }
        const auto results = run_all(given(inputs));
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            // The caller may take the memory of its inputs back.
            const bool borrowed = std::any_of(inputs.begin(), inputs.end(), [&](const Value& in) {
                return shares(results[i], in);
            });
            outputs[i] =
                borrowed ? Value::copy(results[i].dtype(), results[i].shape(), results[i].bytes())
                         : results[i];
        }
    }

    Footprint footprint() const override { return {0, {}}; }

    KernelTimes take_times() override {
        return machine_.times_ops() ? machine_.take_times() : Program::take_times();
    }

private:
    static constexpr std::size_t none = static_cast<std::size_t>(-1);

    // In the order of the graph's inputs, constants included.
    std::vector<Value> given(std::span<const Value> inputs) const {
        const auto& graph = library_.model().graph;
        std::vector<Value> all;
        for (std::size_t i = 0; i < slots_.size(); ++i) {
            all.push_back(slots_[i] == none ? Value::of(*graph.tensor(graph.inputs()[i]).constant)
                                            : inputs[slots_[i]]);
        }
        return all;
    }

    std::vector<Value> run_all(const std::vector<Value>& inputs) {
        machine_.start_timing();
        try {
            auto results = machine_.run(library_.main(), inputs, nullptr, nullptr);
            machine_.end_timing();
            return results;
        } catch (const HostFailure& failure) {
            std::rethrow_exception(failure.thrown);
        }
    }

    Library library_;
    Machine machine_;
    std::vector<std::string> input_names_;
    std::vector<std::string> output_names_;
    std::vector<std::size_t> slots_;  // of each input of the graph: its place among those given
};

class ReferenceEngine final : public Engine {
public:
    const EngineInfo& info() const override { return info_; }

    std::unique_ptr<Program> compile(const Model& model, const CompileOptions& options) override {
        if (model.dialect != "onnx") {
            throw Error(Fault::unsupported,
                        fmt::format("the reference engine takes models of the dialect 'onnx', "
                                    "not '{}'",
                                    model.dialect));
        }
        return std::make_unique<ReferenceProgram>(model, options);
    }

private:
    EngineInfo info_ = own_info();
};

std::vector<EngineInfo> find(const EngineOptions& /*options*/) {
    return {own_info()};
}

std::shared_ptr<Engine> open(const EngineOptions& options) {
    if (!options.path.empty() || !options.options.empty()) {
        throw Error(Fault::usage, "the reference engine takes neither a path nor options",
                    "it is a part of Trocar: --engine reference");
    }
    return std::make_shared<ReferenceEngine>();
}

}  // namespace
}  // namespace reference

extern const EngineKind reference_engine{
    .name = reference::engine_name,
    .summary = "Trocar's own: plain loops in double precision, to settle what others disagree on",
    .find = reference::find,
    .open = reference::open,
};

}  // namespace trocar
