#include "run/session_parts.h"

namespace trocar {

void Session::Parts::prepare(bool main_as_cuts) {
    instruments.reset();
    if (!options.tools.empty()) {
        instruments = std::make_unique<Instruments>(given, *engine, options, main_as_cuts);
    }
    bool any_cut = false;
    plan = make_plan(model(), [&](OpId id) {
        auto cut = instruments ? instruments->cut_at(id) : CutAt{};
        cut.after = cut.after || (!cut.around && options.cut(graph(), id));
        any_cut = any_cut || cut.after || cut.around;
        return cut;
    });
    whole = !any_cut;
    programs.clear();
    programs.resize(whole ? 1 : plan.segments.size());
    values.assign(graph().tensor_limit(), {});
    known.assign(graph().tensor_limit(), false);
    cuts.clear();
    if (instruments) {
        instruments->prepare(plan);
        for (const auto& segment : plan.segments) {
            cuts.push_back(instruments->at(segment.ops.back()));
        }
    }
}

CompileOptions Session::Parts::compile_options() const {
    return instruments ? instruments->compile_options(options.compile) : options.compile;
}

std::string Session::Parts::place(const Segment& segment) const {
    const auto& first = segment.ops.front();
    if (segment.ops.size() == 1) {
        return graph().describe(first);
    }
    return fmt::format("{} ops, {} to {}", segment.ops.size(), graph().describe(first),
                       graph().describe(segment.ops.back()));
}

// A part's inputs need a type. The file's declaration serves where the value at hand agrees;
// otherwise the value's own type does, without dimensions, which may change from run to run. Rules
// that map a model to ONNX may want to know more: the rank, and sizes where a program runs once.
Type Session::Parts::input_type(TensorId id) const {
    const auto& declared = graph().tensor(id).type;
    const auto& value = values[index(id)];
    const bool mapped = model().dialect != "onnx" && value.is_tensor();
    if (mapped && options.streaming && !declared.shape()) {
        return type_of(value);
    }
    if (graph().tensor(id).is_input || value.kind() == Value::Kind::none ||
        (declared.kind != Type::Kind::tensor && declared.kind != Type::Kind::unknown)) {
        return declared;
    }
    auto type = type_of(value);
    bool agrees = declared.kind == type.kind && declared.dtype == type.dtype && declared.dims &&
                  type.dims && declared.dims->size() == type.dims->size();
    for (std::size_t i = 0; agrees && i < type.dims->size(); ++i) {
        const auto dim = (*declared.dims)[i].value;
        agrees = dim < 0 || dim == (*type.dims)[i].value;
    }
    if (agrees) {
        return declared;
    }
    if (mapped && !declared.dims) {
        type.dims->assign(type.dims->size(), Dim{});
        return type;
    }
    type.dims.reset();
    return type;
}

Compiled Session::Parts::compile_whole() const {
    Compiled compiled;
    compiled.program = engine->compile(model(), compile_options());
    for (const auto& name : compiled.program->input_names()) {
        compiled.inputs.push_back(graph().find_tensor(name).value());
    }
    compiled.outputs.assign(graph().outputs().begin(), graph().outputs().end());
    return compiled;
}

Compiled Session::Parts::compile(const Segment& segment) {
    std::span<const Constant* const> constants = plan.constants;
    std::vector<const Constant*> none;
    const auto* cut = instruments ? instruments->at(segment.ops.back()) : nullptr;
    if (cut != nullptr && cut->constants) {
        none.assign(graph().tensor_limit(), nullptr);
        constants = none;
    }
    auto part = extract_ops(model(), segment.ops, segment.outputs, constants);
    Compiled compiled;
    compiled.outputs = segment.outputs;
    const std::vector<TensorId> inputs(part.graph.inputs().begin(), part.graph.inputs().end());
    for (const auto input : inputs) {
        const auto id = graph().find_tensor(part.graph.tensor(input).name).value();
        compiled.inputs.push_back(id);
        auto type = input_type(id);
        if (type != part.graph.tensor(input).type) {
            part.graph.set_type(input, std::move(type));
        }
    }
    auto how = compile_options();
    if (segment.ops.size() == 1) {
        how.optimize = CompileOptions::Optimize::none;
    }
    compiled.program = engine->compile(part, how);
    return compiled;
}

}  // namespace trocar
