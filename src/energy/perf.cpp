#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "energy/reader.h"
#include "util/text.h"

namespace trocar::energy {

namespace {

namespace fs = std::filesystem;

constexpr const char* no_counters =
    "Processors of Intel since 2012 and of AMD since 2017 have them, and virtual machines hide "
    "them; an outside meter can be used by log:FILE or command:COMMAND.";

struct Event {
    const char* file;
    const char* domain;
    Part part;
};
constexpr Event events[]{
    {"energy-pkg", "package", Part::package}, {"energy-ram", "dram", Part::dram},
    {"energy-cores", "cores", Part::core},    {"energy-gpu", "uncore", Part::uncore},
    {"energy-psys", "psys", Part::platform},
};

class PerfReader final : public Reader {
public:
    explicit PerfReader(const Surroundings& machine) : machine_(machine) {}
    PerfReader(const PerfReader&) = delete;
    PerfReader& operator=(const PerfReader&) = delete;
    ~PerfReader() override {
        for (const int fd : files_) {
            machine_.perf_close(fd);
        }
    }

    // An error number, or 0.
    int add(const PerfEvent& event) {
        const int fd = machine_.perf_open(event);
        if (fd < 0) {
            return -fd;
        }
        files_.push_back(fd);
        return 0;
    }

    Value read(std::size_t channel) override {
        Value value;
        if (const auto count = machine_.perf_read(files_[channel])) {
            value.count = *count;
        } else {
            value.failed = "the kernel's energy event could not be read";
        }
        return value;
    }

private:
    Surroundings machine_;
    std::vector<int> files_;
};

// "0", "0,18", "0-1,4".
std::vector<int> cpus_in(std::string_view text) {
    std::vector<int> cpus;
    for (const auto& range : split(text, ',')) {
        const auto ends = split(range, '-');
        const auto first = count_in(ends.front());
        const auto last = count_in(ends.back());
        if (!first || !last || ends.size() > 2 || *last < *first || *last > 65535) {
            return {};
        }
        for (auto cpu = *first; cpu <= *last; ++cpu) {
            cpus.push_back(static_cast<int>(cpu));
        }
    }
    return cpus;
}

// "event=0x02".
std::optional<std::uint64_t> config_in(std::string_view text) {
    constexpr std::string_view key = "event=";
    return text.starts_with(key) ? count_in(text.substr(key.size())) : std::nullopt;
}

Found refused(const Surroundings& machine) {
    const auto level = word_in(machine, "/proc/sys/kernel/perf_event_paranoid");
    auto found = unavailable(
        "perf",
        fmt::format("the kernel does not allow it (perf_event_paranoid is {}, or a container "
                    "forbids it)",
                    level.value_or("unknown")),
        "Either `sudo sysctl kernel.perf_event_paranoid=0`, or give the program the right with "
        "`sudo setcap cap_perfmon+ep PROGRAM`; a container needs `--cap-add PERFMON` and a "
        "seccomp profile that lets perf_event_open pass.");
    found.refused = true;
    return found;
}

}  // namespace

Found find_perf(const EnergyOptions& options, const Surroundings& machine) {
    const auto folder = options.sysfs / "bus/event_source/devices/power";
    const auto type = count_in(word_in(machine, folder / "type").value_or(""));
    if (!type) {
        return unavailable("perf", "the kernel has no energy events on this machine", no_counters);
    }
    const auto cpus = cpus_in(word_in(machine, folder / "cpumask").value_or(""));
    if (cpus.empty()) {
        return unavailable("perf", fmt::format("'{}' names no CPU", (folder / "cpumask").string()),
                           "Use the source powercap.");
    }
    Found found;
    found.source.name = "perf";
    auto reader = std::make_unique<PerfReader>(machine);
    for (const auto& event : events) {
        const auto base = (folder / "events" / event.file).string();
        const auto config = config_in(word_in(machine, base).value_or(""));
        const auto scale = number_in(word_in(machine, base + ".scale").value_or(""));
        if (!config || !scale || !(*scale > 0) ||
            word_in(machine, base + ".unit").value_or("") != "Joules") {
            continue;
        }
        for (const int cpu : cpus) {
            const int error = reader->add({static_cast<std::uint32_t>(*type), *config, cpu});
            if (error == EACCES || error == EPERM) {
                return refused(machine);
            }
            if (error != 0) {
                found.source.notes.push_back(fmt::format("{} of CPU {} cannot be opened: {}",
                                                         event.file, cpu, std::strerror(error)));
                continue;
            }
            Channel channel;
            channel.domain.name = fmt::format("{} of CPU {}", event.domain, cpu);
            channel.part = event.part;
            channel.unit = *scale;
            found.channels.push_back(std::move(channel));
        }
    }
    if (found.channels.empty()) {
        auto none = unavailable("perf", "no energy event of the kernel can be opened", no_counters);
        none.source.notes = std::move(found.source.notes);
        return none;
    }
    found.source.label = EnergyLabel::measured;
    found.reader = std::move(reader);
    choose_summed(found, options.scope);
    return found;
}

}  // namespace trocar::energy
