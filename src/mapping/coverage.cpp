#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "trocar/mapping.h"
#include "trocar/session.h"
#include "util/text.h"

namespace trocar {

namespace {

// What became of the ops, by type and fate.
Table coverage_table(const std::vector<MappedOp>& ops) {
    Table table{.key = "coverage",
                .title = "Ops",
                .columns = {{.key = "type", .title = "Op"},
                            {.key = "count", .title = "Number", .show = Show::count},
                            {.key = "state", .title = "State"},
                            {.key = "rule", .title = "Rule"},
                            {.key = "why", .title = "Why"},
                            {.key = "first", .title = "First", .optional = 1}},
                .rows = {},
                .note = {}};
    using Key = std::tuple<bool, std::string, std::string, std::string>;
    std::map<Key, std::pair<std::uint64_t, std::string>> groups;
    for (const auto& op : ops) {
        auto& [count, first] =
            groups[{op.state == MappedOp::State::mapped, op.type, op.rule, op.why}];
        first = count++ == 0 ? op.name : first;
    }
    for (const auto& [key, group] : groups) {
        const auto& [done, type, rule, why] = key;
        table.rows.push_back({.cells = {type, group.first, done ? "mapped" : "impossible", rule,
                                        why, group.second}});
    }
    return table;
}

}  // namespace

bool Mapped::complete() const {
    return std::none_of(ops.begin(), ops.end(),
                        [](const MappedOp& op) { return op.state == MappedOp::State::impossible; });
}

bool has_all_types(const Graph& graph) {
    const auto tensors = graph.tensors();
    return std::all_of(tensors.begin(), tensors.end(), [&](TensorId id) {
        const auto& tensor = graph.tensor(id);
        return tensor.constant || (tensor.type.shape() && tensor.type.dtype != DType::undefined);
    });
}

void complete_types(Model& model, const std::shared_ptr<Engine>& engine,
                    const std::vector<NamedValue>& inputs) {
    std::vector<TensorId> open;
    for (const auto tensor : model.graph.tensors()) {
        if (!model.graph.tensor(tensor).constant) {
            open.push_back(tensor);
        }
    }
    const auto types = observe_types(model, engine, inputs, open);
    for (std::size_t i = 0; i < open.size(); ++i) {
        model.graph.set_type(open[i], types[i]);
    }
}

void report_mapping(const Mapped& mapped, const std::string& from, Report& report) {
    const auto impossible = static_cast<std::uint64_t>(
        std::count_if(mapped.ops.begin(), mapped.ops.end(),
                      [](const MappedOp& op) { return op.state == MappedOp::State::impossible; }));
    Section section{.key = "mapping", .title = "Mapping", .scalars = {}};
    auto& scalars = section.scalars;
    scalars.push_back({"from", "From", from, Show::plain, ""});
    scalars.push_back({"to", "To", mapped.model.dialect, Show::plain, ""});
    scalars.push_back({"mapped", "Ops mapped", std::uint64_t{mapped.ops.size()} - impossible,
                       Show::count, fmt::format("of {}", mapped.ops.size())});
    scalars.push_back({"impossible", "Impossible", impossible, Show::count, ""});
    scalars.push_back(
        {"made", "Ops made", std::uint64_t{mapped.model.graph.op_count()}, Show::count, ""});
    scalars.push_back({"transposes", "Changes of layout", std::uint64_t{mapped.transposes_left},
                       Show::count,
                       fmt::format("{} before they were joined", mapped.transposes_made)});
    if (mapped.integers > 0) {
        scalars.push_back({"integers", "Ops on integers", std::uint64_t{mapped.integers},
                           Show::count, "between quantised tensors"});
    }
    report.sections.push_back(std::move(section));
    report.tables.push_back(coverage_table(mapped.ops));
    if (impossible > 0) {
        report.verdict = false;
        report.notes.push_back(
            fmt::format("{} cannot be mapped, so nothing was written; --rules FILE adds rules",
                        counted(impossible, "op")));
    }
}

}  // namespace trocar
