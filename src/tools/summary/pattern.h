#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trocar/counting.h"

namespace trocar::summary {

// Finds the structure in the zeros of one weight, from flags that say which elements are zero, fed
// in order. Memory goes with the length of one row, not with the weight.
class PatternFinder {
public:
    PatternFinder(std::span<const std::int64_t> shape, WeightAxes axes);

    // Flags of the elements from number `first` on.
    void feed(std::span<const std::uint8_t> flags, std::size_t first);

    // `zeros`: how many there were in all.
    std::string pattern(std::uint64_t zeros) const;

private:
    // The weight seen as [any, extent, inner]: zeros for each index along the middle.
    struct Axis {
        std::size_t extent = 1;
        std::size_t inner = 1;
        std::vector<std::uint64_t> zeros;
        void feed(std::span<const std::uint8_t> flags, std::size_t first);
        // Indices that are zero throughout, of `each` elements.
        std::size_t empty(std::uint64_t each) const;
    };
    // Groups of `size` neighbours along the summed axis.
    struct Groups {
        std::size_t size = 0;
        std::vector<std::uint8_t> zeros;  // in the open group, by place in the row
        std::size_t fewest = 0;           // zeros in any whole group
        std::uint64_t whole = 0;          // groups seen
        std::uint64_t in_empty = 0;       // zeros that lie in groups of zeros only
        void close(std::size_t place);
    };
    void feed_groups(std::span<const std::uint8_t> flags, std::size_t first);

    std::uint64_t elements_ = 1;
    Axis output_;
    Axis reduced_;
    std::array<Groups, 4> groups_;
};

}  // namespace trocar::summary
