#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trocar/error.h"

namespace trocar {

struct JsonMember;

// A document is no JSON, or a value in it is of another kind than its reader needs.
class JsonError : public Error {
public:
    explicit JsonError(const std::string& sentence) : Error(Fault::input, sentence) {}
};

// A JSON value. Nothing that is done with one takes stack in proportion to how deep it is nested.
class Json {
public:
    // `natural` holds whole numbers from 0 on, `integer` negative ones.
    enum class Kind : std::uint8_t { null, boolean, natural, integer, real, string, array, object };
    // The order of an object's members: by key, or as they were added. Of two members of a document
    // with the same key the last one counts; its place is that of the first.
    enum class Order : std::uint8_t { sorted, given };

    Json() noexcept {}
    Json(std::nullptr_t) noexcept {}
    Json(bool value) noexcept : kind_(Kind::boolean) { payload_.boolean = value; }
    Json(unsigned long long value) noexcept : kind_(Kind::natural) { payload_.natural = value; }
    Json(unsigned long value) noexcept : Json(static_cast<unsigned long long>(value)) {}
    Json(unsigned value) noexcept : Json(static_cast<unsigned long long>(value)) {}
    Json(long long value) noexcept : kind_(value < 0 ? Kind::integer : Kind::natural) {
        payload_.integer = value;
    }
    Json(long value) noexcept : Json(static_cast<long long>(value)) {}
    Json(int value) noexcept : Json(static_cast<long long>(value)) {}
    Json(double value) noexcept : kind_(Kind::real) { payload_.real = value; }
    Json(std::string_view text);
    Json(const std::string& text) : Json(std::string_view(text)) {}
    Json(const char* text) : Json(std::string_view(text)) {}
    Json(const std::vector<std::string>& texts);
    Json(const std::vector<std::int64_t>& numbers);
    Json(const std::vector<std::uint64_t>& numbers);
    Json(const void*) = delete;  // would be a bool
    Json(const Json& other);
    Json(Json&& other) noexcept
        : payload_(other.payload_), kind_(std::exchange(other.kind_, Kind::null)) {}
    Json& operator=(const Json& other);
    Json& operator=(Json&& other) noexcept;
    ~Json() {
        if (owns()) {
            clear();
        }
    }

    static Json array(std::initializer_list<Json> elements = {});
    template <class Range>
    static Json array_of(const Range& range) {
        Json made = array();
        for (const auto& element : range) {
            made.push_back(element);
        }
        return made;
    }
    static Json object(Order order = Order::sorted);
    static Json object(Order order, std::initializer_list<JsonMember> members);

    // Nothing where the text is no JSON; `order` is that of all objects in it. A byte order mark
    // before it is skipped.
    static std::optional<Json> parse(std::string_view text, Order order = Order::sorted);
    // Throws JsonError, which says where the text is no JSON, or that some value lies in more than
    // `deepest` arrays and objects.
    static Json parse_or_throw(std::string_view text, Order order = Order::sorted,
                               std::size_t deepest = SIZE_MAX);

    // One line, or with `indent` from 0 on a line for each value, so many spaces deeper in each
    // array or object. Invalid UTF-8 becomes U+FFFD; numbers that are not finite become null.
    std::string dump(int indent = -1) const;

    Kind kind() const { return kind_; }
    bool is_null() const { return kind_ == Kind::null; }
    bool is_boolean() const { return kind_ == Kind::boolean; }
    bool is_number() const { return is_whole() || kind_ == Kind::real; }
    bool is_whole() const { return kind_ == Kind::natural || kind_ == Kind::integer; }
    bool is_natural() const { return kind_ == Kind::natural; }
    bool is_string() const { return kind_ == Kind::string; }
    bool is_array() const { return kind_ == Kind::array; }
    bool is_object() const { return kind_ == Kind::object; }

    // The value. These throw JsonError on one of another kind. int64() and uint64() take any
    // number: of one with a fraction the whole part, of a whole number that is too large for them
    // what remains in 64 bits.
    bool boolean() const;
    std::int64_t int64() const;
    std::uint64_t uint64() const;
    double number() const;
    const std::string& string() const;
    std::vector<std::string> strings() const;
    std::vector<std::int64_t> int64s() const;
    // Is it this text or number?
    bool operator==(std::string_view text) const;
    bool operator==(double number) const;

    // How many elements or members an array or object has; 0 for null and 1 for all others.
    std::size_t size() const;
    bool empty() const { return size() == 0; }

    // The elements of an array; none of null. All others throw JsonError.
    const Json* begin() const;
    const Json* end() const;
    const Json& operator[](std::size_t index) const;  // of an array, below size()
    Json& operator[](std::size_t index);
    const Json& at(std::size_t index) const;  // throws JsonError

    // The members of an object; none of null. All others throw JsonError.
    class Items {
    public:
        Items(const JsonMember* first, const JsonMember* last) : first_(first), last_(last) {}
        const JsonMember* begin() const { return first_; }
        const JsonMember* end() const { return last_; }

    private:
        const JsonMember* first_;
        const JsonMember* last_;
    };
    Items items() const;
    // The member of an object; nullptr where there is none, as in what is no object.
    const Json* find(std::string_view key) const;
    bool contains(std::string_view key) const { return find(key) != nullptr; }
    // These throw JsonError: at() without the member, all of them on what is no object, the latter
    // two on a member of another kind.
    const Json& at(std::string_view key) const;
    std::string string_or(std::string_view key, std::string_view otherwise) const;
    double number_or(std::string_view key, double otherwise) const;

    // The member of an object, null at first. Null becomes an object, sorted; all others throw.
    // References to members of the same object are valid no longer.
    Json& operator[](std::string_view key);
    // Adds to an array. Null becomes an array; all others throw.
    Json& push_back(Json element);

private:
    struct Array;
    struct Object;
    class Builder;
    class Writer;
    union Payload {
        bool boolean;
        std::uint64_t natural;
        std::int64_t integer;
        double real;
        std::string* string;
        Array* array;
        Object* object;
    };

    bool owns() const { return kind_ >= Kind::string; }  // what must be freed
    void clear() noexcept;
    void clear(int depth, std::vector<Json>& later) noexcept;
    [[noreturn]] void refuse(const char* wanted) const;
    const std::vector<Json>& elements() const;
    const Json* optional(std::string_view key) const;

    Payload payload_{.natural = 0};
    Kind kind_ = Kind::null;
};

struct JsonMember {
    std::string key;
    Json value;
};

// A text in quotes, as it stands in a document.
std::string json_quoted(std::string_view text);
// A value for people: a text as it is, all others as one line of JSON.
std::string dump_json(const Json& value);

// Reads values out of a document whose parts may be of any kind. Everything that is not as it
// should be throws Error(input), with the place.
class JsonPlace {
public:
    explicit JsonPlace(std::string text) : text_(std::move(text)) {}
    // "'model.pt2': op 3 (torch.ops.aten.relu.default)"
    JsonPlace in(std::string_view part) const;
    [[noreturn]] void fail(std::string_view what) const;

    // The member of an object; null where it is missing.
    const Json& member(const Json& object, std::string_view key) const;
    const Json& list(const Json& object, std::string_view key) const;  // an empty one where missing
    const Json& object(const Json& object, std::string_view key) const;  // likewise
    const std::string& as_text(const Json& value, std::string_view what) const;
    const std::string& text(const Json& object, std::string_view key) const;
    std::string text(const Json& object, std::string_view key, std::string_view otherwise) const;
    std::int64_t integer(const Json& value, std::string_view what) const;
    bool flag(const Json& object, std::string_view key) const;  // false where missing

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

}  // namespace trocar
