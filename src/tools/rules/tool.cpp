#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "trocar/command.h"
#include "trocar/error.h"
#include "trocar/mapping.h"
#include "util/text.h"

namespace trocar {

namespace {

struct Options {
    std::string from;
    std::string to;
    std::vector<std::string> rules;
    std::string rule;
    std::string source;
    std::string target;
};

Report list(Context&) {
    Report report;
    report.tool = "rules list";
    Table table{
        .key = "mappings",
        .title = "Rules",
        .columns = {{.key = "from", .title = "From"},
                    {.key = "to", .title = "To"},
                    {.key = "ops", .title = "Ops", .show = Show::count},
                    {.key = "types", .title = "Types", .show = Show::plain, .hidden = true}},
        .rows = {},
        .note = {}};
    for (const auto& one : mappings()) {
        table.rows.push_back({.cells = {one.from, one.to, std::uint64_t{one.types.size()},
                                        Cell(fmt::format("{}", join(one.types, " ")))}});
    }
    report.tables.push_back(std::move(table));
    return report;
}

Report show(const Options& options) {
    Report report;
    report.tool = "rules show";
    Table table{.key = "rules",
                .title = "Rules",
                .columns = {{.key = "ops", .title = "Ops"},
                            {.key = "rule", .title = "Rule"},
                            {.key = "makes", .title = "Makes"},
                            {.key = "tests", .title = "Tests", .show = Show::count},
                            {.key = "untested", .title = "Untested", .optional = 1}},
                .rows = {},
                .note = {}};
    for (const auto& one :
         rule_infos(options.from, options.to, {options.rules.begin(), options.rules.end()})) {
        table.rows.push_back({.cells = {Cell(fmt::format("{}", join(one.matches, ", "))), one.name,
                                        Cell(fmt::format("{}", join(one.makes, ", "))),
                                        std::uint64_t{one.tests}, one.untested}});
    }
    report.tables.push_back(std::move(table));
    return report;
}

Report check(const Options& options, Context& context) {
    RuleCheckOptions how;
    how.rules.assign(options.rules.begin(), options.rules.end());
    how.only = options.rule;
    how.search = context.engine_options().search;
    how.seed = context.seed();
    how.source = options.source;
    how.target = options.target;
    const auto checks = check_rules(options.from, options.to, how);
    if (checks.cases.empty()) {
        throw Error(Fault::usage, fmt::format("there is no rule '{}'", options.rule));
    }
    Report report;
    report.tool = "rules check";
    const auto table_of = [](const char* key, const char* title) {
        return Table{.key = key,
                     .title = title,
                     .columns = {{.key = "rule", .title = "Rule"},
                                 {.key = "case", .title = "Case"},
                                 {.key = "why", .title = "Why"}},
                     .rows = {},
                     .note = {}};
    };
    auto failed = table_of("checks", "Rules that fail");
    auto untried = table_of("untried", "Cannot be tried");
    double worst = 0;
    for (const auto& one : checks.cases) {
        worst = std::max(worst, one.difference);
        if (one.outcome != RuleCheck::Outcome::passed) {
            auto& into = one.outcome == RuleCheck::Outcome::failed ? failed : untried;
            into.rows.push_back({.cells = {one.rule, one.what, one.why}});
        }
    }
    Section section{.key = "rules", .title = "Rules tried on both sides", .scalars = {}};
    const auto engine = [&](const char* key, const char* title, const EngineInfo& info) {
        if (!info.name.empty()) {
            section.scalars.push_back(
                {key, title, Cell(fmt::format("{} {}", info.name, info.version)), Show::plain, ""});
        }
    };
    engine("source", "Source", checks.source);
    engine("target", "Target", checks.target);
    const auto count = [&](const char* key, const char* title, std::size_t number) {
        section.scalars.push_back({key, title, std::uint64_t{number}, Show::count, ""});
    };
    count("cases", "Cases", checks.cases.size());
    count("passed", "Passed", checks.cases.size() - failed.rows.size() - untried.rows.size());
    if (!untried.rows.empty()) {
        count("untried", "Cannot be tried", untried.rows.size());
    }
    section.scalars.push_back({"difference", "Largest difference", worst, Show::plain,
                               "relative to the largest element"});
    report.sections.push_back(std::move(section));
    if (!untried.rows.empty()) {
        report.tables.push_back(std::move(untried));
    }
    if (!failed.rows.empty()) {
        report.verdict = false;
        report.tables.push_back(std::move(failed));
    }
    return report;
}

std::function<Report(Context&)> bind_list(Args& args) {
    args.example("trocar rules list", "Which dialects can be mapped to which");
    return [](Context& context) { return list(context); };
}

std::function<Report(Context&)> bind_show(Args& args) {
    const auto options = std::make_shared<Options>();
    args.positional(options->from, "FROM", "Dialect of the ops that rules match");
    args.positional(options->to, "TO", "Dialect of the ops that they make");
    args.option("--rules", options->rules, "FILE", "Further rules, which come first");
    args.example("trocar rules show onnx tflite", "What can be mapped, and to what");
    return [options](Context&) { return show(*options); };
}

std::function<Report(Context&)> bind_check(Args& args) {
    const auto options = std::make_shared<Options>();
    args.positional(options->from, "FROM", "Dialect of the ops that rules match");
    args.positional(options->to, "TO", "Dialect of the ops that they make");
    args.option("--rules", options->rules, "FILE", "Further rules, which are tried too");
    args.option("--rule", options->rule, "NAME", "Only the rule of that name");
    args.option("--source", options->source, "ENGINE", "Engine for the dialect FROM");
    args.option("--target", options->target, "ENGINE", "Engine for the dialect TO");
    args.example("trocar rules check tflite onnx",
                 "Run the test of every rule on an engine for either dialect");
    return [options](Context& context) { return check(*options, context); };
}

const Command list_command{
    .name = "list", .summary = "The dialects that rules map", .bind = bind_list};
const Command show_command{
    .name = "show", .summary = "The ops that rules match, and what they make", .bind = bind_show};
const Command check_command{
    .name = "check",
    .summary = "Try rules on engines of both dialects and compare what comes out",
    .bind = bind_check};
constexpr const Command* sub_commands[] = {&list_command, &show_command, &check_command};

}  // namespace

extern const Command rules_tool{
    .name = "rules",
    .summary = "Rules that map models to other dialects: list them, show them, try them",
    .bind = nullptr,
    .commands = sub_commands,
};

}  // namespace trocar
