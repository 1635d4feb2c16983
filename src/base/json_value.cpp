#include <fmt/format.h>

#include "base/json_storage.h"

namespace trocar {

namespace {

const char* kind_name(Json::Kind kind) {
    constexpr const char* names[] = {"null",   "boolean", "number", "number",
                                     "number", "string",  "array",  "object"};
    return names[static_cast<std::size_t>(kind)];
}

}  // namespace

Json::Json(std::string_view text) {
    payload_.string = new std::string(text);
    kind_ = Kind::string;
}

Json::Json(const std::vector<std::string>& texts) : Json(array_of(texts)) {}
Json::Json(const std::vector<std::int64_t>& numbers) : Json(array_of(numbers)) {}
Json::Json(const std::vector<std::uint64_t>& numbers) : Json(array_of(numbers)) {}

Json Json::array(std::initializer_list<Json> elements) {
    Json made;
    made.payload_.array = new Array{elements};
    made.kind_ = Kind::array;
    return made;
}

Json Json::object(Order order) {
    Json made;
    made.payload_.object = new Object;
    made.payload_.object->order = order;
    made.kind_ = Kind::object;
    return made;
}

Json Json::object(Order order, std::initializer_list<JsonMember> members) {
    auto made = object(order);
    made.payload_.object->members = members;
    made.payload_.object->finish();
    return made;
}

// Delegates, so that what was copied is freed where there is no memory for the rest.
Json::Json(const Json& other) : Json() {
    struct Copy {
        const Json* from;
        Json* to;
    };
    std::vector<Copy> left{{&other, this}};
    while (!left.empty()) {
        const auto [from, to] = left.back();
        left.pop_back();
        switch (from->kind_) {
            case Kind::string:
                *to = Json(std::string_view(*from->payload_.string));
                break;
            case Kind::array: {
                *to = array();
                auto& copies = to->payload_.array->elements;
                copies.resize(from->size());
                for (std::size_t i = 0; i < copies.size(); ++i) {
                    left.push_back({&from->payload_.array->elements[i], &copies[i]});
                }
                break;
            }
            case Kind::object: {
                const auto& object = *from->payload_.object;
                *to = Json::object(object.order);
                auto& copies = *to->payload_.object;
                copies.by_key = object.by_key;
                copies.members.reserve(object.members.size());
                for (const auto& member : object.members) {
                    copies.members.push_back({member.key, {}});
                    left.push_back({&member.value, &copies.members.back().value});
                }
                break;
            }
            default:
                to->payload_ = from->payload_;
                to->kind_ = from->kind_;
        }
    }
}

Json& Json::operator=(const Json& other) {
    return *this = Json(other);
}

Json& Json::operator=(Json&& other) noexcept {
    const Json old(std::move(*this));  // it may hold the other
    payload_ = other.payload_;
    kind_ = std::exchange(other.kind_, Kind::null);
    return *this;
}

// Frees a value. What is nested deep is put aside: the stack has its bounds.
void Json::clear(int depth, std::vector<Json>& later) noexcept {
    constexpr int deepest = 64;
    if (kind_ == Kind::string) {
        delete payload_.string;
    } else if (depth == deepest) {
        later.push_back(std::move(*this));
    } else if (kind_ == Kind::array) {
        for (auto& element : payload_.array->elements) {
            if (element.owns()) {
                element.clear(depth + 1, later);
            }
        }
        delete payload_.array;
    } else {
        for (auto& member : payload_.object->members) {
            if (member.value.owns()) {
                member.value.clear(depth + 1, later);
            }
        }
        delete payload_.object;
    }
    kind_ = Kind::null;
}

void Json::clear() noexcept {
    std::vector<Json> later;
    clear(0, later);
    while (!later.empty()) {
        auto next = std::move(later.back());
        later.pop_back();
        next.clear(0, later);
    }
}

void Json::refuse(const char* wanted) const {
    throw JsonError(fmt::format("type must be {}, but is {}", wanted, kind_name(kind_)));
}

bool Json::boolean() const {
    return is_boolean() ? payload_.boolean : (refuse("boolean"), false);
}

std::int64_t Json::int64() const {
    if (kind_ != Kind::real) {
        return static_cast<std::int64_t>(uint64());
    }
    const auto number = payload_.real;
    return number >= -0x1p63 && number < 0x1p63 ? static_cast<std::int64_t>(number)
                                                : throw JsonError("a number has more than 64 bits");
}

std::uint64_t Json::uint64() const {
    if (kind_ != Kind::real) {
        return is_whole() ? payload_.natural : (refuse("number"), 0);
    }
    const auto number = payload_.real;
    if (number < 0) {
        return static_cast<std::uint64_t>(int64());
    }
    return number < 0x1p64 ? static_cast<std::uint64_t>(number)
                           : throw JsonError("a number has more than 64 bits");
}

double Json::number() const {
    switch (kind_) {
        case Kind::natural:
            return static_cast<double>(payload_.natural);
        case Kind::integer:
            return static_cast<double>(payload_.integer);
        case Kind::real:
            return payload_.real;
        default:
            refuse("number");
    }
}

const std::string& Json::string() const {
    if (!is_string()) {
        refuse("string");
    }
    return *payload_.string;
}

std::vector<std::string> Json::strings() const {
    std::vector<std::string> all;
    for (const auto& element : elements()) {
        all.push_back(element.string());
    }
    return all;
}

std::vector<std::int64_t> Json::int64s() const {
    std::vector<std::int64_t> all;
    for (const auto& element : elements()) {
        all.push_back(element.int64());
    }
    return all;
}

bool Json::operator==(std::string_view text) const {
    return is_string() && *payload_.string == text;
}

bool Json::operator==(double other) const {
    return is_number() && number() == other;
}

std::size_t Json::size() const {
    return is_array()    ? payload_.array->elements.size()
           : is_object() ? payload_.object->members.size()
                         : std::size_t{!is_null()};
}

const std::vector<Json>& Json::elements() const {
    if (!is_array()) {
        refuse("array");
    }
    return payload_.array->elements;
}

const Json* Json::begin() const {
    return is_null() ? nullptr : elements().data();
}

const Json* Json::end() const {
    return is_null() ? nullptr : elements().data() + elements().size();
}

const Json& Json::operator[](std::size_t index) const {
    return elements()[index];
}

Json& Json::operator[](std::size_t index) {
    return const_cast<Json&>(elements()[index]);
}

const Json& Json::at(std::size_t index) const {
    if (!is_array()) {
        throw JsonError(fmt::format("cannot use at() with {}", kind_name(kind_)));
    }
    if (index >= size()) {
        throw JsonError(fmt::format("array index {} is out of range", index));
    }
    return payload_.array->elements[index];
}

Json::Items Json::items() const {
    if (is_null()) {
        return {nullptr, nullptr};
    }
    if (!is_object()) {
        refuse("object");
    }
    const auto& members = payload_.object->members;
    return {members.data(), members.data() + members.size()};
}

const Json* Json::find(std::string_view key) const {
    const auto* found = is_object() ? payload_.object->find(key) : nullptr;
    return found == nullptr ? nullptr : &found->value;
}

const Json& Json::at(std::string_view key) const {
    if (!is_object()) {
        throw JsonError(fmt::format("cannot use at() with {}", kind_name(kind_)));
    }
    const auto* found = find(key);
    return found != nullptr ? *found : throw JsonError(fmt::format("key '{}' not found", key));
}

const Json* Json::optional(std::string_view key) const {
    if (!is_object()) {
        throw JsonError(fmt::format("cannot use value() with {}", kind_name(kind_)));
    }
    return find(key);
}

std::string Json::string_or(std::string_view key, std::string_view otherwise) const {
    const auto* found = optional(key);
    return found == nullptr ? std::string(otherwise) : found->string();
}

double Json::number_or(std::string_view key, double otherwise) const {
    const auto* found = optional(key);
    return found == nullptr ? otherwise : found->number();
}

Json& Json::operator[](std::string_view key) {
    if (is_null()) {
        *this = object();
    }
    if (!is_object()) {
        refuse("object");
    }
    auto& object = *payload_.object;
    auto* found = object.find(key);
    return found == nullptr ? object.add(key).value : found->value;
}

Json& Json::push_back(Json element) {
    if (is_null()) {
        *this = array();
    }
    if (!is_array()) {
        refuse("array");
    }
    return payload_.array->elements.emplace_back(std::move(element));
}

}  // namespace trocar
