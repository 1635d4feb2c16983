#include "formats/onnx/graph_writer.h"

#include <algorithm>
#include <unordered_set>

#include "formats/onnx/declaration.h"
#include "formats/onnx/schema.h"

namespace trocar::onnx {

using namespace schema;

void put_message(Rope& out, std::uint32_t number, Rope&& message, const Fields* slot) {
    if (slot != nullptr && slot->wire() == Wire::length && message.is(slot->bytes())) {
        out.borrow(slot->whole());
    } else {
        out.message(number, std::move(message));
    }
}

Rope write_graph(const Graph& graph, const Placements& places, GraphWriter::Kind kind) {
    Rewrite message(graph.source.bytes);
    const GraphWriter writer(graph, places, kind);
    message.text(graph::name, graph.name);
    message.text(graph::doc, graph.doc);
    rewrite_properties(message, graph::metadata, graph.metadata);
    writer.mention(message, graph.source.bytes);
    return message.finish();
}

GraphWriter::GraphWriter(const Graph& graph, const Placements& places, Kind kind)
    : graph_(graph),
      places_(places),
      kind_(kind),
      image_(static_cast<const GraphImage*>(graph.image.get())) {}

void GraphWriter::mention(Rewrite& message, Bytes base) const {
    const bool nested = std::any_of(graph_.ops().begin(), graph_.ops().end(),
                                    [&](OpId id) { return !graph_.op(id).subgraphs().empty(); });
    if (is_edited() || places_.moves || nested) {
        mention_nodes(message, base);
    }
    if (kind_ != Kind::function && (is_edited() || places_.moves)) {
        mention_constants(message, base);
    }
    if (is_edited()) {
        mention_inputs_and_outputs(message);
        mention_declarations(message, base);
        mention_annotations(message, base);
    }
}

namespace {

// Things in the order of the fields they were read from, then those that were not read from here.
template <class Id>
std::vector<Id> in_file_order(Bytes base, Number number, const std::vector<Id>& all,
                              const std::unordered_map<const std::byte*, Id>& at) {
    const File file{"", base, nullptr, {}, false};
    std::vector<Id> order;
    order.reserve(all.size());
    std::unordered_set<Id> placed;
    for (Fields field(file, base); field.next();) {
        if (field.number() != number) {
            continue;
        }
        const auto found = at.find(field.bytes().data());
        if (found != at.end() && placed.insert(found->second).second) {
            order.push_back(found->second);
        }
    }
    for (const auto id : all) {
        if (!placed.contains(id)) {
            order.push_back(id);
        }
    }
    return order;
}

}  // namespace

// Once ops were edited, the order of the graph holds; else that of the file, which may be none.
std::vector<OpId> GraphWriter::ops_in_file_order(Bytes base) const {
    std::vector<OpId> all(graph_.ops().begin(), graph_.ops().end());
    if (is_edited()) {
        return all;
    }
    std::unordered_map<const std::byte*, OpId> at;
    for (const auto id : all) {
        at.emplace(graph_.op(id).source.bytes.data(), id);
    }
    return in_file_order(base, kind_ == Kind::function ? function::node : graph::node, all, at);
}

void GraphWriter::mention_nodes(Rewrite& message, Bytes base) const {
    // A function has no initializers: its constants are ops.
    std::vector<TensorId> constants;
    if (kind_ == Kind::function) {
        constants = constants_in_file_order({}, false);
        const auto sparse = constants_in_file_order({}, true);
        constants.insert(constants.end(), sparse.begin(), sparse.end());
    }
    const auto number = kind_ == Kind::function ? function::node : graph::node;
    message.list(
        number, constants.size() + graph_.op_count(),
        [=, this, ops = ops_in_file_order(base)](Rope& out, std::size_t k, const Fields* slot) {
            put_message(
                out, number,
                k < constants.size() ? constant_op(constants[k]) : op(ops[k - constants.size()]),
                slot);
        });
}

std::vector<TensorId> GraphWriter::constants_in_file_order(Bytes base, bool sparse) const {
    std::vector<TensorId> all;
    std::unordered_map<const std::byte*, TensorId> at;
    for (const auto id : graph_.tensors()) {
        const auto& tensor = graph_.tensor(id);
        if (tensor.constant && tensor.constant->is_sparse() == sparse) {
            all.push_back(id);
            if (!tensor.constant_source.bytes.empty()) {
                at.emplace(tensor.constant_source.bytes.data(), id);
            }
        }
    }
    return in_file_order(base, sparse ? graph::sparse_initializer : graph::initializer, all, at);
}

void GraphWriter::mention_constants(Rewrite& message, Bytes base) const {
    for (const bool sparse : {false, true}) {
        const auto number = sparse ? graph::sparse_initializer : graph::initializer;
        auto all = constants_in_file_order(base, sparse);
        const auto count = all.size();
        message.list(
            number, count,
            [=, this, order = std::move(all)](Rope& out, std::size_t k, const Fields* slot) {
                put_message(out, number, constant(order[k]), slot);
            });
    }
}

namespace {

// Is this a SparseTensorProto rather than a TensorProto? Only that one has an element type,
// field 2.
bool is_sparse_message(Bytes message) {
    const File file{"", message, nullptr, {}, false};
    for (Fields at(file, message); at.next();) {
        if (at.number() > sparse::dims ||
            (at.number() == tensor::dtype && at.wire() == Wire::varint)) {
            return false;
        }
    }
    return true;
}

}  // namespace

Rope GraphWriter::constant(TensorId id) const {
    const auto& tensor = graph_.tensor(id);
    const auto& value = *tensor.constant;
    auto source = tensor.constant_source;
    if (source.edited && is_sparse_message(source.bytes) != value.is_sparse()) {
        source = {};  // a dense constant took the place of a sparse one, or the other way round
    }
    Rope as_read;
    as_read.borrow(source.bytes);
    if (source.intact() && !places_.moves) {
        return as_read;
    }
    if (value.is_sparse()) {
        return source.intact() && stays(value, places_.nested)
                   ? std::move(as_read)
                   : write_sparse(value, tensor.name, places_.nested, source.bytes);
    }
    // Asked once: the answer may be remembered.
    const auto where = value.is_string()     ? std::nullopt
                       : kind_ == Kind::main ? places_.main(value, tensor.name)
                                             : places_.nested(value);
    const Placement place = [&](const Constant&) { return where; };
    return source.intact() && stays(value, place)
               ? std::move(as_read)
               : write_tensor(value, tensor.name, place, source.bytes);
}

Rope GraphWriter::declaration(TensorId id, const Fields* slot) const {
    const auto& tensor = graph_.tensor(id);
    auto base = tensor.declaration.bytes;
    if (slot != nullptr && image_ != nullptr) {
        const auto more = image_->more_declarations.find(slot->bytes().data());
        if (more != image_->more_declarations.end() && more->second == id) {
            base = slot->bytes();
        }
    }
    if (tensor.declaration.intact() && base.data() == tensor.declaration.bytes.data()) {
        Rope as_read;
        as_read.borrow(base);
        return as_read;
    }
    return write_declaration(tensor.name, tensor.type, base);
}

void GraphWriter::mention_inputs_and_outputs(Rewrite& message) const {
    if (kind_ == Kind::function) {
        const auto names = [&](std::span<const TensorId> tensors) {
            std::vector<std::string> all;
            for (const auto id : tensors) {
                all.push_back(graph_.tensor(id).name);
            }
            return all;
        };
        message.texts(function::input, names(graph_.inputs()));
        message.texts(function::output, names(graph_.outputs()));
        return;
    }
    const auto mention = [&](Number number, std::span<const TensorId> tensors) {
        message.list(number, tensors.size(),
                     [=, this](Rope& out, std::size_t k, const Fields* slot) {
                         put_message(out, number, declaration(tensors[k], slot), slot);
                     });
    };
    mention(graph::input, graph_.inputs());
    mention(graph::output, graph_.outputs());
}

std::vector<GraphWriter::Declared> GraphWriter::declarations_in_file_order(Bytes base) const {
    const bool of_function = kind_ == Kind::function;
    std::unordered_map<const std::byte*, TensorId> at;
    std::vector<TensorId> all;
    for (const auto id : graph_.tensors()) {
        const auto& tensor = graph_.tensor(id);
        // Inputs and outputs of a graph are declared in lists of their own; of constants and what
        // is captured only a declaration that was there is kept.
        if (!of_function && (tensor.is_input || tensor.is_output)) {
            continue;
        }
        const bool declared = !tensor.declaration.bytes.empty();
        if (declared) {
            at.emplace(tensor.declaration.bytes.data(), id);
        }
        if (declared ||
            (tensor.type.kind != Type::Kind::unknown && !tensor.constant && !tensor.is_captured)) {
            all.push_back(id);
        }
    }
    std::vector<Declared> order;
    std::unordered_set<TensorId> placed;
    const File file{"", base, nullptr, {}, false};
    const auto number = of_function ? function::value_info : graph::value_info;
    for (Fields field(file, base); field.next();) {
        if (field.number() != number) {
            continue;
        }
        const auto place = field.bytes();
        if (const auto found = at.find(place.data()); found != at.end()) {
            if (placed.insert(found->second).second) {
                order.push_back({found->second, {}});
            }
        } else if (image_ != nullptr) {
            const auto more = image_->more_declarations.find(place.data());
            if (more != image_->more_declarations.end() &&
                (more->second == TensorId::none || graph_.contains(more->second))) {
                order.push_back({more->second, place});
            }
        }
    }
    for (const auto id : all) {
        if (!placed.contains(id)) {
            order.push_back({id, {}});
        }
    }
    return order;
}

void GraphWriter::mention_declarations(Rewrite& message, Bytes base) const {
    const auto number = kind_ == Kind::function ? function::value_info : graph::value_info;
    auto all = declarations_in_file_order(base);
    const auto count = all.size();
    message.list(number, count,
                 [=, this, order = std::move(all)](Rope& out, std::size_t k, const Fields* slot) {
                     const auto& [tensor, kept] = order[k];
                     Rope one;
                     if (kept.empty()) {
                         one = declaration(tensor, nullptr);
                     } else if (tensor == TensorId::none) {
                         one.borrow(kept);
                     } else {
                         one = write_declaration(graph_.tensor(tensor).name,
                                                 graph_.tensor(tensor).type, kept);
                     }
                     put_message(out, number, std::move(one), slot);
                 });
}

std::string GraphWriter::current_name(const std::string& name) const {
    const auto found = image_->annotated.find(name);
    return found != image_->annotated.end() && graph_.contains(found->second)
               ? graph_.tensor(found->second).name
               : name;
}

// An annotation goes by the names of tensors: renamed ones are renamed here too, and one of a
// tensor that is gone goes with it.
void GraphWriter::mention_annotations(Rewrite& message, Bytes base) const {
    if (image_ == nullptr || image_->annotated.empty()) {
        return;
    }
    const File file{"", base, nullptr, {}, false};
    std::vector<Bytes> all;
    for (Fields field(file, base); field.next();) {
        if (field.number() != graph::quantization) {
            continue;
        }
        std::string name;
        for (Fields at(file, field.bytes()); at.next();) {
            if (at.number() == annotation::tensor) {
                name = at.text();
            }
        }
        const auto found = image_->annotated.find(name);
        if (found == image_->annotated.end() || graph_.contains(found->second)) {
            all.push_back(field.bytes());
        }
    }
    const auto count = all.size();
    message.list(graph::quantization, count,
                 [this, all = std::move(all)](Rope& out, std::size_t k, const Fields* slot) {
                     Rewrite one(all[k]);
                     const File inside{"", all[k], nullptr, {}, false};
                     std::vector<Property> parameters;
                     std::string name;
                     for (Fields at(inside, all[k]); at.next();) {
                         if (at.number() == annotation::tensor) {
                             name = at.text();
                         } else if (at.number() == annotation::parameter) {
                             parameters.push_back(read_property(inside, at.bytes()));
                             parameters.back().value = current_name(parameters.back().value);
                         }
                     }
                     one.text(annotation::tensor, current_name(name));
                     rewrite_properties(one, annotation::parameter, std::move(parameters));
                     put_message(out, graph::quantization, one.finish(), slot);
                 });
}

}  // namespace trocar::onnx
