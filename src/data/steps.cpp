#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/picture.h"
#include "trocar/error.h"

namespace trocar::data {

namespace {

using Color = Preprocess::Color;
using Layout = Preprocess::Layout;

std::size_t pixels(const Picture& picture) {
    return static_cast<std::size_t>(picture.height * picture.width);
}

Picture repeated(const Picture& gray) {
    Picture picture{gray.height, gray.width, 3, gray.eight_bit, {}};
    picture.values.reserve(3 * gray.values.size());
    for (const auto value : gray.values) {
        picture.values.insert(picture.values.end(), 3, value);
    }
    return picture;
}

// ITU-R 601-2 luma; of 8-bit pictures with Pillow's fixed point.
Picture luma(const Picture& rgb) {
    Picture picture{rgb.height, rgb.width, 1, rgb.eight_bit, {}};
    picture.values.resize(pixels(rgb));
    for (std::size_t i = 0; i < picture.values.size(); ++i) {
        const auto r = rgb.values[3 * i];
        const auto g = rgb.values[3 * i + 1];
        const auto b = rgb.values[3 * i + 2];
        if (rgb.eight_bit) {
            const auto whole = [](float value) { return static_cast<std::uint32_t>(value); };
            picture.values[i] = static_cast<float>(
                (whole(r) * 19595 + whole(g) * 38470 + whole(b) * 7471 + 0x8000) >> 16);
        } else {
            picture.values[i] = 0.299F * r + 0.587F * g + 0.114F * b;
        }
    }
    return picture;
}

// One number, or one for each channel.
double of_channel(const std::vector<double>& numbers, std::size_t channel, double otherwise) {
    return numbers.empty() ? otherwise : numbers.size() == 1 ? numbers.front() : numbers[channel];
}

void check_per_channel(const std::vector<double>& numbers, const char* key, const Picture& picture,
                       std::string_view where) {
    if (numbers.size() > 1 && numbers.size() != static_cast<std::size_t>(picture.channels)) {
        throw Error(Fault::input,
                    fmt::format("{} has {} channels, but {} has {} numbers", where,
                                picture.channels, key, numbers.size()),
                    fmt::format("give one number, or one for each channel; color=rgb or color=gray "
                                "sets the channels"));
    }
}

}  // namespace

Picture with_color(Picture picture, Color color, std::int64_t wanted_channels,
                   std::string_view where) {
    if (color == Color::as_is) {
        return picture.channels == 1 && wanted_channels == 3 ? repeated(picture) : picture;
    }
    if (picture.channels != 1 && picture.channels != 3) {
        throw Error(Fault::input,
                    fmt::format("{} has {} channels, which are neither gray nor RGB", where,
                                picture.channels),
                    "leave the key color out");
    }
    if (color == Color::gray) {
        return picture.channels == 1 ? picture : luma(picture);
    }
    if (picture.channels == 1) {
        return repeated(picture);
    }
    if (color == Color::bgr) {
        for (std::size_t i = 0; i < picture.values.size(); i += 3) {
            std::swap(picture.values[i], picture.values[i + 2]);
        }
    }
    return picture;
}

Picture cropped(const Picture& picture, Preprocess::Size size, std::string_view where) {
    const auto height = size.height;
    const auto width = size.width == 0 ? size.height : size.width;
    if (height > picture.height || width > picture.width) {
        throw Error(Fault::input,
                    fmt::format("{} is {}x{}: {}x{} cannot be cropped from it", where,
                                picture.height, picture.width, height, width),
                    fmt::format("resize it first: resize={}", std::max(height, width)));
    }
    // As torchvision's CenterCrop places it: half to even.
    const auto start = [](std::int64_t all, std::int64_t part) {
        return static_cast<std::int64_t>(std::nearbyint(static_cast<double>(all - part) / 2));
    };
    const auto top = start(picture.height, height);
    const auto left = start(picture.width, width);
    Picture result{height, width, picture.channels, picture.eight_bit, {}};
    result.values.reserve(static_cast<std::size_t>(height * width * picture.channels));
    for (std::int64_t y = 0; y < height; ++y) {
        const auto from =
            picture.values.begin() + ((top + y) * picture.width + left) * picture.channels;
        result.values.insert(result.values.end(), from, from + width * picture.channels);
    }
    return result;
}

void normalise(Picture& picture, const Preprocess& preprocess, std::string_view where) {
    if (preprocess.scale == 1 && preprocess.mean.empty() && preprocess.std.empty()) {
        return;
    }
    check_per_channel(preprocess.mean, "mean", picture, where);
    check_per_channel(preprocess.std, "std", picture, where);
    const auto channels = static_cast<std::size_t>(picture.channels);
    picture.eight_bit = false;
    for (std::size_t c = 0; c < channels; ++c) {
        const double mean = of_channel(preprocess.mean, c, 0);
        const double std = of_channel(preprocess.std, c, 1);
        for (std::size_t i = c; i < picture.values.size(); i += channels) {
            picture.values[i] =
                static_cast<float>((picture.values[i] * preprocess.scale - mean) / std);
        }
    }
}

Value laid_out(const Picture& picture, Layout layout) {
    const auto [height, width, channels] =
        std::tuple(picture.height, picture.width, picture.channels);
    const Shape shape = layout == Layout::nchw   ? Shape{channels, height, width}
                        : layout == Layout::nhwc ? Shape{height, width, channels}
                                                 : Shape{height * width * channels};
    auto value = Value::tensor(picture.eight_bit ? DType::u8 : DType::f32, shape);
    const auto bytes = value.mutable_bytes();
    const auto plane = pixels(picture);
    const auto count = static_cast<std::size_t>(channels);
    auto* floats = reinterpret_cast<float*>(bytes.data());
    for (std::size_t i = 0; i < picture.values.size(); ++i) {
        const auto to = layout == Layout::nchw ? i % count * plane + i / count : i;
        if (picture.eight_bit) {
            bytes[to] = static_cast<std::byte>(picture.values[i]);
        } else {
            floats[to] = picture.values[i];
        }
    }
    return value;
}

}  // namespace trocar::data
