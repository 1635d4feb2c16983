#include "util/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "util/display.h"

namespace trocar {

namespace {

std::string escaped(std::string_view text) {
    std::string result;
    for (const char c : printable(text)) {
        result += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
    }
    return result;
}

std::string titled(std::string_view title) {
    return title.empty() ? std::string() : fmt::format("<title>{}</title>", escaped(title));
}

}  // namespace

Svg::Svg(double width, double height, std::string_view title) {
    text_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\" role=\"img\" font-family=\"DejaVu Sans, Helvetica, Arial, "
        "sans-serif\" font-size=\"12\">\n<title>{2}</title>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        width, height, escaped(title));
}

void Svg::text(double x, double y, std::string_view what, std::string_view style) {
    text_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}{}>{}</text>\n", x, y,
                         style.empty() ? "" : " ", style, escaped(what));
}

void Svg::box(double x, double y, double width, double height, std::string_view colour,
              std::string_view title) {
    text_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.2f}\" "
        "fill=\"{}\">{}</rect>\n",
        x, y, std::max(width, 0.0), std::max(height, 0.0), colour, titled(title));
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view colour,
               std::string_view style) {
    text_ += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"{}{}/>\n", x1,
        y1, x2, y2, colour, style.empty() ? "" : " ", style);
}

void Svg::dot(double x, double y, double radius, std::string_view colour, std::string_view title) {
    text_ +=
        fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\">{}</circle>\n", x,
                    y, radius, colour, titled(title));
}

std::string heat(double share) {
    static constexpr std::array<std::array<double, 3>, 5> stops{
        {{255, 250, 235}, {253, 208, 135}, {244, 140, 65}, {196, 50, 40}, {92, 8, 32}}};
    const double at = std::clamp(share, 0.0, 1.0) * (stops.size() - 1);
    const auto low = std::min(static_cast<std::size_t>(at), stops.size() - 2);
    const double part = at - static_cast<double>(low);
    const auto mixed = [&](std::size_t i) {
        return static_cast<int>(std::lround(stops[low][i] * (1 - part) + stops[low + 1][i] * part));
    };
    return fmt::format("#{:02x}{:02x}{:02x}", mixed(0), mixed(1), mixed(2));
}

}  // namespace trocar
