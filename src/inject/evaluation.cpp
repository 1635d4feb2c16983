#include "trocar/evaluation.h"

#include <fmt/format.h>

#include <algorithm>

#include "trocar/error.h"

namespace trocar {

Evaluation::~Evaluation() = default;

namespace {

using Loaded = std::vector<std::shared_ptr<Evaluation>>;

std::shared_ptr<Evaluation> load_evaluation(const std::string& text, std::uint64_t seed) {
    const auto choice = parse_tool(text);
    const auto tool = load_tool(choice.path, ToolSettings(choice.settings, seed));
    auto evaluation = std::dynamic_pointer_cast<Evaluation>(tool);
    if (!evaluation ||
        (!evaluation->preprocess() && !evaluation->postprocess() && !evaluation->metric())) {
        throw Error(
            Fault::usage,
            fmt::format("the tool {} prepares no inputs, makes nothing of outputs and "
                        "measures nothing",
                        tool->name()),
            "a tool with ports is for `trocar run --tool`; trocar/evaluation.h says how one "
            "for campaigns is written");
    }
    return evaluation;
}

Loaded load_all(const std::vector<std::string>& tools, std::uint64_t seed) {
    Loaded all;
    for (const auto& text : tools) {
        all.push_back(load_evaluation(text, seed));
    }
    return all;
}

// What a tool throws, with its name.
template <class F>
auto named(const Evaluation& tool, F call) {
    try {
        return call();
    } catch (const Error& e) {
        throw Error(e.fault(), fmt::format("the tool {}: {}", tool.name(), e.what()), e.hint());
    } catch (const std::exception& e) {
        throw Error(Fault::input, fmt::format("the tool {}: {}", tool.name(), e.what()));
    }
}

CampaignInput prepared(const Loaded& tools, CampaignInput input) {
    for (const auto& tool : tools) {
        if (tool->preprocess()) {
            input.values = named(*tool, [&] { return tool->preprocess()(input); });
        }
    }
    return input;
}

std::vector<NamedValue> made_of(const Loaded& tools, std::vector<NamedValue> outputs,
                                const CampaignInput& input) {
    for (const auto& tool : tools) {
        if (tool->postprocess()) {
            outputs = named(*tool, [&] { return tool->postprocess()(outputs, input); });
        }
    }
    return outputs;
}

Metrics measured(const Loaded& tools, const std::vector<NamedValue>& golden,
                 const std::vector<NamedValue>& faulty, const CampaignInput& input) {
    Metrics all;
    for (const auto& tool : tools) {
        if (tool->metric()) {
            for (auto& metric :
                 named(*tool, [&] { return tool->metric()(golden, faulty, input); })) {
                all.push_back(std::move(metric));
            }
        }
    }
    return all;
}

}  // namespace

Evaluations load_evaluations(const std::vector<std::string>& tools, std::uint64_t seed) {
    Evaluations made;
    const auto first = load_all(tools, seed);
    const auto any = [&](const auto& has) { return std::any_of(first.begin(), first.end(), has); };
    if (any([](const auto& tool) { return static_cast<bool>(tool->preprocess()); })) {
        made.preprocess = [first](const CampaignInput& input) {
            return prepared(first, input).values;
        };
    }
    if (any([](const auto& tool) { return static_cast<bool>(tool->postprocess()); })) {
        made.postprocess = [tools, seed]() -> Postprocess {
            return [own = load_all(tools, seed)](const auto& outputs, const CampaignInput& input) {
                return made_of(own, outputs, input);
            };
        };
    }
    if (any([](const auto& tool) { return static_cast<bool>(tool->metric()); })) {
        made.metric = [tools, seed]() -> Metric {
            return [own = load_all(tools, seed)](const auto& golden, const auto& faulty,
                                                 const CampaignInput& input) {
                return measured(own, golden, faulty, input);
            };
        };
    }
    return made;
}

}  // namespace trocar
