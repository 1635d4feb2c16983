#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trocar/model.h"
#include "trocar/value.h"

#pragma GCC visibility push(default)
namespace trocar {

class Args;

// Where the values of a model's inputs come from, as a user says it.
struct InputSpec {
    // "[NAME=]SOURCE", where SOURCE is a file (.npy, .npz, .pb; FILE.npz:KEY for one array of
    // several), a folder with input_0.pb, input_1.pb…, raw elements (FILE:f32:1x3x224x224; FILE.bin
    // where the model says the rest), or what to generate: random, random(LOW,HIGH), zeros, ones, a
    // number.
    std::vector<std::string> sources;
    std::vector<std::string> shapes;  // "[NAME=]1,3,224,224", or "SYMBOL=4" for a dimension
    std::string fill;  // what to generate for inputs that are not given; empty: nothing
    std::uint64_t seed = 0;
    // For dimensions of generated inputs that neither the model nor `shapes` give; absent: a fault.
    std::optional<std::int64_t> unknown_dims;
};

struct Inputs {
    std::vector<NamedValue> values;    // in the order of the graph's inputs
    std::vector<std::string> origins;  // of each value: "x.npy", "random in [0, 1)"
    std::vector<std::string> notes;    // dimensions that were chosen
};

// The values to run a model with. Throws Error(usage) on a source that cannot be understood and
// Error(input) on missing, unknown or ill-typed inputs, all of them in one message.
Inputs make_inputs(const Model& model, const InputSpec& spec);

// Declares --input, --shape and --fill, the same in every tool that runs a model.
void declare_input_options(Args& args, InputSpec& spec);

}  // namespace trocar
#pragma GCC visibility pop
