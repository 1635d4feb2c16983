#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trocar/difference.h"
#include "trocar/error.h"
#include "trocar/session.h"
#include "util/same_bits.h"
#include "util/text.h"

namespace trocar {

namespace {

bool is_half(DType dtype) {
    return dtype == DType::f16 || dtype == DType::bf16;
}

CompileOptions plain() {
    CompileOptions options;
    options.optimize = CompileOptions::Optimize::none;
    return options;
}

// Runs ops of the model as one program.
std::vector<Value> run_ops(const Model& model, Engine& engine, const Plan& plan,
                           std::span<const OpId> ops, std::span<const TensorId> outputs,
                           const std::vector<Value>& values) {
    auto part = extract_ops(model, ops, outputs, plan.constants);
    const std::vector<TensorId> inputs(part.graph.inputs().begin(), part.graph.inputs().end());
    std::vector<Value> in;
    for (const auto input : inputs) {
        const auto& value =
            values[index(model.graph.find_tensor(part.graph.tensor(input).name).value())];
        in.push_back(value);
        if (value.is_tensor()) {
            part.graph.set_type(
                input, model.dialect == "onnx" ? Type::tensor(value.dtype()) : type_of(value));
        }
    }
    std::vector<Value> out(outputs.size());
    engine.compile(part, plain())->run(in, out);
    return out;
}

std::vector<Value> values_of(const Model& model, const std::vector<NamedValue>& inputs) {
    std::vector<Value> values(model.graph.tensor_limit());
    for (const auto id : model.graph.inputs()) {
        const auto& tensor = model.graph.tensor(id);
        if (tensor.constant) {
            values[index(id)] = Value::of(*tensor.constant);  // its default
        }
    }
    for (const auto& input : inputs) {
        if (const auto id = model.graph.find_tensor(input.name)) {
            values[index(*id)] = input.value;
        }
    }
    return values;
}

// The ops whose results the engine passes on unrounded: two segments, run as one program, give
// other bits than one after the other.
std::vector<std::string> passing_on(const Model& model, Engine& engine, const Plan& plan,
                                    const std::vector<NamedValue>& inputs) {
    const auto& graph = model.graph;
    std::vector<std::size_t> segment_of(graph.op_limit(), plan.segments.size());
    for (std::size_t s = 0; s < plan.segments.size(); ++s) {
        for (const auto op : plan.segments[s].ops) {
            segment_of[index(op)] = s;
        }
    }
    auto values = values_of(model, inputs);
    std::vector<bool> passes(graph.op_limit(), false);
    for (const auto& segment : plan.segments) {
        auto apart = run_ops(model, engine, plan, segment.ops, segment.outputs, values);
        for (const auto read : segment.inputs) {
            const auto producer = graph.tensor(read).producer;
            const auto& value = values[index(read)];
            if (producer == OpId::none || !value.is_tensor() || !is_half(value.dtype()) ||
                segment_of[index(producer)] >= plan.segments.size()) {
                continue;
            }
            auto ops = plan.segments[segment_of[index(producer)]].ops;
            ops.insert(ops.end(), segment.ops.begin(), segment.ops.end());
            const auto together = run_ops(model, engine, plan, ops, segment.outputs, values);
            for (std::size_t i = 0; i < together.size(); ++i) {
                passes[index(producer)] =
                    passes[index(producer)] || !same_bits(together[i], apart[i]);
            }
        }
        for (std::size_t i = 0; i < apart.size(); ++i) {
            values[index(segment.outputs[i])] = std::move(apart[i]);
        }
    }
    std::vector<std::string> ops;
    for (const auto op : graph.ops()) {
        if (passes[index(op)]) {
            ops.push_back(graph.describe(op));
        }
    }
    return ops;
}

}  // namespace

bool has_half_floats(const Graph& graph) {
    const auto tensors = graph.tensors();
    return std::any_of(tensors.begin(), tensors.end(), [&](TensorId id) {
        const auto& tensor = graph.tensor(id);
        return is_half(tensor.constant ? tensor.constant->dtype() : tensor.type.dtype);
    });
}

WholeRun compare_outputs(const std::vector<NamedValue>& whole,
                         const std::vector<NamedValue>& parts) {
    WholeRun found;
    for (std::size_t i = 0; i < std::min(whole.size(), parts.size()); ++i) {
        const auto& a = whole[i].value;
        const auto& b = parts[i].value;
        if (same_bits(a, b)) {
            continue;
        }
        found.same = false;
        if (a.is_tensor() && b.is_tensor() && (is_float(a.dtype()) || is_integer(a.dtype())) &&
            a.dtype() == b.dtype() && a.shape() == b.shape()) {
            const auto off = difference(a, b).max_abs;
            if (found.output.empty() || off > found.largest) {
                found.largest = std::isnan(off) ? 0 : off;
                found.output = whole[i].name;
            }
        }
    }
    return found;
}

WholeRun compare_whole_run(const Model& model, const std::shared_ptr<Engine>& engine,
                           const Plan& plan, const std::vector<NamedValue>& inputs,
                           const std::vector<NamedValue>& outputs) {
    SessionOptions options;
    options.compile = plain();
    const auto whole = Session(model, engine, options).run(inputs);
    auto found = compare_outputs(whole, outputs);
    if (!found.same) {
        try {
            found.ops = passing_on(model, *engine, plan, inputs);
        } catch (const Error&) {
            // Which ops it is, is not known.
        }
    }
    return found;
}

std::string text(const WholeRun& run) {
    if (run.same) {
        return "cut and whole, the model gives the same bits";
    }
    constexpr std::size_t most = 8;
    auto text = fmt::format(
        "cut, the model gives other bits than run whole (without optimization){}",
        run.output.empty() ? "" : fmt::format(": up to {:.6g} in '{}'", run.largest, run.output));
    if (!run.ops.empty()) {
        const std::vector<std::string> some(
            run.ops.begin(),
            run.ops.begin() + static_cast<std::ptrdiff_t>(std::min(most, run.ops.size())));
        text += fmt::format(
            "; run whole, the engine computes in f32 and passes the result of {} on unrounded: "
            "{}{}",
            counted(run.ops.size(), "op"), join(some, ", "),
            run.ops.size() > most ? fmt::format(", and {} more", run.ops.size() - most) : "");
    }
    return text;
}

}  // namespace trocar
