#include "util/json_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

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

const Json& JsonPlace::member(const Json& object, const char* key) const {
    if (!object.is_object()) {
        fail(fmt::format("what should hold '{}' is no object", key));
    }
    const auto found = object.find(key);
    return found == object.end() ? nothing : *found;
}

const Json& JsonPlace::list(const Json& object, const char* key) const {
    const auto& value = member(object, key);
    if (value.is_null()) {
        return no_list;
    }
    if (!value.is_array()) {
        fail(fmt::format("'{}' is no list", key));
    }
    return value;
}

const Json& JsonPlace::object(const Json& object, const char* key) const {
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
    return value.get_ref<const std::string&>();
}

const std::string& JsonPlace::text(const Json& object, const char* key) const {
    return as_text(member(object, key), fmt::format("'{}'", key));
}

std::string JsonPlace::text(const Json& object, const char* key, std::string_view otherwise) const {
    const auto& value = member(object, key);
    return value.is_null() ? std::string(otherwise) : as_text(value, fmt::format("'{}'", key));
}

std::int64_t JsonPlace::integer(const Json& value, std::string_view what) const {
    if (value.is_number_unsigned()) {
        const auto number = value.get<std::uint64_t>();
        if (number <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
            return static_cast<std::int64_t>(number);
        }
    } else if (value.is_number_integer()) {
        return value.get<std::int64_t>();
    }
    fail(fmt::format("{} is no whole number of 64 bits", what));
}

bool JsonPlace::flag(const Json& object, const char* key) const {
    const auto& value = member(object, key);
    return value.is_boolean() && value.get<bool>();
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

std::string dump_json(const Json& value) {
    return value.is_string() ? value.get<std::string>()
                             : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void keep_unknown(const Json& object, std::initializer_list<std::string_view> known,
                  std::vector<Property>& metadata) {
    for (const auto& [key, value] : object.items()) {
        if (std::find(known.begin(), known.end(), key) == known.end() && !value.is_null()) {
            metadata.push_back({key, dump_json(value)});
        }
    }
}

}  // namespace trocar
