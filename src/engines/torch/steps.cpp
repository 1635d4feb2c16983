#include "engines/torch/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "trocar/error.h"

namespace trocar::libtorch {

namespace {

std::shared_ptr<Graph> body_of(const Op& op, const char* name) {
    const auto* attribute = op.attribute(name);
    const auto* graph =
        attribute == nullptr ? nullptr : std::get_if<std::shared_ptr<Graph>>(&attribute->value);
    return graph == nullptr ? nullptr : *graph;
}

// Two numbers as Python compares them.
std::optional<bool> comparison(const std::string& type, const std::vector<std::int64_t>& n) {
    if (n.size() != 2) {
        return std::nullopt;
    }
    if (type == "eq") {
        return n[0] == n[1];
    }
    if (type == "ne") {
        return n[0] != n[1];
    }
    if (type == "lt") {
        return n[0] < n[1];
    }
    if (type == "le") {
        return n[0] <= n[1];
    }
    if (type == "gt") {
        return n[0] > n[1];
    }
    if (type == "ge") {
        return n[0] >= n[1];
    }
    return std::nullopt;
}

// With two numbers, or one; nothing where the result does not fit.
std::optional<std::int64_t> arithmetic(const std::string& type,
                                       const std::vector<std::int64_t>& n) {
    std::int64_t made = 0;
    if (n.size() == 1) {
        const bool fits = type == "neg" && !__builtin_sub_overflow(std::int64_t{0}, n[0], &made);
        return fits ? std::optional(made) : std::nullopt;
    }
    if (n.size() != 2) {
        return std::nullopt;
    }
    if (type == "add") {
        return __builtin_add_overflow(n[0], n[1], &made) ? std::nullopt : std::optional(made);
    }
    if (type == "sub") {
        return __builtin_sub_overflow(n[0], n[1], &made) ? std::nullopt : std::optional(made);
    }
    if (type == "mul") {
        return __builtin_mul_overflow(n[0], n[1], &made) ? std::nullopt : std::optional(made);
    }
    const bool divides =
        n[1] != 0 && (n[1] != -1 || n[0] != std::numeric_limits<std::int64_t>::min());
    if (!divides || (type != "floordiv" && type != "mod")) {
        return std::nullopt;
    }
    // Rounded down, as Python does.
    const bool less = n[0] % n[1] != 0 && (n[0] < 0) != (n[1] < 0);
    if (type == "floordiv") {
        return n[0] / n[1] - (less ? 1 : 0);
    }
    return n[0] % n[1] + (less ? n[1] : 0);
}

}  // namespace

Steps::Steps(const Exchange& exchange, const Graph& graph, bool is_body)
    : exchange_(exchange), is_body_(is_body) {
    inputs_.assign(graph.inputs().begin(), graph.inputs().end());
    outputs_.assign(graph.outputs().begin(), graph.outputs().end());
    for (const auto id : graph.ops()) {
        add(graph, id);
    }
    for (const auto id : graph.tensors()) {
        if (graph.tensor(id).constant) {
            constants_.emplace_back(id, Value::of(*graph.tensor(id).constant));
        }
    }
    find_last_uses(graph);
}

void Steps::add(const Graph& graph, OpId id) {
    const auto& op = graph.op(id);
    Step step;
    step.type = op.type;
    step.what = fmt::format("run {} '{}'", op.type, op.name);
    step.inputs = op.inputs;
    step.outputs = op.outputs;
    const auto* const only = op.outputs.size() == 1 && op.outputs[0] != TensorId::none
                                 ? &graph.tensor(op.outputs[0]).type
                                 : nullptr;
    step.whole =
        only != nullptr && op.attribute("outputs") == nullptr && only->kind != Type::Kind::tensor;
    step.numbers = only != nullptr && only->kind == Type::Kind::tensor;
    if (!add_special(graph, op, step)) {
        const auto full = fmt::format("{}::{}", op.domain.empty() ? "aten" : op.domain, op.type);
        const auto& bridge = exchange_.bridge();
        step.op = bridge.find(full.c_str(), op.overload == "default" ? "" : op.overload.c_str());
        if (step.op != nullptr) {
            changes_ = changes_ || bridge.changes_arguments(step.op);
            step.arguments = arguments_of(op, bridge, step.op);
        } else {
            step.kind = Kind::missing;
            step.text = fmt::format("PyTorch has no op {}{}{}", full,
                                    op.overload.empty() ? "" : ".", op.overload);
            if (!is_body_) {
                throw Error(Fault::unsupported, step.text);
            }
        }
    }
    steps_.push_back(std::move(step));
}

// Ops that are no operators of PyTorch.
bool Steps::add_special(const Graph& graph, const Op& op, Step& step) {
    const auto is = [&](const char* domain, const char* type) {
        return op.domain == domain && op.type == type;
    };
    if (op.domain == "_operator") {
        step.kind = Kind::arithmetic;
        step.arguments = arguments_of(op, exchange_.bridge(), nullptr);
        // "a" before "b", whichever of them is a number in the file.
        std::sort(step.arguments.begin(), step.arguments.end(),
                  [](const Argument& a, const Argument& b) { return a.name < b.name; });
    } else if (is("prim", "If")) {
        step.kind = Kind::choice;
        add_bodies(graph, op, step, {"then_branch", "else_branch"});
    } else if (is("higher_order", "cond")) {
        step.kind = Kind::choice;
        add_bodies(graph, op, step, {"true_fn", "false_fn"});
    } else if (is("prim", "Loop")) {
        step.kind = Kind::loop;
        add_bodies(graph, op, step, {"body"});
    } else if (is("higher_order", "while_loop")) {
        step.kind = Kind::repeat;
        add_bodies(graph, op, step, {"cond_fn", "body_fn"});
    } else if (is("prim", "ListConstruct")) {
        step.kind = Kind::list;
    } else if (is("prim", "ListUnpack")) {
        step.kind = Kind::unpack;
    } else if (is("prim", "unchecked_cast")) {
        step.kind = Kind::pass;
    } else if (is("prim", "Uninitialized")) {
        step.kind = Kind::nothing;
    } else if (is("prim", "RaiseException")) {
        step.kind = Kind::raise;
        const auto* said = op.attribute("msg");
        const auto* text = said != nullptr ? std::get_if<std::string>(&said->value) : nullptr;
        step.text = text != nullptr ? *text : "";
    } else {
        return false;
    }
    return true;
}

void Steps::add_bodies(const Graph& graph, const Op& op, Step& step,
                       const std::vector<const char*>& names) {
    for (const auto* name : names) {
        const auto inner = body_of(op, name);
        if (inner == nullptr) {
            throw Error(Fault::unsupported,
                        fmt::format("{} '{}' has no body '{}'", op.type, op.name, name));
        }
        Body body;
        body.steps = std::make_unique<Steps>(exchange_, *inner, true);
        changes_ = changes_ || body.steps->changes();
        for (const auto id : inner->captured()) {
            if (const auto outer = graph.find_tensor(inner->tensor(id).name)) {
                body.captures.emplace_back(*outer, id);
            }
        }
        step.bodies.push_back(std::move(body));
    }
}

void Steps::find_last_uses(const Graph& graph) {
    std::map<TensorId, std::size_t> last;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
        for (const auto id : steps_[i].inputs) {
            last[id] = i;
        }
        for (const auto id : steps_[i].outputs) {
            last[id] = i;
        }
        for (const auto& body : steps_[i].bodies) {
            for (const auto& [outer, inner] : body.captures) {
                last[outer] = i;
            }
        }
    }
    for (const auto& [id, step] : last) {
        if (id != TensorId::none && !graph.tensor(id).is_output) {
            steps_[step].last_use.push_back(id);
        }
    }
}

std::vector<Held> Steps::run(const std::vector<Held>& inputs, Values values, bool copy) const {
    for (const auto& [id, value] : constants_) {
        values[id] = exchange_.give(value, copy);
    }
    if (inputs.size() != inputs_.size()) {
        throw Error(Fault::engine, fmt::format("a body takes {} values where {} are given",
                                               inputs_.size(), inputs.size()));
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i]) {  // else: its default
            values[inputs_[i]] = inputs[i];
        }
    }
    for (const auto& step : steps_) {
        run(step, values, copy);
        for (const auto id : step.last_use) {
            values.erase(id);
        }
    }
    std::vector<Held> outputs;
    for (const auto id : outputs_) {
        outputs.push_back(values.at(id));
    }
    return outputs;
}

void Steps::run(const Step& step, Values& values, bool copy) const {
    const auto results = results_of(step, values, copy);
    if (results.size() < step.outputs.size()) {
        throw Error(Fault::engine, fmt::format("PyTorch gave {} results where {} gives {}",
                                               results.size(), step.what, step.outputs.size()));
    }
    for (std::size_t i = 0; i < step.outputs.size(); ++i) {
        if (step.outputs[i] != TensorId::none) {
            values[step.outputs[i]] = results[i];
        }
    }
}

std::vector<Held> Steps::given(const Step& step, const Values& values, std::size_t from) const {
    std::vector<Held> all;
    for (auto i = from; i < step.inputs.size(); ++i) {
        all.push_back(step.inputs[i] == TensorId::none ? exchange_.nothing()
                                                       : values.at(step.inputs[i]));
    }
    return all;
}

std::vector<Held> Steps::results_of(const Step& step, Values& values, bool copy) const {
    switch (step.kind) {
        case Kind::call:
            return call(step, values);
        case Kind::arithmetic:
            return calculate(step, values);
        case Kind::list:
            return {exchange_.list(given(step, values), !step.numbers)};
        case Kind::unpack:
            return exchange_.items(values.at(step.inputs.at(0)), step.what);
        case Kind::pass:
            return {values.at(step.inputs.at(0))};
        case Kind::nothing:
            return {exchange_.nothing()};
        case Kind::raise:
            throw Error(Fault::engine, fmt::format("the model raises an error: {}", step.text));
        case Kind::missing:
            throw Error(Fault::unsupported, step.text);
        case Kind::choice:
            return choose(step, values, copy);
        case Kind::loop:
            return loop(step, values, copy);
        case Kind::repeat:
            return repeat(step, values, copy);
    }
    return {};
}

std::vector<Held> Steps::call(const Step& step, const Values& values) const {
    std::vector<BridgeArgument> arguments;
    std::vector<std::vector<const BridgeValue*>> lists(step.arguments.size());
    for (std::size_t i = 0; i < step.arguments.size(); ++i) {
        const auto& from = step.arguments[i];
        BridgeArgument made;
        made.name = from.name.c_str();
        for (const auto& input : from.inputs) {
            lists[i].push_back(input ? values.at(step.inputs[*input]).get() : nullptr);
        }
        made.values = lists[i].empty() ? nullptr : lists[i].data();
        made.integers = from.integers.empty() ? nullptr : from.integers.data();
        made.numbers = from.numbers.empty() ? nullptr : from.numbers.data();
        made.text = from.is_text ? from.text.c_str() : nullptr;
        made.count = std::max({from.inputs.size(), from.integers.size(), from.numbers.size()});
        arguments.push_back(made);
    }
    std::vector<Held> results;
    auto take = [&](BridgeValue* value) { results.push_back(exchange_.keep(value)); };
    const bool done = exchange_.bridge().call(
        step.op, arguments.data(), arguments.size(),
        [](void* into, BridgeValue* value) { (*static_cast<decltype(take)*>(into))(value); },
        &take);
    if (!done) {
        exchange_.fail(step.what);
    }
    if (step.whole) {
        return results;
    }
    std::vector<Held> flat;
    for (const auto& result : results) {
        if (exchange_.bridge().kind(result.get()) == BridgeKind::tensors) {
            const auto items = exchange_.items(result, step.what);
            flat.insert(flat.end(), items.begin(), items.end());
        } else {
            flat.push_back(result);
        }
    }
    return flat;
}

// Sizes are computed with by Python itself.
std::vector<Held> Steps::calculate(const Step& step, const Values& values) const {
    std::vector<std::int64_t> numbers;
    for (const auto& argument : step.arguments) {
        const auto count = std::max(argument.inputs.size(), argument.integers.size());
        for (std::size_t i = 0; i < count; ++i) {
            if (i < argument.inputs.size() && argument.inputs[i]) {
                numbers.push_back(
                    exchange_.whole(values.at(step.inputs[*argument.inputs[i]]), "a size"));
            } else if (i < argument.integers.size()) {
                numbers.push_back(argument.integers[i]);
            }
        }
    }
    if (const auto truth = comparison(step.type, numbers)) {
        return {exchange_.truth(*truth)};
    }
    if (step.type == "truediv" && numbers.size() == 2 && numbers[1] != 0) {
        return {exchange_.real(static_cast<double>(numbers[0]) / static_cast<double>(numbers[1]))};
    }
    if (const auto result = arithmetic(step.type, numbers)) {
        return {exchange_.integer(*result)};
    }
    throw Error(Fault::unsupported,
                fmt::format("could not {}: Python's '{}' is not known here", step.what, step.type));
}

std::vector<Held> Steps::enter(const Body& body, const std::vector<Held>& inputs,
                               const Values& values, bool copy) const {
    Values inside;
    for (const auto& [outer, inner] : body.captures) {
        inside[inner] = values.at(outer);
    }
    return body.steps->run(inputs, std::move(inside), copy);
}

std::vector<Held> Steps::choose(const Step& step, const Values& values, bool copy) const {
    const bool first = exchange_.whole(values.at(step.inputs.at(0)), "a condition") != 0;
    return enter(step.bodies[first ? 0 : 1], given(step, values, 1), values, copy);
}

// It reads the number of rounds at most, whether to begin, and what it carries.
std::vector<Held> Steps::loop(const Step& step, const Values& values, bool copy) const {
    const auto most = exchange_.whole(values.at(step.inputs.at(0)), "a number of rounds");
    bool goes_on = exchange_.whole(values.at(step.inputs.at(1)), "a condition") != 0;
    auto carried = given(step, values, 2);
    for (std::int64_t round = 0; goes_on && round < most; ++round) {
        carried.insert(carried.begin(), exchange_.integer(round));
        carried = enter(step.bodies[0], carried, values, copy);
        goes_on = exchange_.whole(carried.at(0), "a condition") != 0;
        carried.erase(carried.begin());
    }
    return carried;
}

// Inputs that it does not carry are the last ones.
std::vector<Held> Steps::repeat(const Step& step, const Values& values, bool copy) const {
    auto state = given(step, values);
    const auto goes_on = [&] {
        const auto made = enter(step.bodies[0], state, values, copy);
        return exchange_.whole(made.at(0), "a condition") != 0;
    };
    while (goes_on()) {
        const auto next = enter(step.bodies[1], state, values, copy);
        std::copy_n(next.begin(), std::min(next.size(), state.size()), state.begin());
    }
    state.resize(step.outputs.size());
    return state;
}

}  // namespace trocar::libtorch
