#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)
namespace trocar {

// The type of one element. The numbers are those of ONNX's TensorProto.DataType, and the set is
// open: a number that is not named here is read, kept, shown and written back, but not computed on.
enum class DType : std::int32_t {
    undefined = 0,
    f32 = 1,
    u8 = 2,
    i8 = 3,
    u16 = 4,
    i16 = 5,
    i32 = 6,
    i64 = 7,
    string = 8,
    boolean = 9,
    f16 = 10,
    f64 = 11,
    u32 = 12,
    u64 = 13,
    c64 = 14,
    c128 = 15,
    bf16 = 16,
    f8e4m3fn = 17,
    f8e4m3fnuz = 18,
    f8e5m2 = 19,
    f8e5m2fnuz = 20,
    u4 = 21,
    i4 = 22,
    f4e2m1 = 23,
    f8e8m0 = 24,
    u2 = 25,
    i2 = 26,
    f6e2m3 = 27,
    f6e3m2 = 28,
};

// "f32", "bf16", "i4"…; "dtype 99" for a number without a name.
std::string name(DType dtype);

// Takes the names above and the common synonyms ("float32", "float", "int64", "half"…).
std::optional<DType> parse_dtype(std::string_view text);

// Bits of one element as stored; 0 for strings, undefined and unknown types. Elements below 8 bits
// are packed, the first one in the low bits of the first byte.
std::size_t bits(DType dtype);

// Bytes that `count` dense elements take (rounded up for packed types). Throws Error(input) when
// the result does not fit 63 bits. 0 where bits() is 0.
std::size_t byte_size(DType dtype, std::size_t count);

bool is_float(DType dtype);  // all floating-point types, fp8 and smaller included
bool is_integer(DType dtype);

}  // namespace trocar
#pragma GCC visibility pop
