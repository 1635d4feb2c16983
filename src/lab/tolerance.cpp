#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "trocar/compare.h"
#include "trocar/error.h"
#include "util/text.h"

namespace trocar {

namespace {

// The distance from 1 to the next number of a type; 0 for types without fractions.
double step_at_one(DType dtype) {
    switch (dtype) {
        case DType::f64:
        case DType::c128:
            return 0x1p-52;
        case DType::f32:
        case DType::c64:
            return 0x1p-23;
        case DType::f16:
            return 0x1p-10;
        case DType::bf16:
            return 0x1p-7;
        case DType::f8e4m3fn:
        case DType::f8e4m3fnuz:
            return 0x1p-3;
        case DType::f8e5m2:
        case DType::f8e5m2fnuz:
            return 0x1p-2;
        default:
            return is_float(dtype) ? 0.5 : 0;
    }
}

constexpr double steps_allowed = 8;

std::optional<double> number_of(std::string_view text) {
    const std::string copy(trim(text));
    char* end = nullptr;
    const double number = std::strtod(copy.c_str(), &end);
    if (copy.empty() || *end != '\0' || !(number >= 0) || std::isinf(number)) {
        return std::nullopt;
    }
    return number;
}

double product(const Shape& shape, std::size_t from) {
    double all = 1;
    for (auto i = from; i < shape.size(); ++i) {
        all *= static_cast<double>(std::max<std::int64_t>(shape[i], 1));
    }
    return all;
}

class Lengths {
public:
    Lengths(const Chain& chain, const Part& part, std::span<const Value> inputs)
        : chain_(chain), part_(part), inputs_(inputs) {}

    double longest() const {
        double found = 1;
        for (const auto id : part_.ops) {
            found = std::max(found, of(chain_.model().graph.op(id)));
        }
        return found;
    }

private:
    // The shape of what an op reads, where it is known.
    std::optional<Shape> shape(const Op& op, std::size_t slot) const {
        if (slot >= op.inputs.size() || op.inputs[slot] == TensorId::none) {
            return std::nullopt;
        }
        const auto id = op.inputs[slot];
        if (const auto* constant = chain_.constant(id)) {
            return constant->shape();
        }
        for (std::size_t i = 0; i < part_.inputs.size() && i < inputs_.size(); ++i) {
            if (part_.inputs[i] == id && inputs_[i].is_tensor()) {
                return inputs_[i].shape();
            }
        }
        return chain_.model().graph.tensor(id).type.shape();
    }

    double of(const Op& op) const {
        const auto& type = op.type;
        const auto first = shape(op, 0);
        if (type == "Conv" || type == "ConvInteger") {
            const auto weights = shape(op, 1);
            return weights ? product(*weights, 1) : 1;
        }
        if (type == "QLinearConv") {
            const auto weights = shape(op, 3);
            return weights ? product(*weights, 1) : 1;
        }
        if (type == "ConvTranspose") {
            const auto weights = shape(op, 1);
            return weights && !weights->empty()
                       ? product(*weights, 2) * static_cast<double>((*weights)[0])
                       : 1;
        }
        if (type == "Gemm" || type.find("MatMul") != std::string::npos || type == "Einsum" ||
            type == "Attention") {
            return first && !first->empty()
                       ? static_cast<double>(std::max<std::int64_t>(
                             type == "Gemm" && op.integer("transA", 0) != 0 ? first->front()
                                                                            : first->back(),
                             1))
                       : 1;
        }
        if (type == "LSTM" || type == "GRU" || type == "RNN") {
            const auto recurrent = shape(op, 2);
            return first && recurrent ? static_cast<double>(recurrent->back() + first->back()) *
                                            static_cast<double>(first->front())
                                      : 1;
        }
        if (type.starts_with("Reduce") || type.find("Pool") != std::string::npos ||
            type.find("Norm") != std::string::npos || type.find("oftmax") != std::string::npos ||
            type == "CumSum" || type == "LRN" || type == "DFT") {
            return type == "BatchNormalization" || !first ? 1
                                                          : product(*first, first->empty() ? 0 : 1);
        }
        double deepest = 1;
        for (const auto& body : op.subgraphs()) {
            deepest = std::max(deepest, inside(*body));
        }
        return deepest;
    }

    // Bodies of control flow: what their constants tell.
    static double inside(const Graph& body) {
        double found = 1;
        for (const auto id : body.tensors()) {
            const auto& constant = body.tensor(id).constant;
            if (constant && constant->shape().size() >= 2) {
                found = std::max(found, product(constant->shape(), 1));
            }
        }
        return found * static_cast<double>(std::max<std::size_t>(body.op_count(), 1));
    }

    const Chain& chain_;
    const Part& part_;
    std::span<const Value> inputs_;
};

}  // namespace

ToleranceRule parse_tolerance_rule(std::string_view text) {
    const auto equals = text.rfind('=');
    const auto refuse = [&] {
        throw Error(Fault::usage, fmt::format("'{}' is no tolerance of a layer", text),
                    "write GLOB=RTOL[,ATOL], as in 'Softmax=1e-3,1e-6'");
    };
    if (equals == std::string_view::npos || equals == 0) {
        refuse();
    }
    const auto numbers = split(text.substr(equals + 1), ',');
    const auto rtol = number_of(numbers[0]);
    const auto atol = numbers.size() > 1 ? number_of(numbers[1]) : 0.0;
    if (!rtol || !atol || numbers.size() > 2) {
        refuse();
    }
    return {std::string(text.substr(0, equals)), {.rtol = *rtol, .atol = *atol}};
}

Tolerance default_tolerance(DType dtype, double reduction_length, double rms) {
    const double step = step_at_one(dtype);
    if (step == 0) {
        const bool code = is_integer(dtype) && bits(dtype) <= 8;
        return {.rtol = 0, .atol = code ? 1.0 : 0.0};
    }
    const double rtol = steps_allowed * step * std::sqrt(std::max(reduction_length, 1.0));
    return {.rtol = rtol, .atol = std::isfinite(rms) ? rtol * rms : 0};
}

double reduction_length(const Chain& chain, const Part& part, std::span<const Value> inputs) {
    return Lengths(chain, part, inputs).longest() *
           std::sqrt(static_cast<double>(std::max<std::size_t>(part.ops.size(), 1)));
}

}  // namespace trocar
