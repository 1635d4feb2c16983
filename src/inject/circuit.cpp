#include "inject/circuit.h"

#include <fmt/format.h>

#include <algorithm>

#include "inject/lift.h"
#include "run/deployed_map.h"
#include "trocar/error.h"

namespace trocar::inject {

namespace {

bool is_spatial(const Op& op) {
    return op.type == "Conv" || op.type == "FusedConv" || op.type == "ConvTranspose" ||
           op.type == "MaxPool" || op.type == "AveragePool" || op.type == "GlobalAveragePool" ||
           op.type == "GlobalMaxPool" || op.type == "BatchNormalization" || is_blocked_domain(op);
}

bool has_bodies(const Graph& graph) {
    return std::any_of(graph.ops().begin(), graph.ops().end(),
                       [&](OpId id) { return !graph.op(id).subgraphs().empty(); });
}

}  // namespace

Circuit::Circuit(const Model& model, std::shared_ptr<Engine> engine, View view)
    : source_(model), engine_(std::move(engine)) {
    if (view == View::deployed) {
        deployed_ = std::make_unique<Deployed>(deploy(model, *engine_));
        if (has_bodies(deployed_->model.graph)) {
            lift_constants(deployed_->model.graph);
            const auto tensors = deployed_->model.graph.tensor_limit();
            deployed_->layouts.resize(tensors);
            deployed_->source_tensors.resize(tensors, TensorId::none);
        }
    } else if (has_bodies(model.graph)) {
        lifted_ = std::make_unique<Model>(clone(model));
        lift_constants(lifted_->graph);
    }
    plan_ = make_plan(this->model(), [](OpId) { return CutAt{.around = true}; });
    step_of_.assign(graph().op_limit(), no_step);
    last_read_.assign(graph().tensor_limit(), 0);
    for (const auto& segment : plan_.segments) {
        const auto id = segment.ops.back();
        for (const auto op : segment.ops) {
            step_of_[index(op)] = steps_.size();
        }
        for (const auto input : segment.inputs) {
            last_read_[index(input)] = steps_.size();
        }
        steps_.push_back({id, segment.inputs, segment.outputs, {}});
        if (segment.ops.size() == 1) {
            steps_.back().footprint = footprint(graph().op(id), plan_.constants);
        }
    }
    for (const auto output : graph().outputs()) {
        last_read_[index(output)] = no_step;
    }
    find_images();
}

// Channels are the second dimension of what convolutions and pools read and write, and of what
// elementwise ops make of that.
void Circuit::find_images() {
    images_.assign(graph().tensor_limit(), false);
    bool more = true;
    while (more) {
        more = false;
        for (const auto& step : steps_) {
            const auto& op = graph().op(step.op);
            const auto marked = [&](TensorId id) { return images_[index(id)]; };
            const bool any = std::any_of(step.inputs.begin(), step.inputs.end(), marked) ||
                             std::any_of(step.outputs.begin(), step.outputs.end(), marked);
            if (!is_spatial(op) && !(any && step.footprint.kind == Footprint::Kind::local)) {
                continue;
            }
            for (const auto* list : {&step.inputs, &step.outputs}) {
                for (const auto id : *list) {
                    more = more || !images_[index(id)];
                    images_[index(id)] = true;
                }
            }
        }
    }
}

FilterLayout Circuit::filter_layout(const Op& op, std::size_t slot) const {
    if (!deployed_ || (slot != 1 && slot != 2) || !is_blocked_domain(op) || op.type != "Conv") {
        return {};
    }
    const auto out = layout(op.outputs[0]);
    const auto in = layout(op.inputs[0]);
    const auto& stored = constant(op.inputs[slot])->shape();
    // Only what fills the last block up is not real.
    const auto real = [](std::int64_t channels, std::int64_t all, std::int64_t block) {
        return channels > 0 && channels <= all && all - channels < block ? channels : 0;
    };
    FilterLayout found;
    found.outputs = real(out.channels, stored[0], out.block);
    if (slot == 2) {
        return found;
    }
    const auto group = op.integer("group", 1);
    const bool depthwise = group > 1 && stored[1] == 1;
    found.block = out.block;
    found.inputs_blocked = in.block > 0 && !depthwise;
    if (found.inputs_blocked && group == 1) {
        found.inputs = real(in.channels, stored[1], in.block);
    }
    return found;
}

std::size_t Circuit::written_at(TensorId id) const {
    const auto producer = graph().tensor(id).producer;
    return producer == OpId::none ? no_step : step_of_[index(producer)];
}

OpProgram Circuit::compile(const Step& step, const std::vector<Value>& types,
                           const Variant& variant) const {
    auto constants = plan_.constants;
    for (const auto& [id, constant] : variant.constants) {
        constants[index(id)] = &constant;
    }
    for (const auto id : variant.as_inputs) {
        constants[index(id)] = nullptr;
    }
    const auto& segment = plan_.segments[step_of(step.op)];
    auto part = extract_ops(model(), segment.ops, segment.outputs, constants);
    OpProgram made;
    // Engines of other dialects may plan memory when they compile. No other shape comes: only parts
    // of ops of ONNX are run.
    const bool shaped = model().dialect != "onnx";
    const std::vector<TensorId> inputs(part.graph.inputs().begin(), part.graph.inputs().end());
    for (const auto input : inputs) {
        const auto id = graph().find_tensor(part.graph.tensor(input).name).value();
        made.inputs.push_back(id);
        const auto& value = types[index(id)];
        const auto* constant = plan_.constants[index(id)];
        auto type = constant != nullptr                   ? Type::tensor(constant->dtype())
                    : shaped && value.is_tensor()         ? type_of(value)
                    : value.kind() == Value::Kind::tensor ? Type::tensor(value.dtype())
                    : value.kind() == Value::Kind::none   ? graph().tensor(id).type
                                                          : type_of(value);
        part.graph.set_type(input, std::move(type));
    }
    if (!variant.as_inputs.empty() || !variant.attributes.empty() || variant.narrowed) {
        // Declared shapes are those of the op as it is.
        const std::vector<TensorId> outputs(part.graph.outputs().begin(),
                                            part.graph.outputs().end());
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            const auto& value = types[index(segment.outputs[i])];
            if (value.is_tensor()) {
                part.graph.set_type(outputs[i], Type::tensor(value.dtype()));
            }
        }
    }
    for (const auto& attribute : variant.attributes) {
        part.graph.set_attribute(part.graph.last(), attribute.name, attribute.value);
    }
    CompileOptions options;
    options.optimize = CompileOptions::Optimize::none;
    try {
        made.program = engine_->compile(part, options);
    } catch (const Error& e) {
        throw Error(e.fault(), fmt::format("{}: {}", graph().describe(step.op), e.what()),
                    e.hint());
    }
    return made;
}

}  // namespace trocar::inject
