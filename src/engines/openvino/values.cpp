#include "engines/openvino/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace trocar::ov {

namespace {

constexpr std::pair<DType, ElementType> types[]{
    {DType::f32, ElementType::f32},       {DType::u8, ElementType::u8},
    {DType::i8, ElementType::i8},         {DType::u16, ElementType::u16},
    {DType::i16, ElementType::i16},       {DType::i32, ElementType::i32},
    {DType::i64, ElementType::i64},       {DType::boolean, ElementType::boolean},
    {DType::f16, ElementType::f16},       {DType::f64, ElementType::f64},
    {DType::u32, ElementType::u32},       {DType::u64, ElementType::u64},
    {DType::bf16, ElementType::bf16},     {DType::f8e4m3fn, ElementType::f8e4m3},
    {DType::f8e5m2, ElementType::f8e5m2}, {DType::u4, ElementType::u4},
    {DType::i4, ElementType::i4},         {DType::u2, ElementType::u2},
    {DType::f4e2m1, ElementType::f4e2m1}, {DType::f8e8m0, ElementType::f8e8m0},
};

template <class T>
void check_range(const Value& value) {
    constexpr auto most = std::numeric_limits<std::int32_t>::max();
    for (const auto number : value.as<T>()) {
        bool fits = number <= static_cast<T>(most);
        if constexpr (std::is_signed_v<T>) {
            fits = fits && number >= std::numeric_limits<std::int32_t>::min();
        }
        if (!fits) {
            throw Error(Fault::unsupported,
                        fmt::format("{} does not fit the 32 bits in which OpenVINO computes "
                                    "integers of the type {}",
                                    number, name(value.dtype())));
        }
    }
}

void check_numbers(const Value& value) {
    switch (value.dtype()) {
        case DType::i64:
            return check_range<std::int64_t>(value);
        case DType::u64:
            return check_range<std::uint64_t>(value);
        case DType::u32:
            return check_range<std::uint32_t>(value);
        default:
            return;
    }
}

bool is_aligned(const Value& value) {
    const auto size = std::clamp<std::size_t>(bits(value.dtype()) / 8, 1, 8);
    return reinterpret_cast<std::uintptr_t>(value.bytes().data()) % size == 0;
}

}  // namespace

std::optional<ElementType> element_type(DType dtype) {
    for (const auto& [ours, theirs] : types) {
        if (ours == dtype) {
            return theirs;
        }
    }
    return std::nullopt;
}

std::optional<DType> dtype_of(ElementType type) {
    for (const auto& [ours, theirs] : types) {
        if (theirs == type) {
            return ours;
        }
    }
    return std::nullopt;
}

Wrapped wrap(const Library& library, const Value& value) {
    const auto type = element_type(value.dtype());
    if (!value.is_tensor() || !type) {
        throw Error(Fault::unsupported,
                    fmt::format("OpenVINO takes no {} as an input", value_text(value)));
    }
    if (!value.device().is_host()) {
        throw Error(Fault::engine, fmt::format("OpenVINO reads no memory of the device '{}'",
                                               value.device().kind));
    }
    Wrapped made{Owned<TensorHandle>(library.api().release_tensor), value};
    if (!is_aligned(value)) {
        made.kept = Value::copy(value.dtype(), value.shape(), value.bytes());
    }
    check_numbers(made.kept);
    auto shape = value.shape();
    const Dimensions dims{static_cast<std::int64_t>(shape.size()), shape.data()};
    // The engine wants an address even where there is nothing to read.
    static std::byte nothing[64]{};
    const auto bytes = made.kept.bytes();
    auto* data = const_cast<std::byte*>(bytes.empty() ? nothing : bytes.data());
    library.check(library.api().create_tensor_view(*type, dims, data, made.tensor.fill()),
                  "take a tensor");
    return made;
}

Value copy_of(const Library& library, const TensorHandle* tensor) {
    constexpr const char* what = "give a tensor";
    const auto& api = library.api();
    ElementType type{};
    library.check(api.tensor_type(tensor, &type), what);
    const auto dtype = dtype_of(type);
    if (!dtype) {
        throw Error(Fault::unsupported,
                    fmt::format("it is of a type that Trocar does not know (OpenVINO's number {})",
                                static_cast<int>(type)));
    }
    const auto shape = shape_of(library, api.tensor_shape, tensor);
    auto value = Value::tensor(*dtype, shape);
    const auto to = value.mutable_bytes();
    if (to.empty()) {
        return value;
    }
    std::size_t size = 0;
    void* data = nullptr;
    library.check(api.tensor_byte_size(tensor, &size), what);
    library.check(api.tensor_data(tensor, &data), what);
    if (size != to.size() || data == nullptr) {
        throw Error(Fault::engine, fmt::format("{} has {} bytes in OpenVINO, not {}",
                                               value_text(value), size, to.size()));
    }
    std::memcpy(to.data(), data, size);
    return value;
}

}  // namespace trocar::ov
