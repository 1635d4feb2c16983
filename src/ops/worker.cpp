#include "ops/worker.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <map>

#include "base/json.h"
#include "trocar/error.h"
#include "trocar/op_store.h"
#include "util/clock.h"

namespace trocar::ops {

namespace {

Json object(std::initializer_list<JsonMember> members) {
    return Json::object(Json::Order::sorted, members);
}

// Programs and inputs that are kept for the next visit take at most this share of the memory.
constexpr double kept_share = 0.25;
double most_kept_bytes() {
    return kept_share * static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
           static_cast<double>(::sysconf(_SC_PAGESIZE));
}
constexpr std::size_t most_warm_up = 12;
constexpr double steady = 0.03;
constexpr double short_call_ns = 100e3;
constexpr double least_energy_seconds = 0.1;

struct Usage {
    double cpu_ns = 0;
    std::uint64_t switches = 0;
};
Usage usage() {
    struct rusage used {};
    ::getrusage(RUSAGE_SELF, &used);
    const auto ns = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_usec) * 1e3;
    };
    return {ns(used.ru_utime) + ns(used.ru_stime), static_cast<std::uint64_t>(used.ru_nivcsw)};
}

struct Kept {
    std::unique_ptr<Load> load;
    std::uint64_t calls = 1;  // of a window
    double bytes = 0;
};

// Lives in the child.
class Child {
public:
    Child(const Model& model, const std::vector<NamedValue>& inputs, const MeasureOptions& options,
          const std::map<std::size_t, std::string>& skip, std::size_t* doing, const Log& log)
        : model_(model), inputs_(inputs), options_(options), skip_(skip), doing_(doing) {
        auto engine = options.engine;
        engine.log = log;
        engine_ = open_engine(engine);
        meter_ = std::make_unique<CallCostMeter>(*engine_);
        cost_ = meter_->measure(125);
        energy_.emplace(EnergyMeter::open(options.energy));
        if (energy_->available()) {
            energy_seconds_ =
                std::max(least_energy_seconds, recommended_seconds(energy_->source()).value_or(0));
            energy_->measure_idle(energy_seconds_);
        }
    }

    Json answer(const Json& request) {
        const auto what = request.at("do").string();
        if (what == "begin") {
            return object({{"version", engine_->info().version},
                           {"run", cost_.run_ns},
                           {"port", cost_.port_ns},
                           {"node", cost_.node_ns},
                           {"no_energy", no_energy()}});
        }
        if (what == "survey") {
            survey();
            auto all = Json::array();
            for (const auto& found : survey_->found()) {
                all.push_back(describe(found.op));
            }
            return all;
        }
        return what == "energy" ? energy(request) : windows(request);
    }

private:
    std::string no_energy() const {
        const auto& source = energy_->source();
        return source.unavailable.empty() || source.remedy.empty()
                   ? source.unavailable
                   : fmt::format("{}; {}", source.unavailable, source.remedy);
    }

    // Calls for as long as the counter needs to tell.
    Json energy(const Json& request) {
        auto& kept =
            prepared(request.at("op").int64(), parse_cache_mode(request.at("mode").string()),
                     options_.window_seconds * 1e9);
        std::uint64_t calls = 0;
        energy_->begin();
        const auto start = now_ns();
        do {
            kept.load->run(kept.calls);
            calls += kept.calls * kept.load->operators();
        } while (now_ns() - start < energy_seconds_ * 1e9);
        const auto window = energy_->end();
        auto answer = object(
            {{"label", name_of(window.label)}, {"source", window.source}, {"why", window.gap}});
        if (!window.joules || !window.seconds) {
            answer["label"] = name_of(EnergyLabel::unavailable);
            return answer;
        }
        const auto each = static_cast<double>(calls);
        const auto idle = window.idle_watts.value_or(0) * *window.seconds;
        answer["gross"] = *window.joules / each;
        answer["idle"] = idle / each;
        answer["net"] = window.net_joules.value_or(*window.joules) / each;
        answer["uncertainty"] =
            window.net_uncertainty_joules.value_or(window.uncertainty_joules.value_or(0)) / each;
        answer["watts"] = *window.joules / *window.seconds;
        if (!window.net_joules) {
            answer["why"] = "the idle power is not known: net is gross";
        }
        return answer;
    }

    void survey() {
        if (!survey_) {
            survey_ = std::make_unique<Survey>(model_, engine_, inputs_, options_.unit, skip_,
                                               [this](std::size_t part) { *doing_ = part; });
            *doing_ = Found::none;
        }
    }

    static Json describe(const ModelOp& op) {
        const auto& features = op.config.features;
        auto numbers = Json::array();
        for (const auto& [name, value] : features.numbers) {
            numbers.push_back(Json::array({name, value}));
        }
        return object(
            {{"key", op.config.key},
             {"text", op.config.text},
             {"inputs", op.config.inputs},
             {"uncounted", op.config.uncounted},
             {"count", op.count},
             {"sites", op.sites},
             {"failure", op.failure},
             {"type", features.type},
             {"attributes", features.attributes},
             {"dtype", features.dtype},
             {"work", Json::array({features.macs, features.other_flops, features.input_bytes,
                                   features.weight_bytes, features.output_bytes})},
             {"numbers", numbers}});
    }

    std::unique_ptr<Load> make(std::int64_t op, CacheMode mode) {
        if (op == WindowsRequest::whole) {
            return make_whole(model_, *engine_, inputs_);
        }
        survey();
        return make_load(*survey_, survey_->found().at(static_cast<std::size_t>(op)), mode);
    }

    double bytes_of(std::int64_t op, CacheMode mode) const {
        if (op == WindowsRequest::whole) {
            return static_cast<double>(model_.file_bytes + model_.external_bytes);
        }
        const auto& features = survey_->found()[static_cast<std::size_t>(op)].op.config.features;
        const bool ring = mode == CacheMode::stream_inputs || mode == CacheMode::stream_weights;
        const bool many = mode == CacheMode::stream_weights || mode == CacheMode::chain;
        const auto cache = 2.0 * static_cast<double>(last_cache_bytes());
        return 1e5 + features.input_bytes + features.weight_bytes + (ring ? cache : 0) +
               (many ? cache : 0) + (mode == CacheMode::cold ? cache : 0);
    }

    // One window; also finds how many calls make one.
    static OpWindow window(Kept& kept, double wanted_ns, bool first) {
        if (first) {
            kept.calls = 1;
            const auto start = now_ns();
            kept.load->run(1);
            // The first call is not like the others.
            const auto middle = now_ns();
            kept.load->run(1);
            const auto one = std::max(1.0, std::min(now_ns() - middle, middle - start));
            kept.calls = static_cast<std::uint64_t>(std::clamp(wanted_ns / one, 1.0, 1e6));
        }
        const auto before = usage();
        const auto spent = kept.load->run(kept.calls);
        const auto after = usage();
        const auto calls = static_cast<double>(kept.calls * kept.load->operators());
        OpWindow window;
        window.ns = spent / calls;
        window.cpu_ns = (after.cpu_ns - before.cpu_ns) / calls;
        window.calls = kept.calls;
        window.switches = after.switches - before.switches;
        return window;
    }

    Kept& prepared(std::int64_t op, CacheMode mode, double wanted) {
        const auto id = std::pair{op, mode};
        auto at = kept_.find(id);
        if (at == kept_.end()) {
            Kept fresh;
            fresh.load = make(op, mode);
            fresh.bytes = bytes_of(op, mode);
            make_room(fresh.bytes);
            at = kept_.emplace(id, std::move(fresh)).first;
            order_.push_back(id);
            warm_up(at->second, wanted);
        } else {
            window(at->second, wanted, false);  // others have been at the caches meanwhile
        }
        return at->second;
    }

    Json windows(const Json& request) {
        const auto wanted = request.at("seconds").number() * 1e9;
        auto& kept = prepared(request.at("op").int64(),
                              parse_cache_mode(request.at("mode").string()), wanted);
        Json answer;
        const auto& load = *kept.load;
        answer["operators"] = load.operators();
        auto& list = answer["windows"] = Json::array();
        double least = 1e300;
        for (std::size_t i = 0; i < request.at("count").uint64(); ++i) {
            const auto one = window(kept, wanted, false);
            list.push_back(Json::array({one.ns, one.cpu_ns, one.calls, one.switches}));
            least = std::min(least, one.ns * static_cast<double>(load.operators()));
        }
        // Of a call that is short, what it costs is much of it, and is looked at anew.
        const auto cost = least < short_call_ns ? meter_->measure(4) : cost_;
        const auto ports = static_cast<double>(std::max<std::size_t>(load.ports(), 2) - 2);
        answer["call"] =
            (cost.run_ns + cost.port_ns * ports) / static_cast<double>(load.operators());
        return answer;
    }

    // Until two windows agree.
    static void warm_up(Kept& kept, double wanted) {
        auto last = window(kept, wanted, true);
        for (std::size_t i = 0; i < most_warm_up; ++i) {
            const auto next = window(kept, wanted, false);
            if (std::abs(next.ns - last.ns) <= steady * last.ns) {
                return;
            }
            last = next;
        }
    }

    void make_room(double bytes) {
        double all = bytes;
        for (const auto& [id, kept] : kept_) {
            all += kept.bytes;
        }
        while (all > most_kept_bytes() && !order_.empty()) {
            const auto oldest = kept_.find(order_.front());
            order_.pop_front();
            all -= oldest->second.bytes;
            kept_.erase(oldest);
        }
    }

    const Model& model_;
    const std::vector<NamedValue>& inputs_;
    const MeasureOptions& options_;
    const std::map<std::size_t, std::string> skip_;
    std::size_t* doing_;
    std::shared_ptr<Engine> engine_;
    std::unique_ptr<CallCostMeter> meter_;
    CallCost cost_;
    std::optional<EnergyMeter> energy_;
    double energy_seconds_ = 0;
    std::unique_ptr<Survey> survey_;
    std::map<std::pair<std::int64_t, CacheMode>, Kept> kept_;
    std::list<std::pair<std::int64_t, CacheMode>> order_;  // oldest first
};

ModelOp parse_op(const Json& one, View unit) {
    ModelOp op;
    op.config.key = one.at("key").string();
    op.config.text = one.at("text").string();
    op.config.inputs = one.at("inputs").string();
    op.config.uncounted = one.at("uncounted").string();
    op.config.unit = unit;
    op.count = one.at("count").uint64();
    op.sites = one.at("sites").strings();
    op.failure = one.at("failure").string();
    auto& features = op.config.features;
    features.type = one.at("type").string();
    features.attributes = one.at("attributes").string();
    features.dtype = one.at("dtype").string();
    const auto& work = one.at("work");
    features.macs = work.at(0).number();
    features.other_flops = work.at(1).number();
    features.input_bytes = work.at(2).number();
    features.weight_bytes = work.at(3).number();
    features.output_bytes = work.at(4).number();
    for (const auto& number : one.at("numbers")) {
        features.numbers.emplace_back(number.at(0).string(), number.at(1).number());
    }
    return op;
}

const char* end_name(Isolated::End end) {
    switch (end) {
        case Isolated::End::silent:
            return name(OpState::hung);
        case Isolated::End::over_memory:
            return name(OpState::over_memory);
        default:
            return name(OpState::crashed);
    }
}

}  // namespace

Worker::Worker(const Model& model, const std::vector<NamedValue>& inputs,
               const MeasureOptions& options)
    : model_(model), inputs_(inputs), options_(options) {
    void* page = ::mmap(nullptr, sizeof(std::size_t), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        throw Error(Fault::internal, "no memory to share with another process");
    }
    doing_ = std::shared_ptr<std::size_t>(static_cast<std::size_t*>(page),
                                          [](std::size_t* at) { ::munmap(at, sizeof *at); });
    start();
}

Worker::~Worker() = default;

void Worker::start() {
    *doing_ = Found::none;
    process_ = std::make_unique<Isolated>(
        [&](const Log& log) -> Isolated::Work {
            const auto child =
                std::make_shared<Child>(model_, inputs_, options_, skip_, doing_.get(), log);
            return [child](const std::vector<NamedValue>& request) -> std::vector<NamedValue> {
                const auto asked = Json::parse_or_throw(request.front().value.string_values()[0]);
                const auto text = child->answer(asked).dump();
                return {{"", Value::strings({1}, {text})}};
            };
        },
        Isolated::Options{.log = options_.engine.log,
                          .timeout = options_.time_limit,
                          .memory_limit = options_.memory_limit,
                          .doing = "measuring operators"});
    const auto begun = Json::parse_or_throw(ask(R"({"do": "begin"})"));
    version_ = begun.at("version").string();
    no_energy_ = begun.at("no_energy").string();
    cost_ = {begun.at("run").number(), begun.at("port").number(), begun.at("node").number()};
}

std::string Worker::ask(const std::string& request) {
    const auto answer = process_->run({{"", Value::strings({1}, {request})}});
    return answer.front().value.string_values()[0];
}

std::vector<ModelOp> Worker::survey() {
    for (;;) {
        try {
            std::vector<ModelOp> all;
            const auto found = Json::parse_or_throw(ask(R"({"do": "survey"})"));
            for (const auto& one : found) {
                all.push_back(parse_op(one, options_.unit));
            }
            return all;
        } catch (const Error& error) {
            const auto part = *doing_;
            if (process_->alive() || part == Found::none || skip_.contains(part)) {
                throw;
            }
            skip_[part] = fmt::format("{}: {}", end_name(process_->end()), error.what());
            start();
        }
    }
}

OpEnergy Worker::energy(std::int64_t op, CacheMode mode) {
    const auto asked = object({{"do", "energy"}, {"op", op}, {"mode", name(mode)}});
    const auto got = Json::parse_or_throw(ask(asked.dump()));
    OpEnergy energy;
    energy.label = got.at("label").string();
    energy.source = got.at("source").string();
    energy.why = got.at("why").string();
    if (got.contains("gross")) {
        energy.gross = got.at("gross").number();
        energy.idle = got.at("idle").number();
        energy.net = got.at("net").number();
        energy.uncertainty = got.at("uncertainty").number();
        energy.watts = got.at("watts").number();
    }
    return energy;
}

WindowsAnswer Worker::windows(const WindowsRequest& request) {
    const auto asked = object({{"do", "windows"},
                               {"op", request.op},
                               {"mode", name(request.mode)},
                               {"seconds", request.seconds},
                               {"count", request.count}});
    const auto got = Json::parse_or_throw(ask(asked.dump()));
    WindowsAnswer answer;
    answer.operators = got.at("operators").uint64();
    answer.call_ns = got.at("call").number();
    for (const auto& one : got.at("windows")) {
        answer.windows.push_back(
            {one.at(0).number(), one.at(1).number(), one.at(2).uint64(), one.at(3).uint64(), 0});
    }
    return answer;
}

}  // namespace trocar::ops
