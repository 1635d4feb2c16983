#include "formats/torchscript/builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "trocar/error.h"

namespace trocar::torchscript {

Type type_of_kind(const std::string& kind) {
    if (kind == "T") {
        return {};
    }
    if (kind == "i" || kind == "n") {
        return Type::tensor(DType::i64, Shape());
    }
    if (kind == "f") {
        return Type::tensor(DType::f64, Shape());
    }
    if (kind == "b") {
        return Type::tensor(DType::boolean, Shape());
    }
    if (kind == "c") {
        return Type::tensor(DType::c128, Shape());
    }
    if (kind == "s") {
        return Type::tensor(DType::string, Shape());
    }
    if (kind == "i[]" || kind == "f[]" || kind == "b[]") {
        auto type = type_of_kind(kind.substr(0, 1));
        type.dims = std::vector<Dim>{Dim{}};
        return type;
    }
    Type type;
    if (kind.ends_with("[]")) {
        type.kind = Type::Kind::sequence;
        type.element = {type_of_kind(kind.substr(0, kind.size() - 2))};
    } else if (kind.ends_with("?")) {
        type.kind = Type::Kind::optional;
        type.element = {type_of_kind(kind.substr(0, kind.size() - 1))};
    } else {
        type.kind = Type::Kind::opaque;
    }
    return type;
}

void Builder::enter(Region& inside) {
    inside.outer = region_;
    inside.depth = region_->depth + 1;
    region_ = &inside;
}

void Builder::tidy(Graph& graph) {
    // Structures that were made for a body that was then made otherwise.
    constexpr std::string_view structures[] = {"Constant", "DictConstruct", "ListConstruct",
                                               "TupleConstruct", "Uninitialized"};
    for (auto op = graph.last(); op != OpId::none;) {
        const auto id = std::exchange(op, graph.previous(op));
        const auto& facts = graph.op(id);
        const auto unread = [&](TensorId output) {
            return graph.tensor(output).uses.empty() && !graph.tensor(output).is_output;
        };
        if (facts.domain == "prim" &&
            std::find(std::begin(structures), std::end(structures), facts.type) !=
                std::end(structures) &&
            std::all_of(facts.outputs.begin(), facts.outputs.end(), unread)) {
            graph.remove(id);
        }
    }
    for (const auto id : graph.tensors()) {
        const auto& tensor = graph.tensor(id);
        if (tensor.uses.empty() && !tensor.is_output && !tensor.is_input &&
            tensor.producer == OpId::none &&
            (tensor.is_captured || tensor.metadata.empty() ||
             tensor.metadata.front() == Property{"kind", "constant"})) {
            graph.remove_tensor(id);
        }
    }
}

std::shared_ptr<Graph> Builder::finished(Region& region) {
    tidy(region.graph);
    region.graph.mark_read();
    return std::make_shared<Graph>(std::move(region.graph));
}

std::string Builder::unused(std::string_view stem, bool kept) {
    std::string made(stem.empty() ? "value" : stem);
    if (names_.contains(made)) {
        auto& next = next_[made];
        const auto name = made;
        do {
            made = fmt::format("{}.{}", name, ++next);
        } while (names_.contains(made));
    }
    names_.insert(made);
    if (!kept) {
        journal_.push_back(made);
    }
    return made;
}

void Builder::forget(std::size_t mark) {
    while (journal_.size() > mark) {
        names_.erase(journal_.back());
        next_.erase(journal_.back());
        journal_.pop_back();
    }
}

Runtime Builder::add_entry(Region& region, std::string name, const std::string& kind, TensorId id) {
    const Runtime made{entries_.size()};
    entries_.push_back({std::move(name), kind, region.depth, std::nullopt});
    region.tensors.emplace(made.place, id);
    return made;
}

TensorId Builder::resolve(Region& region, Runtime value) {
    if (const auto found = region.tensors.find(value.place); found != region.tensors.end()) {
        return found->second;
    }
    if (region.outer == nullptr) {
        throw Error(Fault::internal,
                    fmt::format("'{}' is read where it is not known", entries_[value.place].name));
    }
    resolve(*region.outer, value);  // every graph in between captures it too
    const auto id = region.graph.add_capture(entries_[value.place].name);
    region.tensors.emplace(value.place, id);
    return id;
}

Runtime Builder::add_input(Region& region, const std::string& name, const std::string& kind) {
    auto free = unused(name, &region == &root_);
    const auto id = region.graph.add_input(free, type_of_kind(kind));
    return add_entry(region, std::move(free), kind, id);
}

Runtime Builder::add_constant(const std::string& name, Constant value, const std::string& kind) {
    auto free = unused(name, true);
    const auto id = root_.graph.add_constant(free, std::move(value));
    return add_entry(root_, std::move(free), kind, id);
}

Runtime Builder::add_local_constant(Constant value, const std::string& kind) {
    auto free = unused(place_.module.empty() ? "constant" : place_.module + "/constant");
    const auto id = region_->graph.add_constant(free, std::move(value));
    return add_entry(*region_, std::move(free), kind, id);
}

Runtime Builder::add_output(Draft& draft, const std::string& kind, const std::string& stem) {
    const auto& word = !stem.empty() ? stem : !place_.stem.empty() ? place_.stem : draft.spec.type;
    auto name = unused(place_.module.empty() ? word : fmt::format("{}/{}", place_.module, word));
    const auto id = region_->graph.add_tensor(name, type_of_kind(kind));
    draft.spec.outputs.push_back(id);
    return add_entry(*region_, std::move(name), kind, id);
}

void Builder::set_rank(Runtime value, std::size_t rank) {
    constexpr std::size_t highest = 64;
    auto& type = region_->graph.tensor_from_file(resolve(value)).type;
    if (!type.dims && rank <= highest &&
        (type.kind == Type::Kind::unknown || type.kind == Type::Kind::tensor)) {
        type.kind = Type::Kind::tensor;
        type.dims = std::vector<Dim>(rank);
    }
}

OpId Builder::append(Draft draft) {
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
    if (spec.name.empty()) {
        spec.name = !spec.outputs.empty()
                        ? region_->graph.tensor(spec.outputs[0]).name
                        : (place_.module.empty() ? spec.type
                                                 : fmt::format("{}/{}", place_.module, spec.type));
    }
    spec.origin = {.module = place_.module, .source = place_.source};
    ++ops_;
    return region_->graph.append(std::move(spec));
}

void Builder::add_argument(Draft& draft, const std::string& name, Attribute::Value value) {
    auto& attributes = draft.spec.attributes;
    auto free = name;
    const auto taken = [&](const Attribute& a) { return a.name == free; };
    while (free == "inputs" || free == "outputs" ||
           std::any_of(attributes.begin(), attributes.end(), taken)) {
        free += "'";
    }
    attributes.push_back(
        {.name = std::move(free), .value = std::move(value), .reference = {}, .source = {}});
}

void Builder::add_argument(Draft& draft, const std::string& name, Runtime value) {
    draft.spec.inputs.push_back(resolve(value));
    draft.slots.push_back(name);
}

}  // namespace trocar::torchscript
