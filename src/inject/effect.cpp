#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>

#include "inject/bits.h"
#include "trocar/error.h"
#include "trocar/fault.h"
#include "trocar/random.h"
#include "util/elements.h"

namespace trocar {

std::uint64_t load_bits(DType dtype, std::span<const std::byte> tensor, std::size_t stored) {
    const auto width = bits(dtype);
    if (width < 8) {
        const auto at = stored * width;
        const auto byte = std::to_integer<unsigned>(tensor[at / 8]);
        // An element of 6 bits may reach into the next byte.
        const auto next =
            at / 8 + 1 < tensor.size() ? std::to_integer<unsigned>(tensor[at / 8 + 1]) : 0U;
        return ((byte | next << 8) >> (at % 8)) & ((1U << width) - 1);
    }
    std::uint64_t word = 0;
    std::memcpy(&word, tensor.data() + stored * (width / 8), width / 8);
    return word;
}

void store_bits(DType dtype, std::span<std::byte> tensor, std::size_t stored, std::uint64_t word) {
    const auto width = bits(dtype);
    if (width < 8) {
        for (std::size_t bit = 0; bit < width; ++bit) {
            const auto at = stored * width + bit;
            const auto mask = std::byte{1} << (at % 8);
            tensor[at / 8] =
                (word >> bit & 1) != 0 ? tensor[at / 8] | mask : tensor[at / 8] & ~mask;
        }
        return;
    }
    std::memcpy(tensor.data() + stored * (width / 8), &word, width / 8);
}

namespace {

std::uint64_t type_mask(DType dtype) {
    const auto width = bits(dtype);
    return width >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
}

double normal(std::uint64_t key, std::uint64_t place) {
    const auto words = philox(key, place, 0);
    const auto u = 1 - unit_double(words[0], words[1]);  // in (0, 1]
    const auto v = unit_double(words[2], words[3]);
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

double changed_number(const Effect& effect, double number, std::uint64_t place) {
    switch (effect.kind) {
        case Effect::Kind::set:
            return effect.a;
        case Effect::Kind::add:
            return number + effect.a;
        case Effect::Kind::multiply:
            return number * effect.a;
        case Effect::Kind::noise:
            return number + effect.a * normal(effect.key, place);
        case Effect::Kind::gain:
            return number * (1 + effect.a * normal(effect.key, place));
        default: {
            const auto words = philox(effect.key, place, 0);
            return effect.a + (effect.b - effect.a) * unit_double(words[0], words[1]);
        }
    }
}

// 64-bit integers, which a double does not hold, but a long double does.
void change_integer(const Effect& effect, DType dtype, std::span<std::byte> tensor,
                    std::size_t stored) {
    const auto word = load_bits(dtype, tensor, stored);
    const bool is_signed = dtype == DType::i64;
    const auto number = is_signed ? static_cast<long double>(static_cast<std::int64_t>(word))
                                  : static_cast<long double>(word);
    const auto a = static_cast<long double>(effect.a);
    const auto other = std::nearbyint(effect.kind == Effect::Kind::add ? number + a : number * a);
    const auto low = is_signed ? -0x1p63L : 0.0L;
    const auto high = is_signed ? 0x1p63L - 1 : 0x1p64L - 1;
    const auto kept = std::isnan(other) ? 0.0L : std::clamp(other, low, high);
    store_bits(dtype, tensor, stored,
               is_signed ? static_cast<std::uint64_t>(static_cast<std::int64_t>(kept))
                         : static_cast<std::uint64_t>(kept));
}

void change_numbers(const Effect& effect, DType dtype, std::span<std::byte> tensor,
                    std::size_t stored, std::uint64_t place) {
    const auto parts = number_count(dtype, 1);
    std::array<double, 2> numbers{};
    const std::span some(numbers.data(), parts);
    decode(dtype, tensor, stored * parts, some);
    const auto before = numbers;
    for (std::size_t i = 0; i < parts; ++i) {
        numbers[i] = changed_number(effect, numbers[i], place * parts + i);
    }
    // What stays the same number keeps its bits.
    if (effect.kind == Effect::Kind::set || effect.kind == Effect::Kind::random ||
        numbers != before) {
        encode(dtype, some, stored * parts, tensor);
    }
}

}  // namespace

// The gaps between inverted bits are geometric.
std::vector<std::pair<std::uint64_t, unsigned>> rate_flips(const Effect& effect,
                                                           std::uint64_t count) {
    std::vector<unsigned> eligible;
    for (unsigned bit = 0; bit < 64; ++bit) {
        if ((effect.mask >> bit & 1) != 0) {
            eligible.push_back(bit);
        }
    }
    std::vector<std::pair<std::uint64_t, unsigned>> flips;
    const auto total = static_cast<double>(count) * static_cast<double>(eligible.size());
    if (eligible.empty() || !(effect.a > 0)) {
        return flips;
    }
    const auto scale = effect.a < 1 ? std::log1p(-effect.a) : -INFINITY;
    double at = -1;
    for (std::uint64_t n = 0;; ++n) {
        const auto words = philox(effect.key, 0x72617465, n);
        const auto u = 1 - unit_double(words[0], words[1]);  // in (0, 1]
        at += 1 + (effect.a < 1 ? std::floor(std::log(u) / scale) : 0);
        if (at >= total) {
            return flips;
        }
        const auto place = static_cast<std::uint64_t>(at);
        flips.emplace_back(place / eligible.size(), eligible[place % eligible.size()]);
    }
}

void apply(const Effect& effect, DType dtype, std::span<std::byte> tensor, std::size_t stored,
           std::uint64_t place, const CustomEffect& custom) {
    const auto width = bits(dtype);
    if (width == 0 || width > 64) {
        throw Error(Fault::usage,
                    fmt::format("elements of type {} have no bits to change", name(dtype)));
    }
    if ((effect.mask & ~type_mask(dtype)) != 0) {
        throw Error(Fault::usage,
                    fmt::format("{} has bits 0 to {}: there is no bit {}", name(dtype), width - 1,
                                bits_text(effect.mask & ~type_mask(dtype))));
    }
    switch (effect.kind) {
        case Effect::Kind::flip:
            return store_bits(dtype, tensor, stored,
                              load_bits(dtype, tensor, stored) ^ effect.mask);
        case Effect::Kind::stuck0:
            return store_bits(dtype, tensor, stored,
                              load_bits(dtype, tensor, stored) & ~effect.mask);
        case Effect::Kind::stuck1:
            return store_bits(dtype, tensor, stored,
                              load_bits(dtype, tensor, stored) | effect.mask);
        case Effect::Kind::rate:
            for (const auto& [element, bit] : rate_flips(effect, 1)) {
                store_bits(dtype, tensor, stored,
                           load_bits(dtype, tensor, stored) ^ std::uint64_t{1} << bit);
            }
            return;
        case Effect::Kind::custom: {
            if (!custom) {
                throw Error(Fault::usage, fmt::format("no fault model is called '{}'", effect.name),
                            "give the function of that name to the campaign");
            }
            const auto words = philox(effect.key, place, 0);
            return custom(dtype, tensor, stored, std::uint64_t{words[0]} << 32 | words[1]);
        }
        case Effect::Kind::add:
        case Effect::Kind::multiply:
            if (dtype == DType::i64 || dtype == DType::u64) {
                return change_integer(effect, dtype, tensor, stored);
            }
            return change_numbers(effect, dtype, tensor, stored, place);
        default:
            return change_numbers(effect, dtype, tensor, stored, place);
    }
}

namespace {

struct Fields {
    unsigned exponent;
    unsigned mantissa;
    bool sign;
};

// How the bits of a floating-point type are used; no fields for others.
Fields fields(DType dtype) {
    switch (dtype) {
        case DType::f64:
            return {11, 52, true};
        case DType::f32:
            return {8, 23, true};
        case DType::f16:
            return {5, 10, true};
        case DType::bf16:
            return {8, 7, true};
        case DType::f8e4m3fn:
        case DType::f8e4m3fnuz:
            return {4, 3, true};
        case DType::f8e5m2:
        case DType::f8e5m2fnuz:
            return {5, 2, true};
        case DType::f8e8m0:
            return {8, 0, false};
        case DType::f6e2m3:
            return {2, 3, true};
        case DType::f6e3m2:
            return {3, 2, true};
        case DType::f4e2m1:
            return {2, 1, true};
        default:
            return {0, 0, false};
    }
}

bool is_signed_integer(DType dtype) {
    return dtype == DType::i2 || dtype == DType::i4 || dtype == DType::i8 || dtype == DType::i16 ||
           dtype == DType::i32 || dtype == DType::i64;
}

std::uint64_t ones(std::uint64_t count) {
    return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

std::uint64_t named_bits(std::string_view text, DType dtype) {
    const auto f = fields(dtype);
    if (text == "all") {
        return type_mask(dtype);
    }
    if (text == "sign") {
        return f.sign || is_signed_integer(dtype) ? std::uint64_t{1} << (bits(dtype) - 1) : 0;
    }
    return text == "exponent" ? ones(f.exponent) << f.mantissa : ones(f.mantissa);
}

unsigned parse_bit(std::string_view text, std::string_view whole) {
    unsigned value = 0;
    if (text.empty() || text.size() > 2) {
        value = 64;
    }
    for (const char c : text) {
        value =
            c >= '0' && c <= '9' && value < 64 ? value * 10 + static_cast<unsigned>(c - '0') : 64;
    }
    if (value > 63) {
        throw Error(Fault::usage, fmt::format("'{}' is no set of bits", whole),
                    "write bits as 30, 0,3,30 or 23-30, or sign, exponent, mantissa, all");
    }
    return value;
}

}  // namespace

std::uint64_t parse_bits(std::string_view text, DType dtype) {
    std::uint64_t mask = 0;
    for (std::size_t at = 0; at <= text.size();) {
        const auto comma = std::min(text.find(',', at), text.size());
        const auto item = text.substr(at, comma - at);
        at = comma + 1;
        if (item == "all" || item == "sign" || item == "exponent" || item == "mantissa") {
            if (dtype == DType::undefined) {
                throw Error(Fault::usage,
                            fmt::format("'{}' depends on the type, which is not known here", item),
                            "write the bits as numbers: 31, or 23-30");
            }
            const auto named = named_bits(item, dtype);
            if (named == 0) {
                throw Error(Fault::usage, fmt::format("{} has no {}", name(dtype), item));
            }
            mask |= named;
            continue;
        }
        const auto dash = item.find('-');
        const auto first = parse_bit(item.substr(0, dash), text);
        const auto last =
            dash == std::string_view::npos ? first : parse_bit(item.substr(dash + 1), text);
        if (last < first) {
            throw Error(Fault::usage, fmt::format("bits {} run backwards", item),
                        "write the lower bit first");
        }
        mask |= ones(last + 1) & ~ones(first);
    }
    if (bits(dtype) > 0 && (mask & ~type_mask(dtype)) != 0) {
        throw Error(Fault::usage,
                    fmt::format("{} has bits 0 to {}: there is no bit {}", name(dtype),
                                bits(dtype) - 1, bits_text(mask & ~type_mask(dtype))));
    }
    return mask;
}

std::string bits_text(std::uint64_t mask) {
    std::string text;
    for (unsigned bit = 0; bit < 64;) {
        if ((mask >> bit & 1) == 0) {
            ++bit;
            continue;
        }
        unsigned last = bit;
        while (last < 63 && (mask >> (last + 1) & 1) != 0) {
            ++last;
        }
        text += text.empty() ? "" : ",";
        text += last == bit ? fmt::format("{}", bit) : fmt::format("{}-{}", bit, last);
        bit = last + 1;
    }
    return text;
}

}  // namespace trocar
