#include "tools/summary/attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "util/text.h"

namespace trocar::summary {
namespace {

constexpr std::size_t longest = 60;  // of one value

bool all_are(const std::vector<std::int64_t>& values, std::int64_t value) {
    return std::all_of(values.begin(), values.end(), [&](std::int64_t v) { return v == value; });
}

// "3×3"; "2" when all are equal and `merge` is set.
std::string sizes(const std::vector<std::int64_t>& values, bool merge) {
    if (merge && !values.empty() && all_are(values, values[0])) {
        return fmt::format("{}", values[0]);
    }
    return fmt::format("{}", join(values, "×"));
}

// Pads come as all beginnings, then all ends.
std::string pads(const std::vector<std::int64_t>& values) {
    std::size_t half = values.size() / 2;
    if (all_are(values, values[0])) {
        return fmt::format("{}", values[0]);
    }
    if (values.size() % 2 == 0 &&
        std::equal(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(half),
                   values.begin() + static_cast<std::ptrdiff_t>(half))) {
        return sizes({values.begin(), values.begin() + static_cast<std::ptrdiff_t>(half)}, false);
    }
    return fmt::format("{}", join(values, ","));
}

std::string shorten(std::string text) {
    if (text.size() > longest) {
        std::size_t end = longest - 1;
        while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
            --end;
        }
        text.resize(end);
        text += "…";
    }
    return text;
}

template <class T>
std::string list_text(const std::vector<T>& values) {
    constexpr std::size_t most = 16;
    std::size_t shown = std::min(values.size(), most);
    std::string text = join(std::span(values).first(shown), ",");
    return shown < values.size() ? fmt::format("{},… ({})", text, values.size()) : text;
}

struct ValueText {
    std::string operator()(std::monostate) const { return "?"; }
    std::string operator()(std::int64_t v) const { return fmt::format("{}", v); }
    std::string operator()(float v) const { return fmt::format("{:g}", v); }
    std::string operator()(const std::string& v) const { return shorten(v); }
    std::string operator()(const Constant& v) const {
        return fmt::format("{} {}", name(v.dtype()), shape_text(v.shape()));
    }
    std::string operator()(const std::shared_ptr<Graph>&) const { return {}; }
    std::string operator()(const std::vector<std::shared_ptr<Graph>>&) const { return {}; }
    std::string operator()(const Type& v) const { return type_text(v); }
    std::string operator()(const std::vector<std::int64_t>& v) const { return list_text(v); }
    std::string operator()(const std::vector<float>& v) const { return list_text(v); }
    std::string operator()(const std::vector<std::string>& v) const {
        return shorten(list_text(v));
    }
    std::string operator()(const std::vector<Constant>& v) const {
        return fmt::format("{} tensors", v.size());
    }
    std::string operator()(const std::vector<Type>& v) const {
        return fmt::format("{} types", v.size());
    }
};

// Attributes of a window, in the order in which they are shown.
struct Window {
    const char* name;
    const char* letter;
    std::int64_t usual;
};
constexpr Window onnx_window[] = {
    {"strides", "s", 1}, {"pads", "p", 0}, {"dilations", "d", 1}, {"group", "g", 1}};
constexpr Window aten_window[] = {
    {"stride", "s", 1}, {"padding", "p", 0}, {"dilation", "d", 1}, {"groups", "g", 1}};

constexpr Window tf_window[] = {{"strides", "s", 1}, {"dilations", "d", 1}};
constexpr Window mxnet_window[] = {
    {"stride", "s", 1}, {"pad", "p", 0}, {"dilate", "d", 1}, {"num_group", "g", 1}};

std::span<const Window> windows(const OpFacts& facts) {
    return facts.dialect == "aten"    ? std::span<const Window>(aten_window)
           : facts.dialect == "tf"    ? std::span<const Window>(tf_window)
           : facts.dialect == "mxnet" ? std::span<const Window>(mxnet_window)
                                      : std::span<const Window>(onnx_window);
}

const char* kernel_name(const OpFacts& facts) {
    return facts.dialect == "aten"    ? "kernel_size"
           : facts.dialect == "tf"    ? "ksize"
           : facts.dialect == "mxnet" ? "kernel"
                                      : "kernel_shape";
}

// TensorFlow has numbers for batch and channels too.
std::vector<std::int64_t> plane(const OpFacts& facts, std::vector<std::int64_t> values) {
    if (facts.dialect == "tf" && values.size() == 4) {
        const std::ptrdiff_t first = facts.op->text("data_format", "NHWC") == "NCHW" ? 2 : 1;
        return {values.begin() + first, values.begin() + first + 2};
    }
    return values;
}

bool is_window(const OpFacts& facts, const std::string& name) {
    auto all = windows(facts);
    return name == kernel_name(facts) ||
           std::any_of(all.begin(), all.end(), [&](const Window& w) { return name == w.name; });
}

struct Usual {
    const char* name;
    std::variant<std::int64_t, float, const char*> value;
};

bool is_among(std::span<const Usual> usual, const Attribute& a) {
    for (const Usual& u : usual) {
        if (a.name == u.name) {
            if (const auto* i = std::get_if<std::int64_t>(&u.value)) {
                const auto* v = std::get_if<std::int64_t>(&a.value);
                return v != nullptr && *v == *i;
            }
            if (const auto* f = std::get_if<float>(&u.value)) {
                const auto* v = std::get_if<float>(&a.value);
                return v != nullptr && *v == *f;
            }
            const auto* v = std::get_if<std::string>(&a.value);
            return v != nullptr && *v == std::get<const char*>(u.value);
        }
    }
    return false;
}

// "inputs" and "outputs" say which arguments the tensors are: the tensors are shown already.
bool is_usual_aten(const Attribute& a) {
    static constexpr Usual usual[] = {
        {"alpha", std::int64_t{1}},
        {"beta", std::int64_t{1}},
        {"ceil_mode", std::int64_t{0}},
        {"cudnn_enabled", std::int64_t{1}},
        {"dropout_p", 0.0F},
        {"eps", 1e-5F},
        {"implicit", std::int64_t{0}},
        {"is_causal", std::int64_t{0}},
        {"momentum", 0.1F},
        {"non_blocking", std::int64_t{0}},
        {"train", std::int64_t{0}},
        {"training", std::int64_t{0}},
    };
    return a.name == "inputs" || a.name == "outputs" || a.name == "cudnn_enable" ||
           is_among(usual, a);
}

// Element types are those of the tensors; what begins with '_' is for TensorFlow itself.
bool is_usual_tf(const Attribute& a) {
    static constexpr Usual usual[] = {
        {"adj_x", std::int64_t{0}},
        {"adj_y", std::int64_t{0}},
        {"align_corners", std::int64_t{0}},
        {"batch_dims", std::int64_t{0}},
        {"begin_mask", std::int64_t{0}},
        {"data_format", "NHWC"},
        {"ellipsis_mask", std::int64_t{0}},
        {"end_mask", std::int64_t{0}},
        {"half_pixel_centers", std::int64_t{0}},
        {"is_training", std::int64_t{0}},
        {"keep_dims", std::int64_t{0}},
        {"new_axis_mask", std::int64_t{0}},
        {"shrink_axis_mask", std::int64_t{0}},
        {"transpose_a", std::int64_t{0}},
        {"transpose_b", std::int64_t{0}},
        {"use_cudnn_on_gpu", std::int64_t{1}},
    };
    static constexpr std::string_view unsaid[] = {"DstT",
                                                  "Index",
                                                  "N",
                                                  "SrcT",
                                                  "T",
                                                  "TI",
                                                  "Taxis",
                                                  "Tdim",
                                                  "Tidx",
                                                  "Tin",
                                                  "Tindices",
                                                  "Tmultiples",
                                                  "Tout",
                                                  "Tpaddings",
                                                  "Tparams",
                                                  "Tperm",
                                                  "Tshape",
                                                  "U",
                                                  "dtype",
                                                  "config_proto",
                                                  "executor_type",
                                                  "out_type",
                                                  "exponential_avg_factor"};
    const auto* list = std::get_if<std::vector<std::int64_t>>(&a.value);
    return a.name.starts_with('_') || (list != nullptr && list->empty()) || is_among(usual, a) ||
           std::find(std::begin(unsaid), std::end(unsaid), a.name) != std::end(unsaid);
}

// Values that say nothing: what the operator does anyway.
bool is_usual(const OpFacts& facts, const Attribute& a) {
    if (facts.dialect == "aten") {
        return is_usual_aten(a);
    }
    if (facts.dialect == "tf") {
        return is_usual_tf(a);
    }
    const Op& op = *facts.op;
    static constexpr Usual usual[] = {
        {"auto_pad", "NOTSET"},
        {"ceil_mode", std::int64_t{0}},
        {"storage_order", std::int64_t{0}},
        {"transA", std::int64_t{0}},
        {"transB", std::int64_t{0}},
        {"training_mode", std::int64_t{0}},
        {"count_include_pad", std::int64_t{0}},
        {"direction", "forward"},
        {"reduction", "none"},
        {"stash_type", std::int64_t{1}},
        {"allowzero", std::int64_t{0}},
        {"noop_with_empty_axes", std::int64_t{0}},
        {"linear_before_reset", std::int64_t{0}},
        {"layout", std::int64_t{0}},
        {"saturate", std::int64_t{1}},
        {"cubic_coeff_a", -0.75F},
        {"epsilon", 1e-5F},
        {"extrapolation_value", 0.0F},
        {"exclude_outside", std::int64_t{0}},
        {"fused_activation_function", "NONE"},
        {"dilation_w_factor", std::int64_t{1}},
        {"dilation_h_factor", std::int64_t{1}},
        {"weights_format", "DEFAULT"},
        {"keep_num_dims", std::int64_t{0}},
        {"asymmetric_quantize_inputs", std::int64_t{0}},
        {"quantized_bias_type", "FLOAT32"},
        {"pot_scale_int16", std::int64_t{1}},
        {"align_corners", std::int64_t{0}},
        {"half_pixel_centers", std::int64_t{0}},
    };
    if (is_among(usual, a)) {
        return true;
    }
    const auto* f = std::get_if<float>(&a.value);
    bool one = f != nullptr && *f == 1.0F;
    if ((op.type == "Gemm" || op.type == "FusedMatMul") && one &&
        (a.name == "alpha" || a.name == "beta")) {
        return true;
    }
    return op.type == "BatchNormalization" && (a.name == "momentum" || a.name == "spatial");
}

// TensorFlow Lite has strides and windows by axis.
bool is_stride(std::string_view name) {
    return name == "stride_h" || name == "stride_w" || name == "filter_height" ||
           name == "filter_width";
}

void add_strides(const Op& op, std::vector<std::string>& parts) {
    const auto add = [&](const char* letter, const char* first, const char* second) {
        if (op.attribute(first) != nullptr && op.attribute(second) != nullptr) {
            const auto h = op.integer(first, 0);
            const auto w = op.integer(second, 0);
            if (h != 1 || w != 1) {
                parts.push_back(letter + sizes({h, w}, *letter == 's'));
            }
        }
    };
    add("k", "filter_height", "filter_width");
    add("s", "stride_h", "stride_w");
}

std::vector<std::int64_t> kernel_of(const OpFacts& facts) {
    std::vector<std::int64_t> kernel = plane(facts, facts.op->integers(kernel_name(facts)));
    if (facts.dialect == "tf") {
        const bool filtered = facts.op->type.find("Conv2") != std::string::npos &&
                              facts.inputs.size() > 1 && facts.inputs[1].shape &&
                              facts.inputs[1].shape->size() == 4;
        const auto* shape = filtered ? &*facts.inputs[1].shape : nullptr;
        return filtered ? std::vector<std::int64_t>{(*shape)[0], (*shape)[1]} : kernel;
    }
    bool conv = facts.op->type.find(facts.dialect == "aten" ? "conv" : "Conv") != std::string::npos;
    std::size_t slot = facts.op->type == "QLinearConv" ? 3 : 1;
    if (kernel.empty() && conv && slot < facts.inputs.size() && facts.inputs[slot].shape &&
        facts.inputs[slot].shape->size() > 2) {
        const Shape& w = *facts.inputs[slot].shape;
        kernel.assign(w.begin() + 2, w.end());
    }
    // Filters are O,H,W,I there.
    if (facts.op->type.ends_with("CONV_2D") && facts.inputs.size() > 1 && facts.inputs[1].shape &&
        facts.inputs[1].shape->size() == 4) {
        const Shape& w = *facts.inputs[1].shape;
        kernel = {w[1], w[2]};
    }
    return kernel;
}

}  // namespace

std::string attribute_text(const OpFacts& facts) {
    const Op& op = *facts.op;
    std::vector<std::string> parts;
    std::vector<std::int64_t> kernel = kernel_of(facts);
    bool slides = !kernel.empty();
    if (slides) {
        parts.push_back("k" + sizes(kernel, false));
        for (const Window& w : windows(facts)) {
            const Attribute* a = op.attribute(w.name);
            if (a == nullptr) {
                continue;
            }
            if (const auto* one = std::get_if<std::int64_t>(&a->value)) {
                if (*one != w.usual) {
                    parts.push_back(fmt::format("{}{}", w.letter, *one));
                }
            } else if (const auto* many = std::get_if<std::vector<std::int64_t>>(&a->value)) {
                const auto values = plane(facts, *many);
                if (!values.empty() && !all_are(values, w.usual)) {
                    bool is_pads = std::string_view(w.name) == "pads";
                    parts.push_back(w.letter + (is_pads ? pads(values) : sizes(values, true)));
                }
            }
        }
    }
    add_strides(op, parts);
    for (const Attribute& a : op.attributes) {
        if (is_stride(a.name) || (slides && is_window(facts, a.name)) || is_usual(facts, a)) {
            continue;
        }
        std::string value =
            a.reference.empty() ? std::visit(ValueText{}, a.value) : "@" + a.reference;
        if (!value.empty()) {
            parts.push_back(fmt::format("{}={}", a.name, value));
        }
    }
    return fmt::format("{}", join(parts, " "));
}

}  // namespace trocar::summary
