#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "store/database.h"
#include "trocar/campaign_store.h"

namespace trocar {

// What stands behind a CampaignStore.
struct CampaignStore::Body {
    Body(const std::filesystem::path& path, store::Database::Mode mode, StoreOptions options)
        : database(path, mode), batch(options), read_only(mode == store::Database::Mode::read) {}

    using Clock = std::chrono::steady_clock;

    mutable std::recursive_mutex mutex;  // of all below
    store::Database database;
    StoreOptions batch;
    bool read_only;
    CampaignHeader header;
    // What waits for being committed.
    std::vector<FaultRecord> faults;
    std::vector<TrialResult> results;
    std::vector<LayerEffect> effects;
    std::vector<AuditRecord> audits;
    std::map<std::uint64_t, RunRecord> runs;
    Clock::time_point committed = Clock::now();

    std::size_t waiting() const { return faults.size() + results.size() + effects.size(); }
    void commit();
    void commit_if_due();
};

namespace store {

void write_header(Database& database, const CampaignHeader& header);
// Nothing but the header of the file, when that is of a store that this version reads; else throws.
CampaignHeader read_header(const Database& database);

// Rows into their tables. What is there already must be the same.
void write(Database& database, std::span<const Stratum> strata);
void write(Database& database, std::span<const FaultRecord> faults);
void write(Database& database, std::span<const TrialResult> results);
void write(Database& database, std::span<const LayerEffect> effects);
void write(Database& database, std::span<const GoldenInput> inputs);
void write(Database& database, std::span<const AuditRecord> audits);
void write(Database& database, const RunRecord& run);

}  // namespace store

}  // namespace trocar
