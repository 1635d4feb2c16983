#pragma once

#include <string>
#include <vector>

namespace trocar::ops {

// What of the machine may change times, now.
struct Conditions {
    double load = -1;         // processes that wanted a core, over the last minute; -1: not known
    double mhz = -1;          // mean of the cores
    double celsius = -1;      // of the hottest zone
    double steal_ticks = -1;  // taken by other virtual machines, since the start
    double total_ticks = -1;
    std::string governor;
};
Conditions conditions(const std::string& root = "");  // where /proc and /sys are, for tests
std::string text(const Conditions& before, const Conditions& after);
// What is wrong with the machine before anything is measured: a sentence each.
std::vector<std::string> preflight(const Conditions& now, int cores, const std::string& hypervisor);
// And what turned out to be wrong meanwhile.
std::vector<std::string> drift(const Conditions& before, const Conditions& after);

}  // namespace trocar::ops
