#include "util/take_places.h"

#include <algorithm>

#include "trocar/error.h"

namespace trocar {

std::vector<std::byte> take_places(Bytes bytes, DType dtype, std::span<const std::int64_t> shape,
                                   std::size_t axis, std::span<const std::int64_t> places) {
    if (bits(dtype) == 0 || bits(dtype) % 8 != 0 || axis >= shape.size()) {
        throw Error(Fault::internal, "places of this tensor cannot be taken");
    }
    const auto outer = element_count(shape.first(axis));
    const auto length = static_cast<std::size_t>(shape[axis]);
    const auto run = element_count(shape.subspan(axis + 1)) * (bits(dtype) / 8);
    std::vector<std::byte> taken(outer * places.size() * run);
    auto to = taken.begin();
    for (std::size_t i = 0; i < outer; ++i) {
        for (const auto place : places) {
            const auto from = (i * length + static_cast<std::size_t>(place)) * run;
            to = std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(from), run, to);
        }
    }
    return taken;
}

}  // namespace trocar
