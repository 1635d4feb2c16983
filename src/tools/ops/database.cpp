#include <fmt/format.h>

#include <array>
#include <map>
#include <memory>

#include "tools/ops/commands.h"
#include "trocar/error.h"
#include "trocar/op_store.h"

namespace trocar {

namespace {

struct DatabaseOptions {
    std::vector<std::string> names;
    std::string db;
    std::string format = "csv";
};

std::string setting_text(const OpSetting& setting) {
    return fmt::format("{} {}, {} threads", setting.engine, setting.version, setting.threads);
}

void need_db(Args& args, DatabaseOptions& options) {
    args.option("--db", options.db, "FILE", "Database of operators");
    args.require("--db");
}

// --- list
// -------------------------------------------------------------------------------------

Report list(const DatabaseOptions& options) {
    const OpDatabase database(options.db, OpDatabase::Mode::read);
    Report report;
    report.tool = "ops list";
    std::map<std::string, std::uint64_t> uses;
    Table models;
    models.key = "models";
    models.title = "Models";
    models.columns = {{.key = "model", .title = "Model"},
                      {.key = "inputs", .title = "Inputs"},
                      {.key = "unit", .title = "Unit"},
                      {.key = "distinct", .title = "Distinct operators", .show = Show::count},
                      {.key = "calls", .title = "Calls", .show = Show::count}};
    for (const auto& model : database.models()) {
        std::uint64_t calls = 0;
        for (const auto& op : model.ops) {
            calls += op.count;
            uses[op.config.key] += op.count;
        }
        models.rows.push_back({.cells = {Cell(model.name), Cell(model.inputs),
                                         Cell(model.unit == View::deployed ? "fused" : "source"),
                                         Cell(std::uint64_t{model.ops.size()}), Cell(calls)}});
    }
    std::map<std::string, OpConfig> configs;
    for (auto& config : database.configs()) {
        configs[config.key] = config;
    }
    Table table;
    table.key = "operators";
    table.title = "Operators";
    table.columns = {{.key = "key", .title = "Key"},
                     {.key = "type", .title = "Operator"},
                     {.key = "inputs", .title = "Inputs", .optional = 2},
                     {.key = "calls", .title = "Calls", .show = Show::count, .optional = 1},
                     {.key = "mode", .title = "Mode"},
                     {.key = "state", .title = "State", .optional = 1},
                     {.key = "ns", .title = "Time", .show = Show::nanoseconds},
                     {.key = "grade", .title = "Grade"},
                     {.key = "gmacs_per_s", .title = "GMAC/s", .optional = 1},
                     {.key = "net_j", .title = "Energy", .optional = 3},
                     {.key = "setting", .title = "Engine", .optional = 3}};
    for (const auto setting : database.settings()) {
        const auto text = setting_text(database.setting(setting));
        for (const auto& one : database.newest(setting)) {
            const auto config = configs.find(one.key);
            if (config == configs.end()) {
                continue;
            }
            const bool timed = one.state == OpState::measured;
            const auto missing = Cell::unavailable(one.reason);
            const auto macs = config->second.features.macs;
            table.rows.push_back(
                {.cells = {Cell(one.key.substr(0, 10)), Cell(config->second.features.type),
                           Cell(config->second.inputs), Cell(uses[one.key]), Cell(name(one.mode)),
                           Cell(name(one.state)), timed ? Cell(one.time.ns) : missing,
                           timed ? Cell(std::string(1, one.time.grade)) : missing,
                           timed && macs > 0 && one.time.ns > 0 ? Cell(macs / one.time.ns)
                                                                : Cell::unavailable("no MACs"),
                           one.energy.label == "unavailable" ? Cell::unavailable(one.energy.why)
                                                             : Cell(one.energy.net),
                           Cell(text)}});
        }
    }
    report.tables = {std::move(models), std::move(table)};
    if (const auto open = database.count(OpState::open); open > 0) {
        report.notes.push_back(fmt::format(
            "{} measurements were begun and not finished; `trocar ops measure` goes on with them",
            open));
    }
    return report;
}

std::function<Report(Context&)> bind_list(Args& args) {
    const auto options = std::make_shared<DatabaseOptions>();
    need_db(args, *options);
    args.example("trocar ops list --db ops.db", "All operators with their times");
    return [options](Context&) { return list(*options); };
}

// --- show
// -------------------------------------------------------------------------------------

Report show_one(const DatabaseOptions& options) {
    if (options.names.size() != 1) {
        throw Error(Fault::usage, "one operator is shown at a time");
    }
    const OpDatabase database(options.db, OpDatabase::Mode::read);
    const auto config = database.find_config(options.names[0]);
    if (!config) {
        throw Error(Fault::input,
                    fmt::format("no operator has a key that begins with '{}'", options.names[0]),
                    "`trocar ops list --db FILE` lists them");
    }
    Report report;
    report.tool = "ops show";
    Section section{.key = "operator", .title = "Operator", .scalars = {}};
    const auto& features = config->features;
    auto& all = section.scalars;
    all.push_back({"key", "Key", config->key, Show::plain, ""});
    all.push_back({"type", "Type", features.type, Show::plain, ""});
    all.push_back(
        {"unit", "Unit", config->unit == View::deployed ? "fused" : "source", Show::plain, ""});
    all.push_back({"inputs", "Inputs", config->inputs, Show::plain, ""});
    all.push_back({"text", "All of it", config->text, Show::plain, ""});
    all.push_back(
        {"macs", "MACs",
         config->uncounted.empty() ? Cell(features.macs) : Cell::unavailable(config->uncounted),
         Show::compact, ""});
    all.push_back({"bytes", "Bytes",
                   features.input_bytes + features.weight_bytes + features.output_bytes,
                   Show::bytes, "inputs, weights and outputs, each once"});
    report.sections.push_back(std::move(section));
    Table table;
    table.key = "measurements";
    table.title = "Measurements";
    table.columns = {
        {.key = "mode", .title = "Mode"},
        {.key = "state", .title = "State"},
        {.key = "ns", .title = "Median", .show = Show::nanoseconds},
        {.key = "low_ns", .title = "from", .show = Show::nanoseconds},
        {.key = "high_ns", .title = "to", .show = Show::nanoseconds},
        {.key = "mean_ns", .title = "3σ mean", .show = Show::nanoseconds, .optional = 1},
        {.key = "call_ns", .title = "Call", .show = Show::nanoseconds, .optional = 1},
        {.key = "windows", .title = "Samples", .show = Show::count},
        {.key = "grade", .title = "Grade"},
        {.key = "energy", .title = "Energy", .optional = 1},
        {.key = "setting", .title = "Engine", .optional = 1},
        {.key = "when", .title = "When", .optional = 2},
        {.key = "reason", .title = "Why not", .optional = 2}};
    for (const auto& one : database.all_of(config->key)) {
        const bool timed = one.state == OpState::measured;
        const auto time = [&](double value) {
            return timed ? Cell(value) : Cell::unavailable(one.reason);
        };
        table.rows.push_back(
            {.cells = {Cell(name(one.mode)), Cell(name(one.state)), time(one.time.ns),
                       time(one.time.interval.low), time(one.time.interval.high),
                       time(one.time.mean_ns), time(one.time.call_ns),
                       Cell(std::uint64_t{one.time.windows.size()}),
                       timed ? Cell(fmt::format("{}{}", one.time.grade,
                                                one.time.doubtful ? ", doubtful" : ""))
                             : Cell::unavailable(one.reason),
                       one.energy.label == "unavailable"
                           ? Cell::unavailable(one.energy.why)
                           : Cell(fmt::format("{:.3g} J ± {:.1g} ({})", one.energy.net,
                                              one.energy.uncertainty, one.energy.label)),
                       Cell(setting_text(database.setting(one.setting))), Cell(one.when),
                       Cell(one.reason)}});
    }
    table.note = "median with its 95 % interval, less what calling a program costs (Call)";
    report.tables.push_back(std::move(table));
    return report;
}

std::function<Report(Context&)> bind_show(Args& args) {
    const auto options = std::make_shared<DatabaseOptions>();
    args.positionals(options->names, "KEY", "Key of an operator, or how it begins");
    need_db(args, *options);
    args.example("trocar ops show 3f2a --db ops.db", "All that is known of one operator");
    return [options](Context&) { return show_one(*options); };
}

// --- export, merge, verify
// --------------------------------------------------------------------

std::function<Report(Context&)> bind_export(Args& args) {
    const auto options = std::make_shared<DatabaseOptions>();
    need_db(args, *options);
    args.choice("--as", options->format, "csv|jsonl", "Comma-separated values, or JSON lines");
    args.example("trocar ops export --db ops.db --as jsonl > ops.jsonl",
                 "Every measurement as a line of JSON");
    return [options](Context&) {
        const OpDatabase database(options->db, OpDatabase::Mode::read);
        Report report;
        report.tool = "ops export";
        report.document =
            options->format == "csv" ? database.export_csv() : database.export_jsonl();
        return report;
    };
}

std::function<Report(Context&)> bind_merge(Args& args) {
    const auto options = std::make_shared<DatabaseOptions>();
    args.positionals(options->names, "DB", "Databases to take from");
    need_db(args, *options);
    args.example("trocar ops merge laptop.db board.db --db all.db",
                 "What several machines measured, in one database");
    return [options](Context&) {
        if (options->names.empty()) {
            throw Error(Fault::usage, "no database to merge");
        }
        std::vector<OpDatabase> others;
        for (const auto& name : options->names) {
            others.emplace_back(name, OpDatabase::Mode::read);
        }
        OpDatabase database(options->db, OpDatabase::Mode::create);
        Report report;
        report.tool = "ops merge";
        Table table;
        table.key = "databases";
        table.title = "Merged";
        table.columns = {{.key = "db", .title = "Database"},
                         {.key = "added", .title = "Measurements added", .show = Show::count}};
        for (const auto& other : others) {
            const auto added = database.merge(other);
            table.rows.push_back(
                {.cells = {Cell(other.path().string()), Cell(std::uint64_t{added})}});
        }
        table.note = "runs that were there are left alone; machines and engines are kept apart";
        report.tables.push_back(std::move(table));
        return report;
    };
}

std::function<Report(Context&)> bind_verify(Args& args) {
    const auto options = std::make_shared<DatabaseOptions>();
    need_db(args, *options);
    args.example("trocar ops verify --db ops.db", "Is it whole, and do times follow from samples?");
    return [options](Context&) {
        const OpDatabase database(options->db, OpDatabase::Mode::read);
        const auto wrong = database.verify();
        Report report;
        report.tool = "ops verify";
        Section section{.key = "database", .title = "Database", .scalars = {}};
        for (const auto state :
             {OpState::measured, OpState::failed, OpState::crashed, OpState::hung,
              OpState::over_memory, OpState::not_applicable, OpState::open}) {
            section.scalars.push_back(
                {name(state), name(state), std::uint64_t{database.count(state)}, Show::count, ""});
        }
        report.sections.push_back(std::move(section));
        report.notes = wrong;
        if (wrong.empty()) {
            report.notes.push_back("nothing is wrong with it");
        }
        report.verdict = wrong.empty();
        return report;
    };
}

}  // namespace

extern const Command ops_list{
    .name = "list",
    .summary = "Models and operators of a database, with their times",
    .bind = bind_list,
};
extern const Command ops_show{
    .name = "show",
    .summary = "All that is known of one operator",
    .bind = bind_show,
};
extern const Command ops_export{
    .name = "export",
    .summary = "Every measurement as CSV or JSON lines",
    .bind = bind_export,
};
extern const Command ops_merge{
    .name = "merge",
    .summary = "Put databases of several machines into one",
    .bind = bind_merge,
};
extern const Command ops_verify{
    .name = "verify",
    .summary = "Check a database",
    .bind = bind_verify,
};

}  // namespace trocar
