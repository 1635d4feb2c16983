#pragma once

#include <string>
#include <vector>

#include "trocar/model.h"
#include "trocar/value.h"

namespace trocar::litert {

// A model as the engine takes it, and where the outputs of a program come from.
struct Part {
    Model model;
    std::vector<TensorId> inputs;  // of the model, those without a constant
    std::vector<std::string> input_names;
    std::vector<std::string> output_names;
    struct Output {
        enum class From { engine, input, constant } from = From::engine;
        std::size_t place = 0;
        Value constant = {};
    };
    std::vector<Output> outputs;
    std::vector<TensorId> computed;  // what the engine gives

    bool is_static() const;  // all inputs are declared with types and shapes
};
Part make_part(const Model& model);

// The part with these types of its inputs, and with outputs of known shapes where `shapes` are
// given, in the order of `computed`: a Reshape at their ends makes shapes that the engine would
// only know when it has run into ones that it knows before.
Model variant_of(const Part& part, const std::vector<Type>& types,
                 const std::vector<Shape>& shapes);

}  // namespace trocar::litert
