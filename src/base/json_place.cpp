#include <fmt/format.h>

#include <limits>

#include "base/json.h"

namespace trocar {

namespace {

const Json nothing;
const Json no_list = Json::array();
const Json no_object = Json::object();

}  // namespace

JsonPlace JsonPlace::in(std::string_view part) const {
    return JsonPlace(fmt::format("{}: {}", text_, part));
}

void JsonPlace::fail(std::string_view what) const {
    throw Error(Fault::input, fmt::format("{}: {}", text_, what));
}

const Json& JsonPlace::member(const Json& object, std::string_view key) const {
    if (!object.is_object()) {
        fail(fmt::format("what should hold '{}' is no object", key));
    }
    const auto* found = object.find(key);
    return found == nullptr ? nothing : *found;
}

const Json& JsonPlace::list(const Json& object, std::string_view key) const {
    const auto& value = member(object, key);
    if (value.is_null()) {
        return no_list;
    }
    if (!value.is_array()) {
        fail(fmt::format("'{}' is no list", key));
    }
    return value;
}

const Json& JsonPlace::object(const Json& object, std::string_view key) const {
    const auto& value = member(object, key);
    if (value.is_null()) {
        return no_object;
    }
    if (!value.is_object()) {
        fail(fmt::format("'{}' is no object", key));
    }
    return value;
}

const std::string& JsonPlace::as_text(const Json& value, std::string_view what) const {
    if (!value.is_string()) {
        fail(fmt::format("{} is no text", what));
    }
    return value.string();
}

const std::string& JsonPlace::text(const Json& object, std::string_view key) const {
    const auto& value = member(object, key);
    if (!value.is_string()) {
        fail(fmt::format("'{}' is no text", key));
    }
    return value.string();
}

std::string JsonPlace::text(const Json& object, std::string_view key,
                            std::string_view otherwise) const {
    const auto& value = member(object, key);
    return value.is_null() ? std::string(otherwise) : text(object, key);
}

std::int64_t JsonPlace::integer(const Json& value, std::string_view what) const {
    if (!value.is_whole() ||
        (value.is_natural() && value.uint64() > std::numeric_limits<std::int64_t>::max())) {
        fail(fmt::format("{} is no whole number of 64 bits", what));
    }
    return value.int64();
}

bool JsonPlace::flag(const Json& object, std::string_view key) const {
    const auto& value = member(object, key);
    return value.is_boolean() && value.boolean();
}

JsonPlace::Choice JsonPlace::choice(const Json& value) const {
    if (!value.is_object()) {
        fail("what should be one of several kinds is no object");
    }
    Choice found;
    for (const auto& [key, inner] : value.items()) {
        if (!inner.is_null()) {
            if (found.value != nullptr) {
                fail(fmt::format("a value is both '{}' and '{}'", found.kind, key));
            }
            found = {key, &inner};
        }
    }
    return found;
}

}  // namespace trocar
