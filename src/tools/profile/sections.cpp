#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "tools/profile/present.h"
#include "trocar/version.h"
#include "util/statistics.h"
#include "util/text.h"

namespace trocar::profiles {

namespace {

constexpr double noisy = 0.05;  // median absolute deviation of the wall time, as a share of it

constexpr double heavy = 1.2;  // a tax that distorts

std::string interval_text(const Interval& interval) {
    return fmt::format("95 %: {} to {}", show(Cell(interval.low), Show::nanoseconds),
                       show(Cell(interval.high), Show::nanoseconds));
}

Scalar time(const char* key, const char* title, double ns, std::string note) {
    return {key, title, ns, Show::nanoseconds, std::move(note)};
}

// Each profiled run against the plain one beside it.
std::vector<double> taxes(const Profile& profile) {
    std::vector<double> ratios;
    for (std::size_t run = profile.steady; run < profile.wall_ns.size(); ++run) {
        if (run < profile.plain_ns.size() && profile.plain_ns[run] > 0) {
            ratios.push_back(profile.wall_ns[run] / profile.plain_ns[run]);
        }
    }
    return ratios;
}

Scalar tax(const Profile& profile) {
    const auto ratios = taxes(profile);
    const auto interval = median_interval(ratios);
    const auto text =
        fmt::format("95 %: {:.3f} to {:.3f}; {}", interval.low, interval.high,
                    profile.view == View::deployed
                        ? "runs with and without took turns"
                        : "against the whole model, whose runs took turns with these");
    const auto median = spread(ratios).median;
    if (profile.view == View::deployed) {
        return {"tax", "Tax of profiling", median, Show::ratio, text};
    }
    return {"tax", "Cost of the cuts", median, Show::ratio, text};
}

}  // namespace

Section time_section(const Findings& findings) {
    const auto& profile = findings.profile;
    const auto runs = typical_runs(profile);
    const auto wall = figures(profile.wall_ns, profile, runs);
    const auto rest = unattributed(profile, runs);
    Section section{.key = "time", .title = "Time", .scalars = {}};
    auto& s = section.scalars;
    s.push_back(time("wall_ns", "Run, profiled", wall.typical,
                     fmt::format("mean of the middle half of {}",
                                 counted(profile.wall_ns.size() - profile.steady, "steady run"))));
    s.push_back(time("attributed_ns", "In its parts", wall.typical - rest,
                     counted(profile.parts.size(), "part")));
    s.push_back(time("unattributed_ns", "Unattributed", rest,
                     fmt::format("{} of the run", show(Cell(rest / wall.typical), Show::percent))));
    s.push_back(time("median_ns", "Median", wall.median, interval_text(wall.interval)));
    s.push_back(time("deviation_ns", "Deviation", wall.deviation, "median absolute deviation"));
    s.push_back(time("p5_ns", "5 %", wall.p5, ""));
    s.push_back(time("p95_ns", "95 %", wall.p95, ""));
    s.push_back(time("p99_ns", "99 %", wall.p99, ""));
    const std::vector<double> plain(
        profile.plain_ns.begin() +
            static_cast<std::ptrdiff_t>(std::min(profile.steady, profile.plain_ns.size())),
        profile.plain_ns.end());
    s.push_back(time("plain_median_ns", "Unprofiled, whole", spread(plain).median,
                     interval_text(median_interval(plain))));
    s.push_back(tax(profile));
    s.push_back(time("compile_ns", "Compile", profile.compile_ns, "the whole model"));
    s.push_back(time(
        "cold_ns", "First run", profile.cold_plain_ns,
        fmt::format("unprofiled; {} profiled", show(Cell(profile.cold_ns), Show::nanoseconds))));
    s.push_back({"steady_from", "Steady from run", std::uint64_t{profile.steady}, Show::plain,
                 fmt::format("of {} after the first", profile.wall_ns.size())});
    if (profile.view == View::source) {
        s.push_back({"cuts", "Cut after", findings.cuts, Show::plain,
                     counted(profile.programs, "program")});
    }
    return section;
}

Section machine_section(const Findings& findings) {
    const auto& profile = findings.profile;
    Section section{.key = "machine", .title = "Machine", .scalars = {}};
    auto& s = section.scalars;
    const auto why = "not measured";
    const auto& peaks = findings.peaks;
    s.push_back({"peak_flops_per_second", "Peak FLOP/s",
                 peaks ? Cell(peaks->flops) : Cell::unavailable(why), Show::compact,
                 "measured: product of f32 matrices on the engine"});
    s.push_back({"peak_bytes_per_second", "Peak bytes/s",
                 peaks ? Cell(peaks->bytes) : Cell::unavailable(why), Show::compact,
                 "measured: STREAM triad"});
    s.push_back(
        {"peak_live_bytes", "Peak memory",
         profile.peak_bytes ? Cell(*profile.peak_bytes)
                            : Cell::unavailable("sizes of tensors are not known"),
         Show::bytes,
         profile.peak_part < profile.parts.size()
             ? fmt::format("of {}, each with memory of its own; at {}",
                           profile.view == View::deployed ? "tensors" : "tensors between layers",
                           profile.parts[profile.peak_part].name)
             : ""});
    const auto& counts = profile.counts;
    const auto none = Cell::unavailable(profile.counts_unavailable);
    s.push_back({"cycles", "Cycles", counts ? Cell(counts->cycles) : none, Show::compact,
                 counts ? "of the calling thread, one run" : ""});
    s.push_back({"instructions", "Instructions", counts ? Cell(counts->instructions) : none,
                 Show::compact, ""});
    s.push_back({"cache_misses", "Cache misses", counts ? Cell(counts->cache_misses) : none,
                 Show::compact, counts ? "of the last level" : ""});
    return section;
}

std::vector<std::string> doubts(const Findings& findings) {
    const auto& profile = findings.profile;
    const auto runs = typical_runs(profile);
    std::vector<std::string> found;
    const auto wall = figures(profile.wall_ns, profile, runs);
    const auto rest = unattributed(profile, runs);
    if (rest < 0) {
        found.push_back(fmt::format("the parts take {} more than the whole: their clock is off",
                                    show(Cell(-rest), Show::nanoseconds)));
    }
    if (const auto ratio = spread(taxes(profile)).median;
        profile.view == View::deployed && ratio > heavy) {
        found.push_back(
            fmt::format("profiling makes a run {} as long: the ops are so short that "
                        "the engine's own bookkeeping is much of what it measures",
                        show(Cell(ratio), Show::ratio)));
    }
    if (wall.deviation > noisy * wall.median) {
        found.push_back(fmt::format(
            "noisy: half of the runs are off the median by more than {}; more runs, or a quieter "
            "machine, would tell more",
            show(Cell(wall.deviation / wall.median), Show::percent)));
    }
    const auto cores = std::max(1U, std::thread::hardware_concurrency());
    if (findings.load >= 0 && findings.load + findings.threads > cores + 0.5) {
        found.push_back(fmt::format("the machine is busy: a load of {:.1f} on {} when it began",
                                    findings.load, counted(cores, "core")));
    }
    if (findings.peaks) {
        for (const auto& row : part_rows(profile)) {
            const auto roof = roof_of(row, findings.peaks);
            if (roof.flops && *roof.flops > 1.05 * findings.peaks->flops) {
                found.push_back(fmt::format(
                    "{} does {:.1f} GFLOP/s, above the measured peak of {:.1f}: it skips work, or "
                    "the peak was measured on a busy machine (--measure-peaks measures it anew)",
                    row.label, *roof.flops * 1e-9, findings.peaks->flops * 1e-9));
                break;
            }
        }
    }
    if (const std::string build = build_type(); build != "release" && !build.empty()) {
        found.push_back(
            fmt::format("this is a {} build of trocar: times outside the engine are "
                        "longer than in a release",
                        build));
    }
    return found;
}

}  // namespace trocar::profiles
