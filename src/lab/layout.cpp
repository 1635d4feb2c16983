#include "lab/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "trocar/statistics.h"
#include "util/text.h"

namespace trocar::lab {

namespace {

using Order = std::vector<std::size_t>;
constexpr std::size_t most_axes = 5;
constexpr std::size_t probes = 256;

// Orders of the axes, those that engines use first.
std::vector<Order> orders(std::size_t rank) {
    Order order(rank);
    std::iota(order.begin(), order.end(), 0);
    auto last = order;   // channels last: 0, 2, 3, 1
    auto first = order;  // channels first: 0, 3, 1, 2
    if (rank > 2) {
        std::rotate(last.begin() + 1, last.begin() + 2, last.end());
        std::rotate(first.begin() + 1, first.end() - 1, first.end());
    }
    std::vector<Order> all{last, first};
    do {
        all.push_back(order);
    } while (std::next_permutation(order.begin(), order.end()));
    return all;
}

// Where an element of the transposed tensor stands in the one it was made of.
class Places {
public:
    Places(const Shape& shape, const Order& order) {
        std::vector<std::size_t> strides(shape.size(), 1);
        for (auto axis = shape.size(); axis-- > 1;) {
            strides[axis - 1] = strides[axis] * static_cast<std::size_t>(shape[axis]);
        }
        for (const auto axis : order) {
            lengths_.push_back(static_cast<std::size_t>(shape[axis]));
            strides_.push_back(strides[axis]);
        }
    }
    std::size_t operator()(std::size_t place) const {
        std::size_t from = 0;
        for (auto i = lengths_.size(); i-- > 0;) {
            from += place % lengths_[i] * strides_[i];
            place /= lengths_[i];
        }
        return from;
    }

private:
    std::vector<std::size_t> lengths_;
    std::vector<std::size_t> strides_;
};

// Some elements, as a list.
template <class Which>
Value gathered(const Value& from, std::size_t count, const Which& which) {
    const auto size = bits(from.dtype()) / 8;
    const auto bytes = from.bytes();
    std::vector<std::byte> all(count * size);
    for (std::size_t i = 0; i < count; ++i) {
        std::memcpy(all.data() + i * size, bytes.data() + which(i) * size, size);
    }
    return Value::copy(from.dtype(), {static_cast<std::int64_t>(count)}, all);
}

bool agree(const Value& reference, const Value& found, const Order& order,
           const Tolerance& tolerance) {
    const Places places(reference.shape(), order);
    const auto count = reference.element_count();
    const auto few = std::min(count, probes);
    // A few that are far from each other tell of most orders that they are not the one.
    for (const auto checked : {few, count}) {
        const auto place = [&](std::size_t i) {
            return checked == count ? i : i * (count / few) + i % (count / few);
        };
        const auto a = gathered(reference, checked, [&](auto i) { return places(place(i)); });
        const auto b = gathered(found, checked, place);
        if (!difference(a, b, tolerance).within()) {
            return false;
        }
    }
    return true;
}

std::string name_of(const Order& order) {
    if (order == Order{0, 2, 3, 1}) {
        return " (NHWC)";
    }
    if (order == Order{0, 2, 3, 4, 1}) {
        return " (NDHWC)";
    }
    if (order == Order{0, 2, 1}) {
        return " (NWC)";
    }
    return order == Order{0, 3, 1, 2} || order == Order{0, 4, 1, 2, 3} ? " (channels first)" : "";
}

}  // namespace

std::string layout_hint(const Value& reference, const Value& found, const Tolerance& tolerance) {
    if (!reference.is_tensor() || !found.is_tensor() || reference.dtype() != found.dtype() ||
        !has_statistics(reference) || !has_statistics(found) || bits(found.dtype()) % 8 != 0) {
        return {};
    }
    const auto shape = reference.shape();
    const auto count = reference.element_count();
    if (shape.empty() || shape.size() > most_axes || count < 2 || found.element_count() != count) {
        return {};
    }
    auto a = shape;
    auto b = found.shape();
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    const bool permuted = a == b;
    for (const auto& order : orders(shape.size())) {
        Shape then;
        for (const auto axis : order) {
            then.push_back(shape[axis]);
        }
        const bool as_it_is = std::is_sorted(order.begin(), order.end());
        // Where the shape tells, only orders that lead to it are meant.
        const bool meant = found.shape() == shape ? !as_it_is : !permuted || then == found.shape();
        if (!meant || !agree(reference, found, order, tolerance)) {
            continue;
        }
        return as_it_is ? "the same elements under another shape"
                        : fmt::format("looks like a transposed layout{}: matches after perm [{}]",
                                      name_of(order), join(order, ","));
    }
    return {};
}

}  // namespace trocar::lab
