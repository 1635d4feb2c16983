#include "util/difference_axes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "util/corners.h"
#include "util/elements.h"

namespace trocar {

namespace {

// A shape around one of its axes.
struct Axis {
    std::size_t place = 0;
    std::size_t outer = 1;
    std::size_t length = 1;
    std::size_t inner = 1;  // in numbers
};

Axis axis_of(const Shape& shape, std::size_t place, std::size_t per_element) {
    Axis axis{.place = place, .inner = per_element};
    for (std::size_t i = 0; i < shape.size(); ++i) {
        const auto length = static_cast<std::size_t>(shape[i]);
        (i < place ? axis.outer : i == place ? axis.length : axis.inner) *= length;
    }
    return axis;
}

struct ChannelSums {
    double max_abs = -1;  // -1: no finite numbers
    std::uint64_t mismatches = 0;
    bool operator<(const ChannelSums& other) const {
        return mismatches != other.mismatches ? mismatches < other.mismatches
                                              : max_abs < other.max_abs;
    }
};

// The channels `first`… of all.
class Channels {
public:
    Channels(const TensorPair& pair, const Axis& axis, const Tolerance& tolerance)
        : pair_(pair), axis_(axis), tolerance_(tolerance) {}

    std::vector<ChannelSums> sums(std::size_t first, std::size_t count) {
        std::vector<ChannelSums> channels(count);
        for (std::size_t outer = 0; outer < axis_.outer; ++outer) {
            const auto begin = (outer * axis_.length + first) * axis_.inner;
            const auto end = begin + count * axis_.inner;
            for (auto at = begin; at < end; at += TensorPair::block_numbers) {
                pair_.read(at, std::min(TensorPair::block_numbers, end - at), block_);
                for (std::size_t i = 0; i < block_.count; ++i) {
                    add(channels[(at + i - begin) / axis_.inner], i);
                }
            }
        }
        return channels;
    }

private:
    void add(ChannelSums& channel, std::size_t i) const {
        const auto odd = block_.odd_count > 0 ? block_.odd[i] : TensorPair::Odd::no;
        if (odd != TensorPair::Odd::no) {
            channel.mismatches += odd != TensorPair::Odd::same ? 1 : 0;
            return;
        }
        channel.max_abs = std::max(channel.max_abs, block_.off[i]);
        channel.mismatches += exceeds(std::abs(block_.a[i]), block_.off[i], tolerance_) ? 1 : 0;
    }

    const TensorPair& pair_;
    Axis axis_;
    Tolerance tolerance_;
    TensorPair::Block block_;
};

// The places of the largest numbers of a row, the largest first.
template <class T>
class Tops {
public:
    explicit Tops(std::size_t most) : most_(most) {}

    const std::vector<std::size_t>& of(std::span<const T> row) {
        places_.clear();
        for (std::size_t i = 0; i < row.size(); ++i) {
            if (places_.size() == most_ && !is_before(row[i], row[places_.back()])) {
                continue;
            }
            if (places_.size() == most_) {
                places_.pop_back();
            }
            auto at = places_.end();
            while (at != places_.begin() && is_before(row[i], row[*(at - 1)])) {
                --at;
            }
            places_.insert(at, i);
        }
        return places_;
    }

private:
    static bool is_before(T x, T y) {
        return x > y || (y != y && x == x);  // NaN comes last
    }

    std::size_t most_;
    std::vector<std::size_t> places_;
};

struct Agreement {
    std::size_t first = 0;   // rows whose largest is in the same place
    std::size_t common = 0;  // places in both, of all rows
};

void add_row(const std::vector<std::size_t>& a, const std::vector<std::size_t>& b,
             Agreement& agreement) {
    agreement.first += a.front() == b.front() ? 1 : 0;
    for (const auto place : a) {
        agreement.common += std::find(b.begin(), b.end(), place) != b.end() ? 1 : 0;
    }
}

void read_row(DType dtype, Bytes bytes, std::size_t first, std::vector<double>& row) {
    decode(dtype, bytes, first, row);
}

template <class T>
void read_row(DType /*dtype*/, Bytes bytes, std::size_t first, std::vector<T>& row) {
    std::memcpy(row.data(), bytes.data() + first * sizeof(T), row.size() * sizeof(T));
}

template <class T>
Agreement agreement_as(const TensorPair& pair, std::size_t rows, std::size_t length,
                       std::size_t top_k) {
    Agreement agreement;
    std::vector<T> left(length);
    std::vector<T> right(length);
    Tops<T> tops_a(top_k);
    Tops<T> tops_b(top_k);
    for (std::size_t row = 0; row < rows; ++row) {
        read_row(pair.dtype(), pair.a(), row * length, left);
        read_row(pair.dtype(), pair.b(), row * length, right);
        add_row(tops_a.of(left), tops_b.of(right), agreement);
    }
    return agreement;
}

}  // namespace

void find_worst_channel(const TensorPair& pair, const Shape& shape, const Tolerance& tolerance,
                        Difference& found) {
    constexpr std::size_t most_channels = 1 << 16;
    const bool off = found.max_abs > 0 || found.mismatches > 0;
    if (shape.empty() || !off) {
        return;
    }
    const auto axis = axis_of(shape, shape.size() >= 3 ? 1 : shape.size() - 1, pair.per_element());
    Channels channels(pair, axis, tolerance);
    ChannelSums worst;
    std::size_t index = axis.length;
    for (std::size_t first = 0; first < axis.length; first += most_channels) {
        const auto sums = channels.sums(first, std::min(most_channels, axis.length - first));
        const auto best = std::max_element(sums.begin(), sums.end());
        if (index == axis.length || worst < *best) {
            worst = *best;
            index = first + static_cast<std::size_t>(best - sums.begin());
        }
    }
    auto& channel = found.worst_channel.emplace();
    channel.axis = axis.place;
    channel.index = index;
    channel.max_abs = worst.max_abs >= 0 ? worst.max_abs : Difference::none;
    channel.share = found.mismatches > 0 ? static_cast<double>(worst.mismatches) /
                                               static_cast<double>(found.mismatches)
                                         : Difference::none;
}

void compare_rows(const TensorPair& pair, const Shape& shape, std::size_t top_k,
                  Difference& found) {
    if (shape.empty() || pair.count() == 0 || pair.per_element() != 1) {
        return;
    }
    const auto length = static_cast<std::size_t>(shape.back());
    const auto rows = pair.count() / length;
    found.top_k = std::min(top_k, length);
    const auto most = std::max<std::size_t>(found.top_k, 1);
    const auto agreement =
        pair.dtype() == DType::i64   ? agreement_as<std::int64_t>(pair, rows, length, most)
        : pair.dtype() == DType::u64 ? agreement_as<std::uint64_t>(pair, rows, length, most)
                                     : agreement_as<double>(pair, rows, length, most);
    found.argmax_agreement = static_cast<double>(agreement.first) / static_cast<double>(rows);
    if (found.top_k > 0) {
        found.top_overlap =
            static_cast<double>(agreement.common) / static_cast<double>(rows * found.top_k);
    }
}

}  // namespace trocar
