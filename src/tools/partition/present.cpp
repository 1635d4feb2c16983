#include "tools/partition/present.h"

#include <fmt/format.h>

#include <algorithm>

#include "util/text.h"

namespace trocar::partition_tool_parts {

Table part_table(const Partition& partition, const PartitionManifest& manifest) {
    const bool devices = std::any_of(partition.parts.begin(), partition.parts.end(),
                                     [](const auto& part) { return !part.device.empty(); });
    Table table{.key = "parts",
                .title = "Parts",
                .columns = {{.key = "part", .title = "Part"},
                            {.key = "device", .title = "Device", .hidden = !devices},
                            {.key = "file", .title = "File"},
                            {.key = "ops", .title = "Ops", .show = Show::count},
                            {.key = "cost", .title = "Cost", .show = Show::compact},
                            {.key = "share", .title = "Share", .show = Show::percent},
                            {.key = "constant_bytes", .title = "Constants", .show = Show::bytes},
                            {.key = "peak_bytes", .title = "Needs", .show = Show::bytes},
                            {.key = "inputs", .title = "Reads", .optional = 1},
                            {.key = "outputs", .title = "Gives", .optional = 1}},
                .rows = {},
                .note = {}};
    double sum = 0;
    for (const auto& part : partition.parts) {
        sum += part.cost;
    }
    for (std::size_t i = 0; i < partition.parts.size(); ++i) {
        const auto& part = partition.parts[i];
        const auto& entry = manifest.parts[i];
        table.rows.push_back(
            {.cells = {std::uint64_t{i}, part.device, entry.files.front().file,
                       std::uint64_t{part.ops.size()}, part.cost,
                       sum > 0 ? Cell(part.cost / sum) : Cell::unavailable("no op has a cost"),
                       part.constant_bytes,
                       part.peak_bytes ? Cell(std::uint64_t{*part.peak_bytes})
                                       : Cell::unavailable("sizes are not known"),
                       std::uint64_t{part.inputs.size()}, std::uint64_t{part.outputs.size()}}});
    }
    return table;
}

Table cut_table(const PartitionManifest& manifest) {
    Table table{.key = "cuts",
                .title = "Tensors between parts",
                .columns = {{.key = "tensor", .title = "Tensor"},
                            {.key = "type", .title = "Type"},
                            {.key = "bytes", .title = "Bytes", .show = Show::bytes},
                            {.key = "from", .title = "From"},
                            {.key = "to", .title = "To"},
                            {.key = "sha256", .title = "SHA-256", .hidden = true}},
                .rows = {},
                .note = {}};
    for (const auto& cut : manifest.cuts) {
        table.rows.push_back(
            {.cells = {cut.name, type_text(cut.type),
                       cut.bytes ? Cell(std::uint64_t{*cut.bytes})
                                 : Cell::unavailable("its size is not known"),
                       std::uint64_t{cut.from}, fmt::format("{}", join(cut.to, ", ")),
                       cut.sha256.empty() ? Cell::unavailable("not run") : Cell(cut.sha256)}});
    }
    return table;
}

}  // namespace trocar::partition_tool_parts
