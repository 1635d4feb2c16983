#include "formats/executorch/types.h"

#include <fmt/format.h>

#include <array>

#include "trocar/error.h"

namespace trocar::executorch {

namespace {

struct Named {
    fb::ScalarType number;
    DType dtype;
    const char* name;
};
constexpr std::array types{
    Named{fb::ScalarType::BYTE, DType::u8, "uint8"},
    Named{fb::ScalarType::CHAR, DType::i8, "int8"},
    Named{fb::ScalarType::SHORT, DType::i16, "int16"},
    Named{fb::ScalarType::INT, DType::i32, "int32"},
    Named{fb::ScalarType::LONG, DType::i64, "int64"},
    Named{fb::ScalarType::HALF, DType::f16, "float16"},
    Named{fb::ScalarType::FLOAT, DType::f32, "float32"},
    Named{fb::ScalarType::DOUBLE, DType::f64, "float64"},
    Named{fb::ScalarType::BOOL, DType::boolean, "bool"},
    Named{fb::ScalarType::BFLOAT16, DType::bf16, "bfloat16"},
    Named{fb::ScalarType::FLOAT8E5M2, DType::f8e5m2, "float8_e5m2"},
    Named{fb::ScalarType::FLOAT8E4M3FN, DType::f8e4m3fn, "float8_e4m3fn"},
    Named{fb::ScalarType::FLOAT8E5M2FNUZ, DType::f8e5m2fnuz, "float8_e5m2fnuz"},
    Named{fb::ScalarType::FLOAT8E4M3FNUZ, DType::f8e4m3fnuz, "float8_e4m3fnuz"},
    Named{fb::ScalarType::UINT16, DType::u16, "uint16"},
    Named{fb::ScalarType::UINT32, DType::u32, "uint32"},
    Named{fb::ScalarType::UINT64, DType::u64, "uint64"},
};
constexpr std::array memory_formats{"contiguous_format", "preserve_format"};

}  // namespace

DType to_dtype(fb::ScalarType type) {
    for (const auto& one : types) {
        if (one.number == type) {
            return one.dtype;
        }
    }
    // The number is a signed byte: negative ones are of no type and still are kept.
    return static_cast<DType>(foreign_dtype +
                              static_cast<std::uint8_t>(static_cast<std::int8_t>(type)));
}

fb::ScalarType from_dtype(DType dtype) {
    for (const auto& one : types) {
        if (one.dtype == dtype) {
            return one.number;
        }
    }
    throw Error(Fault::unsupported, fmt::format("ExecuTorch has no tensors of {}", name(dtype)));
}

std::string scalar_type_name(std::int64_t number) {
    for (const auto& one : types) {
        if (static_cast<std::int64_t>(one.number) == number) {
            return one.name;
        }
    }
    return std::to_string(number);
}

std::optional<std::int64_t> scalar_type_number(std::string_view name) {
    for (const auto& one : types) {
        if (name == one.name) {
            return static_cast<std::int64_t>(one.number);
        }
    }
    return std::nullopt;
}

std::string memory_format_name(std::int64_t number) {
    return number >= 0 && number < static_cast<std::int64_t>(memory_formats.size())
               ? memory_formats[static_cast<std::size_t>(number)]
               : std::to_string(number);
}

std::optional<std::int64_t> memory_format_number(std::string_view name) {
    for (std::size_t i = 0; i < memory_formats.size(); ++i) {
        if (name == memory_formats[i]) {
            return static_cast<std::int64_t>(i);
        }
    }
    return std::nullopt;
}

}  // namespace trocar::executorch
