#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trocar/ops.h"

#pragma GCC visibility push(default)
namespace trocar {

// The machine that measured.
struct OpHost {
    std::string fingerprint;  // of all that follows
    std::string cpu;
    int cores = 0;
    std::uint64_t cache_bytes = 0;  // the last level
    std::uint64_t memory_bytes = 0;
    std::string system;      // "Linux 6.1 x86_64"
    std::string hypervisor;  // empty: none that it tells of
};
OpHost this_host();

// Where and how an operator ran: what its time depends on beside the operator.
struct OpSetting {
    OpHost host;
    std::string engine;
    std::string version;
    std::string options;  // of the engine: "provider=cpu"
    int threads = 1;
    std::string build;  // of Trocar
};

enum class OpState { open, measured, failed, crashed, hung, over_memory, not_applicable };
const char* name(OpState state);

struct OpMeasurement {
    std::int64_t id = 0;
    std::int64_t run = 0;
    std::int64_t setting = 0;
    std::string key;    // of the configuration; empty: a whole model
    std::string model;  // of a whole: OpModelFacts::sha256 and inputs
    CacheMode mode = CacheMode::reuse;
    OpState state = OpState::open;
    std::string reason;  // unless measured
    OpTime time;         // without windows, unless asked for
    OpEnergy energy;
    std::string when;
};

struct OpRun {
    std::int64_t id = 0;
    std::string uid;  // the same in every database it is merged into
    std::string started;
    std::string ended;  // empty: it was cut short
    std::int64_t setting = 0;
    CallCost cost;
    std::string what;                   // the command
    std::vector<std::string> warnings;  // what was wrong with the machine
    std::string conditions;             // load, frequency, temperature before and after
};

// Operators, models and what was measured of them; one SQLite file.
class OpDatabase {
public:
    enum class Mode { create, read };  // create: or open, to add to it
    OpDatabase(const std::filesystem::path& path, Mode mode);
    OpDatabase(OpDatabase&&) noexcept;
    OpDatabase& operator=(OpDatabase&&) noexcept;
    ~OpDatabase();
    const std::filesystem::path& path() const;

    // --- Adding. Each call is all or nothing; nothing that was finished is ever changed.
    std::int64_t add(const OpSetting& setting);  // or the one that is there
    std::int64_t begin_run(std::int64_t setting, const CallCost& cost, const std::string& what);
    void end_run(std::int64_t run, const std::vector<std::string>& warnings,
                 const std::string& conditions);
    void add(const OpModelFacts& model);
    void add(const OpConfig& config);
    // Of an operator by key, or of a whole model. One that was left open with this setting is gone
    // on with: its windows are kept.
    OpMeasurement open_measurement(std::int64_t run, std::int64_t setting, const std::string& key,
                                   const std::string& model, CacheMode mode);
    void add_windows(const std::vector<std::pair<std::int64_t, std::vector<OpWindow>>>& windows);
    void finish(const OpMeasurement& measurement);

    // --- Asking
    std::optional<std::int64_t> find(const OpSetting& setting) const;
    OpSetting setting(std::int64_t id) const;
    std::vector<std::int64_t> settings() const;
    std::vector<OpModelFacts> models() const;
    std::vector<OpConfig> configs() const;
    std::optional<OpConfig> find_config(const std::string& key) const;  // or the start of one
    std::vector<OpRun> runs() const;
    // Those that were finished, the newest of each operator or whole, mode and setting.
    std::vector<OpMeasurement> newest(std::int64_t setting) const;
    std::vector<OpMeasurement> all_of(const std::string& key) const;  // with windows
    std::size_t count(OpState state) const;

    // --- Sharing
    // Adds what another has and this one does not, by run. Returns how many measurements.
    std::size_t merge(const OpDatabase& other);
    // What is wrong with it: sentences. Empty: all is well.
    std::vector<std::string> verify() const;
    std::string export_csv() const;
    std::string export_jsonl() const;

private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

// How whole models are named in OpMeasurement::model.
std::string model_id(const OpModelFacts& model);

const char* op_schema();  // SQL, as documented

// Measures what the database does not have yet of the operators of a model, and the model as a
// whole beside them, in a process of its own. What is measured is written as it comes: stopped or
// killed, it is gone on with by the next call. `inputs` as the model takes them. Throws
// Error(engine) where not even the model's operators can be found.
MeasureSummary measure(OpDatabase& database, const Model& model,
                       const std::vector<NamedValue>& inputs, const MeasureOptions& options);

// The distinct operators of a model, seen in one run op by op in a process of its own; nothing is
// measured.
OpModelFacts survey(const Model& model, const std::vector<NamedValue>& inputs,
                    const MeasureOptions& options, std::string* engine_version = nullptr);

// What the database knows a model by.
OpModelFacts identify(const Model& model, const std::vector<NamedValue>& inputs, View unit);
OpSetting setting_of(const EngineOptions& engine, const std::string& version);

// --- Explaining
// --------------------------------------------------------------------------------

// Times of operators in a mode, or between two.
struct ModeMix {
    CacheMode first = CacheMode::reuse;
    CacheMode second = CacheMode::reuse;
    double share = 0;  // of the second
};
std::string text(const ModeMix& mix);  // "reuse", "0.75 reuse + 0.25 stream-inputs"

struct ExplainedOp {
    const ModelOp* op = nullptr;
    std::optional<double> ns;  // of all its calls; empty: not measured
    std::string why;           // not
    char grade = 'D';
};

// The operators of a model against the model.
struct Explanation {
    OpModelFacts model;
    OpMeasurement whole;
    ModeMix mix;
    std::size_t chosen_on = 0;  // models that say which mode represents one; 0: none, the default
    std::vector<ExplainedOp> ops;  // largest first
    double measured_ns = 0;        // sum over measured operators
    double dispatch_ns = 0;        // of running the model once, beside its operators
    std::size_t unmeasured = 0;    // calls
    // What the sum would be in other modes, and in the other unit, where that was measured.
    std::vector<std::pair<std::string, double>> otherwise;
    // Net joules of the operators and of the whole, where both are known.
    std::optional<double> measured_j;
    std::optional<double> whole_j;
    std::string energy_why;  // not
    double whole_ns() const { return whole.time.ns; }
    double ratio() const;  // of measured operators and dispatch to the whole
};
// Throws Error(input) where the database does not have the model, or not as a whole.
Explanation explain(const OpDatabase& database, std::int64_t setting, const std::string& model_id,
                    const std::optional<ModeMix>& mix = {});
ModeMix parse_mode_mix(const std::string& text);  // throws Error(usage)
// The mode that comes nearest to a model among those that were measured: in situ, else the first
// that an operator has.
ModeMix usual_mix(const OpDatabase& database, std::int64_t setting);

// --- Foretelling
// -------------------------------------------------------------------------------

// Operators as they were measured with a setting, for OpPredictor.
std::vector<OpSample> samples(const OpDatabase& database, std::int64_t setting,
                              const ModeMix& mix = {});
// Models of which a whole was measured with it.
std::vector<OpModel> measured_models(const OpDatabase& database, std::int64_t setting, View unit);

// Operators of a model that were not measured, the one expected to take most of it first.
struct NextOp {
    const ModelOp* op = nullptr;
    double expected_ns = 0;  // of all its calls
    double low_ns = 0;       // 90 % interval; the same where nothing is known of the machine
    double high_ns = 0;
    bool guessed = false;  // nothing was measured that it could be learned from
};
std::vector<NextOp> next_ops(const OpDatabase& database, std::int64_t setting,
                             const OpModelFacts& model, const ModeMix& mix = {});

// One round of measuring until a model is explained.
struct UntilRound {
    std::vector<std::string> measured;  // types of the operators
    double ratio = 0;                   // explained after it
    std::size_t left = 0;               // distinct operators without a time
};
// Measures, compares, and measures the operators with the largest expected gain, until `target`
// percent of the model are explained, or nothing is left. `seen` is told of each round.
std::vector<UntilRound> measure_until(OpDatabase& database, const Model& model,
                                      const std::vector<NamedValue>& inputs,
                                      const MeasureOptions& options, double target,
                                      const std::optional<ModeMix>& mix,
                                      const std::function<void(const UntilRound&)>& seen = {});

}  // namespace trocar
#pragma GCC visibility pop
