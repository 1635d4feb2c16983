#pragma once

#include <string>
#include <vector>

#include "engines/openvino/settings.h"
#include "trocar/model.h"
#include "trocar/value.h"

namespace trocar::ov {

// A model as the engine gets it: without what nobody reads, every output computed by an op and
// there once. What the model's own outputs are is in `outputs`.
struct Part {
    struct Input {
        std::size_t place;  // among the program's inputs
        TensorId tensor;    // of `model`
    };
    struct Output {
        enum class From { engine, input, constant };
        From from;
        std::size_t place = 0;  // among the engine's outputs, or the program's inputs
        Value constant = {};
    };

    Model model;
    std::vector<Input> inputs;
    std::vector<Output> outputs;
    std::vector<std::string> input_names;  // of the program, all of them
    std::vector<Type> input_types;
    std::vector<std::string> output_names;
    std::vector<Type> output_types;
    std::size_t computed = 0;  // outputs of `model`

    // Are all types and shapes of the inputs declared?
    bool is_static() const;
};

// Throws Error(unsupported) where the model has what the engine does not compute as it is: inputs
// and outputs that are no tensors, f64 (unless the settings allow it).
Part make_part(const Model& model, const Settings& settings);

}  // namespace trocar::ov
