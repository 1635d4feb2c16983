#include <fmt/format.h>

#include <cmath>

#include "store/body.h"
#include "store/rows.h"
#include "trocar/error.h"

namespace trocar {

namespace store {

namespace {

[[noreturn]] void refuse_other(const Database& database, const std::string& what) {
    throw Error(Fault::input,
                fmt::format("'{}' has another row for {}", database.path().string(), what),
                "the two come from campaigns that are not the same, or one of them is not exact");
}

Statement& bind_some(Statement& row, int place, const std::string& text) {
    return text.empty() ? row.bind_null(place) : row.bind(place, std::string_view(text));
}

Statement& bind_some(Statement& row, int place, const std::optional<bool>& value) {
    return value ? row.bind(place, *value) : row.bind_null(place);
}

Statement& bind_place(Statement& row, int place, std::int64_t value) {
    return value < 0 ? row.bind_null(place) : row.bind(place, value);
}

// Which columns of results the decision of the campaign fills: sdc1; sdc5 to sdc20.
std::pair<bool, bool> columns_of(const Database& database) {
    auto row = database.prepare("SELECT decision FROM campaign");
    const auto decision = row.step() ? row.text(0) : std::string();
    return {decision != "none", decision.empty() || decision.starts_with("scores")};
}

}  // namespace

void write(Database& database, std::span<const Stratum> strata) {
    auto row = database.prepare("INSERT OR IGNORE INTO strata VALUES (?, ?, ?, ?, ?, ?, ?)");
    for (std::size_t i = 0; i < strata.size(); ++i) {
        const auto& stratum = strata[i];
        row.bind(0, std::uint64_t{i}).bind(1, std::string_view(stratum.name));
        bind_some(row, 2, stratum.target);
        bind_some(row, 3, stratum.layer);
        bind_place(row, 4, stratum.bit);
        row.bind(5, stratum.population).bind(6, stratum.planned).run();
        if (database.changes() == 0) {
            const auto there = read_stratum(database, i);
            if (there.name != stratum.name || there.population != stratum.population ||
                there.planned != stratum.planned) {
                refuse_other(database, fmt::format("stratum {}", i));
            }
        }
    }
}

void write(Database& database, std::span<const FaultRecord> faults) {
    auto row =
        database.prepare("INSERT OR IGNORE INTO faults VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    auto same = select_fault(database, "WHERE trial = ?");
    for (const auto& fault : faults) {
        const auto hash = fmt::format("{:016x}", fault.hash);
        row.bind(0, fault.trial)
            .bind(1, std::uint64_t{fault.stratum})
            .bind(2, fault.weight)
            .bind(3, std::string_view(fault.text))
            .bind(4, std::string_view(hash));
        bind_some(row, 5, fault.target);
        bind_some(row, 6, fault.layer);
        bind_some(row, 7, fault.tensor);
        bind_some(row, 8, fault.effect);
        bind_place(row, 9, fault.bit);
        row.bind(10, fault.rate).run();
        if (database.changes() == 0) {
            same.bind(0, fault.trial).step();
            if (fault_of(same) != fault) {
                refuse_other(database, fmt::format("the fault of trial {}", fault.trial));
            }
            same.restart();
        }
    }
}

void write(Database& database, std::span<const TrialResult> results) {
    auto row = database.prepare(
        "INSERT OR IGNORE INTO results VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
        "?, ?, ?, ?)");
    const auto [decided, scored] = columns_of(database);
    auto same = select_result(database, "WHERE trial = ? AND input = ?");
    auto metric = database.prepare("INSERT INTO metrics VALUES (?, ?, ?, ?)");
    for (const auto& result : results) {
        const auto outcome = name(result.outcome);
        row.bind(0, result.trial).bind(1, result.input).bind(2, std::string_view(outcome));
        bind_place(row, 3, result.golden_top);
        bind_place(row, 4, result.faulty_top);
        const auto bind_where = [&row](bool there, int place, bool value) {
            there ? row.bind(place, value) : row.bind_null(place);
        };
        bind_where(decided, 5, result.sdc1);
        bind_where(scored, 6, result.sdc5);
        bind_where(scored, 7, result.sdc10);
        bind_where(scored, 8, result.sdc20);
        bind_some(row, 9, result.golden_correct);
        bind_some(row, 10, result.faulty_correct);
        row.bind(11, result.detected)
            .bind(12, result.max_abs)
            .bind(13, result.mean_abs)
            .bind(14, result.max_rel)
            .bind(15, result.sqnr_db)
            .bind(16, result.cosine)
            .bind(17, result.metric);
        bind_some(row, 18, result.failure);
        if (result.positions > 0) {
            row.bind(19, result.positions).bind(20, result.changed);
        } else {
            row.bind_null(19).bind_null(20);
        }
        row.run();
        if (database.changes() == 0) {
            same.bind(0, result.trial).bind(1, result.input).step();
            auto there = result_of(same);
            there.metrics = read_metrics(database, result.trial, result.input);
            if (!(there == result)) {
                refuse_other(database,
                             fmt::format("trial {}, input {}", result.trial, result.input));
            }
            same.restart();
            continue;
        }
        for (const auto& [name, number] : result.metrics) {
            metric.bind(0, result.trial)
                .bind(1, result.input)
                .bind(2, std::string_view(name))
                .bind(3, number)
                .run();
        }
    }
}

void write(Database& database, std::span<const LayerEffect> effects) {
    auto row = database.prepare("INSERT OR IGNORE INTO layer_effects VALUES (?, ?, ?, ?, ?, ?, ?)");
    auto same = select_effect(database, "WHERE trial = ? AND input = ? AND tensor = ? AND op = ?");
    for (const auto& effect : effects) {
        row.bind(0, effect.trial)
            .bind(1, effect.input)
            .bind(2, std::string_view(effect.tensor))
            .bind(3, std::string_view(effect.op))
            .bind(4, effect.changed)
            .bind(5, effect.bad)
            .bind(6, effect.max_abs)
            .run();
        if (database.changes() == 0) {
            same.bind(0, effect.trial)
                .bind(1, effect.input)
                .bind(2, std::string_view(effect.tensor))
                .bind(3, std::string_view(effect.op))
                .step();
            if (!same_effect(effect_of(same), effect)) {
                refuse_other(database, fmt::format("tensor '{}' in trial {}, input {}",
                                                   effect.tensor, effect.trial, effect.input));
            }
            same.restart();
        }
    }
}

void write(Database& database, std::span<const GoldenInput> inputs) {
    auto row = database.prepare("INSERT OR IGNORE INTO golden VALUES (?, ?, ?, ?, ?)");
    auto output = database.prepare("INSERT INTO golden_outputs VALUES (?, ?, ?, ?, ?, ?)");
    for (const auto& golden : inputs) {
        row.bind(0, golden.input).bind(1, std::string_view(golden.name));
        golden.label ? row.bind(2, *golden.label) : row.bind_null(2);
        bind_place(row, 3, golden.top);
        bind_some(row, 4, golden.correct).run();
        if (database.changes() == 0) {
            if (read_golden(database, golden.input) != golden) {
                refuse_other(database, fmt::format("the golden run of input {}", golden.input));
            }
            continue;
        }
        for (std::size_t i = 0; i < golden.outputs.size(); ++i) {
            const auto& one = golden.outputs[i];
            const auto dtype = name(one.dtype);
            const auto shape = shape_of(one.shape);
            output.bind(0, golden.input)
                .bind(1, std::uint64_t{i})
                .bind(2, std::string_view(one.name))
                .bind(3, std::string_view(dtype))
                .bind(4, std::string_view(shape))
                .bind(5, std::span<const std::byte>(one.bytes))
                .run();
        }
    }
}

void write(Database& database, std::span<const AuditRecord> audits) {
    auto row = database.prepare("INSERT OR REPLACE INTO audits VALUES (?, ?, ?, ?, ?)");
    for (const auto& audit : audits) {
        row.bind(0, audit.run).bind(1, audit.trial).bind(2, audit.input).bind(3, audit.same);
        bind_some(row, 4, audit.difference).run();
    }
}

void write(Database& database, const RunRecord& run) {
    auto row = database.prepare("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
    row.bind(0, run.run).bind(1, std::string_view(run.started));
    bind_some(row, 2, run.ended)
        .bind(3, run.trials)
        .bind(4, run.seconds)
        .bind(5, run.results)
        .bind(6, run.shard)
        .bind(7, run.shards)
        .run();
    auto saving = database.prepare("INSERT OR REPLACE INTO savings VALUES (?, ?, ?)");
    for (const auto& [key, number] : run.saved) {
        saving.bind(0, run.run).bind(1, std::string_view(key)).bind(2, number).run();
    }
}

}  // namespace store

void CampaignStore::Body::commit() {
    const std::scoped_lock lock(mutex);
    if (waiting() == 0 && audits.empty() && runs.empty()) {
        return;
    }
    store::Transaction transaction(database);
    store::write(database, std::span<const FaultRecord>(faults));
    store::write(database, std::span<const TrialResult>(results));
    store::write(database, std::span<const LayerEffect>(effects));
    store::write(database, std::span<const AuditRecord>(audits));
    for (const auto& [number, run] : runs) {
        store::write(database, run);
    }
    transaction.commit();
    faults.clear();
    results.clear();
    effects.clear();
    audits.clear();
    runs.clear();
    committed = Clock::now();
}

void CampaignStore::Body::commit_if_due() {
    const std::chrono::duration<double> since = Clock::now() - committed;
    if (waiting() >= batch.batch_rows || since.count() >= batch.batch_seconds) {
        commit();
    }
}

void CampaignStore::set_strata(std::span<const Stratum> strata) {
    const std::scoped_lock lock(body_->mutex);
    store::Transaction transaction(body_->database);
    store::write(body_->database, strata);
    transaction.commit();
}

void CampaignStore::add_golden(std::span<const GoldenInput> inputs) {
    const std::scoped_lock lock(body_->mutex);
    store::Transaction transaction(body_->database);
    store::write(body_->database, inputs);
    transaction.commit();
}

void CampaignStore::add_faults(std::span<const FaultRecord> faults) {
    const std::scoped_lock lock(body_->mutex);
    body_->faults.insert(body_->faults.end(), faults.begin(), faults.end());
}

void CampaignStore::append(std::span<const TrialResult> results,
                           std::span<const LayerEffect> effects) {
    const std::scoped_lock lock(body_->mutex);
    body_->results.insert(body_->results.end(), results.begin(), results.end());
    body_->effects.insert(body_->effects.end(), effects.begin(), effects.end());
    body_->commit_if_due();
}

void CampaignStore::add_audits(std::span<const AuditRecord> audits) {
    const std::scoped_lock lock(body_->mutex);
    body_->audits.insert(body_->audits.end(), audits.begin(), audits.end());
}

std::uint64_t CampaignStore::begin_run(std::uint64_t shard, std::uint64_t shards) {
    const std::scoped_lock lock(body_->mutex);
    store::Transaction transaction(body_->database);
    RunRecord run;
    run.run = static_cast<std::uint64_t>(
        body_->database.integer("SELECT coalesce(max(run), 0) + 1 FROM runs"));
    run.started = store::now();
    run.shard = shard;
    run.shards = shards;
    store::write(body_->database, run);
    transaction.commit();
    return run.run;
}

void CampaignStore::update_run(const RunRecord& run) {
    const std::scoped_lock lock(body_->mutex);
    auto& waiting = body_->runs[run.run] = run;
    if (waiting.started.empty()) {
        auto row = body_->database.prepare("SELECT started FROM runs WHERE run = ?");
        row.bind(0, run.run);
        waiting.started = row.step() ? row.text(0) : store::now();
    }
}

void CampaignStore::end_run(RunRecord run) {
    run.ended = store::now();
    update_run(run);
}

void CampaignStore::commit() {
    body_->commit();
}

void CampaignStore::finish() {
    const std::scoped_lock lock(body_->mutex);
    body_->commit();
    store::Transaction transaction(body_->database);
    const auto now = store::now();
    auto row = body_->database.prepare("UPDATE campaign SET finished = ? WHERE finished IS NULL");
    row.bind(0, std::string_view(now)).run();
    transaction.commit();
    if (body_->header.finished.empty()) {
        body_->header.finished = now;
    }
}

}  // namespace trocar
