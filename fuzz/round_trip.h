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
    std::function<std::string(const Model&)> rebuild;
};

// Constants that are zeros without data may be larger than what a fuzzer should write.
inline bool is_small(const Graph& graph) {
    std::size_t sum = 0;
    for (const auto id : graph.tensors()) {
        const auto& constant = graph.tensor(id).constant;
        sum += constant ? byte_size(constant->dtype(), constant->element_count()) : 0;
        if (sum > (1U << 24)) {
            return false;
        }
    }
    return true;
}

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
    if (!is_small(model.graph)) {
        return std::nullopt;
    }
    auto made = std::make_shared<std::string>();
    try {
        *made = format.rebuild(model);
    } catch (const Error& e) {
        require_refusal(e);
        return std::nullopt;
    }
    auto again = format.read(std::as_bytes(std::span(*made)), made);
    return std::pair(std::move(model), std::move(again));
}

}  // namespace trocar
