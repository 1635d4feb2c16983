#include "tools/split/overview.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "util/files.h"
#include "util/text.h"

namespace trocar {

namespace {

struct AttributeText {
    std::string operator()(std::monostate) const { return "?"; }
    std::string operator()(std::int64_t number) const { return fmt::format("{}", number); }
    std::string operator()(float number) const { return fmt::format("{:g}", number); }
    std::string operator()(const std::string& text) const { return text; }
    std::string operator()(const Constant& constant) const {
        return fmt::format("{}[{}]", name(constant.dtype()), join(constant.shape(), ","));
    }
    std::string operator()(const std::shared_ptr<Graph>& graph) const {
        return fmt::format("{} ops", graph ? graph->op_count() : 0);
    }
    std::string operator()(const Type& type) const { return type_text(type); }
    template <class T>
    std::string operator()(const std::vector<T>& list) const {
        std::vector<std::string> texts;
        for (const auto& one : list) {
            texts.push_back((*this)(one));
        }
        return fmt::format("[{}]", join(texts, ","));
    }
};

std::string attributes_of(const Graph& graph, const Part& part) {
    if (part.ops.size() != 1) {
        return fmt::format("{} ops", part.ops.size());
    }
    std::vector<std::string> texts;
    for (const auto& attribute : graph.op(part.ops.front()).attributes) {
        texts.push_back(
            fmt::format("{}={}", attribute.name, std::visit(AttributeText{}, attribute.value)));
    }
    return fmt::format("{}", join(texts, " "));
}

std::uint64_t parameters_of(const Chain& chain, const Part& part) {
    std::set<TensorId> seen;
    std::uint64_t sum = 0;
    for (const auto id : part.ops) {
        for (const auto input : chain.model().graph.op(id).inputs) {
            const auto* constant = input == TensorId::none ? nullptr : chain.constant(input);
            if (constant != nullptr && is_float(constant->dtype()) && seen.insert(input).second) {
                sum += constant->element_count();
            }
        }
    }
    return sum;
}

std::string types_of(const std::vector<LabValue>& values) {
    std::vector<std::string> texts;
    for (const auto& value : values) {
        texts.push_back(type_text(value.type));
    }
    return fmt::format("{}", join(texts, " "));
}

Row layer_row(const Chain& chain, const Part& part, const LabLayer& layer) {
    Row row;
    auto& cells = row.cells;
    const bool there = layer.error.empty() && !layer.samples.empty();
    const auto missing = Cell::unavailable("the layer was not written");
    cells.emplace_back(std::uint64_t{layer.number});
    cells.emplace_back(layer.type);
    cells.emplace_back(layer.name);
    cells.push_back(there ? Cell(types_of(layer.samples.front().inputs)) : missing);
    cells.push_back(there ? Cell(types_of(layer.samples.front().outputs)) : missing);
    cells.emplace_back(parameters_of(chain, part));
    cells.emplace_back(attributes_of(chain.model().graph, part));
    cells.push_back(layer.module.empty() ? Cell::unavailable("the file does not tell")
                                         : Cell(layer.module));
    cells.emplace_back(layer.ops);
    cells.emplace_back(layer.occurrences);
    cells.emplace_back(layer.folder);
    cells.push_back(layer.error.empty() ? Cell::unavailable("it was written") : Cell(layer.error));
    return row;
}

}  // namespace

Report split_report(const Chain& chain, const std::vector<Part>& parts, const Lab& lab) {
    Report report;
    report.tool = "split";
    Table table;
    table.key = "layers";
    table.title = "Layers";
    const bool failed = std::any_of(lab.layers.begin(), lab.layers.end(),
                                    [](const auto& layer) { return !layer.error.empty(); });
    table.columns = {{.key = "layer", .title = "#"},
                     {.key = "type", .title = "Type"},
                     {.key = "name", .title = "Layer"},
                     {.key = "inputs", .title = "Inputs"},
                     {.key = "outputs", .title = "Outputs"},
                     {.key = "parameters", .title = "Params", .show = Show::count},
                     {.key = "attributes", .title = "Attributes", .optional = 1},
                     {.key = "module", .title = "Module", .hidden = true},
                     {.key = "ops", .title = "Ops", .hidden = true},
                     {.key = "occurrences", .title = "Also", .hidden = true},
                     {.key = "folder", .title = "Folder", .hidden = true},
                     {.key = "error", .title = "Error", .hidden = !failed}};
    std::size_t errors = 0;
    std::size_t further = 0;
    for (const auto& layer : lab.layers) {
        table.rows.push_back(layer_row(chain, parts[layer.number], layer));
        errors += layer.error.empty() ? 0 : 1;
        further += layer.occurrences.size();
    }
    report.tables.push_back(std::move(table));
    Section section{.key = "split", .title = "Split", .scalars = {}};
    auto& all = section.scalars;
    all.push_back({"folder", "Folder", lab.folder.string(), Show::plain, ""});
    all.push_back({"written", "Layers written", std::uint64_t{lab.layers.size() - errors},
                   Show::count, fmt::format("of {}", parts.size())});
    if (further > 0) {
        all.push_back({"alike", "Alike, not written", std::uint64_t{further}, Show::count, ""});
    }
    all.push_back({"failed", "Layers without data", std::uint64_t{errors}, Show::count,
                   errors > 0 ? "error.txt in their folders says why" : ""});
    all.push_back({"samples", "Samples",
                   std::uint64_t{lab.layers.empty() ? 0 : lab.layers.front().samples.size()},
                   Show::count, ""});
    all.push_back({"golden", "Golden outputs from", lab.engine, Show::plain, ""});
    report.sections.push_back(std::move(section));
    report.order = {"layers", "split"};
    return report;
}

void write_overview(const Lab& lab, const Report& report) {
    auto overview = report;
    overview.tables.clear();
    auto layers = report;
    layers.sections.clear();
    for (const auto& [stem, what] :
         {std::pair{"overview", &overview}, std::pair{"layers", &layers}}) {
        for (const auto& [format, suffix] : {std::pair{"text", "txt"}, std::pair{"json", "json"}}) {
            const auto* writer = find_report_format(format);
            write_file(lab.folder / fmt::format("{}.{}", stem, suffix),
                       writer->write(*what, {.verbosity = 1}));
        }
    }
}

}  // namespace trocar
