#include "formats/tensorflow/result_types.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace trocar::tensorflow {

namespace {

// Results whose element type no attribute of the op has.
struct Fixed {
    std::string_view type;
    std::size_t slot;
    DType dtype;
};
constexpr std::size_t every = static_cast<std::size_t>(-1);
constexpr std::array fixed{
    Fixed{"All", 0, DType::boolean},
    Fixed{"Any", 0, DType::boolean},
    Fixed{"ApproximateEqual", 0, DType::boolean},
    Fixed{"CropAndResize", 0, DType::f32},
    Fixed{"Equal", 0, DType::boolean},
    Fixed{"Greater", 0, DType::boolean},
    Fixed{"GreaterEqual", 0, DType::boolean},
    Fixed{"IsFinite", 0, DType::boolean},
    Fixed{"IsInf", 0, DType::boolean},
    Fixed{"IsNan", 0, DType::boolean},
    Fixed{"Less", 0, DType::boolean},
    Fixed{"LessEqual", 0, DType::boolean},
    Fixed{"LogicalAnd", 0, DType::boolean},
    Fixed{"LogicalNot", 0, DType::boolean},
    Fixed{"LogicalOr", 0, DType::boolean},
    Fixed{"LoopCond", 0, DType::boolean},
    Fixed{"Merge", 1, DType::i32},
    Fixed{"NonMaxSuppressionV3", 0, DType::i32},
    Fixed{"NonMaxSuppressionV4", every, DType::i32},
    Fixed{"NotEqual", 0, DType::boolean},
    Fixed{"Rank", 0, DType::i32},
    Fixed{"ResizeBicubic", 0, DType::f32},
    Fixed{"ResizeBilinear", 0, DType::f32},
    Fixed{"Where", 0, DType::i64},
};

// Attributes that name the element type of a result, where it is not the first of `usual`.
struct NamedType {
    std::string_view type;
    std::size_t slot;
    std::string_view attribute;
    DType otherwise;
};
constexpr std::array named{
    NamedType{"ArgMax", 0, "output_type", DType::i64},
    NamedType{"ArgMin", 0, "output_type", DType::i64},
    NamedType{"Complex", 0, "Tout", DType::c64},
    NamedType{"ComplexAbs", 0, "Tout", DType::f32},
    NamedType{"FusedBatchNormV2", 0, "T", DType::undefined},
    NamedType{"FusedBatchNormV2", every, "U", DType::undefined},
    NamedType{"FusedBatchNormV3", 0, "T", DType::undefined},
    NamedType{"FusedBatchNormV3", every, "U", DType::undefined},
    NamedType{"Gather", 0, "Tparams", DType::undefined},
    NamedType{"GatherNd", 0, "Tparams", DType::undefined},
    NamedType{"GatherV2", 0, "Tparams", DType::undefined},
    NamedType{"IRFFT", 0, "Treal", DType::f32},
    NamedType{"Imag", 0, "Tout", DType::f32},
    NamedType{"IRFFT2D", 0, "Treal", DType::f32},
    NamedType{"LookupTableFindV2", 0, "Tout", DType::undefined},
    NamedType{"MaxPoolWithArgmax", 1, "Targmax", DType::i64},
    NamedType{"RFFT", 0, "Tcomplex", DType::c64},
    NamedType{"RFFT2D", 0, "Tcomplex", DType::c64},
    NamedType{"Range", 0, "Tidx", DType::i32},
    NamedType{"Real", 0, "Tout", DType::f32},
    NamedType{"Shape", every, "out_type", DType::i32},
    NamedType{"ShapeN", every, "out_type", DType::i32},
    NamedType{"Size", 0, "out_type", DType::i32},
    NamedType{"TopKV2", 1, "index_type", DType::i32},
    NamedType{"Unique", 1, "out_idx", DType::i32},
    NamedType{"UniqueV2", 1, "out_idx", DType::i32},
};

const Attribute::Value* find(const OpSpec& spec, std::string_view name) {
    for (const auto& attribute : spec.attributes) {
        if (attribute.name == name) {
            return &attribute.value;
        }
    }
    return nullptr;
}

DType parsed(const std::string& name) {
    return parse_dtype(name).value_or(DType::undefined);
}

}  // namespace

DType result_type(const OpSpec& spec, std::size_t slot) {
    for (const auto& one : fixed) {
        if (one.type == spec.type && (one.slot == every || one.slot == slot)) {
            return one.dtype;
        }
    }
    for (const auto& one : named) {
        if (one.type == spec.type && (one.slot == every || one.slot == slot)) {
            const auto* value = find(spec, one.attribute);
            const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
            return text == nullptr ? one.otherwise : parsed(*text);
        }
    }
    // Lists have a type for each result; one type is that of all.
    for (const char* name :
         {"DstT", "Tout", "out_type", "output_types", "output_type", "dtype", "T"}) {
        const auto* value = find(spec, name);
        if (value == nullptr) {
            continue;
        }
        if (const auto* text = std::get_if<std::string>(value)) {
            return parsed(*text);
        }
        if (const auto* texts = std::get_if<std::vector<std::string>>(value)) {
            return slot < texts->size() ? parsed((*texts)[slot]) : DType::undefined;
        }
    }
    return DType::undefined;
}

}  // namespace trocar::tensorflow
