// Ops that run bodies.
#include <fmt/format.h>

#include <algorithm>

#include "engines/reference/machine.h"
#include "engines/reference/stack.h"

namespace trocar::reference {

namespace {

bool is_true(const Value& value) {
    require(value.is_tensor(), "the condition is no tensor");
    const auto all = read<std::int64_t>(value);
    require(all.size() == 1, "the condition is not one element");
    return all[0] != 0;
}

// Which of the op's bodies an attribute holds.
std::size_t body_index(const Call& call, std::string_view name) {
    std::size_t number = 0;
    for (const auto& attribute : call.op().attributes) {
        if (const auto* many = std::get_if<std::vector<std::shared_ptr<Graph>>>(&attribute.value)) {
            number += many->size();
        } else if (std::holds_alternative<std::shared_ptr<Graph>>(attribute.value)) {
            if (attribute.name == name) {
                return number;
            }
            ++number;
        }
    }
    fail(fmt::format("there is no body '{}'", name));
}

Type output_type(const Call& call, std::size_t body, std::size_t output) {
    const auto& graph = *call.step().bodies.at(body)->graph;
    return graph.tensor(graph.outputs()[output]).type;
}

// Outputs of rounds, kept within the bounds of one tensor.
class Collected {
public:
    void add(const Value& value) {
        total_ += std::max<std::size_t>(count(value.shape()), 1);
        require(total_ <= most_elements, "the rounds write more elements than the engine takes");
        items_.push_back(value);
    }
    std::vector<Value>& items() { return items_; }

private:
    std::vector<Value> items_;
    std::size_t total_ = 0;
};

void if_op(Call& call) {
    const auto body = body_index(call, is_true(call.tensor(0)) ? "then_branch" : "else_branch");
    const auto outputs = call.machine().run_body(call, body, {});
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        call.give(i, outputs[i]);
    }
}

void loop(Call& call) {
    const auto body = body_index(call, "body");
    const auto rounds = call.has(0) ? call.integer(std::size_t{0}) : INT64_MAX;
    bool going = !call.has(1) || is_true(call.value(1));
    std::vector<Value> state{Value{}, Value{}};
    for (std::size_t i = 2; i < call.input_count(); ++i) {
        state.push_back(call.value(i));
    }
    const auto carried = state.size() - 2;
    std::vector<Collected> collected(call.output_count() - std::min(call.output_count(), carried));
    for (std::int64_t round = 0; round < rounds && going; ++round) {
        state[0] = write<std::int64_t>(DType::i64, {}, Integers{round});
        state[1] = scalar(DType::boolean, 1);
        const auto outputs = call.machine().run_body(call, body, state);
        require(outputs.size() >= 1 + carried + collected.size(), "the body has too few outputs");
        going = is_true(outputs[0]);
        std::copy_n(outputs.begin() + 1, carried, state.begin() + 2);
        for (std::size_t i = 0; i < collected.size(); ++i) {
            collected[i].add(outputs[1 + carried + i]);
        }
    }
    for (std::size_t i = 0; i < carried; ++i) {
        call.give(i, state[2 + i]);
    }
    for (std::size_t i = 0; i < collected.size(); ++i) {
        if (call.wants(carried + i)) {
            call.give(carried + i,
                      stacked(collected[i].items(), 0, output_type(call, body, 1 + carried + i)));
        }
    }
}

// One slice of a tensor, the axis taken away.
Value sliced(const Value& value, std::size_t axis, std::int64_t at) {
    auto shape = value.shape();
    auto strides = strides_of(shape);
    const auto start = at * strides[axis];
    shape.erase(shape.begin() + to_integer(axis));
    strides.erase(strides.begin() + to_integer(axis));
    return take(value, shape, strided(shape, strides, start));
}

struct Scanned {
    Value value;
    std::size_t axis = 0;
    bool backwards = false;
    Value at(std::int64_t round, std::int64_t rounds) const {
        return sliced(value, axis, backwards ? rounds - 1 - round : round);
    }
};

// Runs the body once per place of the scanned axes; `state` becomes the last one.
std::vector<std::vector<Value>> scan_rounds(Call& call, std::size_t body, std::vector<Value>& state,
                                            const std::vector<Scanned>& scanned,
                                            std::size_t outputs) {
    std::int64_t rounds = scanned[0].value.shape()[scanned[0].axis];
    std::vector<Collected> collected(outputs);
    for (const auto& s : scanned) {
        require(s.value.shape()[s.axis] == rounds, "the scanned inputs differ in length");
    }
    for (std::int64_t round = 0; round < rounds; ++round) {
        auto inputs = state;
        for (const auto& s : scanned) {
            inputs.push_back(s.at(round, rounds));
        }
        const auto made = call.machine().run_body(call, body, inputs);
        require(made.size() == state.size() + outputs, "the body has another number of outputs");
        std::copy_n(made.begin(), state.size(), state.begin());
        for (std::size_t i = 0; i < outputs; ++i) {
            collected[i].add(made[state.size() + i]);
        }
    }
    std::vector<std::vector<Value>> all;
    for (auto& c : collected) {
        all.push_back(std::move(c.items()));
    }
    return all;
}

std::int64_t listed(const std::optional<Integers>& list, std::size_t i) {
    return list && i < list->size() ? (*list)[i] : 0;
}

void scan(Call& call) {
    require(call.opset() >= 9, "Scan of op set 8 is not known");
    const auto body = body_index(call, "body");
    const auto count_scanned = call.integer("num_scan_inputs", 0);
    require(count_scanned >= 1 && to_size(count_scanned) <= call.input_count(),
            "num_scan_inputs is out of range");
    const auto states = call.input_count() - to_size(count_scanned);
    require(call.output_count() >= states, "the op has too few outputs");
    std::vector<Value> state;
    for (std::size_t i = 0; i < states; ++i) {
        state.push_back(call.value(i));
    }
    const auto axes = call.integers("scan_input_axes");
    const auto directions = call.integers("scan_input_directions");
    std::vector<Scanned> scanned;
    for (std::size_t i = states; i < call.input_count(); ++i) {
        const auto& value = call.tensor(i);
        scanned.push_back({value, axis_of(listed(axes, i - states), value.shape().size()),
                           listed(directions, i - states) != 0});
    }
    const auto outputs = call.output_count() - states;
    auto collected = scan_rounds(call, body, state, scanned, outputs);
    for (std::size_t i = 0; i < states; ++i) {
        call.give(i, state[i]);
    }
    const auto out_axes = call.integers("scan_output_axes");
    const auto out_directions = call.integers("scan_output_directions");
    for (std::size_t i = 0; i < outputs; ++i) {
        if (listed(out_directions, i) != 0) {
            std::reverse(collected[i].begin(), collected[i].end());
        }
        if (call.wants(states + i)) {
            call.give(states + i, stacked(collected[i], listed(out_axes, i),
                                          output_type(call, body, states + i)));
        }
    }
}

// The body is run for each item of the first sequence, and of further ones in step.
void sequence_map(Call& call) {
    const auto body = body_index(call, "body");
    require(call.value(0).kind() == Value::Kind::sequence, "a sequence is wanted");
    std::vector<std::vector<Value>> results(call.output_count());
    const auto length = call.value(0).items().size();
    for (std::size_t at = 0; at < length; ++at) {
        std::vector<Value> inputs;
        for (std::size_t i = 0; i < call.input_count(); ++i) {
            const auto& value = call.value(i);
            if (value.kind() != Value::Kind::sequence) {
                inputs.push_back(value);
                continue;
            }
            const auto items = value.items();
            require(items.size() == length, "the sequences differ in length");
            inputs.push_back(items[at]);
        }
        const auto outputs = call.machine().run_body(call, body, inputs);
        require(outputs.size() >= results.size(), "the body has too few outputs");
        for (std::size_t i = 0; i < results.size(); ++i) {
            results[i].push_back(outputs[i]);
        }
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
        call.give(i, Value::sequence(results[i]));
    }
}

}  // namespace

std::span<const Entry> control_ops() {
    static constexpr Entry ops[]{
        {"If", if_op},
        {"Loop", loop},
        {"Scan", scan},
        {"SequenceMap", sequence_map},
    };
    return ops;
}

}  // namespace trocar::reference
