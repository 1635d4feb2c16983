#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "campaign/measures.h"
#include "campaign/tally.h"
#include "util/display.h"
#include "util/svg.h"

namespace trocar {

namespace {

using namespace campaign;

constexpr const char* ink = "fill=\"#223\"";
constexpr const char* pale = "fill=\"#667\"";
constexpr const char* grid = "#e4e7eb";
constexpr const char* accent = "#c4322b";
constexpr double label_width = 250;
constexpr std::size_t label_columns = 34;

std::string share_text(double share) {
    return fmt::format("{:.3g} %", 100 * share);
}

std::string subtitle(const CampaignStore& store, const Tally& tally) {
    const auto& header = store.header();
    return fmt::format("{}, {} view, {} {}, {} trials × {:.3g} inputs, seed {}",
                       std::filesystem::path(header.model).filename().string(), header.view,
                       header.engine, header.engine_version, tally.trials.size(),
                       static_cast<double>(tally.total(Count::results)) /
                           static_cast<double>(std::max<std::size_t>(tally.trials.size(), 1)),
                       header.seed);
}

void head(Svg& svg, const std::string& title, const std::string& below) {
    svg.text(20, 28, title, "font-size=\"16\" font-weight=\"bold\" fill=\"#112\"");
    svg.text(20, 46, below, "fill=\"#667\" font-size=\"11\"");
}

// A step that divides an axis up to `longest` into four to ten.
double step_of(double longest) {
    const double power = std::pow(10.0, std::floor(std::log10(longest)));
    for (const double factor : {0.1, 0.2, 0.5, 1.0}) {
        if (longest / (factor * power) <= 8) {
            return factor * power;
        }
    }
    return 2 * power;
}

// What stands for "nothing was tried": a frame and a stroke.
void empty_cell(Svg& svg, double x, double y, double w, double h, std::string_view title) {
    svg.box(x, y, w - 1, h - 1, "#eef0f2", title);
    svg.line(x + 3, y + h - 4, x + w - 4, y + 3, "#c5cad0");
}

void colour_bar(Svg& svg, double x, double y, double most, const std::string& what) {
    constexpr int steps = 50;
    constexpr double width = 4;
    for (int i = 0; i < steps; ++i) {
        svg.box(x + i * width, y, width + 0.3, 12, heat(static_cast<double>(i) / (steps - 1)));
    }
    for (const double at : {0.0, 0.5, 1.0}) {
        svg.text(x + at * steps * width, y + 26, share_text(at * most),
                 "text-anchor=\"middle\" fill=\"#667\" font-size=\"11\"");
    }
    svg.text(x + steps * width + 24, y + 10, what, "fill=\"#445\" font-size=\"11\"");
    empty_cell(svg, x + steps * width + 110, y - 2, 22, 16, "");
    svg.text(x + steps * width + 138, y + 10, "nothing tried", "fill=\"#445\" font-size=\"11\"");
}

std::string layers_and_bits(const CampaignStore& store, const Tally& tally,
                            const InjectReportOptions& options) {
    const auto layers = by_layer(tally);
    std::map<std::pair<std::int64_t, std::int64_t>, RateEstimate> rates;
    std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> faults;
    std::int64_t highest = 0;
    double most = 0;
    for (const auto& layer : layers) {
        std::map<std::int64_t, Group> bits;
        for (const auto* trial : layer.group) {
            bits[trial->bit].push_back(trial);
        }
        for (const auto& [bit, group] : bits) {
            const auto estimate = rate(tally, group, Count::sdc, Count::results, options);
            highest = std::max(highest, bit);
            most = std::max(most, bit >= 0 ? estimate.rate : 0);
            faults[{layer.key, bit}] = group.size();
            rates[{layer.key, bit}] = estimate;
        }
    }
    most = most > 0 ? most : 1;
    const double w = highest > 40 ? 16 : 24;
    constexpr double h = 20;
    constexpr double top = 132;
    const double width = std::max(label_width + w * static_cast<double>(highest + 1) + 30, 700.0);
    Svg svg(width, top + h * static_cast<double>(layers.size()) + 30, "SDC rate by layer and bit");
    head(svg, "Rate of silent data corruption by layer and bit", subtitle(store, tally));
    colour_bar(svg, label_width, 64, most, sdc_title(tally) + " rate");
    const auto x_of = [&](std::int64_t bit) {
        return label_width + w * static_cast<double>(highest - bit);
    };
    for (std::int64_t bit = 0; bit <= highest; ++bit) {
        svg.text(x_of(bit) + w / 2, top - 6, fmt::format("{}", bit),
                 "text-anchor=\"middle\" fill=\"#667\" font-size=\"10\"");
    }
    svg.text(label_width - 8, top - 6, "bit", "text-anchor=\"end\" fill=\"#667\" font-size=\"10\"");
    double y = top;
    for (const auto& layer : layers) {
        svg.text(label_width - 8, y + 14, ellipsis(layer.name, label_columns),
                 fmt::format("text-anchor=\"end\" {}", ink));
        for (std::int64_t bit = 0; bit <= highest; ++bit) {
            const auto at = rates.find({layer.key, bit});
            if (at == rates.end()) {
                empty_cell(svg, x_of(bit), y, w, h,
                           fmt::format("{}, bit {}: nothing tried", layer.name, bit));
                continue;
            }
            const auto& estimate = at->second;
            svg.box(x_of(bit), y, w - 1, h - 1, heat(estimate.rate / most),
                    fmt::format("{}, bit {}: {} ({} to {}), {} faults", layer.name, bit,
                                share_text(estimate.rate), share_text(estimate.interval.low),
                                share_text(estimate.interval.high), faults[{layer.key, bit}]));
        }
        y += h;
    }
    return svg.finish();
}

std::string layer_bars(const CampaignStore& store, const Tally& tally,
                       const InjectReportOptions& options) {
    const auto layers = by_layer(tally);
    std::vector<RateEstimate> rates;
    double longest = 0;
    for (const auto& layer : layers) {
        rates.push_back(rate(tally, layer.group, Count::sdc, Count::results, options));
        longest = std::max(longest, rates.back().interval.high);
    }
    longest = longest > 0 ? longest : 1;
    constexpr double top = 84;
    constexpr double h = 22;
    constexpr double length = 480;
    const double bottom = top + h * static_cast<double>(layers.size());
    Svg svg(label_width + length + 200, bottom + 40, "SDC rate by layer");
    head(svg, "Rate of silent data corruption by layer", subtitle(store, tally));
    svg.text(20, 62, fmt::format("intervals: {}", method_text(tally, options)),
             "fill=\"#667\" font-size=\"11\"");
    const auto x_of = [&](double share) { return label_width + length * share / longest; };
    const double step = step_of(longest);
    for (int i = 0; i * step <= longest * 1.0001; ++i) {
        svg.line(x_of(i * step), top - 6, x_of(i * step), bottom + 4, grid);
        svg.text(x_of(i * step), bottom + 20, share_text(i * step),
                 fmt::format("text-anchor=\"middle\" {}", pale));
    }
    double y = top;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        const auto& [share, interval, effective, notes] = rates[i];
        const auto numbers = fmt::format("{} ({} to {})", share_text(share),
                                         share_text(interval.low), share_text(interval.high));
        svg.text(label_width - 8, y + 14, ellipsis(layers[i].name, label_columns),
                 fmt::format("text-anchor=\"end\" {}", ink));
        svg.box(label_width, y + 3, x_of(share) - label_width, h - 8, "#e8a13c",
                fmt::format("{}: {}, {} faults", layers[i].name, numbers, layers[i].group.size()));
        const double middle = y + 3 + (h - 8) / 2;
        svg.line(x_of(interval.low), middle, x_of(interval.high), middle, "#334");
        for (const double end : {interval.low, interval.high}) {
            svg.line(x_of(end), middle - 4, x_of(end), middle + 4, "#334");
        }
        svg.text(x_of(interval.high) + 8, y + 14,
                 fmt::format("{}, n = {}", share_text(share), layers[i].group.size()),
                 "fill=\"#445\" font-size=\"11\"");
        y += h;
    }
    return svg.finish();
}

std::map<float, Group> by_rate(const Tally& tally) {
    std::map<float, Group> groups;
    for (const auto& trial : tally.trials) {
        if (trial.rate > 0 && trial[Count::labelled] > 0) {
            groups[trial.rate].push_back(&trial);
        }
    }
    return groups;
}

// Accuracy against the logarithm of the rate.
std::string accuracy_by_rate(const CampaignStore& store, const Tally& tally,
                             const std::map<float, Group>& groups,
                             const InjectReportOptions& options) {
    constexpr double left = 80;
    constexpr double top = 76;
    constexpr double width = 640;
    constexpr double height = 360;
    Svg svg(left + width + 60, top + height + 64, "Accuracy by bit-error rate");
    head(svg, "Accuracy by bit-error rate", subtitle(store, tally));
    const double low = std::floor(std::log10(double{groups.begin()->first}) - 1e-6);
    const double high =
        std::max(std::ceil(std::log10(double{groups.rbegin()->first}) + 1e-6), low + 1);
    const auto x_of = [&](double p) { return left + width * (std::log10(p) - low) / (high - low); };
    const auto y_of = [&](double share) { return top + height * (1 - share); };
    for (int i = 0; i <= 5; ++i) {
        svg.line(left, y_of(i / 5.0), left + width, y_of(i / 5.0), grid);
        svg.text(left - 8, y_of(i / 5.0) + 4, fmt::format("{} %", i * 20),
                 fmt::format("text-anchor=\"end\" {}", pale));
    }
    for (double power = low; power <= high + 0.5; power += 1) {
        const double x = x_of(std::pow(10.0, power));
        svg.line(x, top, x, top + height, grid);
        svg.text(x, top + height + 18, fmt::format("1e{:.0f}", power),
                 fmt::format("text-anchor=\"middle\" {}", pale));
    }
    svg.text(left + width / 2, top + height + 42, "bit-error rate",
             fmt::format("text-anchor=\"middle\" {}", ink));
    const auto golden =
        rate(tally, everything(tally), Count::golden_correct, Count::labelled, options).rate;
    svg.line(left, y_of(golden), left + width, y_of(golden), "#3b76af", "stroke-dasharray=\"6 4\"");
    svg.text(left + width - 6, y_of(golden) - 6, fmt::format("golden {}", share_text(golden)),
             "text-anchor=\"end\" fill=\"#3b76af\" font-size=\"11\"");
    double last_x = 0;
    double last_y = 0;
    for (const auto& [p, group] : groups) {
        const auto estimate = rate(tally, group, Count::faulty_correct, Count::labelled, options);
        const double x = x_of(double{p});
        const double y = y_of(estimate.rate);
        if (last_x > 0) {
            svg.line(last_x, last_y, x, y, accent, "stroke-width=\"1.5\"");
        }
        svg.line(x, y_of(estimate.interval.low), x, y_of(estimate.interval.high), "#334");
        for (const double end : {estimate.interval.low, estimate.interval.high}) {
            svg.line(x - 4, y_of(end), x + 4, y_of(end), "#334");
        }
        svg.dot(x, y, 3.5, accent,
                fmt::format("rate {:g}: accuracy {} ({} to {}), {} trials", p,
                            share_text(estimate.rate), share_text(estimate.interval.low),
                            share_text(estimate.interval.high), group.size()));
        last_x = x;
        last_y = y;
    }
    return svg.finish();
}

}  // namespace

std::vector<Plot> inject_plots(const CampaignStore& store, const InjectReportOptions& options) {
    const auto all = tally(store);
    std::vector<Plot> plots;
    if (all.trials.empty()) {
        return plots;
    }
    const auto has_bit = [](const TrialTally& trial) { return trial.bit >= 0; };
    if (has_sdc(all) && std::any_of(all.trials.begin(), all.trials.end(), has_bit)) {
        plots.push_back({"layers_and_bits", layers_and_bits(store, all, options)});
    }
    if (has_sdc(all)) {
        plots.push_back({"layers", layer_bars(store, all, options)});
    }
    if (const auto groups = by_rate(all); !groups.empty()) {
        plots.push_back({"accuracy", accuracy_by_rate(store, all, groups, options)});
    }
    return plots;
}

}  // namespace trocar
