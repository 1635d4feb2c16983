#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "trocar/value.h"

namespace trocar {

// How the elements of a generated tensor are chosen.
struct Fill {
    enum class Kind {
        random,   // uniform in the range that suits the type
        between,  // uniform, low ≤ element < high
        number,   // all the same: `low`
    };
    Kind kind = Kind::random;
    double low = 0;
    double high = 0;
};

// "random", "random(LOW,HIGH)", "zeros", "ones", or a number; nothing for any other text. Throws
// Error(usage) on a range that is not one.
std::optional<Fill> parse_fill(std::string_view text);

// "random in [0, 1)", "zeros", "all 3": for a reader. Ranges are those of the type.
std::string fill_text(const Fill& fill, DType dtype);

// A tensor of generated elements. Random ones depend on the seed, the name and the element's place
// alone: the same on every machine, in whatever order tensors are generated. Without a range,
// floats and complex parts are uniform in [0, 1), integers of 8 and fewer bits in all their range,
// wider ones in 0…9, booleans false or true, strings eight letters. Numbers are rounded to the
// type. Throws Error(input) when the type has no elements that can be generated or does not hold
// the range, or when the tensor would take more than the machine's memory.
Value generate(const Fill& fill, DType dtype, const Shape& shape, std::string_view name,
               std::uint64_t seed);

}  // namespace trocar
