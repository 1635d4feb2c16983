#include "campaign/words.h"

#include <fmt/format.h>

#include "trocar/error.h"
#include "util/report_blocks.h"
#include "util/text.h"

namespace trocar::campaign {

namespace {

// Reads a part of a fault as the whole of one, and nothing but that part.
ModelFault fault_with(const std::string& elements, const std::string& effect,
                      const std::string& duration) {
    auto faults = parse_faults(fmt::format("x {} {} {}", elements, effect, duration));
    if (faults.size() != 1) {
        throw Error(Fault::usage, "one is wanted, not several");
    }
    return std::move(faults[0]);
}

}  // namespace

Elements parse_elements(const std::string& text) {
    const auto fault =
        fault_with(text.starts_with('[') ? text : fmt::format("[{}]", text), "flip 0", "");
    if (fault.effect.mask != 1 || fault.duration != Duration{}) {
        throw Error(Fault::usage, fmt::format("'{}' says more than which elements", text));
    }
    return fault.elements;
}

Effect parse_effect(const std::string& text) {
    const auto word = split(std::string(trim(text)), ' ')[0];
    const bool bits = word == "flip" || word == "stuck0" || word == "stuck1" || word == "rate";
    auto fault = [&] {
        try {
            return fault_with("[*]", bits ? text + " 0" : text, "");
        } catch (const Error&) {
            static const std::vector<std::string> known{"flip",  "stuck0", "stuck1", "zero",
                                                        "set",   "random", "add",    "multiply",
                                                        "noise", "gain",   "rate",   "custom"};
            const auto guess = did_you_mean(word, known);
            throw Error(Fault::usage, fmt::format("'{}' is no effect", text),
                        fmt::format("{}{}flip, stuck0, stuck1, zero, set A, random A B, add A, "
                                    "multiply A, noise A, gain A, rate P or custom NAME",
                                    guess, guess.empty() ? "" : " "));
        }
    }();
    if (fault.duration != Duration{} || fault.effect.key != 0) {
        throw Error(Fault::usage, fmt::format("'{}' says more than an effect", text));
    }
    fault.effect.mask = 0;
    return fault.effect;
}

Duration parse_duration(const std::string& text) {
    if (text == "permanent") {
        return {};
    }
    try {
        const auto fault = fault_with("[*]", "zero", text);
        if (fault.duration != Duration{}) {
            return fault.duration;
        }
    } catch (const Error&) {
        // Said below, in words that fit.
    }
    throw Error(Fault::usage, fmt::format("'{}' is no duration", text),
                "permanent, transient RUN, or every N from RUN");
}

bool check_bits(const std::string& text) {
    // Names of parts mean other bits in every type: any floating-point type knows them all.
    parse_bits(text, DType::f64);
    return true;
}

std::string effect_text(const Effect& effect) {
    switch (effect.kind) {
        case Effect::Kind::flip:
            return "flip";
        case Effect::Kind::stuck0:
            return "stuck0";
        case Effect::Kind::stuck1:
            return "stuck1";
        case Effect::Kind::set:
            return "set " + exact(effect.a);
        case Effect::Kind::random:
            return fmt::format("random {} {}", exact(effect.a), exact(effect.b));
        case Effect::Kind::add:
            return "add " + exact(effect.a);
        case Effect::Kind::multiply:
            return "multiply " + exact(effect.a);
        case Effect::Kind::noise:
            return "noise " + exact(effect.a);
        case Effect::Kind::gain:
            return "gain " + exact(effect.a);
        case Effect::Kind::rate:
            return "rate " + exact(effect.a);
        case Effect::Kind::custom: {
            std::string quoted;
            for (const char c : effect.name) {
                quoted += c == '\'' ? "''" : std::string(1, c);
            }
            return fmt::format("custom '{}'", quoted);
        }
    }
    return {};
}

std::string duration_text(const Duration& duration) {
    switch (duration.kind) {
        case Duration::Kind::permanent:
            return "permanent";
        case Duration::Kind::transient:
            return fmt::format("transient {}", duration.first);
        case Duration::Kind::intermittent:
            return fmt::format("every {} from {}", duration.period, duration.first);
    }
    return {};
}

}  // namespace trocar::campaign
