#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trocar/model.h"
#include "trocar/quantize.h"

namespace trocar::quantizing {

// A constant input that is quantised.
struct WeightSlot {
    std::size_t slot = 0;
    std::int64_t axis = 0;    // of the output channels
    std::int64_t summed = 0;  // along which blocks lie
};

// An op that can be quantised, and the tensors that are then.
struct Candidate {
    OpId op = OpId::none;
    std::vector<std::size_t> activations;  // input slots
    std::vector<WeightSlot> weights;
    std::optional<std::size_t> bias;  // slot of a constant
    // The tensor that is quantised behind it: its output, or that of the Relu or Clip that reads it
    // alone and takes its range for itself.
    TensorId output = TensorId::none;
};

// A model as it is quantised: in a version of the operators that has what is needed, constants that
// ops write are constants of the graph, and batch normalisations are in the weights. Throws
// Error(unsupported) on other dialects, and where the version cannot be had.
struct Prepared {
    Model model;
    std::size_t folded = 0;
};
Prepared prepared(const Model& model, QuantizeScheme scheme);

// Those of the graph, without the ones to be kept, and why others are none.
std::vector<Candidate> candidates(const Model& model, const QuantizeOptions& options,
                                  std::vector<QuantizedOp>& fates);

// An op whose output has numbers of its input alone: both have one range.
bool passes_numbers_on(const Op& op);

// The tensors that need a range; those that are outputs of the graph where `outputs` says so.
std::vector<TensorId> quantized_tensors(const Graph& graph, const std::vector<Candidate>& all,
                                        bool outputs);

}  // namespace trocar::quantizing
