#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "trocar/compare_report.h"
#include "util/display.h"
#include "util/svg.h"

namespace trocar {

namespace {

constexpr std::array colours = {"#2b6cc4", "#c4322b", "#2b8a3e", "#8a5a00", "#7a3fb0", "#00808a"};
constexpr double left = 90;
constexpr double top = 96;
constexpr double plot_height = 260;
constexpr double lowest = 1e-9;  // where the axis begins: below it is no error
constexpr double highest = 1e1;
constexpr std::size_t worst_rows = 24;
constexpr double row_height = 20;
constexpr double cell_width = 150;

double share_of_axis(double error) {
    const double bounded = std::clamp(error, lowest, highest);
    return std::log10(bounded / lowest) / std::log10(highest / lowest);
}

struct Line {
    std::size_t side = 0;
    bool cumulative = false;
    std::vector<std::pair<std::size_t, const LayerComparison*>> points;
};

std::vector<Line> lines_of(const Comparison& comparison) {
    std::map<std::pair<std::size_t, bool>, Line> found;
    for (const auto& result : comparison.results) {
        if (result.set != 0 || result.end != RunEnd::done) {
            continue;
        }
        auto& line = found[{result.side, result.cumulative}];
        line.side = result.side;
        line.cumulative = result.cumulative;
        line.points.emplace_back(result.layer, &result);
    }
    std::vector<Line> lines;
    for (auto& [key, line] : found) {
        lines.push_back(std::move(line));
    }
    return lines;
}

double y_of(double error) {
    return top + plot_height * (1 - share_of_axis(error));
}

void draw_axes(Svg& svg, double width, const Comparison& comparison) {
    for (double power = -9; power <= 1; power += 2) {
        const double y = y_of(std::pow(10.0, power));
        svg.line(left, y, width - 30, y, "#e4e7eb");
        svg.text(left - 8, y + 4, power == -9 ? "≤ 1e-9" : fmt::format("1e{:.0f}", power),
                 "text-anchor=\"end\" fill=\"#667\" font-size=\"11\"");
    }
    svg.text(20, top + plot_height / 2, "relative error",
             fmt::format("fill=\"#445\" font-size=\"11\" text-anchor=\"middle\" "
                         "transform=\"rotate(-90 20 {:.0f})\"",
                         top + plot_height / 2));
    svg.text(
        (left + width) / 2, top + plot_height + 34,
        fmt::format("layer, 0 to {}", comparison.layers.empty() ? 0 : comparison.layers.size() - 1),
        "text-anchor=\"middle\" fill=\"#445\" font-size=\"11\"");
}

std::string title_of(const Comparison& comparison, const LayerComparison& result) {
    const auto& layer = comparison.layers.at(result.layer);
    return fmt::format("{} {} '{}', {}: {}, relative error {:.3g}", layer.number, layer.type,
                       layer.name, comparison.sides.at(result.side), name(result.verdict),
                       relative_error(result));
}

void draw_line(Svg& svg, const Line& line, const Comparison& comparison, double step) {
    const auto* colour = colours[(line.side - 1) % colours.size()];
    double before_x = 0;
    double before_y = 0;
    bool any = false;
    for (const auto& [layer, result] : line.points) {
        const double error = relative_error(*result);
        if (std::isnan(error)) {
            any = false;
            continue;
        }
        const double x = left + step * (static_cast<double>(layer) + 0.5);
        const double y = y_of(error);
        if (any) {
            svg.line(before_x, before_y, x, y, colour,
                     line.cumulative ? "stroke-width=\"1.5\" stroke-dasharray=\"5 3\""
                                     : "stroke-width=\"1.5\"");
        }
        const bool bad = result->verdict == Verdict::fail;
        svg.dot(x, y, bad ? 5 : 2.2, bad ? "#c4322b" : colour, title_of(comparison, *result));
        before_x = x;
        before_y = y;
        any = true;
    }
}

// The worst layers, a row each, a column for each side.
void draw_worst(Svg& svg, const Comparison& comparison, double y) {
    std::map<std::size_t, double> badness;
    std::map<std::pair<std::size_t, std::size_t>, const LayerComparison*> cells;
    for (const auto& result : comparison.results) {
        const double error = relative_error(result);
        if (result.set != 0 || result.cumulative || std::isnan(error)) {
            continue;
        }
        auto& worst = badness[result.layer];
        worst = std::max(worst, error);
        cells[{result.layer, result.side}] = &result;
    }
    std::vector<std::pair<double, std::size_t>> order;
    for (const auto& [layer, error] : badness) {
        order.emplace_back(-error, layer);
    }
    std::sort(order.begin(), order.end());
    order.resize(std::min(order.size(), worst_rows));
    svg.text(20, y, "Layers that are furthest off on their own",
             "font-size=\"14\" font-weight=\"bold\" fill=\"#112\"");
    y += 16;
    for (std::size_t side = 1; side < comparison.sides.size(); ++side) {
        svg.text(330 + cell_width * (static_cast<double>(side) - 0.5), y + 10,
                 ellipsis(comparison.sides[side], 22),
                 "text-anchor=\"middle\" fill=\"#667\" font-size=\"11\"");
    }
    y += 16;
    for (const auto& [error, number] : order) {
        const auto& layer = comparison.layers.at(number);
        svg.text(322, y + 14,
                 ellipsis(fmt::format("{} {} {}", layer.number, layer.type, layer.name), 44),
                 "text-anchor=\"end\" fill=\"#223\"");
        for (std::size_t side = 1; side < comparison.sides.size(); ++side) {
            const auto found = cells.find({number, side});
            const double x = 330 + cell_width * static_cast<double>(side - 1);
            if (found == cells.end()) {
                svg.box(x, y, cell_width - 2, row_height - 2, "#eef0f2", "not compared");
                continue;
            }
            const double share = share_of_axis(relative_error(*found->second));
            svg.box(x, y, cell_width - 2, row_height - 2, heat(share),
                    title_of(comparison, *found->second));
            svg.text(x + cell_width / 2, y + 13,
                     fmt::format("{:.2g} {}", relative_error(*found->second),
                                 name(found->second->verdict)),
                     fmt::format("text-anchor=\"middle\" font-size=\"11\" fill=\"{}\"",
                                 share > 0.55 ? "#ffffff" : "#223"));
        }
        y += row_height;
    }
}

}  // namespace

std::string comparison_plot(const Comparison& comparison) {
    const auto count = static_cast<double>(std::max<std::size_t>(comparison.layers.size(), 1));
    const double wide = 340 + cell_width * static_cast<double>(comparison.sides.size() - 1) + 30;
    const double width = std::max({900.0, wide, left + std::min(count * 8, 1800.0) + 30});
    const auto rows = static_cast<double>(std::min(comparison.layers.size(), worst_rows));
    const double below = top + plot_height + 70;
    Svg svg(width, below + 50 + rows * row_height, "Error along the network");
    svg.text(20, 28, "Error along the network",
             "font-size=\"16\" font-weight=\"bold\" fill=\"#112\"");
    svg.text(20, 46,
             fmt::format("against {}; whole lines: each layer fed the reference's values; dashed: "
                         "the error as it arrives; red dots: FAIL",
                         comparison.sides.front()),
             "fill=\"#667\" font-size=\"11\"");
    draw_axes(svg, width, comparison);
    const double step = (width - left - 30) / count;
    double legend = left;
    for (const auto& line : lines_of(comparison)) {
        draw_line(svg, line, comparison, step);
        const auto* colour = colours[(line.side - 1) % colours.size()];
        const auto text = fmt::format("{}{}", comparison.sides.at(line.side),
                                      line.cumulative ? ", arriving" : "");
        svg.line(
            legend, 70, legend + 24, 70, colour,
            line.cumulative ? "stroke-width=\"2\" stroke-dasharray=\"5 3\"" : "stroke-width=\"2\"");
        svg.text(legend + 30, 74, text, "fill=\"#445\" font-size=\"11\"");
        legend += 50 + 6.4 * static_cast<double>(text.size());
    }
    draw_worst(svg, comparison, below);
    return svg.finish();
}

}  // namespace trocar
