#include <fmt/format.h>

#include <bit>

#include "formats/onnx/declaration.h"
#include "formats/onnx/graph_reader.h"
#include "formats/onnx/origin.h"
#include "formats/onnx/schema.h"

namespace trocar::onnx {

using namespace schema;

std::string_view plain_domain(std::string_view domain) {
    return domain == "ai.onnx" ? std::string_view() : domain;
}

GraphReader::Node GraphReader::read_node(Bytes message, int depth) {
    Node node;
    node.bytes = message;
    auto& spec = node.spec;
    for (Fields at(*file_, message, depth); at.next();) {
        switch (at.number()) {
            case node::input:
                node.inputs.push_back(at.text());
                break;
            case node::output:
                node.outputs.push_back(at.text());
                break;
            case node::name:
                spec.name = at.text();
                break;
            case node::type:
                spec.type = at.text();
                break;
            case node::domain:
                spec.domain = plain_domain(at.text());
                break;
            case node::overload:
                spec.overload = at.text();
                break;
            case node::attribute:
                spec.attributes.push_back(read_attribute(at.bytes(), depth + 1));
                break;
            case node::doc:
                spec.doc = at.text();
                break;
            case node::metadata:
                spec.metadata.push_back(read_property(*file_, at.bytes()));
                break;
            default:
                break;
        }
    }
    spec.origin = find_origin(spec.name, spec.metadata);
    return node;
}

namespace {

// What an attribute holds when the file does not say: older files leave it to the field in use.
AttributeKind kind_of_field(Number number) {
    switch (number) {
        case attribute::f:
            return AttributeKind::f;
        case attribute::i:
            return AttributeKind::i;
        case attribute::s:
            return AttributeKind::s;
        case attribute::t:
            return AttributeKind::t;
        case attribute::g:
            return AttributeKind::g;
        case attribute::floats:
            return AttributeKind::floats;
        case attribute::ints:
            return AttributeKind::ints;
        case attribute::strings:
            return AttributeKind::strings;
        case attribute::tensors:
            return AttributeKind::tensors;
        case attribute::graphs:
            return AttributeKind::graphs;
        case attribute::sparse:
            return AttributeKind::sparse;
        case attribute::sparses:
            return AttributeKind::sparses;
        case attribute::type_proto:
            return AttributeKind::type_proto;
        case attribute::type_protos:
            return AttributeKind::type_protos;
        default:
            return AttributeKind::undefined;
    }
}

// The value of an attribute before any of its fields was seen: a field that holds a default may
// be left out.
Attribute::Value empty_value(AttributeKind kind) {
    switch (kind) {
        case AttributeKind::f:
            return 0.0F;
        case AttributeKind::i:
            return std::int64_t{0};
        case AttributeKind::s:
            return std::string();
        case AttributeKind::floats:
            return std::vector<float>();
        case AttributeKind::ints:
            return std::vector<std::int64_t>();
        case AttributeKind::strings:
            return std::vector<std::string>();
        case AttributeKind::tensors:
        case AttributeKind::sparses:
            return std::vector<Constant>();
        case AttributeKind::graphs:
            return std::vector<std::shared_ptr<Graph>>();
        case AttributeKind::type_protos:
            return std::vector<Type>();
        default:
            return std::monostate();
    }
}

}  // namespace

Attribute GraphReader::read_attribute(Bytes message, int depth) {
    Attribute result;
    result.source.bytes = message;
    auto kind = AttributeKind::undefined;
    auto used = AttributeKind::undefined;
    for (Fields at(*file_, message, depth); at.next();) {
        if (at.number() == attribute::name) {
            result.name = at.text();
        } else if (at.number() == attribute::reference) {
            result.reference = at.text();
        } else if (at.number() == attribute::kind) {
            kind = static_cast<AttributeKind>(at.integer());
        } else if (const auto field = kind_of_field(at.number());
                   field != AttributeKind::undefined) {
            used = field;
        }
    }
    if (!result.reference.empty()) {
        return result;
    }
    kind = kind == AttributeKind::undefined ? used : kind;
    result.value = empty_value(kind);
    for (Fields at(*file_, message, depth); at.next();) {
        if (kind_of_field(at.number()) != kind || kind == AttributeKind::undefined) {
            continue;
        }
        switch (kind) {
            case AttributeKind::f:
                result.value = at.real();
                break;
            case AttributeKind::i:
                result.value = at.integer();
                break;
            case AttributeKind::s:
                result.value = std::string(at.text());
                break;
            case AttributeKind::floats:
                at.fixed32s([&](std::uint32_t bits) {
                    std::get<std::vector<float>>(result.value)
                        .push_back(std::bit_cast<float>(bits));
                });
                break;
            case AttributeKind::ints:
                at.integers([&](std::uint64_t value) {
                    std::get<std::vector<std::int64_t>>(result.value)
                        .push_back(static_cast<std::int64_t>(value));
                });
                break;
            case AttributeKind::strings:
                std::get<std::vector<std::string>>(result.value).emplace_back(at.text());
                break;
            default:
                read_submessage(at, kind, result);
        }
    }
    return result;
}

void GraphReader::read_submessage(const Fields& at, schema::AttributeKind kind, Attribute& result) {
    const auto depth = at.depth() + 1;
    const auto once = [&](auto value) {
        if (!std::holds_alternative<std::monostate>(result.value)) {
            at.fail(fmt::format("attribute '{}' has its value twice", result.name));
        }
        result.value = std::move(value);
    };
    const auto constant = [&](bool is_sparse) {
        const auto label = fmt::format("attribute {}", result.name);
        return (is_sparse ? read_sparse : read_tensor)(file_, at.bytes(), external_, label)
            .constant;
    };
    const auto graph = [&] { return std::make_shared<Graph>(read(at.bytes(), depth, true)); };
    switch (kind) {
        case AttributeKind::t:
        case AttributeKind::sparse:
            once(constant(kind == AttributeKind::sparse));
            break;
        case AttributeKind::g:
            once(graph());
            break;
        case AttributeKind::type_proto:
            once(read_type(*file_, at.bytes(), depth));
            break;
        case AttributeKind::tensors:
        case AttributeKind::sparses:
            std::get<std::vector<Constant>>(result.value)
                .push_back(constant(kind == AttributeKind::sparses));
            break;
        case AttributeKind::graphs:
            std::get<std::vector<std::shared_ptr<Graph>>>(result.value).push_back(graph());
            break;
        case AttributeKind::type_protos:
            std::get<std::vector<Type>>(result.value)
                .push_back(read_type(*file_, at.bytes(), depth));
            break;
        default:
            break;
    }
}

}  // namespace trocar::onnx
