#include "trocar/decision.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "trocar/error.h"
#include "util/text.h"

namespace trocar {

namespace {

constexpr const char* forms =
    "use scores[:OUTPUT[:AXIS]], equal[:OUTPUT], topk:K[:OUTPUT], error:LIMIT[:OUTPUT], none, or "
    "auto";

[[noreturn]] void refuse(std::string_view text, const std::string& why = {}) {
    throw Error(Fault::usage,
                fmt::format("invalid decision '{}'{}{}", text, why.empty() ? "" : ": ", why),
                forms);
}

template <class T>
bool read(std::string_view text, T& number) {
    const auto* end = text.data() + text.size();
    const auto [stop, failure] = std::from_chars(text.data(), end, number);
    return failure == std::errc() && stop == end && !text.empty();
}

// What stands before the next colon; `rest` goes on after it.
std::string_view next(std::string_view& rest) {
    const auto end = rest.find(':');
    const auto part = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    return part;
}

std::string joined(const std::string& head, const std::string& output) {
    return output.empty() ? head : head + ":" + output;
}

}  // namespace

Decision parse_decision(std::string_view text) {
    using Kind = Decision::Kind;
    auto rest = trim(text);
    const bool more = rest.find(':') != std::string_view::npos;
    const auto word = next(rest);
    Decision decision;
    if (word == "auto" || word == "none") {
        decision.kind = word == "auto" ? Kind::automatic : Kind::none;
        if (more) {
            refuse(text, fmt::format("'{}' takes nothing more", word));
        }
        return decision;
    }
    if (word == "scores" || word == "equal") {
        decision.kind = word == "scores" ? Kind::scores : Kind::equal;
    } else if (word == "topk") {
        decision.kind = Kind::topk;
        const auto k = next(rest);
        if (!read(k, decision.k) || decision.k < 1) {
            refuse(text, "K is a number of classes, at least 1");
        }
    } else if (word == "error") {
        decision.kind = Kind::error;
        const auto limit = next(rest);
        if (!read(limit, decision.limit) || !std::isfinite(decision.limit) || decision.limit < 0) {
            refuse(text, "LIMIT is a number, at least 0");
        }
    } else {
        const std::vector<std::string> words{"scores", "equal", "topk", "error", "none", "auto"};
        const auto near = did_you_mean(word, words);
        throw Error(Fault::usage, fmt::format("invalid decision '{}'", text),
                    near.empty() ? forms : near + " " + forms);
    }
    decision.output = rest;
    return decision;
}

std::string text(const Decision& decision) {
    using Kind = Decision::Kind;
    switch (decision.kind) {
        case Kind::automatic:
            return "auto";
        case Kind::scores:
            return joined("scores", decision.output);
        case Kind::equal:
            return joined("equal", decision.output);
        case Kind::topk:
            return joined(fmt::format("topk:{}", decision.k), decision.output);
        case Kind::error:
            return joined(fmt::format("error:{}", decision.limit), decision.output);
        case Kind::none:
            break;
    }
    return "none";
}

}  // namespace trocar
