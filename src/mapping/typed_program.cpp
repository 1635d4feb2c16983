#include "mapping/typed_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>

#include "trocar/error.h"
#include "trocar/session.h"
#include "util/aten_types.h"

namespace trocar::mapping {

namespace {

// How many types of inputs a program stays compiled for.
constexpr std::size_t most_variants = 8;

// Completes the types of a model whose inputs have theirs.
using Learn = std::function<void(Model& model, const std::vector<NamedValue>& inputs)>;

class TypedProgram final : public Program {
public:
    // `more` is asked where what `learn` found is not enough; it may be empty.
    TypedProgram(const Model& model, Learn learn, Learn more, CompileTyped compile)
        : model_(clone(model)),
          learn_(std::move(learn)),
          more_(std::move(more)),
          compile_(std::move(compile)) {
        const auto& graph = model_.graph;
        // Those with a default too: mapped, they are plain inputs.
        for (const auto id : graph.inputs()) {
            ids_.push_back(id);
            inputs_.push_back(graph.tensor(id).name);
        }
        for (const auto id : graph.outputs()) {
            outputs_.push_back(graph.tensor(id).name);
        }
    }

    std::span<const std::string> input_names() const override { return inputs_; }
    std::span<const std::string> output_names() const override { return outputs_; }

    void run(std::span<const Value> given, std::span<Value> outputs) override {
        const auto inputs = with_defaults(given);
        if (inputs.size() != inputs_.size() || outputs.size() != outputs_.size()) {
            throw Error(
                Fault::usage,
                fmt::format("the program takes {} inputs and gives {} outputs, not {} and {}",
                            inputs_.size(), outputs_.size(), inputs.size(), outputs.size()));
        }
        std::vector<Type> types;
        std::transform(inputs.begin(), inputs.end(), std::back_inserter(types), type_of);
        auto found = std::find_if(known_.begin(), known_.end(),
                                  [&](const Known& known) { return known.types == types; });
        if (found == known_.end()) {
            known_.push_front({types, compiled(types, inputs)});
            if (known_.size() > most_variants) {
                known_.pop_back();
            }
        } else {
            known_.splice(known_.begin(), known_, found);
        }
        run_known(*known_.front().program, inputs, outputs);
    }
    Footprint footprint() const override {
        return known_.empty() ? Footprint{std::nullopt, "it is compiled when it is run"}
                              : known_.front().program->footprint();
    }
    KernelTimes take_times() override {
        return known_.empty() ? Program::take_times() : known_.front().program->take_times();
    }

private:
    struct Known {
        std::vector<Type> types;
        std::unique_ptr<Program> program;
    };

    std::vector<Value> with_defaults(std::span<const Value> given) const {
        std::vector<Value> all(given.begin(), given.end());
        for (std::size_t i = 0; i < all.size() && i < ids_.size(); ++i) {
            const auto& tensor = model_.graph.tensor(ids_[i]);
            if (all[i].kind() == Value::Kind::none && tensor.constant) {
                all[i] = Value::of(*tensor.constant);
            }
        }
        return all;
    }

    // Inputs that nothing reads may be gone.
    void run_known(Program& program, std::span<const Value> inputs,
                   std::span<Value> outputs) const {
        const auto names = program.input_names();
        if (std::equal(names.begin(), names.end(), inputs_.begin(), inputs_.end())) {
            program.run(inputs, outputs);
            return;
        }
        std::vector<Value> wanted;
        for (const auto& name : names) {
            const auto found = std::find(inputs_.begin(), inputs_.end(), name);
            if (found == inputs_.end()) {
                throw Error(Fault::internal, fmt::format("'{}' is no input of the model", name));
            }
            wanted.push_back(inputs[static_cast<std::size_t>(found - inputs_.begin())]);
        }
        program.run(wanted, outputs);
    }

    std::unique_ptr<Program> compiled(const std::vector<Type>& types,
                                      const std::vector<Value>& inputs) const {
        auto model = clone(model_);
        auto& graph = model.graph;
        std::vector<NamedValue> values;
        for (std::size_t i = 0; i < ids_.size(); ++i) {
            if (graph.tensor(ids_[i]).type != types[i]) {
                graph.set_type(ids_[i], types[i]);
            }
            values.push_back({inputs_[i], inputs[i]});
        }
        learn_(model, values);
        try {
            return compile_(model);
        } catch (const Error& error) {
            if (!more_ || error.fault() != Fault::unsupported || graph.op_count() < 2) {
                throw;
            }
            try {
                more_(model, values);
            } catch (const Error&) {
                throw error;  // what cannot be mapped cannot be run op by op either
            }
        }
        return compile_(model);
    }

    Model model_;
    Learn learn_;
    Learn more_;
    CompileTyped compile_;
    std::vector<TensorId> ids_;
    std::vector<std::string> inputs_;
    std::vector<std::string> outputs_;
    std::list<Known> known_;  // last used first
};

// What was inferred from types that may have been wrong. Numbers that the program counts with are
// what they are.
void forget_types(Graph& graph) {
    for (const auto id : graph.tensors()) {
        auto& tensor = graph.tensor_from_file(id);
        const auto& type = tensor.type;
        const bool number =
            type.dims && type.dims->empty() &&
            (type.dtype == DType::i64 || type.dtype == DType::f64 || type.dtype == DType::boolean);
        if (type.kind == Type::Kind::tensor && tensor.producer != OpId::none && !number) {
            tensor.type = {};
        }
    }
    for (const auto id : graph.ops()) {
        for (const auto& body : graph.op(id).subgraphs()) {
            forget_types(*body);
        }
    }
}

// Types as they are in a run, op by op.
Learn observer(std::function<std::shared_ptr<Engine>()> engine) {
    return [engine = std::move(engine)](Model& model, const std::vector<NamedValue>& inputs) {
        auto& graph = model.graph;
        std::vector<TensorId> open;
        for (const auto id : graph.tensors()) {
            if (graph.tensor(id).producer != OpId::none) {
                open.push_back(id);
            }
        }
        const auto found = observe_types(model, engine(), inputs, open);
        for (std::size_t i = 0; i < open.size(); ++i) {
            graph.set_type(open[i], found[i]);
        }
    };
}

}  // namespace

std::unique_ptr<Program> typed_program(const Model& model,
                                       std::function<std::shared_ptr<Engine>()> own_engine,
                                       CompileTyped compile) {
    return std::make_unique<TypedProgram>(model, observer(std::move(own_engine)), nullptr,
                                          std::move(compile));
}

bool has_open_inputs(const Model& model) {
    const auto inputs = model.graph.inputs();
    return model.dialect == "aten" && std::any_of(inputs.begin(), inputs.end(), [&](TensorId id) {
               const auto& tensor = model.graph.tensor(id);
               return tensor.type.kind == Type::Kind::unknown ||
                      (tensor.type.kind == Type::Kind::tensor && !tensor.type.dims) ||
                      has_assumed_type(tensor);
           });
}

std::unique_ptr<Program> inferred_program(const Model& model,
                                          std::function<std::shared_ptr<Engine>()> engine,
                                          CompileTyped compile) {
    std::vector<DType> declared;
    for (const auto id : model.graph.inputs()) {
        declared.push_back(model.graph.tensor(id).type.dtype);
    }
    const auto infer = [declared](Model& seen, const std::vector<NamedValue>&) {
        const auto inputs = seen.graph.inputs();
        const bool corrected = !std::equal(
            inputs.begin(), inputs.end(), declared.begin(), declared.end(),
            [&](TensorId id, DType dtype) { return seen.graph.tensor(id).type.dtype == dtype; });
        if (corrected) {
            forget_types(seen.graph);
        }
        infer_aten_types(seen.graph);
    };
    return std::make_unique<TypedProgram>(model, infer, observer(std::move(engine)),
                                          std::move(compile));
}

}  // namespace trocar::mapping
