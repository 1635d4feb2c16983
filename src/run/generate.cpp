#include "run/generate.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "trocar/error.h"
#include "trocar/random.h"
#include "util/elements.h"
#include "util/text.h"

namespace trocar {

namespace {

constexpr std::size_t block_size = 1024;
constexpr std::size_t letters_per_string = 8;

std::optional<double> parse_number(std::string_view text) {
    double number = 0;
    const auto* end = text.data() + text.size();
    const auto [last, status] = std::from_chars(text.data(), end, number);
    const bool whole = !text.empty() && status == std::errc() && last == end;
    return whole ? std::optional(number) : std::nullopt;
}

// Numbers from `low` up to, but not including, `high`.
struct Interval {
    double low;
    double high;
};

bool is_discrete(DType dtype) {
    return is_integer(dtype) || dtype == DType::boolean;
}

Interval usual_interval(DType dtype) {
    if (!is_discrete(dtype)) {
        return {0, 1};
    }
    if (bits(dtype) > 8) {
        return {0, 10};
    }
    const auto all = range(dtype);
    return {all.low, all.high + 1};
}

Interval interval(const Fill& fill, DType dtype, std::string_view name) {
    if (fill.kind == Fill::Kind::random) {
        return usual_interval(dtype);
    }
    const auto all = range(dtype);
    const double top = is_discrete(dtype) ? all.high + 1 : all.high;
    if (fill.low < all.low || fill.high > top) {
        throw Error(Fault::input, fmt::format("input '{}' is {}, which does not hold {} to {}",
                                              name, trocar::name(dtype), fill.low, fill.high));
    }
    if (is_discrete(dtype) && (std::ceil(fill.low) >= std::ceil(fill.high))) {
        throw Error(Fault::input, fmt::format("input '{}': there is no integer from {} up to {}",
                                              name, fill.low, fill.high));
    }
    return {fill.low, fill.high};
}

std::uint64_t key_of(std::string_view name, std::uint64_t seed) {
    return stable_hash(name.data(), name.size()) ^ seed;
}

// The random number of a place, uniform in [0, 1). Types above 32 bits take two words each.
double unit(std::uint64_t key, std::size_t place, bool wide) {
    if (wide) {
        const auto words = philox(key, 0, place / 2);
        const auto at = 2 * (place % 2);
        return unit_double(words[at], words[at + 1]);
    }
    return static_cast<double>(unit_float(philox(key, 0, place / 4)[place % 4]));
}

void fill_random(std::span<std::byte> bytes, DType dtype, std::size_t count, Interval within,
                 std::uint64_t key) {
    const bool wide = bits(dtype) / (number_count(dtype, 1)) > 32;
    const bool discrete = is_discrete(dtype);
    const double low = discrete ? std::ceil(within.low) : within.low;
    const double size = discrete ? std::ceil(within.high) - low : within.high - low;
    std::array<double, block_size> block;
    for (std::size_t first = 0; first < count; first += block_size) {
        const std::span numbers(block.data(), std::min(block_size, count - first));
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            const double u = unit(key, first + i, wide);
            // fma: one rounding, so that machines with and without it agree.
            numbers[i] =
                discrete ? low + std::min(std::floor(u * size), size - 1) : std::fma(size, u, low);
        }
        encode(dtype, numbers, first, bytes);
    }
}

void fill_number(std::span<std::byte> bytes, DType dtype, std::size_t count, double number) {
    std::array<double, block_size> block;
    block.fill(number);
    for (std::size_t first = 0; first < count; first += block_size) {
        encode(dtype, std::span(block.data(), std::min(block_size, count - first)), first, bytes);
    }
}

Value generate_strings(const Fill& fill, const Shape& shape, std::uint64_t key) {
    std::vector<std::string> texts(element_count(shape));
    for (std::size_t i = 0; i < texts.size(); ++i) {
        if (fill.kind != Fill::Kind::number) {
            for (std::size_t k = 0; k < letters_per_string; ++k) {
                const auto place = letters_per_string * i + k;
                texts[i] += static_cast<char>('a' + static_cast<int>(unit(key, place, false) * 26));
            }
        } else if (fill.low != 0) {
            texts[i] = fmt::format("{}", fill.low);
        }
    }
    return Value::strings(shape, std::move(texts));
}

void require_memory(std::string_view name, DType dtype, const Shape& shape) {
    const auto count = element_count(shape);
    const auto bytes =
        dtype == DType::string ? byte_size(DType::c128, count) * 3 : byte_size(dtype, count);
    const auto memory = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) *
                        static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    if (bytes > memory) {
        throw Error(
            Fault::input,
            fmt::format("input '{}' as {} {} would take {} bytes, more than this machine's memory",
                        name, trocar::name(dtype), shape_text(shape), bytes));
    }
}

}  // namespace

std::optional<Fill> parse_fill(std::string_view text) {
    if (text == "random") {
        return Fill{Fill::Kind::random};
    }
    if (text == "zeros") {
        return Fill{Fill::Kind::number, 0};
    }
    if (text == "ones") {
        return Fill{Fill::Kind::number, 1};
    }
    constexpr std::string_view opening = "random(";
    if (text.starts_with(opening) && text.ends_with(")")) {
        const auto inside = text.substr(opening.size(), text.size() - opening.size() - 1);
        const auto parts = split(inside, ',');
        const auto low = parse_number(trim(parts.front()));
        const auto high = parse_number(trim(parts.back()));
        const bool good =
            parts.size() == 2 && low && high && std::isfinite(*high - *low) && *low < *high;
        if (!good) {
            throw Error(Fault::usage, fmt::format("'{}' is not a range of numbers", text),
                        "write random(LOW,HIGH), as in random(-1,1)");
        }
        return Fill{Fill::Kind::between, *low, *high};
    }
    if (const auto number = parse_number(text)) {
        return Fill{Fill::Kind::number, *number};
    }
    return std::nullopt;
}

std::string fill_text(const Fill& fill, DType dtype) {
    if (fill.kind == Fill::Kind::number) {
        return fill.low == 0 ? "zeros" : fill.low == 1 ? "ones" : fmt::format("all {}", fill.low);
    }
    if (dtype == DType::string) {
        return "random letters";
    }
    const auto within =
        fill.kind == Fill::Kind::between ? Interval{fill.low, fill.high} : usual_interval(dtype);
    return is_discrete(dtype)
               ? fmt::format("random in {}…{}", std::ceil(within.low), std::ceil(within.high) - 1)
               : fmt::format("random in [{}, {})", within.low, within.high);
}

Value generate(const Fill& fill, DType dtype, const Shape& shape, std::string_view name,
               std::uint64_t seed) {
    require_memory(name, dtype, shape);
    const auto key = key_of(name, seed);
    if (dtype == DType::string) {
        return generate_strings(fill, shape, key);
    }
    if (!is_numeric(dtype)) {
        throw Error(
            Fault::input,
            fmt::format("input '{}' is {}, which cannot be generated", name, trocar::name(dtype)),
            "give it as a file");
    }
    auto value = Value::tensor(dtype, shape);
    const auto count = number_count(dtype, element_count(shape));
    if (fill.kind == Fill::Kind::number) {
        const auto all = range(dtype);
        if (std::isfinite(fill.low) ? fill.low != 0 && (fill.low < all.low || fill.low > all.high)
                                    : !is_float(dtype)) {
            throw Error(Fault::input, fmt::format("input '{}' is {}, which does not hold {}", name,
                                                  trocar::name(dtype), fill.low));
        }
        fill_number(value.mutable_bytes(), dtype, count, fill.low);
    } else {
        fill_random(value.mutable_bytes(), dtype, count, interval(fill, dtype, name), key);
    }
    return value;
}

}  // namespace trocar
