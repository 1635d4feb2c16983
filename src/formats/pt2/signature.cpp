#include "formats/pt2/signature.h"

#include <fmt/format.h>

#include "trocar/error.h"

namespace trocar::pt2 {

Signature::Signature(const JsonPlace& place, const Json& program, const Payloads& payloads)
    : place_(place),
      graph_(place.object(place.object(program, "graph_module"), "graph")),
      signature_(place.object(place.object(program, "graph_module"), "signature")),
      payloads_(payloads) {}

void Signature::add_inputs(GraphReader& reader) {
    auto& metadata = reader.graph().metadata;
    std::size_t number = 0;
    for (const auto& spec : place_.list(signature_, "input_specs")) {
        const auto inside = place_.in(fmt::format("input {}", number));
        const auto choice = inside.choice(spec);
        const auto& kind = choice.kind;
        const auto* value = choice.value;
        const auto argument = [&] { return inside.text(inside.member(*value, "arg"), "name"); };
        if (kind == "user_input") {
            const auto& arg = inside.member(*value, "arg");
            if (const auto name = GraphReader::value_name(inside, arg)) {
                reader.add_input(*name);
            } else {
                metadata.push_back({fmt::format("input {}", number), dump_json(arg)});
            }
        } else if (kind == "parameter") {
            add_constant(reader, argument(), inside.text(*value, "parameter_name"), "parameter");
        } else if (kind == "buffer") {
            add_constant(reader, argument(), inside.text(*value, "buffer_name"),
                         inside.flag(*value, "persistent") ? "buffer" : "temporary buffer");
        } else if (kind == "tensor_constant") {
            add_constant(reader, argument(), inside.text(*value, "tensor_constant_name"),
                         "constant");
        } else if (kind == "custom_obj") {
            add_object(reader, inside.member(*value, "arg"), inside.text(*value, "custom_obj_name"),
                       "object");
        } else if (kind == "token") {
            add_object(reader, inside.member(*value, "arg"), argument(), "token");
        } else if (kind == "constant_input") {
            metadata.push_back({fmt::format("input {} '{}'", number, inside.text(*value, "name")),
                                dump_json(inside.member(*value, "value"))});
        } else if (value != nullptr) {
            metadata.push_back({fmt::format("input {}", number), dump_json(spec)});
        }
        ++number;
    }
}

void Signature::add_constant(GraphReader& reader, const std::string& argument,
                             const std::string& name, const char* kind) {
    auto& graph = reader.graph();
    auto payload = payloads_.find(name);
    if (!payload) {
        if (payloads_.objects().contains(name)) {
            throw Error(Fault::unsupported,
                        fmt::format("the {} '{}' is stored as a pickle, which is never executed",
                                    kind, name),
                        "make it a plain tensor before torch.export.save");
        }
        place_.fail(fmt::format("the {} '{}' is not among the archive's tensors", kind, name));
    }
    // Tied parameters are one tensor: the first name is its name, the others are noted.
    if (!payload->identity.empty()) {
        const auto known = by_identity_.find(payload->identity);
        if (known != by_identity_.end()) {
            reader.define(argument, known->second);
            graph.tensor_from_file(known->second).metadata.push_back({"also named", name});
            return;
        }
    }
    if (graph.find_tensor(name)) {
        place_.fail(fmt::format("two tensors of the signature have the name '{}'", name));
    }
    const auto id = graph.add_constant(name, std::move(payload->constant));
    auto& tensor = graph.tensor_from_file(id);
    tensor.metadata = std::move(payload->meta.metadata);
    tensor.metadata.push_back({"kind", kind});
    tensor.metadata.push_back({"argument", argument});
    reader.define(argument, id);
    if (!payload->identity.empty()) {
        by_identity_.emplace(payload->identity, id);
    }
}

void Signature::add_object(GraphReader& reader, const Json& argument, const std::string& name,
                           const char* kind) {
    auto& graph = reader.graph();
    Type type;
    type.kind = Type::Kind::opaque;
    const auto id = graph.add_input(graph.find_tensor(name) ? graph.fresh_name(name) : name, type);
    auto& tensor = graph.tensor_from_file(id);
    tensor.metadata.push_back({"kind", kind});
    if (auto of = place_.text(argument, "class_fqn", ""); !of.empty()) {
        tensor.metadata.push_back({"class", std::move(of)});
    }
    reader.define(place_.text(argument, "name"), id);
}

std::string Signature::update(const Json& spec) const {
    const auto [kind, value] = place_.choice(spec);
    if (kind == "user_output" || value == nullptr) {
        return {};
    }
    const auto named = [&, of = value](const char* key, std::string_view what) {
        return fmt::format("{} '{}'", what, place_.text(*of, key));
    };
    if (kind == "buffer_mutation") {
        return named("buffer_name", "buffer");
    }
    if (kind == "parameter_mutation") {
        return named("parameter_name", "parameter");
    }
    if (kind == "user_input_mutation") {
        return named("user_input_name", "input");
    }
    if (kind == "gradient_to_parameter") {
        return named("parameter_name", "gradient of parameter");
    }
    if (kind == "gradient_to_user_input") {
        return named("user_input_name", "gradient of input");
    }
    return kind;
}

void Signature::add_outputs(GraphReader& reader) {
    std::vector<TensorId> outputs;
    const auto& specs = place_.list(signature_, "output_specs");
    std::size_t number = 0;
    for (const auto& argument : place_.list(graph_, "outputs")) {
        const auto found = reader.output(argument, number);
        const auto updates = number < specs.size() ? update(specs[number]) : std::string();
        for (const auto id : found) {
            outputs.push_back(id);
            if (!updates.empty()) {
                reader.graph().tensor_from_file(id).metadata.push_back({"updates", updates});
            }
        }
        ++number;
    }
    reader.graph().set_outputs(std::move(outputs));
}

}  // namespace trocar::pt2
