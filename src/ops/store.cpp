#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "ops/store_rows.h"
#include "trocar/error.h"
#include "trocar/version.h"

namespace trocar {

namespace {

using store::Database;
using store::Statement;
using store::Transaction;
namespace fs = std::filesystem;

constexpr std::int64_t application = 0x54524f50;  // "TROP"
constexpr std::int64_t schema_version = 1;

std::string random_id() {
    std::array<unsigned char, 16> bytes{};
    if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
        throw Error(Fault::internal, "the system gives no random numbers");
    }
    std::string text;
    for (const auto byte : bytes) {
        text += fmt::format("{:02x}", byte);
    }
    return text;
}

Database open_file(const fs::path& path, OpDatabase::Mode mode) {
    const bool there = fs::exists(path);
    if (!there && mode == OpDatabase::Mode::read) {
        throw Error(Fault::input,
                    fmt::format("cannot open '{}': there is no such file", path.string()),
                    "`trocar ops measure MODEL --db FILE` makes one");
    }
    if (there && !store::is_sqlite(path) && fs::file_size(path) > 0) {
        throw Error(Fault::input, fmt::format("'{}' is no database of operators", path.string()));
    }
    Database database(path, there ? (mode == OpDatabase::Mode::read ? Database::Mode::read
                                                                    : Database::Mode::write)
                                  : Database::Mode::create);
    if (database.integer("SELECT count(*) FROM sqlite_master") == 0 &&
        mode == OpDatabase::Mode::create) {
        Transaction all(database);
        database.run(op_schema());
        database.run(fmt::format("PRAGMA application_id = {}", application));
        database.run(fmt::format("PRAGMA user_version = {}", schema_version));
        all.commit();
    }
    if (database.integer("SELECT count(*) FROM sqlite_master") == 0) {
        throw Error(Fault::input, fmt::format("'{}' is empty", path.string()),
                    "`trocar ops measure MODEL --db FILE` fills it");
    }
    if (database.integer("PRAGMA application_id") != application) {
        throw Error(Fault::input, fmt::format("'{}' is no database of operators", path.string()));
    }
    if (const auto version = database.integer("PRAGMA user_version"); version != schema_version) {
        throw Error(Fault::input,
                    fmt::format("'{}' has version {} of the schema; this build knows {}",
                                path.string(), version, schema_version),
                    version > schema_version ? "a newer trocar made it" : "");
    }
    return database;
}

std::optional<std::int64_t> first_integer(Statement& statement) {
    if (!statement.step()) {
        return std::nullopt;
    }
    const auto value = statement.integer(0);
    statement.restart();
    return value;
}

}  // namespace

const char* name(OpState state) {
    switch (state) {
        case OpState::open:
            return "open";
        case OpState::measured:
            return "measured";
        case OpState::failed:
            return "failed";
        case OpState::crashed:
            return "crashed";
        case OpState::hung:
            return "hung";
        case OpState::over_memory:
            return "over memory";
        default:
            return "not applicable";
    }
}

std::string model_id(const OpModelFacts& model) {
    return fmt::format("{} {} {}", model.sha256, ops::rows::unit_name(model.unit), model.inputs);
}

struct OpDatabase::Parts {
    Database database;
};

OpDatabase::OpDatabase(const fs::path& path, Mode mode)
    : parts_(new Parts{open_file(path, mode)}) {}
OpDatabase::OpDatabase(OpDatabase&&) noexcept = default;
OpDatabase& OpDatabase::operator=(OpDatabase&&) noexcept = default;
OpDatabase::~OpDatabase() = default;
const fs::path& OpDatabase::path() const {
    return parts_->database.path();
}

std::optional<std::int64_t> OpDatabase::find(const OpSetting& setting) const {
    auto find = parts_->database.prepare(
        "SELECT s.id FROM setting s JOIN host h ON h.id = s.host WHERE h.fingerprint = ? AND "
        "engine = ? AND version = ? AND options = ? AND threads = ? AND build = ?");
    find.bind(0, std::string_view(setting.host.fingerprint))
        .bind(1, std::string_view(setting.engine))
        .bind(2, std::string_view(setting.version))
        .bind(3, std::string_view(setting.options))
        .bind(4, setting.threads)
        .bind(5, std::string_view(setting.build));
    return first_integer(find);
}

std::int64_t OpDatabase::add(const OpSetting& setting) {
    if (const auto there = find(setting)) {
        return *there;
    }
    auto& database = parts_->database;
    Transaction all(database);
    auto host = database.prepare(
        "INSERT OR IGNORE INTO host (fingerprint, cpu, cores, cache_bytes, memory_bytes, system, "
        "hypervisor) VALUES (?, ?, ?, ?, ?, ?, ?)");
    host.bind(0, std::string_view(setting.host.fingerprint))
        .bind(1, std::string_view(setting.host.cpu))
        .bind(2, setting.host.cores)
        .bind(3, setting.host.cache_bytes)
        .bind(4, setting.host.memory_bytes)
        .bind(5, std::string_view(setting.host.system))
        .bind(6, std::string_view(setting.host.hypervisor));
    host.run();
    auto row = database.prepare(
        "INSERT INTO setting (host, engine, version, options, threads, build) SELECT id, ?, ?, ?, "
        "?, ? FROM host WHERE fingerprint = ?");
    row.bind(0, std::string_view(setting.engine))
        .bind(1, std::string_view(setting.version))
        .bind(2, std::string_view(setting.options))
        .bind(3, setting.threads)
        .bind(4, std::string_view(setting.build))
        .bind(5, std::string_view(setting.host.fingerprint));
    row.run();
    all.commit();
    return find(setting).value();
}

std::int64_t OpDatabase::begin_run(std::int64_t setting, const CallCost& cost,
                                   const std::string& what) {
    auto& database = parts_->database;
    const auto uid = random_id();
    const auto started = store::now();
    auto row = database.prepare(
        "INSERT INTO run (uid, setting, started, run_ns, port_ns, node_ns, what) VALUES (?, ?, ?, "
        "?, ?, ?, ?)");
    row.bind(0, std::string_view(uid))
        .bind(1, setting)
        .bind(2, std::string_view(started))
        .bind(3, cost.run_ns)
        .bind(4, cost.port_ns)
        .bind(5, cost.node_ns)
        .bind(6, std::string_view(what));
    row.run();
    return database.integer("SELECT last_insert_rowid()");
}

void OpDatabase::end_run(std::int64_t run, const std::vector<std::string>& warnings,
                         const std::string& conditions) {
    auto row = parts_->database.prepare(
        "UPDATE run SET ended = ?, warnings = ?, conditions = ? WHERE id = ? AND ended IS NULL");
    const auto ended = store::now();
    std::string text;
    for (const auto& warning : warnings) {
        text += (text.empty() ? "" : "\n") + warning;
    }
    row.bind(0, std::string_view(ended))
        .bind(1, std::string_view(text))
        .bind(2, std::string_view(conditions))
        .bind(3, run);
    row.run();
}

void OpDatabase::add(const OpConfig& config) {
    ops::rows::insert(parts_->database, config);
}

void OpDatabase::add(const OpModelFacts& model) {
    auto& database = parts_->database;
    Transaction all(database);
    ops::rows::insert(database, model);
    all.commit();
}

OpMeasurement OpDatabase::open_measurement(std::int64_t run, std::int64_t setting,
                                           const std::string& key, const std::string& model,
                                           CacheMode mode) {
    auto& database = parts_->database;
    OpMeasurement measurement;
    measurement.run = run;
    measurement.setting = setting;
    measurement.key = key;
    measurement.model = model;
    measurement.mode = mode;
    const bool whole = key.empty();
    auto left = database.prepare(
        fmt::format("SELECT id FROM measurement WHERE setting = ? AND {} = ? AND mode = ? AND "
                    "state = 'open' ORDER BY id DESC",
                    whole ? "model" : "configuration"));
    left.bind(0, setting)
        .bind(1, std::string_view(whole ? model : key))
        .bind(2, std::string_view(name(mode)));
    if (const auto id = first_integer(left)) {
        measurement.id = *id;
        measurement.time.windows = ops::rows::windows(database, *id);
        return measurement;
    }
    auto row = database.prepare(
        fmt::format("INSERT INTO measurement (run, setting, {}, mode, state) VALUES (?, ?, ?, ?, "
                    "'open')",
                    whole ? "model" : "configuration"));
    row.bind(0, run)
        .bind(1, setting)
        .bind(2, std::string_view(whole ? model : key))
        .bind(3, std::string_view(name(mode)));
    row.run();
    measurement.id = database.integer("SELECT last_insert_rowid()");
    return measurement;
}

void OpDatabase::add_windows(
    const std::vector<std::pair<std::int64_t, std::vector<OpWindow>>>& windows) {
    auto& database = parts_->database;
    Transaction all(database);
    for (const auto& [id, list] : windows) {
        ops::rows::insert_windows(database, id, list);
    }
    all.commit();
}

void OpDatabase::finish(const OpMeasurement& measurement) {
    auto& database = parts_->database;
    Transaction all(database);
    ops::rows::finish(database, measurement, store::now());
    all.commit();
}

OpSetting OpDatabase::setting(std::int64_t id) const {
    auto row = parts_->database.prepare(
        "SELECT fingerprint, cpu, cores, cache_bytes, memory_bytes, system, hypervisor, engine, "
        "version, options, threads, build FROM setting s JOIN host h ON h.id = s.host WHERE s.id = "
        "?");
    row.bind(0, id);
    if (!row.step()) {
        throw Error(Fault::usage, fmt::format("the database has no setting {}", id));
    }
    OpSetting setting;
    setting.host = {row.text(0),    row.text(1),    static_cast<int>(row.integer(2)),
                    row.natural(3), row.natural(4), row.text(5),
                    row.text(6)};
    setting.engine = row.text(7);
    setting.version = row.text(8);
    setting.options = row.text(9);
    setting.threads = static_cast<int>(row.integer(10));
    setting.build = row.text(11);
    return setting;
}

std::vector<std::int64_t> OpDatabase::settings() const {
    std::vector<std::int64_t> all;
    auto row = parts_->database.prepare("SELECT id FROM setting ORDER BY id");
    while (row.step()) {
        all.push_back(row.integer(0));
    }
    return all;
}

std::vector<OpModelFacts> OpDatabase::models() const {
    return ops::rows::models(parts_->database);
}

std::vector<OpConfig> OpDatabase::configs() const {
    return ops::rows::configs(parts_->database);
}

std::optional<OpConfig> OpDatabase::find_config(const std::string& key) const {
    std::optional<OpConfig> found;
    for (auto& config : configs()) {
        if (!key.empty() && config.key.starts_with(key)) {
            if (found) {
                throw Error(Fault::usage,
                            fmt::format("several configurations begin with '{}'", key));
            }
            found = std::move(config);
        }
    }
    return found;
}

std::vector<OpRun> OpDatabase::runs() const {
    std::vector<OpRun> all;
    auto row = parts_->database.prepare(
        "SELECT id, uid, started, ended, setting, run_ns, port_ns, node_ns, what, warnings, "
        "conditions FROM run ORDER BY id");
    while (row.step()) {
        OpRun run;
        run.id = row.integer(0);
        run.uid = row.text(1);
        run.started = row.text(2);
        run.ended = row.text(3);
        run.setting = row.integer(4);
        run.cost = {row.number(5), row.number(6), row.number(7)};
        run.what = row.text(8);
        if (const auto text = row.text(9); !text.empty()) {
            run.warnings.push_back(text);
        }
        run.conditions = row.text(10);
        all.push_back(std::move(run));
    }
    return all;
}

std::vector<OpMeasurement> OpDatabase::newest(std::int64_t setting) const {
    auto row = parts_->database.prepare(fmt::format(
        "SELECT {} FROM measurement WHERE id IN (SELECT max(id) FROM measurement WHERE setting = ? "
        "AND state <> 'open' GROUP BY configuration, model, mode) ORDER BY id",
        ops::rows::measurement_columns));
    row.bind(0, setting);
    return ops::rows::measurements(row);
}

std::vector<OpMeasurement> OpDatabase::all_of(const std::string& key) const {
    auto row = parts_->database.prepare(
        fmt::format("SELECT {} FROM measurement WHERE configuration = ? OR model = ? ORDER BY id",
                    ops::rows::measurement_columns));
    row.bind(0, std::string_view(key)).bind(1, std::string_view(key));
    auto all = ops::rows::measurements(row);
    for (auto& one : all) {
        one.time.windows = ops::rows::windows(parts_->database, one.id);
    }
    return all;
}

std::size_t OpDatabase::count(OpState state) const {
    auto row = parts_->database.prepare("SELECT count(*) FROM measurement WHERE state = ?");
    row.bind(0, std::string_view(name(state)));
    return static_cast<std::size_t>(first_integer(row).value_or(0));
}

std::size_t OpDatabase::merge(const OpDatabase& other) {
    if (fs::exists(path()) && fs::equivalent(path(), other.path())) {
        throw Error(Fault::usage, "a database cannot be merged into itself");
    }
    auto& database = parts_->database;
    const auto& from = other.parts_->database;
    Transaction all(database);
    for (const auto& config : other.configs()) {
        ops::rows::insert(database, config);
    }
    for (const auto& model : other.models()) {
        ops::rows::insert(database, model);
    }
    all.commit();
    std::size_t added = 0;
    for (const auto& run : other.runs()) {
        auto there = database.prepare("SELECT id FROM run WHERE uid = ?");
        there.bind(0, std::string_view(run.uid));
        if (first_integer(there)) {
            continue;
        }
        const auto setting = add(other.setting(run.setting));
        Transaction one(database);
        added += ops::rows::copy_run(from, database, run, setting);
        one.commit();
    }
    return added;
}

std::vector<std::string> OpDatabase::verify() const {
    return ops::rows::verify(parts_->database);
}
std::string OpDatabase::export_csv() const {
    return ops::rows::csv(parts_->database);
}
std::string OpDatabase::export_jsonl() const {
    return ops::rows::jsonl(parts_->database);
}

}  // namespace trocar
