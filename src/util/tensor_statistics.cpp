#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "trocar/error.h"
#include "trocar/statistics.h"
#include "trocar/tool.h"
#include "util/code_statistics.h"
#include "util/distribution.h"
#include "util/elements.h"
#include "util/number_sums.h"
#include "util/workers.h"

namespace trocar {

namespace {

// Numbers are summed block by block, and the blocks one after the other: rounding errors grow with
// the blocks. A block and what it is decoded to stay in the first cache.
constexpr std::size_t block_numbers = 2048;
// Blocks that one thread does at a time.
constexpr std::size_t part_numbers = 16 * block_numbers;

// The sample is taken in short runs: a line of the cache costs the same for one number or for all.
constexpr std::size_t run_numbers = 8;

// A type whose numbers are read as `float`, and how.
bool as_floats(DType dtype) {
    return dtype == DType::f32 || dtype == DType::c64 || dtype == DType::f16 ||
           dtype == DType::bf16;
}

float float_of_half(std::uint32_t half) {
    const auto magnitude = half & 0x7fff;
    // The exponent goes to its place in a float, whose bias is larger by 112. Multiplying, and not
    // adding to the field, makes denormals right.
    auto number = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
    if (magnitude >= 0x7c00) {
        number = std::bit_cast<float>(0x7f800000 | magnitude << 13);
    }
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(number) | (half & 0x8000) << 16);
}

// Numbers of a tensor as T, block by block.
template <class T>
class Reader {
public:
    Reader(DType dtype, Bytes bytes) : dtype_(dtype), bytes_(bytes) {}

    // Numbers `first`… without a copy where they are stored as T; valid until the next call.
    std::span<const T> block(std::size_t first, std::size_t count) {
        constexpr auto native = sizeof(T) == 4 ? DType::f32 : DType::f64;
        constexpr auto complex = sizeof(T) == 4 ? DType::c64 : DType::c128;
        const auto* at = bytes_.data() + first * sizeof(T);
        const bool aligned = reinterpret_cast<std::uintptr_t>(at) % alignof(T) == 0;
        if ((dtype_ == native || dtype_ == complex) && aligned) {
            return {reinterpret_cast<const T*>(at), count};
        }
        const std::span<T> target(buffer_.data(), count);
        decode_into(first, target);
        return target;
    }

private:
    void decode_into(std::size_t first, std::span<double> target) const {
        decode(dtype_, bytes_, first, target);
    }

    void decode_into(std::size_t first, std::span<float> target) const {
        if (dtype_ != DType::f16 && dtype_ != DType::bf16) {
            std::memcpy(target.data(), bytes_.data() + first * sizeof(float),
                        target.size() * sizeof(float));
            return;
        }
        std::array<std::uint16_t, block_numbers> codes;
        std::memcpy(codes.data(), bytes_.data() + 2 * first, 2 * target.size());
        for (std::size_t i = 0; i < target.size(); ++i) {
            target[i] = dtype_ == DType::f16 ? float_of_half(codes[i])
                                             : std::bit_cast<float>(std::uint32_t{codes[i]} << 16);
        }
    }

    DType dtype_;
    Bytes bytes_;
    std::array<T, block_numbers> buffer_;
};

template <class T>
void add_bad(Statistics& statistics, std::span<const T> numbers) {
    for (const auto number : numbers) {
        if (std::isnan(number)) {
            ++statistics.nans;
        } else if (std::isinf(number)) {
            ++(number > 0 ? statistics.positive_infinities : statistics.negative_infinities);
        }
    }
}

template <class T>
std::vector<T> finite_ones(std::span<const T> numbers) {
    std::vector<T> kept;
    std::copy_if(numbers.begin(), numbers.end(), std::back_inserter(kept),
                 [](T number) { return std::isfinite(number); });
    return kept;
}

// Sums of one block more, by Chan's formula for the deviations.
void merge(NumberSums& total, const NumberSums& block) {
    if (block.count == 0) {
        return;
    }
    if (total.count > 0) {
        const auto before = static_cast<double>(total.count);
        const auto more = static_cast<double>(block.count);
        const double apart = block.sum / more - total.sum / before;
        total.squared_deviations += apart * apart * before * more / (before + more);
    }
    total.squared_deviations += block.squared_deviations;
    total.count += block.count;
    total.zeros += block.zeros;
    total.denormals += block.denormals;
    total.min = std::min(total.min, block.min);
    total.max = std::max(total.max, block.max);
    total.sum += block.sum;
    total.sum_abs += block.sum_abs;
    total.sum_squares += block.sum_squares;
}

void fill(Statistics& statistics, const NumberSums& sums) {
    statistics.zeros = sums.zeros;
    statistics.denormals = sums.denormals;
    if (sums.count == 0) {
        return;
    }
    const auto count = static_cast<double>(sums.count);
    statistics.min = sums.min;
    statistics.max = sums.max;
    statistics.max_abs = std::max(std::abs(sums.min), std::abs(sums.max));
    statistics.mean = std::clamp(sums.sum / count, sums.min, sums.max);
    statistics.std = std::sqrt(sums.squared_deviations / count);
    statistics.rms = std::sqrt(sums.sum_squares / count);
    statistics.l1 = sums.sum_abs;
    statistics.l2 = std::sqrt(sums.sum_squares);
}

// Are the squares of such numbers numbers themselves?
bool squares_fit(const NumberSums& sums) {
    const double top = std::max(std::abs(sums.min), std::abs(sums.max));
    return sums.count == 0 || top == 0 || (top < 1e140 && top > 1e-140);
}

// The long way, for doubles whose squares or sums are too large or too small for a double.
template <class T>
void fill_extreme(Statistics& statistics, Reader<T>& reader, std::size_t count) {
    long double sum = 0;
    long double absolute = 0;
    long double squares = 0;
    const auto each = [&](auto&& work) {
        for (std::size_t first = 0; first < count; first += block_numbers) {
            for (const long double number :
                 reader.block(first, std::min(block_numbers, count - first))) {
                if (std::isfinite(number)) {
                    work(number);
                }
            }
        }
    };
    each([&](long double number) {
        sum += number;
        absolute += std::abs(number);
        squares += number * number;
    });
    const auto finite = static_cast<long double>(statistics.finite());
    const long double mean = sum / finite;
    long double deviations = 0;
    each([&](long double number) { deviations += (number - mean) * (number - mean); });
    statistics.mean = static_cast<double>(mean);
    statistics.std = static_cast<double>(std::sqrt(deviations / finite));
    statistics.rms = static_cast<double>(std::sqrt(squares / finite));
    statistics.l1 = static_cast<double>(absolute);
    statistics.l2 = static_cast<double>(std::sqrt(squares));
}

// All numbers, or an even sample of them.
template <class T>
std::vector<double> spread_numbers(Reader<T>& reader, std::size_t count,
                                   const StatisticsOptions& options) {
    std::vector<double> numbers;
    const auto take = [&](std::size_t first, std::size_t some) {
        const auto block = reader.block(first, some);
        numbers.insert(numbers.end(), block.begin(), block.end());
    };
    const auto runs = options.sample / run_numbers;
    if (options.spread == StatisticsOptions::Spread::exact || count <= options.sample ||
        runs == 0) {
        numbers.reserve(count);
        for (std::size_t first = 0; first < count; first += block_numbers) {
            take(first, std::min(block_numbers, count - first));
        }
        return numbers;
    }
    numbers.reserve(options.sample);
    const auto stride = count / runs;
    for (std::size_t run = 0; run < runs; ++run) {
        // Not at the same place in each stride: rows and channels of a tensor repeat too.
        const auto shift = (run * 0x9e3779b97f4a7c15) >> 32;
        take(run * stride + shift % (stride - run_numbers + 1), run_numbers);
    }
    return numbers;
}

// Sums of some blocks, and what is not finite in them.
struct Part {
    NumberSums sums;
    Statistics bad;
};

template <class T>
void add_part(DType dtype, Bytes bytes, std::size_t first, std::size_t end, Part& part) {
    Reader<T> reader(dtype, bytes);
    const auto normal = static_cast<T>(smallest_normal(dtype));
    for (; first < end; first += block_numbers) {
        const auto block = reader.block(first, std::min(block_numbers, end - first));
        auto sums = sums_of(block, normal);
        if (!sums.finite) {
            add_bad(part.bad, block);
            sums = sums_of(std::span<const T>(finite_ones(block)), normal);
        }
        merge(part.sums, sums);
    }
}

// The sums of all parts, added in order whoever made them.
template <class T>
NumberSums sums_of_parts(DType dtype, Bytes bytes, const StatisticsOptions& options,
                         Statistics& statistics) {
    const auto count = statistics.count;
    std::vector<Part> parts((count + part_numbers - 1) / part_numbers);
    const auto work = [&](std::size_t i) {
        add_part<T>(dtype, bytes, i * part_numbers, std::min(count, (i + 1) * part_numbers),
                    parts[i]);
    };
    if (options.together && parts.size() > 1) {
        options.together(parts.size(), work);
    } else {
        work_together(options.threads, parts.size(), work);
    }
    NumberSums sums;
    for (const auto& part : parts) {
        merge(sums, part.sums);
        statistics.nans += part.bad.nans;
        statistics.positive_infinities += part.bad.positive_infinities;
        statistics.negative_infinities += part.bad.negative_infinities;
    }
    return sums;
}

template <class T>
Statistics of_numbers(DType dtype, Bytes bytes, std::size_t count,
                      const StatisticsOptions& options) {
    Statistics statistics;
    statistics.count = count;
    const auto sums = sums_of_parts<T>(dtype, bytes, options, statistics);
    Reader<T> reader(dtype, bytes);
    fill(statistics, sums);
    if (!squares_fit(sums)) {
        fill_extreme(statistics, reader, count);
    }
    if (options.spread != StatisticsOptions::Spread::none && sums.count > 0) {
        auto numbers = spread_numbers(reader, count, options);
        if (statistics.bad() > 0) {
            numbers = finite_ones(std::span<const double>(numbers));
        }
        if (!numbers.empty()) {
            statistics.distribution = distribution_of(numbers, sums.min, sums.max);
        }
    }
    return statistics;
}

void require_statistics(const Value& value) {
    if (!has_statistics(value)) {
        throw Error(Fault::usage, fmt::format("{} has no statistics", value_text(value)),
                    "dense tensors of numbers in host memory have");
    }
}

// The sums over blocks that `max_abs` and `count_bad` need; calls `work` with each block.
template <class T, class Work>
void each_block(const Value& value, Work&& work) {
    Reader<T> reader(value.dtype(), value.bytes());
    const auto count = number_count(value.dtype(), value.element_count());
    for (std::size_t first = 0; first < count; first += block_numbers) {
        work(reader.block(first, std::min(block_numbers, count - first)));
    }
}

template <class T>
double max_abs_as(const Value& value) {
    double top = Statistics::none;
    each_block<T>(value, [&](std::span<const T> block) {
        double largest = largest_magnitude(block);
        if (!std::isfinite(largest)) {
            const auto finite = finite_ones(block);
            if (finite.empty()) {
                return;
            }
            largest = largest_magnitude(std::span<const T>(finite));
        }
        top = std::isnan(top) ? largest : std::max(top, largest);
    });
    return top;
}

template <class T>
std::size_t count_bad_as(const Value& value) {
    Statistics statistics;
    each_block<T>(value, [&](std::span<const T> block) {
        if (!std::isfinite(largest_magnitude(block))) {
            add_bad(statistics, block);
        }
    });
    return statistics.bad();
}

}  // namespace

bool has_statistics(const Value& value) {
    return value.is_tensor() && is_numeric(value.dtype()) && value.device().is_host();
}

Statistics statistics(DType dtype, Bytes bytes, std::size_t element_count,
                      const StatisticsOptions& options) {
    if (counts_codes(dtype)) {
        return statistics_of_codes(dtype, bytes, element_count,
                                   options.spread != StatisticsOptions::Spread::none);
    }
    const auto count = number_count(dtype, element_count);
    return as_floats(dtype) ? of_numbers<float>(dtype, bytes, count, options)
                            : of_numbers<double>(dtype, bytes, count, options);
}

Statistics statistics(const Value& value, const StatisticsOptions& options) {
    require_statistics(value);
    return statistics(value.dtype(), value.bytes(), value.element_count(), options);
}

Statistics statistics(const Port& port, std::size_t slot, StatisticsOptions options) {
    options.together = [&port](std::size_t parts, const std::function<void(std::size_t)>& work) {
        port.together(parts, work);
    };
    return statistics(port.output(slot), options);
}

double max_abs(const Value& value) {
    require_statistics(value);
    return as_floats(value.dtype()) ? max_abs_as<float>(value) : max_abs_as<double>(value);
}

std::size_t count_bad(const Value& value) {
    require_statistics(value);
    if (!is_float(value.dtype()) && value.dtype() != DType::c64 && value.dtype() != DType::c128) {
        return 0;
    }
    return as_floats(value.dtype()) ? count_bad_as<float>(value) : count_bad_as<double>(value);
}

}  // namespace trocar
