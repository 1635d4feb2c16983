#include "ops/store_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/json.h"
#include "store/row_text.h"
#include "trocar/error.h"
#include "util/text.h"

namespace trocar::ops::rows {

namespace {

using store::Database;
using store::Statement;

void bind_all(Statement& row, const std::vector<double>& values, int from) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        row.bind(from + static_cast<int>(i), values[i]);
    }
}

OpState parse_state(const std::string& text) {
    for (const auto state : {OpState::open, OpState::measured, OpState::failed, OpState::crashed,
                             OpState::hung, OpState::over_memory, OpState::not_applicable}) {
        if (text == name(state)) {
            return state;
        }
    }
    throw Error(Fault::input, fmt::format("the database speaks of a state '{}'", text));
}

double number_or_zero(const Statement& row, int place) {
    const auto value = row.number(place);
    return std::isnan(value) ? 0 : value;
}

OpConfig config_of(const Statement& row, int from) {
    OpConfig config;
    config.key = row.text(from);
    config.unit = parse_unit(row.text(from + 1));
    auto& features = config.features;
    features.type = row.text(from + 2);
    config.inputs = row.text(from + 3);
    features.attributes = row.text(from + 4);
    features.dtype = row.text(from + 5);
    features.macs = row.number(from + 6);
    features.other_flops = row.number(from + 7);
    features.input_bytes = row.number(from + 8);
    features.weight_bytes = row.number(from + 9);
    features.output_bytes = row.number(from + 10);
    const auto numbers = Json::parse(row.text(from + 11));
    if (numbers && numbers->is_array()) {
        for (const auto& one : *numbers) {
            if (one.is_array() && one.size() == 2 && one[0].is_string() && one[1].is_number()) {
                features.numbers.emplace_back(one[0].string(), one[1].number());
            }
        }
    }
    config.uncounted = row.text(from + 12);
    config.text = row.text(from + 13);
    return config;
}
constexpr const char* config_columns =
    "c.key, c.unit, c.type, c.inputs, c.attributes, c.dtype, c.macs, c.other_flops, c.input_bytes, "
    "c.weight_bytes, c.output_bytes, c.numbers, c.uncounted, c.text";

}  // namespace

const char* const measurement_columns =
    "id, run, setting, configuration, model, mode, state, reason, finished, ns, low_ns, high_ns, "
    "mean_ns, call_ns, cpu_ns, doubtful, grade, energy_label, energy_source, energy_why, gross_j, "
    "idle_j, net_j, energy_pm_j, watts";

const char* unit_name(View unit) {
    return unit == View::deployed ? "fused" : "source";
}
View parse_unit(const std::string& text) {
    return text == "fused" ? View::deployed : View::source;
}

void insert(Database& database, const OpConfig& config) {
    auto row = database.prepare(
        "INSERT OR IGNORE INTO configuration (key, unit, type, inputs, attributes, dtype, macs, "
        "other_flops, input_bytes, weight_bytes, output_bytes, numbers, uncounted, text) VALUES "
        "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    auto numbers = Json::array();
    for (const auto& [name, value] : config.features.numbers) {
        numbers.push_back(Json::array({name, value}));
    }
    const auto text = numbers.dump();
    const auto& features = config.features;
    row.bind(0, std::string_view(config.key))
        .bind(1, std::string_view(unit_name(config.unit)))
        .bind(2, std::string_view(features.type))
        .bind(3, std::string_view(config.inputs))
        .bind(4, std::string_view(features.attributes))
        .bind(5, std::string_view(features.dtype));
    bind_all(row,
             {features.macs, features.other_flops, features.input_bytes, features.weight_bytes,
              features.output_bytes},
             6);
    row.bind(11, std::string_view(text))
        .bind(12, std::string_view(config.uncounted))
        .bind(13, std::string_view(config.text));
    row.run();
}

void insert(Database& database, const OpModelFacts& model) {
    auto row = database.prepare(
        "INSERT OR IGNORE INTO model (name, sha256, inputs, unit) VALUES (?, ?, ?, ?)");
    row.bind(0, std::string_view(model.name))
        .bind(1, std::string_view(model.sha256))
        .bind(2, std::string_view(model.inputs))
        .bind(3, std::string_view(unit_name(model.unit)));
    row.run();
    auto occurrence = database.prepare(
        "INSERT OR IGNORE INTO occurrence (model, configuration, place, count, sites, failure) "
        "SELECT m.id, c.id, ?, ?, ?, ? FROM model m, configuration c WHERE m.sha256 = ? AND "
        "m.inputs = ? AND m.unit = ? AND c.key = ?");
    std::int64_t place = 0;
    for (const auto& op : model.ops) {
        insert(database, op.config);
        const auto sites = Json(op.sites).dump();
        occurrence.bind(0, place++)
            .bind(1, op.count)
            .bind(2, std::string_view(sites))
            .bind(3, std::string_view(op.failure))
            .bind(4, std::string_view(model.sha256))
            .bind(5, std::string_view(model.inputs))
            .bind(6, std::string_view(unit_name(model.unit)))
            .bind(7, std::string_view(op.config.key));
        occurrence.run();
    }
}

void insert_windows(Database& database, std::int64_t measurement,
                    const std::vector<OpWindow>& windows) {
    auto row = database.prepare(
        "INSERT INTO sample (measurement, visit, ns, cpu_ns, calls, switches) VALUES (?, ?, ?, ?, "
        "?, ?)");
    for (const auto& window : windows) {
        row.bind(0, measurement)
            .bind(1, static_cast<std::int64_t>(window.visit))
            .bind(2, window.ns)
            .bind(3, window.cpu_ns)
            .bind(4, window.calls)
            .bind(5, window.switches);
        row.run();
    }
}

void finish(Database& database, const OpMeasurement& measurement, const std::string& when) {
    auto row = database.prepare(
        "UPDATE measurement SET state = ?, reason = ?, finished = ?, ns = ?, low_ns = ?, high_ns = "
        "?, mean_ns = ?, call_ns = ?, cpu_ns = ?, doubtful = ?, grade = ?, energy_label = ?, "
        "energy_source = ?, energy_why = ?, gross_j = ?, idle_j = ?, net_j = ?, energy_pm_j = ?, "
        "watts = ? WHERE id = ? AND state = 'open'");
    const bool timed = measurement.state == OpState::measured;
    const bool powered = measurement.energy.label != "unavailable";
    const auto& time = measurement.time;
    const auto& energy = measurement.energy;
    const auto nan = std::nan("");  // stored as NULL: what is not known is no number
    const auto grade = timed ? std::string(1, time.grade) : std::string();
    const auto pick = [nan](bool known, double value) { return known ? value : nan; };
    row.bind(0, std::string_view(name(measurement.state)))
        .bind(1, std::string_view(measurement.reason))
        .bind(2, std::string_view(when));
    bind_all(row,
             {pick(timed, time.ns), pick(timed, time.interval.low), pick(timed, time.interval.high),
              pick(timed, time.mean_ns), pick(timed, time.call_ns), pick(timed, time.cpu_ns)},
             3);
    row.bind(9, time.doubtful)
        .bind(10, std::string_view(grade))
        .bind(11, std::string_view(energy.label))
        .bind(12, std::string_view(energy.source))
        .bind(13, std::string_view(energy.why));
    bind_all(row,
             {pick(powered, energy.gross), pick(powered, energy.idle), pick(powered, energy.net),
              pick(powered, energy.uncertainty), pick(powered, energy.watts)},
             14);
    row.bind(19, measurement.id);
    row.run();
}

std::vector<OpMeasurement> measurements(Statement& row) {
    std::vector<OpMeasurement> all;
    while (row.step()) {
        OpMeasurement one;
        one.id = row.integer(0);
        one.run = row.integer(1);
        one.setting = row.integer(2);
        one.key = row.text(3);
        one.model = row.text(4);
        one.mode = parse_cache_mode(row.text(5));
        one.state = parse_state(row.text(6));
        one.reason = row.text(7);
        one.when = row.text(8);
        one.time.ns = number_or_zero(row, 9);
        one.time.interval = {number_or_zero(row, 10), number_or_zero(row, 11)};
        one.time.mean_ns = number_or_zero(row, 12);
        one.time.call_ns = number_or_zero(row, 13);
        one.time.cpu_ns = number_or_zero(row, 14);
        one.time.doubtful = row.integer(15) != 0;
        const auto grade = row.text(16);
        one.time.grade = grade.empty() ? 'D' : grade[0];
        one.energy.label = row.text(17);
        one.energy.source = row.text(18);
        one.energy.why = row.text(19);
        one.energy.gross = number_or_zero(row, 20);
        one.energy.idle = number_or_zero(row, 21);
        one.energy.net = number_or_zero(row, 22);
        one.energy.uncertainty = number_or_zero(row, 23);
        one.energy.watts = number_or_zero(row, 24);
        all.push_back(std::move(one));
    }
    return all;
}

std::vector<OpWindow> windows(const Database& database, std::int64_t measurement) {
    auto row = database.prepare(
        "SELECT ns, cpu_ns, calls, switches, visit FROM sample WHERE measurement = ? ORDER BY "
        "rowid");
    row.bind(0, measurement);
    std::vector<OpWindow> all;
    while (row.step()) {
        all.push_back({row.number(0), row.number(1), row.natural(2), row.natural(3),
                       static_cast<std::uint32_t>(row.integer(4))});
    }
    return all;
}

std::vector<OpConfig> configs(const Database& database) {
    auto row = database.prepare(
        fmt::format("SELECT {} FROM configuration c ORDER BY c.id", config_columns));
    std::vector<OpConfig> all;
    while (row.step()) {
        all.push_back(config_of(row, 0));
    }
    return all;
}

std::vector<OpModelFacts> models(const Database& database) {
    std::vector<OpModelFacts> all;
    auto row = database.prepare("SELECT name, sha256, inputs, unit, id FROM model ORDER BY id");
    auto ops = database.prepare(
        fmt::format("SELECT o.count, o.sites, o.failure, {} FROM occurrence o JOIN configuration c "
                    "ON c.id = o.configuration WHERE o.model = ? ORDER BY o.place",
                    config_columns));
    while (row.step()) {
        OpModelFacts model;
        model.name = row.text(0);
        model.sha256 = row.text(1);
        model.inputs = row.text(2);
        model.unit = parse_unit(row.text(3));
        ops.bind(0, row.integer(4));
        while (ops.step()) {
            ModelOp op;
            op.count = ops.natural(0);
            const auto sites = Json::parse(ops.text(1));
            if (sites && sites->is_array()) {
                for (const auto& site : *sites) {
                    op.sites.push_back(site.is_string() ? site.string() : "");
                }
            }
            op.failure = ops.text(2);
            op.config = config_of(ops, 3);
            model.ops.push_back(std::move(op));
        }
        ops.restart();
        all.push_back(std::move(model));
    }
    return all;
}

std::size_t copy_run(const Database& from, Database& to, const OpRun& run, std::int64_t setting) {
    auto row = to.prepare(
        "INSERT INTO run (uid, setting, started, ended, run_ns, port_ns, node_ns, what, warnings, "
        "conditions) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    const auto warnings = fmt::format("{}", join(run.warnings, "\n"));
    row.bind(0, std::string_view(run.uid)).bind(1, setting).bind(2, std::string_view(run.started));
    if (run.ended.empty()) {
        row.bind_null(3);
    } else {
        row.bind(3, std::string_view(run.ended));
    }
    bind_all(row, {run.cost.run_ns, run.cost.port_ns, run.cost.node_ns}, 4);
    row.bind(7, std::string_view(run.what))
        .bind(8, std::string_view(warnings))
        .bind(9, std::string_view(run.conditions));
    row.run();
    const auto id = to.integer("SELECT last_insert_rowid()");
    auto source = from.prepare(
        fmt::format("SELECT {} FROM measurement WHERE run = ? AND state <> 'open' ORDER BY id",
                    measurement_columns));
    source.bind(0, run.id);
    const auto list = measurements(source);
    for (const auto& one : list) {
        const bool whole = one.key.empty();
        auto open = to.prepare(fmt::format(
            "INSERT INTO measurement (run, setting, {}, mode, state) VALUES (?, ?, ?, ?, 'open')",
            whole ? "model" : "configuration"));
        open.bind(0, id)
            .bind(1, setting)
            .bind(2, std::string_view(whole ? one.model : one.key))
            .bind(3, std::string_view(name(one.mode)));
        open.run();
        auto copy = one;
        copy.id = to.integer("SELECT last_insert_rowid()");
        insert_windows(to, copy.id, windows(from, one.id));
        finish(to, copy, one.when);
    }
    return list.size();
}

std::vector<std::string> verify(const Database& database) {
    std::vector<std::string> wrong;
    auto check = database.prepare("PRAGMA integrity_check(20)");
    while (check.step()) {
        if (check.text(0) != "ok") {
            wrong.push_back("SQLite: " + check.text(0));
        }
    }
    const auto say = [&](const char* what, const char* query) {
        if (const auto count = database.integer(query); count > 0) {
            wrong.push_back(fmt::format("{} {}", count, what));
        }
    };
    say("measurements of configurations that are not there",
        "SELECT count(*) FROM measurement m WHERE configuration IS NOT NULL AND NOT EXISTS (SELECT "
        "1 FROM configuration c WHERE c.key = m.configuration)");
    say("measurements of runs that are not there",
        "SELECT count(*) FROM measurement m WHERE NOT EXISTS (SELECT 1 FROM run r WHERE r.id = "
        "m.run)");
    say("measured times that are no positive numbers, or outside their interval",
        "SELECT count(*) FROM measurement WHERE state = 'measured' AND NOT (ns >= 0 AND low_ns <= "
        "ns AND ns <= high_ns)");
    say("measured times without samples",
        "SELECT count(*) FROM measurement m WHERE state = 'measured' AND NOT EXISTS (SELECT 1 FROM "
        "sample s WHERE s.measurement = m.id)");
    say("energies that are measured but no number",
        "SELECT count(*) FROM measurement WHERE energy_label IN ('measured', 'integrated') AND "
        "gross_j IS NULL");
    say("occurrences of models or configurations that are not there",
        "SELECT count(*) FROM occurrence o WHERE NOT EXISTS (SELECT 1 FROM model m WHERE m.id = "
        "o.model) OR NOT EXISTS (SELECT 1 FROM configuration c WHERE c.id = o.configuration)");
    // A time that was put in by hand does not come out of its samples.
    auto all = database.prepare(
        fmt::format("SELECT {} FROM measurement WHERE state = 'measured'", measurement_columns));
    for (const auto& one : measurements(all)) {
        const auto again = summarize(windows(database, one.id), one.time.call_ns);
        if (std::abs(again.ns - one.time.ns) > 1e-6 * std::max(1.0, one.time.ns)) {
            wrong.push_back(fmt::format("measurement {} says {:.1f} ns, its samples {:.1f} ns",
                                        one.id, one.time.ns, again.ns));
        }
    }
    return wrong;
}

namespace {

constexpr const char* flat =
    "SELECT h.fingerprint AS host, h.cpu, s.engine, s.version, s.options, s.threads, s.build, "
    "r.uid AS run, c.key, c.unit, c.type, c.inputs, c.dtype, c.macs, c.other_flops, c.input_bytes, "
    "c.weight_bytes, c.output_bytes, m.model, m.mode, m.state, m.reason, m.ns, m.low_ns, "
    "m.high_ns, m.mean_ns, m.call_ns, m.cpu_ns, m.doubtful, m.grade, m.energy_label, "
    "m.energy_source, m.energy_why, m.gross_j, m.idle_j, m.net_j, m.energy_pm_j, m.watts, "
    "m.finished FROM measurement m JOIN run r ON r.id = m.run JOIN setting s ON s.id = m.setting "
    "JOIN host h ON h.id = s.host LEFT JOIN configuration c ON c.key = m.configuration WHERE "
    "m.state <> 'open' ORDER BY m.id";

}  // namespace

std::string csv(const Database& database) {
    auto row = database.prepare(flat);
    auto text = store::csv_names(row) + "\n";
    while (row.step()) {
        text += store::csv_row(row) + "\n";
    }
    return text;
}

std::string jsonl(const Database& database) {
    auto row = database.prepare(flat);
    std::string text;
    while (row.step()) {
        text += store::json_row(row) + "\n";
    }
    return text;
}

}  // namespace trocar::ops::rows
