#include <algorithm>

#include "store/body.h"
#include "store/rows.h"

namespace trocar {

void DonePairs::add(std::uint64_t trial, std::uint64_t input) {
    ++size_;
    if (!row_.empty() && row_.back().first_trial == trial && row_.back().last_input + 1 == input) {
        row_.back().last_input = input;
        return;
    }
    if (!row_.empty() && row_.back().first_trial != trial) {
        close_row();
    }
    row_.push_back({trial, trial, input, input});
}

// Joins the last trial with the one before where both have the same inputs.
void DonePairs::close_row() {
    const auto before = std::span(blocks_).subspan(last_row_);
    const bool joins = std::equal(
        before.begin(), before.end(), row_.begin(), row_.end(), [](const Block& a, const Block& b) {
            return a.last_trial + 1 == b.first_trial && a.first_input == b.first_input &&
                   a.last_input == b.last_input;
        });
    if (joins) {
        for (auto& block : before) {
            ++block.last_trial;
        }
    } else {
        last_row_ = blocks_.size();
        blocks_.insert(blocks_.end(), row_.begin(), row_.end());
    }
    row_.clear();
}

bool DonePairs::contains(std::uint64_t trial, std::uint64_t input) const {
    const auto covers = [&](const Block& block) {
        return block.first_trial <= trial && trial <= block.last_trial &&
               block.first_input <= input && input <= block.last_input;
    };
    if (std::any_of(row_.begin(), row_.end(), covers)) {
        return true;
    }
    // Blocks of the same trials stand together, ordered by their inputs.
    const auto from =
        std::lower_bound(blocks_.begin(), blocks_.end(), trial,
                         [](const Block& block, std::uint64_t t) { return block.last_trial < t; });
    for (auto at = from; at != blocks_.end() && at->first_trial <= trial; ++at) {
        if (covers(*at)) {
            return true;
        }
    }
    return false;
}

DonePairs CampaignStore::done(std::uint64_t first_trial, std::uint64_t last_trial) const {
    const std::scoped_lock lock(body_->mutex);
    DonePairs pairs;
    auto row = body_->database.prepare(
        "SELECT trial, input FROM results WHERE trial BETWEEN ? AND ? ORDER BY trial, input");
    row.bind(0, first_trial).bind(1, last_trial);
    while (row.step()) {
        pairs.add(row.natural(0), row.natural(1));
    }
    return pairs;
}

std::uint64_t CampaignStore::result_count() const {
    const std::scoped_lock lock(body_->mutex);
    return static_cast<std::uint64_t>(body_->database.integer("SELECT count(*) FROM results"));
}

std::uint64_t CampaignStore::trial_count() const {
    const std::scoped_lock lock(body_->mutex);
    return static_cast<std::uint64_t>(
        body_->database.integer("SELECT count(DISTINCT trial) FROM results"));
}

std::vector<Stratum> CampaignStore::strata() const {
    const std::scoped_lock lock(body_->mutex);
    std::vector<Stratum> all;
    const auto count = body_->database.integer("SELECT coalesce(max(stratum) + 1, 0) FROM strata");
    for (std::int64_t i = 0; i < count; ++i) {
        all.push_back(store::read_stratum(body_->database, static_cast<std::uint64_t>(i)));
    }
    return all;
}

std::optional<FaultRecord> CampaignStore::fault(std::uint64_t trial) const {
    const std::scoped_lock lock(body_->mutex);
    auto row = store::select_fault(body_->database, "WHERE trial = ?");
    return row.bind(0, trial).step() ? std::optional(store::fault_of(row)) : std::nullopt;
}

std::vector<TrialResult> CampaignStore::results_of(std::uint64_t trial) const {
    const std::scoped_lock lock(body_->mutex);
    auto row = store::select_result(body_->database, "WHERE trial = ? ORDER BY input");
    row.bind(0, trial);
    std::vector<TrialResult> all;
    const bool named = store::has_metrics(body_->database);
    while (row.step()) {
        all.push_back(store::result_of(row));
        if (named) {
            all.back().metrics = store::read_metrics(body_->database, trial, all.back().input);
        }
    }
    return all;
}

std::vector<LayerEffect> CampaignStore::effects_of(std::uint64_t trial) const {
    const std::scoped_lock lock(body_->mutex);
    auto row = store::select_effect(body_->database, "WHERE trial = ? ORDER BY input, tensor, op");
    row.bind(0, trial);
    std::vector<LayerEffect> all;
    while (row.step()) {
        all.push_back(store::effect_of(row));
    }
    return all;
}

std::optional<GoldenInput> CampaignStore::golden(std::uint64_t input) const {
    const std::scoped_lock lock(body_->mutex);
    return store::read_golden(body_->database, input);
}

std::vector<RunRecord> CampaignStore::runs() const {
    const std::scoped_lock lock(body_->mutex);
    std::vector<RunRecord> all;
    // Versions before 3 counted results as trials, and did not know shards.
    const bool known = body_->database.integer("PRAGMA user_version") >= 3;
    auto row = body_->database.prepare(
        std::string("SELECT run, started, ended, trials, seconds, ") +
        (known ? "results, shard, shards" : "trials, 0, 1") + " FROM runs ORDER BY run");
    auto saving = body_->database.prepare("SELECT key, number FROM savings WHERE run = ?");
    while (row.step()) {
        auto& run = all.emplace_back();
        run.run = row.natural(0);
        run.started = row.text(1);
        run.ended = row.text(2);
        run.trials = row.natural(3);
        run.seconds = row.number(4);
        run.results = row.natural(5);
        run.shard = row.natural(6);
        run.shards = std::max<std::uint64_t>(row.natural(7), 1);
        saving.bind(0, run.run);
        while (saving.step()) {
            run.saved.emplace_back(saving.text(0), saving.number(1));
        }
        saving.restart();
    }
    return all;
}

std::vector<AuditRecord> CampaignStore::audits() const {
    const std::scoped_lock lock(body_->mutex);
    std::vector<AuditRecord> all;
    auto row = body_->database.prepare(
        "SELECT run, trial, input, same, difference FROM audits ORDER BY run, trial, input");
    while (row.step()) {
        all.push_back(
            {row.natural(0), row.natural(1), row.natural(2), row.integer(3) != 0, row.text(4)});
    }
    return all;
}

void CampaignStore::each_fault(const std::function<bool(const FaultRecord&)>& visit) const {
    const std::scoped_lock lock(body_->mutex);
    auto row = store::select_fault(body_->database, "ORDER BY trial");
    while (row.step() && visit(store::fault_of(row))) {
    }
}

void CampaignStore::each_result(const std::function<bool(const TrialResult&)>& visit) const {
    const std::scoped_lock lock(body_->mutex);
    auto row = store::select_result(body_->database, "ORDER BY trial, input");
    const bool named = store::has_metrics(body_->database);
    while (row.step()) {
        auto result = store::result_of(row);
        if (named) {
            result.metrics = store::read_metrics(body_->database, result.trial, result.input);
        }
        if (!visit(result)) {
            break;
        }
    }
}

void CampaignStore::each_effect(const std::function<bool(const LayerEffect&)>& visit) const {
    const std::scoped_lock lock(body_->mutex);
    auto row = store::select_effect(body_->database, "ORDER BY trial, input, tensor, op");
    while (row.step() && visit(store::effect_of(row))) {
    }
}

void CampaignStore::each_golden(const std::function<bool(const GoldenInput&)>& visit,
                                bool outputs) const {
    const std::scoped_lock lock(body_->mutex);
    auto row = body_->database.prepare("SELECT input FROM golden ORDER BY input");
    while (row.step()) {
        const auto golden = store::read_golden(body_->database, row.natural(0), outputs);
        if (golden && !visit(*golden)) {
            break;
        }
    }
}

}  // namespace trocar
