#include <algorithm>

#include "formats/onnx/declaration.h"
#include "formats/onnx/graph_writer.h"
#include "formats/onnx/schema.h"

namespace trocar::onnx {

using namespace schema;

namespace {

std::vector<std::string> names(const Graph& graph, const std::vector<TensorId>& tensors) {
    std::vector<std::string> all;
    all.reserve(tensors.size());
    for (const auto id : tensors) {
        all.push_back(id == TensorId::none ? std::string() : graph.tensor(id).name);
    }
    return all;
}

Rope verbatim(Bytes bytes) {
    Rope rope;
    rope.borrow(bytes);
    return rope;
}

template <class T>
bool holds_type(const Attribute& attribute) {
    return std::holds_alternative<T>(attribute.value);
}

bool holds_graphs(const Attribute& attribute) {
    return holds_type<std::shared_ptr<Graph>>(attribute) ||
           holds_type<std::vector<std::shared_ptr<Graph>>>(attribute);
}

bool moves_constants(const Attribute& attribute, const Placements& places) {
    if (!places.moves) {
        return false;
    }
    if (const auto* one = std::get_if<Constant>(&attribute.value)) {
        return !stays(*one, places.attribute);
    }
    const auto* all = std::get_if<std::vector<Constant>>(&attribute.value);
    return all != nullptr && std::any_of(all->begin(), all->end(), [&](const auto& constant) {
               return !stays(constant, places.attribute);
           });
}

// May the value differ from the bytes of the attribute although it was not itself edited?
bool is_deep(const Attribute& attribute, const Placements& places) {
    return holds_graphs(attribute) || moves_constants(attribute, places);
}

// The field and the kind of each alternative of Attribute::Value; sparse constants differ.
struct Form {
    Number field;
    AttributeKind kind;
};
constexpr Form forms[] = {
    {0, AttributeKind::undefined},
    {attribute::i, AttributeKind::i},
    {attribute::f, AttributeKind::f},
    {attribute::s, AttributeKind::s},
    {attribute::t, AttributeKind::t},
    {attribute::g, AttributeKind::g},
    {attribute::type_proto, AttributeKind::type_proto},
    {attribute::ints, AttributeKind::ints},
    {attribute::floats, AttributeKind::floats},
    {attribute::strings, AttributeKind::strings},
    {attribute::tensors, AttributeKind::tensors},
    {attribute::graphs, AttributeKind::graphs},
    {attribute::type_protos, AttributeKind::type_protos},
    {attribute::sparse, AttributeKind::sparse},
    {attribute::sparses, AttributeKind::sparses},
};
static_assert(std::size(forms) == std::variant_size_v<Attribute::Value> + 2);

Form form_of(const Attribute::Value& value) {
    if (const auto* one = std::get_if<Constant>(&value); one != nullptr && one->is_sparse()) {
        return forms[13];
    }
    if (const auto* all = std::get_if<std::vector<Constant>>(&value);
        all != nullptr && !all->empty() && all->front().is_sparse()) {
        return forms[14];
    }
    return forms[value.index()];
}

// Writes the k-th element of an attribute's value as a field.
struct PutElement {
    Rope& out;
    Number number;
    std::size_t k;
    const Fields* slot;
    const Placements& places;

    void operator()(std::monostate) {}
    void operator()(std::int64_t value) { out.integer(number, value); }
    void operator()(float value) { out.real(number, value); }
    void operator()(const std::string& value) { out.text(number, value); }
    void operator()(const Constant& value) {
        put_message(out, number,
                    (value.is_sparse() ? write_sparse : write_tensor)(
                        value, std::nullopt, places.attribute, slot ? slot->bytes() : Bytes()),
                    slot);
    }
    void operator()(const std::shared_ptr<Graph>& value) {
        put_message(out, number, write_graph(*value, places, GraphWriter::Kind::nested), slot);
    }
    void operator()(const Type& value) {
        if (slot != nullptr && read_type(slot->file(), slot->bytes(), 0) == value) {
            out.borrow(slot->whole());
            return;
        }
        out.message(number, write_type(value));
    }
    template <class T>
    void operator()(const std::vector<T>& values) {
        (*this)(values[k]);
    }
};

struct CountElements {
    std::size_t operator()(std::monostate) { return 0; }
    template <class T>
    std::size_t operator()(const T&) {
        return 1;
    }
    template <class T>
    std::size_t operator()(const std::vector<T>& values) {
        return values.size();
    }
    std::size_t operator()(const std::string&) { return 1; }
};

}  // namespace

Rope write_attribute(const Attribute& attribute, const Placements& places) {
    const auto& source = attribute.source;
    if (source.intact() && !is_deep(attribute, places)) {
        return verbatim(source.bytes);
    }
    Rewrite message(source.bytes);
    const auto form = form_of(attribute.value);
    if (!source.intact()) {
        message.text(attribute::name, attribute.name);
        message.text(attribute::reference, attribute.reference);
        if (form.kind != AttributeKind::undefined) {
            message.integer(attribute::kind, static_cast<std::int64_t>(form.kind));
            for (const auto& other : forms) {
                if (other.field != 0 && other.field != form.field) {
                    message.drop(other.field);
                }
            }
        }
    }
    if (form.kind != AttributeKind::undefined) {
        message.list(form.field, std::visit(CountElements(), attribute.value),
                     [&](Rope& out, std::size_t k, const Fields* slot) {
                         std::visit(PutElement{out, form.field, k, slot, places}, attribute.value);
                     });
    }
    return message.finish();
}

Rope GraphWriter::op(OpId id) const {
    const auto& op = graph_.op(id);
    const bool deep = std::any_of(op.attributes.begin(), op.attributes.end(),
                                  [&](const auto& a) { return is_deep(a, places_); });
    if (op.source.intact() && !deep) {
        return verbatim(op.source.bytes);
    }
    Rewrite message(op.source.bytes);
    if (!op.source.intact()) {
        message.texts(node::input, names(graph_, op.inputs));
        message.texts(node::output, names(graph_, op.outputs));
        message.text(node::name, op.name);
        message.text(node::type, op.type);
    }
    message.list(
        node::attribute, op.attributes.size(), [&](Rope& out, std::size_t k, const Fields* slot) {
            put_message(out, node::attribute, write_attribute(op.attributes[k], places_), slot);
        });
    if (!op.source.intact()) {
        message.text(node::doc, op.doc);
        rewrite_op_domain(message, op.domain, op.source.bytes);
        message.text(node::overload, op.overload);
        rewrite_properties(message, node::metadata, op.metadata);
    }
    return message.finish();
}

Rope GraphWriter::constant_op(TensorId id) const {
    const auto& tensor = graph_.tensor(id);
    Attribute value;
    value.name = tensor.constant->is_sparse() ? "sparse_value" : "value";
    value.value = *tensor.constant;
    Rope out;
    out.text(node::output, tensor.name);
    out.text(node::type, "Constant");
    out.message(node::attribute, write_attribute(value, places_));
    return out;
}

}  // namespace trocar::onnx
