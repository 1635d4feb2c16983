#pragma once

#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "energy/reader.h"
#include "util/test_folder.h"

namespace trocar::energy {

// For tests: a folder in place of /sys, and a clock that moves by itself a little with each look.
class FakeMachine {
public:
    FakeMachine() {
        options.sysfs = folder.path();
        machine = this_machine();
        machine.steady = [this] { return now += look; };
        machine.unix_time = [this] { return 1.7e9 + now + unix_shift; };
        machine.sleep = [this](double seconds) { now += seconds; };
        machine.read_file = [this, real = machine.read_file](const std::filesystem::path& path) {
            const auto live = files.find(path.string());
            return live == files.end() ? real(path) : live->second();
        };
    }

    // Appears at once, whole.
    void write(const std::string& path, const std::string& text) {
        const auto file = folder / path;
        std::filesystem::create_directories(file.parent_path());
        const auto temporary = file.string() + ".new";
        std::ofstream(temporary) << text;
        std::filesystem::rename(temporary, file);
    }

    // A file whose text is asked for at each read.
    void live(const std::string& path, std::function<FileText()> text) {
        write(path, "0\n");
        files[(folder / path).string()] = std::move(text);
    }

    // A counter of microjoules that steps once a tick.
    void counter(const std::string& path, double watts, double tick = 1e-3, double start = 1e6) {
        live(path, [this, watts, tick, start]() -> FileText {
            const double count = start + std::floor(now / tick) * tick * watts * 1e6;
            return {std::to_string(static_cast<std::uint64_t>(count)) + "\n", 0};
        });
    }

    // A zone of powercap.
    void zone(const std::string& id, const std::string& name, double watts, double start = 1e6) {
        const auto at = "class/powercap/" + id;
        write(at + "/name", name + "\n");
        write(at + "/max_energy_range_uj", "262143328850\n");
        counter(at + "/energy_uj", watts, 1e-3, start);
    }

    std::string energy_file(const std::string& id) const {
        return (folder.path() / "class/powercap" / id / "energy_uj").string();
    }

    TestFolder folder;
    EnergyOptions options;
    Surroundings machine;
    std::map<std::string, std::function<FileText()>> files;
    double now = 100;
    double look = 5e-6;
    double unix_shift = 0;
};

}  // namespace trocar::energy
