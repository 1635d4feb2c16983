#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "trocar/value.h"

namespace trocar {

// Two tensors of one type and shape, read block by block as numbers.
class TensorPair {
public:
    static constexpr std::size_t block_numbers = 512;

    // What is not finite on both sides.
    enum class Odd : std::uint8_t { no, same, nan, infinity };

    // Numbers `first`…; where one of the two is not finite, all of `a`, `b`, `off` and `ulps` are
    // 0.
    struct Block {
        std::size_t first = 0;
        std::size_t count = 0;
        std::size_t odd_count = 0;
        std::array<double, block_numbers> a;
        std::array<double, block_numbers> b;
        std::array<double, block_numbers> off;  // |b − a|
        std::array<std::uint64_t, block_numbers> ulps;
        std::array<Odd, block_numbers> odd;  // only when odd_count > 0
    };

    TensorPair(const Value& a, const Value& b);

    std::size_t count() const { return count_; }  // of numbers
    std::size_t per_element() const { return per_element_; }
    bool has_ulps() const { return ulps_ != Ulps::none; }
    DType dtype() const { return dtype_; }
    Bytes a() const { return a_; }
    Bytes b() const { return b_; }

    // `numbers` ≤ block_numbers. `ulps` are those of `read` once `read_ulps` was called.
    void read(std::size_t first, std::size_t numbers, Block& block) const;
    void read_ulps(Block& block) const;

private:
    enum class Ulps { none, whole, packed, without_sign };

    Bytes a_;
    Bytes b_;
    DType dtype_;
    std::size_t count_ = 0;
    std::size_t per_element_ = 1;
    Ulps ulps_ = Ulps::none;
};

}  // namespace trocar
