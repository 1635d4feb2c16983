#include "ops/conditions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "util/text.h"

namespace trocar::ops {

namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

double number(const std::string& text) {
    char* end = nullptr;
    const auto value = std::strtod(text.c_str(), &end);
    return end == text.c_str() ? -1 : value;
}

double mean_mhz(const fs::path& cpuinfo) {
    std::ifstream file(cpuinfo);
    double sum = 0;
    int count = 0;
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("cpu MHz")) {
            const auto value = number(line.substr(line.find(':') + 1));
            if (value > 0) {
                sum += value;
                ++count;
            }
        }
    }
    return count > 0 ? sum / count : -1;
}

double hottest(const fs::path& zones) {
    double most = -1;
    std::error_code none;
    for (const auto& zone : fs::directory_iterator(zones, none)) {
        const auto value = number(first_line(zone.path() / "temp"));
        most = std::max(most, value > 0 ? value / 1000 : -1);
    }
    return most;
}

}  // namespace

Conditions conditions(const std::string& root) {
    Conditions now;
    now.load = number(first_line(root + "/proc/loadavg"));
    now.mhz = mean_mhz(root + "/proc/cpuinfo");
    now.celsius = hottest(root + "/sys/class/thermal");
    now.governor = first_line(root + "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    // "cpu user nice system idle iowait irq softirq steal …"
    std::istringstream stat(first_line(root + "/proc/stat"));
    std::string word;
    stat >> word;
    double ticks = 0;
    double total = 0;
    for (int i = 0; stat >> ticks; ++i) {
        total += i < 8 ? ticks : 0;
        if (i == 7) {
            now.steal_ticks = ticks;
            now.total_ticks = total;
        }
    }
    return now;
}

std::string text(const Conditions& before, const Conditions& after) {
    std::string all;
    const auto add = [&](const char* what, double a, double b, const char* unit) {
        if (a >= 0 && b >= 0) {
            all +=
                fmt::format("{}{} {:.1f} to {:.1f}{}", all.empty() ? "" : "; ", what, a, b, unit);
        }
    };
    add("load", before.load, after.load, "");
    add("frequency", before.mhz, after.mhz, " MHz");
    add("temperature", before.celsius, after.celsius, " °C");
    if (after.total_ticks > before.total_ticks && before.steal_ticks >= 0) {
        all += fmt::format("{}steal {:.1f} %", all.empty() ? "" : "; ",
                           100 * (after.steal_ticks - before.steal_ticks) /
                               (after.total_ticks - before.total_ticks));
    }
    return all;
}

std::vector<std::string> preflight(const Conditions& now, int cores,
                                   const std::string& hypervisor) {
    std::vector<std::string> wrong;
    if (now.load > 0.5 * cores) {
        wrong.push_back(fmt::format(
            "other work runs on this machine (load {:.1f} on {} cores): times will be rough",
            now.load, cores));
    }
    if (!now.governor.empty() && now.governor != "performance") {
        wrong.push_back(
            fmt::format("the cores' frequency may change (governor '{}'); `cpupower frequency-set "
                        "-g performance` fixes it",
                        now.governor));
    }
    if (!hypervisor.empty()) {
        wrong.emplace_back(
            "this is a virtual machine: what its neighbours do is seen in the times only");
    }
    return wrong;
}

std::vector<std::string> drift(const Conditions& before, const Conditions& after) {
    std::vector<std::string> wrong;
    if (before.mhz > 0 && after.mhz > 0 && (after.mhz < 0.95 * before.mhz)) {
        wrong.push_back(
            fmt::format("the cores slowed down from {:.0f} to {:.0f} MHz", before.mhz, after.mhz));
    }
    if (after.total_ticks > before.total_ticks && before.steal_ticks >= 0) {
        const auto share =
            (after.steal_ticks - before.steal_ticks) / (after.total_ticks - before.total_ticks);
        if (share > 0.01) {
            wrong.push_back(fmt::format(
                "other virtual machines took {:.1f} % of the processor's time", 100 * share));
        }
    }
    return wrong;
}

}  // namespace trocar::ops
