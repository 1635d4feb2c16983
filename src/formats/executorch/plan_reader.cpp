#include "formats/executorch/plan_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "formats/executorch/types.h"

// The plan and its instructions. argument_reader.cpp has the arguments of kernels,
// tensor_reader.cpp the tensors.
namespace trocar::executorch {

std::vector<std::int64_t> numbers_of(const flatbuffers::Vector<std::int32_t>* items) {
    return items != nullptr ? std::vector<std::int64_t>(items->begin(), items->end())
                            : std::vector<std::int64_t>();
}

std::size_t PlanReader::size_of_values() const {
    return size_of(plan_.values());
}

const fb::EValue& PlanReader::value(std::int64_t number) const {
    if (number < 0 || number >= static_cast<std::int64_t>(size_of_values())) {
        file_.fail(fmt::format("there is no value {}, which the plan speaks of", number));
    }
    return *plan_.values()->Get(static_cast<flatbuffers::uoffset_t>(number));
}

PlanReader::Place& PlanReader::place(std::int64_t number) {
    value(number);
    return places_[static_cast<std::size_t>(number)];
}

Graph PlanReader::read() {
    file_.spend(places_.size() * sizeof(Place) / 4);
    graph_.name = text_of(plan_.name());
    add_inputs();
    for (flatbuffers::uoffset_t i = 0; i < size_of(plan_.chains()); ++i) {
        add_chain(*plan_.chains()->Get(i));
    }
    add_outputs();
    // The first one stands for memory that is not planned.
    for (flatbuffers::uoffset_t i = 1; i < size_of(plan_.non_const_buffer_sizes()); ++i) {
        graph_.metadata.push_back(
            {fmt::format("memory {}", i),
             fmt::format("{} bytes", item_of(plan_.non_const_buffer_sizes(), i))});
    }
    graph_.mark_read();
    return std::move(graph_);
}

void PlanReader::add_inputs() {
    std::vector<TensorId> inputs;
    for (const auto number : numbers_of(plan_.inputs())) {
        auto& at = place(number);
        if (at.now != TensorId::none) {
            file_.fail(fmt::format("value {} is an input twice", number));
        }
        const auto& stored = value(number);
        at.now = graph_.add_tensor(name_of(number, at), type_of(stored));
        at.computed = true;
        if (const auto* tensor = stored.val_as_Tensor()) {
            describe(at.now, *tensor);
            note_memory(number, *tensor);
        }
        inputs.push_back(at.now);
    }
    graph_.set_inputs(std::move(inputs));
}

void PlanReader::add_outputs() {
    std::vector<TensorId> outputs;
    for (const auto number : numbers_of(plan_.outputs())) {
        const auto& stored = value(number);
        const auto type = stored.val_type();
        const bool number_or_tensor =
            type == fb::KernelTypes::Tensor || type == fb::KernelTypes::Int ||
            type == fb::KernelTypes::Bool || type == fb::KernelTypes::Double;
        if (!number_or_tensor) {
            graph_.metadata.push_back(
                {fmt::format("output {}", outputs.size()), fb::EnumNameKernelTypes(type)});
            continue;
        }
        outputs.push_back(tensor_at(number));
    }
    try {
        graph_.set_outputs(std::move(outputs));
    } catch (const Error& e) {
        file_.fail(fmt::format("the plan's outputs are wrong: {}", e.what()));
    }
}

void PlanReader::add_chain(const fb::Chain& chain) {
    for (flatbuffers::uoffset_t i = 0; i < size_of(chain.instructions()); ++i) {
        const auto& instruction = *chain.instructions()->Get(i);
        file_.spend(sizeof(Op) / 4);
        Draft draft;
        if (const auto* kernel = instruction.instr_args_as_KernelCall()) {
            add_kernel(*kernel, draft);
        } else if (const auto* delegate = instruction.instr_args_as_DelegateCall()) {
            add_delegate(*delegate, draft);
        } else {
            add_instruction(instruction, draft);
        }
        const auto* frames = i < size_of(chain.stacktrace()) ? chain.stacktrace()->Get(i) : nullptr;
        try {
            finish(std::move(draft), frames);
        } catch (const Error& e) {
            file_.fail(fmt::format("instruction {}: {}", i, e.what()), e.fault());
        }
    }
}

void PlanReader::add_delegate(const fb::DelegateCall& call, Draft& draft) {
    if (call.delegate_index() < 0 ||
        call.delegate_index() >= static_cast<std::int64_t>(size_of(plan_.delegates()))) {
        file_.fail(fmt::format("there is no delegate {}", call.delegate_index()));
    }
    const auto& delegate =
        *plan_.delegates()->Get(static_cast<flatbuffers::uoffset_t>(call.delegate_index()));
    auto& spec = draft.spec;
    spec.domain = delegate_domain;
    spec.type = text_of(delegate.id());
    spec.type = spec.type.empty() ? "delegate" : spec.type;
    file_.spend(spec.type.size());
    // What is known already it reads, the rest it makes.
    std::size_t read = 0;
    std::size_t made = 0;
    file_.spend(size_of(call.args()) * sizeof(std::string));
    for (const auto number : numbers_of(call.args())) {
        const auto& stored = value(number);
        if (stored.val_type() != fb::KernelTypes::Tensor) {
            if (place(number).computed) {
                add_input(draft, std::to_string(read++), number);
            }
            continue;
        }
        const auto& tensor = *stored.val_as_Tensor();
        const bool has_data = tensor.data_buffer_idx() > 0 || place(number).now != TensorId::none;
        if (has_data) {
            add_input(draft, std::to_string(read++), number);
        } else {
            draft.spec.outputs.push_back(tensor_after(number));
            draft.returns.push_back(std::to_string(made++));
        }
    }
    if (const auto* where = delegate.processed()) {
        const auto bytes = file_.delegate(*where);
        set_attribute(draft, "processed",
                      Constant::view(DType::u8, {static_cast<std::int64_t>(bytes.size())}, bytes,
                                     file_.owner()));
    }
    add_named_data(draft);
    std::set<std::string> keys;
    for (flatbuffers::uoffset_t i = 0; i < size_of(delegate.compile_specs()); ++i) {
        const auto& one = *delegate.compile_specs()->Get(i);
        const auto* stored = one.value();
        const auto bytes = size_of(stored) == 0
                               ? Bytes()
                               : std::as_bytes(std::span(stored->data(), stored->size()));
        file_.spend(sizeof(Attribute) + 2 * text_of(one.key()).size());
        auto name = fmt::format("spec.{}", text_of(one.key()));
        if (!keys.insert(name).second) {
            name += fmt::format("#{}", i);
        }
        draft.spec.attributes.push_back(
            {.name = std::move(name),
             .value = Constant::view(DType::u8, {static_cast<std::int64_t>(bytes.size())}, bytes,
                                     file_.owner()),
             .reference = {},
             .source = {}});
    }
}

// The file does not say which delegate asks for what: each is given all.
void PlanReader::add_named_data(Draft& draft) {
    std::vector<std::string> names;
    std::vector<Constant> data;
    for (const auto& [key, bytes] : file_.named()) {
        file_.spend(key.size() + sizeof(Constant) + sizeof(std::string));
        names.emplace_back(key);
        data.push_back(Constant::view(DType::u8, {static_cast<std::int64_t>(bytes.size())}, bytes,
                                      file_.owner()));
    }
    if (!names.empty()) {
        set_attribute(draft, "data_keys", std::move(names));
        set_attribute(draft, "data", std::move(data));
    }
}

void PlanReader::add_instruction(const fb::Instruction& instruction, Draft& draft) {
    auto& spec = draft.spec;
    spec.domain = instruction_domain;
    if (const auto* move = instruction.instr_args_as_MoveCall()) {
        spec.type = "move";
        add_input(draft, "from", move->move_from());
        spec.outputs.push_back(tensor_after(move->move_to()));
        if (value(move->move_to()).val_type() != fb::KernelTypes::Tensor) {
            place(move->move_to()).computed = true;
        }
    } else if (const auto* jump = instruction.instr_args_as_JumpFalseCall()) {
        spec.type = "jump_false";
        add_input(draft, "condition", jump->cond_value_index());
        set_attribute(draft, "destination", std::int64_t{jump->destination_instruction()});
    } else if (const auto* free = instruction.instr_args_as_FreeCall()) {
        spec.type = "free";
        add_input(draft, "tensor", free->value_index());
    } else {
        spec.type = fmt::format("instruction_{}", static_cast<int>(instruction.instr_args_type()));
    }
}

void PlanReader::finish(Draft draft, const fb::FrameList* frames) {
    auto& spec = draft.spec;
    while (!spec.inputs.empty() && spec.inputs.back() == TensorId::none) {
        spec.inputs.pop_back();
        draft.slots.pop_back();
    }
    if (!draft.slots.empty()) {
        spec.attributes.insert(
            spec.attributes.begin(),
            {.name = "inputs", .value = std::move(draft.slots), .reference = {}, .source = {}});
    }
    if (draft.grouped) {
        set_attribute(draft, "outputs", std::move(draft.returns));
    }
    // Instructions have no names: they are called by what they compute.
    if (!spec.outputs.empty()) {
        spec.name = graph_.tensor(spec.outputs.front()).name;
    }
    if (frames != nullptr && size_of(frames->items()) > 0) {
        const auto& frame = *frames->items()->Get(frames->items()->size() - 1);
        file_.spend(text_of(frame.filename()).size());
        spec.origin.source = fmt::format("{}:{}", text_of(frame.filename()), frame.lineno());
    }
    graph_.append(std::move(spec));
}

}  // namespace trocar::executorch
