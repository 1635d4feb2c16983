#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trocar/energy.h"

namespace trocar::energy {

// What a file held, or the error number of why it could not be read.
struct FileText {
    std::string text;
    int error = 0;
};

struct PerfEvent {
    std::uint32_t type = 0;
    std::uint64_t config = 0;
    int cpu = 0;
};

// All that sources ask of the machine; tests put something else in its place.
struct Surroundings {
    std::function<double()> steady;     // seconds
    std::function<double()> unix_time;  // seconds since 1970
    std::function<void(double seconds)> sleep;
    std::function<FileText(const std::filesystem::path&)> read_file;
    std::function<int(const PerfEvent&)> perf_open;  // a file descriptor, or -error
    std::function<std::optional<std::uint64_t>(int)> perf_read;
    std::function<void(int)> perf_close;
};
Surroundings this_machine();

enum class Part { platform, package, core, uncore, dram, gpu, other };

// One counter of energy, or one sensor of power.
struct Channel {
    EnergyDomain domain;
    Part part = Part::other;
    double unit = 1;          // joules of one count
    double resolution = 0;    // joules, where it is coarser than a count
    std::uint64_t range = 0;  // counts after which it begins anew; 0: never
};

// What a channel read: counts, or watts. `failed` says why there is neither.
struct Value {
    std::uint64_t count = 0;
    double watts = 0;
    std::string failed;
};

// Reads the channels of a source. Not from two threads at once.
class Reader {
public:
    virtual ~Reader() = default;
    virtual Value read(std::size_t channel) = 0;
};

// A source with its channels; without a reader it is unavailable.
struct Found {
    EnergySource source;
    std::vector<Channel> channels;
    std::unique_ptr<Reader> reader;
    bool refused = false;    // it is there and may not be read: the remedy is worth showing
    bool probe = true;       // its tick can be seen by reading it again and again
    double lag_seconds = 0;  // over which the sensor averages power
    double sample_seconds = 0;
};

// Sampling more often would only disturb what is measured.
constexpr double shortest_sample_seconds = 1e-3;

Found unavailable(const std::string& source, std::string why, std::string remedy);
// "3.5e-2" as a whole; nothing else.
std::optional<double> number_in(std::string_view text);
std::optional<std::uint64_t> count_in(std::string_view text);
// The text of a file without blanks at its ends; nothing when it cannot be read.
std::optional<std::string> word_in(const Surroundings& machine, const std::filesystem::path& file);

Found find_perf(const EnergyOptions& options, const Surroundings& machine);
Found find_powercap(const EnergyOptions& options, const Surroundings& machine);
Found find_nvml(const EnergyOptions& options);
Found find_hwmon(const EnergyOptions& options, const Surroundings& machine);
Found find_command(const EnergyOptions& options);

// Which channels of a processor are summed, so that nothing is counted twice. Notes what of the
// scope is not there.
void choose_summed(Found& found, EnergyScope scope);
// Sees the tick, and takes channels out of the sum that do not move or mirror another. A source
// of which nothing is left becomes unavailable.
void probe(Found& found, const EnergyOptions& options, const Surroundings& machine);

// Finds and probes the source that is named.
Found find(const EnergyOptions& options, const Surroundings& machine);
EnergyMeter open_meter(const EnergyOptions& options, const Surroundings& machine);

}  // namespace trocar::energy
