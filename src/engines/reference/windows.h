#pragma once

#include "engines/reference/call.h"

namespace trocar::reference {

// A window that moves over a picture of any number of dimensions.
struct Geometry {
    Shape picture;
    Shape kernel;
    Integers strides;
    Integers dilations;
    Integers before;  // pads
    Integers after;
    Shape positions;  // where the window stands

    std::int64_t extent(std::size_t axis) const {  // of the window, gaps included
        return (kernel[axis] - 1) * dilations[axis] + 1;
    }
};

// Kernel, strides, dilations and explicit pads as the attributes say; nothing is placed yet.
Geometry window_of(const Call& call, const Shape& picture, const Shape& kernel);
// Pads where auto_pad asks for them, and the positions.
void place(const Call& call, Geometry& geometry, bool ceil_mode);

// Which element of the picture each tap of the window reads at each position.
class Windows {
public:
    static constexpr std::int64_t outside = -1;

    explicit Windows(const Geometry& geometry);
    std::size_t taps() const { return taps_; }
    std::size_t positions() const { return positions_; }
    std::size_t picture() const { return picture_; }  // elements
    // For positions `first`, `first` + 1…: the element read by the tap, or `outside`.
    void read(std::size_t tap, std::size_t first, std::span<std::int64_t> places) const;

private:
    Shape kernel_;
    Shape shape_;
    std::size_t taps_;
    std::size_t positions_;
    std::size_t picture_;
    std::vector<Integers> offsets_;  // by axis: of tap t at position p, at t * positions + p
};

}  // namespace trocar::reference
