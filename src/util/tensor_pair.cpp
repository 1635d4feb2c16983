#include "util/tensor_pair.h"

#include <cmath>
#include <cstring>

#include "util/elements.h"
#include "util/pair_sums.h"

namespace trocar {

namespace {

// Differences of integers that are no doubles.
template <class T>
void exact_differences(Bytes a, Bytes b, TensorPair::Block& block) {
    for (std::size_t i = 0; i < block.count; ++i) {
        T left;
        T right;
        std::memcpy(&left, a.data() + (block.first + i) * sizeof(T), sizeof(T));
        std::memcpy(&right, b.data() + (block.first + i) * sizeof(T), sizeof(T));
        const auto low = static_cast<std::uint64_t>(left < right ? left : right);
        const auto high = static_cast<std::uint64_t>(left < right ? right : left);
        block.off[i] = static_cast<double>(high - low);
    }
}

// Clears what is not finite.
void set_odd_apart(TensorPair::Block& block) {
    using Odd = TensorPair::Odd;
    for (std::size_t i = 0; i < block.count; ++i) {
        const double a = block.a[i];
        const double b = block.b[i];
        if (std::isfinite(a) && std::isfinite(b)) {
            block.odd[i] = Odd::no;
            continue;
        }
        const bool same = a == b || (std::isnan(a) && std::isnan(b));
        block.odd[i] = same ? Odd::same : std::isnan(a) || std::isnan(b) ? Odd::nan : Odd::infinity;
        block.a[i] = block.b[i] = block.off[i] = 0;
        ++block.odd_count;
    }
}

// Steps between codes whose highest bit is the sign: neighbours differ by one, and both zeros are
// one place.
template <class Code>
std::uint64_t steps(Code a, Code b) {
    constexpr auto sign = static_cast<Code>(Code{1} << (8 * sizeof(Code) - 1));
    const auto x = static_cast<std::uint64_t>(a & static_cast<Code>(~sign));
    const auto y = static_cast<std::uint64_t>(b & static_cast<Code>(~sign));
    const auto apart = x < y ? y - x : x - y;
    return ((a ^ b) & sign) != 0 ? x + y : apart;
}

template <class Code>
void whole_steps(Bytes a, Bytes b, TensorPair::Block& block) {
    for (std::size_t i = 0; i < block.count; ++i) {
        Code left;
        Code right;
        std::memcpy(&left, a.data() + (block.first + i) * sizeof(Code), sizeof(Code));
        std::memcpy(&right, b.data() + (block.first + i) * sizeof(Code), sizeof(Code));
        block.ulps[i] = steps(left, right);
    }
}

// A code of less than 8 bits, at the top of a byte.
std::uint8_t packed_code(Bytes bytes, std::size_t width, std::size_t at) {
    const auto bit = at * width;
    auto word = std::to_integer<std::uint32_t>(bytes[bit / 8]);
    if (bit % 8 + width > 8) {
        word |= std::to_integer<std::uint32_t>(bytes[bit / 8 + 1]) << 8;
    }
    return static_cast<std::uint8_t>(word >> (bit % 8) << (8 - width));
}

}  // namespace

TensorPair::TensorPair(const Value& a, const Value& b)
    : a_(a.bytes()), b_(b.bytes()), dtype_(a.dtype()) {
    count_ = number_count(dtype_, a.element_count());
    per_element_ = number_count(dtype_, 1);
    if (dtype_ == DType::f8e8m0) {
        ulps_ = Ulps::without_sign;
    } else if (per_element_ == 2) {
        ulps_ = Ulps::whole;
    } else if (is_float(dtype_)) {
        ulps_ = bits(dtype_) % 8 == 0 ? Ulps::whole : Ulps::packed;
    }
}

void TensorPair::read(std::size_t first, std::size_t numbers, Block& block) const {
    block.first = first;
    block.count = numbers;
    block.odd_count = 0;
    if (dtype_ == DType::f32 || dtype_ == DType::c64) {
        widen_floats(a_.data() + first * sizeof(float), numbers, block.a.data());
        widen_floats(b_.data() + first * sizeof(float), numbers, block.b.data());
    } else {
        decode(dtype_, a_, first, std::span(block.a).first(numbers));
        decode(dtype_, b_, first, std::span(block.b).first(numbers));
    }
    if (dtype_ == DType::i64) {
        exact_differences<std::int64_t>(a_, b_, block);
        return;
    }
    if (dtype_ == DType::u64) {
        exact_differences<std::uint64_t>(a_, b_, block);
        return;
    }
    if (!differences_of(block.a.data(), block.b.data(), block.off.data(), numbers)) {
        set_odd_apart(block);
    }
}

void TensorPair::read_ulps(Block& block) const {
    if (ulps_ == Ulps::packed) {
        const auto width = bits(dtype_);
        for (std::size_t i = 0; i < block.count; ++i) {
            const auto apart = steps(packed_code(a_, width, block.first + i),
                                     packed_code(b_, width, block.first + i));
            block.ulps[i] = apart >> (8 - width);
        }
    } else if (ulps_ == Ulps::without_sign) {
        for (std::size_t i = 0; i < block.count; ++i) {
            block.ulps[i] =
                static_cast<std::uint64_t>(std::abs(std::to_integer<int>(a_[block.first + i]) -
                                                    std::to_integer<int>(b_[block.first + i])));
        }
    } else {
        switch (bits(dtype_) / 8 / per_element_) {
            case 1:
                whole_steps<std::uint8_t>(a_, b_, block);
                break;
            case 2:
                whole_steps<std::uint16_t>(a_, b_, block);
                break;
            case 4:
                steps_between_floats(a_.data() + block.first * sizeof(float),
                                     b_.data() + block.first * sizeof(float), block.count,
                                     block.ulps.data());
                break;
            default:
                whole_steps<std::uint64_t>(a_, b_, block);
                break;
        }
    }
    for (std::size_t i = 0; i < block.count && block.odd_count > 0; ++i) {
        block.ulps[i] = block.odd[i] == Odd::no ? block.ulps[i] : 0;
    }
}

}  // namespace trocar
