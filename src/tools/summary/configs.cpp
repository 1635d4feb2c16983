#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "tools/summary/present.h"
#include "util/text.h"

namespace trocar::summary {
namespace {

struct Config {
    const OpRow* row = nullptr;  // the first of its kind
    std::uint64_t count = 0;
    std::set<std::size_t> models;
    Sums sums;
    std::size_t order = 0;
};

// What tells one configuration from another, in words: the same text, the same configuration.
std::string key_of(const OpRow& row) {
    const Op& op = row.scope->graph->op(row.op);
    std::string key = row.type + "\n" + row.attributes;
    for (const auto* ids : {&op.inputs, &op.outputs}) {
        key += "\n";
        for (TensorId id : *ids) {
            if (id == TensorId::none) {
                key += "none,";
                continue;
            }
            const Fact& fact = row.scope->fact(id);
            key += fmt::format("{} {}{},", static_cast<int>(fact.dtype), text_of(fact),
                               fact.constant != nullptr ? "c" : "");
        }
    }
    return key;
}

// Weights and data apart: "1x64x56x56" and "64x64x3x3".
std::string tensors_of(const OpRow& row, bool constants) {
    std::vector<std::string> texts;
    for (TensorId id : row.scope->graph->op(row.op).inputs) {
        if (id != TensorId::none && (row.scope->fact(id).constant != nullptr) == constants) {
            texts.push_back(text_of(row.scope->fact(id)));
        }
    }
    return fmt::format("{}", join(texts, ", "));
}

}  // namespace

Table config_table(std::span<const Summary> summaries, const Options& options) {
    std::map<std::string, Config> configs;
    std::uint64_t macs = 0;
    for (std::size_t m = 0; m < summaries.size(); ++m) {
        for (const OpRow& row : summaries[m].rows.rows) {
            if (row.has_bodies || !row.taken) {
                continue;
            }
            Config& config = configs[key_of(row)];
            if (config.row == nullptr) {
                config.row = &row;
                config.order = configs.size();
            }
            config.count += row.times;
            config.models.insert(m);
            config.sums.add(row.sums);
            macs += row.sums.macs;
        }
    }
    std::vector<const Config*> sorted;
    for (const auto& [key, config] : configs) {
        sorted.push_back(&config);
    }
    auto rank = [&](const Config* c) -> std::uint64_t {
        if (options.sort == "params") {
            return c->sums.parameters;
        }
        if (options.sort == "bytes") {
            return c->sums.read + c->sums.written;
        }
        return options.sort == "order" ? 0 : c->sums.macs;
    };
    std::sort(sorted.begin(), sorted.end(), [&](const Config* a, const Config* b) {
        return std::pair(rank(b), a->order) < std::pair(rank(a), b->order);
    });

    Table table;
    table.key = "configs";
    table.title = "Layer configurations";
    table.columns = {
        {.key = "count", .title = "Count", .show = Show::count},
        {.key = "models", .title = "Models", .show = Show::count, .hidden = summaries.size() < 2},
        {.key = "type", .title = "Type"},
        {.key = "attributes", .title = "Attributes"},
        {.key = "inputs", .title = "Inputs"},
        {.key = "weights", .title = "Weights", .optional = 1},
        {.key = "outputs", .title = "Output", .optional = 2},
        {.key = "macs_each", .title = "MACs each", .show = Show::compact},
        {.key = "macs", .title = "MACs", .show = Show::compact, .optional = 3},
        {.key = "macs_ratio", .title = "%", .show = Show::percent},
        {.key = "flops_each", .title = "FLOPs each", .show = Show::compact, .optional = 5},
        {.key = "read_bytes_each", .title = "Read each", .show = Show::bytes, .optional = 6},
        {.key = "written_bytes_each", .title = "Written each", .show = Show::bytes, .optional = 6},
        {.key = "parameters", .title = "Params", .show = Show::count, .optional = 4},
        {.key = "example", .title = "Example", .hidden = true},
    };
    std::size_t limit = options.top > 0 ? static_cast<std::size_t>(options.top) : sorted.size();
    for (std::size_t i = 0; i < sorted.size() && i < limit; ++i) {
        const Config& c = *sorted[i];
        const OpRow& r = *c.row;
        bool unknown = r.count.counted == Counted::unknown;
        auto counted = [&](std::uint64_t n) {
            return unknown ? Cell::unavailable(r.count.why) : Cell(n);
        };
        std::uint64_t each = std::max<std::uint64_t>(r.times, 1);
        Row row;
        row.cells = {c.count,
                     c.models.size(),
                     r.type,
                     r.attributes,
                     tensors_of(r, false),
                     tensors_of(r, true),
                     fmt::format("{}", join(output_texts(r), ", ")),
                     counted(r.count.macs),
                     counted(c.sums.macs),
                     unknown || macs == 0
                         ? Cell()
                         : Cell(static_cast<double>(c.sums.macs) / static_cast<double>(macs)),
                     counted(r.count.flops()),
                     r.sums.read / each,
                     r.sums.written / each,
                     c.sums.parameters,
                     r.scope->graph->op(r.op).name};
        table.rows.push_back(std::move(row));
    }
    std::uint64_t ops = 0;
    for (const auto& [key, config] : configs) {
        ops += config.count;
    }
    table.note =
        fmt::format("{} distinct configurations of {} ops in {} {}{}", configs.size(), ops,
                    summaries.size(), summaries.size() == 1 ? "model" : "models",
                    limit < sorted.size() ? fmt::format("; the first {} are shown", limit) : "");
    return table;
}

}  // namespace trocar::summary
