#include "mapping/typed_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>

#include "trocar/error.h"
#include "trocar/session.h"

namespace trocar::mapping {

namespace {

// How many types of inputs a program stays compiled for.
constexpr std::size_t most_variants = 8;

class TypedProgram final : public Program {
public:
    TypedProgram(const Model& model, std::function<std::shared_ptr<Engine>()> own_engine,
                 CompileTyped compile)
        : model_(clone(model)), own_engine_(std::move(own_engine)), compile_(std::move(compile)) {
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

    void run(std::span<const Value> inputs, std::span<Value> outputs) override {
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
            known_.push_front({types, compile_(seen(types, inputs))});
            if (known_.size() > most_variants) {
                known_.pop_back();
            }
        } else {
            known_.splice(known_.begin(), known_, found);
        }
        known_.front().program->run(inputs, outputs);
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

    Model seen(const std::vector<Type>& types, std::span<const Value> inputs) const {
        auto model = clone(model_);
        auto& graph = model.graph;
        std::vector<NamedValue> values;
        for (std::size_t i = 0; i < ids_.size(); ++i) {
            if (graph.tensor(ids_[i]).type != types[i]) {
                graph.set_type(ids_[i], types[i]);
            }
            values.push_back({inputs_[i], inputs[i]});
        }
        std::vector<TensorId> open;
        for (const auto id : graph.tensors()) {
            if (graph.tensor(id).producer != OpId::none) {
                open.push_back(id);
            }
        }
        const auto found = observe_types(model, own_engine_(), values, open);
        for (std::size_t i = 0; i < open.size(); ++i) {
            graph.set_type(open[i], found[i]);
        }
        return model;
    }

    Model model_;
    std::function<std::shared_ptr<Engine>()> own_engine_;
    CompileTyped compile_;
    std::vector<TensorId> ids_;
    std::vector<std::string> inputs_;
    std::vector<std::string> outputs_;
    std::list<Known> known_;  // last used first
};

}  // namespace

std::unique_ptr<Program> typed_program(const Model& model,
                                       std::function<std::shared_ptr<Engine>()> own_engine,
                                       CompileTyped compile) {
    return std::make_unique<TypedProgram>(model, std::move(own_engine), std::move(compile));
}

}  // namespace trocar::mapping
