#include <array>

#include "formats/torchscript/pickle.h"

// torch's numbers of element types, layouts and memory formats.
namespace trocar::torchscript {

namespace {

struct ScalarType {
    std::int64_t number;
    DType dtype;
    const char* name;
};

// Quantised types are the integers they are stored as.
constexpr std::array scalar_types{
    ScalarType{0, DType::u8, "uint8"},
    ScalarType{1, DType::i8, "int8"},
    ScalarType{2, DType::i16, "int16"},
    ScalarType{3, DType::i32, "int32"},
    ScalarType{4, DType::i64, "int64"},
    ScalarType{5, DType::f16, "float16"},
    ScalarType{6, DType::f32, "float32"},
    ScalarType{7, DType::f64, "float64"},
    ScalarType{9, DType::c64, "complex64"},
    ScalarType{10, DType::c128, "complex128"},
    ScalarType{11, DType::boolean, "bool"},
    ScalarType{12, DType::i8, "qint8"},
    ScalarType{13, DType::u8, "quint8"},
    ScalarType{14, DType::i32, "qint32"},
    ScalarType{15, DType::bf16, "bfloat16"},
    ScalarType{23, DType::f8e5m2, "float8_e5m2"},
    ScalarType{24, DType::f8e4m3fn, "float8_e4m3fn"},
    ScalarType{25, DType::f8e5m2fnuz, "float8_e5m2fnuz"},
    ScalarType{26, DType::f8e4m3fnuz, "float8_e4m3fnuz"},
    ScalarType{27, DType::u16, "uint16"},
    ScalarType{28, DType::u32, "uint32"},
    ScalarType{29, DType::u64, "uint64"},
};
constexpr std::array layouts{"strided",    "sparse_coo", "_mkldnn",   "sparse_csr",
                             "sparse_csc", "sparse_bsr", "sparse_bsc"};
constexpr std::array memory_formats{"contiguous_format", "preserve_format", "channels_last",
                                    "channels_last_3d"};

template <std::size_t count>
std::string name_in(const std::array<const char*, count>& names, std::int64_t number) {
    return number >= 0 && number < static_cast<std::int64_t>(count)
               ? names[static_cast<std::size_t>(number)]
               : std::to_string(number);
}

}  // namespace

DType dtype_of(std::int64_t scalar_type) {
    for (const auto& type : scalar_types) {
        if (type.number == scalar_type) {
            return type.dtype;
        }
    }
    return DType::undefined;
}

std::string scalar_type_name(std::int64_t number) {
    for (const auto& type : scalar_types) {
        if (type.number == number) {
            return type.name;
        }
    }
    return std::to_string(number);
}

std::string memory_format_name(std::int64_t number) {
    return name_in(memory_formats, number);
}

std::string layout_name(std::int64_t number) {
    return name_in(layouts, number);
}

}  // namespace trocar::torchscript
