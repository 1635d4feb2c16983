#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/require.h"
#include "trocar/model.h"

namespace trocar {

// A format whose files are kept as they are, and can be built anew.
struct RoundTrip {
    std::function<bool(Bytes)> matches;
    std::function<Model(Bytes, std::shared_ptr<const void>)> read;
    std::function<std::string(const Model&)> encode;
    std::function<std::optional<std::string>(const Model&)> rebuild;  // nothing: not this one
};

// What can be read is valid, is written back as the same bytes and, where it can be built anew, can
// be read again: then the two are given. Nothing where one of these steps refuses.
inline std::optional<std::pair<Model, Model>> rebuilt(const RoundTrip& format,
                                                      const std::uint8_t* data, std::size_t size) {
    // As aligned as a mapped file.
    auto words = std::make_shared<std::vector<std::uint64_t>>(size / 8 + 2);
    auto* start = reinterpret_cast<std::byte*>(words->data());
    start += (16 - reinterpret_cast<std::uintptr_t>(start) % 16) % 16;
    if (size > 0) {
        std::memcpy(start, data, size);
    }
    const Bytes bytes(start, size);
    format.matches(bytes);
    Model model;
    try {
        model = format.read(bytes, words);
    } catch (const Error& e) {
        require_refusal(e);
        return std::nullopt;
    }
    require_valid(model.graph);
    for (const auto& function : model.functions) {
        require_valid(function->body);
    }
    const auto same = format.encode(model);
    require(same.size() == size && std::memcmp(same.data(), data, size) == 0);
    std::optional<std::string> text;
    try {
        text = format.rebuild(model);
    } catch (const Error& e) {
        require_refusal(e);
    }
    if (!text) {
        return std::nullopt;
    }
    const auto made = std::make_shared<std::string>(std::move(*text));
    auto again = format.read(std::as_bytes(std::span(*made)), made);
    return std::pair(std::move(model), std::move(again));
}

}  // namespace trocar
