#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trocar/campaign.h"
#include "trocar/dtype.h"
#include "trocar/graph.h"
#include "trocar/tensor.h"
#include "trocar/value.h"

#pragma GCC visibility push(default)
namespace trocar {

// The store of a campaign is one SQLite file; docs/inject-store.md has its tables and views.

// What a campaign is. Work goes on in a store, and stores are merged, only where all of this but
// paths, threads and context is the same.
struct CampaignHeader {
    std::string campaign;  // its canonical text
    std::string hash;      // of the text: SHA-256; empty: `create` takes it
    std::uint64_t seed = 0;
    std::string model;         // path
    std::string model_sha256;  // of the file
    std::string data;          // path; empty: no data
    std::string data_hash;
    std::string engine;
    std::string engine_version;
    std::string view;  // "deployed", "source"
    // The decision, complete, and what it means; empty in stores of schema 2 and before, whose
    // results are of the first choice along the last axis of the first output.
    std::string decision = {};
    std::string decision_meaning = {};
    int threads = 1;
    std::vector<Property> context;  // host, CPU…
    // Times in UTC, "2026-11-16T03:44:48Z". `create` fills the first, `finish` the second.
    std::string created = {};
    std::string finished = {};
};

// What was injected in one trial, in columns.
struct FaultRecord {
    std::uint64_t trial = 0;
    std::uint32_t stratum = 0;
    double weight = 1;       // likelihood ratio
    std::string text;        // of all faults of the trial; reads back
    std::uint64_t hash = 0;  // of the same
    // Where all faults of the trial agree; else empty, -1, NaN.
    std::string target = {};  // "weights"
    std::string layer = {};   // the op
    std::string tensor = {};
    std::string effect = {};  // "flip"
    int bit = -1;
    double rate = std::numeric_limits<double>::quiet_NaN();  // bit-error rate, where that is it

    bool operator==(const FaultRecord& other) const;  // NaN equals NaN
};

// Of a trial as it was drawn.
FaultRecord fault_record(const Trial& trial);

struct GoldenOutput {
    std::string name;
    DType dtype = DType::undefined;
    Shape shape;
    std::vector<std::byte> bytes;
    bool operator==(const GoldenOutput&) const = default;
};

// From and to values. Tensors in host memory with elements of a fixed size; others throw
// Error(unsupported).
GoldenOutput golden_output(const NamedValue& value);
NamedValue golden_value(const GoldenOutput& output);

// The fault-free run of one input.
struct GoldenInput {
    std::uint64_t input = 0;
    std::string name;  // "images/7.png"
    std::optional<std::int64_t> label;
    std::int64_t top = -1;  // first choice; -1: none
    std::optional<bool> correct;
    std::vector<GoldenOutput> outputs;
    bool operator==(const GoldenInput&) const = default;
};

// One session of work on a campaign.
struct RunRecord {
    std::uint64_t run = 0;
    std::string started;
    std::string ended;         // empty: it was killed, or is under way
    std::uint64_t shard = 0;   // trials whose number leaves this remainder …
    std::uint64_t shards = 1;  // … divided by this
    std::uint64_t trials = 0;  // that have results of this session
    std::uint64_t results = 0;
    double seconds = 0;
    std::vector<std::pair<std::string, double>> saved;  // by acceleration: what it saved
};

// A trial that was done again by brute force.
struct AuditRecord {
    std::uint64_t run = 0;
    std::uint64_t trial = 0;
    std::uint64_t input = 0;
    bool same = true;
    std::string difference;
};

// Pairs of trial and input, kept as rectangles of neighbours.
class DonePairs {
public:
    // In ascending order of (trial, input).
    void add(std::uint64_t trial, std::uint64_t input);
    bool contains(std::uint64_t trial, std::uint64_t input) const;
    std::uint64_t size() const { return size_; }

private:
    struct Block {
        std::uint64_t first_trial, last_trial;
        std::uint64_t first_input, last_input;
    };
    void close_row();
    std::vector<Block> blocks_;  // by trial, then input; whole trials are joined
    std::vector<Block> row_;     // of the last trial
    std::size_t last_row_ = 0;   // blocks of the last closed row begin here
    std::uint64_t size_ = 0;
    friend class CampaignStore;
};

struct StoreOptions {
    std::size_t batch_rows = 4096;  // rows that wait at most for being committed
    double batch_seconds = 1;       // so long at most, when rows come
};

// The results of a campaign, on disk. What was committed survives SIGKILL, power loss and a full
// disk. Rows are the same whatever the order in which they came. Any thread may call; two processes
// may write to the same store, one after the other's commit.
//
// All throw Error(input) when the file cannot be read or written; what was committed before is
// there then, and what was not waits for another `commit`.
class CampaignStore {
public:
    // A new file. Throws Error(usage) when there is a store already, Error(input) when there is
    // something else.
    static CampaignStore create(const std::filesystem::path& path, CampaignHeader header,
                                StoreOptions options = {});
    // One that is there. Throws Error(input) when it is none, Error(unsupported) when a newer
    // trocar wrote it.
    static CampaignStore open(const std::filesystem::path& path, StoreOptions options = {});
    // The same for reading only.
    static CampaignStore read(const std::filesystem::path& path);

    CampaignStore(CampaignStore&&) noexcept;
    CampaignStore& operator=(CampaignStore&&) noexcept;
    ~CampaignStore();  // commits, where that succeeds

    const std::filesystem::path& path() const;
    const CampaignHeader& header() const;
    // Throws Error(usage) that names what differs from the store's: campaign, model, data, engine…
    void require_same(const CampaignHeader& header) const;

    // --- Writing. What is there already must be the same: else Error(input) that names the trial.

    void set_strata(std::span<const Stratum> strata);
    void add_golden(std::span<const GoldenInput> inputs);  // committed at once
    void add_faults(std::span<const FaultRecord> faults);  // with the next results
    // The effects of a pair come with its result. Commits when a batch is full.
    void append(std::span<const TrialResult> results, std::span<const LayerEffect> effects = {});
    void add_audits(std::span<const AuditRecord> audits);
    // A session of work begins, on a shard; returns its number.
    std::uint64_t begin_run(std::uint64_t shard = 0, std::uint64_t shards = 1);
    // What there is to say of it by now; written with the next commit.
    void update_run(const RunRecord& run);
    // The same, and it is over.
    void end_run(RunRecord run);
    void commit();
    void finish();  // all trials of the session are done, or those that are there are enough

    // --- Reading: what is committed. In ascending order; the callback may return false to stop.

    DonePairs done(std::uint64_t first_trial = 0,
                   std::uint64_t last_trial = std::numeric_limits<std::int64_t>::max()) const;
    std::uint64_t result_count() const;
    std::uint64_t trial_count() const;  // with at least one result
    std::vector<Stratum> strata() const;
    std::optional<FaultRecord> fault(std::uint64_t trial) const;
    std::vector<TrialResult> results_of(std::uint64_t trial) const;
    std::vector<LayerEffect> effects_of(std::uint64_t trial) const;
    std::optional<GoldenInput> golden(std::uint64_t input) const;
    std::vector<RunRecord> runs() const;
    std::vector<AuditRecord> audits() const;
    void each_fault(const std::function<bool(const FaultRecord&)>& visit) const;
    void each_result(const std::function<bool(const TrialResult&)>& visit) const;
    void each_effect(const std::function<bool(const LayerEffect&)>& visit) const;
    // Without their outputs unless asked for.
    void each_golden(const std::function<bool(const GoldenInput&)>& visit,
                     bool outputs = false) const;

    // SHA-256 of the campaign and of all rows but those of sessions and audits: the same for the
    // same results, however they were come by.
    std::string digest() const;

    // A table or view as .csv or .json, by the suffix; "everything" as .json. Throws Error(usage)
    // on another suffix, or on a table that is not there.
    void export_to(const std::filesystem::path& file, const std::string& table = "trials") const;
    static std::vector<std::string> tables();  // and views

private:
    struct Body;
    explicit CampaignStore(std::unique_ptr<Body> body);
    std::unique_ptr<Body> body_;
};

// All rows of stores of the same campaign in a new one. Throws Error(usage) when they are of
// different campaigns, and says in what; Error(input) when two have other results for the same
// trial.
CampaignStore merge(std::span<const std::filesystem::path> shards,
                    const std::filesystem::path& path);

}  // namespace trocar
#pragma GCC visibility pop
