#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "graph/fingerprints.h"
#include "graph/op_meaning.h"
#include "trocar/error.h"
#include "trocar/graph_diff.h"
#include "trocar/statistics.h"
#include "util/op_label.h"
#include "util/text.h"

namespace trocar {

namespace {

std::string form_text(const Constant& constant) {
    return type_text(Type::tensor(constant.dtype(), constant.shape()));
}

std::string shortened(std::string text) {
    constexpr std::size_t most = 60;
    if (text.size() > most) {
        text.resize(most);
        while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80) {
            text.pop_back();  // not in the middle of a character
        }
        text += "…";
    }
    return text;
}

// An attribute as a person reads it.
struct ValueText {
    std::string operator()(std::monostate) const { return "of an unknown kind"; }
    std::string operator()(std::int64_t x) const { return std::to_string(x); }
    std::string operator()(float x) const { return fmt::format("{}", x); }
    std::string operator()(const std::string& x) const { return fmt::format("'{}'", x); }
    std::string operator()(const Constant& x) const { return form_text(x); }
    std::string operator()(const std::shared_ptr<Graph>& x) const {
        return x ? fmt::format("a body of {} ops", x->op_count()) : "no body";
    }
    std::string operator()(const Type& x) const { return type_text(x); }
    template <class T>
    std::string operator()(const std::vector<T>& list) const {
        std::vector<std::string> texts;
        for (const auto& x : list) {
            texts.push_back((*this)(x));
        }
        return fmt::format("[{}]", join(texts, ","));
    }
};
std::string text_of(const Attribute& attribute) {
    return shortened(std::visit(ValueText{}, attribute.value));
}

bool same_elements(const Constant& a, const Constant& b) {
    if (a.is_string() || b.is_string()) {
        return a.is_string() && b.is_string() && a.string_values() == b.string_values();
    }
    const auto left = a.is_sparse() ? densify(a) : a;
    const auto right = b.is_sparse() ? densify(b) : b;
    const auto x = left.bytes();
    const auto y = right.bytes();
    return x.size() == y.size() &&
           (x.data() == y.data() || x.empty() || std::memcmp(x.data(), y.data(), x.size()) == 0);
}

// A NaN is the same as itself.
bool same_bits(float a, float b) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

// Values that can be told apart without looking into bodies; those are compared on their own.
struct SameValue {
    template <class T>
    bool operator()(const T& a, const T& b) const {
        if constexpr (std::is_same_v<T, Constant>) {
            return a.dtype() == b.dtype() && a.shape() == b.shape() && same_elements(a, b);
        } else if constexpr (std::is_same_v<T, std::vector<Constant>>) {
            return std::equal(
                a.begin(), a.end(), b.begin(), b.end(),
                [this](const Constant& x, const Constant& y) { return (*this)(x, y); });
        } else if constexpr (std::is_same_v<T, std::shared_ptr<Graph>>) {
            return true;
        } else if constexpr (std::is_same_v<T, std::vector<std::shared_ptr<Graph>>>) {
            return a.size() == b.size();
        } else if constexpr (std::is_same_v<T, float>) {
            return same_bits(a, b);
        } else if constexpr (std::is_same_v<T, std::vector<float>>) {
            return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_bits);
        } else {
            return a == b;
        }
    }
    template <class T, class U>
    bool operator()(const T&, const U&) const {
        return false;
    }
};

std::string own_domain(const std::string& domain) {
    return domain == "ai.onnx" ? "" : domain;
}

class Differ {
public:
    Differ(const Graph& a, const Graph& b, std::string scope, const GraphDiffOptions& options,
           GraphDiff& diff)
        : a_(a), b_(b), scope_(std::move(scope)), options_(options), diff_(diff) {}

    void run(bool main) {
        matches_ = match_ops(a_, b_);
        pair_tensors(main);
        lone_ops();
        for (const auto id : a_.ops()) {
            const auto other = matches_.to_b[index(id)];
            if (other != OpId::none) {
                if (options_.cancel && options_.cancel()) {
                    diff_.complete = false;
                    return;
                }
                compare(id, other);
            }
        }
        outputs(main);
        if (a_.doc != b_.doc) {
            diff_.metadata.push_back(
                {scope_, "doc of the graph", shortened(a_.doc), shortened(b_.doc)});
        }
        properties("metadata of the graph: ", a_.metadata, b_.metadata);
    }

    void properties(const std::string& what, const std::vector<Property>& a,
                    const std::vector<Property>& b) {
        std::map<std::string, std::pair<std::string, std::string>> all;
        for (const auto& property : a) {
            all[property.key].first = property.value;
        }
        for (const auto& property : b) {
            all[property.key].second = property.value;
        }
        for (const auto& [key, values] : all) {
            if (values.first != values.second) {
                diff_.metadata.push_back(
                    {scope_, what + key, shortened(values.first), shortened(values.second)});
            }
        }
    }

private:
    // Which tensor of A is which of B: what matched ops write, and inputs.
    void pair_tensors(bool main) {
        for (const auto id : a_.ops()) {
            const auto other = matches_.to_b[index(id)];
            if (other == OpId::none) {
                continue;
            }
            const auto& x = a_.op(id).outputs;
            const auto& y = b_.op(other).outputs;
            for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
                if (x[i] != TensorId::none && y[i] != TensorId::none) {
                    to_b_[x[i]] = y[i];
                }
            }
        }
        for (const auto id : a_.captured()) {
            if (const auto other = b_.find_tensor(a_.tensor(id).name)) {
                to_b_[id] = *other;
            }
        }
        inputs(main);
    }

    // By name, else by place among those that are left.
    void inputs(bool main) {
        std::vector<TensorId> left_a;
        std::vector<TensorId> left_b;
        std::unordered_set<TensorId> taken;
        const auto given = [](const Graph& graph, TensorId id) {
            return !graph.tensor(id).constant;
        };
        for (const auto id : a_.inputs()) {
            const auto other = b_.find_tensor(a_.tensor(id).name);
            if (other && b_.tensor(*other).is_input) {
                to_b_[id] = *other;
                taken.insert(*other);
                type_fact("input", a_.tensor(id), b_.tensor(*other));
            } else if (given(a_, id)) {
                left_a.push_back(id);
            }
        }
        for (const auto id : b_.inputs()) {
            if (!taken.contains(id) && given(b_, id)) {
                left_b.push_back(id);
            }
        }
        for (std::size_t i = 0; i < std::max(left_a.size(), left_b.size()); ++i) {
            const auto* x = i < left_a.size() ? &a_.tensor(left_a[i]) : nullptr;
            const auto* y = i < left_b.size() ? &b_.tensor(left_b[i]) : nullptr;
            if (x != nullptr && y != nullptr) {
                to_b_[left_a[i]] = left_b[i];
            }
            // Names inside of a body are its own affair.
            if (main || x == nullptr || y == nullptr) {
                diff_.interface.push_back(
                    {scope_, "input", x ? named(*x) : "", y ? named(*y) : ""});
            } else if (x->name != y->name) {
                ++diff_.renamed_tensors;
            }
        }
    }
    static std::string named(const Tensor& tensor) {
        return fmt::format("{}: {}", tensor.name, type_text(tensor.type));
    }
    void type_fact(const char* what, const Tensor& x, const Tensor& y) {
        if (x.type != y.type) {
            diff_.interface.push_back({scope_, what, named(x), named(y)});
        }
    }

    void outputs(bool main) {
        const auto x = a_.outputs();
        const auto y = b_.outputs();
        for (std::size_t i = 0; i < std::max(x.size(), y.size()); ++i) {
            const auto* left = i < x.size() ? &a_.tensor(x[i]) : nullptr;
            const auto* right = i < y.size() ? &b_.tensor(y[i]) : nullptr;
            if (left == nullptr || right == nullptr || (main && left->name != right->name)) {
                diff_.interface.push_back(
                    {scope_, "output", left ? named(*left) : "", right ? named(*right) : ""});
                continue;
            }
            type_fact("output", *left, *right);
            const auto same = source_text(a_, x[i]) == source_text(b_, y[i]) || is_pair(x[i], y[i]);
            if (!same) {
                diff_.interface.push_back({scope_,
                                           fmt::format("output '{}' is made by", left->name),
                                           source_text(a_, x[i]), source_text(b_, y[i])});
            }
        }
    }
    bool is_pair(TensorId x, TensorId y) const {
        const auto at = to_b_.find(x);
        return at != to_b_.end() && at->second == y;
    }

    void lone_ops() {
        diff_.ops_a += a_.op_count();
        diff_.ops_b += b_.op_count();
        const auto lone = [&](const Graph& graph, OpId id) {
            const auto& op = graph.op(id);
            GraphDiff::Lone one{scope_, op_label(graph, id), op.type, {}};
            for (const auto output : op.outputs) {
                one.outputs.push_back(output == TensorId::none ? "" : graph.tensor(output).name);
            }
            return one;
        };
        for (const auto id : a_.ops()) {
            if (matches_.to_b[index(id)] == OpId::none) {
                diff_.removed.push_back(lone(a_, id));
            } else {
                ++diff_.matched;
            }
        }
        for (const auto id : b_.ops()) {
            if (matches_.to_a[index(id)] == OpId::none) {
                diff_.added.push_back(lone(b_, id));
            }
        }
    }

    void compare(OpId id, OpId other) {
        const auto& x = a_.op(id);
        const auto& y = b_.op(other);
        GraphDiff::Changed changed{scope_, op_label(a_, id), x.type, {}, {}};
        if (x.name != y.name) {
            ++diff_.renamed_ops;
            changed.name_b = op_label(b_, other);
        }
        if (x.type != y.type || own_domain(x.domain) != own_domain(y.domain) ||
            x.overload != y.overload) {
            changed.what.push_back(fmt::format("type: {} → {}", full_type(x), full_type(y)));
        }
        attributes(x, y, changed);
        inputs_of(id, other, changed);
        if (x.outputs.size() != y.outputs.size()) {
            changed.what.push_back(
                fmt::format("outputs: {} → {}", x.outputs.size(), y.outputs.size()));
        }
        for (std::size_t i = 0; i < std::min(x.outputs.size(), y.outputs.size()); ++i) {
            if (x.outputs[i] != TensorId::none && y.outputs[i] != TensorId::none) {
                tensors(a_.tensor(x.outputs[i]), b_.tensor(y.outputs[i]));
            }
        }
        if (!changed.what.empty()) {
            diff_.changed.push_back(std::move(changed));
        }
        std::map<std::string, std::pair<std::string, std::string>> notes;
        if (x.doc != y.doc) {
            diff_.metadata.push_back({scope_, fmt::format("doc of '{}'", op_label(a_, id)),
                                      shortened(x.doc), shortened(y.doc)});
        }
        properties(fmt::format("metadata of '{}': ", op_label(a_, id)), x.metadata, y.metadata);
    }
    static std::string full_type(const Op& op) {
        return own_domain(op.domain).empty() ? op.type : op.domain + ":" + op.type;
    }

    void tensors(const Tensor& x, const Tensor& y) {
        diff_.renamed_tensors += x.name != y.name ? 1 : 0;
        const auto unknown = [](const Type& type) { return type.kind == Type::Kind::unknown; };
        // Outputs of the graph are told of as such; what one file leaves open is no difference.
        if (x.type != y.type && !x.is_output && !unknown(x.type) && !unknown(y.type)) {
            diff_.types.push_back({scope_, x.name, type_text(x.type), type_text(y.type)});
        }
        const auto how = [](const Tensor& tensor) {
            return tensor.quantization ? quantization_text(*tensor.quantization) : std::string();
        };
        if (how(x) != how(y)) {
            diff_.types.push_back({scope_, x.name + " (quantization)", how(x), how(y)});
        }
    }

    void attributes(const Op& x, const Op& y, GraphDiff::Changed& changed) {
        for (const auto& attribute : x.attributes) {
            const auto* other = y.attribute(attribute.name);
            if (other == nullptr && says_default(x, attribute)) {
                continue;
            }
            if (other == nullptr) {
                changed.what.push_back(
                    fmt::format("{}: {} → none", attribute.name, text_of(attribute)));
                continue;
            }
            const bool bytes_same =
                !std::holds_alternative<std::monostate>(attribute.value) ||
                std::equal(attribute.source.bytes.begin(), attribute.source.bytes.end(),
                           other->source.bytes.begin(), other->source.bytes.end());
            if (attribute.reference != other->reference || !bytes_same ||
                !std::visit(SameValue{}, attribute.value, other->value)) {
                const auto before = text_of(attribute);
                const auto after = text_of(*other);
                changed.what.push_back(
                    before == after ? fmt::format("{}: other values", attribute.name)
                                    : fmt::format("{}: {} → {}", attribute.name, before, after));
            }
            bodies(changed.op, attribute, *other);
        }
        for (const auto& attribute : y.attributes) {
            if (x.attribute(attribute.name) == nullptr && !says_default(y, attribute)) {
                changed.what.push_back(
                    fmt::format("{}: none → {}", attribute.name, text_of(attribute)));
            }
        }
    }
    void bodies(const std::string& op, const Attribute& x, const Attribute& y) {
        const auto list = [](const Attribute& attribute) {
            std::vector<std::shared_ptr<Graph>> all;
            if (const auto* one = std::get_if<std::shared_ptr<Graph>>(&attribute.value)) {
                all.push_back(*one);
            } else if (const auto* several =
                           std::get_if<std::vector<std::shared_ptr<Graph>>>(&attribute.value)) {
                all = *several;
            }
            return all;
        };
        const auto left = list(x);
        const auto right = list(y);
        for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
            if (left[i] && right[i]) {
                Differ(*left[i], *right[i],
                       fmt::format("{}{} of '{}'", scope_.empty() ? "" : scope_ + ", ", x.name, op),
                       options_, diff_)
                    .run(false);
            }
        }
    }

    // What a tensor comes from, as a person reads it.
    static std::string source_text(const Graph& graph, TensorId id) {
        if (id == TensorId::none) {
            return "nothing";
        }
        const auto& tensor = graph.tensor(id);
        if (tensor.producer != OpId::none) {
            return fmt::format(
                "'{}'{}", op_label(graph, tensor.producer),
                tensor.producer_slot == 0 ? "" : fmt::format(" output {}", tensor.producer_slot));
        }
        return fmt::format("{} '{}'", tensor.constant ? "constant" : "input", tensor.name);
    }

    // How well an input of one op fits one of the other.
    int fitting(TensorId left, TensorId right) const {
        if (left == TensorId::none || right == TensorId::none) {
            return 0;
        }
        const bool constants = a_.tensor(left).constant && b_.tensor(right).constant;
        return is_pair(left, right)                                         ? 2
               : constants && a_.tensor(left).name == b_.tensor(right).name ? 2
               : constants                                                  ? 1
                                                                            : 0;
    }
    void inputs_of(OpId id, OpId other, GraphDiff::Changed& changed) {
        const auto& x = a_.op(id).inputs;
        auto y = b_.op(other).inputs;
        if (commutes(a_.op(id)) && commutes(b_.op(other)) &&
            fitting(x[0], y[0]) + fitting(x[1], y[1]) < fitting(x[0], y[1]) + fitting(x[1], y[0])) {
            std::swap(y[0], y[1]);
        }
        for (std::size_t i = 0; i < std::max(x.size(), y.size()); ++i) {
            const auto left = i < x.size() ? x[i] : TensorId::none;
            const auto right = i < y.size() ? y[i] : TensorId::none;
            if (left == TensorId::none && right == TensorId::none) {
                continue;
            }
            if (left != TensorId::none && right != TensorId::none) {
                const auto& from = a_.tensor(left);
                const auto& to = b_.tensor(right);
                if (from.constant && to.constant) {
                    constants(id, left, right);
                    continue;
                }
                if (is_pair(left, right)) {
                    continue;
                }
            }
            changed.what.push_back(
                fmt::format("input {}: {} → {}", i, source_text(a_, left), source_text(b_, right)));
        }
    }

    void constants(OpId reader, TensorId left, TensorId right) {
        if (!seen_.insert({left, right}).second) {
            return;
        }
        const auto& x = a_.tensor(left);
        const auto& y = b_.tensor(right);
        if (x.name != y.name) {
            ++diff_.renamed_tensors;
        }
        GraphDiff::Elements made{scope_,
                                 x.name,
                                 x.name == y.name ? "" : y.name,
                                 op_label(a_, reader),
                                 form_text(*x.constant),
                                 form_text(*y.constant),
                                 {},
                                 0};
        if (made.type_a != made.type_b) {
            diff_.constants.push_back(std::move(made));
            return;
        }
        if (!options_.constants || same_elements(*x.constant, *y.constant)) {
            ++diff_.same_constants;
            return;
        }
        const auto a = Value::of(*x.constant);
        const auto b = Value::of(*y.constant);
        if (has_statistics(a) && has_statistics(b)) {
            made.difference = difference(a, b, options_.tolerance);
            made.changed = difference(a, b).mismatches;
            if (made.difference->within() &&
                (options_.tolerance.atol > 0 || options_.tolerance.rtol > 0)) {
                ++diff_.within;
                return;
            }
        }
        diff_.constants.push_back(std::move(made));
    }

    const Graph& a_;
    const Graph& b_;
    std::string scope_;
    const GraphDiffOptions& options_;
    GraphDiff& diff_;
    OpMatches matches_;
    std::unordered_map<TensorId, TensorId> to_b_;
    std::set<std::pair<TensorId, TensorId>> seen_;
};

std::string function_name(const Function& function) {
    return fmt::format("{}:{}{}", function.domain, function.name,
                       function.overload.empty() ? "" : ":" + function.overload);
}

void model_facts(const Model& a, const Model& b, GraphDiff& diff) {
    const auto fact = [&](const char* what, const std::string& x, const std::string& y) {
        if (x != y) {
            diff.metadata.push_back({"", what, shortened(x), shortened(y)});
        }
    };
    fact("IR version", std::to_string(a.ir_version), std::to_string(b.ir_version));
    std::map<std::string, std::pair<std::int64_t, std::int64_t>> opsets;
    for (const auto& opset : a.opsets) {
        opsets[own_domain(opset.domain)].first = opset.version;
    }
    for (const auto& opset : b.opsets) {
        opsets[own_domain(opset.domain)].second = opset.version;
    }
    for (const auto& [domain, versions] : opsets) {
        const auto text = [](std::int64_t version) {
            return version == 0 ? std::string() : std::to_string(version);
        };
        fact(fmt::format("opset {}", domain.empty() ? "ai.onnx" : domain).c_str(),
             text(versions.first), text(versions.second));
    }
    fact("producer", a.producer, b.producer);
    fact("producer's version", a.producer_version, b.producer_version);
    fact("domain", a.domain, b.domain);
    fact("version", std::to_string(a.model_version), std::to_string(b.model_version));
    fact("doc", a.doc, b.doc);
    fact("name of the graph", a.graph.name, b.graph.name);
}

void functions(const Model& a, const Model& b, const GraphDiffOptions& options, GraphDiff& diff) {
    std::map<std::string, std::pair<const Function*, const Function*>> all;
    for (const auto& function : a.functions) {
        all[function_name(*function)].first = function.get();
    }
    for (const auto& function : b.functions) {
        all[function_name(*function)].second = function.get();
    }
    for (const auto& [name, pair] : all) {
        const auto scope = fmt::format("function {}", name);
        if (pair.first == nullptr || pair.second == nullptr) {
            diff.metadata.push_back(
                {"", scope, pair.first ? "there" : "", pair.second ? "there" : ""});
        } else {
            Differ(pair.first->body, pair.second->body, scope, options, diff).run(false);
        }
    }
}

}  // namespace

bool GraphDiff::same(const GraphDiffOptions& options) const {
    return removed.empty() && added.empty() && changed.empty() && interface.empty() &&
           (!options.constants || constants.empty()) && (!options.types || types.empty()) &&
           (!options.metadata || metadata.empty()) &&
           (!options.names || (renamed_ops == 0 && renamed_tensors == 0));
}

GraphDiff diff_models(const Model& a, const Model& b, const GraphDiffOptions& options) {
    if (a.dialect != b.dialect) {
        throw Error(Fault::unsupported,
                    fmt::format("one model is of the dialect '{}', the other of '{}'", a.dialect,
                                b.dialect),
                    "`trocar convert` says one of them in the other's dialect");
    }
    GraphDiff diff;
    Differ main(a.graph, b.graph, "", options, diff);
    main.run(true);
    functions(a, b, options, diff);
    model_facts(a, b, diff);
    main.properties("metadata: ", a.metadata, b.metadata);
    return diff;
}

}  // namespace trocar
