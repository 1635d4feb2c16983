#include "formats/tflite/graph_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/tflite/encodings.h"
#include "formats/tflite/options.h"
#include "formats/tflite/types.h"
#include "trocar/error.h"

namespace trocar::tflite {

namespace {

// Subgraphs may refer to further ones; this deep.
constexpr std::size_t most_nested = 64;
// What may be copied out of a file, as a multiple of its size: data that is referred to again and
// again would else take more memory than the file can justify.
constexpr std::size_t most_copies = 16;

Attribute attribute(std::string_view name, Attribute::Value value) {
    return {.name = std::string(name), .value = std::move(value), .reference = {}, .source = {}};
}

// The module that made an op, from the name of what it computes: "net/block1/conv/Conv2D;net/…".
std::string module_of(std::string_view name) {
    name = name.substr(0, name.find(';'));
    const auto end = name.rfind('/');
    std::string module(name.substr(0, end == std::string_view::npos ? 0 : end));
    std::replace(module.begin(), module.end(), '/', '.');
    return module;
}

}  // namespace

GraphReader::GraphReader(const fb::Model& model, Bytes file, std::shared_ptr<const void> owner,
                         std::filesystem::path path)
    : model_(model),
      file_(file),
      owner_(std::move(owner)),
      path_(std::move(path)),
      left_(most_copies * file.size() + (std::size_t{1} << 20)),
      open_(count()),
      referred_(count()),
      tensors_(count()) {}

std::size_t GraphReader::count() const {
    return size_of(model_.subgraphs());
}

void GraphReader::fail(const std::string& what, Fault fault) const {
    throw Error(fault, path_.empty() ? what : fmt::format("'{}': {}", path_.string(), what));
}

void GraphReader::spend(std::size_t amount) {
    if (amount > left_) {
        fail("the file refers to the same data so often that it would not fit in memory");
    }
    left_ -= amount;
}

TensorId GraphReader::tensor(std::size_t subgraph, std::int64_t index) const {
    const auto& ids = tensors_[subgraph];
    return index >= 0 && static_cast<std::size_t>(index) < ids.size()
               ? ids[static_cast<std::size_t>(index)]
               : TensorId::none;
}

Graph GraphReader::read(std::size_t number) {
    if (open_[number]) {
        fail(fmt::format("subgraph {} refers to itself", number), Fault::unsupported);
    }
    if (std::count(open_.begin(), open_.end(), true) >= static_cast<std::ptrdiff_t>(most_nested)) {
        fail(fmt::format("subgraphs are nested more than {} deep", most_nested));
    }
    open_[number] = true;
    const auto& subgraph = *model_.subgraphs()->Get(static_cast<flatbuffers::uoffset_t>(number));
    Place place{.number = number, .subgraph = subgraph};
    newer_ = newer_ || has_more(subgraph, subgraph_fields);
    declare_tensors(place);
    const auto ops = size_of(subgraph.operators());
    for (std::size_t i = 0; i < ops; ++i) {
        add_op(place, i);
    }
    std::vector<TensorId> outputs;
    for (const auto index : integers_of(subgraph.outputs())) {
        outputs.push_back(place.ids[static_cast<std::size_t>(index)]);
    }
    place.graph.set_outputs(std::move(outputs));
    place.graph.name = text_of(subgraph.name());
    auto image = std::make_shared<GraphImage>();
    image->owner = owner_;
    image->file = file_.data();
    image->number = number;
    image->debug_metadata = subgraph.debug_metadata_index();
    place.graph.image = std::move(image);
    place.graph.mark_read();
    open_[number] = false;
    tensors_[number] = std::move(place.ids);
    return std::move(place.graph);
}

void GraphReader::declare_tensors(Place& place) {
    const std::size_t count = size_of(place.subgraph.tensors());
    spend(count * sizeof(Tensor) / 4);
    for (auto* flags : {&place.read, &place.written, &place.input, &place.output, &place.aside}) {
        flags->assign(count, false);
    }
    place.ids.assign(count, TensorId::none);
    const auto mark = [&](std::vector<bool>& flags, const std::vector<std::int64_t>& indices,
                          const char* what, bool may_lack) {
        for (const auto index : indices) {
            if (index == -1 && may_lack) {
                continue;
            }
            if (index < 0 || static_cast<std::size_t>(index) >= count) {
                fail(fmt::format("{} of subgraph {} is tensor {}, and it has {} tensors", what,
                                 place.number, index, count));
            }
            flags[static_cast<std::size_t>(index)] = true;
        }
    };
    for (flatbuffers::uoffset_t i = 0; i < size_of(place.subgraph.operators()); ++i) {
        const auto* op = place.subgraph.operators()->Get(i);
        mark(place.read, integers_of(op->inputs()), "an op's input", true);
        mark(place.written, integers_of(op->outputs()), "an op's output", true);
        mark(place.aside, integers_of(op->intermediates()), "an op's intermediate tensor", true);
    }
    const auto inputs = integers_of(place.subgraph.inputs());
    const auto outputs = integers_of(place.subgraph.outputs());
    mark(place.input, inputs, "an input", false);
    mark(place.output, outputs, "an output", false);
    for (std::size_t i = 0; i < count; ++i) {
        // Tensors that only live inside an op go with the op.
        if (!place.aside[i] || place.read[i] || place.written[i] || place.input[i] ||
            place.output[i]) {
            add_tensor(place, i);
        }
    }
    std::vector<TensorId> wanted;
    for (const auto index : inputs) {
        wanted.push_back(place.ids[static_cast<std::size_t>(index)]);
    }
    try {
        place.graph.set_inputs(std::move(wanted));
    } catch (const Error& e) {
        fail(fmt::format("the inputs of subgraph {} are wrong: {}", place.number, e.what()));
    }
}

void GraphReader::add_op(Place& place, std::size_t index) {
    auto spec = spec_of(place, index);
    const auto type = spec.type;
    try {
        place.graph.append(std::move(spec));
    } catch (const Error& e) {
        fail(fmt::format("op {} ({}) of subgraph {}: {}", index, type, place.number, e.what()));
    }
}

std::shared_ptr<Graph> GraphReader::intermediates(const fb::SubGraph& subgraph,
                                                  const fb::Operator& op) {
    auto graph = std::make_shared<Graph>();
    for (const auto index : integers_of(op.intermediates())) {
        if (index < 0) {
            graph->add_tensor({}, {});
            continue;
        }
        const auto& tensor = *subgraph.tensors()->Get(static_cast<flatbuffers::uoffset_t>(index));
        const auto name = text_of(tensor.name());
        spend(name.size() + sizeof(Tensor));
        const auto id = graph->add_tensor(
            unique_name(*graph, name, static_cast<std::size_t>(index)), type_of(tensor));
        describe(*graph, id, tensor, subgraph);
    }
    graph->mark_read();
    return graph;
}

OpSpec GraphReader::spec_of(Place& place, std::size_t index) {
    const auto& op = *place.subgraph.operators()->Get(static_cast<flatbuffers::uoffset_t>(index));
    if (op.opcode_index() >= size_of(model_.operator_codes())) {
        fail(fmt::format("op {} of subgraph {} has an unknown code", index, place.number));
    }
    newer_ = newer_ || has_more(op, operator_fields);
    const auto& code = *model_.operator_codes()->Get(op.opcode_index());
    const auto builtin = std::max(static_cast<std::int32_t>(code.deprecated_builtin_code()),
                                  static_cast<std::int32_t>(code.builtin_code()));
    OpSpec spec{.type = builtin_name(builtin)};
    if (builtin == static_cast<std::int32_t>(fb::BuiltinOperator::CUSTOM)) {
        spec.domain = "custom";
        spec.type = text_of(code.custom_code());
        if (spec.type.empty()) {
            spec.type = "CUSTOM";
        }
    }
    spend(sizeof(Op) / 4 + spec.type.size());
    const auto connect = [&](std::vector<TensorId>& to, const std::vector<std::int64_t>& from) {
        for (const auto i : from) {
            to.push_back(i < 0 ? TensorId::none : place.ids[static_cast<std::size_t>(i)]);
        }
    };
    connect(spec.inputs, integers_of(op.inputs()));
    connect(spec.outputs, integers_of(op.outputs()));
    // Ops have no names: they are called by what they compute.
    for (const auto output : spec.outputs) {
        if (spec.name.empty() && output != TensorId::none) {
            spec.name = place.graph.tensor(output).name;
            spec.origin.module = module_of(spec.name);
            spend(2 * spec.name.size());
        }
    }
    if (code.version() != lowest_version(builtin)) {
        spec.metadata.push_back({std::string(key::version), std::to_string(code.version())});
    }
    const auto graph_of = [&](std::int64_t number) {
        if (number < 0 || static_cast<std::size_t>(number) >= count()) {
            fail(fmt::format("op {} ({}) of subgraph {} refers to subgraph {}, and there are {}",
                             index, spec.type, place.number, number, count()));
        }
        referred_[static_cast<std::size_t>(number)] = true;
        return std::make_shared<Graph>(read(static_cast<std::size_t>(number)));
    };
    const auto add_options = [&](bool second, std::uint8_t number, const void* table) {
        if (number == 0 || table == nullptr) {
            return;
        }
        const auto* options = find_options(second, number);
        if (options == nullptr) {
            newer_ = true;
            spec.attributes.push_back(attribute(fmt::format("options_{}", number), {}));
            return;
        }
        if (options != options_of(spec.type) || !spec.domain.empty()) {
            spec.metadata.push_back({std::string(key::options), std::string(options->name)});
        }
        auto read_now =
            read_options(*options, *static_cast<const flatbuffers::Table*>(table), graph_of);
        for (auto& one : read_now) {
            newer_ = newer_ || std::holds_alternative<std::monostate>(one.value);
            if (const auto* bytes = std::get_if<Constant>(&one.value)) {
                spend(bytes->stored_bytes());
            }
            spec.attributes.push_back(std::move(one));
        }
        spend(spec.attributes.size() * sizeof(Attribute) / 4);
    };
    add_options(false, static_cast<std::uint8_t>(op.builtin_options_type()), op.builtin_options());
    add_options(true, static_cast<std::uint8_t>(op.builtin_options_2_type()),
                op.builtin_options_2());
    auto custom = bytes_of(op.custom_options());
    if (op.large_custom_options_offset() > 1) {
        const auto offset = op.large_custom_options_offset();
        const auto size = op.large_custom_options_size();
        if (offset > file_.size() || size > file_.size() - offset) {
            fail(fmt::format("the options of op {} lie outside the file", index));
        }
        custom = file_.subspan(offset, size);
    }
    if (op.custom_options() != nullptr || !custom.empty()) {
        spec.attributes.push_back(attribute(
            "custom_options",
            Constant::view(DType::u8, {static_cast<std::int64_t>(custom.size())}, custom, owner_)));
        if (auto text = flexbuffer_text(custom); !text.empty()) {
            spend(text.size());
            spec.metadata.push_back({std::string(key::custom), std::move(text)});
        }
    }
    if (const auto* variables = op.mutating_variable_inputs();
        variables != nullptr &&
        std::any_of(variables->begin(), variables->end(), [](auto v) { return v != 0; })) {
        spec.attributes.push_back(
            attribute("mutating_variable_inputs",
                      std::vector<std::int64_t>(variables->begin(), variables->end())));
    }
    if (size_of(op.intermediates()) > 0) {
        spec.attributes.push_back(attribute("intermediates", intermediates(place.subgraph, op)));
    }
    if (op.debug_metadata_index() != -1) {
        spec.attributes.push_back(
            attribute("debug_metadata_index", std::int64_t{op.debug_metadata_index()}));
    }
    return spec;
}

}  // namespace trocar::tflite
