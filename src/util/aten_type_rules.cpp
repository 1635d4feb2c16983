#include "util/aten_type_rules.h"

#include <algorithm>
#include <unordered_map>

namespace trocar::aten {

Type tensor(DType dtype, Dims dims) {
    Type made = Type::tensor(dtype);
    made.dims = std::move(dims);
    return made;
}
Dims unknown_dims(std::size_t rank) {
    return std::vector<Dim>(rank);
}
namespace {

int width(DType dtype) {
    return dtype == DType::boolean     ? 0
           : is_integer(dtype)         ? 1
           : dtype == DType::undefined ? -1
           : is_float(dtype)           ? 2
                                       : 3;
}
}  // namespace

DType promoted(DType a, bool a_scalar, DType b, bool b_scalar) {
    if (a == DType::undefined || b == DType::undefined || a == b) {
        return a == b ? a : DType::undefined;
    }
    if (width(a) != width(b)) {
        return width(a) > width(b) ? a : b;
    }
    if (a_scalar != b_scalar) {
        return a_scalar ? b : a;
    }
    // Neither of two types of one size holds the numbers of the other.
    if (bits(a) == bits(b) && bits(a) < 32) {
        return is_float(a) ? DType::f32 : DType::i16;
    }
    return bits(a) >= bits(b) ? a : b;
}

namespace {

bool is_scalar(const Type& type) {
    return type.dims && type.dims->empty();
}
Dims broadcast(const Dims& a, const Dims& b) {
    if (!a || !b) {
        return std::nullopt;
    }
    const auto& longer = a->size() >= b->size() ? *a : *b;
    const auto& shorter = a->size() >= b->size() ? *b : *a;
    auto made = longer;
    for (std::size_t i = 0; i < shorter.size(); ++i) {
        auto& one = made[made.size() - 1 - i];
        const auto& other = shorter[shorter.size() - 1 - i];
        if (one.value == 1 || other.value > 1) {
            one = other;
        } else if (other.value != 1 && one != other && one.value < 0) {
            one = Dim{};
        }
    }
    return made;
}
DType floated(DType dtype) {
    return dtype == DType::boolean || is_integer(dtype) ? DType::f32 : dtype;
}

DType named_type(const Look& look, DType otherwise) {
    const auto name = look.op.text("dtype", "");
    constexpr std::pair<std::string_view, DType> names[] = {
        {"float32", DType::f32},   {"float64", DType::f64}, {"float16", DType::f16},
        {"bfloat16", DType::bf16}, {"int64", DType::i64},   {"int32", DType::i32},
        {"int16", DType::i16},     {"int8", DType::i8},     {"uint8", DType::u8},
        {"bool", DType::boolean}};
    for (const auto& [known, dtype] : names) {
        if (name == known) {
            return dtype;
        }
    }
    if (name == "like") {
        const auto slot = look.slot("dtype");
        return slot ? look.dtype(*slot) : otherwise;
    }
    return name.empty() ? otherwise : DType::undefined;
}

Types same(const Look& look) {
    return {look.type(0)};
}
Types same_element_type(const Look& look) {
    return {tensor(look.dtype(0), std::nullopt)};
}
// Other sizes, along as many axes; and places, where it has them.
Types same_rank(const Look& look) {
    const auto from = look.dims(0);
    const auto dims = from ? unknown_dims(from->size()) : Dims();
    return {tensor(look.dtype(0), dims), tensor(DType::i64, dims)};
}
Types sorted(const Look& look) {
    const auto places = tensor(DType::i64, look.dims(0));
    return look.op.type == "argsort" ? Types{places} : Types{look.type(0), places};
}
Types like_second(const Look& look) {
    return {tensor(look.dtype(0), look.dims(1))};
}
Types real(const Look& look) {
    return {tensor(named_type(look, floated(look.dtype(0))), look.dims(0))};
}
// A number beside a tensor makes it real where it is real itself.
DType beside_number(const Look& look, const char* argument) {
    const auto* number = look.op.attribute(argument);
    const bool is_real = number != nullptr && std::holds_alternative<float>(number->value);
    const bool counts = number != nullptr && std::holds_alternative<std::int64_t>(number->value);
    return is_real                                     ? floated(look.dtype(0))
           : counts && look.dtype(0) == DType::boolean ? DType::i64
                                                       : look.dtype(0);
}
// Truths and integers are added up in 64 bits, truths are multiplied in them.
Types accumulated(const Look& look) {
    const auto from = look.dtype(0);
    const bool widened = from == DType::boolean || (look.op.type == "cumsum" && is_integer(from));
    return {tensor(named_type(look, widened ? DType::i64 : from), look.dims(0))};
}
Types clamped(const Look& look) {
    const bool low = beside_number(look, "min") != look.dtype(0);
    return {tensor(beside_number(look, low ? "min" : "max"), look.dims(0))};
}
Types binary(const Look& look) {
    if (!look.has(1)) {
        const auto* argument = look.op.attribute("exponent") != nullptr ? "exponent"
                               : look.op.attribute("self") != nullptr   ? "self"  // before it
                                                                        : "other";
        return {tensor(beside_number(look, argument), look.dims(0))};
    }
    const auto a = look.type(0);
    const auto b = look.type(1);
    return {
        tensor(promoted(a.dtype, is_scalar(a), b.dtype, is_scalar(b)), broadcast(a.dims, b.dims))};
}
Types divided(const Look& look) {
    auto made = binary(look);
    if (look.op.attribute("rounding_mode") == nullptr) {
        made[0].dtype = floated(made[0].dtype);
    }
    return made;
}
Types compared(const Look& look) {
    return {
        tensor(DType::boolean, look.has(1) ? broadcast(look.dims(0), look.dims(1)) : look.dims(0))};
}
Types where(const Look& look) {
    const auto a = look.type(1);
    const auto b = look.type(2);
    return {tensor(promoted(a.dtype, is_scalar(a), b.dtype, is_scalar(b)),
                   broadcast(look.dims(0), broadcast(a.dims, b.dims)))};
}
Types convolution(const Look& look) {
    const auto x = look.type(0);
    const auto w = look.type(1);
    auto dims = x.dims ? x.dims : w.dims ? unknown_dims(w.dims->size()) : Dims();
    if (dims && w.dims && dims->size() == w.dims->size() && dims->size() > 2) {
        const auto list = [&](const char* name, std::size_t i, std::int64_t otherwise) {
            const auto all = look.op.integers(name);
            return all.empty() ? otherwise : all[std::min(i, all.size() - 1)];
        };
        const bool plain = look.op.integer("transposed", 0) == 0 &&
                           !look.op.type.starts_with("conv_transpose") &&
                           look.op.type != "_convolution_mode" && look.op.overload != "padding";
        (*dims)[1] = plain ? (*w.dims)[0] : Dim{};
        for (std::size_t i = 2; i < dims->size(); ++i) {
            auto& size = (*dims)[i];
            const auto kernel = (*w.dims)[i].value;
            const auto stride = list("stride", i - 2, 1);
            if (!plain || size.value < 0 || kernel < 0 || stride < 1) {
                size = Dim{};
                continue;
            }
            const auto reach = size.value + 2 * list("padding", i - 2, 0) -
                               list("dilation", i - 2, 1) * (kernel - 1) - 1;
            size = reach < 0 ? Dim{} : Dim{reach / stride + 1, {}};
        }
    }
    return {tensor(x.dtype != DType::undefined ? x.dtype : w.dtype, std::move(dims))};
}
Types linear(const Look& look) {
    const auto x = look.type(0);
    const auto w = look.type(1);
    auto dims = x.dims;
    if (dims && !dims->empty() && w.dims && w.dims->size() == 2) {
        dims->back() = (*w.dims)[0];
    } else if (dims && !dims->empty() && w.dims && w.dims->size() == 1) {
        dims->pop_back();
    }
    return {tensor(x.dtype != DType::undefined ? x.dtype : w.dtype, std::move(dims))};
}
Types matmul(const Look& look) {
    const auto a = look.dims(0);
    const auto b = look.dims(1);
    Dims dims;
    if (a && b && a->size() >= 2 && b->size() >= 2) {
        const Dims heads = broadcast(std::vector<Dim>(a->begin(), a->end() - 2),
                                     std::vector<Dim>(b->begin(), b->end() - 2));
        dims = heads;
        dims->push_back((*a)[a->size() - 2]);
        dims->push_back(b->back());
    } else if (a && b && !a->empty() && !b->empty()) {
        dims = unknown_dims(a->size() + b->size() - 2 - (a->size() > 1 && b->size() > 1 ? 2 : 0));
    }
    return {tensor(look.dtype(0), std::move(dims))};
}
Types embedding(const Look& look) {
    const auto table = look.type(0);
    auto dims = look.dims(1);
    if (dims) {
        dims->push_back(table.dims && table.dims->size() == 2 ? (*table.dims)[1] : Dim{});
    }
    return {tensor(table.dtype, std::move(dims))};
}
Types reduced(const Look& look) {
    if (look.op.overload == "other") {  // the larger one of two
        return binary(look);
    }
    auto made = look.type(0);
    const auto& type = look.op.type;
    if (type == "argmax" || type == "argmin") {
        made.dtype = DType::i64;
    } else if (type == "sum" || type == "prod") {
        made.dtype =
            is_integer(made.dtype) || made.dtype == DType::boolean ? DType::i64 : made.dtype;
    } else if (type == "any" || type == "all") {
        made.dtype = made.dtype == DType::u8 ? DType::u8 : DType::boolean;
    }
    made.dtype = named_type(look, made.dtype);
    auto axes = look.op.integers("dim");
    if (const auto* one = look.op.attribute("dim");
        one != nullptr && std::holds_alternative<std::int64_t>(one->value)) {
        axes = {std::get<std::int64_t>(one->value)};
    }
    if (look.op.attribute("dim") == nullptr || axes.empty()) {
        const bool kept = look.op.integer("keepdim", 0) != 0;
        made.dims = !kept       ? Dims(std::vector<Dim>())
                    : made.dims ? Dims(std::vector<Dim>(made.dims->size(), Dim{1, {}}))
                                : std::nullopt;
    } else if (made.dims) {
        const auto rank = static_cast<std::int64_t>(made.dims->size());
        std::vector<Dim> left;
        for (std::int64_t i = 0; i < rank; ++i) {
            const bool gone = std::any_of(axes.begin(), axes.end(), [&](std::int64_t axis) {
                return axis == i || axis + rank == i;
            });
            if (!gone) {
                left.push_back((*made.dims)[static_cast<std::size_t>(i)]);
            } else if (look.op.integer("keepdim", 0) != 0) {
                left.push_back({1, {}});
            }
        }
        made.dims = std::move(left);
    }
    return {made, tensor(DType::i64, made.dims)};
}
Types converted(const Look& look) {
    const auto other = look.op.overload == "other" && look.has(1) ? look.dtype(1) : look.dtype(0);
    const auto& type = look.op.type;
    const auto to = type == "type_as" ? look.dtype(1) : named_type(look, other);
    return {tensor(to, look.dims(0))};
}
Types made_anew(const Look& look) {
    const bool like = look.op.type.ends_with("_like") || look.op.type.starts_with("new_");
    auto dims = look.op.type.ends_with("_like") ? look.dims(0) : stated(look.op, "size");
    auto otherwise = like ? look.dtype(0) : DType::f32;
    if (look.op.type == "full") {
        const auto* value = look.op.attribute("fill_value");
        otherwise = value != nullptr && std::holds_alternative<std::int64_t>(value->value)
                        ? DType::i64
                        : DType::f32;
    }
    return {tensor(named_type(look, otherwise), std::move(dims))};
}
Types counted(const Look& look) {  // arange
    bool is_real = false;
    for (const char* name : {"start", "end", "step"}) {
        const auto* value = look.op.attribute(name);
        const auto slot = look.slot(name);
        is_real = is_real || (value != nullptr && std::holds_alternative<float>(value->value)) ||
                  (slot && is_float(look.dtype(*slot)));
    }
    return {tensor(named_type(look, is_real ? DType::f32 : DType::i64), unknown_dims(1))};
}
Types attention(const Look& look) {
    auto dims = look.dims(0);
    if (const auto v = look.dims(2); dims && v && !dims->empty() && !v->empty()) {
        dims->back() = v->back();
    }
    return {tensor(look.dtype(0), std::move(dims))};
}
Types recurrent(const Look& look) {
    const auto x = look.type(0);
    const auto states = tensor(x.dtype, unknown_dims(x.dims ? x.dims->size() : 3));
    return Types(look.op.outputs.size(), states);
}
Types cell(const Look& look) {
    return Types(look.op.outputs.size(), look.has(1) ? look.type(1) : look.type(0));
}
// A list of tensors, from those that are put into it.
Types list_of(const Look& look) {
    Type made;
    made.kind = Type::Kind::sequence;
    if (look.op.type == "append") {
        made = look.type(0);
        if (made.kind == Type::Kind::sequence && !made.element.empty() &&
            made.element[0].kind == Type::Kind::unknown) {
            made.element = {tensor(look.dtype(1), std::nullopt)};
        }
        return {made};
    }
    if (!look.has(0) || look.op.outputs.empty() ||
        look.graph.tensor(look.op.outputs[0]).type.kind != Type::Kind::sequence) {
        return {};
    }
    made.element = {tensor(look.dtype(0), std::nullopt)};
    return {made};
}
Types item_of(const Look& look) {
    const auto list = look.type(0);
    if (look.slot("list[0]")) {  // one of these
        auto made = list;
        for (std::size_t i = 1; i < look.op.inputs.size() && look.slot("idx") != i; ++i) {
            made = look.type(i) == made
                       ? made
                       : tensor(look.dtype(i) == made.dtype ? made.dtype : DType::undefined,
                                std::nullopt);
        }
        return {made};
    }
    return list.kind == Type::Kind::sequence && !list.element.empty()
               ? Types(look.op.outputs.size(), list.element[0])
               : Types();
}
Types number_as_tensor(const Look& look) {
    return {tensor(look.has(0) ? look.dtype(0)
                   : look.op.attribute("a") != nullptr &&
                           std::holds_alternative<float>(look.op.attribute("a")->value)
                       ? DType::f32
                       : DType::i64,
                   std::vector<Dim>())};
}

Types tensor_of_number(const Look& look) {
    const auto& overload = look.op.overload;
    return {tensor(named_type(look, overload == "int"    ? DType::i64
                                    : overload == "bool" ? DType::boolean
                                                         : DType::f32),
                   std::vector<Dim>())};
}

const std::unordered_map<std::string_view, TypeRule>& rules() {
    static const std::unordered_map<std::string_view, TypeRule> all = [] {
        std::unordered_map<std::string_view, TypeRule> made;
        const auto add = [&](TypeRule rule, std::initializer_list<std::string_view> names) {
            for (const auto name : names) {
                made.emplace(name, rule);
            }
        };
        add(same, {"relu",          "relu6",
                   "gelu",          "silu",
                   "hardtanh",      "hardswish",
                   "hardsigmoid",   "leaky_relu",
                   "elu",           "selu",
                   "celu",          "mish",
                   "prelu",         "abs",
                   "neg",           "floor",
                   "ceil",          "round",
                   "sign",          "trunc",
                   "dropout",       "feature_dropout",
                   "alpha_dropout", "clone",
                   "contiguous",    "alias",
                   "detach",        "lift_fresh_copy",
                   "layer_norm",    "group_norm",
                   "batch_norm",    "instance_norm",
                   "masked_fill",   "log_sigmoid",
                   "flip",          "roll",
                   "tril",          "triu",
                   "fill",          "copy",
                   "zero",          "cpu",
                   "cuda",          "index_put",
                   "scatter",       "unchecked_cast",
                   "threshold",     "native_group_norm",
                   "rms_norm",      "lerp",
                   "addcmul"});
        add(real, {"sigmoid",  "tanh",         "exp",      "exp2",       "expm1",   "log",
                   "log2",     "log10",        "log1p",    "sqrt",       "rsqrt",   "sin",
                   "cos",      "tan",          "asin",     "acos",       "atan",    "sinh",
                   "cosh",     "erf",          "erfc",     "reciprocal", "softmax", "log_softmax",
                   "_softmax", "_log_softmax", "softplus", "asinh",      "acosh",   "atanh"});
        add(binary,
            {"add", "sub", "rsub", "mul", "maximum", "minimum", "pow", "remainder", "fmod",
             "floor_divide", "bitwise_and", "bitwise_or", "bitwise_xor", "__and__", "__or__"});
        add(accumulated, {"cumsum", "square"});
        add(clamped, {"clamp", "clamp_min", "clamp_max"});
        add(divided, {"div", "true_divide", "atan2"});
        add(compared, {"eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or",
                       "logical_xor", "logical_not", "isnan", "isinf"});
        add(where, {"where"});
        add(convolution,
            {"conv1d", "conv2d", "conv3d", "convolution", "_convolution", "_convolution_mode",
             "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"});
        add(linear, {"linear"});
        add(matmul, {"matmul", "mm", "bmm"});
        add(embedding, {"embedding"});
        add(resized, {"max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d",
                      "avg_pool3d", "max_pool2d_with_indices", "adaptive_avg_pool1d",
                      "adaptive_avg_pool2d", "adaptive_max_pool2d", "upsample_nearest1d",
                      "upsample_nearest2d", "upsample_bilinear2d", "upsample_bicubic2d"});
        add(padded, {"pad", "constant_pad_nd", "reflection_pad1d", "reflection_pad2d",
                     "replication_pad1d", "replication_pad2d"});
        add(viewed, {"view", "_unsafe_view", "reshape"});
        add(expanded, {"expand"});
        add(flattened, {"flatten"});
        add(permuted, {"permute"});
        add(swapped, {"transpose", "t", "swapaxes", "mT"});
        add(unsqueezed, {"unsqueeze"});
        add(squeezed, {"squeeze"});
        add(joined, {"cat", "concat", "stack"});
        add(parts, {"split", "chunk", "split_with_sizes", "unbind"});
        add(sliced, {"slice", "narrow"});
        add(selected, {"select"});
        add(picked, {"index_select"});
        add(gathered, {"gather"});
        add(reduced, {"mean", "sum", "prod", "amax", "amin", "max", "min", "argmax", "argmin",
                      "any", "all", "std", "var", "norm", "logsumexp", "linalg_vector_norm"});
        add(same_element_type, {"einsum", "index", "unflatten", "baddbmm"});
        add(same_rank, {"topk", "glu", "pixel_shuffle"});
        add(sorted, {"sort", "argsort"});
        add(like_second, {"expand_as"});
        add(converted, {"to", "_to_copy", "type_as", "float"});
        add(made_anew,
            {"zeros", "ones", "full", "empty", "rand", "randn", "zeros_like", "ones_like",
             "full_like", "empty_like", "new_zeros", "new_ones", "new_full"});
        add(counted, {"arange"});
        add(attention, {"scaled_dot_product_attention"});
        add(recurrent, {"lstm", "gru", "rnn_tanh"});
        add(cell, {"lstm_cell", "gru_cell"});
        add(list_of, {"append", "ListConstruct"});
        add(item_of, {"__getitem__", "ListUnpack"});
        add(number_as_tensor, {"NumToTensor"});
        add(tensor_of_number, {"tensor", "scalar_tensor"});
        return made;
    }();
    return all;
}

}  // namespace

TypeRule type_rule(std::string_view name) {
    const auto found = rules().find(name);
    return found == rules().end() ? nullptr : found->second;
}

bool keeps_element_type(std::string_view name) {
    const auto rule = type_rule(name);
    return rule != nullptr && (rule == same || rule == viewed || rule == padded ||
                               rule == unsqueezed || rule == squeezed || rule == swapped ||
                               rule == permuted || rule == sliced || rule == joined);
}

}  // namespace trocar::aten
