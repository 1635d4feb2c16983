#include "base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_storage.h"

// From text and to text: here alone is nlohmann's parser, and its way to write numbers and texts.
namespace trocar {

// Takes what the parser finds. Values of arrays and objects that are still open wait on a stack, so
// that each array or object is made once, of the right size; of a very long one some are moved in
// from time to time.
class Json::Builder {
public:
    using number_integer_t = nlohmann::json::number_integer_t;
    using number_unsigned_t = nlohmann::json::number_unsigned_t;
    using number_float_t = nlohmann::json::number_float_t;
    using string_t = nlohmann::json::string_t;
    using binary_t = nlohmann::json::binary_t;

    Builder(Order order, std::size_t deepest) : order_(order), deepest_(deepest) {}

    bool null() { return take({}); }
    bool boolean(bool value) { return take(value); }
    bool number_integer(number_integer_t value) { return take(value); }
    bool number_unsigned(number_unsigned_t value) { return take(value); }
    bool number_float(number_float_t value, const string_t&) { return take(value); }
    bool string(string_t& value) { return take(std::string_view(value)); }
    bool binary(binary_t&) { return false; }
    bool start_object(std::size_t) { return open(Json::object(order_), members_.size()); }
    bool start_array(std::size_t) { return open(Json::array(), elements_.size()); }
    bool key(string_t& value) {
        if (members_.size() - open_.back().first >= most_waiting) {
            move_members(open_.back());
        }
        members_.emplace_back().key = value;
        return open_.size() <= deepest_ || refuse_depth();
    }
    bool end_object() {
        move_members(open_.back());
        open_.back().json.payload_.object->finish();
        return close();
    }
    bool end_array() {
        move_elements(open_.back());
        return close();
    }
    bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& error) {
        // Without nlohmann's own name and number for it.
        const std::string_view text = error.what();
        const auto end = text.find("] ");
        failure_ = text.substr(end == std::string_view::npos ? 0 : end + 2);
        return false;
    }

    Json result() { return std::move(result_); }
    const std::string& failure() const { return failure_; }

private:
    static constexpr std::size_t most_waiting = 1024;  // of one array or object
    struct Open {
        Json json;
        std::size_t first;  // of its elements or members among those that wait
    };

    bool refuse_depth() {
        failure_ = "it is nested too deep";
        return false;
    }
    bool open(Json json, std::size_t first) {
        if (open_.size() > deepest_) {
            return refuse_depth();
        }
        open_.push_back({std::move(json), first});
        return true;
    }
    bool close() {
        auto json = std::move(open_.back().json);
        open_.pop_back();
        return put(std::move(json));
    }
    bool take(Json value) {
        return open_.size() > deepest_ ? refuse_depth() : put(std::move(value));
    }
    bool put(Json value) {
        if (open_.empty()) {
            result_ = std::move(value);
        } else if (open_.back().json.is_object()) {
            auto& free = members_.back().value;
            free.payload_ = value.payload_;
            free.kind_ = std::exchange(value.kind_, Kind::null);
        } else {
            if (elements_.size() - open_.back().first >= most_waiting) {
                move_elements(open_.back());
            }
            elements_.push_back(std::move(value));
        }
        return true;
    }
    template <class T>
    static void move_from(std::vector<T>& waiting, std::size_t first, std::vector<T>& to) {
        const auto begin = waiting.begin() + static_cast<std::ptrdiff_t>(first);
        to.insert(to.end(), std::make_move_iterator(begin), std::make_move_iterator(waiting.end()));
        waiting.erase(begin, waiting.end());
    }
    void move_elements(Open& open) {
        move_from(elements_, open.first, open.json.payload_.array->elements);
    }
    void move_members(Open& open) {
        move_from(members_, open.first, open.json.payload_.object->members);
    }

    Order order_;
    std::size_t deepest_;
    std::vector<Open> open_;
    std::vector<Json> elements_;
    std::vector<JsonMember> members_;
    Json result_;
    std::string failure_;
};

class Json::Writer {
public:
    explicit Writer(int indent) : indent_(indent) {}

    std::string write(const Json& json) && {
        value(json);
        while (!open_.empty()) {
            auto& [of, next] = open_.back();
            if (next == of->size()) {
                const char end = of->is_array() ? ']' : '}';
                open_.pop_back();
                line();
                out_ += end;
                continue;
            }
            if (next > 0) {
                out_ += ',';
            }
            line();
            if (of->is_array()) {
                value(of->payload_.array->elements[next++]);
            } else {
                const auto& member = of->payload_.object->members[next++];
                quote(out_, member.key);
                out_ += indent_ < 0 ? ":" : ": ";
                value(member.value);
            }
        }
        return std::move(out_);
    }

    static void quote(std::string& out, std::string_view text) {
        const auto plain = [](char c) {
            return c >= 0x20 && static_cast<unsigned char>(c) < 0x80 && c != '"' && c != '\\';
        };
        if (std::all_of(text.begin(), text.end(), plain)) {
            ((out += '"') += text) += '"';
        } else {
            out +=
                nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
        }
    }

private:
    void line() {
        if (indent_ >= 0) {
            out_ += '\n';
            out_.append(static_cast<std::size_t>(indent_) * open_.size(), ' ');
        }
    }
    // A value, or the begin of an array or object.
    void value(const Json& json) {
        switch (json.kind_) {
            case Kind::null:
                out_ += "null";
                break;
            case Kind::boolean:
                out_ += json.payload_.boolean ? "true" : "false";
                break;
            case Kind::natural:
                append(fmt::format_int(json.payload_.natural));
                break;
            case Kind::integer:
                append(fmt::format_int(json.payload_.integer));
                break;
            case Kind::real:
                real(json.payload_.real);
                break;
            case Kind::string:
                quote(out_, *json.payload_.string);
                break;
            case Kind::array:
            case Kind::object:
                if (json.empty()) {
                    out_ += json.is_array() ? "[]" : "{}";
                } else {
                    out_ += json.is_array() ? '[' : '{';
                    open_.push_back({&json, 0});
                }
                break;
        }
    }
    void append(const fmt::format_int& number) { out_.append(number.data(), number.size()); }
    void real(double number) {
        if (!std::isfinite(number)) {
            out_ += "null";
            return;
        }
        char digits[64];
        const auto* end = nlohmann::detail::to_chars(digits, digits + sizeof digits, number);
        out_.append(digits, static_cast<std::size_t>(end - digits));
    }

    struct Open {
        const Json* json;
        std::size_t next;  // of its elements or members
    };
    int indent_;
    std::vector<Open> open_;
    std::string out_;
};

std::optional<Json> Json::parse(std::string_view text, Order order) {
    Builder builder(order, SIZE_MAX);
    if (!nlohmann::json::sax_parse(text.data(), text.data() + text.size(), &builder)) {
        return std::nullopt;
    }
    return builder.result();
}

Json Json::parse_or_throw(std::string_view text, Order order, std::size_t deepest) {
    Builder builder(order, deepest);
    if (!nlohmann::json::sax_parse(text.data(), text.data() + text.size(), &builder)) {
        throw JsonError(builder.failure());
    }
    return builder.result();
}

std::string Json::dump(int indent) const {
    return Writer(indent).write(*this);
}

std::string json_quoted(std::string_view text) {
    return Json(text).dump();
}

std::string dump_json(const Json& value) {
    return value.is_string() ? value.string() : value.dump();
}

}  // namespace trocar
