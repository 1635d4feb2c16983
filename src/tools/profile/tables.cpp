#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tools/profile/compare.h"
#include "tools/profile/present.h"
#include "trocar/counting.h"

namespace trocar::profiles {

namespace {

Cell known(const std::optional<std::uint64_t>& number, const std::string& why) {
    return number ? Cell(*number) : Cell::unavailable(why.empty() ? "shapes are not known" : why);
}

Cell giga(const std::optional<double>& number) {
    return number ? Cell(*number * 1e-9) : Cell::unavailable("work or time is not known");
}

// In billions; three digits are what a rate is worth to a reader.
Cell rate(const std::optional<double>& number) {
    if (!number || *number <= 0) {
        return Cell::unavailable("");
    }
    const double billions = *number * 1e-9;
    const double unit = std::pow(10.0, std::floor(std::log10(billions)) - 2);
    return std::round(billions / unit) * unit;
}

// Columns that say the same of every part of this model are for programs only.
std::vector<Column> layer_columns(const Findings& findings, bool tree) {
    bool nested = false;
    bool repeated = false;
    const bool flat = !findings.peaks;  // no roof to measure against
    for (const auto& part : findings.profile.parts) {
        nested = nested || part.inside != ProfilePart::none;
        repeated = repeated || part.calls > 1;
    }
    return {
        {.key = "name", .title = "Layer", .left = true, .tree = tree},
        {.key = "type", .title = "Ops", .optional = 5},
        {.key = "calls", .title = "Calls", .optional = 9, .hidden = !repeated},
        {.key = "total_ns", .title = "Time", .show = Show::nanoseconds},
        {.key = "share", .title = "Share", .show = Show::percent},
        {.key = "self_ns",
         .title = "Self",
         .show = Show::nanoseconds,
         .optional = 8,
         .hidden = !nested},
        {.key = "median_ns", .title = "Median", .show = Show::nanoseconds, .optional = 10},
        {.key = "p5_ns", .title = "5 %", .show = Show::nanoseconds, .optional = 7},
        {.key = "p95_ns", .title = "95 %", .show = Show::nanoseconds, .optional = 3},
        {.key = "cold_ns", .title = "First", .show = Show::nanoseconds, .optional = 11},
        {.key = "macs", .title = "MACs", .show = Show::compact, .optional = 6},
        {.key = "gflops", .title = "GFLOP/s", .optional = 1},
        {.key = "gbytes", .title = "GB/s", .optional = 2},
        {.key = "roof", .title = "Of roof", .show = Show::percent, .optional = 4, .hidden = flat},
        {.key = "bound", .title = "Bound", .optional = 4, .hidden = flat},
        {.key = "live_bytes", .title = "Live", .show = Show::bytes, .optional = 12}};
}

trocar::Row cells_of(const Findings& findings, const Row& row, double whole) {
    const auto& profile = findings.profile;
    const auto* part = row.part == Row::none ? nullptr : &profile.parts[row.part];
    const auto roof = roof_of(row, findings.peaks);
    trocar::Row made;
    made.depth = row.depth;
    made.strong = part == nullptr;
    made.cells = {row.label,
                  part != nullptr ? Cell(part->type) : Cell(fmt::format("{} parts", row.parts)),
                  part != nullptr ? Cell(part->calls) : Cell(),
                  row.total.typical,
                  row.total.typical / whole,
                  part != nullptr ? Cell(row.self.typical) : Cell(0.0),
                  row.total.median,
                  row.total.p5,
                  row.total.p95,
                  row.cold_ns,
                  known(row.macs, row.uncounted),
                  rate(roof.flops),
                  rate(roof.bytes),
                  roof.headroom ? Cell(*roof.headroom) : Cell::unavailable("no roofline"),
                  roof.bound,
                  part != nullptr ? known(part->live_bytes, "") : Cell()};
    return made;
}

// The lines below the parts: what is left, and the whole.
void add_sum(const Findings& findings, Table& table) {
    const auto runs = typical_runs(findings.profile);
    const double whole = typical(findings.profile.wall_ns, runs);
    const auto line = [&](const char* label, double ns) {
        trocar::Row row;
        row.strong = true;
        row.cells.resize(table.columns.size());
        row.cells[0] = label;
        row.cells[3] = ns;
        row.cells[4] = ns / whole;
        table.rows.push_back(std::move(row));
    };
    line("unattributed", unattributed(findings.profile, runs));
    line("whole run", whole);
}

}  // namespace

Table layer_table(const Findings& findings, const std::vector<Row>& rows, bool tree) {
    Table table{.key = "layers",
                .title = findings.profile.view == View::deployed
                             ? "Layers as they run: the engine's fused ops, by the model's modules"
                             : "Layers, each a program of its own",
                .columns = layer_columns(findings, tree),
                .rows = {},
                .note = {}};
    const double whole = typical(findings.profile.wall_ns, typical_runs(findings.profile));
    for (const auto& row : rows) {
        table.rows.push_back(cells_of(findings, row, whole));
    }
    add_sum(findings, table);
    table.note = "time: mean over the middle half of the steady runs, so that it adds up";
    return table;
}

Table type_table(const Findings& findings) {
    struct Sum {
        double ns = 0;
        std::size_t parts = 0;
    };
    std::map<std::string, Sum> sums;
    const auto runs = typical_runs(findings.profile);
    for (const auto& part : findings.profile.parts) {
        auto& sum = sums[part.type.empty() ? "in subgraphs" : part.type];
        sum.ns += typical(part.self_ns, runs);
        ++sum.parts;
    }
    std::vector<std::pair<std::string, Sum>> order(sums.begin(), sums.end());
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.second.ns > b.second.ns; });
    Table table{.key = "types",
                .title = "By kind",
                .columns = {{.key = "type", .title = "Ops"},
                            {.key = "parts", .title = "Parts", .show = Show::count},
                            {.key = "self_ns", .title = "Time", .show = Show::nanoseconds},
                            {.key = "share", .title = "Share", .show = Show::percent}},
                .rows = {},
                .note = {}};
    const double whole = typical(findings.profile.wall_ns, runs);
    for (const auto& [type, sum] : order) {
        table.rows.push_back({.cells = {type, std::uint64_t{sum.parts}, sum.ns, sum.ns / whole}});
    }
    return table;
}

Table part_table(const Findings& findings) {
    Table table{.key = "parts", .title = "", .columns = {}, .rows = {}, .note = {}};
    table.hidden = true;
    for (const char* key : {"part",
                            "name",
                            "type",
                            "module",
                            "sources",
                            "inside",
                            "calls",
                            "self_ns",
                            "total_ns",
                            "share",
                            "median_ns",
                            "low_ns",
                            "high_ns",
                            "p5_ns",
                            "p95_ns",
                            "p99_ns",
                            "deviation_ns",
                            "cold_ns",
                            "macs",
                            "flops",
                            "bytes",
                            "gflops_per_second",
                            "gbytes_per_second",
                            "roof",
                            "bound",
                            "allocated_bytes",
                            "freed_bytes",
                            "live_bytes",
                            "cycles",
                            "instructions",
                            "cache_misses"}) {
        table.columns.push_back({.key = key, .title = key});
    }
    const auto& profile = findings.profile;
    const double whole = typical(profile.wall_ns, typical_runs(profile));
    const auto count = [&](const ProfilePart& part, std::uint64_t Counts::*which) {
        return part.counts ? Cell((*part.counts).*which)
                           : Cell::unavailable(profile.counts_unavailable.empty()
                                                   ? "the engine runs all parts in one program"
                                                   : profile.counts_unavailable);
    };
    for (const auto& row : part_rows(profile)) {
        const auto& part = profile.parts[row.part];
        const auto roof = roof_of(row, findings.peaks);
        std::vector<std::string> sources;
        for (const auto id : part.ops) {
            sources.push_back(findings.model.graph.describe(id));
        }
        const auto& t = row.total;
        table.rows.push_back(
            {.cells = {std::uint64_t{row.part},
                       part.name,
                       part.type,
                       part.module,
                       std::move(sources),
                       part.inside == ProfilePart::none ? Cell() : Cell(std::uint64_t{part.inside}),
                       part.calls,
                       row.self.typical,
                       t.typical,
                       t.typical / whole,
                       t.median,
                       t.interval.low,
                       t.interval.high,
                       t.p5,
                       t.p95,
                       t.p99,
                       t.deviation,
                       part.cold_ns,
                       known(part.macs, part.uncounted),
                       known(part.flops, part.uncounted),
                       known(part.bytes, part.uncounted),
                       giga(roof.flops),
                       giga(roof.bytes),
                       roof.headroom ? Cell(*roof.headroom) : Cell::unavailable("no roofline"),
                       roof.bound,
                       known(part.allocated_bytes, ""),
                       known(part.freed_bytes, ""),
                       known(part.live_bytes, ""),
                       count(part, &Counts::cycles),
                       count(part, &Counts::instructions),
                       count(part, &Counts::cache_misses)}});
    }
    return table;
}

Table sample_table(const Findings& findings) {
    Table table{.key = "samples",
                .title = "",
                .columns = {{.key = "name", .title = "Name"},
                            {.key = "view", .title = "View"},
                            {.key = "samples_ns", .title = "Samples"}},
                .rows = {},
                .note = {}};
    table.hidden = true;
    const auto& profile = findings.profile;
    const auto add = [&](const std::string& name, const std::vector<double>& by_run) {
        table.rows.push_back(
            {.cells = {name, view_name(profile.view), sample_texts(by_run, profile.steady)}});
    };
    add("whole run", profile.wall_ns);
    for (const auto& part : profile.parts) {
        add(part.name, part.total_ns);
    }
    return table;
}

}  // namespace trocar::profiles
