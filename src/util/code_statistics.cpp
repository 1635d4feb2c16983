#include "util/code_statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "util/distribution.h"
#include "util/elements.h"

namespace trocar {

namespace {

using CodeCounts = std::array<std::uint64_t, 256>;

// Four tables: the same byte again and again would otherwise wait for its own last addition.
CodeCounts count_bytes(Bytes bytes) {
    std::array<CodeCounts, 4> tables{};
    const auto* at = reinterpret_cast<const unsigned char*>(bytes.data());
    std::size_t i = 0;
    for (; i + 4 <= bytes.size(); i += 4) {
        for (std::size_t table = 0; table < 4; ++table) {
            ++tables[table][at[i + table]];
        }
    }
    for (; i < bytes.size(); ++i) {
        ++tables[0][at[i]];
    }
    for (std::size_t code = 0; code < 256; ++code) {
        tables[0][code] += tables[1][code] + tables[2][code] + tables[3][code];
    }
    return tables[0];
}

// Of codes of 8, 4 or 2 bits; those of the padding in the last byte are left out.
CodeCounts count_codes(Bytes bytes, std::size_t width, std::size_t count) {
    const auto per_byte = 8 / width;
    const auto mask = (1u << width) - 1;
    CodeCounts codes{};
    const auto split = [&](std::uint32_t byte, std::size_t places, std::uint64_t weight) {
        for (std::size_t place = 0; place < places; ++place) {
            codes[byte >> (place * width) & mask] += weight;
        }
    };
    const auto whole = count / per_byte;
    const auto in_bytes = count_bytes(bytes.first(whole));
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        split(byte, per_byte, in_bytes[byte]);
    }
    if (count % per_byte != 0) {
        split(std::to_integer<std::uint32_t>(bytes[whole]), count % per_byte, 1);
    }
    return codes;
}

double number_of(DType dtype, std::uint32_t code) {
    const std::array<std::byte, 1> byte{static_cast<std::byte>(code)};
    double number = 0;
    decode(dtype, byte, 0, std::span(&number, 1));
    return number;
}

// The numbers that occur, ascending; what is not finite is counted apart.
std::vector<WeightedNumber> numbers_of(DType dtype, const CodeCounts& codes,
                                       Statistics& statistics) {
    std::vector<WeightedNumber> numbers;
    for (std::uint32_t code = 0; code < 256; ++code) {
        if (codes[code] == 0) {
            continue;
        }
        const double number = number_of(dtype, code);
        if (std::isnan(number)) {
            statistics.nans += codes[code];
        } else if (std::isinf(number)) {
            (number > 0 ? statistics.positive_infinities : statistics.negative_infinities) +=
                codes[code];
        } else {
            numbers.push_back({number, codes[code]});
        }
    }
    std::stable_sort(numbers.begin(), numbers.end(),
                     [](const auto& a, const auto& b) { return a.number < b.number; });
    return numbers;
}

void fill(Statistics& statistics, std::span<const WeightedNumber> numbers, double normal) {
    double sum = 0;
    double absolute = 0;
    double squares = 0;
    for (const auto& [number, weight] : numbers) {
        const auto times = static_cast<double>(weight);
        statistics.zeros += number == 0 ? weight : 0;
        statistics.denormals += number != 0 && std::abs(number) < normal ? weight : 0;
        sum += number * times;
        absolute += std::abs(number) * times;
        squares += number * number * times;
    }
    const auto finite = static_cast<double>(statistics.finite());
    const double mean = sum / finite;
    double deviations = 0;
    for (const auto& [number, weight] : numbers) {
        deviations += (number - mean) * (number - mean) * static_cast<double>(weight);
    }
    statistics.min = numbers.front().number;
    statistics.max = numbers.back().number;
    statistics.max_abs = std::max(std::abs(statistics.min), std::abs(statistics.max));
    statistics.mean = mean;
    statistics.std = std::sqrt(deviations / finite);
    statistics.rms = std::sqrt(squares / finite);
    statistics.l1 = absolute;
    statistics.l2 = std::sqrt(squares);
}

}  // namespace

bool counts_codes(DType dtype) {
    const auto width = dtype == DType::boolean ? 8 : bits(dtype);
    return width == 8 || width == 4 || width == 2;
}

Statistics statistics_of_codes(DType dtype, Bytes bytes, std::size_t element_count,
                               bool with_distribution) {
    Statistics statistics;
    statistics.count = element_count;
    const auto width = dtype == DType::boolean ? 8 : bits(dtype);
    const auto numbers = numbers_of(dtype, count_codes(bytes, width, element_count), statistics);
    if (numbers.empty()) {
        return statistics;
    }
    fill(statistics, numbers, smallest_normal(dtype));
    if (with_distribution) {
        statistics.distribution = distribution_of(numbers);
    }
    return statistics;
}

}  // namespace trocar
