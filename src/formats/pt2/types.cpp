#include "formats/pt2/types.h"

#include <fmt/format.h>

#include <array>

#include "formats/keep_unknown.h"
#include "formats/pt2/symbolic.h"

namespace trocar::pt2 {

namespace {

struct ScalarType {
    std::int64_t number;
    DType dtype;
    const char* name;
};

constexpr std::array scalar_types{
    ScalarType{1, DType::u8, "uint8"},
    ScalarType{2, DType::i8, "int8"},
    ScalarType{3, DType::i16, "int16"},
    ScalarType{4, DType::i32, "int32"},
    ScalarType{5, DType::i64, "int64"},
    ScalarType{6, DType::f16, "float16"},
    ScalarType{7, DType::f32, "float32"},
    ScalarType{8, DType::f64, "float64"},
    ScalarType{10, DType::c64, "complex64"},
    ScalarType{11, DType::c128, "complex128"},
    ScalarType{12, DType::boolean, "bool"},
    ScalarType{13, DType::bf16, "bfloat16"},
    ScalarType{28, DType::u16, "uint16"},
    ScalarType{29, DType::f8e4m3fn, "float8_e4m3fn"},
    ScalarType{30, DType::f8e5m2, "float8_e5m2"},
    ScalarType{31, DType::f8e4m3fnuz, "float8_e4m3fnuz"},
    ScalarType{32, DType::f8e5m2fnuz, "float8_e5m2fnuz"},
    ScalarType{33, DType::f8e8m0, "float8_e8m0fnu"},
    ScalarType{34, DType::u32, "uint32"},
    ScalarType{35, DType::u64, "uint64"},
};
constexpr std::array layouts{"unknown",    "sparse_coo", "sparse_csr", "sparse_csc",
                             "sparse_bsr", "sparse_bsc", "_mkldnn",    "strided"};
constexpr std::array memory_formats{"unknown", "contiguous_format", "channels_last",
                                    "channels_last_3d", "preserve_format"};
constexpr std::int64_t strided = 7;
constexpr std::int64_t complex_half = 9;

template <std::size_t count>
std::string name_in(const std::array<const char*, count>& names, std::int64_t number) {
    return number >= 0 && number < static_cast<std::int64_t>(count)
               ? names[static_cast<std::size_t>(number)]
               : std::to_string(number);
}

std::string dim_text(const Dim& dim) {
    return dim.value >= 0 || dim.symbol.empty() ? std::to_string(dim.value) : dim.symbol;
}

// Are these the strides of a tensor without gaps, the last dimension innermost? Told only where
// all sizes are numbers.
bool contiguous(const std::vector<Dim>& sizes, const std::vector<Dim>& strides) {
    std::int64_t expected = 1;
    for (std::size_t i = sizes.size(); i-- > 0;) {
        if (!sizes[i].symbol.empty() || !strides[i].symbol.empty()) {
            return true;
        }
        if (sizes[i].value != 1 && strides[i].value != expected) {
            return false;
        }
        if (__builtin_mul_overflow(expected, std::max<std::int64_t>(sizes[i].value, 1),
                                   &expected)) {
            return false;
        }
    }
    return true;
}

}  // namespace

DType dtype_of(std::int64_t scalar_type) {
    for (const auto& type : scalar_types) {
        if (type.number == scalar_type) {
            return type.dtype;
        }
    }
    return scalar_type > 0 && scalar_type < 1000 ? static_cast<DType>(1000 + scalar_type)
                                                 : DType::undefined;
}

std::string scalar_type_name(std::int64_t number) {
    for (const auto& type : scalar_types) {
        if (type.number == number) {
            return type.name;
        }
    }
    return number == complex_half ? "complex32" : std::to_string(number);
}

std::string memory_format_name(std::int64_t number) {
    return name_in(memory_formats, number);
}

std::string layout_name(std::int64_t number) {
    return name_in(layouts, number);
}

std::string device_name(const JsonPlace& place, const Json& device) {
    const auto& type = place.text(device, "type");
    const auto& index = place.member(device, "index");
    return index.is_null() ? type
                           : fmt::format("{}:{}", type, place.integer(index, "a device's number"));
}

Dim read_dim(const JsonPlace& place, const Json& sym_int) {
    const auto [kind, value] = place.choice(sym_int);
    if (kind == "as_int") {
        return {.value = place.integer(*value, "a size"), .symbol = {}};
    }
    if (kind == "as_expr") {
        return {.value = -1, .symbol = readable(place.text(*value, "expr_str"))};
    }
    return {.value = -1, .symbol = kind};
}

TensorMeta read_tensor_meta(const JsonPlace& place, const Json& meta) {
    TensorMeta result;
    const auto& layout = place.member(meta, "layout");
    const bool dense = !layout.is_whole() || layout.int64() == strided;
    result.type.kind = dense ? Type::Kind::tensor : Type::Kind::sparse_tensor;
    result.type.dtype = dtype_of(place.integer(place.member(meta, "dtype"), "a tensor's dtype"));
    auto& sizes = result.type.dims.emplace();
    for (const auto& size : place.list(meta, "sizes")) {
        sizes.push_back(read_dim(place, size));
        if (sizes.back().value < 0 && sizes.back().symbol.empty()) {
            place.fail("a tensor has a negative size");
        }
    }
    for (const auto& stride : place.list(meta, "strides")) {
        result.strides.push_back(read_dim(place, stride));
    }
    if (result.strides.size() != sizes.size()) {
        result.strides.clear();
    }
    const auto& offset = place.member(meta, "storage_offset");
    result.storage_offset =
        offset.is_null() ? Dim{.value = 0, .symbol = {}} : read_dim(place, offset);

    auto& metadata = result.metadata;
    if (!dense) {
        metadata.push_back({"layout", layout_name(layout.int64())});
    }
    if (!result.strides.empty() && !contiguous(sizes, result.strides)) {
        std::string text;
        for (const auto& stride : result.strides) {
            text += text.empty() ? "" : ",";
            text += dim_text(stride);
        }
        metadata.push_back({"strides", text});
    }
    if (const auto& device = place.member(meta, "device"); !device.is_null()) {
        if (auto name = device_name(place, device); name != "cpu") {
            metadata.push_back({"device", std::move(name)});
        }
    }
    if (place.flag(meta, "requires_grad")) {
        metadata.push_back({"requires_grad", "true"});
    }
    keep_unknown(
        meta, {"dtype", "sizes", "requires_grad", "device", "strides", "storage_offset", "layout"},
        metadata);
    return result;
}

}  // namespace trocar::pt2
