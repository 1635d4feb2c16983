#include <algorithm>
#include <string_view>

#include "graph/counting_rules.h"
#include "trocar/counting.h"
#include "trocar/error.h"

// What constants are to the ops that read them, and what ops read and write.
namespace trocar {
namespace {

constexpr auto w = Role::weight;
constexpr auto v = Role::vector;
constexpr auto b = Role::buffer;
constexpr auto c = Role::constant;

// Roles by slot; the last one goes on for all further slots. Ops that are not listed: `fallback`.
struct Slots {
    std::string_view type;
    Role roles[10];
    std::size_t count;
};

constexpr Slots listed[] = {
    {"ArrayFeatureExtractor", {w, c}, 2},
    {"Attention", {w, w, w, c, b, b, c}, 7},
    {"BatchNormalization", {w, v, v, b, b}, 5},
    {"BiasGelu", {w, v}, 2},
    {"Clip", {w, c, c}, 3},
    {"Compress", {w, c}, 2},
    {"Conv", {w, w, v}, 3},
    {"ConvInteger", {w, w, c}, 3},
    {"ConvTranspose", {w, w, v}, 3},
    {"CropAndResize", {w, c}, 2},
    {"CumSum", {w, c}, 2},
    {"DeformConv", {w, w, c, v, c}, 5},
    {"DequantizeLinear", {w, c, c}, 3},
    {"Dropout", {w, c}, 2},
    {"DynamicQuantizeMatMul", {w, w, c, c, v}, 5},
    {"EmbedLayerNormalization", {c, c, w, w, w, v, v, c}, 8},
    {"Equal", {c}, 1},
    {"Expand", {w, c}, 2},
    {"FastGelu", {w, v}, 2},
    {"FusedConv", {w, w, v, c}, 4},
    {"FusedGemm", {w, w, v}, 3},
    {"GRU", {w, w, w, v, c, b}, 6},
    {"Gather", {w, c}, 2},
    {"GatherBlockQuantized", {w, c, c, c}, 4},
    {"GatherElements", {w, c}, 2},
    {"GatherND", {w, c}, 2},
    {"Gemm", {w, w, v}, 3},
    {"Greater", {c}, 1},
    {"GreaterOrEqual", {c}, 1},
    {"GridSample", {w, c}, 2},
    {"GroupQueryAttention", {w, w, w, b, b, c}, 6},
    {"If", {c}, 1},
    {"LSTM", {w, w, w, v, c, b, b, v}, 8},
    {"Less", {c}, 1},
    {"LessOrEqual", {c}, 1},
    {"Loop", {c}, 1},
    {"MatMulInteger", {w, w, c}, 3},
    {"MatMulIntegerToFloat", {w, w, c, c, c, c, v}, 7},
    {"MatMulNBits", {w, w, c, c, c, v}, 6},
    {"Max", {c}, 1},
    {"Min", {c}, 1},
    {"Mod", {c}, 1},
    {"MultiHeadAttention", {w, w, w, v, c, c, b, b, c}, 9},
    {"NonMaxSuppression", {c}, 1},
    {"OneHot", {c}, 1},
    {"Pad", {w, c}, 2},
    {"Pow", {w, c}, 2},
    {"QAttention", {w, w, v, c}, 4},
    {"QGemm", {w, c, c, w, c, c, v, c}, 8},
    {"QLinearAdd", {v, c, c, v, c}, 5},
    {"QLinearConv", {w, c, c, w, c, c, c, c, v}, 9},
    {"QLinearMatMul", {w, c, c, w, c}, 5},
    {"QLinearMul", {v, c, c, v, c}, 5},
    {"QuantizeLinear", {w, c, c}, 3},
    {"RNN", {w, w, w, v, c, b}, 6},
    {"Range", {c}, 1},
    {"Resize", {w, c}, 2},
    {"RoiAlign", {w, c}, 2},
    {"RotaryEmbedding", {c}, 1},
    {"STFT", {w, c}, 2},
    {"Scan", {c}, 1},
    {"ScatterElements", {w, c, w}, 3},
    {"ScatterND", {w, c, w}, 3},
    {"Slice", {w, c}, 2},
    {"Tile", {w, c}, 2},
    {"TopK", {w, c}, 2},
    {"Trilu", {w, c}, 2},
    {"Upsample", {w, c}, 2},
    {"Where", {c}, 1},
};

bool own_domain(const Op& op) {
    return op.domain.empty() || op.domain == "ai.onnx" || op.domain == "com.microsoft";
}

// Dimensions that say something: a bias written as [1, C, 1, 1] is a vector.
std::size_t extent_rank(std::span<const std::int64_t> shape) {
    return static_cast<std::size_t>(
        std::count_if(shape.begin(), shape.end(), [](std::int64_t d) { return d != 1; }));
}

// An integer or packed type that can hold quantized weights in a slot made for weights.
bool holds_quantized(DType dtype) {
    return is_integer(dtype) && bits(dtype) > 0 && bits(dtype) <= 8;
}

// A table of integers that is looked up is no parameter; a table of reals is an embedding.
bool indexes(const Op& op) {
    return op.type.starts_with("Gather");
}

}  // namespace

std::optional<Role> declared_role(const Tensor& tensor) {
    for (const Property& property : tensor.metadata) {
        if (property.key != "kind" || !tensor.constant) {
            continue;
        }
        if (property.value == "parameter") {
            return tensor.constant->shape().size() < 2 ? Role::vector : Role::weight;
        }
        if (property.value.ends_with("buffer")) {
            return Role::buffer;
        }
        if (property.value == "constant") {
            return Role::constant;
        }
    }
    return std::nullopt;
}

Role role(const Op& op, std::size_t slot, DType dtype, std::span<const std::int64_t> shape,
          std::string_view dialect) {
    if (dialect == "aten") {
        return counting::aten_role(op, slot, dtype, shape);
    }
    if (dialect == "tflite") {
        return counting::tflite_role(op, slot, dtype, shape);
    }
    if (dialect == "tf") {
        return counting::tf_role(op, slot, dtype, shape);
    }
    bool numbers = is_float(dtype) || dtype == DType::c64 || dtype == DType::c128;
    if (own_domain(op)) {
        auto found =
            std::lower_bound(std::begin(listed), std::end(listed), op.type,
                             [](const Slots& s, const std::string& t) { return s.type < t; });
        if (found != std::end(listed) && found->type == op.type) {
            Role r = found->roles[std::min(slot, found->count - 1)];
            if (r == Role::weight || r == Role::vector) {
                bool integer_bias = r == Role::vector && dtype == DType::i32;
                bool fits = numbers || integer_bias || (holds_quantized(dtype) && !indexes(op)) ||
                            op.type == "GatherBlockQuantized";
                if (!fits || shape.empty()) {
                    return Role::constant;
                }
                return shape.size() < 2 ? Role::vector : r;
            }
            return r;
        }
    }
    // Add, Mul, MatMul, PRelu, normalizations, Concat, and ops nobody has told us about: real
    // numbers with at least one dimension are parameters.
    if (!numbers || shape.empty()) {
        return Role::constant;
    }
    bool matrix = op.type == "MatMul" || op.type == "FusedMatMul" || op.type == "Einsum";
    return matrix || extent_rank(shape) >= 2 ? Role::weight : Role::vector;
}

std::uint64_t parameter_count(const Op& op, std::size_t slot, const Constant& constant) {
    if (op.type == "MatMulNBits" && slot == 1) {
        std::int64_t k = op.integer("K", 0);
        std::int64_t n = op.integer("N", 0);
        std::int64_t all = 0;
        if (k > 0 && n > 0 && !__builtin_mul_overflow(k, n, &all)) {
            return static_cast<std::uint64_t>(all);
        }
    }
    if (op.type == "GatherBlockQuantized" && slot == 0 && bits(constant.dtype()) == 8) {
        auto width =
            static_cast<std::uint64_t>(std::clamp<std::int64_t>(op.integer("bits", 4), 1, 8));
        return constant.element_count() * (8 / width);
    }
    return constant.element_count();
}

Passing passing(const Op& op, std::string_view dialect) {
    if (dialect == "aten") {
        return counting::aten_passing(op);
    }
    if (dialect == "tflite") {
        return counting::tflite_passing(op);
    }
    if (dialect == "tf") {
        return counting::tf_passing(op);
    }
    if (dialect == "mxnet") {
        return counting::mxnet_passing(op);
    }
    struct Entry {
        std::string_view type;
        Passing passing;
    };
    static constexpr Entry entries[] = {
        {"Cast", Passing::unchanged},
        {"CastLike", Passing::unchanged},
        {"DequantizeLinear", Passing::dequantized},
        {"Expand", Passing::reshaped},
        {"Flatten", Passing::reshaped},
        {"Identity", Passing::unchanged},
        {"Reshape", Passing::reshaped},
        {"Squeeze", Passing::reshaped},
        {"Transpose", Passing::transposed},
        {"Unsqueeze", Passing::reshaped},
    };
    for (const Entry& entry : entries) {
        if (own_domain(op) && entry.type == op.type) {
            return entry.passing;
        }
    }
    return Passing::no;
}

std::optional<WeightAxes> weight_axes(const Op& op, std::size_t slot, std::size_t rank,
                                      std::string_view dialect) {
    if (dialect == "aten") {
        return counting::aten_weight_axes(op, slot, rank);
    }
    if (dialect == "tflite") {
        return counting::tflite_weight_axes(op, slot, rank);
    }
    if (dialect == "tf") {
        return counting::tf_weight_axes(op, slot, rank);
    }
    if (dialect == "mxnet") {
        return counting::mxnet_weight_axes(op, slot, rank);
    }
    std::string_view type = op.type;
    if (rank < 2) {
        return std::nullopt;
    }
    if ((type == "Conv" || type == "FusedConv" || type == "ConvInteger" || type == "DeformConv") &&
        slot == 1) {
        return WeightAxes{0, 1};
    }
    if (type == "QLinearConv" && slot == 3) {
        return WeightAxes{0, 1};
    }
    if (type == "ConvTranspose" && slot == 1) {
        return WeightAxes{1, 0};
    }
    if ((type == "Gemm" || type == "FusedGemm") && slot == 1) {
        return op.integer("transB", 0) != 0 ? WeightAxes{0, 1} : WeightAxes{1, 0};
    }
    bool product = type == "MatMul" || type == "MatMulInteger" || type == "FusedMatMul" ||
                   type == "MatMulIntegerToFloat" || type == "DynamicQuantizeMatMul";
    if ((product && slot == 1) || (type == "QLinearMatMul" && slot == 3)) {
        return WeightAxes{rank - 1, rank - 2};
    }
    if (product && slot == 0) {
        return WeightAxes{rank - 2, rank - 1};
    }
    if ((type == "LSTM" || type == "GRU" || type == "RNN") && (slot == 1 || slot == 2) &&
        rank == 3) {
        return WeightAxes{1, 2};
    }
    return std::nullopt;
}

namespace {

counting::Reach reach_of(const OpFacts& facts) {
    using counting::Reach;
    if (facts.dialect == "aten") {
        return counting::aten_reach(*facts.op);
    }
    if (facts.dialect == "tflite") {
        return counting::tflite_reach(*facts.op);
    }
    if (facts.dialect == "tf") {
        return counting::tf_reach(*facts.op);
    }
    std::string_view type = facts.op->type;
    if (type == "Shape" || type == "Size") {
        return Reach::nothing;
    }
    return type.starts_with("Gather") || type == "Slice" ? Reach::picked : Reach::all;
}

}  // namespace

Traffic traffic(const OpFacts& facts) {
    auto bytes = [](const TensorFacts& t) -> std::optional<std::uint64_t> {
        if (!t.shape || bits(t.dtype) == 0) {
            return std::nullopt;
        }
        if (t.constant != nullptr && t.constant->is_sparse()) {
            return t.constant->stored_bytes();
        }
        try {
            return byte_size(t.dtype, element_count(*t.shape));
        } catch (const Error&) {
            return std::nullopt;
        }
    };
    auto add = [](std::optional<std::uint64_t>& sum, std::optional<std::uint64_t> more) {
        sum = sum && more ? std::optional(*sum + *more) : std::nullopt;
    };
    Traffic result{0, 0};
    for (const TensorFacts& t : facts.outputs) {
        if (t.present) {
            add(result.written, bytes(t));
        }
    }
    const auto reach = reach_of(facts);
    if (reach == counting::Reach::nothing) {
        return result;
    }
    const bool picks = reach == counting::Reach::picked;
    for (std::size_t slot = 0; slot < facts.inputs.size(); ++slot) {
        if (!facts.inputs[slot].present) {
            continue;
        }
        std::optional<std::uint64_t> more = bytes(facts.inputs[slot]);
        if (picks && slot == 0 && more && result.written) {
            more = std::min(*more, *result.written);
        }
        add(result.read, more);
    }
    return result;
}

}  // namespace trocar
