#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "energy/instrument.h"
#include "energy/reader.h"
#include "energy/window.h"
#include "trocar/error.h"

namespace trocar {

namespace energy {

namespace {

// Keeps the times of a window, which all instruments need.
class TimedInstrument : public EnergyInstrument {
public:
    TimedInstrument(EnergySource about, const EnergyOptions& options, const Surroundings& machine)
        : EnergyInstrument(std::move(about)), options_(options), machine_(machine) {}

    void sleep(double seconds) override { machine_.sleep(seconds); }

protected:
    const EnergyOptions& options() const { return options_; }
    const Surroundings& machine() const { return machine_; }
    void note_begin() { begin_unix_ = machine_.unix_time(); }
    EnergyWindow started() const {
        EnergyWindow window;
        window.source = source().name;
        window.begin_unix = begin_unix_;
        window.end_unix = machine_.unix_time();
        return window;
    }

private:
    EnergyOptions options_;
    Surroundings machine_;
    double begin_unix_ = 0;
};

class NoInstrument final : public TimedInstrument {
public:
    using TimedInstrument::TimedInstrument;

    void begin() override {
        note_begin();
        begin_ = machine().steady();
    }

    EnergyWindow end() override {
        auto window = started();
        const double seconds = machine().steady() - begin_;
        if (seconds > 0) {
            window.seconds = seconds;
        }
        window.gap = source().unavailable;
        return window;
    }

private:
    double begin_ = 0;
};

Edge read_edge(const Found& found, const Surroundings& machine) {
    Edge edge;
    const double before = machine.steady();
    for (std::size_t i = 0; i < found.channels.size(); ++i) {
        edge.values.push_back(found.reader->read(i));
    }
    const double after = machine.steady();
    edge.at = (before + after) / 2;
    edge.span = std::max(0.0, after - before);
    return edge;
}

// Two reads, and none in between.
class CountingInstrument final : public TimedInstrument {
public:
    CountingInstrument(Found found, const EnergyOptions& options, const Surroundings& machine)
        : TimedInstrument(found.source, options, machine), found_(std::move(found)) {}

    void begin() override {
        begin_ = edge(options().align_begin);
        note_begin();
    }

    EnergyWindow end() override {
        const auto last = edge(options().align_end);
        auto window = started();
        fill_counted(window, found_.channels, begin_, last, source().tick_seconds,
                     options().most_watts);
        return window;
    }

private:
    Edge edge(bool align) {
        if (!align || !found_.probe || !source().tick_seconds) {
            return read_edge(found_, machine());
        }
        const auto lead = leading(found_.channels);
        const auto first = found_.reader->read(lead);
        const double start = machine().steady();
        double before = start;
        bool changed = false;
        while (!changed && before - start < 4 * *source().tick_seconds && before >= start) {
            before = machine().steady();
            const auto now = found_.reader->read(lead);
            if (!now.failed.empty()) {
                break;  // the read below says so
            }
            changed = now.count != first.count;
        }
        auto edge = read_edge(found_, machine());
        edge.aligned = changed;
        edge.span = std::max(edge.span, edge.at + edge.span / 2 - before);
        return edge;
    }

    Found found_;
    Edge begin_;
};

// Only where there is no counter: a thread that samples slowly.
class SamplingInstrument final : public TimedInstrument {
public:
    SamplingInstrument(Found found, const EnergyOptions& options, const Surroundings& machine)
        : TimedInstrument(found.source, options, machine), found_(std::move(found)) {}
    ~SamplingInstrument() override { stop(); }

    void begin() override {
        stop();
        samples_.clear();
        samples_.push_back(read_edge(found_, machine()));
        note_begin();
        stopping_ = false;
        thread_ = std::thread([this] { sample(); });
    }

    EnergyWindow end() override {
        stop();
        samples_.push_back(read_edge(found_, machine()));
        auto window = started();
        fill_integrated(window, found_.channels, samples_, found_, options().most_watts);
        return window;
    }

private:
    void sample() {
        const auto period = std::chrono::duration<double>(found_.sample_seconds);
        std::unique_lock lock(mutex_);
        while (!wake_.wait_for(lock, period, [this] { return stopping_; })) {
            lock.unlock();
            auto edge = read_edge(found_, machine());
            lock.lock();
            samples_.push_back(std::move(edge));
        }
    }

    void stop() {
        if (!thread_.joinable()) {
            return;
        }
        {
            const std::lock_guard lock(mutex_);
            stopping_ = true;
        }
        wake_.notify_all();
        thread_.join();
    }

    Found found_;
    std::vector<Edge> samples_;
    std::mutex mutex_;
    std::condition_variable wake_;
    bool stopping_ = false;
    std::thread thread_;
};

// Reads the log anew at the end of each window: it grows meanwhile.
class LogInstrument final : public TimedInstrument {
public:
    using TimedInstrument::TimedInstrument;

    void begin() override {
        note_begin();
        begin_ = machine().steady();
    }

    EnergyWindow end() override {
        const double seconds = machine().steady() - begin_;
        auto window = started();
        const double shift = window.end_unix - window.begin_unix - seconds;
        if (std::abs(shift) > 0.05 + 1e-3 * std::abs(seconds)) {
            window.seconds = seconds > 0 ? std::optional(seconds) : std::nullopt;
            window.gap = fmt::format("the system's clock was set by {:.3g} s in the window", shift);
            return window;
        }
        try {
            return EnergyLog::load(options().choice.argument, options())
                .window(window.begin_unix, window.end_unix);
        } catch (const Error& error) {
            window.seconds = seconds;
            window.gap = error.what();
            return window;
        }
    }

private:
    double begin_ = 0;
};

}  // namespace

EnergyMeter open_meter(const EnergyOptions& options, const Surroundings& machine) {
    const auto& name = options.choice.source;
    auto found = find(options, machine);
    auto& source = found.source;
    if (!source.unavailable.empty()) {
        if (name != "auto" && name != "none") {
            throw Error(
                Fault::unsupported,
                fmt::format("energy cannot be measured with {}: {}", name, source.unavailable),
                source.remedy);
        }
        return EnergyMeter(std::make_unique<NoInstrument>(source, options, machine));
    }
    if (source.name == "log") {
        return EnergyMeter(std::make_unique<LogInstrument>(source, options, machine));
    }
    if (source.label == EnergyLabel::integrated) {
        return EnergyMeter(
            std::make_unique<SamplingInstrument>(std::move(found), options, machine));
    }
    return EnergyMeter(std::make_unique<CountingInstrument>(std::move(found), options, machine));
}

}  // namespace energy

EnergyMeter EnergyMeter::open(const EnergyOptions& options) {
    return energy::open_meter(options, energy::this_machine());
}

EnergyMeter::EnergyMeter(std::unique_ptr<EnergyInstrument> instrument)
    : instrument_(std::move(instrument)) {}
EnergyMeter::EnergyMeter(EnergyMeter&& other) noexcept = default;
EnergyMeter& EnergyMeter::operator=(EnergyMeter&& other) noexcept = default;
EnergyMeter::~EnergyMeter() = default;

const EnergySource& EnergyMeter::source() const {
    return instrument_->source();
}

void EnergyMeter::begin() {
    instrument_->begin();
    instrument_->begun = true;
}

EnergyWindow EnergyMeter::end() {
    if (!instrument_->begun) {
        throw Error(Fault::internal, "a window of energy was ended that had not begun");
    }
    instrument_->begun = false;
    auto window = instrument_->end();
    if (idle_) {
        subtract_idle(window, *idle_);
    }
    return window;
}

EnergyIdle EnergyMeter::measure_idle(double seconds) {
    instrument_->begin();
    instrument_->begun = false;
    instrument_->sleep(seconds);
    const auto window = instrument_->end();
    EnergyIdle idle;
    idle.seconds = window.seconds;
    idle.gap = window.gap;
    if (window.joules && window.seconds) {
        idle.watts = *window.joules / *window.seconds;
        if (window.uncertainty_joules) {
            idle.uncertainty_watts = *window.uncertainty_joules / *window.seconds;
        }
    }
    idle_ = idle;
    return idle;
}

}  // namespace trocar
