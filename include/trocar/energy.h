#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)
namespace trocar {

// The energy counters of a machine, and windows of time measured with them. What is not known is
// absent and has a reason; it is never 0, and never an estimate under another name.

// How a figure came to be.
enum class EnergyLabel {
    measured,    // the difference of a counter of energy
    integrated,  // samples of power over time
    modelled,    // computed from other figures; nothing in this header does that
    unavailable
};
std::string_view name_of(EnergyLabel label);  // "measured"

// One thing that a source counts.
struct EnergyDomain {
    std::string name;    // "package-0", "package-0/dram", "gpu-0 NVIDIA A100"
    bool summed = true;  // in the sum of a window
    std::string unsummed_reason;
};

// A source of energy figures as found on this machine.
struct EnergySource {
    std::string name;  // "perf", "powercap", "nvml", "hwmon", "log", "command", "none"
    EnergyLabel label = EnergyLabel::unavailable;
    std::vector<EnergyDomain> domains;
    // Between two changes of the counter, measured; between two samples where integrated. Absent:
    // it could not be seen.
    std::optional<double> tick_seconds;
    std::optional<double> resolution;  // joules where measured, watts where integrated
    // A counter that wraps twice in a window cannot be told from one that wraps once.
    std::optional<double> longest_window_seconds;
    std::vector<std::string> notes;
    std::string unavailable;  // why; empty: it is there
    std::string remedy;       // what the user can do about it, a sentence; may be empty
};

// Which source: its name, or "auto" or "none"; a file, folder or command where it takes one.
struct EnergyChoice {
    std::string source = "auto";
    std::string argument;
};
// "auto", "none", "perf", "powercap", "powercap:FOLDER", "nvml", "nvml:LIBRARY", "hwmon",
// "hwmon:SENSOR,SENSOR", "log:FILE.csv", "command:./meter". Throws Error(usage).
EnergyChoice parse_energy(std::string_view text);
std::string energy_text(const EnergyChoice& choice);

// What the processor's counters sum to. `platform` is psys, which holds all the others where the
// maker of the board has wired it.
enum class EnergyScope { processor, platform };

struct EnergyOptions {
    // auto: the first that is there of perf, powercap and a sensor of the whole machine (hwmon).
    // The others count something else, and are used only when named.
    EnergyChoice choice;
    EnergyScope scope = EnergyScope::processor;  // packages and their DRAM, or psys
    std::filesystem::path sysfs = "/sys";
    std::vector<unsigned> gpus;           // of nvml, by index; empty: all
    bool align_begin = true;              // wait for a tick where a window begins
    bool align_end = false;               // and where it ends; the wait is then part of the window
    double probe_seconds = 1;             // spent at most on seeing a counter's tick
    double sample_seconds = 0.1;          // between samples of power
    std::optional<double> tick_seconds;   // of a meter whose tick cannot be seen: command
    double most_watts = 2000;             // of one domain; more is no reading but a reset
    double command_seconds = 5;           // a command that takes longer is ended: a gap
    double log_offset_seconds = 0;        // added to the times of a log
    std::optional<int> log_zone_minutes;  // east of UTC, for times in a log that have no zone
};

// All sources that counters of this machine could give, and the chosen one, there or not. Takes up
// to `probe_seconds` for each that is there.
std::vector<EnergySource> energy_sources(const EnergyOptions& options = {});

struct EnergyDomainWindow {
    std::string name;
    bool summed = true;
    std::optional<double> joules;
    std::optional<double> uncertainty_joules;
    std::string gap;  // why there are no joules
};

// A window of time. `joules` is gross: all that the summed domains took, whoever used it.
struct EnergyWindow {
    std::string source;
    EnergyLabel label = EnergyLabel::unavailable;  // of the joules
    std::optional<double> seconds;                 // absent: the clock went back
    double begin_unix = 0;                         // seconds since 1970, to join outside logs
    double end_unix = 0;
    std::optional<double> joules;
    // A bound, from edges, resolution and samples; not the accuracy of the sensor itself.
    std::optional<double> uncertainty_joules;
    std::optional<double> idle_watts;  // as measured, never assumed
    std::optional<double> net_joules;  // joules − idle_watts · seconds; may be below 0
    std::optional<double> net_uncertainty_joules;
    bool idle_drift = false;  // idle before and after differ by more than they are uncertain
    std::vector<EnergyDomainWindow> domains;
    std::string gap;  // why there are no joules; empty: there are
    std::vector<std::string> notes;
};

struct EnergyIdle {
    std::optional<double> watts;
    std::optional<double> uncertainty_watts;
    std::optional<double> seconds;
    std::string gap;
};

// Sets idle_watts, net_joules and idle_drift of a window from the idle power before it and, where
// it was measured, after it: their mean. Half of their difference is added to the uncertainty.
// Without any idle power, or for a gap, the window has no net.
void subtract_idle(EnergyWindow& window, const EnergyIdle& before,
                   const std::optional<EnergyIdle>& after = std::nullopt);

// Seconds a window must have, so that edges of one tick each are at most this share of it:
// 2·tick/T.
std::optional<double> recommended_seconds(const EnergySource& source, double error = 0.02);

class EnergyInstrument;

// Measures windows, one at a time, with two reads of a counter each. Where there is only power, a
// thread samples it between begin and end.
class EnergyMeter {
public:
    // A source that was named and is not there: Error(unsupported) with the remedy as hint. "auto"
    // and "none" always give a meter; without a source all of its windows are gaps.
    static EnergyMeter open(const EnergyOptions& options = {});
    explicit EnergyMeter(std::unique_ptr<EnergyInstrument> instrument);
    EnergyMeter(EnergyMeter&& other) noexcept;
    EnergyMeter& operator=(EnergyMeter&& other) noexcept;
    ~EnergyMeter();

    const EnergySource& source() const;
    bool available() const { return source().unavailable.empty(); }

    // A window that was begun and not ended is dropped.
    void begin();
    // The idle power measured last, if any, is subtracted. Throws Error(internal) without a begin.
    EnergyWindow end();

    // Sleeps this long and measures what the machine takes meanwhile. The caller keeps its own
    // threads quiet. A window that was begun is dropped.
    EnergyIdle measure_idle(double seconds);

private:
    std::unique_ptr<EnergyInstrument> instrument_;
    std::optional<EnergyIdle> idle_;
};

// What an outside meter wrote: CSV (also ';' or tabs) whose first line names the columns. A time
// (time, timestamp, date, unix; seconds since 1970, or ISO 8601 with a zone) and one of power
// (watts, power_w, "Power [mW]") or of energy counted up (joules, energy_kwh). Units come from the
// names and are never assumed.
class EnergyLog {
public:
    struct Problem {
        std::size_t line = 0;  // from 1
        std::string what;
    };

    // Throws Error(input) when it cannot be read, its columns cannot be told, or no row is good. Of
    // the options, those of logs are used.
    static EnergyLog load(const std::filesystem::path& path, const EnergyOptions& options = {});
    static EnergyLog parse(std::string_view text, const std::string& name,
                           const EnergyOptions& options = {});

    EnergyLabel label() const {
        return cumulative_ ? EnergyLabel::measured : EnergyLabel::integrated;
    }
    std::size_t rows() const { return rows_.size(); }
    double first_unix() const { return rows_.front().at; }
    double last_unix() const { return rows_.back().at; }
    double spacing_seconds() const { return spacing_; }  // the median; 0 for a single row
    const std::vector<Problem>& problems() const {
        return problems_;
    }                                                             // rows left out; at most 100
    std::size_t problem_count() const { return problem_count_; }  // all of them

    // Trapezoids between samples. A gap where the log does not cover the window, where rows are
    // missing in it, or where its counter went back.
    EnergyWindow window(double begin_unix, double end_unix) const;

private:
    struct Row {
        double at = 0;
        double value = 0;  // watts, or joules counted up
    };
    void add_problem(std::size_t line, std::string what);
    void finish(const std::string& name);

    bool cumulative_ = false;
    double most_watts_ = 0;
    double spacing_ = 0;
    std::vector<Row> rows_;
    std::vector<Problem> problems_;
    std::size_t problem_count_ = 0;
};

}  // namespace trocar
#pragma GCC visibility pop
