#pragma once

#include <cstdint>
#include <vector>

#include "inject/geometry.h"
#include "trocar/graph.h"

namespace trocar::inject {

// What the outputs of an op at a position depend on, where that is not all it reads.
struct Footprint {
    enum class Kind {
        whole,   // all outputs on all inputs
        window,  // convolution and pooling: on a window of input 0, at all its channels
        local,   // on the same position of its inputs
    };
    Kind kind = Kind::whole;
    // Of a window.
    std::size_t dimensions = 0;  // spatial ones: 1 or 2
    std::int64_t kernel_height = 1;
    std::int64_t kernel_width = 1;
    std::int64_t stride_height = 1;
    std::int64_t stride_width = 1;
    std::int64_t dilation_height = 1;
    std::int64_t dilation_width = 1;
    std::int64_t pad_top = 0;
    std::int64_t pad_left = 0;
    bool filters = false;  // a convolution: input 1 has the filters, input 2 the bias, of any kind
    bool depthwise = false;  // channels do not mix
    bool lowest = false;     // what lies outside counts as the lowest number, not as 0
    std::vector<std::size_t> local_slots;  // inputs of which the same position is read

    // Images, or rows, of a batch do not see one another: several batches may be run as one.
    bool batched = false;
    // A product with a constant matrix as input 1, and perhaps a constant as input 2 that is added:
    // columns of the result depend on one column of these each.
    bool columns = false;
    bool columns_transposed = false;  // the matrix has them as rows

    bool padded() const { return pad_top > 0 || pad_left > 0; }
    bool pointwise() const { return kernel_height == 1 && kernel_width == 1; }
};

// `constants` by TensorId: which tensors are constant.
Footprint footprint(const Op& op, const std::vector<const Constant*>& constants);

// The positions of the output that see any of the positions `dirty` of input 0. `in` and `out`
// describe the two tensors. Ascending.
std::vector<std::int32_t> reached(const Footprint& footprint, const Geometry& in,
                                  const Geometry& out, const std::vector<std::int32_t>& dirty);

}  // namespace trocar::inject
