#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "mapping/evaluate.h"
#include "mapping/match.h"
#include "mapping/rule_files.h"
#include "trocar/difference.h"
#include "trocar/engine.h"
#include "trocar/error.h"
#include "trocar/mapping.h"
#include "trocar/random.h"
#include "util/elements.h"
#include "util/text.h"

namespace trocar {

namespace mapping {

namespace {

constexpr std::size_t most_cases = 256;
constexpr int count_of_rest = 2;  // tensors that stand for "xs..."

// One way to fill in a test: which alternative of each field.
struct Case {
    std::vector<std::size_t> picks;  // of each field
    std::string text;
};

std::size_t alternatives(const TestField& field) {
    return field.name.find('@') != std::string::npos
               ? field.values.size()
               : std::max<std::size_t>(1, field.shapes.size());
}

class CaseModel {
public:
    CaseModel(const RuleFile& file, const Rule& rule, const RuleTest& test, const Case& which,
              std::uint64_t seed)
        : file_(file), rule_(rule), test_(test), which_(which), seed_(seed) {}

    Model make() {
        model_.dialect = file_.from;
        if (file_.from == "onnx") {
            model_.opsets = {{"", 21}};
            model_.ir_version = 10;
        }
        auto& graph = model_.graph;
        graph.name = rule_.name;
        for (std::size_t i = 0; i < rule_.match.size(); ++i) {
            op(rule_.match[i]);
        }
        std::vector<TensorId> outputs;
        for (const auto output : graph.op(graph.last()).outputs) {
            outputs.push_back(output);
        }
        graph.set_outputs(outputs);
        return std::move(model_);
    }
    std::vector<NamedValue> take_inputs() { return std::move(inputs_); }

private:
    const TestField* field(const std::string& name, std::size_t* pick = nullptr) const {
        for (std::size_t i = 0; i < test_.fields.size(); ++i) {
            if (test_.fields[i].name == name) {
                if (pick != nullptr) {
                    *pick = which_.picks[i];
                }
                return &test_.fields[i];
            }
        }
        return nullptr;
    }
    [[noreturn]] void fail(int line, const std::string& sentence) const {
        throw Error(Fault::input, fmt::format("{}:{}: {}", file_.file, line, sentence));
    }

    void op(const MatchedOp& wanted) {
        OpSpec spec;
        set_type(spec, wanted.types[0], file_.from);
        DType dtype = DType::f32;
        for (const auto& place : wanted.inputs) {
            const auto* given = field(place.name);
            if (given == nullptr && !model_.graph.find_tensor(place.name)) {
                if (!place.optional && !place.rest) {
                    fail(test_.line, fmt::format("the test does not say what '{}' is", place.name));
                }
                spec.inputs.push_back(TensorId::none);
                continue;
            }
            for (int i = 0; i < (place.rest ? count_of_rest : 1); ++i) {
                const auto name = place.rest ? fmt::format("{}_{}", place.name, i) : place.name;
                const auto there = model_.graph.find_tensor(name);
                spec.inputs.push_back(there ? *there : input(*given, place.name, name));
            }
            if (spec.inputs.size() == 1) {
                dtype = model_.graph.tensor(spec.inputs[0]).type.dtype;
            }
        }
        while (!spec.inputs.empty() && spec.inputs.back() == TensorId::none) {
            spec.inputs.pop_back();
        }
        for (const auto& place : wanted.outputs) {
            outputs(place, dtype, spec);
        }
        attributes(wanted, spec);
        spec.name = wanted.outputs[0].name;
        model_.graph.append(std::move(spec));
    }

    void outputs(const MatchedOp::Place& place, DType dtype, OpSpec& spec) {
        const auto* given = field(place.name);
        std::size_t count = 1;
        if (given != nullptr) {
            dtype = parse(*given);
            if (place.rest && !given->shapes.empty()) {
                const auto sizes = evaluate_plain(*given->shapes[0], file_);
                count = static_cast<std::size_t>(*sizes.items()->at(0).integer());
            }
        }
        for (std::size_t i = 0; i < count; ++i) {
            const auto name = count > 1 ? fmt::format("{}_{}", place.name, i) : place.name;
            const auto made = model_.graph.add_tensor(name, Type::tensor(dtype));
            if (given != nullptr) {
                quantize(*given, made);
            }
            spec.outputs.push_back(made);
        }
    }
    DType parse(const TestField& given) const {
        const auto dtype = parse_dtype(given.dtype == "boolean" ? "bool" : given.dtype);
        if (!dtype) {
            fail(given.line, fmt::format("there is no element type '{}'", given.dtype));
        }
        return *dtype;
    }
    void quantize(const TestField& given, TensorId tensor) {
        if (!given.scale) {
            return;
        }
        Quantization how;
        const auto scale = evaluate_plain(*given.scale, file_);
        how.scales = {static_cast<float>(scale.number() != nullptr ? *scale.number() : 1.0)};
        const auto zero = given.zero_point ? evaluate_plain(*given.zero_point, file_) : Value();
        how.zero_points = {zero.integer() != nullptr ? *zero.integer() : 0};
        model_.graph.tensor_from_file(tensor).quantization =
            std::make_shared<const Quantization>(std::move(how));
    }

    TensorId input(const TestField& given, const std::string& key, const std::string& name) {
        std::size_t pick = 0;
        field(key, &pick);
        const auto dtype = parse(given);
        Shape shape;
        if (!given.shapes.empty()) {
            const auto sizes = evaluate_plain(*given.shapes[pick], file_);
            for (const auto& size : *sizes.items()) {
                shape.push_back(*size.integer());
            }
        }
        Constant value;
        if (!given.values.empty()) {
            value = constant_of(evaluate_plain(*given.values[0], file_), dtype);
            if (value.shape() != shape) {
                fail(given.line, fmt::format("'{}' has the shape {}, its elements {}", name,
                                             shape_text(shape), shape_text(value.shape())));
            }
        } else {
            value = drawn(dtype, shape);
        }
        TensorId made = TensorId::none;
        if (given.constant) {
            made = model_.graph.add_constant(name, value);
        } else {
            made = model_.graph.add_input(name, Type::tensor(dtype, shape));
            auto held = trocar::Value::tensor(dtype, shape);
            std::copy(value.bytes().begin(), value.bytes().end(), held.mutable_bytes().begin());
            inputs_.push_back({name, std::move(held)});
        }
        quantize(given, made);
        return made;
    }
    Constant drawn(DType dtype, const Shape& shape) {
        std::vector<double> numbers(element_count(shape));
        for (auto& number : numbers) {
            const auto bits = philox(seed_, 0, drawn_++)[0];
            const double unit = static_cast<double>(bits) / 4294967296.0;
            number = dtype == DType::boolean ? (unit < 0.5 ? 0 : 1)
                     : is_float(dtype)       ? 4 * unit - 2
                                       : std::floor(unit * 20) - (range(dtype).low < 0 ? 10 : 0);
        }
        return constant_of_numbers(dtype, shape, numbers);
    }

    void attributes(const MatchedOp& wanted, OpSpec& spec) const {
        const bool last = &wanted == &rule_.match.back();
        for (std::size_t i = 0; i < test_.fields.size(); ++i) {
            const auto& given = test_.fields[i];
            const auto at = given.name.find('@');
            if (at == std::string::npos) {
                continue;
            }
            const auto owner = given.name.substr(0, at);
            const bool ours =
                owner.empty() ? last
                              : std::any_of(wanted.outputs.begin(), wanted.outputs.end(),
                                            [&](const auto& place) { return place.name == owner; });
            const auto value = evaluate_plain(*given.values[which_.picks[i]], file_);
            if (ours && !value.is_none()) {
                spec.attributes.push_back({given.name.substr(at + 1), attribute_of(value), {}, {}});
            }
        }
    }

    const RuleFile& file_;
    const Rule& rule_;
    const RuleTest& test_;
    const Case& which_;
    std::uint64_t seed_;
    std::uint64_t drawn_ = 0;
    Model model_;
    std::vector<NamedValue> inputs_;
};

std::vector<Case> cases(const RuleFile& file, const RuleTest& test) {
    std::vector<Case> all{{}};
    for (const auto& field : test.fields) {
        std::vector<Case> more;
        const auto count = alternatives(field);
        for (const auto& one : all) {
            for (std::size_t i = 0; i < count && more.size() < most_cases; ++i) {
                auto next = one;
                next.picks.push_back(i);
                if (count > 1) {
                    const auto& shown =
                        field.values.size() > 1 ? *field.values[i] : *field.shapes[i];
                    next.text += fmt::format("{}{} {}", next.text.empty() ? "" : ", ", field.name,
                                             evaluate_plain(shown, file).shown());
                }
                more.push_back(std::move(next));
            }
        }
        all = std::move(more);
    }
    return all;
}

std::shared_ptr<Engine> engine_of(const std::string& dialect, const RuleCheckOptions& options,
                                  std::string& why) {
    EngineOptions engine;
    engine.name.clear();
    engine.search = options.search;
    engine.threads = 1;
    engine.name = engine_for(dialect, engine);
    if (engine.name.empty()) {
        why = fmt::format("there is no engine for {} here", dialect);
        return nullptr;
    }
    return open_engine(engine);
}

std::vector<trocar::Value> run(Engine& engine, const Model& model,
                               const std::vector<NamedValue>& inputs) {
    const auto program = engine.compile(model, {});
    std::vector<trocar::Value> given;
    for (const auto& name : program->input_names()) {
        const auto at = std::find_if(inputs.begin(), inputs.end(),
                                     [&](const NamedValue& one) { return one.name == name; });
        if (at == inputs.end()) {
            throw Error(Fault::internal, fmt::format("the test has no input '{}'", name));
        }
        given.push_back(at->value);
    }
    std::vector<trocar::Value> outputs(program->output_names().size());
    program->run(given, outputs);
    return outputs;
}

// The largest difference; relative to the largest element where these are not integers.
double difference(const trocar::Value& a, const trocar::Value& b, std::string& why) {
    if (a.dtype() != b.dtype() || a.shape() != b.shape()) {
        why = fmt::format("{}[{}] there, {}[{}] here", name(a.dtype()), shape_text(a.shape()),
                          name(b.dtype()), shape_text(b.shape()));
        return 0;
    }
    const auto found = trocar::difference(a, b);
    if (found.nan_mismatches > 0) {
        why = "one of them is no number";
    } else if (found.infinity_mismatches > 0) {
        why = "one of them is infinite";
    }
    if (!why.empty() || found.finite == 0) {
        return 0;
    }
    double scale = 1;
    if (is_float(a.dtype())) {
        scale = 1e-30;
        std::vector<double> numbers(found.count);
        decode(a.dtype(), a.bytes(), 0, numbers);
        for (const auto number : numbers) {
            scale = std::isfinite(number) ? std::max(scale, std::abs(number)) : scale;
        }
    }
    return found.max_abs / scale;
}

RuleCheck check(const RuleFile& file, const Rule& rule, const RuleTest& test, const Case& which,
                Engine& from, Engine& to, const RuleCheckOptions& options) {
    RuleCheck result;
    result.rule = rule.name;
    result.what = which.text;
    try {
        CaseModel builder(file, rule, test, which, options.seed);
        auto model = builder.make();
        const auto inputs = builder.take_inputs();
        const auto expected = run(from, model, inputs);
        // What the rule may ask of its outputs.
        for (std::size_t i = 0; i < expected.size(); ++i) {
            const auto output = model.graph.outputs()[i];
            if (expected[i].is_tensor()) {
                model.graph.set_type(output, type_of(expected[i]));
            }
        }
        const auto mapped = map_model(model, file.to, {.rules = options.rules});
        for (const auto& op : mapped.ops) {
            if (op.state == MappedOp::State::impossible) {
                result.why = op.why;
                return result;
            }
        }
        const auto made = run(to, mapped.model, inputs);
        if (made.size() != expected.size()) {
            result.why = "it has another number of outputs";
            return result;
        }
        for (std::size_t i = 0; i < made.size() && result.why.empty(); ++i) {
            result.difference =
                std::max(result.difference, difference(expected[i], made[i], result.why));
        }
        result.passed = result.why.empty() && result.difference <= test.tolerance;
        if (!result.passed && result.why.empty()) {
            result.why = fmt::format("they differ by {:.2g}, {:.2g} is allowed", result.difference,
                                     test.tolerance);
        }
    } catch (const Error& error) {
        if (error.fault() == Fault::internal) {
            throw;
        }
        result.why = error.what();
    }
    return result;
}

}  // namespace

}  // namespace mapping

std::vector<RuleCheck> check_rules(const std::string& from, const std::string& to,
                                   const RuleCheckOptions& options) {
    const auto files = mapping::rule_files(from, to, options.rules);
    std::string missing;
    const auto source = mapping::engine_of(from, options, missing);
    const auto target = mapping::engine_of(to, options, missing);
    std::vector<RuleCheck> all;
    for (const auto& file : files) {
        for (const auto& rule : file->rules) {
            if (!options.only.empty() && options.only != rule->name) {
                continue;
            }
            if (rule->tests.empty()) {
                RuleCheck none;
                none.rule = rule->name;
                none.tried = false;
                const auto& why = rule->untested.empty() ? file->untested : rule->untested;
                none.passed = !why.empty();
                none.why = why.empty() ? "it has no test" : why;
                all.push_back(std::move(none));
            }
            for (const auto& test : rule->tests) {
                for (const auto& which : mapping::cases(*file, test)) {
                    all.push_back(
                        source && target
                            ? mapping::check(*file, *rule, test, which, *source, *target, options)
                            : RuleCheck{.rule = rule->name, .what = which.text, .why = missing});
                }
            }
        }
    }
    return all;
}

}  // namespace trocar
