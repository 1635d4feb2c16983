#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trocar/error.h"
#include "trocar/graph.h"

namespace trocar {

using Json = nlohmann::json;

// Reads values out of a document whose parts may be of any kind. Everything that is not as it
// should be throws Error(input), with the place.
class JsonPlace {
public:
    explicit JsonPlace(std::string text) : text_(std::move(text)) {}
    // "'model.pt2': op 3 (torch.ops.aten.relu.default)"
    JsonPlace in(std::string_view part) const;
    [[noreturn]] void fail(std::string_view what) const;

    // The member of an object; null where it is missing.
    const Json& member(const Json& object, const char* key) const;
    const Json& list(const Json& object, const char* key) const;    // an empty one where missing
    const Json& object(const Json& object, const char* key) const;  // likewise
    const std::string& as_text(const Json& value, std::string_view what) const;
    const std::string& text(const Json& object, const char* key) const;
    std::string text(const Json& object, const char* key, std::string_view otherwise) const;
    std::int64_t integer(const Json& value, std::string_view what) const;
    bool flag(const Json& object, const char* key) const;  // false where missing

    // A union: an object with one member, or with one member that is not null. The member's name
    // and value; an empty name for what is none.
    struct Choice {
        std::string kind;
        const Json* value = nullptr;
    };
    Choice choice(const Json& value) const;

private:
    std::string text_;
};

// A value in JSON, as one line.
std::string dump_json(const Json& value);

// Adds members that are not among `known` to metadata, each as its JSON: what this version does
// not know is kept.
void keep_unknown(const Json& object, std::initializer_list<std::string_view> known,
                  std::vector<Property>& metadata);

}  // namespace trocar
