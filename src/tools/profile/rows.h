#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trocar/profile.h"
#include "util/samples.h"

namespace trocar::profiles {

// What the samples of a time say. All in nanoseconds, over the steady runs.
struct Figures {
    double typical = 0;  // over the typical runs: what adds up
    double median = 0;
    double deviation = 0;  // median absolute deviation
    double p5 = 0;
    double p95 = 0;
    double p99 = 0;
    Interval interval;  // of the median, 95 %
};
Figures figures(const std::vector<double>& by_run, const Profile& profile,
                const std::vector<std::size_t>& typical_runs);

// A row of the tree: a part, or a module with the sums of what is in it.
struct Row {
    static constexpr std::size_t none = static_cast<std::size_t>(-1);
    std::string label;
    int depth = 0;
    std::size_t part = none;  // none: a module
    std::size_t parts = 1;    // in it
    Figures self;             // a module's own is 0: what it does is in its parts
    Figures total;
    double cold_ns = 0;
    std::optional<std::uint64_t> macs;
    std::optional<std::uint64_t> flops;
    std::optional<std::uint64_t> bytes;
    std::string uncounted;
};

// Every part by itself, in order.
std::vector<Row> part_rows(const Profile& profile);
// The parts by module, in the order in which modules begin, opened `depth` levels; 0: as deep as
// `fit` rows allow. Where a module is not opened its row stands for what is in it.
std::vector<Row> tree_rows(const Profile& profile, int depth, std::size_t fit);

// The modules around a part and then its own label: what a stack of calls would be.
std::vector<std::string> stack_of(const Profile& profile, std::size_t part);
// What a part is called inside its module.
std::string label_of(const ProfilePart& part);

}  // namespace trocar::profiles
