#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>

#include "trocar/value.h"

#pragma GCC visibility push(default)
namespace trocar {

class Port;

// How the finite numbers of a tensor are spread between the smallest and the largest.
struct Distribution {
    // Numbers of the tensor: the smallest one that at least this share of all does not exceed.
    double p1 = 0;
    double p50 = 0;
    double p99 = 0;
    // Of 256 equal bins from min to max: 8 bits when they are filled alike, 0 when one holds all.
    double entropy_bits = 0;
    std::array<std::uint64_t, 64> histogram{};  // equal bins from min to max
    std::size_t numbers = 0;  // that were looked at; fewer than there are: an even sample
};

// What the numbers of a tensor are like. A complex element counts as two numbers, a 64-bit integer
// beyond 2^53 is rounded. All from `min` on is said of the finite numbers, and NaN without any.
struct Statistics {
    static constexpr double none = std::numeric_limits<double>::quiet_NaN();

    std::size_t count = 0;
    std::size_t nans = 0;
    std::size_t positive_infinities = 0;
    std::size_t negative_infinities = 0;
    std::size_t zeros = 0;
    std::size_t denormals = 0;  // of the tensor's own type

    double min = none;
    double max = none;
    double max_abs = none;
    double mean = none;
    double std = none;  // of all numbers, not of a sample of a larger population
    double rms = none;
    double l1 = none;
    double l2 = none;
    std::optional<Distribution> distribution;  // absent: not wanted, or no finite numbers

    std::size_t infinities() const { return positive_infinities + negative_infinities; }
    std::size_t bad() const { return nans + infinities(); }
    std::size_t finite() const { return count - bad(); }
};

struct StatisticsOptions {
    enum class Spread {
        none,
        sampled,  // of all numbers up to `sample` of them, else of an even sample of that many
        exact,
    };
    Spread spread = Spread::sampled;
    std::size_t sample = 1024;
    // For large tensors; the result does not depend on either. `together` calls its second
    // argument with every part, as Port::together does, in the place of threads of our own.
    int threads = 1;
    std::function<void(std::size_t parts, const std::function<void(std::size_t)>&)> together = {};
};

// Can statistics be made of it? Dense host tensors of numbers.
bool has_statistics(const Value& value);

// One pass over the numbers; the same bits whatever the machine's vector instructions are. Throws
// Error(usage) unless `has_statistics`.
Statistics statistics(const Value& value, const StatisticsOptions& options = {});
// The same of dense bytes.
Statistics statistics(DType dtype, Bytes bytes, std::size_t element_count,
                      const StatisticsOptions& options = {});
// The same of an output of the op at a port, with the threads that the port has.
Statistics statistics(const Port& port, std::size_t slot, StatisticsOptions options = {});

// Single answers, faster than all of them.
double max_abs(const Value& value);         // of the finite numbers; NaN without any
std::size_t count_bad(const Value& value);  // NaN and infinities

}  // namespace trocar
#pragma GCC visibility pop
