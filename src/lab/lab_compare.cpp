#include <fmt/format.h>

#include <algorithm>

#include "lab/files.h"
#include "lab/outputs.h"
#include "trocar/error.h"
#include "trocar/format.h"
#include "trocar/lab.h"

namespace trocar {

namespace {

namespace fs = std::filesystem;

LayerComparison compare_layer(const Lab& lab, const LabLayer& layer, const std::string& name,
                              std::size_t sample, bool cumulative) {
    LayerComparison result;
    result.set = sample;
    result.cumulative = cumulative;
    result.end = RunEnd::failed;
    if (!layer.error.empty()) {
        result.reason = layer.error;
        return result;
    }
    const auto folder = lab::result_path(lab, layer, name, cumulative);
    const auto stored = lab::read_result(folder);
    if (!stored) {
        result.reason = "it was not run";
        return result;
    }
    result.end = stored->end;
    result.reason = stored->reason;
    result.seconds = stored->seconds;
    if (stored->end != RunEnd::done) {
        return result;
    }
    const auto refuse = [&](const std::string& why) {
        result.end = RunEnd::bad_output;
        result.reason = why;
    };
    if (stored->model_sha256 != layer.model_sha256) {
        refuse("the result is of another model");
        return result;
    }
    try {
        const auto& golden = layer.samples.at(sample).outputs;
        const auto& found = stored->outputs.at(sample);
        if (golden.size() != found.size()) {
            refuse(fmt::format("{} outputs instead of {}", found.size(), golden.size()));
            return result;
        }
        for (std::size_t i = 0; i < golden.size(); ++i) {
            const auto a = lab::load_value(lab.folder / layer.folder, golden[i]);
            const auto values = load_values(lab::inside(folder, found[i]));
            const auto b = fit_optional(values.at(0).value, golden[i].type);
            lab::compare_value(result.tensors, golden[i].name, a, b, [&](const Value&) {
                const auto tolerance = layer.tolerances.find(golden[i].name);
                return tolerance == layer.tolerances.end() ? Tolerance{} : tolerance->second;
            });
        }
    } catch (const Error& error) {
        refuse(error.what());
    } catch (const std::out_of_range&) {
        refuse("its files do not fit the manifest");
    }
    return result;
}

}  // namespace

Comparison compare_lab(const Lab& lab, const std::vector<std::string>& names,
                       const Judging& judging,
                       const std::function<bool(std::size_t, std::size_t)>& progress) {
    const auto all = names.empty() ? result_names(lab) : names;
    if (all.empty()) {
        throw Error(Fault::input,
                    fmt::format("'{}' has no results to compare", lab.folder.string()),
                    "`trocar lab run LAB --engine NAME` makes some");
    }
    Comparison comparison;
    comparison.sides.push_back(fmt::format("golden, {}", lab.engine));
    comparison.sides.insert(comparison.sides.end(), all.begin(), all.end());
    for (const auto& layer : lab.layers) {
        comparison.layers.push_back(
            {layer.number, layer.name, layer.type, layer.module, layer.ops});
    }
    comparison.complete = true;
    for (std::size_t i = 0; i < lab.layers.size(); ++i) {
        const auto& layer = lab.layers[i];
        if (progress && !progress(i, lab.layers.size())) {
            comparison.complete = false;
            break;
        }
        const auto samples = std::max<std::size_t>(layer.samples.size(), 1);
        for (std::size_t sample = 0; sample < samples; ++sample) {
            for (std::size_t side = 1; side < comparison.sides.size(); ++side) {
                for (const bool cumulative : {false, true}) {
                    auto result =
                        compare_layer(lab, layer, comparison.sides[side], sample, cumulative);
                    if (cumulative && result.reason == "it was not run") {
                        continue;
                    }
                    result.layer = i;
                    result.side = side;
                    judge(result, comparison.layers[i], judging);
                    comparison.results.push_back(std::move(result));
                }
            }
        }
    }
    return comparison;
}

}  // namespace trocar
