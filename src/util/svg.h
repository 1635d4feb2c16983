#pragma once

#include <string>
#include <string_view>

namespace trocar {

// A picture being drawn: plain shapes and text, nothing from outside of the file.
class Svg {
public:
    Svg(double width, double height, std::string_view title);

    // `style`: attributes such as `text-anchor="end"`.
    void text(double x, double y, std::string_view what, std::string_view style = "");
    // `title` is shown where the mouse is.
    void box(double x, double y, double width, double height, std::string_view colour,
             std::string_view title = "");
    void line(double x1, double y1, double x2, double y2, std::string_view colour,
              std::string_view style = "");
    void dot(double x, double y, double radius, std::string_view colour,
             std::string_view title = "");
    std::string finish() { return text_ + "</svg>\n"; }

private:
    std::string text_;
};

// From white over orange to dark red, for 0 to 1: lightness falls evenly, so that it can be read
// without colours too.
std::string heat(double share);

}  // namespace trocar
