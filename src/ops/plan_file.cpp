#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <map>
#include <sstream>

#include "trocar/error.h"
#include "trocar/op_plan.h"
#include "trocar/random.h"
#include "util/text.h"
#include "util/yaml.h"

namespace trocar {

namespace {

using yaml::Field;
namespace fs = std::filesystem;

constexpr std::size_t most_operators = 20000;
constexpr std::uint64_t largest_tensor = std::uint64_t{1} << 32U;

using Variables = std::map<std::string, std::int64_t>;

std::int64_t whole_number(const Field& field, std::string_view text, const Variables& variables) {
    const auto word = trim(text);
    if (word.starts_with('$')) {
        const auto at = variables.find(std::string(word.substr(1)));
        if (at == variables.end()) {
            field.fail(fmt::format("'{}' is no variable of this sweep", word),
                       "variables are listed under 'vary'");
        }
        return at->second;
    }
    std::int64_t number = 0;
    const auto read = std::from_chars(word.data(), word.data() + word.size(), number);
    if (word.empty() || read.ec != std::errc{} || read.ptr != word.data() + word.size()) {
        field.fail(fmt::format("'{}' is no whole number and no $variable", word));
    }
    return number;
}

// "16", or {from: 7, to: 56, step: 7}.
std::vector<std::int64_t> range(const Field& field) {
    std::vector<std::int64_t> all;
    if (!field.is_map()) {
        for (const auto& item : field.items()) {
            all.push_back(static_cast<std::int64_t>(item.natural()));
        }
        return all;
    }
    std::int64_t from = 0;
    std::int64_t to = -1;
    std::int64_t step = 1;
    const auto number = [](std::int64_t& into) {
        return
            [&into](const Field& f) { into = static_cast<std::int64_t>(f.natural(0, 1U << 30U)); };
    };
    field.read({{"from", number(from)}, {"to", number(to)}, {"step", number(step)}});
    if (step < 1 || to < from || (to - from) / step > 10000) {
        field.fail("a range goes from a number to a larger one, in at most 10,000 steps");
    }
    for (auto at = from; at <= to; at += step) {
        all.push_back(at);
    }
    return all;
}

// A tensor that an operator reads: "f32 1x$cx$hwx$hw", "weight f32 64x$cx3x3", "i64 = 1 -1".
struct Operand {
    bool stored = false;
    std::vector<std::int64_t> values;  // where they are given
    DType dtype = DType::f32;
    Shape shape;
};
Operand operand(const Field& field, const Variables& variables) {
    auto words = split(std::string(trim(field.text())), ' ');
    Operand one;
    if (!words.empty() && words[0] == "weight") {
        one.stored = true;
        words.erase(words.begin());
    }
    const bool given = words.size() > 2 && words[0] == "i64" && words[1] == "=";
    if (given) {
        one.stored = true;
        one.dtype = DType::i64;
        for (std::size_t i = 2; i < words.size(); ++i) {
            one.values.push_back(whole_number(field, words[i], variables));
        }
        one.shape = {static_cast<std::int64_t>(one.values.size())};
        return one;
    }
    if (words.empty() || words.size() > 2) {
        field.fail(fmt::format("'{}' is no tensor", field.text()), "as in 'f32 1x3x224x224'");
    }
    const auto dtype = parse_dtype(words[0]);
    if (!dtype) {
        field.fail(fmt::format("'{}' is no type of elements", words[0]), "f32, i8, f16…");
    }
    one.dtype = *dtype;
    if (words.size() == 2) {
        // Sizes stand between x's; a variable's name holds none.
        for (const auto& part : split(words[1], 'x')) {
            one.shape.push_back(whole_number(field, part, variables));
        }
    }
    std::uint64_t elements = 1;
    for (const auto size : one.shape) {
        if (size < 0 ||
            (size > 0 && elements > largest_tensor / static_cast<std::uint64_t>(size))) {
            field.fail(fmt::format("'{}' is too large a tensor", field.text()));
        }
        elements *= static_cast<std::uint64_t>(size);
    }
    return one;
}

Constant random_weight(const Operand& operand, std::uint64_t key) {
    if (!operand.values.empty()) {
        return Constant::of(DType::i64, operand.shape, operand.values);
    }
    if (operand.dtype != DType::f32) {
        std::vector<std::byte> bytes(byte_size(operand.dtype, element_count(operand.shape)));
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            bytes[i] = static_cast<std::byte>(philox(key, 1, i)[0] & 0x37U);
        }
        return Constant::copy(operand.dtype, operand.shape, bytes);
    }
    std::vector<float> values(element_count(operand.shape));
    for (std::size_t i = 0; i < values.size(); i += 4) {
        const auto words = philox(key, 0, i / 4);
        for (std::size_t k = 0; k < 4 && i + k < values.size(); ++k) {
            values[i + k] = (unit_float(words[k]) - 0.5F) * 0.2F;
        }
    }
    return Constant::of(DType::f32, operand.shape, values);
}

Attribute attribute(const Field& field, const std::string& name, const Variables& variables) {
    Attribute made;
    made.name = name;
    const auto is_whole = [](const std::string& text) {
        return !text.empty() &&
               (text[0] == '$' || text.find_first_not_of("-0123456789") == std::string::npos);
    };
    if (field.is_list()) {
        std::vector<std::int64_t> numbers;
        for (const auto& item : field.items()) {
            numbers.push_back(whole_number(item, item.text(), variables));
        }
        made.value = std::move(numbers);
        return made;
    }
    const auto text = field.text();
    if (is_whole(text)) {
        made.value = whole_number(field, text, variables);
        return made;
    }
    char* end = nullptr;
    const auto number = std::strtof(text.c_str(), &end);
    if (end == text.c_str() + text.size()) {
        made.value = number;
    } else {
        made.value = text;
    }
    return made;
}

class Sweeper {
public:
    explicit Sweeper(OpPlan& plan) : plan_(plan) {}

    void add(const Field& field) {
        std::string type;
        std::string domain;
        std::uint64_t outputs = 1;
        std::vector<std::pair<std::string, std::vector<std::int64_t>>> vary;
        std::optional<Field> inputs;
        std::optional<Field> attributes;
        field.read({{"type", [&](const Field& f) { type = f.text(); }},
                    {"domain", [&](const Field& f) { domain = f.text(); }},
                    {"outputs", [&](const Field& f) { outputs = f.natural(1, 16); }},
                    {"vary",
                     [&](const Field& f) {
                         for (const auto& [name, value] : f.entries()) {
                             if (name.find('x') != std::string::npos) {
                                 value.fail(
                                     "a variable's name has no 'x' in it: sizes are parted "
                                     "by them");
                             }
                             vary.emplace_back(name, range(value));
                         }
                     }},
                    {"inputs", [&](const Field& f) { inputs = f; }},
                    {"attributes", [&](const Field& f) { attributes = f; }}});
        if (type.empty() || !inputs) {
            field.fail("an operator has a 'type' and 'inputs'");
        }
        Variables variables;
        each(vary, 0, variables, [&] {
            if (++plan_.swept > most_operators) {
                field.fail(fmt::format("more than {} operators", most_operators));
            }
            append(type, domain, outputs, *inputs, attributes, variables);
        });
    }

private:
    template <class F>
    void each(const std::vector<std::pair<std::string, std::vector<std::int64_t>>>& vary,
              std::size_t from, Variables& variables, const F& make) {
        if (from == vary.size()) {
            make();
            return;
        }
        for (const auto value : vary[from].second) {
            variables[vary[from].first] = value;
            each(vary, from + 1, variables, make);
        }
    }

    Model& model() {
        if (!plan_.sweep) {
            plan_.sweep.emplace();
            plan_.sweep->format = "onnx";
            plan_.sweep->dialect = "onnx";
            plan_.sweep->ir_version = 8;
            plan_.sweep->opsets = {{"", 17}, {"com.microsoft", 1}};
            plan_.sweep->graph.name = "sweep";
        }
        return *plan_.sweep;
    }

    void append(const std::string& type, const std::string& domain, std::uint64_t outputs,
                const Field& inputs, const std::optional<Field>& attributes,
                const Variables& variables) {
        auto& graph = model().graph;
        const auto number = plan_.swept;
        OpSpec spec;
        spec.type = type;
        spec.domain = domain;
        spec.name = fmt::format("{}_{}", type, number);
        DType first = DType::f32;
        for (const auto& item : inputs.items()) {
            const auto one = operand(item, variables);
            const auto slot = spec.inputs.size();
            first = slot == 0 ? one.dtype : first;
            const auto name = fmt::format("{}_in{}", spec.name, slot);
            spec.inputs.push_back(
                one.stored ? graph.add_constant(name, random_weight(one, number * 16 + slot))
                           : graph.add_input(name, Type::tensor(one.dtype, one.shape)));
        }
        if (attributes) {
            for (const auto& [name, value] : attributes->entries()) {
                spec.attributes.push_back(attribute(value, name, variables));
            }
        }
        auto all = std::vector<TensorId>(graph.outputs().begin(), graph.outputs().end());
        for (std::uint64_t i = 0; i < outputs; ++i) {
            spec.outputs.push_back(
                graph.add_tensor(fmt::format("{}_out{}", spec.name, i), Type::tensor(first)));
            all.push_back(spec.outputs.back());
        }
        graph.append(std::move(spec));
        graph.set_outputs(std::move(all));
    }

    OpPlan& plan_;
};

OpPlan::Entry model_entry(const Field& field, const fs::path& folder) {
    OpPlan::Entry entry;
    if (field.is_scalar()) {
        entry.path = field.text();
    } else {
        field.read({{"path", [&](const Field& f) { entry.path = f.text(); }},
                    {"shape", [&](const Field& f) { entry.shapes = f.texts(); }},
                    {"input", [&](const Field& f) { entry.inputs = f.texts(); }}});
    }
    if (entry.path.empty()) {
        field.fail("a model has a 'path'");
    }
    if (entry.path.is_relative()) {
        entry.path = folder / entry.path;
    }
    return entry;
}

}  // namespace

OpPlan parse_op_plan(const std::string& text, const std::string& file) {
    OpPlan plan;
    Sweeper sweeper(plan);
    const auto folder = fs::path(file).parent_path();
    const auto percent = [](const Field& f) { return f.number(0.01, 100); };
    yaml::parse(text, file)
        .read({{"models",
                [&](const Field& f) {
                    for (const auto& item : f.items()) {
                        plan.models.push_back(model_entry(item, folder));
                    }
                }},
               {"operators",
                [&](const Field& f) {
                    for (const auto& item : f.items()) {
                        sweeper.add(item);
                    }
                }},
               {"modes",
                [&](const Field& f) {
                    for (const auto& item : f.items()) {
                        plan.modes.push_back(
                            item.parsed([&] { return parse_cache_mode(item.text()); }));
                    }
                }},
               {"significant", [&](const Field& f) { plan.significant = f.texts(); }},
               {"half_width_percent", [&](const Field& f) { plan.half_width = percent(f) / 100; }},
               {"seconds_per_operator",
                [&](const Field& f) { plan.seconds_per_op = f.number(0.001, 86400); }},
               {"target_percent", [&](const Field& f) { plan.target = percent(f); }}});
    if (plan.models.empty() && !plan.sweep) {
        throw Error(Fault::input, fmt::format("{}: neither 'models' nor 'operators'", file));
    }
    return plan;
}

OpPlan read_op_plan(const fs::path& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file) {
        throw Error(Fault::input, fmt::format("cannot read '{}'", path.string()));
    }
    return parse_op_plan(text.str(), path.string());
}

}  // namespace trocar
