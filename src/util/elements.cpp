#include "util/elements.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace trocar {

namespace {

// What a float format does with its highest codes.
enum class Special {
    ieee,    // highest exponent: infinities and NaN
    fn,      // finite, and NaN where all bits are set
    fnuz,    // finite, NaN in place of negative zero
    finite,  // neither infinities nor NaN
};

// Sign, exponent, mantissa, from the highest bit down.
struct FloatLayout {
    int exponent_bits;
    int mantissa_bits;
    int bias;
    Special special;

    std::uint32_t sign_bit() const { return 1u << (exponent_bits + mantissa_bits); }
    std::uint32_t largest() const {  // code of the largest finite number
        const std::uint32_t all = sign_bit() - 1;
        switch (special) {
            case Special::ieee:
                return all - (1u << mantissa_bits);
            case Special::fn:
                return all - 1;
            default:
                return all;
        }
    }
};

std::optional<FloatLayout> float_layout(DType dtype) {
    switch (dtype) {
        case DType::f16:
            return FloatLayout{5, 10, 15, Special::ieee};
        case DType::bf16:
            return FloatLayout{8, 7, 127, Special::ieee};
        case DType::f8e4m3fn:
            return FloatLayout{4, 3, 7, Special::fn};
        case DType::f8e4m3fnuz:
            return FloatLayout{4, 3, 8, Special::fnuz};
        case DType::f8e5m2:
            return FloatLayout{5, 2, 15, Special::ieee};
        case DType::f8e5m2fnuz:
            return FloatLayout{5, 2, 16, Special::fnuz};
        case DType::f6e2m3:
            return FloatLayout{2, 3, 1, Special::finite};
        case DType::f6e3m2:
            return FloatLayout{3, 2, 3, Special::finite};
        case DType::f4e2m1:
            return FloatLayout{2, 1, 1, Special::finite};
        default:
            return std::nullopt;
    }
}

double decode_float(const FloatLayout& layout, std::uint32_t code) {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    const auto sign_bit = layout.sign_bit();
    if (layout.special == Special::fnuz && code == sign_bit) {
        return nan;
    }
    const auto magnitude = code & (sign_bit - 1);
    const double sign = (code & sign_bit) != 0 ? -1.0 : 1.0;
    if (magnitude > layout.largest()) {
        const bool infinite = layout.special == Special::ieee && magnitude == layout.largest() + 1;
        return infinite ? sign * std::numeric_limits<double>::infinity() : nan;
    }
    const auto fraction = magnitude & ((1u << layout.mantissa_bits) - 1);
    const auto exponent = static_cast<int>(magnitude >> layout.mantissa_bits);
    const auto scale = std::max(exponent, 1) - layout.bias - layout.mantissa_bits;
    const auto whole = exponent == 0 ? fraction : fraction + (1u << layout.mantissa_bits);
    return sign * std::ldexp(whole, scale);
}

std::uint32_t encode_float(const FloatLayout& layout, double number) {
    const auto sign_bit = layout.sign_bit();
    if (std::isnan(number)) {
        switch (layout.special) {
            case Special::ieee:  // a quiet one: the highest bit of the mantissa
                return layout.largest() + 1 + (1u << (layout.mantissa_bits - 1));
            case Special::fn:
                return sign_bit - 1;
            case Special::fnuz:
                return sign_bit;
            case Special::finite:
                return 0;
        }
    }
    const auto sign = std::signbit(number) ? sign_bit : 0u;
    const double magnitude = std::abs(number);
    std::uint32_t code = 0;
    if (std::isinf(magnitude)) {
        code = sign_bit;  // beyond everything
    } else if (magnitude > 0) {
        const int lowest = 1 - layout.bias;
        const int exponent = std::max(std::ilogb(magnitude), lowest);
        const double whole = std::nearbyint(std::ldexp(magnitude, layout.mantissa_bits - exponent));
        // A subnormal number has no hidden bit and exponent field 0; rounding up carries into the
        // field.
        const auto field = static_cast<std::uint64_t>(exponent - lowest) << layout.mantissa_bits;
        const auto wide = field + static_cast<std::uint64_t>(whole);
        code = wide > layout.largest() ? sign_bit : static_cast<std::uint32_t>(wide);
    }
    if (code > layout.largest()) {
        code = layout.largest() + (layout.special == Special::ieee ? 1 : 0);
    }
    if (layout.special == Special::fnuz && code == 0) {
        return 0;
    }
    return sign | code;
}

constexpr int e8m0_bias = 127;
constexpr std::uint32_t e8m0_nan = 255;

double decode_e8m0(std::uint32_t code) {
    return code == e8m0_nan ? std::numeric_limits<double>::quiet_NaN()
                            : std::ldexp(1.0, static_cast<int>(code) - e8m0_bias);
}

std::uint32_t encode_e8m0(double number) {
    if (std::isnan(number)) {
        return e8m0_nan;
    }
    if (!(number > 0)) {
        return 0;
    }
    if (std::isinf(number)) {
        return e8m0_nan - 1;
    }
    int exponent = 0;
    const double fraction = std::frexp(number, &exponent);  // in [0.5, 1)
    const int power = fraction >= 0.75 ? exponent : exponent - 1;
    return static_cast<std::uint32_t>(std::clamp(power + e8m0_bias, 0, 254));
}

// Codes of any width up to 16 bits, packed from the low bits up.
std::uint32_t read_code(Bytes bytes, std::size_t width, std::size_t at) {
    const auto bit = at * width;
    std::uint32_t word = std::to_integer<std::uint32_t>(bytes[bit / 8]);
    if (bit % 8 + width > 8) {
        word |= std::to_integer<std::uint32_t>(bytes[bit / 8 + 1]) << 8;
    }
    return (word >> (bit % 8)) & ((1u << width) - 1);
}

void write_code(std::span<std::byte> bytes, std::size_t width, std::size_t at, std::uint32_t code) {
    const auto bit = at * width;
    const auto shift = bit % 8;
    const auto mask = ((1u << width) - 1) << shift;
    const auto word = code << shift;
    const auto merge = [&](std::size_t byte, std::uint32_t part_mask, std::uint32_t part) {
        bytes[byte] = (bytes[byte] & ~static_cast<std::byte>(part_mask)) |
                      static_cast<std::byte>(part & part_mask);
    };
    merge(bit / 8, mask & 0xff, word & 0xff);
    if (mask > 0xff) {
        merge(bit / 8 + 1, mask >> 8, word >> 8);
    }
}

template <class T>
T rounded(double number) {
    if constexpr (std::is_floating_point_v<T>) {
        return static_cast<T>(number);
    } else {
        if (std::isnan(number)) {
            return 0;
        }
        const double whole = std::nearbyint(number);
        // Compared with the power of two above: the largest 64-bit integers are no doubles.
        if (whole >= std::ldexp(1.0, std::numeric_limits<T>::digits)) {
            return std::numeric_limits<T>::max();
        }
        if (whole <= static_cast<double>(std::numeric_limits<T>::min())) {
            return std::numeric_limits<T>::min();
        }
        return static_cast<T>(whole);
    }
}

template <class T>
void decode_as(Bytes bytes, std::size_t first, std::span<double> numbers) {
    const auto* from = bytes.data() + first * sizeof(T);
    for (auto& number : numbers) {
        T element;
        std::memcpy(&element, from, sizeof(T));
        number = static_cast<double>(element);
        from += sizeof(T);
    }
}

template <class T>
void encode_as(std::span<const double> numbers, std::size_t first, std::span<std::byte> bytes) {
    auto* to = bytes.data() + first * sizeof(T);
    for (const double number : numbers) {
        const T element = rounded<T>(number);
        std::memcpy(to, &element, sizeof(T));
        to += sizeof(T);
    }
}

// Calls `work` with a value of the C++ type that stores the dtype; false when there is none.
template <class Work>
bool with_native(DType dtype, Work&& work) {
    switch (dtype) {
        case DType::f32:
        case DType::c64:
            return work(float{}), true;
        case DType::f64:
        case DType::c128:
            return work(double{}), true;
        case DType::u8:
            return work(std::uint8_t{}), true;
        case DType::i8:
            return work(std::int8_t{}), true;
        case DType::u16:
            return work(std::uint16_t{}), true;
        case DType::i16:
            return work(std::int16_t{}), true;
        case DType::u32:
            return work(std::uint32_t{}), true;
        case DType::i32:
            return work(std::int32_t{}), true;
        case DType::u64:
            return work(std::uint64_t{}), true;
        case DType::i64:
            return work(std::int64_t{}), true;
        default:
            return false;
    }
}

// Types stored as codes: bool, small floats, packed integers.
struct CodeType {
    std::size_t width;
    bool is_signed;  // packed integers
    std::optional<FloatLayout> layout;
};

CodeType code_type(DType dtype) {
    if (dtype == DType::boolean) {
        return {8, false, std::nullopt};
    }
    return {bits(dtype), dtype == DType::i4 || dtype == DType::i2, float_layout(dtype)};
}

double decode_code(DType dtype, const CodeType& type, std::uint32_t code) {
    if (type.layout) {
        return decode_float(*type.layout, code);
    }
    if (dtype == DType::f8e8m0) {
        return decode_e8m0(code);
    }
    if (dtype == DType::boolean) {
        return code != 0 ? 1 : 0;
    }
    const auto top = 1u << (type.width - 1);
    const auto number = static_cast<double>(code);
    return type.is_signed && code >= top ? number - 2.0 * top : number;
}

std::uint32_t encode_code(DType dtype, const CodeType& type, double number) {
    if (type.layout) {
        return encode_float(*type.layout, number);
    }
    if (dtype == DType::f8e8m0) {
        return encode_e8m0(number);
    }
    if (dtype == DType::boolean) {
        return number != 0 ? 1 : 0;
    }
    const auto limits = range(dtype);
    const double whole = std::isnan(number) ? 0 : std::nearbyint(number);
    const auto integer = static_cast<std::int32_t>(std::clamp(whole, limits.low, limits.high));
    return static_cast<std::uint32_t>(integer) & ((1u << type.width) - 1);
}

}  // namespace

bool is_numeric(DType dtype) {
    return dtype == DType::boolean || (dtype != DType::string && bits(dtype) > 0);
}

std::size_t number_count(DType dtype, std::size_t count) {
    return dtype == DType::c64 || dtype == DType::c128 ? 2 * count : count;
}

void decode(DType dtype, Bytes bytes, std::size_t first, std::span<double> numbers) {
    const bool native =
        with_native(dtype, [&](auto zero) { decode_as<decltype(zero)>(bytes, first, numbers); });
    if (native) {
        return;
    }
    const auto type = code_type(dtype);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        numbers[i] = decode_code(dtype, type, read_code(bytes, type.width, first + i));
    }
}

void encode(DType dtype, std::span<const double> numbers, std::size_t first,
            std::span<std::byte> bytes) {
    const bool native =
        with_native(dtype, [&](auto zero) { encode_as<decltype(zero)>(numbers, first, bytes); });
    if (native) {
        return;
    }
    const auto type = code_type(dtype);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        write_code(bytes, type.width, first + i, encode_code(dtype, type, numbers[i]));
    }
}

std::vector<double> numbers_of(const Constant& constant) {
    const auto dense = constant.is_sparse() ? densify(constant) : constant;
    std::vector<double> numbers(number_count(dense.dtype(), dense.element_count()));
    decode(dense.dtype(), dense.bytes(), 0, numbers);
    return numbers;
}

Constant constant_of_numbers(DType dtype, const Shape& shape, std::span<const double> numbers) {
    std::vector<std::byte> bytes(byte_size(dtype, element_count(shape)));
    encode(dtype, numbers, 0, bytes);
    return Constant::copy(dtype, shape, bytes);
}

Range range(DType dtype) {
    Range found;
    const bool native = with_native(dtype, [&](auto zero) {
        using Limits = std::numeric_limits<decltype(zero)>;
        found = {static_cast<double>(Limits::lowest()), static_cast<double>(Limits::max())};
    });
    if (native) {
        return found;
    }
    if (const auto layout = float_layout(dtype)) {
        const double high = decode_float(*layout, layout->largest());
        return {-high, high};
    }
    switch (dtype) {
        case DType::boolean:
            return {0, 1};
        case DType::f8e8m0:
            return {decode_e8m0(0), decode_e8m0(e8m0_nan - 1)};
        case DType::u4:
            return {0, 15};
        case DType::i4:
            return {-8, 7};
        case DType::u2:
            return {0, 3};
        case DType::i2:
            return {-2, 1};
        default:
            return {};
    }
}

double smallest_normal(DType dtype) {
    if (const auto layout = float_layout(dtype)) {
        return std::ldexp(1.0, 1 - layout->bias);
    }
    switch (dtype) {
        case DType::f32:
        case DType::c64:
            return std::numeric_limits<float>::min();
        case DType::f64:
        case DType::c128:
            return std::numeric_limits<double>::min();
        default:
            return 0;
    }
}

}  // namespace trocar
