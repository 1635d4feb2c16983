#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "ops/conditions.h"
#include "ops/worker.h"
#include "trocar/error.h"
#include "trocar/op_store.h"
#include "trocar/random.h"
#include "trocar/version.h"
#include "util/clock.h"
#include "util/engine_library.h"
#include "util/samples.h"
#include "util/sha256.h"
#include "util/text.h"

namespace trocar {

namespace {

using ops::WindowsRequest;
using ops::Worker;

constexpr std::size_t windows_per_visit = 2;
constexpr std::size_t fewest_visits = 3;  // of an op that takes longer than its budget
constexpr double write_every_ns = 1e9;
constexpr double share_of_whole = 0.15;  // of the time, once it has its visits

struct Item {
    std::int64_t op = WindowsRequest::whole;
    CacheMode mode = CacheMode::reuse;
    OpMeasurement measurement;
    double spent_ns = 0;
    std::uint32_t visits = 0;
    std::vector<double> calls_ns;  // what calling costs, at each visit
};

double half_width(const OpTime& time) {
    const auto middle = time.ns + time.call_ns;
    return middle > 0 ? (time.interval.high - time.interval.low) / 2 / middle : 0;
}

class Measurer {
public:
    Measurer(OpDatabase& database, const Model& model, const std::vector<NamedValue>& inputs,
             const MeasureOptions& options)
        : database_(database), model_(model), inputs_(inputs), options_(options) {}

    MeasureSummary run() {
        const auto start = now_ns();
        const auto before = ops::conditions();
        const auto host = this_host();
        summary_.warnings = ops::preflight(before, host.cores, host.hypervisor);
        worker_ = std::make_unique<Worker>(model_, inputs_, options_);
        setting_ = database_.add(setting_of(options_.engine, worker_->version()));
        auto facts = identify(model_, inputs_, options_.unit);
        facts.ops = worker_->survey();
        database_.add(facts);
        run_ = database_.begin_run(setting_, worker_->cost(), "measure " + facts.name);
        plan(facts);
        rounds();
        flush();
        const auto after = ops::conditions();
        for (auto& wrong : ops::drift(before, after)) {
            summary_.warnings.push_back(std::move(wrong));
        }
        database_.end_run(run_, summary_.warnings, ops::text(before, after));
        summary_.seconds = (now_ns() - start) * 1e-9;
        return std::move(summary_);
    }

private:
    bool wanted(const std::string& key) const {
        return options_.only.empty() ||
               std::find(options_.only.begin(), options_.only.end(), key) != options_.only.end();
    }

    bool significant(const OpConfig& config) const {
        return options_.types.empty() ||
               std::any_of(options_.types.begin(), options_.types.end(), [&](const auto& type) {
                   return config.text.find(":" + type + "(") != std::string::npos;
               });
    }

    void plan(const OpModelFacts& facts) {
        std::set<std::pair<std::string, CacheMode>> known;
        std::set<std::string> known_models;
        if (!options_.again) {
            for (const auto& one : database_.newest(setting_)) {
                known.emplace(one.key, one.mode);
                known_models.insert(one.model);
            }
        }
        summary_.configurations = facts.ops.size();
        for (std::size_t i = 0; i < facts.ops.size(); ++i) {
            const auto& key = facts.ops[i].config.key;
            for (const auto mode : options_.modes) {
                if (known.contains({key, mode})) {
                    ++summary_.known;
                } else if (wanted(key) && significant(facts.ops[i].config)) {
                    add(static_cast<std::int64_t>(i), mode, key, "");
                }
            }
        }
        // The whole is measured among its operators: both see the same machine.
        const auto id = model_id(facts);
        if (options_.whole && (!items_.empty() || !known_models.contains(id))) {
            add(WindowsRequest::whole, CacheMode::reuse, "", id);
        }
        total_ = items_.size();
    }

    void add(std::int64_t op, CacheMode mode, const std::string& key, const std::string& model) {
        Item item;
        item.op = op;
        item.mode = mode;
        item.measurement = database_.open_measurement(run_, setting_, key, model, mode);
        for (const auto& window : item.measurement.time.windows) {
            item.visits = std::max(item.visits, window.visit + 1);
        }
        items_.push_back(std::move(item));
    }

    // Visits all that is left in an order that is new each time, until nothing is left.
    void rounds() {
        started_ = now_ns();
        for (std::uint64_t round = 0; !items_.empty(); ++round) {
            std::vector<std::pair<std::uint32_t, std::size_t>> order;
            for (std::size_t i = 0; i < items_.size(); ++i) {
                order.emplace_back(philox(options_.seed, round, i)[0], i);
            }
            std::sort(order.begin(), order.end());
            std::vector<bool> done(items_.size(), false);
            for (const auto& [unused, i] : order) {
                if (options_.progress &&
                    !options_.progress("operators", total_ - items_.size(), total_)) {
                    summary_.complete = false;
                    return;
                }
                // The whole goes on as long as they do, for a share of the time.
                auto& item = items_[i];
                const bool last = items_.size() == 1;
                if (item.op == WindowsRequest::whole && !last && item.visits >= options_.visits &&
                    item.spent_ns > share_of_whole * (now_ns() - started_)) {
                    continue;
                }
                done[i] = visit(item, item.op != WindowsRequest::whole || last);
            }
            std::vector<Item> left;
            for (std::size_t i = 0; i < items_.size(); ++i) {
                if (!done[i]) {
                    left.push_back(std::move(items_[i]));
                }
            }
            items_ = std::move(left);
        }
    }

    bool visit(Item& item, bool may_end) {
        const auto start = now_ns();
        try {
            if (!worker_->alive()) {
                worker_->restart();
            }
            auto answer =
                worker_->windows({item.op, item.mode, options_.window_seconds, windows_per_visit});
            if (item.op != WindowsRequest::whole) {
                item.calls_ns.push_back(answer.call_ns);
            }
            for (auto& window : answer.windows) {
                window.visit = item.visits;
                item.measurement.time.windows.push_back(window);
            }
            fresh_.emplace_back(item.measurement.id, std::move(answer.windows));
        } catch (const Error& error) {
            fail(item, error);
            return true;
        }
        ++item.visits;
        item.spent_ns += now_ns() - start;
        if (now_ns() - written_ > write_every_ns) {
            flush();
        }
        return may_end && enough(item);
    }

    bool enough(Item& item) {
        const bool late = item.spent_ns > options_.seconds_per_op * 1e9;
        if (item.visits < (late ? fewest_visits : options_.visits)) {
            return false;
        }
        auto time = summarize(item.measurement.time.windows, quantile(item.calls_ns, 0.5));
        if (half_width(time) > options_.half_width && !late) {
            return false;
        }
        flush();
        item.measurement.time = std::move(time);
        item.measurement.state = OpState::measured;
        item.measurement.energy = energy_of(item);
        database_.finish(item.measurement);
        ++summary_.measured;
        return true;
    }

    OpEnergy energy_of(const Item& item) {
        OpEnergy energy;
        energy.why = worker_->no_energy();
        if (!energy.why.empty()) {
            return energy;
        }
        if (item.mode == CacheMode::in_situ || item.mode == CacheMode::cold) {
            energy.why = "in this mode other work is done between the calls";
            return energy;
        }
        try {
            return worker_->energy(item.op, item.mode);
        } catch (const Error& error) {
            energy.why = error.what();
            return energy;
        }
    }

    // What became of an op that was met before, while operators were looked for.
    static OpState state_in(std::string& reason) {
        for (const auto state : {OpState::crashed, OpState::hung, OpState::over_memory}) {
            if (const auto prefix = std::string(name(state)) + ": "; reason.starts_with(prefix)) {
                reason.erase(0, prefix.size());
                return state;
            }
        }
        return OpState::failed;
    }

    void fail(Item& item, const Error& error) {
        flush();
        auto& measurement = item.measurement;
        measurement.reason = error.what();
        switch (worker_ ? worker_->end() : Isolated::End::none) {
            case Isolated::End::none:
                measurement.state = error.fault() == Fault::unsupported
                                        ? OpState::not_applicable
                                        : state_in(measurement.reason);
                break;
            case Isolated::End::silent:
                measurement.state = OpState::hung;
                break;
            case Isolated::End::over_memory:
                measurement.state = OpState::over_memory;
                break;
            default:
                measurement.state = OpState::crashed;
        }
        summary_.failed += measurement.state == OpState::not_applicable ? 0 : 1;
        measurement.energy.why = "it was not measured";
        database_.finish(measurement);
    }

    void flush() {
        if (!fresh_.empty()) {
            database_.add_windows(fresh_);
            fresh_.clear();
        }
        written_ = now_ns();
    }

    OpDatabase& database_;
    const Model& model_;
    const std::vector<NamedValue>& inputs_;
    const MeasureOptions& options_;
    std::unique_ptr<Worker> worker_;
    std::int64_t setting_ = 0;
    std::int64_t run_ = 0;
    std::vector<Item> items_;
    std::size_t total_ = 0;
    std::vector<std::pair<std::int64_t, std::vector<OpWindow>>> fresh_;
    double written_ = 0;
    double started_ = 0;  // with measuring
    MeasureSummary summary_;
};

}  // namespace

OpModelFacts identify(const Model& model, const std::vector<NamedValue>& inputs, View unit) {
    OpModelFacts facts;
    facts.name = model.path.filename().string();
    facts.unit = unit;
    std::vector<std::string> texts;
    for (const auto& input : inputs) {
        texts.push_back(fmt::format("{} {}", input.name, value_text(input.value)));
    }
    facts.inputs = fmt::format("{}", join(texts, ", "));
    if (model.path.empty()) {
        // Made by a sweep: known by what it takes.
        facts.name = model.graph.name;
        facts.sha256 = sha256_of(facts.inputs);
        facts.inputs = fmt::format("{} inputs", inputs.size());
    } else {
        facts.sha256 = sha256_of_file(model.path);
    }
    return facts;
}

OpSetting setting_of(const EngineOptions& engine, const std::string& version) {
    OpSetting setting;
    setting.host = this_host();
    setting.engine = engine.name;
    setting.version = version;
    std::vector<std::string> options;
    for (const auto& [key, value] : engine.options) {
        options.push_back(fmt::format("{}={}", key, value));
    }
    setting.options = fmt::format("{}", join(options, ","));
    setting.threads = thread_count(engine);
    setting.build = trocar::version();
    return setting;
}

OpModelFacts survey(const Model& model, const std::vector<NamedValue>& inputs,
                    const MeasureOptions& options, std::string* engine_version) {
    Worker worker(model, inputs, options);
    auto facts = identify(model, inputs, options.unit);
    facts.ops = worker.survey();
    if (engine_version != nullptr) {
        *engine_version = worker.version();
    }
    return facts;
}

MeasureSummary measure(OpDatabase& database, const Model& model,
                       const std::vector<NamedValue>& inputs, const MeasureOptions& options) {
    if (options.modes.empty()) {
        throw Error(Fault::usage, "no cache mode to measure in");
    }
    return Measurer(database, model, inputs, options).run();
}

}  // namespace trocar
