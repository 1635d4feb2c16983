#include "trocar/side.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

#include "lab/command_side.h"
#include "run/isolate.h"
#include "trocar/error.h"
#include "util/text.h"

namespace trocar {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::string_view command_prefix = "command:";

std::optional<int> thread_count(const std::string& text) {
    if (text.empty() || text.size() > 4 ||
        text.find_first_not_of("0123456789") != std::string::npos) {
        return std::nullopt;
    }
    return std::stoi(text);
}

Value integers(std::vector<std::int64_t> numbers) {
    return Value::copy(DType::i64, {static_cast<std::int64_t>(numbers.size())},
                       std::as_bytes(std::span(numbers)));
}

// The part of the work that is done in the other process.
class Worker {
public:
    Worker(const Chain& chain, const SideOptions& options, Side::Build build, bool keep,
           const Log& log)
        : chain_(chain), options_(options), build_(std::move(build)), keep_(keep) {
        auto engine = options.engine;
        engine.log = log;
        engine_ = open_engine(engine);
    }

    std::vector<NamedValue> answer(const std::vector<NamedValue>& request) {
        if (request.empty()) {
            return {{"", Value::strings({1}, {engine_->info().version})}};
        }
        const auto places = request.front().value.as<std::int64_t>();
        std::vector<Value> inputs;
        for (std::size_t i = 1; i < request.size(); ++i) {
            inputs.push_back(request[i].value);
        }
        return run(static_cast<std::size_t>(places[0]), static_cast<std::size_t>(places[1]),
                   inputs);
    }

private:
    std::vector<NamedValue> run(std::size_t first, std::size_t last,
                                const std::vector<Value>& inputs) {
        const auto part = chain_.part(first, last);
        const auto& graph = chain_.model().graph;
        auto found = programs_.find({first, last});
        if (found == programs_.end()) {
            if (!keep_) {
                programs_.clear();
            }
            const auto model = build_ ? build_(part, inputs) : chain_.extract(part, inputs);
            CompileOptions how;
            how.optimize = options_.optimize;
            found = programs_.emplace(std::pair{first, last}, engine_->compile(model, how)).first;
        }
        auto& program = *found->second;
        std::vector<Value> given;
        for (const auto& name : program.input_names()) {
            std::size_t at = part.inputs.size();
            for (std::size_t i = 0; i < part.inputs.size(); ++i) {
                at = graph.tensor(part.inputs[i]).name == name ? i : at;
            }
            if (at == part.inputs.size()) {
                throw Error(Fault::unsupported,
                            fmt::format("the part wants an input '{}' that it is not given", name));
            }
            given.push_back(inputs[at]);
        }
        std::vector<Value> made(program.output_names().size());
        const auto start = Clock::now();
        program.run(given, made);
        const std::chrono::duration<double> spent = Clock::now() - start;
        std::vector<NamedValue> answer;
        for (std::size_t i = 0; i < made.size(); ++i) {
            answer.push_back({program.output_names()[i], made[i]});
        }
        const double seconds = spent.count();
        answer.push_back({"", Value::copy(DType::f64, {}, std::as_bytes(std::span(&seconds, 1)))});
        return answer;
    }

    const Chain& chain_;
    const SideOptions& options_;
    Side::Build build_;
    bool keep_;
    std::shared_ptr<Engine> engine_;
    std::map<std::pair<std::size_t, std::size_t>, std::unique_ptr<Program>> programs_;
};

RunEnd end_of(Isolated::End end) {
    switch (end) {
        case Isolated::End::none:
            return RunEnd::failed;
        case Isolated::End::silent:
            return RunEnd::hung;
        case Isolated::End::over_memory:
            return RunEnd::over_memory;
        default:
            return RunEnd::crashed;
    }
}

}  // namespace

SideOptions parse_side(std::string_view text, const EngineOptions& base) {
    SideOptions side;
    side.text = text;
    side.engine = base;
    if (text.starts_with(command_prefix)) {
        side.command = trim(text.substr(command_prefix.size()));
        lab::fill_in(side.command, {});
        return side;
    }
    const auto parsed = parse_engine(text);
    side.engine.name = parsed.name;
    side.engine.path = parsed.path;
    side.engine.options.clear();
    for (const auto& [key, value] : parsed.options) {
        if (key == "threads") {
            const auto count = thread_count(value);
            if (!count) {
                throw Error(Fault::usage,
                            fmt::format("'{}': threads={} is no number", text, value));
            }
            side.engine.threads = *count == 0 ? base.threads : *count;
        } else if (key == "optimize") {
            if (value != "none" && value != "default") {
                throw Error(Fault::usage,
                            fmt::format("'{}': optimize is 'none' or 'default'", text));
            }
            side.optimize = value == "none" ? CompileOptions::Optimize::none
                                            : CompileOptions::Optimize::engine_default;
        } else {
            side.engine.options.emplace_back(key, value);
        }
    }
    return side;
}

const char* name(RunEnd end) {
    switch (end) {
        case RunEnd::done:
            return "done";
        case RunEnd::failed:
            return "failed";
        case RunEnd::crashed:
            return "crashed";
        case RunEnd::hung:
            return "hung";
        case RunEnd::over_memory:
            return "over memory";
        default:
            return "bad output";
    }
}

struct Side::Parts {
    const Chain& chain;
    SideOptions options;
    Build build;
    bool keep;
    std::string label;
    std::unique_ptr<Isolated> process;

    void start() {
        process = std::make_unique<Isolated>(
            [this](const Log& log) -> Isolated::Work {
                const auto worker = std::make_shared<Worker>(chain, options, build, keep, log);
                return [worker](const std::vector<NamedValue>& request) {
                    return worker->answer(request);
                };
            },
            Isolated::Options{.log = options.engine.log,
                              .timeout = options.time_limit,
                              .memory_limit = options.memory_limit,
                              .doing = "running this part"});
    }

    PartRun run_engine(const Part& part, std::span<const Value> inputs) {
        if (!process || !process->alive()) {
            start();
        }
        std::vector<NamedValue> request{{"", integers({static_cast<std::int64_t>(part.first),
                                                       static_cast<std::int64_t>(part.last)})}};
        for (const auto& input : inputs) {
            request.push_back({"", input});
        }
        const auto answer = process->run(request);
        PartRun run;
        for (const auto id : part.outputs) {
            const auto& wanted = chain.model().graph.tensor(id).name;
            const auto found = std::find_if(answer.begin(), answer.end(),
                                            [&](const auto& one) { return one.name == wanted; });
            if (found == answer.end()) {
                throw Error(Fault::engine, fmt::format("the part gave no output '{}'", wanted));
            }
            run.outputs.push_back(found->value);
        }
        run.seconds = answer.back().value.as<double>().front();
        return run;
    }
};

Side::Side(const Chain& chain, SideOptions options, Build build, bool keep)
    : parts_(new Parts{chain, std::move(options), std::move(build), keep, {}, nullptr}) {
    auto& p = *parts_;
    if (!p.options.command.empty()) {
        p.label = p.options.text;
        return;
    }
    p.start();
    const auto answer = p.process->run({});
    p.label = fmt::format("{} {}", p.options.engine.name, answer.front().value.string_values()[0]);
    const auto comma = p.options.text.find(',');
    if (comma != std::string::npos) {
        p.label += fmt::format(" ({})", p.options.text.substr(comma + 1));
    }
}
Side::Side(Side&&) noexcept = default;
Side& Side::operator=(Side&&) noexcept = default;
Side::~Side() = default;

const std::string& Side::label() const {
    return parts_->label;
}
const SideOptions& Side::options() const {
    return parts_->options;
}

PartRun Side::run(const Part& part, std::span<const Value> inputs, std::span<const Type> expected) {
    auto& p = *parts_;
    try {
        if (p.options.command.empty()) {
            return p.run_engine(part, inputs);
        }
        std::vector<std::string> outputs;
        for (const auto id : part.outputs) {
            outputs.push_back(p.chain.model().graph.tensor(id).name);
        }
        const auto model = p.build ? p.build(part, inputs) : p.chain.extract(part, inputs);
        std::vector<Value> given;  // in the order of the model's inputs
        for (const auto id : model.graph.inputs()) {
            for (std::size_t i = 0; i < part.inputs.size(); ++i) {
                if (p.chain.model().graph.tensor(part.inputs[i]).name ==
                    model.graph.tensor(id).name) {
                    given.push_back(inputs[i]);
                }
            }
        }
        return lab::run_command_side(p.options, model, given, outputs, expected);
    } catch (const Error& error) {
        if (error.fault() == Fault::interrupted || error.fault() == Fault::usage ||
            error.fault() == Fault::internal) {
            throw;
        }
        PartRun run;
        run.end = p.process ? end_of(p.process->end()) : RunEnd::failed;
        run.reason = error.what();
        return run;
    }
}

}  // namespace trocar
