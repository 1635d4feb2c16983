#include "engines/reference/windows.h"

#include <algorithm>

namespace trocar::reference {

namespace {

// Sizes in models are small; sums and products of these cannot overflow.
constexpr std::int64_t largest = std::int64_t{1} << 28;

void check_range(const Integers& list, std::size_t rank, std::int64_t lowest, const char* what) {
    require(list.size() == rank, what);
    for (const auto number : list) {
        require(number >= lowest && number <= largest, what);
    }
}

std::int64_t position_count(const Geometry& g, std::size_t axis, bool ceil_mode) {
    const auto room = g.picture[axis] + g.before[axis] + g.after[axis] - g.extent(axis);
    if (room < 0) {
        return 0;
    }
    auto positions = room / g.strides[axis] + 1;
    if (ceil_mode && room % g.strides[axis] != 0) {
        // A window that starts behind the picture does not count.
        if (positions * g.strides[axis] < g.picture[axis] + g.before[axis]) {
            ++positions;
        }
    }
    return positions;
}

}  // namespace

Geometry window_of(const Call& call, const Shape& picture, const Shape& kernel) {
    const auto rank = picture.size();
    Geometry g;
    g.picture = picture;
    g.kernel = kernel;
    g.strides = call.integers("strides").value_or(Integers(rank, 1));
    g.dilations = call.integers("dilations").value_or(Integers(rank, 1));
    const auto pads = call.integers("pads").value_or(Integers(2 * rank, 0));
    check_range(picture, rank, 0, "the picture is too large");
    check_range(kernel, rank, 1, "the kernel does not fit the picture's dimensions");
    check_range(g.strides, rank, 1, "the strides do not fit the picture's dimensions");
    check_range(g.dilations, rank, 1, "the dilations do not fit the picture's dimensions");
    check_range(pads, 2 * rank, 0, "the pads do not fit the picture's dimensions");
    g.before.assign(pads.begin(), pads.begin() + to_integer(rank));
    g.after.assign(pads.begin() + to_integer(rank), pads.end());
    return g;
}

void place(const Call& call, Geometry& g, bool ceil_mode) {
    const auto mode = call.text("auto_pad", "NOTSET");
    require(mode == "NOTSET" || mode == "VALID" || mode == "SAME_UPPER" || mode == "SAME_LOWER",
            "there is no such auto_pad");
    g.positions.resize(g.picture.size());
    for (std::size_t i = 0; i < g.picture.size(); ++i) {
        if (mode != "NOTSET") {
            g.before[i] = g.after[i] = 0;
        }
        if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
            const auto positions = (g.picture[i] + g.strides[i] - 1) / g.strides[i];
            const auto total = std::max<std::int64_t>(
                (positions - 1) * g.strides[i] + g.extent(i) - g.picture[i], 0);
            g.before[i] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
            g.after[i] = total - g.before[i];
            g.positions[i] = positions;
        } else {
            g.positions[i] = position_count(g, i, ceil_mode);
        }
    }
    count(g.positions);
}

Windows::Windows(const Geometry& g)
    : kernel_(g.kernel),
      shape_(g.positions),
      taps_(count(g.kernel)),
      positions_(count(g.positions)),
      picture_(count(g.picture)) {
    const auto strides = strides_of(g.picture);
    for (std::size_t axis = 0; axis < g.picture.size(); ++axis) {
        Integers offsets(count({g.kernel[axis], g.positions[axis]}));
        std::size_t i = 0;
        for (std::int64_t tap = 0; tap < g.kernel[axis]; ++tap) {
            for (std::int64_t p = 0; p < g.positions[axis]; ++p) {
                const auto at = p * g.strides[axis] - g.before[axis] + tap * g.dilations[axis];
                offsets[i++] = at >= 0 && at < g.picture[axis] ? at * strides[axis] : outside;
            }
        }
        offsets_.push_back(std::move(offsets));
    }
}

void Windows::read(std::size_t tap, std::size_t first, std::span<std::int64_t> places) const {
    if (places.empty()) {
        return;
    }
    std::fill(places.begin(), places.end(), 0);
    auto tap_rest = tap;
    std::size_t inner = 1;  // positions of the dimensions further in
    for (std::size_t axis = kernel_.size(); axis-- > 0;) {
        const auto size = to_size(shape_[axis]);
        const auto* row = offsets_[axis].data() + tap_rest % to_size(kernel_[axis]) * size;
        tap_rest /= to_size(kernel_[axis]);
        auto along = first / inner % size;
        auto within = first % inner;
        for (auto& place : places) {
            place = place == outside || row[along] == outside ? outside : place + row[along];
            if (++within == inner) {
                within = 0;
                along = along + 1 == size ? 0 : along + 1;
            }
        }
        inner *= size;
    }
}

}  // namespace trocar::reference
