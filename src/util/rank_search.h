#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace trocar {

// Finds the number of a rank among many, in some passes over them and little memory. Numbers are
// unsigned; doubles from 0 on are in the same order as their bits. Zeros do not count: there are
// often many.
class RankSearch {
public:
    // The `rank`th one, from 1, is among those in [low, low + 2^width), of which there are `count`.
    RankSearch(std::uint64_t rank, std::uint64_t low, int width, std::uint64_t count);

    bool found() const { return found_; }
    std::uint64_t number() const { return low_; }

    // A pass: all numbers, then the end.
    void add(std::span<const std::uint64_t> numbers);
    void end_pass();

private:
    static constexpr std::uint64_t most_kept = 1 << 16;
    static constexpr int step_bits = 12;

    void begin_pass();

    std::uint64_t rank_;
    std::uint64_t low_;
    int width_;
    std::uint64_t count_;
    bool found_ = false;
    std::vector<std::uint64_t> kept_;    // the numbers themselves, when there are few
    std::vector<std::uint64_t> counts_;  // else how many there are in each part of the range
};

}  // namespace trocar
