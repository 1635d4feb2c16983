#include "util/difference_axes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <type_traits>
#include <vector>

#include "util/elements.h"
#include "util/pair_sums.h"

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

// Of some channels, side by side.
struct ChannelSums {
    std::vector<double> max_abs;
    std::vector<std::uint64_t> mismatches;
    std::vector<std::uint64_t> odd;  // numbers that are not finite on both sides; empty: none
};

// The largest of some numbers from 0 on, in chains that do not wait for one another.
double largest(const double* numbers, std::size_t count) {
    std::array<double, 4> tops{};
    std::size_t i = 0;
    for (; i + tops.size() <= count; i += tops.size()) {
        for (std::size_t lane = 0; lane < tops.size(); ++lane) {
            tops[lane] = std::max(tops[lane], numbers[i + lane]);
        }
    }
    for (; i < count; ++i) {
        tops[0] = std::max(tops[0], numbers[i]);
    }
    return *std::max_element(tops.begin(), tops.end());
}

class Channels {
public:
    Channels(const TensorPair& pair, const Axis& axis, const Tolerance& tolerance)
        : pair_(pair), axis_(axis), bounds_(tolerance) {}

    // Of the channels `first`…
    ChannelSums sums(std::size_t first, std::size_t count) {
        ChannelSums channels{std::vector<double>(count), std::vector<std::uint64_t>(count), {}};
        for (std::size_t outer = 0; outer < axis_.outer; ++outer) {
            const auto begin = (outer * axis_.length + first) * axis_.inner;
            const auto end = begin + count * axis_.inner;
            for (auto at = begin; at < end; at += TensorPair::block_numbers) {
                pair_.read(at, std::min(TensorPair::block_numbers, end - at), block_);
                mismatches_of(block_.a.data(), block_.off.data(), block_.count, bounds_,
                              bad_.data());
                if (block_.odd_count > 0) {
                    add_odd(at - begin, channels);
                }
                add(at - begin, channels);
            }
        }
        return channels;
    }

private:
    // The block begins `place` numbers after the first one of `channels`.
    void add(std::size_t place, ChannelSums& channels) const {
        if (axis_.inner == 1) {
            auto* const tops = channels.max_abs.data() + place;
            auto* const mismatches = channels.mismatches.data() + place;
            for (std::size_t i = 0; i < block_.count; ++i) {
                tops[i] = std::max(tops[i], block_.off[i]);
                mismatches[i] += bad_[i];
            }
            return;
        }
        auto channel = place / axis_.inner;
        auto left = axis_.inner - place % axis_.inner;  // of this channel, side by side
        for (std::size_t i = 0; i < block_.count; ++channel) {
            const auto run = std::min(block_.count - i, left);
            auto& top = channels.max_abs[channel];
            top = std::max(top, largest(block_.off.data() + i, run));
            const auto* const bad = bad_.data() + i;
            channels.mismatches[channel] += std::accumulate(bad, bad + run, std::uint64_t{0});
            i += run;
            left = axis_.inner;
        }
    }

    void add_odd(std::size_t place, ChannelSums& channels) {
        channels.odd.resize(channels.max_abs.size());
        for (std::size_t i = 0; i < block_.count; ++i) {
            if (block_.odd[i] != TensorPair::Odd::no) {
                bad_[i] = block_.odd[i] != TensorPair::Odd::same ? 1 : 0;
                ++channels.odd[(place + i) / axis_.inner];
            }
        }
    }

    const TensorPair& pair_;
    Axis axis_;
    Bounds bounds_;
    TensorPair::Block block_;
    std::array<std::uint64_t, TensorPair::block_numbers> bad_;
};

// The places of the largest numbers of a row that comes in pieces.
template <class T>
class Tops {
public:
    struct Top {
        T number;
        std::size_t place;
    };

    explicit Tops(std::size_t most) : most_(most) { tops_.reserve(most + 1); }

    void clear() { tops_.clear(); }
    const std::vector<Top>& tops() const { return tops_; }  // the largest first

    void add(std::span<const T> numbers, std::size_t first) {
        std::size_t i = 0;
        for (; i < numbers.size() && tops_.size() < most_; ++i) {
            insert(numbers[i], first + i);
        }
        constexpr std::size_t step = 16;
        for (; i < numbers.size(); i += step) {
            const auto some = numbers.subspan(i, std::min(step, numbers.size() - i));
            if (some.size() < step || any_above(some.data(), step)) {
                add_some(some, first + i);
            }
        }
    }

private:
    // As vectors: nearly always none is. NaN counts as above.
    bool any_above(const T* numbers, std::size_t count) const {
        const T last = tops_.back().number;
        unsigned any = 0;
        for (std::size_t i = 0; i < count; ++i) {
            any |= numbers[i] <= last ? 0U : 1U;
        }
        return any != 0;
    }

    void add_some(std::span<const T> numbers, std::size_t first) {
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            if (is_before(numbers[i], tops_.back().number)) {
                tops_.pop_back();
                insert(numbers[i], first + i);
            }
        }
    }

    // NaN comes last.
    static bool is_before(T x, T y) { return !(x <= y) && x == x; }

    void insert(T number, std::size_t place) {
        auto at = tops_.size();
        tops_.push_back({number, place});
        for (; at > 0 && is_before(number, tops_[at - 1].number); --at) {
            tops_[at] = tops_[at - 1];
        }
        tops_[at] = {number, place};
    }

    std::size_t most_;
    std::vector<Top> tops_;
};

struct Agreement {
    std::size_t first = 0;   // rows whose largest is in the same place
    std::size_t common = 0;  // places in both, of all rows
};

// Rows of both, whose numbers are compared as T.
template <class T>
class Rows {
public:
    Rows(const TensorPair& pair, std::size_t length, std::size_t top_k)
        : pair_(pair), length_(length), a_(top_k), b_(top_k) {}

    Agreement agreement() {
        Agreement agreement;
        for (std::size_t row = 0; row < pair_.count(); row += length_) {
            find(pair_.a(), row, a_);
            find(pair_.b(), row, b_);
            agreement.first += a_.tops()[0].place == b_.tops()[0].place ? 1 : 0;
            for (const auto& top : a_.tops()) {
                agreement.common += has(b_.tops(), top.place) ? 1 : 0;
            }
        }
        return agreement;
    }

private:
    static bool has(const std::vector<typename Tops<T>::Top>& tops, std::size_t place) {
        return std::any_of(tops.begin(), tops.end(),
                           [&](const auto& top) { return top.place == place; });
    }

    void find(Bytes bytes, std::size_t row, Tops<T>& tops) {
        tops.clear();
        for (std::size_t i = 0; i < length_; i += buffer_.size()) {
            tops.add(read(bytes, row + i, std::min(buffer_.size(), length_ - i)), i);
        }
    }

    // Without a copy where the numbers are stored as T.
    std::span<const T> read(Bytes bytes, std::size_t first, std::size_t count) {
        const auto piece = std::span(buffer_).first(count);
        if constexpr (std::is_same_v<T, double>) {
            decode(pair_.dtype(), bytes, first, piece);
            return piece;
        } else {
            const auto* const at = bytes.data() + first * sizeof(T);
            if (reinterpret_cast<std::uintptr_t>(at) % alignof(T) == 0) {
                return {reinterpret_cast<const T*>(at), count};
            }
            std::memcpy(piece.data(), at, count * sizeof(T));
            return piece;
        }
    }

    const TensorPair& pair_;
    std::size_t length_;
    Tops<T> a_;
    Tops<T> b_;
    std::array<T, 1024> buffer_;
};

Agreement agreement_of(const TensorPair& pair, std::size_t length, std::size_t top_k) {
    switch (pair.dtype()) {
        case DType::f32:
            return Rows<float>(pair, length, top_k).agreement();
        case DType::i64:
            return Rows<std::int64_t>(pair, length, top_k).agreement();
        case DType::u64:
            return Rows<std::uint64_t>(pair, length, top_k).agreement();
        default:
            return Rows<double>(pair, length, top_k).agreement();
    }
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
    double top = -1;  // less than any: no finite numbers
    std::uint64_t most = 0;
    std::size_t index = 0;
    for (std::size_t first = 0; first < axis.length; first += most_channels) {
        const auto sums = channels.sums(first, std::min(most_channels, axis.length - first));
        for (std::size_t i = 0; i < sums.max_abs.size(); ++i) {
            const bool finite = sums.odd.empty() || sums.odd[i] < axis.outer * axis.inner;
            const double max_abs = finite ? sums.max_abs[i] : -1;
            const auto mismatches = sums.mismatches[i];
            if (mismatches > most || (mismatches == most && max_abs > top)) {
                most = mismatches;
                top = max_abs;
                index = first + i;
            }
        }
    }
    auto& channel = found.worst_channel.emplace();
    channel.axis = axis.place;
    channel.index = index;
    channel.max_abs = top >= 0 ? top : Difference::none;
    channel.share = found.mismatches > 0
                        ? static_cast<double>(most) / static_cast<double>(found.mismatches)
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
    if (std::equal(pair.a().begin(), pair.a().end(), pair.b().begin(), pair.b().end())) {
        found.argmax_agreement = 1;
        if (found.top_k > 0) {
            found.top_overlap = 1;
        }
        return;
    }
    // All places of a row are in both: then only the first is looked for.
    const bool all = found.top_k == length;
    const auto agreement =
        agreement_of(pair, length, all ? 1 : std::max(found.top_k, std::size_t{1}));
    found.argmax_agreement = static_cast<double>(agreement.first) / static_cast<double>(rows);
    if (found.top_k > 0) {
        found.top_overlap =
            all ? 1
                : static_cast<double>(agreement.common) / static_cast<double>(rows * found.top_k);
    }
}

}  // namespace trocar
