#include "data/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/command.h"
#include "trocar/error.h"
#include "util/elements.h"

namespace trocar::data {

namespace {

using Layout = Preprocess::Layout;

bool fits(const std::vector<Dim>& dims, const Shape& shape) {
    if (dims.size() != shape.size()) {
        return false;
    }
    for (std::size_t i = 0; i < dims.size(); ++i) {
        if (dims[i].value >= 0 && dims[i].value != shape[i]) {
            return false;
        }
    }
    return true;
}

// With the dimension of the batch, unless the model has no place for it.
Shape with_batch(Shape shape, const Type& type, std::int64_t axis) {
    if (type.dims && type.dims->size() == shape.size()) {
        return shape;
    }
    const auto at = std::min(axis, static_cast<std::int64_t>(shape.size()));
    shape.insert(shape.begin() + at, 1);
    return shape;
}

Shape shape_in(const Picture& picture, Layout layout) {
    const auto [h, w, c] = std::tuple(picture.height, picture.width, picture.channels);
    return layout == Layout::nchw   ? Shape{c, h, w}
           : layout == Layout::nhwc ? Shape{h, w, c}
                                    : Shape{h * w * c};
}

// The layout in which the picture fits the model; nchw when several do, or none does.
Layout model_layout(const Picture& picture, const Type& type, std::int64_t axis) {
    for (const auto layout : {Layout::nchw, Layout::nhwc, Layout::flat}) {
        const bool possible = layout != Layout::flat || picture.channels == 1;
        if (type.dims && possible &&
            fits(*type.dims, with_batch(shape_in(picture, layout), type, axis))) {
            return layout;
        }
    }
    return Layout::nchw;
}

// 3 where the model says that it takes three channels, else 0: not known.
std::int64_t wanted_channels(const Type& type, Layout layout) {
    if (!type.dims || type.dims->size() < 3) {
        return 0;
    }
    const auto rank = type.dims->size();
    const bool first = (*type.dims)[rank - 3].value == 3 && layout != Layout::nhwc;
    const bool last = (*type.dims)[rank - 1].value == 3 && layout != Layout::nchw;
    return first || last ? 3 : 0;
}

// Steps that only make sense for a picture.
bool needs_picture(const Preprocess& p) {
    return p.from != Layout::automatic || p.color != Preprocess::Color::as_is || p.resize ||
           p.crop || p.layout != Layout::automatic || p.mean.size() > 1 || p.std.size() > 1;
}

Layout array_layout(const Shape& shape, Layout said, std::string_view where) {
    if (said != Layout::automatic || shape.size() == 2) {
        return said;
    }
    const auto channels = [](std::int64_t size) { return size == 1 || size == 3 || size == 4; };
    if (channels(shape[0]) != channels(shape[2])) {
        return channels(shape[0]) ? Layout::nchw : Layout::nhwc;
    }
    throw Error(Fault::input,
                fmt::format("{} is {}: which dimension is that of the channels cannot be told",
                            where, shape_text(shape)),
                "say from=nchw or from=nhwc");
}

Picture picture_of_array(const Value& value, Layout from, std::string_view where) {
    const auto shape = value.shape();
    if (shape.size() != 2 && shape.size() != 3) {
        throw Error(Fault::input,
                    fmt::format("{} is {}, which is no picture", where, value_text(value)),
                    "color, resize, crop, layout and numbers for each channel are for pictures");
    }
    std::vector<double> numbers(value.element_count());
    decode(value.dtype(), value.bytes(), 0, numbers);
    Picture picture;
    picture.eight_bit = value.dtype() == DType::u8;
    picture.values.resize(numbers.size());
    if (array_layout(shape, from, where) == Layout::nchw && shape.size() == 3) {
        std::tie(picture.channels, picture.height, picture.width) =
            std::tuple(shape[0], shape[1], shape[2]);
        const auto plane = static_cast<std::size_t>(picture.height * picture.width);
        const auto channels = static_cast<std::size_t>(picture.channels);
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            picture.values[i % plane * channels + i / plane] = static_cast<float>(numbers[i]);
        }
    } else {
        std::tie(picture.height, picture.width, picture.channels) =
            std::tuple(shape[0], shape[1], shape.size() == 3 ? shape[2] : 1);
        std::ranges::transform(numbers, picture.values.begin(),
                               [](double number) { return static_cast<float>(number); });
    }
    return picture;
}

Value steps_of_picture(Picture picture, const Type& type, const Preprocess& p,
                       std::string_view where) {
    picture = with_color(std::move(picture), p.color, wanted_channels(type, p.layout), where);
    if (p.resize) {
        picture = resized(picture, *p.resize, p.filter, where);
    }
    if (p.crop) {
        picture = cropped(picture, *p.crop, where);
    }
    normalise(picture, p, where);
    // What a command makes has a layout of its own.
    const auto automatic =
        p.command.empty() ? model_layout(picture, type, p.batch_axis) : Layout::nhwc;
    return laid_out(picture, p.layout == Layout::automatic ? automatic : p.layout);
}

Value steps_of_numbers(const Value& value, const Preprocess& p) {
    if (p.scale == 1 && p.mean.empty() && p.std.empty()) {
        return value;
    }
    const auto dtype = value.dtype() == DType::f64 ? DType::f64 : DType::f32;
    std::vector<double> numbers(value.element_count());
    decode(value.dtype(), value.bytes(), 0, numbers);
    const double mean = p.mean.empty() ? 0 : p.mean.front();
    const double std = p.std.empty() ? 1 : p.std.front();
    for (auto& number : numbers) {
        number = (number * p.scale - mean) / std;
    }
    auto result = Value::tensor(dtype, value.shape());
    encode(dtype, numbers, 0, result.mutable_bytes());
    return result;
}

// The same numbers as elements of another type. Integers must hold them.
Value converted(const Value& value, DType dtype, std::string_view where) {
    const bool complex = number_count(value.dtype(), 1) != 1 || number_count(dtype, 1) != 1;
    if (!is_numeric(value.dtype()) || !is_numeric(dtype) || complex) {
        throw Error(Fault::input, fmt::format("{} is {}, but the model takes {}", where,
                                              value_text(value), name(dtype)));
    }
    std::vector<double> numbers(value.element_count());
    decode(value.dtype(), value.bytes(), 0, numbers);
    auto result = Value::tensor(dtype, value.shape());
    encode(dtype, numbers, 0, result.mutable_bytes());
    if (!is_float(dtype)) {
        std::vector<double> back(numbers.size());
        decode(dtype, result.bytes(), 0, back);
        const auto [odd, ignored] = std::ranges::mismatch(numbers, back);
        if (odd != numbers.end()) {
            throw Error(Fault::input,
                        fmt::format("{} holds {}, which {} of the model's input cannot", where,
                                    *odd, name(dtype)),
                        "leave scale, mean and std out, or choose them for whole numbers");
        }
    }
    return result;
}

[[noreturn]] void refuse(const Value& value, const Target& target, std::string_view where) {
    const auto shape = value.shape();
    std::string hint = "preprocess it (--prep), or give data made for this model";
    if (target.type.dims && shape.size() == 3) {
        const auto& dims = *target.type.dims;
        const auto rank = dims.size();
        const auto channels = rank >= 3 ? dims[rank - 3].value : -1;
        if ((shape[0] == 1 || shape[0] == 3) && (channels == 1 || channels == 3)) {
            hint = channels != shape[0]
                       ? fmt::format("--prep color={}", channels == 1 ? "gray" : "rgb")
                       : fmt::format("--prep resize={}x{}", dims[rank - 2].value,
                                     dims[rank - 1].value);
        }
    }
    if (target.type.dims && !target.type.dims->empty() && target.type.dims->front().value > 1 &&
        target.type.dims->size() == shape.size() + 1) {
        hint = fmt::format("the model takes {} samples at once; export it with a batch of 1",
                           target.type.dims->front().value);
    }
    throw Error(Fault::input,
                fmt::format("{} is {}, but the input '{}' is {}", where, value_text(value),
                            target.name, type_text(target.type)),
                hint);
}

}  // namespace

bool changes_values(const Preprocess& p) {
    return needs_picture(p) || p.scale != 1 || !p.mean.empty() || !p.std.empty() ||
           !p.command.empty();
}

Value fitted(const Value& given, const Target& target, std::int64_t batch_axis,
             std::string_view where) {
    const auto& type = target.type;
    auto value = type.dtype == DType::undefined || type.dtype == given.dtype()
                     ? given
                     : converted(given, type.dtype, where);
    const auto shape = with_batch(value.shape(), type, batch_axis);
    if (type.dims && !fits(*type.dims, shape)) {
        refuse(given, target, where);
    }
    return Value::borrow(value.dtype(), shape, value.bytes(), value.body());
}

Value fitted(const RawSample& sample, const Target& target, const Preprocess& p,
             std::string_view where) {
    Value value;
    if (const auto* picture = std::get_if<Picture>(&sample)) {
        value = steps_of_picture(*picture, target.type, p, where);
    } else {
        value = std::get<std::vector<NamedValue>>(sample).front().value;
        value = needs_picture(p) ? steps_of_picture(picture_of_array(value, p.from, where),
                                                    target.type, p, where)
                                 : steps_of_numbers(value, p);
    }
    if (!p.command.empty()) {
        value = run_command(p.command, value, where);
    }
    return fitted(value, target, p.batch_axis, where);
}

}  // namespace trocar::data
