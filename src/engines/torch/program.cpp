#include "engines/torch/program.h"

#include <fmt/format.h>

#include "engines/torch/steps.h"
#include "trocar/error.h"

namespace trocar::libtorch {

namespace {

class TorchProgram final : public Program {
public:
    TorchProgram(const Bridge& bridge, const Model& model)
        : exchange_(bridge), steps_(exchange_, model.graph) {
        const auto& graph = model.graph;
        for (const auto id : graph.inputs()) {
            given_.push_back(!graph.tensor(id).constant);
            if (given_.back()) {
                input_names_.push_back(graph.tensor(id).name);
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
            throw Error(
                Fault::usage,
                fmt::format("the program takes {} inputs and gives {} outputs, not {} and {}",
                            input_names_.size(), output_names_.size(), inputs.size(),
                            outputs.size()));
        }
        const bool copy = steps_.changes();
        std::vector<Held> values;
        std::size_t next = 0;
        for (const bool given : given_) {
            values.push_back(given ? exchange_.give(inputs[next++], copy) : nullptr);
        }
        const auto made = steps_.run(values, {}, copy);
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            // What it made itself is lent, what it was lent is copied.
            outputs[i] = exchange_.take(made[i], output_names_[i], copy);
        }
    }

private:
    Exchange exchange_;
    Steps steps_;
    std::vector<bool> given_;  // of each input of the graph: else it is a constant
    std::vector<std::string> input_names_;
    std::vector<std::string> output_names_;
};

}  // namespace

std::unique_ptr<Program> compile_program(const Bridge& bridge, const Model& model) {
    if (model.dialect != "aten") {
        throw Error(
            Fault::unsupported,
            fmt::format("PyTorch takes models of the dialect 'aten', not '{}'", model.dialect));
    }
    return std::make_unique<TorchProgram>(bridge, model);
}

}  // namespace trocar::libtorch
