#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "tools/profile/files.h"
#include "trocar/report.h"
#include "util/display.h"

namespace trocar::profiles {

namespace {

// Colours that also those tell apart who see fewer of them; the last is for all other types.
constexpr std::array<const char*, 8> colours{"#3b76af", "#e69f00", "#2a9d77", "#c8553d",
                                             "#8b6fc0", "#56b4e9", "#b5a642", "#9aa0a6"};
constexpr double width = 1100;
constexpr double left = 330;   // where bars begin
constexpr double right = 130;  // behind the longest: for numbers
constexpr double line = 20;
constexpr double legend_top = 60;
constexpr double legend_line = 18;

std::string escaped(std::string_view text) {
    std::string result;
    for (const char c : valid_utf8(text)) {
        result += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
    }
    return result;
}

std::string milliseconds(double ns) {
    return show(Cell(ns), Show::nanoseconds);
}

// One bar: a row below which nothing is opened, with the modules around it in its label.
struct Bar {
    std::string label;
    std::string type;
    Figures time;
};

std::vector<Bar> bars_of(const Profile& profile, const std::vector<Row>& rows) {
    std::vector<Bar> bars;
    std::vector<std::string> path;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        path.resize(static_cast<std::size_t>(rows[i].depth));
        path.push_back(rows[i].label);
        const bool opened = i + 1 < rows.size() && rows[i + 1].depth > rows[i].depth;
        if (opened && rows[i].part == Row::none) {
            continue;
        }
        std::string label;
        for (const auto& name : path) {
            label += (label.empty() ? "" : ".") + name;
        }
        const auto type = rows[i].part == Row::none ? "" : profile.parts[rows[i].part].type;
        bars.push_back({std::move(label), type, opened ? rows[i].self : rows[i].total});
    }
    return bars;
}

// Types by the time they take, each with its colour; the slower ones have colours of their own.
std::vector<std::pair<std::string, std::string>> legend(const std::vector<Bar>& bars) {
    std::map<std::string, double> sums;
    for (const auto& bar : bars) {
        sums[bar.type.empty() ? "modules" : bar.type] += bar.time.typical;
    }
    std::vector<std::pair<std::string, double>> order(sums.begin(), sums.end());
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    std::vector<std::pair<std::string, std::string>> result;
    for (std::size_t i = 0; i < order.size(); ++i) {
        result.emplace_back(order[i].first, colours[std::min(i, colours.size() - 1)]);
    }
    return result;
}

struct Key {
    std::string name;
    std::string colour;
    double x = 16;
    double y = legend_top;
};

// At least one, in lines that fit.
std::vector<Key> legend_keys(const std::vector<std::pair<std::string, std::string>>& types) {
    std::vector<Key> keys;
    double x = 16;
    double y = legend_top;
    for (std::size_t i = 0; i < std::min(types.size(), colours.size()); ++i) {
        const bool others = i + 1 == colours.size() && types.size() > colours.size();
        const auto name = others ? "other kinds" : ellipsis(types[i].first, 48);
        const double wide = 38 + 7 * static_cast<double>(display_width(name));
        if (x > 16 && x + wide > width) {
            x = 16;
            y += legend_line;
        }
        keys.push_back({name, types[i].second, x, y});
        x += wide;
    }
    return keys.empty() ? std::vector<Key>{{.name = "", .colour = "#ffffff"}} : keys;
}

// A round step that parts the axis into four to ten.
double step_of(double longest) {
    const double power = std::pow(10.0, std::floor(std::log10(std::max(longest, 1.0))));
    for (const double factor : {0.1, 0.2, 0.5, 1.0, 2.0}) {
        if (longest / (factor * power) <= 8) {
            return factor * power;
        }
    }
    return 5 * power;
}

class Svg {
public:
    Svg(double longest, double head, std::size_t count)
        : scale_((width - left - right) / std::max(longest, 1.0)),
          head_(head),
          height_(head + line * static_cast<double>(count) + 40) {
        text_ = fmt::format(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 "
            "{0} {1}\" font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\" "
            "font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
            width, height_);
    }
    void text(double x, double y, std::string_view what, std::string_view style = "") {
        text_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}{}>{}</text>\n", x, y,
                             style.empty() ? "" : " ", style, escaped(what));
    }
    void box(double x, double y, double w, double h, std::string_view colour,
             std::string_view title = "") {
        text_ += fmt::format(
            "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" "
            "fill=\"{}\">{}</rect>\n",
            x, y, std::max(w, 0.5), h, colour,
            title.empty() ? "" : fmt::format("<title>{}</title>", escaped(title)));
    }
    void stroke(double x1, double y1, double x2, double y2, std::string_view colour) {
        text_ += fmt::format(
            "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1,
            y1, x2, y2, colour);
    }
    void axis(double longest) {
        const double step = step_of(longest);
        for (double at = 0; at <= longest * 1.001; at += step) {
            const double x = left + at * scale_;
            stroke(x, head_ - 8, x, height_ - 34, "#e4e7eb");
            text(x, height_ - 18, at == 0 ? "0" : milliseconds(at),
                 "text-anchor=\"middle\" fill=\"#667\"");
        }
    }
    double scale() const { return scale_; }
    std::string finish() { return text_ + "</svg>\n"; }

private:
    double scale_;
    double head_;
    double height_;
    std::string text_;
};

void draw_bar(Svg& svg, const Bar& bar, double y, const std::string& colour, double whole) {
    constexpr double thick = line - 6;
    svg.text(left - 8, y + 12, ellipsis(bar.label, 46), "text-anchor=\"end\" fill=\"#223\"");
    const auto& t = bar.time;
    svg.box(
        left, y + 2, t.typical * svg.scale(), thick - 2, colour,
        fmt::format("{}: {} (median {}, 5 to 95 %: {} to {})", bar.label, milliseconds(t.typical),
                    milliseconds(t.median), milliseconds(t.p5), milliseconds(t.p95)));
    const double middle = y + 2 + (thick - 2) / 2;
    const double end = left + std::max(t.typical, t.p95) * svg.scale();
    if (t.p95 > t.p5) {
        svg.stroke(left + t.p5 * svg.scale(), middle, left + t.p95 * svg.scale(), middle, "#1118");
        svg.stroke(left + t.p5 * svg.scale(), middle - 3, left + t.p5 * svg.scale(), middle + 3,
                   "#1118");
        svg.stroke(end, middle - 3, end, middle + 3, "#1118");
    }
    svg.text(end + 6, y + 12,
             fmt::format("{}  {}", milliseconds(t.typical),
                         show(Cell(t.typical / whole), Show::percent)),
             "fill=\"#445\" font-size=\"11\"");
}

}  // namespace

std::string plot(const Profile& profile, const std::vector<Row>& rows, const std::string& title,
                 const std::string& subtitle) {
    auto bars = bars_of(profile, rows);
    const auto runs = typical_runs(profile);
    const auto types = legend(bars);
    Bar remainder{.label = "unattributed", .type = "", .time = {}};
    remainder.time.typical = std::max(0.0, unattributed(profile, runs));
    remainder.time.p5 = remainder.time.p95 = remainder.time.typical;
    double longest = remainder.time.typical;
    for (const auto& bar : bars) {
        longest = std::max({longest, bar.time.typical, bar.time.p95});
    }
    const auto keys = legend_keys(types);
    const double head = keys.back().y + 2 * legend_line;
    Svg svg(longest, head, bars.size() + 1);
    svg.text(16, 28, title, "font-size=\"18\" font-weight=\"bold\" fill=\"#112\"");
    svg.text(16, 48, subtitle, "fill=\"#556\"");
    for (const auto& key : keys) {
        svg.box(key.x, key.y, 11, 11, key.colour);
        svg.text(key.x + 16, key.y + 10, key.name, "fill=\"#334\"");
    }
    svg.axis(longest);
    const double whole = typical(profile.wall_ns, runs);
    double y = head;
    for (const auto& bar : bars) {
        const auto type = bar.type.empty() ? "modules" : bar.type;
        const auto colour = std::find_if(types.begin(), types.end(),
                                         [&](const auto& entry) { return entry.first == type; });
        draw_bar(svg, bar, y, colour->second, whole);
        y += line;
    }
    draw_bar(svg, remainder, y, "#d5d9de", whole);
    return svg.finish();
}

}  // namespace trocar::profiles
