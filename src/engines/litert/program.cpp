#include "engines/litert/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <list>

#include "engines/litert/part.h"
#include "trocar/error.h"

namespace trocar::litert {

namespace {

// How many shapes of inputs a program stays compiled for.
constexpr std::size_t most_variants = 8;

// Are the shapes that a variant saw, its last outputs, those that it was made for?
bool has_shapes(const Variant& variant, const std::vector<Shape>& shapes) {
    const auto outputs = variant.outputs();
    for (std::size_t i = 0; i < shapes.size(); ++i) {
        const auto seen = outputs[shapes.size() + i].as<std::int32_t>();
        if (!std::equal(seen.begin(), seen.end(), shapes[i].begin(), shapes[i].end())) {
            return false;
        }
    }
    return true;
}

class LtProgram final : public Program {
public:
    LtProgram(Compiler compiler, const Model& model, const CompileOptions& options)
        : compiler_(std::move(compiler)),
          part_(make_part(model)),
          time_kernels_(options.time_kernels) {
        for (const auto id : part_.model.graph.ops()) {
            ops_.push_back(part_.model.graph.op(id).name);
        }
        if (!part_.computed.empty() && part_.is_static()) {
            std::vector<Type> types;
            for (const auto id : part_.inputs) {
                types.push_back(part_.model.graph.tensor(id).type);
            }
            known_for(types);
        }
    }

    std::span<const std::string> input_names() const override { return part_.input_names; }
    std::span<const std::string> output_names() const override { return part_.output_names; }
    void run(std::span<const Value> inputs, std::span<Value> outputs) override;
    Footprint footprint() const override {
        return {std::nullopt, "LiteRT does not tell what it copies"};
    }
    KernelTimes take_times() override;

private:
    // Compiled for these types. Where outputs have shapes that show only in a run, a second one
    // that is made for these shapes gives them.
    struct Known {
        std::vector<Type> types;
        std::unique_ptr<Variant> plain;
        std::unique_ptr<Variant> shaped;
        std::vector<Shape> shapes;  // that it is made for
    };
    std::vector<Type> types_of(std::span<const Value> inputs) const;
    Known& known_for(const std::vector<Type>& types);
    std::unique_ptr<Variant> make(const std::vector<Type>& types,
                                  const std::vector<Shape>& shapes) const {
        return std::make_unique<Variant>(compiler_, variant_of(part_, types, shapes),
                                         time_kernels_);
    }
    Variant& compute(std::span<const Value> inputs);
    void note(const Variant& variant, std::chrono::steady_clock::time_point start);

    Compiler compiler_;
    Part part_;
    bool time_kernels_;
    std::list<Known> known_;        // last used first
    std::vector<std::string> ops_;  // names, by their number
    KernelTimes times_;
};

std::vector<Type> LtProgram::types_of(std::span<const Value> inputs) const {
    std::vector<Type> types;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const auto& declared = part_.model.graph.tensor(part_.inputs[i]).type;
        const auto& name = part_.input_names[i];
        if (!inputs[i].is_tensor()) {
            throw Error(Fault::engine, fmt::format("input '{}' is {}; LiteRT takes tensors only",
                                                   name, value_text(inputs[i])));
        }
        if (!inputs[i].device().is_host()) {
            throw Error(Fault::engine, fmt::format("LiteRT reads no memory of the device '{}'",
                                                   inputs[i].device().kind));
        }
        if (declared.dtype != DType::undefined && declared.dtype != inputs[i].dtype()) {
            throw Error(Fault::engine,
                        fmt::format("input '{}' is {}, but the program takes {}", name,
                                    trocar::name(inputs[i].dtype()), trocar::name(declared.dtype)));
        }
        types.push_back(Type::tensor(inputs[i].dtype(), inputs[i].shape()));
    }
    return types;
}

LtProgram::Known& LtProgram::known_for(const std::vector<Type>& types) {
    const auto found = std::find_if(known_.begin(), known_.end(),
                                    [&](const Known& known) { return known.types == types; });
    if (found != known_.end()) {
        known_.splice(known_.begin(), known_, found);
        return known_.front();
    }
    known_.push_front({types, make(types, {}), nullptr, {}});
    if (known_.size() > most_variants) {
        known_.pop_back();
    }
    return known_.front();
}

Variant& LtProgram::compute(std::span<const Value> inputs) {
    auto& known = known_for(types_of(inputs));
    if (known.shaped) {
        try {
            if (known.shaped->run(inputs) && has_shapes(*known.shaped, known.shapes)) {
                return *known.shaped;
            }
        } catch (const Error&) {
            // The shapes are others this time.
        }
        known.shaped = nullptr;
        known.plain = make(known.types, {});
    }
    if (known.plain->run(inputs)) {
        return *known.plain;
    }
    known.shapes = known.plain->output_shapes();
    known.shaped = make(known.types, known.shapes);
    if (!known.shaped->run(inputs) || !has_shapes(*known.shaped, known.shapes)) {
        throw Error(Fault::engine, "LiteRT did not give its outputs",
                    "their shapes depend on values in a way that it cannot follow");
    }
    return *known.shaped;
}

void LtProgram::note(const Variant& variant, std::chrono::steady_clock::time_point start) {
    const auto nanoseconds = [](auto span) {
        return std::chrono::duration<double, std::nano>(span).count();
    };
    TimedRun run;
    run.start_ns = nanoseconds(start.time_since_epoch());
    run.spent_ns = nanoseconds(std::chrono::steady_clock::now() - start);
    double at = run.start_ns;
    for (const auto& event : variant.events()) {
        if (event.kind != event_op && event.kind != event_delegate) {
            continue;
        }
        KernelTime kernel;
        const auto number = static_cast<std::size_t>(event.number);
        const bool own = event.kind == event_op && event.subgraph == 0 && event.number >= 0;
        // A delegate's node stands behind all ops, and its kernels are listed by themselves.
        if (own && number >= ops_.size()) {
            continue;
        }
        kernel.op = own ? ops_[number] : event.tag != nullptr ? event.tag : "";
        kernel.start_ns = at;
        kernel.spent_ns = static_cast<double>(event.spent_us) * 1000;
        at += kernel.spent_ns;
        run.kernels.push_back(std::move(kernel));
    }
    times_.runs.push_back(std::move(run));
}

void LtProgram::run(std::span<const Value> inputs, std::span<Value> outputs) {
    if (inputs.size() != part_.inputs.size() || outputs.size() != part_.outputs.size()) {
        throw Error(
            Fault::usage,
            fmt::format("the program takes {} inputs and gives {} outputs, not {} and {}",
                        part_.inputs.size(), part_.outputs.size(), inputs.size(), outputs.size()));
    }
    std::vector<Value> computed;
    if (!part_.computed.empty()) {
        const auto start = std::chrono::steady_clock::now();
        auto& variant = compute(inputs);
        computed = variant.outputs();
        if (time_kernels_) {
            note(variant, start);
        }
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const auto& route = part_.outputs[i];
        outputs[i] = route.from == Part::Output::From::constant ? route.constant
                     : route.from == Part::Output::From::input  ? inputs[route.place]
                                                                : computed[route.place];
    }
}

KernelTimes LtProgram::take_times() {
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
    if (model.dialect != "tflite") {
        throw Error(
            Fault::unsupported,
            fmt::format("LiteRT takes models of the dialect 'tflite', not '{}'", model.dialect));
    }
    return std::make_unique<LtProgram>(compiler, model, options);
}

}  // namespace trocar::litert
