#include "trocar/graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/graph_edit.h"
#include "trocar/error.h"

namespace trocar {

const Attribute* Op::attribute(std::string_view wanted) const {
    for (const auto& attribute : attributes) {
        if (attribute.name == wanted) {
            return &attribute;
        }
    }
    return nullptr;
}

std::int64_t Op::integer(std::string_view wanted, std::int64_t otherwise) const {
    const auto* found = attribute(wanted);
    const auto* value = found != nullptr ? std::get_if<std::int64_t>(&found->value) : nullptr;
    return value != nullptr ? *value : otherwise;
}

std::vector<std::int64_t> Op::integers(std::string_view wanted) const {
    const auto* found = attribute(wanted);
    const auto* value =
        found != nullptr ? std::get_if<std::vector<std::int64_t>>(&found->value) : nullptr;
    return value != nullptr ? *value : std::vector<std::int64_t>{};
}

std::string Op::text(std::string_view wanted, std::string_view otherwise) const {
    const auto* found = attribute(wanted);
    const auto* value = found != nullptr ? std::get_if<std::string>(&found->value) : nullptr;
    return value != nullptr ? *value : std::string(otherwise);
}

namespace {

void collect_subgraphs(const std::vector<Attribute>& attributes,
                       std::vector<std::shared_ptr<Graph>>& found) {
    for (const auto& attribute : attributes) {
        if (const auto* one = std::get_if<std::shared_ptr<Graph>>(&attribute.value)) {
            if (*one) {
                found.push_back(*one);
            }
        } else if (const auto* many =
                       std::get_if<std::vector<std::shared_ptr<Graph>>>(&attribute.value)) {
            for (const auto& graph : *many) {
                if (graph) {
                    found.push_back(graph);
                }
            }
        }
    }
}

template <class T>
void unique_in_place(std::vector<T>& items) {
    std::sort(items.begin(), items.end());
    items.erase(std::unique(items.begin(), items.end()), items.end());
}

}  // namespace

std::vector<std::shared_ptr<Graph>> Op::subgraphs() const {
    std::vector<std::shared_ptr<Graph>> found;
    collect_subgraphs(attributes, found);
    return found;
}

Graph::Graph() = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

void clone_subgraphs(std::vector<Attribute>& attributes) {
    for (auto& attribute : attributes) {
        if (auto* one = std::get_if<std::shared_ptr<Graph>>(&attribute.value)) {
            *one = std::make_shared<Graph>((*one)->clone());
        } else if (auto* many =
                       std::get_if<std::vector<std::shared_ptr<Graph>>>(&attribute.value)) {
            for (auto& graph : *many) {
                graph = std::make_shared<Graph>(graph->clone());
            }
        }
    }
}

Graph Graph::clone() const {
    Graph copy;
    copy.name = name;
    copy.doc = doc;
    copy.metadata = metadata;
    copy.source = source;
    copy.image = image;
    copy.ops_ = ops_;
    copy.tensors_ = tensors_;
    copy.first_ = first_;
    copy.last_ = last_;
    copy.op_count_ = op_count_;
    copy.tensor_count_ = tensor_count_;
    copy.inputs_ = inputs_;
    copy.outputs_ = outputs_;
    copy.captured_ = captured_;
    copy.by_name_ = by_name_;
    for (auto& node : copy.ops_) {
        clone_subgraphs(node.op.attributes);
    }
    return copy;
}

std::vector<TensorId> Graph::tensors() const {
    std::vector<TensorId> live;
    live.reserve(tensor_count_);
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
        if (tensors_[i].live) {
            live.push_back(static_cast<TensorId>(i));
        }
    }
    return live;
}

bool Graph::contains(OpId id) const {
    return index(id) < ops_.size() && ops_[index(id)].live;
}

bool Graph::contains(TensorId id) const {
    return index(id) < tensors_.size() && tensors_[index(id)].live;
}

const Op& Graph::op(OpId id) const {
    if (!contains(id)) {
        throw Error(Fault::usage, fmt::format("the graph has no op with handle {}", index(id)));
    }
    return ops_[index(id)].op;
}

const Tensor& Graph::tensor(TensorId id) const {
    if (!contains(id)) {
        throw Error(Fault::usage, fmt::format("the graph has no tensor with handle {}", index(id)));
    }
    return tensors_[index(id)].tensor;
}

OpId Graph::next(OpId id) const {
    return ops_[index(id)].next;
}
OpId Graph::previous(OpId id) const {
    return ops_[index(id)].previous;
}
bool Graph::before(OpId a, OpId b) const {
    return ops_[index(a)].label < ops_[index(b)].label;
}

std::optional<TensorId> Graph::find_tensor(std::string_view wanted) const {
    const auto found = by_name_.find(wanted);
    return found != by_name_.end() ? std::optional(found->second) : std::nullopt;
}

std::optional<OpId> Graph::find_op(std::string_view wanted) const {
    if (op_names_stale_) {
        op_by_name_.clear();
        for (const auto id : ops()) {
            op_by_name_.emplace(ops_[index(id)].op.name, id);
        }
        op_names_stale_ = false;
    }
    const auto found = op_by_name_.find(wanted);
    return found != op_by_name_.end() ? std::optional(found->second) : std::nullopt;
}

std::vector<OpId> Graph::producers(OpId id) const {
    std::vector<OpId> found;
    const auto& here = op(id);
    for (const auto* list : {&here.inputs, &here.captures}) {
        for (const auto input : *list) {
            if (input != TensorId::none && tensor(input).producer != OpId::none) {
                found.push_back(tensor(input).producer);
            }
        }
    }
    unique_in_place(found);
    return found;
}

std::vector<OpId> Graph::consumers(OpId id) const {
    std::vector<OpId> found;
    for (const auto output : op(id).outputs) {
        if (output != TensorId::none) {
            for (const auto& use : tensor(output).uses) {
                found.push_back(use.op);
            }
        }
    }
    unique_in_place(found);
    return found;
}

std::string Graph::describe(OpId id) const {
    const auto& here = op(id);
    std::size_t place = 0;
    for (auto at = ops_[index(id)].previous; at != OpId::none; at = previous(at)) {
        ++place;
    }
    return here.name.empty() ? fmt::format("op {} ({})", place, here.type)
                             : fmt::format("op {} ({} '{}')", place, here.type, here.name);
}

std::string Graph::fresh_name(std::string_view stem) const {
    std::string candidate(stem.empty() ? "tensor" : stem);
    if (!by_name_.contains(candidate)) {
        return candidate;
    }
    const std::string base = candidate;
    for (std::size_t i = tensors_.size();; ++i) {
        candidate = fmt::format("{}_{}", base, i);
        if (!by_name_.contains(candidate)) {
            return candidate;
        }
    }
}

bool Graph::edited() const {
    if (source.edited) {
        return true;
    }
    for (const auto id : ops()) {
        for (const auto& graph : ops_[index(id)].op.subgraphs()) {
            if (graph->edited()) {
                return true;
            }
        }
    }
    return false;
}

void Graph::mark_read() {
    source.edited = false;
    for (auto& node : ops_) {
        node.op.source.edited = false;
        for (auto& attribute : node.op.attributes) {
            attribute.source.edited = false;
        }
    }
    for (auto& node : tensors_) {
        node.tensor.declaration.edited = false;
        node.tensor.constant_source.edited = false;
    }
}

}  // namespace trocar
