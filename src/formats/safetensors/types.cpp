#include <array>

#include "formats/safetensors/safetensors.h"

namespace trocar::safetensors {

namespace {

struct Entry {
    const char* name;
    DType dtype;
};

constexpr std::array entries{
    Entry{"BOOL", DType::boolean},   Entry{"U8", DType::u8},
    Entry{"I8", DType::i8},          Entry{"U16", DType::u16},
    Entry{"I16", DType::i16},        Entry{"U32", DType::u32},
    Entry{"I32", DType::i32},        Entry{"U64", DType::u64},
    Entry{"I64", DType::i64},        Entry{"F16", DType::f16},
    Entry{"BF16", DType::bf16},      Entry{"F32", DType::f32},
    Entry{"F64", DType::f64},        Entry{"F8_E4M3", DType::f8e4m3fn},
    Entry{"F8_E5M2", DType::f8e5m2}, Entry{"F8_E8M0", DType::f8e8m0},
    Entry{"C64", DType::c64},
};

}  // namespace

const char* type_name(DType dtype) {
    for (const auto& entry : entries) {
        if (entry.dtype == dtype) {
            return entry.name;
        }
    }
    return nullptr;
}

std::optional<DType> type_of_name(std::string_view name) {
    for (const auto& entry : entries) {
        if (entry.name == name) {
            return entry.dtype;
        }
    }
    return std::nullopt;
}

}  // namespace trocar::safetensors
