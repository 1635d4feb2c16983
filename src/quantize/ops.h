#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trocar/model.h"
#include "trocar/quantize.h"

namespace trocar::quantizing {

// An op that can be quantised, and the tensors that are then.
struct Candidate {
    OpId op = OpId::none;
    std::vector<std::size_t> activations;  // input slots
    std::optional<std::size_t> weight;     // slot of a constant
    std::int64_t axis = 0;                 // of the weight's output channels
    std::optional<std::size_t> bias;       // slot of a constant
    // The tensor that is quantised behind it: its output, or that of the Relu or Clip that reads it
    // alone and takes its range for itself.
    TensorId output = TensorId::none;
};

// Those of the graph, without the ones to be kept, and why others are none.
std::vector<Candidate> candidates(const Model& model, const QuantizeOptions& options,
                                  std::vector<QuantizedOp>& fates);

// An op whose output has numbers of its input alone: both have one range.
bool passes_numbers_on(const Op& op);

// The tensors that need a range.
std::vector<TensorId> quantized_tensors(const Graph& graph, const std::vector<Candidate>& all);

}  // namespace trocar::quantizing
