#include <fmt/format.h>

#include <array>

#include "trocar/error.h"
#include "trocar/ops.h"

namespace trocar {

namespace {

struct ModeText {
    CacheMode mode;
    const char* name;
    const char* says;
};
constexpr std::array<ModeText, cache_modes> texts{{
    {CacheMode::reuse, "reuse", "the same input in every call"},
    {CacheMode::stream_inputs, "stream-inputs",
     "another input in every call, out of more than the last cache holds"},
    {CacheMode::stream_weights, "stream-weights",
     "other inputs and other weights in every call, out of more than the last cache holds"},
    {CacheMode::cold, "cold", "caches filled with something else before every call"},
    {CacheMode::in_situ, "in-situ",
     "right after the op that makes its input, and after the memory of a whole run was read"},
    {CacheMode::chain, "chain",
     "one of many such layers behind each other, with weights of its own"},
}};

}  // namespace

const char* name(CacheMode mode) {
    return texts[static_cast<std::size_t>(mode)].name;
}
const char* describe(CacheMode mode) {
    return texts[static_cast<std::size_t>(mode)].says;
}
CacheMode parse_cache_mode(std::string_view text) {
    std::string all;
    for (const auto& one : texts) {
        if (text == one.name) {
            return one.mode;
        }
        all += (all.empty() ? "" : ", ") + std::string(one.name);
    }
    throw Error(Fault::usage, fmt::format("'{}' is no cache mode", text), "one of " + all);
}

}  // namespace trocar
