#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "trocar/op_report.h"
#include "trocar/report.h"
#include "util/svg.h"

namespace trocar {

namespace {

constexpr std::array colours = {"#2b6cc4", "#c4722b", "#2b8a3e", "#8a5a00", "#7a3fb0",
                                "#00808a", "#b03f6a", "#667788", "#5a8a00", "#3f4fb0"};
constexpr double left = 80;
constexpr double top = 60;
constexpr double size = 420;

std::string ns_text(double ns) {
    return show(Cell(ns), Show::nanoseconds);
}

// A square with logarithmic axes.
class LogAxes {
public:
    LogAxes(Svg& svg, Interval x, Interval y) : svg_(svg), x_(widen(x)), y_(widen(y)) {}

    double x(double value) const { return left + size * share(value, x_); }
    double y(double value) const { return top + size * (1 - share(value, y_)); }

    template <class Label>
    void draw(const char* x_title, const char* y_title, const Label& x_label,
              const Label& y_label) {
        for (double at = x_.low; at <= x_.high * 1.001; at *= 10) {
            svg_.line(x(at), top, x(at), top + size, "#e4e7eb");
            svg_.text(x(at), top + size + 18, x_label(at),
                      "text-anchor=\"middle\" fill=\"#667\" font-size=\"11\"");
        }
        for (double at = y_.low; at <= y_.high * 1.001; at *= 10) {
            svg_.line(left, y(at), left + size, y(at), "#e4e7eb");
            svg_.text(left - 8, y(at) + 4, y_label(at),
                      "text-anchor=\"end\" fill=\"#667\" font-size=\"11\"");
        }
        svg_.text(left + size / 2, top + size + 42, x_title,
                  "text-anchor=\"middle\" fill=\"#445\" font-size=\"12\"");
        svg_.text(18, top + size / 2, y_title,
                  fmt::format("fill=\"#445\" font-size=\"12\" text-anchor=\"middle\" "
                              "transform=\"rotate(-90 18 {:.0f})\"",
                              top + size / 2));
    }
    Interval range_x() const { return x_; }
    Interval range_y() const { return y_; }

private:
    static Interval widen(Interval range) {
        return {std::pow(10, std::floor(std::log10(range.low))),
                std::pow(10, std::max(std::ceil(std::log10(range.high)),
                                      std::floor(std::log10(range.low)) + 1))};
    }
    static double share(double value, Interval range) {
        const auto bounded = std::clamp(value, range.low, range.high);
        return std::log10(bounded / range.low) / std::log10(range.high / range.low);
    }
    Svg& svg_;
    Interval x_;
    Interval y_;
};

void include(Interval& range, double value, bool& first) {
    if (!(value > 0)) {
        return;
    }
    range = first ? Interval{value, value}
                  : Interval{std::min(range.low, value), std::max(range.high, value)};
    first = false;
}

// Each type of op has a colour, those with most of them the first ones.
class Palette {
public:
    void add(const std::string& type, double weight) { weights_[type] += weight; }
    void settle() {
        std::vector<std::pair<double, std::string>> order;
        for (const auto& [type, weight] : weights_) {
            order.emplace_back(-weight, type);
        }
        std::sort(order.begin(), order.end());
        for (const auto& [weight, type] : order) {
            types_.push_back(type);
        }
    }
    const char* of(const std::string& type) const {
        const auto at = static_cast<std::size_t>(std::find(types_.begin(), types_.end(), type) -
                                                 types_.begin());
        return at < colours.size() - 1 ? colours[at] : "#99a3ad";
    }
    void draw(Svg& svg, double x, double y) const {
        for (std::size_t i = 0; i < types_.size() && i < colours.size(); ++i) {
            const bool rest = i + 1 == colours.size();
            svg.box(x, y + static_cast<double>(i) * 20, 12, 12, rest ? "#99a3ad" : colours[i]);
            svg.text(x + 18, y + static_cast<double>(i) * 20 + 11,
                     rest ? std::string_view("others") : std::string_view(types_[i]),
                     "font-size=\"12\" fill=\"#334\"");
        }
    }

private:
    std::map<std::string, double> weights_;
    std::vector<std::string> types_;
};

}  // namespace

std::string explanation_plot(const Explanation& explanation) {
    Svg svg(720, 560, "Operators against the whole model");
    svg.text(20, 30, fmt::format("{}: operators against the whole", explanation.model.name),
             "font-size=\"16\" fill=\"#223\"");
    // Room for the line at 110 %.
    const auto highest =
        std::max(1.14 * explanation.whole_ns(), explanation.measured_ns + explanation.dispatch_ns);
    const auto height = [&](double ns) { return highest > 0 ? 440 * ns / highest : 0; };
    Palette palette;
    for (const auto& one : explanation.ops) {
        palette.add(one.op->config.features.type, one.ns.value_or(0));
    }
    palette.settle();
    double y = top + 440;
    svg.text(160, y + 22, "operators", "text-anchor=\"middle\" font-size=\"12\" fill=\"#334\"");
    for (const auto& one : explanation.ops) {
        if (!one.ns) {
            continue;
        }
        const auto tall = height(*one.ns);
        y -= tall;
        svg.box(110, y, 100, std::max(0.0, tall - (tall > 3 ? 1 : 0)),
                palette.of(one.op->config.features.type),
                fmt::format("{} × {} ({}): {}", one.op->count, one.op->config.features.type,
                            one.op->config.inputs, ns_text(*one.ns)));
    }
    const auto dispatch = height(explanation.dispatch_ns);
    svg.box(110, y - dispatch, 100, dispatch, "#223344",
            fmt::format("running it at all: {}", ns_text(explanation.dispatch_ns)));
    svg.text(
        160, y - dispatch - 6,
        fmt::format("{} ({:.1f} %)", ns_text(explanation.measured_ns + explanation.dispatch_ns),
                    100 * explanation.ratio()),
        "text-anchor=\"middle\" font-size=\"12\" fill=\"#334\"");
    const auto whole = height(explanation.whole_ns());
    svg.box(270, top + 440 - whole, 100, whole, "#c8ced4", "the model as a whole");
    svg.text(320, top + 440 - whole - 6, ns_text(explanation.whole_ns()),
             "text-anchor=\"middle\" font-size=\"12\" fill=\"#334\"");
    svg.text(320, top + 462, "whole", "text-anchor=\"middle\" font-size=\"12\" fill=\"#334\"");
    for (const double share : {0.9, 1.1}) {
        const auto at = top + 440 - height(share * explanation.whole_ns());
        svg.line(90, at, 390, at, "#889", "stroke-dasharray=\"4 3\"");
        svg.text(396, at + 4, fmt::format("{:.0f} %", 100 * share),
                 "font-size=\"11\" fill=\"#667\"");
    }
    palette.draw(svg, 460, 80);
    svg.text(20, 545,
             fmt::format("cache mode: {}; {} calls without a time", text(explanation.mix),
                         explanation.unmeasured),
             "font-size=\"11\" fill=\"#667\"");
    return svg.finish();
}

std::string prediction_plot(const OpEvaluation& evaluation) {
    Svg svg(760, 560, "Predicted against measured");
    svg.text(20, 30, "Predicted against measured, each without itself",
             "font-size=\"16\" fill=\"#223\"");
    Interval range{1, 10};
    bool first = true;
    Palette palette;
    for (const auto& one : evaluation.operators) {
        include(range, one.measured_ns, first);
        include(range, one.predicted.ns, first);
        palette.add(one.type, 1);
    }
    for (const auto& one : evaluation.models) {
        include(range, one.measured_ns, first);
        include(range, one.predicted.ns, first);
    }
    palette.settle();
    LogAxes axes(svg, range, range);
    const auto label = [](double ns) { return ns_text(ns); };
    axes.draw("measured", "predicted", label, label);
    const auto ends = axes.range_x();
    svg.line(axes.x(ends.low), axes.y(ends.low), axes.x(ends.high), axes.y(ends.high), "#889");
    for (const double factor : {0.9, 1.1}) {
        svg.line(axes.x(ends.low), axes.y(ends.low * factor), axes.x(ends.high),
                 axes.y(ends.high * factor), "#bbc", "stroke-dasharray=\"3 3\"");
    }
    for (const auto& one : evaluation.operators) {
        svg.dot(axes.x(one.measured_ns), axes.y(one.predicted.ns), 2.5, palette.of(one.type),
                fmt::format("{}: measured {}, predicted {} ({} to {})", one.type,
                            ns_text(one.measured_ns), ns_text(one.predicted.ns),
                            ns_text(one.predicted.low), ns_text(one.predicted.high)));
    }
    for (const auto& one : evaluation.models) {
        svg.dot(axes.x(one.measured_ns), axes.y(one.predicted.ns), 5, "#111",
                fmt::format("{}: measured {}, predicted {}", one.name, ns_text(one.measured_ns),
                            ns_text(one.predicted.ns)));
    }
    palette.draw(svg, 530, 80);
    svg.text(530, 300, "large black dots: whole models", "font-size=\"11\" fill=\"#667\"");
    svg.text(530, 318, "dashed: ±10 %", "font-size=\"11\" fill=\"#667\"");
    return svg.finish();
}

std::string roofline_plot(const std::vector<OpSample>& samples, const OpPeaks& peaks) {
    Svg svg(760, 560, "Roofline");
    svg.text(20, 30, "Operators below the roofline of this machine",
             "font-size=\"16\" fill=\"#223\"");
    Interval x{0.01, 100};
    Interval y{0.01, 100};
    bool first_x = true;
    bool first_y = true;
    Palette palette;
    struct Point {
        double intensity, rate;
        const OpSample* sample;
    };
    std::vector<Point> points;
    for (const auto& sample : samples) {
        const auto& f = sample.features;
        const auto flops = 2 * f.macs + f.other_flops;
        const auto bytes = f.input_bytes + f.weight_bytes + f.output_bytes;
        if (flops > 0 && bytes > 0 && sample.ns > 0) {
            points.push_back({flops / bytes, flops / sample.ns, &sample});
            include(x, flops / bytes, first_x);
            include(y, flops / sample.ns, first_y);
            palette.add(f.type, sample.ns);
        }
    }
    palette.settle();
    include(y, peaks.flops * 1e-9, first_y);
    LogAxes axes(svg, x, y);
    const auto label = [](double value) { return fmt::format("{:g}", value); };
    axes.draw("FLOP per byte", "GFLOP/s", label, label);
    const auto ends = axes.range_x();
    if (peaks.flops > 0 && peaks.bytes > 0) {
        const auto ridge = std::clamp(peaks.flops / peaks.bytes, ends.low, ends.high);
        svg.line(axes.x(ends.low), axes.y(ends.low * peaks.bytes * 1e-9), axes.x(ridge),
                 axes.y(ridge * peaks.bytes * 1e-9), "#c4322b", "stroke-width=\"1.5\"");
        svg.line(axes.x(ridge), axes.y(peaks.flops * 1e-9), axes.x(ends.high),
                 axes.y(peaks.flops * 1e-9), "#c4322b", "stroke-width=\"1.5\"");
        svg.text(left + 6, top - 8,
                 fmt::format("best seen: {:.1f} GFLOP/s, {:.1f} GB/s", peaks.flops * 1e-9,
                             peaks.bytes * 1e-9),
                 "font-size=\"11\" fill=\"#c4322b\"");
    }
    for (const auto& point : points) {
        svg.dot(axes.x(point.intensity), axes.y(point.rate), 3,
                palette.of(point.sample->features.type),
                fmt::format("{} {}", point.sample->features.type, ns_text(point.sample->ns)));
    }
    palette.draw(svg, 530, 80);
    return svg.finish();
}

}  // namespace trocar
