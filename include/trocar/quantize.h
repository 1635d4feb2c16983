#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trocar/engine.h"
#include "trocar/model.h"
#include "trocar/quality.h"
#include "trocar/selector.h"
#include "trocar/value.h"

#pragma GCC visibility push(default)
namespace trocar {

// How the range of a tensor is chosen from what was seen of it.
enum class RangeMethod {
    min_max,     // from the smallest to the largest number
    percentile,  // without the outermost numbers
    entropy,     // the range whose quantised distribution is nearest (Kullback-Leibler)
    mse,         // the range with the smallest mean squared error
};
RangeMethod parse_range_method(const std::string& text);  // throws Error(usage)

enum class QuantizeScheme {
    int8,          // weights and activations: QuantizeLinear and DequantizeLinear around ops
    weights_int8,  // weights alone, one scale for each channel
    weights_int4,  // weights alone, one scale for each block of elements
    weights_f16,
    weights_bf16,
};
QuantizeScheme parse_quantize_scheme(const std::string& text);  // throws Error(usage)

struct QuantizeOptions {
    QuantizeScheme scheme = QuantizeScheme::int8;
    RangeMethod method = RangeMethod::min_max;
    double percentile = 99.99;  // of the numbers, kept by RangeMethod::percentile
    bool per_channel = true;    // weights have a scale for each output channel
    // Of the 8 bits of a weight so many are used, 2 to 8. 7 where an engine adds products of two
    // pairs in 16 bits, as some do on processors without instructions for it.
    int weight_bits = 8;
    std::int64_t block = 32;  // elements along the input channels with one scale, for int4
    bool outputs = false;     // outputs of the model are quantised too, for engines of integers
    Selector keep;            // ops that stay as they are
};

struct TensorRange {
    std::string tensor;
    double low = 0;
    double high = 0;
    std::uint64_t left_out = 0;  // numbers that were infinite or none
};

using QuantizeProgress = QualityProgress;

// The ranges of the tensors that `quantize` wants, seen by instruments while the model runs; none
// for a tensor of which no finite number was seen. Reads the inputs once for RangeMethod::min_max,
// else twice. Throws Error(input) when there are none, or no range at all.
std::vector<TensorRange> calibrate(const Model& model, const std::shared_ptr<Engine>& engine,
                                   const InputSets& inputs, const QuantizeOptions& options,
                                   const QuantizeProgress& progress = {});

// What became of an op that could be quantised.
struct QuantizedOp {
    std::string name;
    std::string type;
    bool quantized = false;
    std::string why;  // not
};
struct Quantized {
    Model model;
    std::vector<QuantizedOp> ops;
    std::size_t folded = 0;  // batch normalisations that went into the weights before them
    std::uint64_t constant_bytes_before = 0;
    std::uint64_t constant_bytes_after = 0;
};
// A model of ONNX ops with smaller numbers. Tensors keep their names: those that are quantised have
// the quantised numbers, as reals, under a name of their own. An op of which a range is missing
// stays as it is. Throws Error(unsupported) on other dialects, Error(input) without any ranges.
Quantized quantize(const Model& model, const std::vector<TensorRange>& ranges,
                   const QuantizeOptions& options);

// Puts batch normalisations into the weights of the convolutions before them, where nobody else
// reads what lies between. Returns their number.
std::size_t fold_batch_norms(Model& model);

// How much each op costs when it alone is quantised: SQNR of the model's outputs, the most
// sensitive op first.
struct Sensitivity {
    std::string op;
    std::string type;
    double sqnr_db = 0;
};
std::vector<Sensitivity> sensitivity(const Model& model, const std::shared_ptr<Engine>& engine,
                                     const InputSets& inputs,
                                     const std::vector<TensorRange>& ranges,
                                     const QuantizeOptions& options,
                                     const QuantizeProgress& progress = {});

}  // namespace trocar
#pragma GCC visibility pop
