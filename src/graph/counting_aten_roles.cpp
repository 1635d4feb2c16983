#include <algorithm>
#include <array>

#include "graph/counting_rules.h"

// What constants are to ops of the dialect "aten", where the file itself does not say.
namespace trocar::counting {

namespace {

std::string_view argument_name(const Op& op, std::size_t slot) {
    const Attribute* attribute = op.attribute("inputs");
    const auto* names =
        attribute ? std::get_if<std::vector<std::string>>(&attribute->value) : nullptr;
    return names != nullptr && slot < names->size() ? std::string_view((*names)[slot])
                                                    : std::string_view();
}

// "relu_" is relu in place.
std::string_view plain_type(const Op& op) {
    std::string_view type = op.type;
    if (type.size() > 1 && type.back() == '_' && type[type.size() - 2] != '_') {
        type.remove_suffix(1);
    }
    return type;
}

template <std::size_t count>
bool is_one_of(std::string_view type, const std::array<std::string_view, count>& types) {
    return std::find(types.begin(), types.end(), type) != types.end();
}

}  // namespace

Role aten_role(const Op& op, std::size_t slot, DType dtype, std::span<const std::int64_t> shape) {
    const auto name = argument_name(op, slot);
    if (name == "running_mean" || name == "running_var" || name.starts_with("hx")) {
        return Role::buffer;
    }
    bool numbers = is_float(dtype) || dtype == DType::c64 || dtype == DType::c128;
    bool quantized = is_integer(dtype) && bits(dtype) <= 8 && name == "weight";
    if ((!numbers && !quantized) || shape.empty()) {
        return Role::constant;
    }
    auto wide = std::count_if(shape.begin(), shape.end(), [](std::int64_t d) { return d != 1; });
    return wide >= 2 || (shape.size() >= 2 && name == "weight") ? Role::weight : Role::vector;
}

Passing aten_passing(const Op& op) {
    static constexpr std::array<std::string_view, 9> unchanged{
        "_to_copy",        "alias", "clone",   "contiguous", "detach",
        "lift_fresh_copy", "to",    "type_as", "copy"};
    static constexpr std::array<std::string_view, 5> transposed{"numpy_T", "permute", "swapaxes",
                                                                "t", "transpose"};
    static constexpr std::array<std::string_view, 9> reshaped{
        "_unsafe_view", "expand",    "flatten", "reshape",  "squeeze",
        "unflatten",    "unsqueeze", "view",    "expand_as"};
    if (op.domain == "quantized_decomposed" && op.type.starts_with("dequantize")) {
        return Passing::dequantized;
    }
    if (!op.domain.empty()) {
        return Passing::no;
    }
    return is_one_of(op.type, unchanged)    ? Passing::unchanged
           : is_one_of(op.type, transposed) ? Passing::transposed
           : is_one_of(op.type, reshaped)   ? Passing::reshaped
                                            : Passing::no;
}

std::optional<WeightAxes> aten_weight_axes(const Op& op, std::size_t slot, std::size_t rank) {
    const auto name = argument_name(op, slot);
    const auto type = plain_type(op);
    if (!op.domain.empty() || rank < 2) {
        return std::nullopt;
    }
    bool is_weight = name == "weight" || (name.empty() && slot == 1);
    if (type.starts_with("conv") || type == "_convolution") {
        bool swapped = type.starts_with("conv_transpose") || op.integer("transposed", 0) != 0;
        return is_weight ? std::optional(swapped ? WeightAxes{1, 0} : WeightAxes{0, 1})
                         : std::nullopt;
    }
    if (type == "linear") {
        return is_weight ? std::optional(WeightAxes{0, 1}) : std::nullopt;
    }
    bool product = type == "mm" || type == "matmul" || type == "bmm";
    bool added = type == "addmm" || type == "baddbmm";
    if ((product && slot == 1) || (added && slot == 2)) {
        return WeightAxes{rank - 1, rank - 2};
    }
    if ((product && slot == 0) || (added && slot == 1)) {
        return WeightAxes{rank - 2, rank - 1};
    }
    bool recurrent = type == "lstm" || type == "gru" || type.starts_with("rnn_");
    return recurrent && name.starts_with("params") ? std::optional(WeightAxes{0, 1}) : std::nullopt;
}

Reach aten_reach(const Op& op) {
    static constexpr std::array<std::string_view, 8> picks{"embedding",    "gather",       "index",
                                                           "index_select", "narrow",       "select",
                                                           "slice",        "_unsafe_index"};
    if (op.domain.empty() && op.type.starts_with("sym_")) {
        return Reach::nothing;
    }
    return op.domain.empty() && is_one_of(op.type, picks) ? Reach::picked : Reach::all;
}

}  // namespace trocar::counting
