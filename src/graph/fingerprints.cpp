#include "graph/fingerprints.h"

#include <bit>

#include "graph/op_meaning.h"
#include "trocar/random.h"
#include "util/xxh64.h"

namespace trocar {

namespace {

constexpr std::size_t small = 64;  // elements of integers that say what an op does

std::uint64_t text_hash(std::string_view text) {
    return stable_hash(text.data(), text.size());
}

std::uint64_t type_hash(const Type& type) {
    return text_hash(type_text(type));
}

std::uint64_t form_hash(const Constant& constant) {
    auto hash = mixed(0x11, static_cast<std::uint64_t>(constant.dtype()));
    for (const auto dim : constant.shape()) {
        hash = mixed(hash, static_cast<std::uint64_t>(dim));
    }
    return hash;
}

std::uint64_t constant_hash(const Constant& constant, bool strong) {
    const bool tells = is_integer(constant.dtype()) && constant.element_count() <= small;
    const auto hash = form_hash(constant);
    return strong || tells ? mixed(hash, content_hash(constant)) : hash;
}

std::uint64_t graph_hash(const Graph& graph, bool strong);

struct ValueHash {
    bool strong;

    std::uint64_t operator()(std::monostate) const { return 1; }
    std::uint64_t operator()(std::int64_t x) const {
        return mixed(2, static_cast<std::uint64_t>(x));
    }
    std::uint64_t operator()(float x) const { return mixed(3, std::bit_cast<std::uint32_t>(x)); }
    std::uint64_t operator()(const std::string& x) const { return mixed(4, text_hash(x)); }
    std::uint64_t operator()(const Constant& x) const { return mixed(5, constant_hash(x, strong)); }
    std::uint64_t operator()(const std::shared_ptr<Graph>& x) const {
        return mixed(6, x ? graph_hash(*x, strong) : 0);
    }
    std::uint64_t operator()(const Type& x) const { return mixed(7, type_hash(x)); }
    template <class T>
    std::uint64_t operator()(const std::vector<T>& list) const {
        std::uint64_t hash = 8 + list.size();
        for (const auto& x : list) {
            hash = mixed(hash, (*this)(x));
        }
        return hash;
    }
};

// A hash of all that an op reads, on top of another: in order, or in any order where that is the
// same.
template <class HashOfOne>
std::uint64_t all_of_inputs(const Op& op, std::uint64_t hash, const HashOfOne& of_one) {
    std::uint64_t sum = 0;
    for (const auto input : op.inputs) {
        if (commutes(op)) {
            sum += mixed(23, of_one(input));
        } else {
            hash = mixed(hash, of_one(input));
        }
    }
    return commutes(op) ? mixed(hash, sum) : hash;
}
// The place in which an op reads, where places differ.
std::uint64_t place_of(const Graph& graph, const Use& use) {
    return commutes(graph.op(use.op)) ? 0 : use.slot;
}

std::uint64_t op_hash(const Graph& graph, const Op& op, bool strong) {
    auto hash =
        mixed(text_hash(op.type), op.domain == "ai.onnx" ? text_hash("") : text_hash(op.domain));
    hash = mixed(hash, text_hash(op.overload));
    std::uint64_t attributes = 0;  // in any order
    for (const auto& attribute : op.attributes) {
        if (says_default(op, attribute)) {
            continue;
        }
        attributes += mixed(mixed(text_hash(attribute.name), text_hash(attribute.reference)),
                            std::visit(ValueHash{strong}, attribute.value));
    }
    hash = mixed(hash, attributes);
    const auto read = all_of_inputs(op, hash, [&](TensorId input) -> std::uint64_t {
        const auto* tensor = input == TensorId::none ? nullptr : &graph.tensor(input);
        return tensor == nullptr  ? 21
               : tensor->constant ? constant_hash(*tensor->constant, strong)
                                  : 22;
    });
    return mixed(read, op.outputs.size());
}

// A body as a whole: its ops in their order, with what they read.
std::uint64_t graph_hash(const Graph& graph, bool strong) {
    std::unordered_map<TensorId, std::uint64_t> numbers;
    std::uint64_t hash = 31;
    for (const auto id : graph.inputs()) {
        numbers.emplace(id, numbers.size() + 1);
    }
    for (const auto id : graph.ops()) {
        const auto& op = graph.op(id);
        hash = mixed(hash, op_hash(graph, op, strong));
        for (const auto input : op.inputs) {
            const auto at = numbers.find(input);
            hash = mixed(hash, at == numbers.end() ? 0 : at->second);
        }
        for (const auto output : op.outputs) {
            numbers.emplace(output, numbers.size() + 1);
        }
    }
    for (const auto id : graph.outputs()) {
        const auto at = numbers.find(id);
        hash = mixed(hash, at == numbers.end() ? 0 : at->second);
    }
    return hash;
}

}  // namespace

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
    auto x = a * 0x9e3779b97f4a7c15ULL + std::rotl(b, 31) + 0xd1b54a32d192ed03ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

std::uint64_t content_hash(const Constant& constant) {
    if (constant.is_string()) {
        std::uint64_t hash = 41;
        for (const auto& text : constant.string_values()) {
            hash = mixed(hash, text_hash(text));
        }
        return hash;
    }
    return constant.is_sparse() ? xxh64(densify(constant).bytes()) : xxh64(constant.bytes());
}

Fingerprints::Fingerprints(const Graph& graph) : graph_(graph) {
    weak.assign(graph.op_limit(), 0);
    strong.assign(graph.op_limit(), 0);
    for (const auto id : graph.ops()) {
        weak[index(id)] = op_hash(graph, graph.op(id), false);
        strong[index(id)] = op_hash(graph, graph.op(id), true);
    }
    spread(weak, weak_forward, weak_backward);
    spread(strong, strong_forward, strong_backward);
}

void Fingerprints::spread(const std::vector<std::uint64_t>& own,
                          std::vector<std::uint64_t>& forward,
                          std::vector<std::uint64_t>& backward) const {
    forward.assign(own.size(), 0);
    backward.assign(own.size(), 0);
    std::unordered_map<TensorId, std::uint64_t> inputs;
    for (const auto id : graph_.inputs()) {
        if (!graph_.tensor(id).constant) {
            inputs.emplace(id, inputs.size() + 51);
        }
    }
    const auto from = [&](TensorId id) -> std::uint64_t {
        const auto& tensor = graph_.tensor(id);
        if (tensor.producer != OpId::none) {
            return mixed(forward[index(tensor.producer)], tensor.producer_slot);
        }
        const auto at = inputs.find(id);
        return at != inputs.end() ? at->second : tensor.is_captured ? text_hash(tensor.name) : 50;
    };
    for (const auto id : graph_.ops()) {
        const auto& op = graph_.op(id);
        const auto hash = all_of_inputs(op, own[index(id)], [&](TensorId input) {
            return input == TensorId::none ? std::uint64_t{0} : from(input);
        });
        std::uint64_t captured = 0;
        for (const auto input : op.captures) {
            captured += from(input);
        }
        forward[index(id)] = mixed(hash, captured);
    }
    std::unordered_map<TensorId, std::uint64_t> outputs;
    for (const auto id : graph_.outputs()) {
        outputs[id] += mixed(60, outputs.size());
    }
    for (auto id = graph_.last(); id != OpId::none; id = graph_.previous(id)) {
        const auto& op = graph_.op(id);
        auto hash = own[index(id)];
        for (const auto output : op.outputs) {
            std::uint64_t readers = 0;
            if (output != TensorId::none) {
                for (const auto& use : graph_.tensor(output).uses) {
                    readers += mixed(backward[index(use.op)], place_of(graph_, use));
                }
                const auto at = outputs.find(output);
                readers += at == outputs.end() ? 0 : at->second;
            }
            hash = mixed(hash, readers);
        }
        backward[index(id)] = hash;
    }
}

std::vector<std::uint64_t> Fingerprints::widened(const std::vector<std::uint64_t>& narrower) const {
    std::vector<std::uint64_t> wider(narrower.size(), 0);
    for (const auto id : graph_.ops()) {
        const auto& op = graph_.op(id);
        auto hash = all_of_inputs(op, narrower[index(id)], [&](TensorId input) {
            const auto producer =
                input == TensorId::none ? OpId::none : graph_.tensor(input).producer;
            return producer == OpId::none ? std::uint64_t{70} : narrower[index(producer)];
        });
        for (const auto output : op.outputs) {
            std::uint64_t readers = 0;
            if (output != TensorId::none) {
                for (const auto& use : graph_.tensor(output).uses) {
                    readers += mixed(narrower[index(use.op)], place_of(graph_, use));
                }
            }
            hash = mixed(hash, readers);
        }
        wider[index(id)] = hash;
    }
    return wider;
}

}  // namespace trocar
