#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "energy/reader.h"

namespace trocar::energy {

namespace {

namespace fs = std::filesystem;

constexpr double microjoule = 1e-6;

constexpr const char* permission_remedy =
    "Since Linux 5.10 only root may read energy_uj: run as root, or use the source perf, for which "
    "`sudo sysctl kernel.perf_event_paranoid=0` or `sudo setcap cap_perfmon+ep PROGRAM` is enough.";

// One folder of the tree: "intel-rapl:0:1" is zone 1 inside zone 0.
struct Zone {
    std::string id;
    fs::path folder;
    std::string name;    // "package-0", "dram"
    std::string parent;  // id; empty: none
};

class PowercapReader final : public Reader {
public:
    PowercapReader(std::vector<fs::path> files, const Surroundings& machine)
        : files_(std::move(files)), machine_(machine) {}

    Value read(std::size_t channel) override {
        Value value;
        const auto file = machine_.read_file(files_[channel]);
        const auto count = file.error == 0 ? count_in(file.text) : std::nullopt;
        if (count) {
            value.count = *count;
        } else {
            value.failed =
                fmt::format("'{}' could not be read: {}", files_[channel].string(),
                            file.error != 0 ? std::strerror(file.error) : "it holds no number");
        }
        return value;
    }

private:
    std::vector<fs::path> files_;
    Surroundings machine_;
};

// Zones stand side by side as links in /sys/class/powercap, and inside one another in
// /sys/devices/virtual/powercap. Links below the first level lead back up.
void collect(const fs::path& folder, int depth, const Surroundings& machine,
             std::map<std::string, Zone>& zones) {
    std::error_code error;
    for (fs::directory_iterator entries(folder, error), end; !error && entries != end;
         entries.increment(error)) {
        std::error_code ignored;
        const auto id = entries->path().filename().string();
        if ((depth > 0 && entries->is_symlink(ignored)) || !entries->is_directory(ignored)) {
            continue;
        }
        if (id.find(':') != std::string::npos && !zones.contains(id)) {
            if (const auto name = word_in(machine, entries->path() / "name")) {
                const auto colon = id.rfind(':');
                zones[id] = {id, entries->path(), *name,
                             id.find(':') == colon ? "" : id.substr(0, colon)};
            }
        }
        if (depth < 3) {
            collect(entries->path(), depth + 1, machine, zones);
        }
    }
}

Part part_of(const std::string& name) {
    const auto begins = [&](const char* with) { return name.rfind(with, 0) == 0; };
    return begins("package")                      ? Part::package
           : begins("psys") || begins("platform") ? Part::platform
           : begins("dram")                       ? Part::dram
           : begins("core")                       ? Part::core
           : begins("uncore")                     ? Part::uncore
                                                  : Part::other;
}

// "intel-rapl-mmio" of "intel-rapl-mmio:0".
std::string interface_of(const std::string& id) {
    return id.substr(0, id.find(':'));
}

// Registers of the processor before their copies in memory-mapped space.
bool through_memory(const Zone& zone) {
    return zone.id.find("mmio") != std::string::npos || zone.id.find("tpmi") != std::string::npos;
}

std::vector<Zone> zones_in(const fs::path& root, const Surroundings& machine) {
    std::map<std::string, Zone> by_id;
    collect(root, 0, machine, by_id);
    std::vector<Zone> zones;
    for (auto& [id, zone] : by_id) {
        auto name = zone.name;
        if (const auto parent = by_id.find(zone.parent); parent != by_id.end()) {
            name = fmt::format("{}/{}", parent->second.name, name);
        }
        zones.push_back(zone);
        zones.back().name = name;
    }
    std::stable_sort(zones.begin(), zones.end(), [](const Zone& a, const Zone& b) {
        return through_memory(a) < through_memory(b);
    });
    return zones;
}

}  // namespace

Found find_powercap(const EnergyOptions& options, const Surroundings& machine) {
    const auto root = options.choice.source == "powercap" && !options.choice.argument.empty()
                          ? fs::path(options.choice.argument)
                          : options.sysfs / "class/powercap";
    Found found;
    found.source.name = "powercap";
    std::vector<fs::path> files;
    std::map<std::string, std::string> seen;  // the zone of a name
    int refused = 0;
    for (const auto& zone : zones_in(root, machine)) {
        const auto file = zone.folder / "energy_uj";
        const auto read = machine.read_file(file);
        if (read.error != 0) {
            if (read.error != ENOENT) {
                refused = read.error;
                found.source.notes.push_back(fmt::format("'{}' cannot be read: {}", file.string(),
                                                         std::strerror(read.error)));
            }
            continue;
        }
        Channel channel;
        channel.domain.name = zone.name;
        channel.part = part_of(zone.name.substr(zone.name.find('/') + 1));
        channel.unit = microjoule;
        channel.range = count_in(word_in(machine, zone.folder / "max_energy_range_uj").value_or(""))
                            .value_or(0);
        const auto [first, is_new] = seen.emplace(zone.name, zone.id);
        if (!is_new) {
            channel.domain.name += fmt::format(" ({})", zone.id);
            // Of one interface they are dies of one package; mirrors are told by their counts.
            if (interface_of(first->second) != interface_of(zone.id)) {
                channel.domain.summed = false;
                channel.domain.unsummed_reason =
                    fmt::format("{} counts the same through another interface", first->second);
            }
        }
        files.push_back(file);
        found.channels.push_back(std::move(channel));
    }
    if (refused == EACCES || refused == EPERM) {
        // Some of the zones alone would be a sum of something else.
        auto none = unavailable("powercap", "energy_uj may not be read", permission_remedy);
        none.refused = true;
        return none;
    }
    if (found.channels.empty()) {
        return unavailable(
            "powercap",
            refused != 0 ? fmt::format("energy_uj cannot be read: {}", std::strerror(refused))
                         : fmt::format("'{}' has no energy counters", root.string()),
            "Load the kernel's driver with `sudo modprobe intel_rapl_msr`; containers hide the "
            "folder, and virtual machines have none.");
    }
    found.source.label = EnergyLabel::measured;
    found.reader = std::make_unique<PowercapReader>(std::move(files), machine);
    choose_summed(found, options.scope);
    return found;
}

}  // namespace trocar::energy
