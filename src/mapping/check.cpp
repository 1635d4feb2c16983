#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mapping/rule_files.h"
#include "mapping/test_case.h"
#include "trocar/difference.h"
#include "trocar/engine.h"
#include "trocar/error.h"
#include "trocar/mapping.h"
#include "util/aten_types.h"
#include "util/elements.h"
#include "util/text.h"

namespace trocar {

namespace mapping {

namespace {

using Outcome = RuleCheck::Outcome;

// PyTorch has the ops of aten as they are; ExecuTorch has those that rules make of them.
constexpr const char* own_engine_of_aten = "torch";
constexpr const char* lowering_engine = "executorch";

// The one that is asked for; else the preferred one, or any other that takes the dialect as it is.
// Nothing, and `why`, where there is none.
std::shared_ptr<Engine> engine_of(const std::string& dialect, const std::string& wanted,
                                  const std::string& preferred, const RuleCheckOptions& options,
                                  std::string& why) {
    auto engine = wanted.empty() ? EngineOptions() : parse_engine(wanted);
    engine.search = options.search;
    engine.threads = 1;
    if (wanted.empty()) {
        const auto takes = [&](const EngineKind* kind) {
            const auto found = kind->find(engine);
            return std::any_of(found.begin(), found.end(), [&](const EngineInfo& info) {
                const auto& dialects = info.can.dialects;
                return info.available &&
                       std::find(dialects.begin(), dialects.end(), dialect) != dialects.end();
            });
        };
        engine.name.clear();
        for (const auto* kind : engine_kinds()) {
            if ((engine.name.empty() || kind->name == preferred) && takes(kind)) {
                engine.name = kind->name;
            }
        }
        if (engine.name.empty()) {
            why = fmt::format("there is no engine for {} here", dialect);
            return nullptr;
        }
    }
    return open_engine(engine);
}

std::vector<Value> run(Engine& engine, const Model& model, const std::vector<NamedValue>& inputs) {
    const auto program = engine.compile(model, {});
    std::vector<Value> given;
    for (const auto& name : program->input_names()) {
        const auto at = std::find_if(inputs.begin(), inputs.end(),
                                     [&](const NamedValue& one) { return one.name == name; });
        if (at == inputs.end()) {
            throw Error(Fault::internal, fmt::format("the test has no input '{}'", name));
        }
        given.push_back(at->value);
    }
    std::vector<Value> outputs(program->output_names().size());
    program->run(given, outputs);
    return outputs;
}

// The largest difference; relative to the largest element where these are not integers.
double difference(const Value& a, const Value& b, std::string& why) {
    if (!a.is_tensor() || !b.is_tensor() || a.dtype() != b.dtype() || a.shape() != b.shape()) {
        why = fmt::format("{} there, {} here", value_text(a), value_text(b));
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

// What a rule may ask of its outputs.
void set_types(Model& model, const std::vector<Value>& outputs) {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (outputs[i].is_tensor()) {
            model.graph.set_type(model.graph.outputs()[i], type_of(outputs[i]));
        }
    }
}

// Is nothing of it against what was made?
bool may_be(const Type& taken, const Type& made) {
    if (taken.kind != Type::Kind::tensor) {
        return taken.kind == Type::Kind::unknown;
    }
    if (taken.dtype != DType::undefined && taken.dtype != made.dtype) {
        return false;
    }
    return !taken.dims ||
           std::equal(taken.dims->begin(), taken.dims->end(), made.dims->begin(), made.dims->end(),
                      [](const Dim& a, const Dim& b) { return a.value < 0 || a.value == b.value; });
}

// Where an engine cannot run a case, the case cannot be tried.
struct Untried {
    std::string why;
};

class Checker {
public:
    Checker(const RuleFile& file, Engine& from, Engine& to, const RuleCheckOptions& options)
        : file_(file), from_(from), to_(to), options_(options) {}

    RuleCheck check(const Rule& rule, const RuleTest& test, const TestCase& which) {
        RuleCheck result;
        result.rule = rule.name;
        result.what = which.text;
        try {
            auto [model, inputs] = test_model(file_, rule, test, which, options_.seed);
            compare(model, inputs, test, result);
        } catch (const Untried& untried) {
            result.outcome = Outcome::untried;
            result.why = untried.why;
        } catch (const Error& error) {
            if (error.fault() == Fault::internal) {
                throw;
            }
            result.why = error.what();
        }
        return result;
    }

private:
    void compare(Model& model, const std::vector<NamedValue>& inputs, const RuleTest& test,
                 RuleCheck& result) {
        const bool lowers = file_.from == "aten" && from_.info().name == lowering_engine;
        std::vector<Value> expected;
        if (!lowers) {
            try {
                expected = run_source(model, inputs);
                check_types(model, expected, result);
                set_types(model, expected);
            } catch (const Untried&) {
                if (!test.declined) {
                    throw;
                }
            }
        }
        auto mapped = map_model(model, file_.to, {.rules = options_.rules});
        for (const auto& op : mapped.ops) {
            if (op.state == MappedOp::State::impossible) {
                if (lowers && !test.declined) {  // without the types that a run would have told
                    throw Untried{op.why};
                }
                result.outcome = test.declined ? Outcome::passed : Outcome::failed;
                result.why = test.declined ? "" : op.why;
                return;
            }
        }
        if (test.declined) {
            const bool other = mapped.ops.empty() || mapped.ops.back().rule != result.rule;
            result.outcome = other ? Outcome::passed : Outcome::failed;
            result.why = other ? "" : "it applies where it must not";
            return;
        }
        const auto made = run(to_, mapped.model, inputs);
        if (lowers) {
            set_types(model, made);
            expected = run_lowered(model, inputs);
        }
        if (made.size() != expected.size()) {
            result.why = "it has another number of outputs";
            return;
        }
        for (std::size_t i = 0; i < made.size() && result.why.empty(); ++i) {
            result.difference =
                std::max(result.difference, difference(expected[i], made[i], result.why));
        }
        if (result.why.empty() && result.difference > test.tolerance) {
            result.why = fmt::format("they differ by {:.2g}, {:.2g} is allowed", result.difference,
                                     test.tolerance);
        }
        result.outcome = result.why.empty() ? Outcome::passed : Outcome::failed;
    }

    // Files of TorchScript have no types: those that are inferred must be the ones that are made.
    void check_types(const Model& model, const std::vector<Value>& outputs,
                     RuleCheck& result) const {
        if (file_.from != "aten") {
            return;
        }
        auto typed = clone(model);
        infer_aten_types(typed.graph);
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            const auto& taken = typed.graph.tensor(typed.graph.outputs()[i]).type;
            if (outputs[i].is_tensor() && !may_be(taken, type_of(outputs[i]))) {
                result.why = fmt::format("what it makes is taken for {}, and is {}",
                                         type_text(taken), value_text(outputs[i]));
            }
        }
    }

    std::vector<Value> run_source(const Model& model, const std::vector<NamedValue>& inputs) {
        try {
            return run(from_, model, inputs);
        } catch (const Error& error) {
            if (error.fault() == Fault::internal) {
                throw;
            }
            throw Untried{error.what()};
        }
    }
    // On an engine that has only the ops that rules make of the dialect's own.
    std::vector<Value> run_lowered(const Model& model, const std::vector<NamedValue>& inputs) {
        if (file_.to == file_.from) {
            throw Untried{fmt::format("{} runs it by this rule itself", from_.info().name)};
        }
        const auto lowered = map_model(model, file_.from);
        for (const auto& op : lowered.ops) {
            if (op.state == MappedOp::State::impossible) {
                throw Untried{fmt::format("{} cannot run it: {}", from_.info().name, op.why)};
            }
        }
        return run_source(lowered.model, inputs);
    }

    const RuleFile& file_;
    Engine& from_;
    Engine& to_;
    const RuleCheckOptions& options_;
};

RuleCheck without_test(const RuleFile& file, const Rule& rule) {
    RuleCheck none;
    none.rule = rule.name;
    const auto& why = rule.untested.empty() ? file.untested : rule.untested;
    none.outcome = why.empty() ? Outcome::failed : Outcome::untried;
    none.why = why.empty() ? "it has no test" : why;
    return none;
}

}  // namespace

}  // namespace mapping

RuleChecks check_rules(const std::string& from, const std::string& to,
                       const RuleCheckOptions& options) {
    const auto files = mapping::rule_files(from, to, options.rules);
    std::string missing;
    const auto source =
        mapping::engine_of(from, options.source, mapping::own_engine_of_aten, options, missing);
    const auto target =
        mapping::engine_of(to, options.target, mapping::lowering_engine, options, missing);
    RuleChecks all;
    all.source = source ? source->info() : EngineInfo();
    all.target = target ? target->info() : EngineInfo();
    for (const auto& file : files) {
        for (const auto& rule : file->rules) {
            if (!options.only.empty() && options.only != rule->name) {
                continue;
            }
            if (rule->tests.empty()) {
                all.cases.push_back(mapping::without_test(*file, *rule));
            }
            for (const auto& test : rule->tests) {
                for (const auto& which : mapping::test_cases(*file, test)) {
                    all.cases.push_back(
                        source && target
                            ? mapping::Checker(*file, *source, *target, options)
                                  .check(*rule, test, which)
                            : RuleCheck{.rule = rule->name, .what = which.text, .why = missing});
                }
            }
        }
    }
    return all;
}

}  // namespace trocar
