#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/picture.h"
#include "trocar/error.h"

namespace trocar::data {

namespace {

using Filter = Preprocess::Filter;
using Size = Preprocess::Size;

// A side this long is an error somewhere.
constexpr std::int64_t longest_side = 1 << 16;

// Which of the old pixels of a line make a new one, and how much of each.
struct Tap {
    std::int64_t first = 0;
    std::vector<double> weights;
};

Tap nearest(double centre, std::int64_t length) {
    const auto at = static_cast<std::int64_t>(std::floor(centre));
    return {std::clamp<std::int64_t>(at, 0, length - 1), {1}};
}

Tap bilinear(double centre, std::int64_t length) {
    const double at = std::max(0., centre - 0.5);
    const auto first = std::min(static_cast<std::int64_t>(at), length - 1);
    const double part = at - static_cast<double>(first);
    return first + 1 < length && part > 0 ? Tap{first, {1 - part, part}} : Tap{first, {1}};
}

// A triangle as wide as two new pixels, two old ones at least; as in Pillow's Resample.c.
Tap antialiased(double centre, double scale, std::int64_t length) {
    const double stretch = std::max(scale, 1.);
    const double shrink = 1 / stretch;
    const auto edge = [](double at) { return static_cast<std::int64_t>(std::floor(at + 0.5)); };
    const auto first = std::max<std::int64_t>(0, edge(centre - stretch));
    const auto last = std::min(length, edge(centre + stretch));
    Tap tap{first, {}};
    double sum = 0;
    for (auto at = first; at < last; ++at) {
        const double distance = std::abs((static_cast<double>(at) - centre + 0.5) * shrink);
        tap.weights.push_back(std::max(0., 1 - distance));
        sum += tap.weights.back();
    }
    for (auto& weight : tap.weights) {
        weight = sum == 0 ? 0 : weight / sum;
    }
    return tap;
}

std::vector<Tap> taps(std::int64_t from, std::int64_t to, Filter filter) {
    const double scale = static_cast<double>(from) / static_cast<double>(to);
    std::vector<Tap> result;
    for (std::int64_t i = 0; i < to; ++i) {
        const double centre = (static_cast<double>(i) + 0.5) * scale;
        result.push_back(filter == Filter::nearest    ? nearest(centre, from)
                         : filter == Filter::bilinear ? bilinear(centre, from)
                                                      : antialiased(centre, scale, from));
    }
    return result;
}

// Pillow rounds 8-bit pictures between the two directions and computes with 22 bits of fraction.
float rounded(double value) {
    return static_cast<float>(std::clamp(std::floor(value + 0.5), 0., 255.));
}

double fixed_point(double weight) {
    return std::floor(weight * (1 << 22) + 0.5) / (1 << 22);
}

// Along one direction: `outer` lines of `from` pixels, each of `inner` numbers, become `to` pixels.
std::vector<float> along(const std::vector<float>& values, std::size_t outer, std::size_t inner,
                         std::size_t from, const std::vector<Tap>& line, bool round) {
    std::vector<float> result(outer * line.size() * inner);
    std::vector<double> sums(inner);
    for (std::size_t o = 0; o < outer; ++o) {
        for (std::size_t i = 0; i < line.size(); ++i) {
            std::fill(sums.begin(), sums.end(), 0.);
            const auto* source =
                values.data() + (o * from + static_cast<std::size_t>(line[i].first)) * inner;
            for (const auto weight : line[i].weights) {
                const double exact = round ? fixed_point(weight) : weight;
                for (std::size_t k = 0; k < inner; ++k) {
                    sums[k] += exact * source[k];
                }
                source += inner;
            }
            auto* target = result.data() + (o * line.size() + i) * inner;
            for (std::size_t k = 0; k < inner; ++k) {
                target[k] = round ? rounded(sums[k]) : static_cast<float>(sums[k]);
            }
        }
    }
    return result;
}

// The shorter side as long as asked for, the other one in proportion, rounded down as torchvision
// does.
Size target(const Picture& picture, Size size) {
    if (size.width != 0) {
        return size;
    }
    const auto shorter = std::min(picture.height, picture.width);
    const auto longer = std::max(picture.height, picture.width);
    const auto other = size.height * longer / shorter;
    return picture.height <= picture.width ? Size{size.height, other} : Size{other, size.height};
}

}  // namespace

Picture resized(const Picture& picture, Size size, Filter filter, std::string_view where) {
    if (picture.height == 0 || picture.width == 0) {
        throw Error(Fault::input, fmt::format("{} has no pixels", where));
    }
    const auto [height, width] = target(picture, size);
    if (height > longest_side || width > longest_side) {
        throw Error(Fault::input, fmt::format("{} would become {}x{}", where, height, width),
                    "give height and width: resize=224x224");
    }
    if (height == picture.height && width == picture.width) {
        return picture;
    }
    const auto count = [](std::int64_t number) { return static_cast<std::size_t>(number); };
    const auto channels = count(picture.channels);
    // Width first, as Pillow does but where the other way is cheaper: then a level may differ.
    // Bilinear is rounded once, as where both directions are done together.
    const bool between = picture.eight_bit && filter == Filter::antialias;
    Picture result{height, width, picture.channels, picture.eight_bit, {}};
    auto wide = along(picture.values, count(picture.height), channels, count(picture.width),
                      taps(picture.width, width, filter), between);
    result.values = along(wide, 1, count(width) * channels, count(picture.height),
                          taps(picture.height, height, filter), between);
    if (picture.eight_bit && !between) {
        for (auto& value : result.values) {
            value = rounded(value);
        }
    }
    return result;
}

}  // namespace trocar::data
