#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "trocar/error.h"
#include "trocar/preprocess.h"
#include "util/text.h"

namespace trocar {

namespace {

using Color = Preprocess::Color;
using Filter = Preprocess::Filter;
using Layout = Preprocess::Layout;
using Size = Preprocess::Size;

template <class E>
struct Word {
    const char* text;
    E value;
};
constexpr Word<Color> colors[] = {
    {"as-is", Color::as_is}, {"rgb", Color::rgb}, {"bgr", Color::bgr}, {"gray", Color::gray}};
constexpr Word<Filter> filters[] = {
    {"bilinear", Filter::bilinear}, {"antialias", Filter::antialias}, {"nearest", Filter::nearest}};
constexpr Word<Layout> layouts[] = {{"auto", Layout::automatic},
                                    {"nchw", Layout::nchw},
                                    {"nhwc", Layout::nhwc},
                                    {"flat", Layout::flat}};
constexpr Word<Layout> picture_layouts[] = {
    {"auto", Layout::automatic}, {"nchw", Layout::nchw}, {"nhwc", Layout::nhwc}};
constexpr Word<bool> splits[] = {{"time", false}, {"count", true}};
constexpr Word<bool> event_values[] = {{"count", false}, {"binary", true}};

// One KEY=VALUE as it is read.
struct Entry {
    std::string key;
    std::string value;

    [[noreturn]] void refuse(const std::string& hint) const {
        throw Error(Fault::usage, fmt::format("'{}' is no {}", value, key), hint);
    }

    template <class E, std::size_t N>
    E word(const Word<E> (&words)[N]) const {
        std::vector<std::string> known;
        for (const auto& candidate : words) {
            if (value == candidate.text) {
                return candidate.value;
            }
            known.emplace_back(candidate.text);
        }
        refuse(fmt::format("one of: {}", join(known, ", ")));
    }

    std::int64_t integer(std::string_view text, std::int64_t least, const char* hint) const {
        std::int64_t number = 0;
        const auto* end = text.data() + text.size();
        const auto [last, status] = std::from_chars(text.data(), end, number);
        if (status != std::errc() || last != end || number < least || number > (1 << 16)) {
            refuse(hint);
        }
        return number;
    }

    Size size() const {
        constexpr auto hint = "write 224 or, for height and width, 224x320";
        const auto parts = split(value, 'x');
        if (parts.size() > 2) {
            refuse(hint);
        }
        return {integer(parts[0], 1, hint), parts.size() == 2 ? integer(parts[1], 1, hint) : 0};
    }

    // "0.5", "1/255".
    double number(std::string_view text) const {
        const auto parse = [&](std::string_view part) {
            double result = 0;
            const auto* end = part.data() + part.size();
            const auto [last, status] = std::from_chars(part.data(), end, result);
            if (status != std::errc() || last != end || !std::isfinite(result)) {
                refuse("write a number as 0.5 or 1/255, several as 0.5,0.4,0.3");
            }
            return result;
        };
        const auto at = text.find('/');
        if (at == std::string_view::npos) {
            return parse(text);
        }
        const double below = parse(text.substr(at + 1));
        if (below == 0) {
            refuse("nothing can be divided by 0");
        }
        return parse(text.substr(0, at)) / below;
    }

    std::vector<double> numbers() const {
        std::vector<double> result;
        for (const auto& part : split(value, ',')) {
            result.push_back(number(trim(part)));
        }
        return result;
    }
};

struct Key {
    const char* name;
    void (*set)(Preprocess&, const Entry&);
};

constexpr Key keys[] = {
    {"from", [](Preprocess& p, const Entry& e) { p.from = e.word(picture_layouts); }},
    {"color", [](Preprocess& p, const Entry& e) { p.color = e.word(colors); }},
    {"resize", [](Preprocess& p, const Entry& e) { p.resize = e.size(); }},
    {"filter", [](Preprocess& p, const Entry& e) { p.filter = e.word(filters); }},
    {"crop", [](Preprocess& p, const Entry& e) { p.crop = e.size(); }},
    {"scale", [](Preprocess& p, const Entry& e) { p.scale = e.number(e.value); }},
    {"mean", [](Preprocess& p, const Entry& e) { p.mean = e.numbers(); }},
    {"std",
     [](Preprocess& p, const Entry& e) {
         p.std = e.numbers();
         for (const auto number : p.std) {
             if (number == 0) {
                 e.refuse("nothing can be divided by 0");
             }
         }
     }},
    {"layout", [](Preprocess& p, const Entry& e) { p.layout = e.word(layouts); }},
    {"batch",
     [](Preprocess& p, const Entry& e) {
         p.batch_axis = e.integer(e.value, 0, "write the place of the batch's dimension: 0 or 1");
     }},
    {"command", [](Preprocess& p, const Entry& e) { p.command = e.value; }},
    {"steps",
     [](Preprocess& p, const Entry& e) {
         p.events.steps = e.integer(e.value, 1, "write a number from 1 to 65536");
     }},
    {"split", [](Preprocess& p, const Entry& e) { p.events.equal_counts = e.word(splits); }},
    {"values", [](Preprocess& p, const Entry& e) { p.events.binary = e.word(event_values); }},
    {"sensor",
     [](Preprocess& p, const Entry& e) {
         const auto size = e.size();
         p.events.sensor = {size.height, size.width == 0 ? size.height : size.width};
     }},
    {"downscale",
     [](Preprocess& p, const Entry& e) {
         p.events.downscale = e.integer(e.value, 1, "write a number of pixels: 4");
     }},
};

constexpr std::string_view imagenet =
    "color=rgb resize=256 filter=antialias crop=224 scale=1/255 mean=0.485,0.456,0.406 "
    "std=0.229,0.224,0.225 layout=nchw";

void set(Preprocess& preprocess, const Entry& entry) {
    std::vector<std::string> known;
    for (const auto& key : keys) {
        if (entry.key == key.name) {
            key.set(preprocess, entry);
            return;
        }
        known.emplace_back(key.name);
    }
    const auto near = did_you_mean(entry.key, known);
    throw Error(Fault::usage, fmt::format("preprocessing has no key '{}'", entry.key),
                near.empty() ? fmt::format("keys are {}", join(known, ", ")) : near);
}

void parse_into(Preprocess& preprocess, std::string_view text) {
    for (text = trim(text); !text.empty(); text = trim(text)) {
        const auto end = text.find(' ');
        const auto word = text.substr(0, end);
        const auto at = word.find('=');
        if (word == "imagenet") {
            parse_into(preprocess, imagenet);
        } else if (at == std::string_view::npos) {
            throw Error(Fault::usage, fmt::format("'{}' is no step of preprocessing", word),
                        "write KEY=VALUE, as in resize=224 scale=1/255");
        } else if (word.substr(0, at) == "command") {
            set(preprocess, {"command", std::string(trim(text.substr(at + 1)))});
            return;
        } else {
            set(preprocess, {std::string(word.substr(0, at)), std::string(word.substr(at + 1))});
        }
        text = end == std::string_view::npos ? std::string_view{} : text.substr(end);
    }
}

template <class E, std::size_t N>
const char* text_of(const Word<E> (&words)[N], E value) {
    for (const auto& word : words) {
        if (word.value == value) {
            return word.text;
        }
    }
    return "";
}

std::string text_of(Size size) {
    return size.width == 0 ? fmt::format("{}", size.height)
                           : fmt::format("{}x{}", size.height, size.width);
}

}  // namespace

Preprocess parse_preprocess(std::span<const std::string> texts) {
    Preprocess preprocess;
    for (const auto& text : texts) {
        parse_into(preprocess, text);
    }
    const auto& events = preprocess.events;
    if (events.sensor.height % events.downscale != 0 ||
        events.sensor.width % events.downscale != 0) {
        throw Error(Fault::usage,
                    fmt::format("a sensor of {} cannot be scaled down by {}",
                                text_of(events.sensor), events.downscale),
                    "downscale must divide height and width of the sensor");
    }
    return preprocess;
}

std::string preprocess_text(const Preprocess& p) {
    const Preprocess plain;
    std::vector<std::string> words;
    const auto add = [&](bool differs, const char* key, const auto& value) {
        if (differs) {
            words.push_back(fmt::format("{}={}", key, value));
        }
    };
    add(p.events.steps != plain.events.steps, "steps", p.events.steps);
    add(p.events.equal_counts, "split", "count");
    add(p.events.binary, "values", "binary");
    add(p.events.sensor != plain.events.sensor, "sensor", text_of(p.events.sensor));
    add(p.events.downscale != 1, "downscale", p.events.downscale);
    add(p.from != plain.from, "from", text_of(layouts, p.from));
    add(p.color != plain.color, "color", text_of(colors, p.color));
    add(p.resize.has_value(), "resize", text_of(p.resize.value_or(Size{})));
    add(p.filter != plain.filter, "filter", text_of(filters, p.filter));
    add(p.crop.has_value(), "crop", text_of(p.crop.value_or(Size{})));
    add(p.scale != 1, "scale", p.scale);
    add(!p.mean.empty(), "mean", fmt::format("{}", join(p.mean, ",")));
    add(!p.std.empty(), "std", fmt::format("{}", join(p.std, ",")));
    add(p.layout != plain.layout, "layout", text_of(layouts, p.layout));
    add(p.batch_axis != 0, "batch", p.batch_axis);
    add(!p.command.empty(), "command", p.command);
    return fmt::format("{}", join(words, " "));
}

}  // namespace trocar
