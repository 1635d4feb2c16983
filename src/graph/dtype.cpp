#include "trocar/dtype.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>

#include "trocar/error.h"

namespace trocar {

namespace {

struct DTypeEntry {
    DType dtype;
    const char* name;
    std::size_t bits;
    char kind;  // f float, i integer, b boolean, c complex, s string
};

constexpr std::array entries{
    DTypeEntry{DType::undefined, "undefined", 0, '-'},
    DTypeEntry{DType::f32, "f32", 32, 'f'},
    DTypeEntry{DType::u8, "u8", 8, 'i'},
    DTypeEntry{DType::i8, "i8", 8, 'i'},
    DTypeEntry{DType::u16, "u16", 16, 'i'},
    DTypeEntry{DType::i16, "i16", 16, 'i'},
    DTypeEntry{DType::i32, "i32", 32, 'i'},
    DTypeEntry{DType::i64, "i64", 64, 'i'},
    DTypeEntry{DType::string, "string", 0, 's'},
    DTypeEntry{DType::boolean, "bool", 8, 'b'},
    DTypeEntry{DType::f16, "f16", 16, 'f'},
    DTypeEntry{DType::f64, "f64", 64, 'f'},
    DTypeEntry{DType::u32, "u32", 32, 'i'},
    DTypeEntry{DType::u64, "u64", 64, 'i'},
    DTypeEntry{DType::c64, "c64", 64, 'c'},
    DTypeEntry{DType::c128, "c128", 128, 'c'},
    DTypeEntry{DType::bf16, "bf16", 16, 'f'},
    DTypeEntry{DType::f8e4m3fn, "f8e4m3fn", 8, 'f'},
    DTypeEntry{DType::f8e4m3fnuz, "f8e4m3fnuz", 8, 'f'},
    DTypeEntry{DType::f8e5m2, "f8e5m2", 8, 'f'},
    DTypeEntry{DType::f8e5m2fnuz, "f8e5m2fnuz", 8, 'f'},
    DTypeEntry{DType::u4, "u4", 4, 'i'},
    DTypeEntry{DType::i4, "i4", 4, 'i'},
    DTypeEntry{DType::f4e2m1, "f4e2m1", 4, 'f'},
    DTypeEntry{DType::f8e8m0, "f8e8m0", 8, 'f'},
    DTypeEntry{DType::u2, "u2", 2, 'i'},
    DTypeEntry{DType::i2, "i2", 2, 'i'},
    DTypeEntry{DType::f6e2m3, "f6e2m3", 6, 'f'},
    DTypeEntry{DType::f6e3m2, "f6e3m2", 6, 'f'},
};

constexpr std::array<std::pair<const char*, DType>, 30> synonyms{{
    {"float", DType::f32},         {"float32", DType::f32},
    {"single", DType::f32},        {"double", DType::f64},
    {"float64", DType::f64},       {"half", DType::f16},
    {"float16", DType::f16},       {"bfloat16", DType::bf16},
    {"int8", DType::i8},           {"uint8", DType::u8},
    {"byte", DType::u8},           {"int16", DType::i16},
    {"uint16", DType::u16},        {"int32", DType::i32},
    {"int", DType::i32},           {"uint32", DType::u32},
    {"int64", DType::i64},         {"long", DType::i64},
    {"uint64", DType::u64},        {"boolean", DType::boolean},
    {"str", DType::string},        {"complex64", DType::c64},
    {"complex128", DType::c128},   {"int4", DType::i4},
    {"uint4", DType::u4},          {"int2", DType::i2},
    {"uint2", DType::u2},          {"float8e4m3fn", DType::f8e4m3fn},
    {"float8e5m2", DType::f8e5m2}, {"float4e2m1", DType::f4e2m1},
}};

const DTypeEntry* find(DType dtype) {
    const auto number = static_cast<std::int32_t>(dtype);
    if (number < 0 || number >= static_cast<std::int32_t>(entries.size())) {
        return nullptr;
    }
    return &entries[static_cast<std::size_t>(number)];
}

}  // namespace

std::string name(DType dtype) {
    const auto* entry = find(dtype);
    return entry != nullptr ? entry->name : fmt::format("dtype {}", static_cast<int>(dtype));
}

std::optional<DType> parse_dtype(std::string_view text) {
    std::string lower(text);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    for (const auto& entry : entries) {
        if (entry.dtype != DType::undefined && lower == entry.name) {
            return entry.dtype;
        }
    }
    for (const auto& [synonym, dtype] : synonyms) {
        if (lower == synonym) {
            return dtype;
        }
    }
    return std::nullopt;
}

std::size_t bits(DType dtype) {
    const auto* entry = find(dtype);
    return entry != nullptr ? entry->bits : 0;
}

std::size_t byte_size(DType dtype, std::size_t count) {
    const auto each = bits(dtype);
    constexpr auto limit = static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max());
    if (each != 0 && count > (limit - 7) / each) {
        throw Error(Fault::input, fmt::format("{} elements of {} are more than memory can hold",
                                              count, name(dtype)));
    }
    return (count * each + 7) / 8;
}

bool is_float(DType dtype) {
    const auto* entry = find(dtype);
    return entry != nullptr && entry->kind == 'f';
}

bool is_integer(DType dtype) {
    const auto* entry = find(dtype);
    return entry != nullptr && entry->kind == 'i';
}

}  // namespace trocar
