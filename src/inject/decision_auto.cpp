#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string_view>

#include "inject/decision.h"
#include "util/elements.h"
#include "util/text.h"

namespace trocar::inject {

// How `--decision auto` decides; docs/inject.md says the same in words. An output is taken for what
// its name, its values or its shape show it to be. Where they show nothing, it decides nothing: no
// rate is better than a wrong one.

namespace {

using Kind = Decision::Kind;

// The words of a name in lower case: "StatefulCall/detection_boxes:0" has stateful, call,
// detection, boxes.
std::vector<std::string> words_of(const std::string& name) {
    std::vector<std::string> words;
    bool fresh = true;
    char last = ' ';
    for (const char c : name) {
        const auto byte = static_cast<unsigned char>(c);
        const bool letter = std::isalpha(byte) != 0;
        const bool hump = std::isupper(byte) != 0 && std::islower(static_cast<unsigned char>(last));
        if (letter && (fresh || hump)) {
            words.emplace_back();
        }
        if (letter) {
            words.back() += static_cast<char>(std::tolower(byte));
        }
        fresh = !letter;
        last = c;
    }
    return words;
}

// Has the name one of these words? Those that end in '*' stand for all that begin so.
bool has_word(const std::string& name, std::initializer_list<std::string_view> wanted) {
    const auto words = words_of(name);
    return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
        return std::any_of(wanted.begin(), wanted.end(), [&](std::string_view want) {
            return want.ends_with('*') ? word.starts_with(want.substr(0, want.size() - 1))
                                       : word == want;
        });
    });
}

bool names_features(const std::string& name) {
    return has_word(
        name, {"embed*",  "feature*",   "feat",    "feats",   "hidden*",      "state",     "states",
               "pooled",  "pooler",     "encoder", "encoded", "latent*",      "present",   "past",
               "cache",   "attention*", "attn",    "loc",     "locs",         "location*", "coord*",
               "offset*", "regress*",   "depth",   "image",   "reconstruct*", "anchors"});
}
bool names_scores(const std::string& name, std::size_t rank) {
    return has_word(name, {"logit*", "lm", "vocab*", "prob", "probs", "probabilit*", "softmax*",
                           "logsoftmax"}) ||
           (!names_features(name) &&
            (has_word(name, {"score", "scores", "class*", "cls"}) ||
             (rank == 4 && has_word(name, {"seg*", "mask", "masks", "semantic*"}))));
}
bool names_boxes(const std::string& name) {
    return has_word(name, {"box", "boxes", "bbox", "bboxes", "rois", "proposals", "detection*",
                           "dets", "landmark*", "keypoint*"});
}
bool names_counts(const std::string& name) {
    return has_word(name, {"num", "number", "count", "counts", "length", "lengths", "size", "sizes",
                           "shape", "shapes"});
}

// Integers of 8 bits and less are, as a rule, quantized scores; wider ones are not.
bool may_be_scores(DType dtype) {
    return is_float(dtype) || (is_integer(dtype) && bits(dtype) <= 8);
}

bool is_whole(DType dtype) {
    return is_integer(dtype) || dtype == DType::boolean;
}

// The axis of the channels of an output that is as wide and high as an image that was given, with
// another number of channels: a map of classes by pixel.
std::optional<std::size_t> map_axis(const Shape& shape, const std::vector<NamedValue>& inputs) {
    if (shape.size() != 4) {
        return std::nullopt;
    }
    for (const auto& input : inputs) {
        const auto from = input.value.shape();
        if (from.size() != 4 || from[0] != shape[0]) {
            continue;
        }
        if (from[2] == shape[2] && from[3] == shape[3] && from[1] != shape[1] && shape[3] > 1) {
            return 1;
        }
        if (from[1] == shape[1] && from[2] == shape[2] && from[3] != shape[3] && shape[1] > 1) {
            return 3;
        }
    }
    return std::nullopt;
}

bool is_batch(std::int64_t size, const std::vector<NamedValue>& inputs) {
    return std::any_of(inputs.begin(), inputs.end(), [&](const NamedValue& input) {
        const auto shape = input.value.shape();
        return !shape.empty() && shape[0] == size;
    });
}

// Are they probabilities of classes: from 0 to 1, and 1 together, at every position?
bool sums_to_one(const Value& value, std::size_t axis) {
    const auto shape = value.shape();
    const auto classes = static_cast<std::size_t>(shape[axis]);
    std::size_t stride = 1;
    for (auto i = axis + 1; i < shape.size(); ++i) {
        stride *= static_cast<std::size_t>(shape[i]);
    }
    std::vector<double> numbers(value.element_count());
    decode(value.dtype(), value.bytes(), 0, numbers);
    if (numbers.empty() || !is_float(value.dtype())) {
        return false;
    }
    const auto positions = numbers.size() / classes;
    for (std::size_t p = 0; p < positions; ++p) {
        double sum = 0;
        for (std::size_t i = 0; i < classes; ++i) {
            const auto x = numbers[(p / stride * classes + i) * stride + p % stride];
            if (!(x >= 0 && x <= 1)) {
                return false;
            }
            sum += x;
        }
        if (std::abs(sum - 1) > (bits(value.dtype()) < 32 ? 0.02 : 1e-3)) {
            return false;
        }
    }
    return true;
}

// Four numbers for each of several things that are not the inputs of a batch.
bool looks_like_boxes(const NamedValue& output, const std::vector<NamedValue>& inputs) {
    const auto shape = output.value.shape();
    if (!output.value.is_tensor() || !is_float(output.value.dtype()) || shape.size() < 2) {
        return false;
    }
    if (names_boxes(output.name)) {
        return true;
    }
    return shape.back() == 4 &&
           (shape.size() == 3 || (shape.size() == 2 && !is_batch(shape[0], inputs))) &&
           !names_scores(output.name, shape.size());
}

enum class Likeness { none, by_shape, sure };

Likeness like_scores(const NamedValue& output, const std::vector<NamedValue>& inputs) {
    const auto& value = output.value;
    const auto shape = value.shape();
    if (shape.empty() || !may_be_scores(value.dtype())) {
        return Likeness::none;
    }
    const auto axis = class_axis(value, inputs);
    if (shape[axis] < 2) {
        return Likeness::none;
    }
    if (is_float(value.dtype()) &&
        (names_scores(output.name, shape.size()) || sums_to_one(value, axis))) {
        return Likeness::sure;
    }
    if (names_features(output.name)) {
        return Likeness::none;
    }
    // One row of numbers for each input of the batch.
    const bool rows = shape.size() > 1 && axis > 0 &&
                      element_count(shape) == static_cast<std::size_t>(shape[0] * shape[axis]) &&
                      (shape[0] == 1 || is_batch(shape[0], inputs));
    return rows || map_axis(shape, inputs) ? Likeness::by_shape : Likeness::none;
}

}  // namespace

std::size_t class_axis(const Value& output, const std::vector<NamedValue>& inputs) {
    const auto shape = output.shape();
    if (const auto axis = map_axis(shape, inputs)) {
        return *axis;
    }
    if (shape.size() < 4) {
        return shape.empty() ? 0 : shape.size() - 1;
    }
    // One row for each input, whatever stands around it: 1x1000x1x1, 1x1x1x1000.
    const auto is_long = [](std::int64_t dim) { return dim > 1; };
    const auto found = std::find_if(shape.begin() + 1, shape.end(), is_long);
    return std::count_if(shape.begin() + 1, shape.end(), is_long) == 1
               ? static_cast<std::size_t>(found - shape.begin())
               : 1;
}

Rule automatic_rule(const std::vector<NamedValue>& outputs, const std::vector<NamedValue>& inputs) {
    const bool detector = std::any_of(outputs.begin(), outputs.end(), [&](const NamedValue& o) {
        return looks_like_boxes(o, inputs);
    });
    std::optional<std::size_t> by_shape;
    std::optional<std::size_t> counts;
    Rule rule;
    rule.automatic = true;
    const auto take = [&](std::size_t i, Kind kind) {
        rule.kind = kind;
        rule.output = i;
        rule.name = outputs[i].name;
        rule.axis = kind == Kind::scores ? class_axis(outputs[i].value, inputs) : 0;
        return rule;
    };
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const auto& value = outputs[i].value;
        if (!value.is_tensor() || !is_numeric(value.dtype())) {
            continue;
        }
        const auto like = detector ? Likeness::none : like_scores(outputs[i], inputs);
        if (like == Likeness::sure) {
            return take(i, Kind::scores);
        }
        if (like == Likeness::by_shape) {
            by_shape = by_shape ? by_shape : i;
        } else if (is_whole(value.dtype())) {
            if (!names_counts(outputs[i].name)) {
                return take(i, Kind::equal);
            }
            counts = counts ? counts : i;
        }
    }
    if (by_shape) {
        return take(*by_shape, Kind::scores);
    }
    if (counts) {
        return take(*counts, Kind::equal);
    }
    rule.because = detector ? "for the outputs are boxes with nothing to compare for equality"
                            : "for no output shows class scores or integers";
    return rule;
}

}  // namespace trocar::inject
