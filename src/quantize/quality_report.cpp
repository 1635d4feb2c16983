#include <fmt/format.h>

#include <cmath>

#include "trocar/quality.h"
#include "trocar/report.h"

namespace trocar {

QualityInputs::QualityInputs(const DataArguments& data, const InputSpec& inputs, const Model& model,
                             std::uint64_t seed) {
    if (!data.path.empty()) {
        data_ = open_data(chosen_data(data), model.graph);
        most_ = data_->size();
        return;
    }
    auto spec = inputs;
    spec.seed = seed;
    fixed_ = make_inputs(model, spec).values;
    most_ = 1;
}

bool QualityInputs::given(const DataArguments& data, const InputSpec& inputs) {
    return !data.path.empty() || !inputs.sources.empty() || !inputs.fill.empty();
}

bool QualityInputs::operator()(std::size_t number, std::vector<NamedValue>& values) const {
    if (number >= most_) {
        return false;
    }
    values = data_ ? data_->sample(number).inputs : fixed_;
    return true;
}

std::int64_t QualityInputs::label(std::size_t number) const {
    return data_ ? data_->label(number).value_or(-1) : -1;
}

Cell decibels(double db) {
    return std::isfinite(db) ? Cell(db) : Cell(db > 0 ? "same" : "lost");
}

void add_quality_section(const Quality& quality, Report& report, const std::string& engine) {
    Section section{.key = engine.empty() ? "quality" : "quality_" + engine,
                    .title = engine.empty() ? "Quality" : "Quality on " + engine,
                    .scalars = {}};
    auto& scalars = section.scalars;
    scalars.push_back({"samples", "Samples", std::uint64_t{quality.samples}, Show::count, ""});
    if (quality.labelled > 0) {
        const auto share = [&](std::size_t right) {
            return static_cast<double>(right) / static_cast<double>(quality.labelled);
        };
        scalars.push_back(
            {"accuracy_before", "Accuracy before", share(quality.right_before), Show::percent, ""});
        scalars.push_back(
            {"accuracy_after", "Accuracy after", share(quality.right_after), Show::percent, ""});
    }
    if (quality.choices > 0) {
        const auto share =
            static_cast<double>(quality.agreeing) / static_cast<double>(quality.choices);
        scalars.push_back({"agreeing", "Same choice", share, Show::percent, ""});
    }
    for (const auto& output : quality.outputs) {
        scalars.push_back({"sqnr_" + output.tensor, "SQNR of " + output.tensor,
                           decibels(output.sqnr_db), Show::decibels, ""});
    }
    report.sections.push_back(std::move(section));
}

Table quality_table(const Quality& quality) {
    Table table{.key = "layers",
                .title = "Layers",
                .columns = {{.key = "tensor", .title = "Tensor"},
                            {.key = "type", .title = "Op"},
                            {.key = "sqnr_db", .title = "SQNR", .show = Show::decibels}},
                .rows = {},
                .note = "of what each op makes, against the model before"};
    for (const auto& layer : quality.layers) {
        table.rows.push_back({.cells = {layer.tensor, layer.type, decibels(layer.sqnr_db)}});
    }
    return table;
}

}  // namespace trocar
