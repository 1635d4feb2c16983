#include "engines/openvino/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <list>
#include <unordered_map>

#include "engines/openvino/part.h"
#include "engines/openvino/variant.h"

namespace trocar::ov {

namespace {

// How many shapes of inputs a program stays compiled for.
constexpr std::size_t most_variants = 8;

class OvProgram final : public Program {
public:
    OvProgram(Compiler compiler, const Model& model, const CompileOptions& options)
        : compiler_(std::move(compiler)),
          part_(make_part(model, compiler_.settings)),
          time_kernels_(options.time_kernels),
          computed_(part_.computed) {
        if (part_.computed == 0) {
            return;
        }
        if (time_kernels_) {
            name_ops();
        }
        if (part_.is_static()) {
            variant_for(part_.input_types);
        } else if (!options.low_memory) {
            check_ops(*compiler_.library, part_);
        }
    }

    std::span<const std::string> input_names() const override { return part_.input_names; }
    std::span<const std::string> output_names() const override { return part_.output_names; }
    void run(std::span<const Value> inputs, std::span<Value> outputs) override;
    Footprint footprint() const override {
        return {std::nullopt, "OpenVINO does not tell what it copies"};
    }
    KernelTimes take_times() override;

private:
    std::vector<Type> types_of(std::span<const Value> inputs) const;
    Variant& variant_for(const std::vector<Type>& types);
    void compute(std::span<const Value> inputs);
    Value output(std::size_t number, std::span<const Value> inputs) const;
    void name_ops();

    Compiler compiler_;
    Part part_;
    bool time_kernels_;
    struct Known {
        std::vector<Type> types;
        Variant variant;
    };
    std::list<Known> variants_;  // last used first
    std::vector<Value> computed_;
    KernelTimes times_;
    std::unordered_map<std::string, std::string> ops_;  // the engine's names, those of the model
};

// The engine names its nodes after ops; those that give outputs or have no name, after tensors.
void OvProgram::name_ops() {
    const auto& graph = part_.model.graph;
    for (const auto id : graph.ops()) {
        const auto& op = graph.op(id);
        for (const auto output : op.outputs) {
            if (output != TensorId::none && !op.name.empty()) {
                ops_.emplace(graph.tensor(output).name, op.name);
            }
        }
    }
    for (const auto id : graph.ops()) {
        if (const auto& name = graph.op(id).name; !name.empty()) {
            ops_[name] = name;
        }
    }
}

std::vector<Type> OvProgram::types_of(std::span<const Value> inputs) const {
    std::vector<Type> types(part_.input_types);
    for (const auto& input : part_.inputs) {
        const auto& value = inputs[input.place];
        const auto& name = part_.input_names[input.place];
        const auto declared = part_.input_types[input.place].dtype;
        if (!value.is_tensor()) {
            throw Error(Fault::engine, value.kind() == Value::Kind::none
                                           ? fmt::format("input '{}' has no value", name)
                                           : fmt::format("input '{}' is a {}; OpenVINO takes "
                                                         "tensors only",
                                                         name, value_text(value)));
        }
        if (declared != DType::undefined && declared != value.dtype()) {
            throw Error(Fault::engine,
                        fmt::format("input '{}' is {}, but the program takes {}", name,
                                    trocar::name(value.dtype()), trocar::name(declared)));
        }
        types[input.place] = Type::tensor(value.dtype(), value.shape());
    }
    return types;
}

// Compiled for these types now, unless it was before.
Variant& OvProgram::variant_for(const std::vector<Type>& types) {
    const auto known = std::find_if(variants_.begin(), variants_.end(),
                                    [&](const Known& v) { return v.types == types; });
    if (known != variants_.end()) {
        variants_.splice(variants_.begin(), variants_, known);
        return variants_.front().variant;
    }
    for (const auto& input : part_.inputs) {
        part_.model.graph.set_type(input.tensor, types[input.place]);
    }
    variants_.push_front({types, Variant(compiler_, part_, types, time_kernels_)});
    if (variants_.size() > most_variants) {
        variants_.pop_back();
    }
    return variants_.front().variant;
}

void OvProgram::compute(std::span<const Value> inputs) {
    auto& variant = variant_for(types_of(inputs));
    const auto start = std::chrono::steady_clock::now();
    variant.run(part_, inputs, computed_);
    if (!time_kernels_) {
        return;
    }
    const auto nanoseconds = [](auto span) {
        return std::chrono::duration<double, std::nano>(span).count();
    };
    TimedRun run;
    run.start_ns = nanoseconds(start.time_since_epoch());
    run.spent_ns = nanoseconds(std::chrono::steady_clock::now() - start);
    run.kernels = variant.kernels();
    double at = run.start_ns;
    for (auto& kernel : run.kernels) {
        if (const auto op = ops_.find(kernel.op); op != ops_.end()) {
            kernel.op = op->second;
        }
        kernel.start_ns = at;
        at += kernel.spent_ns;
    }
    times_.runs.push_back(std::move(run));
}

Value OvProgram::output(std::size_t number, std::span<const Value> inputs) const {
    const auto& route = part_.outputs[number];
    if (route.from == Part::Output::From::constant) {
        return route.constant;
    }
    if (route.from == Part::Output::From::input) {
        return inputs[route.place];
    }
    const auto& value = computed_[route.place];
    const auto declared = part_.output_types[number].dtype;
    if (declared != DType::undefined && declared != value.dtype()) {
        throw Error(Fault::engine,
                    fmt::format("OpenVINO gives output '{}' as {}, but it is {}",
                                part_.output_names[number], name(value.dtype()), name(declared)));
    }
    return value;
}

void OvProgram::run(std::span<const Value> inputs, std::span<Value> outputs) {
    if (inputs.size() != part_.input_names.size() || outputs.size() != part_.output_names.size()) {
        throw Error(Fault::usage,
                    fmt::format("the program takes {} inputs and gives {} outputs, not {} and {}",
                                part_.input_names.size(), part_.output_names.size(), inputs.size(),
                                outputs.size()));
    }
    if (part_.computed > 0) {
        compute(inputs);
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        outputs[i] = output(i, inputs);
    }
    std::fill(computed_.begin(), computed_.end(), Value());
}

KernelTimes OvProgram::take_times() {
    if (!time_kernels_) {
        return Program::take_times();
    }
    time_kernels_ = false;
    times_.resolution_ns = 1000;
    return std::move(times_);
}

}  // namespace

std::unique_ptr<Program> compile_program(const Compiler& compiler, const Model& model,
                                         const CompileOptions& options) {
    if (model.dialect != "onnx") {
        throw Error(
            Fault::unsupported,
            fmt::format("OpenVINO takes models of the dialect 'onnx', not '{}'", model.dialect));
    }
    return std::make_unique<OvProgram>(compiler, model, options);
}

}  // namespace trocar::ov
