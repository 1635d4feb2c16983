#pragma once

#include <limits>
#include <memory>
#include <vector>

#include "inject/footprint.h"
#include "inject/geometry.h"
#include "trocar/deployed.h"
#include "trocar/engine.h"
#include "trocar/session.h"

namespace trocar::inject {

inline constexpr std::size_t no_step = std::numeric_limits<std::size_t>::max();

// One op of the view, which has a program of its own.
struct Step {
    OpId op = OpId::none;
    std::vector<TensorId> inputs;   // what it reads that is not constant, each once
    std::vector<TensorId> outputs;  // what somebody reads
    Footprint footprint;
};

// A compiled op and where its inputs stand in the graph.
struct OpProgram {
    std::unique_ptr<Program> program;
    std::vector<TensorId> inputs;
};

// How a program of an op departs from the op.
struct Variant {
    std::vector<std::pair<TensorId, Constant>> constants = {};  // in the place of the op's own
    std::vector<TensorId> as_inputs = {};    // constants that become inputs of the program
    std::vector<Attribute> attributes = {};  // set, or changed
    bool narrowed = false;                   // constants have other shapes, and so have the outputs
};

// The graph of a view, op by op. Any number of threads may use it.
class Circuit {
public:
    Circuit(const Model& model, std::shared_ptr<Engine> engine, View view);

    const Graph& graph() const { return model().graph; }
    const Model& model() const {
        return deployed_ ? deployed_->model : lifted_ ? *lifted_ : source_;
    }
    const Model& source() const { return source_; }
    const Deployed* deployed() const { return deployed_.get(); }
    Engine& engine() const { return *engine_; }
    const Plan& plan() const { return plan_; }
    const std::vector<Step>& steps() const { return steps_; }

    const Constant* constant(TensorId id) const { return plan_.constants[index(id)]; }
    Layout layout(TensorId id) const {
        return deployed_ ? deployed_->layouts[index(id)] : Layout{};
    }
    // The layout of what a blocked convolution reads as filters and bias; plain for all else.
    FilterLayout filter_layout(const Op& op, std::size_t slot) const;
    bool is_image(TensorId id) const { return images_[index(id)]; }
    std::size_t step_of(OpId op) const { return step_of_[index(op)]; }
    // The step that writes a tensor; no_step for inputs of the model.
    std::size_t written_at(TensorId id) const;
    // The last step that reads it; no_step where it is an output of the model.
    std::size_t last_read(TensorId id) const { return last_read_[index(id)]; }

    // `types`: values like those that the program's inputs will have, by TensorId.
    OpProgram compile(const Step& step, const std::vector<Value>& types,
                      const Variant& variant = {}) const;

private:
    void find_images();

    const Model& source_;
    // The source view of a model with bodies: their constants stand outside, to be changed there.
    std::unique_ptr<Model> lifted_;
    std::shared_ptr<Engine> engine_;
    std::unique_ptr<Deployed> deployed_;
    Plan plan_;
    std::vector<Step> steps_;
    std::vector<bool> images_;
    std::vector<std::size_t> step_of_;
    std::vector<std::size_t> last_read_;
};

}  // namespace trocar::inject
