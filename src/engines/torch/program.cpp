#include "engines/torch/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>

#include "trocar/error.h"
#include "util/elements.h"
#include "util/text.h"

namespace trocar::libtorch {

namespace {

constexpr std::array types{
    std::pair{DType::u8, 0},    std::pair{DType::i8, 1},       std::pair{DType::i16, 2},
    std::pair{DType::i32, 3},   std::pair{DType::i64, 4},      std::pair{DType::f16, 5},
    std::pair{DType::f32, 6},   std::pair{DType::f64, 7},      std::pair{DType::c64, 9},
    std::pair{DType::c128, 10}, std::pair{DType::boolean, 11}, std::pair{DType::bf16, 15},
    std::pair{DType::u16, 27},  std::pair{DType::u32, 28},     std::pair{DType::u64, 29},
};

int number_of(DType dtype) {
    for (const auto& [ours, theirs] : types) {
        if (ours == dtype) {
            return theirs;
        }
    }
    throw Error(Fault::unsupported, fmt::format("PyTorch takes no tensors of {}", name(dtype)));
}
DType dtype_of(int number) {
    for (const auto& [ours, theirs] : types) {
        if (theirs == number) {
            return ours;
        }
    }
    throw Error(Fault::unsupported, fmt::format("PyTorch gives a tensor of its type {}", number));
}

using Held = std::shared_ptr<BridgeValue>;

// An argument of an op: what the graph says of it, and where what it does not say comes from.
struct Argument {
    std::string name;
    std::vector<std::int64_t> integers;
    std::vector<double> numbers;
    std::string text;
    // Of each element, the input it is; nothing: a number of these, or None.
    std::vector<std::optional<std::size_t>> inputs;
    bool is_text = false;
};

// "size[0]" → "size"; whether it is an element of a list.
std::pair<std::string, bool> argument_name(const std::string& text) {
    const auto at = text.find('[');
    return {text.substr(0, at), at != std::string::npos};
}

struct Step {
    const BridgeOp* op = nullptr;
    std::string what;  // for messages
    std::vector<TensorId> inputs;
    std::vector<TensorId> outputs;
    std::vector<Argument> arguments;
    std::string arithmetic;          // of numbers, in Python's words; else `op`
    std::vector<TensorId> last_use;  // tensors that nobody reads afterwards
};

class TorchProgram final : public Program {
public:
    TorchProgram(const Bridge& bridge, const Model& model) : bridge_(bridge) {
        const auto& graph = model.graph;
        for (const auto id : graph.inputs()) {
            if (!graph.tensor(id).constant) {
                input_ids_.push_back(id);
                input_names_.push_back(graph.tensor(id).name);
            }
        }
        for (const auto id : graph.outputs()) {
            output_ids_.push_back(id);
            output_names_.push_back(graph.tensor(id).name);
        }
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

    std::span<const std::string> input_names() const override { return input_names_; }
    std::span<const std::string> output_names() const override { return output_names_; }

    void run(std::span<const Value> inputs, std::span<Value> outputs) override {
        if (inputs.size() != input_ids_.size() || outputs.size() != output_ids_.size()) {
            throw Error(
                Fault::usage,
                fmt::format("the program takes {} inputs and gives {} outputs, not {} and {}",
                            input_ids_.size(), output_ids_.size(), inputs.size(), outputs.size()));
        }
        std::map<TensorId, Held> values;
        for (const auto& [id, value] : constants_) {
            values[id] = held(value, changes_);
        }
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            values[input_ids_[i]] = held(inputs[i], changes_);
        }
        for (const auto& step : steps_) {
            run(step, values);
            for (const auto id : step.last_use) {
                values.erase(id);
            }
        }
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            outputs[i] = read(values.at(output_ids_[i]), output_names_[i]);
        }
    }

private:
    [[noreturn]] void fail(const std::string& what) const {
        throw Error(Fault::engine,
                    fmt::format("PyTorch could not {}: {}", what, single_line(bridge_.why())));
    }
    // The first line says it.
    static std::string single_line(const std::string& text) {
        return text.substr(0, text.find('\n'));
    }

    void add(const Graph& graph, OpId id) {
        const auto& op = graph.op(id);
        Step step;
        step.what = fmt::format("run {} '{}'", op.type, op.name);
        step.inputs = op.inputs;
        step.outputs = op.outputs;
        if (op.domain == "_operator") {
            step.arithmetic = op.type;
        } else {
            const auto full =
                fmt::format("{}::{}", op.domain.empty() ? "aten" : op.domain, op.type);
            step.op =
                bridge_.find(full.c_str(), op.overload == "default" ? "" : op.overload.c_str());
            if (step.op == nullptr) {
                throw Error(Fault::unsupported,
                            fmt::format("PyTorch has no op {}{}{}", full,
                                        op.overload.empty() ? "" : ".", op.overload));
            }
            changes_ = changes_ || bridge_.changes_arguments(step.op);
        }
        step.arguments = arguments_of(op);
        steps_.push_back(std::move(step));
    }

    static std::vector<Argument> arguments_of(const Op& op) {
        std::vector<Argument> all;
        const auto find = [&](const std::string& name) -> Argument& {
            const auto at = std::find_if(all.begin(), all.end(),
                                         [&](const Argument& one) { return one.name == name; });
            if (at != all.end()) {
                return *at;
            }
            all.push_back({});
            all.back().name = name;
            return all.back();
        };
        const auto* const named = op.attribute("inputs");
        const auto* const names =
            named != nullptr ? std::get_if<std::vector<std::string>>(&named->value) : nullptr;
        if (names == nullptr ? !op.inputs.empty() : names->size() != op.inputs.size()) {
            throw Error(Fault::unsupported,
                        fmt::format("{} '{}' does not say which arguments its inputs are", op.type,
                                    op.name));
        }
        std::map<std::string, std::vector<std::size_t>> computed;  // elements, by argument
        for (std::size_t i = 0; i < op.inputs.size(); ++i) {
            computed[argument_name((*names)[i]).first].push_back(i);
        }
        for (const auto& attribute : op.attributes) {
            if (attribute.name == "inputs" || attribute.name == "outputs") {
                continue;
            }
            auto& made = find(attribute.name);
            std::size_t next = 0;
            const auto& elements = computed[attribute.name];
            if (const auto* texts = std::get_if<std::vector<std::string>>(&attribute.value)) {
                // Numbers, and "*" for each that is computed.
                for (const auto& text : *texts) {
                    std::int64_t number = 0;
                    std::from_chars(text.data(), text.data() + text.size(), number);
                    made.integers.push_back(number);
                    made.inputs.push_back(text == "*" && next < elements.size()
                                              ? std::optional(elements[next++])
                                              : std::nullopt);
                }
            } else {
                plain(attribute, made);
            }
        }
        for (const auto& [name, elements] : computed) {
            if (elements.empty()) {
                continue;
            }
            auto& made = find(name);
            if (made.inputs.empty() && made.integers.empty()) {
                for (const auto element : elements) {
                    const bool none = op.inputs[element] == TensorId::none;
                    made.inputs.push_back(none ? std::nullopt : std::optional(element));
                }
                // An optional tensor that is None is left out.
                const bool list = argument_name((*names)[elements[0]]).second;
                if (!list && !made.inputs[0]) {
                    all.erase(all.begin() + (&made - all.data()));
                }
            }
        }
        return all;
    }

    static void plain(const Attribute& attribute, Argument& made) {
        if (const auto* integer = std::get_if<std::int64_t>(&attribute.value)) {
            made.integers = {*integer};
        } else if (const auto* number = std::get_if<float>(&attribute.value)) {
            made.numbers = {static_cast<double>(*number)};
        } else if (const auto* all = std::get_if<std::vector<std::int64_t>>(&attribute.value)) {
            made.integers = *all;
        } else if (const auto* reals = std::get_if<std::vector<float>>(&attribute.value)) {
            made.numbers.assign(reals->begin(), reals->end());
        } else if (const auto* constant = std::get_if<Constant>(&attribute.value)) {
            made.numbers = numbers_of(*constant);
        } else if (const auto* text = std::get_if<std::string>(&attribute.value)) {
            made.text = *text;
            made.is_text = true;
        } else {
            throw Error(Fault::unsupported,
                        fmt::format("PyTorch is not given arguments like '{}'", attribute.name));
        }
    }

    void find_last_uses(const Graph& graph) {
        std::map<TensorId, std::size_t> last;
        for (std::size_t i = 0; i < steps_.size(); ++i) {
            for (const auto id : steps_[i].inputs) {
                last[id] = i;
            }
            for (const auto id : steps_[i].outputs) {
                last[id] = i;
            }
        }
        for (const auto& [id, step] : last) {
            if (id != TensorId::none && !graph.tensor(id).is_output) {
                steps_[step].last_use.push_back(id);
            }
        }
    }

    Held keep(BridgeValue* value) const {
        return {value, [release = bridge_.release](BridgeValue* one) { release(one); }};
    }

    // A view of the numbers, which must outlive it, or a copy.
    Held held(const Value& value, bool copy) const {
        if (!value.is_tensor() || bits(value.dtype()) < 8) {
            throw Error(Fault::unsupported, "PyTorch is given tensors of numbers only");
        }
        BridgeTensor tensor;
        tensor.scalar_type = number_of(value.dtype());
        const auto shape = value.shape();
        if (shape.size() > most_dimensions) {
            throw Error(Fault::unsupported, "a tensor has too many dimensions for PyTorch");
        }
        tensor.rank = static_cast<int>(shape.size());
        std::copy(shape.begin(), shape.end(), tensor.sizes);
        tensor.data = value.bytes().data();
        tensor.bytes = value.bytes().size();
        auto* const made = bridge_.tensor(&tensor, copy);
        if (made == nullptr) {
            fail("take a tensor");
        }
        return keep(made);
    }

    Value read(const Held& value, const std::string& name) const {
        BridgeTensor tensor;
        const auto owner = keep(bridge_.read(value.get(), &tensor));
        if (!owner) {
            fail(fmt::format("give '{}'", name));
        }
        const Shape shape(tensor.sizes, tensor.sizes + tensor.rank);
        const Bytes bytes(static_cast<const std::byte*>(tensor.data), tensor.bytes);
        // What it made itself is lent, what it was lent is copied.
        return changes_ ? Value::borrow(dtype_of(tensor.scalar_type), shape, bytes, owner)
                        : Value::copy(dtype_of(tensor.scalar_type), shape, bytes);
    }

    void run(const Step& step, std::map<TensorId, Held>& values) const {
        if (!step.arithmetic.empty()) {
            calculate(step, values);
            return;
        }
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
        auto take = [&](BridgeValue* value) { results.push_back(keep(value)); };
        const bool done = bridge_.call(
            step.op, arguments.data(), arguments.size(),
            [](void* into, BridgeValue* value) { (*static_cast<decltype(take)*>(into))(value); },
            &take);
        if (!done) {
            fail(step.what);
        }
        for (std::size_t i = 0; i < step.outputs.size() && i < results.size(); ++i) {
            if (step.outputs[i] != TensorId::none) {
                values[step.outputs[i]] = results[i];
            }
        }
        if (results.size() < step.outputs.size()) {
            throw Error(Fault::engine, fmt::format("PyTorch gave {} results where {} gives {}",
                                                   results.size(), step.what, step.outputs.size()));
        }
    }

    // Sizes are computed with by Python itself.
    void calculate(const Step& step, std::map<TensorId, Held>& values) const {
        std::vector<std::int64_t> given;
        for (const auto& argument : step.arguments) {
            for (std::size_t i = 0; i < std::max(argument.inputs.size(), argument.integers.size());
                 ++i) {
                if (i < argument.inputs.size() && argument.inputs[i]) {
                    const auto value = read(values.at(step.inputs[*argument.inputs[i]]), "a size");
                    double number = 0;
                    decode(value.dtype(), value.bytes(), 0, std::span(&number, 1));
                    given.push_back(static_cast<std::int64_t>(number));
                } else if (i < argument.integers.size()) {
                    given.push_back(argument.integers[i]);
                }
            }
        }
        const auto result = arithmetic(step.arithmetic, given);
        if (!result) {
            throw Error(Fault::unsupported,
                        fmt::format("could not {}: Python's '{}' is not known here", step.what,
                                    step.arithmetic));
        }
        values[step.outputs.at(0)] =
            held(Value::copy(DType::i64, {}, std::as_bytes(std::span(&*result, 1))), true);
    }

    static std::optional<std::int64_t> arithmetic(const std::string& type,
                                                  const std::vector<std::int64_t>& n) {
        if (n.size() == 1) {
            return type == "neg" ? std::optional(-n[0]) : std::nullopt;
        }
        if (n.size() != 2) {
            return std::nullopt;
        }
        const auto rounded_down = [&] {
            const auto quotient = n[0] / n[1];
            return quotient - (n[0] % n[1] != 0 && (n[0] < 0) != (n[1] < 0) ? 1 : 0);
        };
        if (type == "add")
            return n[0] + n[1];
        if (type == "sub")
            return n[0] - n[1];
        if (type == "mul")
            return n[0] * n[1];
        if (type == "eq")
            return n[0] == n[1];
        if (type == "ne")
            return n[0] != n[1];
        if (type == "lt")
            return n[0] < n[1];
        if (type == "le")
            return n[0] <= n[1];
        if (type == "gt")
            return n[0] > n[1];
        if (type == "ge")
            return n[0] >= n[1];
        if (type == "floordiv" && n[1] != 0)
            return rounded_down();
        if (type == "mod" && n[1] != 0)
            return n[0] - rounded_down() * n[1];
        return std::nullopt;
    }

    const Bridge& bridge_;
    bool changes_ = false;  // an op writes into its arguments
    std::vector<TensorId> input_ids_;
    std::vector<TensorId> output_ids_;
    std::vector<std::string> input_names_;
    std::vector<std::string> output_names_;
    std::vector<std::pair<TensorId, Value>> constants_;
    std::vector<Step> steps_;
};

}  // namespace

std::unique_ptr<Program> compile_program(const Bridge& bridge, const Model& model) {
    if (model.dialect != "aten") {
        throw Error(
            Fault::unsupported,
            fmt::format("PyTorch takes models of the dialect 'aten', not '{}'", model.dialect));
    }
    return std::make_unique<TorchProgram>(bridge, model);
}

}  // namespace trocar::libtorch
