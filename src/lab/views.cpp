#include "lab/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lab/png.h"
#include "trocar/statistics.h"
#include "util/elements.h"
#include "util/files.h"
#include "util/svg.h"

namespace trocar::lab {

namespace {

constexpr std::size_t most_channels = 256;
constexpr std::size_t least_side = 64;  // of the picture of one channel, where it is smaller

struct Channels {
    std::size_t count = 0;
    std::size_t height = 0;
    std::size_t width = 0;
    std::vector<double> numbers;  // channel by channel
};

// The channels of the first element of the batch.
Channels channels_of(const Value& value) {
    Channels channels;
    const auto shape = value.shape();
    if (!has_statistics(value) || shape.size() < 2 || value.element_count() == 0) {
        return channels;
    }
    const bool batched = shape.size() >= 3;
    const auto at = [&](std::size_t axis) { return static_cast<std::size_t>(shape[axis]); };
    const std::size_t first = batched ? 1 : 0;
    channels.count = std::min(at(first), most_channels);
    channels.width = at(shape.size() - 1);
    channels.height = 1;
    for (auto axis = first + 1; axis + 1 < shape.size(); ++axis) {
        channels.height *= at(axis);
    }
    channels.numbers.resize(channels.count * channels.height * channels.width);
    if (number_count(value.dtype(), 1) != 1) {
        return {};
    }
    decode(value.dtype(), value.bytes(), 0, channels.numbers);
    return channels;
}

void draw_grid(const Channels& channels, const std::filesystem::path& path) {
    const auto scale = std::max<std::size_t>(
        1, least_side / std::max<std::size_t>({channels.width, channels.height, 1}));
    const auto columns =
        static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(channels.count))));
    const auto rows = (channels.count + columns - 1) / columns;
    const auto cell_width = channels.width * scale + 2;
    const auto cell_height = channels.height * scale + 2;
    const auto width = columns * cell_width;
    const auto height = rows * cell_height;
    std::vector<std::uint8_t> shades(width * height, 255);
    const auto area = channels.width * channels.height;
    for (std::size_t c = 0; c < channels.count; ++c) {
        const auto* from = channels.numbers.data() + c * area;
        double low = INFINITY;
        double high = -INFINITY;
        for (std::size_t i = 0; i < area; ++i) {
            if (std::isfinite(from[i])) {
                low = std::min(low, from[i]);
                high = std::max(high, from[i]);
            }
        }
        const auto x0 = c % columns * cell_width + 1;
        const auto y0 = c / columns * cell_height + 1;
        for (std::size_t y = 0; y < channels.height * scale; ++y) {
            for (std::size_t x = 0; x < channels.width * scale; ++x) {
                const double number = from[y / scale * channels.width + x / scale];
                const double share = high > low ? (number - low) / (high - low) : 0;
                shades[(y0 + y) * width + x0 + x] =
                    std::isfinite(number) ? static_cast<std::uint8_t>(std::lround(255 * share))
                                          : 255;
            }
        }
    }
    write_png(path, width, height, shades);
}

void draw_spread(const Channels& channels, const std::string& name,
                 const std::filesystem::path& path) {
    struct Spread {
        double p0, p25, p50, p75, p100;
    };
    std::vector<Spread> spreads;
    double low = 0;
    double high = 0;
    const auto area = channels.width * channels.height;
    for (std::size_t c = 0; c < channels.count; ++c) {
        std::vector<double> sorted;
        for (std::size_t i = 0; i < area; ++i) {
            if (std::isfinite(channels.numbers[c * area + i])) {
                sorted.push_back(channels.numbers[c * area + i]);
            }
        }
        if (sorted.empty()) {
            sorted.push_back(0);
        }
        std::sort(sorted.begin(), sorted.end());
        const auto at = [&](double share) {
            return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
        };
        spreads.push_back({at(0), at(0.25), at(0.5), at(0.75), at(1)});
        low = std::min(low, spreads.back().p0);
        high = std::max(high, spreads.back().p100);
    }
    constexpr double step = 9;
    constexpr double left = 80;
    constexpr double top = 60;
    constexpr double tall = 260;
    const double range = high > low ? high - low : 1;
    const auto y_of = [&](double number) { return top + tall * (high - number) / range; };
    Svg svg(std::max(500.0, left + step * static_cast<double>(channels.count) + 30),
            top + tall + 40, "Spread of each channel");
    svg.text(20, 28, fmt::format("Spread of each channel of '{}'", name),
             "font-size=\"15\" font-weight=\"bold\" fill=\"#112\"");
    svg.text(20, 46, "thin: least to greatest; thick: the middle half; dot: median",
             "fill=\"#667\" font-size=\"11\"");
    for (const double number : {low, 0.0, high}) {
        svg.line(left, y_of(number), left + step * static_cast<double>(channels.count),
                 y_of(number), "#e4e7eb");
        svg.text(left - 8, y_of(number) + 4, fmt::format("{:.3g}", number),
                 "text-anchor=\"end\" fill=\"#667\" font-size=\"11\"");
    }
    for (std::size_t c = 0; c < spreads.size(); ++c) {
        const auto& s = spreads[c];
        const double x = left + step * (static_cast<double>(c) + 0.5);
        svg.line(x, y_of(s.p0), x, y_of(s.p100), "#9db4d3");
        svg.line(x, y_of(s.p25), x, y_of(s.p75), "#2b6cc4", "stroke-width=\"4\"");
        svg.dot(x, y_of(s.p50), 2, "#112",
                fmt::format("channel {}: {:.4g} to {:.4g}, median {:.4g}", c, s.p0, s.p100, s.p50));
    }
    svg.text(left, top + tall + 26, fmt::format("channel, 0 to {}", channels.count - 1),
             "fill=\"#445\" font-size=\"11\"");
    write_file(path, svg.finish());
}

}  // namespace

bool write_views(const Value& value, const std::string& name, const std::filesystem::path& stem) {
    const auto channels = channels_of(value);
    if (channels.numbers.empty()) {
        return false;
    }
    draw_grid(channels, stem.string() + ".png");
    draw_spread(channels, name, stem.string() + ".svg");
    return true;
}

}  // namespace trocar::lab
