#pragma once

#include <cstddef>
#include <cstdint>

#include "trocar/deployed.h"
#include "trocar/value.h"

namespace trocar::inject {

// The memory of a tensor as cells: at each of its positions one per group of channels. An image
// (N, C, spatial…) has a position for each place of each image, and as groups its channels or, in a
// blocked layout, its blocks of channels. Any other tensor has a position for each row along its
// last dimension, which is its only group.
struct Geometry {
    std::int64_t outer = 1;   // images
    std::int64_t height = 1;  // of an image
    std::int64_t width = 1;
    std::int64_t groups = 1;
    std::size_t cell = 0;  // bytes
    bool image = false;
    std::size_t position_step = 0;  // bytes from one position to the next of the same image
    std::size_t group_step = 0;
    std::size_t outer_step = 0;

    std::int64_t inner() const { return height * width; }
    std::int64_t positions() const { return outer * inner(); }
    std::size_t bytes() const { return static_cast<std::size_t>(positions() * groups) * cell; }
    // Where the cell of group 0 is.
    std::size_t at(std::int64_t position) const {
        return static_cast<std::size_t>(position / inner()) * outer_step +
               static_cast<std::size_t>(position % inner()) * position_step;
    }
    bool operator==(const Geometry&) const = default;
};

// `image`: channels are the second dimension. Types below 8 bits are one cell.
Geometry geometry(DType dtype, const Shape& shape, const Layout& layout, bool image);

// Where element `place`, in row-major order of the plain shape, stands among the stored elements of
// a tensor in a layout. `shape` is the stored one.
std::size_t stored_place(std::size_t place, const Shape& shape, const Layout& layout);

// How the filters or the bias of a convolution stand in memory, where it wants blocked ones: with
// channels added up to whole blocks, which are no numbers of the model.
struct FilterLayout {
    std::int64_t block = 0;       // of output channels; 0: plain
    bool inputs_blocked = false;  // of input channels too, inside of which are the outputs
    std::int64_t outputs = 0;     // real output channels; 0: all
    std::int64_t inputs = 0;      // real input channels; 0: all
};
// What is real of a constant that is stored in this shape: [O, I, spatial…] or [O].
Shape plain_shape(Shape stored, const FilterLayout& layout);
// Where element `place` of the plain shape is. `stored`: O a multiple of the block, and I where
// inputs are blocked.
std::size_t stored_place(std::size_t place, const Shape& stored, const FilterLayout& layout);

}  // namespace trocar::inject
