#include "inject/footprint.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "run/deployed_map.h"

namespace trocar::inject {

namespace {

bool is_constant(const std::vector<const Constant*>& constants, TensorId id) {
    return id != TensorId::none && constants[index(id)] != nullptr;
}

// One number per spatial dimension as height and width; false where there are more than two.
bool take_pair(const std::vector<std::int64_t>& numbers, std::int64_t& height,
               std::int64_t& width) {
    if (numbers.size() > 2) {
        return false;
    }
    if (!numbers.empty()) {
        width = numbers.back();
        height = numbers.size() == 2 ? numbers[0] : height;
    }
    return true;
}

bool take_window(const Op& op, const std::vector<std::int64_t>& kernel, Footprint& f) {
    if (kernel.empty() || !take_pair(kernel, f.kernel_height, f.kernel_width) ||
        !take_pair(op.integers("strides"), f.stride_height, f.stride_width) ||
        !take_pair(op.integers("dilations"), f.dilation_height, f.dilation_width)) {
        return false;
    }
    f.dimensions = kernel.size();
    const auto pad = op.text("auto_pad", "NOTSET");
    if (pad != "NOTSET" && pad != "VALID") {
        return false;
    }
    const auto pads = op.integers("pads");
    if (!pads.empty() && pad == "NOTSET") {
        if (pads.size() != 2 * kernel.size()) {
            return false;
        }
        f.pad_left = pads[kernel.size() - 1];
        f.pad_top = kernel.size() == 2 ? pads[0] : 0;
    }
    return true;
}

bool is_convolution(const Op& op) {
    return (op.type == "Conv" && (op.domain.empty() || is_blocked_domain(op))) ||
           (op.type == "FusedConv" && op.domain == "com.microsoft");
}

Footprint convolution(const Op& op, const std::vector<const Constant*>& constants) {
    Footprint f;
    if (op.inputs.size() < 2 || !is_constant(constants, op.inputs[1])) {
        return f;
    }
    const auto& filters = *constants[index(op.inputs[1])];
    const bool bias = op.inputs.size() > 2 && op.inputs[2] != TensorId::none;
    if (filters.is_sparse() || filters.shape().size() < 3 ||
        (bias && !is_constant(constants, op.inputs[2]))) {
        return f;
    }
    auto kernel = op.integers("kernel_shape");
    if (kernel.empty()) {
        kernel.assign(filters.shape().begin() + 2, filters.shape().end());
    }
    if (!take_window(op, kernel, f)) {
        return {};
    }
    f.kind = Footprint::Kind::window;
    f.filters = true;
    const auto group = op.integer("group", 1);
    f.depthwise = group > 1 && filters.shape()[1] == 1 && filters.shape()[0] == group;
    if (op.inputs.size() > 3 && op.inputs[3] != TensorId::none) {
        if (is_constant(constants, op.inputs[3])) {
            return {};
        }
        // What is added comes first in the sum there: with it a padding by zeros that are really
        // read could turn -0 into 0.
        f.kind = f.padded() ? Footprint::Kind::whole : f.kind;
        f.local_slots.push_back(3);
    }
    return f;
}

Footprint max_pool(const Op& op) {
    Footprint f;
    if (op.outputs.size() != 1 || !take_window(op, op.integers("kernel_shape"), f)) {
        return {};
    }
    f.kind = Footprint::Kind::window;
    f.depthwise = true;
    f.lowest = true;
    return f;
}

// Ops whose result at an element is that of one correctly rounded operation, or of none: it does
// not depend on where the element stands.
bool is_elementwise(const Op& op) {
    constexpr std::array types = {"Relu", "LeakyRelu", "Clip", "Abs", "Neg",  "Add",     "Sub",
                                  "Mul",  "Div",       "Max",  "Min", "Sqrt", "Identity"};
    return op.domain.empty() && op.outputs.size() == 1 &&
           std::find(types.begin(), types.end(), op.type) != types.end();
}

Footprint elementwise(const Op& op, const std::vector<const Constant*>& constants) {
    Footprint f;
    for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
        const auto id = op.inputs[slot];
        if (id == TensorId::none) {
            continue;
        }
        if (!is_constant(constants, id)) {
            f.local_slots.push_back(slot);
        } else if (constants[index(id)]->is_sparse() ||
                   constants[index(id)]->element_count() != 1) {
            return {};  // it could differ from position to position
        }
    }
    f.kind = f.local_slots.empty() ? Footprint::Kind::whole : Footprint::Kind::local;
    return f;
}

}  // namespace

namespace {

bool is_product(const Op& op, const std::vector<const Constant*>& constants) {
    if (!op.domain.empty() || (op.type != "Gemm" && op.type != "MatMul") || op.inputs.size() < 2 ||
        is_constant(constants, op.inputs[0]) || !is_constant(constants, op.inputs[1]) ||
        op.integer("transA", 0) != 0) {
        return false;
    }
    const auto& matrix = *constants[index(op.inputs[1])];
    if (matrix.is_sparse() || matrix.shape().size() != 2 || bits(matrix.dtype()) % 8 != 0 ||
        bits(matrix.dtype()) == 0) {
        return false;
    }
    if (op.inputs.size() < 3 || op.inputs[2] == TensorId::none) {
        return true;
    }
    const auto columns = matrix.shape()[op.integer("transB", 0) != 0 ? 0 : 1];
    if (!is_constant(constants, op.inputs[2])) {
        return false;
    }
    // One number for each column: neither for each row nor for all.
    const auto& added = *constants[index(op.inputs[2])];
    return !added.is_sparse() && !added.shape().empty() && added.shape().back() == columns &&
           added.element_count() == static_cast<std::size_t>(columns);
}

// Ops that treat each element of the first dimension on its own, in the same order of operations.
bool is_batched(const Op& op, const Footprint& f) {
    if (f.filters || f.columns || f.kind == Footprint::Kind::window) {
        return true;
    }
    if (is_blocked_domain(op)) {
        return op.type == "ReorderOutput" || op.type == "ReorderInput" ||
               op.type == "AveragePool" || op.type == "GlobalAveragePool" ||
               op.type == "GlobalMaxPool";
    }
    if (!op.domain.empty()) {
        return false;
    }
    constexpr std::array types = {"GlobalAveragePool", "GlobalMaxPool", "AveragePool",
                                  "QLinearConv", "MaxPool"};
    if (std::find(types.begin(), types.end(), op.type) != types.end()) {
        return op.outputs.size() == 1;
    }
    if (op.type == "Flatten") {
        return op.integer("axis", 1) == 1;
    }
    return is_elementwise(op) && f.kind == Footprint::Kind::local;
}

Footprint shape_of(const Op& op, const std::vector<const Constant*>& constants) {
    if (is_convolution(op)) {
        return convolution(op, constants);
    }
    if (op.type == "MaxPool" && (op.domain.empty() || is_blocked_domain(op))) {
        return max_pool(op);
    }
    if (is_elementwise(op)) {
        return elementwise(op, constants);
    }
    Footprint f;
    f.columns = is_product(op, constants);
    f.columns_transposed = f.columns && op.integer("transB", 0) != 0;
    return f;
}

}  // namespace

Footprint footprint(const Op& op, const std::vector<const Constant*>& constants) {
    auto f = shape_of(op, constants);
    f.batched = is_batched(op, f);
    return f;
}

namespace {

// The outputs along one dimension that see input `at`: [low, high).
struct Span {
    std::int64_t low;
    std::int64_t high;
};
Span seen_by(std::int64_t at, std::int64_t kernel, std::int64_t stride, std::int64_t dilation,
             std::int64_t pad, std::int64_t limit) {
    // Output o sees o·stride − pad … o·stride − pad + (kernel − 1)·dilation.
    const auto first = at + pad - (kernel - 1) * dilation;
    const auto low = first <= 0 ? 0 : (first + stride - 1) / stride;
    const auto high = (at + pad) / stride + 1;
    return {low, std::min(high, limit)};
}

}  // namespace

std::vector<std::int32_t> reached(const Footprint& f, const Geometry& in, const Geometry& out,
                                  const std::vector<std::int32_t>& dirty) {
    std::vector<bool> marked(static_cast<std::size_t>(out.positions()));
    for (const auto position : dirty) {
        const auto image = position / in.inner();
        const auto y = position % in.inner() / in.width;
        const auto x = position % in.width;
        const auto rows =
            seen_by(y, f.kernel_height, f.stride_height, f.dilation_height, f.pad_top, out.height);
        const auto columns =
            seen_by(x, f.kernel_width, f.stride_width, f.dilation_width, f.pad_left, out.width);
        for (auto r = rows.low; r < rows.high; ++r) {
            for (auto c = columns.low; c < columns.high; ++c) {
                marked[static_cast<std::size_t>(image * out.inner() + r * out.width + c)] = true;
            }
        }
    }
    std::vector<std::int32_t> result;
    for (std::size_t i = 0; i < marked.size(); ++i) {
        if (marked[i]) {
            result.push_back(static_cast<std::int32_t>(i));
        }
    }
    return result;
}

}  // namespace trocar::inject
