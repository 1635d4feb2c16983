#include "formats/tflite/schema.h"

#include <flatbuffers/reflection.h>
#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <map>
#include <vector>

#include "formats/tflite/model_bfbs_generated.h"
#include "formats/tflite/model_generated.h"
#include "util/text.h"

namespace trocar::tflite {

namespace {

std::string_view view(const flatbuffers::String* text) {
    return text != nullptr ? std::string_view(text->c_str(), text->size()) : std::string_view();
}

std::string_view last_part(std::string_view name) {
    return name.substr(name.rfind('.') + 1);
}

// The binary schema, with what is asked of it by name or number.
class Catalogue {
public:
    Catalogue() : words_((fb::ModelBinarySchema::size() + 7) / 8) {
        std::memcpy(words_.data(), fb::ModelBinarySchema::data(), fb::ModelBinarySchema::size());
        schema_ = reflection::GetSchema(words_.data());
        add_union("trocar.tflite.fb.BuiltinOptions", false);
        add_union("trocar.tflite.fb.BuiltinOptions2", true);
        builtins_ = schema_->enums()->LookupByKey("trocar.tflite.fb.BuiltinOperator");
    }

    const reflection::Schema& schema() const { return *schema_; }
    const reflection::Enum& builtins() const { return *builtins_; }
    const Options* find(bool second, std::uint8_t number) const {
        const auto found = by_number_.find({second, number});
        return found != by_number_.end() ? &found->second : nullptr;
    }
    const Options* find(std::string_view name) const { return look(by_name_, name); }
    const Options* of_op(std::string_view op) const { return look(by_op_, op); }

private:
    using Index = std::map<std::string, const Options*, std::less<>>;
    static const Options* look(const Index& index, std::string_view key) {
        const auto found = index.find(key);
        return found != index.end() ? found->second : nullptr;
    }

    void add_union(const char* name, bool second) {
        for (const auto* value : *schema_->enums()->LookupByKey(name)->values()) {
            if (value->union_type() == nullptr || value->union_type()->index() < 0) {
                continue;
            }
            const auto at = static_cast<flatbuffers::uoffset_t>(value->union_type()->index());
            const auto* object = schema_->objects()->Get(at);
            const auto number = static_cast<std::uint8_t>(value->value());
            const auto [entry, fresh] = by_number_.emplace(
                std::pair(second, number),
                Options{object, last_part(view(object->name())), second, number});
            by_name_.emplace(entry->second.name, &entry->second);
            const auto* ops = object->attributes() != nullptr
                                  ? object->attributes()->LookupByKey("ops")
                                  : nullptr;
            if (ops == nullptr) {
                continue;
            }
            for (auto& op : split(view(ops->value()), ' ')) {
                by_op_.emplace(std::move(op), &entry->second);
            }
        }
    }

    std::vector<std::uint64_t> words_;
    const reflection::Schema* schema_ = nullptr;
    const reflection::Enum* builtins_ = nullptr;
    std::map<std::pair<bool, std::uint8_t>, Options> by_number_;
    Index by_name_;
    Index by_op_;
};

const Catalogue& catalogue() {
    static const Catalogue made;
    return made;
}

constexpr std::string_view unknown_builtin = "BUILTIN_";

}  // namespace

std::string builtin_name(std::int64_t code) {
    auto known = enum_text(catalogue().builtins(), code);
    return known ? *known : fmt::format("{}{}", unknown_builtin, code);
}

std::optional<std::int64_t> builtin_code(std::string_view name) {
    if (const auto known = enum_value(catalogue().builtins(), name)) {
        return known;
    }
    std::int32_t number = 0;
    if (name.starts_with(unknown_builtin)) {
        name.remove_prefix(unknown_builtin.size());
        const auto end = name.data() + name.size();
        if (const auto [at, fault] = std::from_chars(name.data(), end, number);
            fault == std::errc() && at == end) {
            return number;
        }
    }
    return std::nullopt;
}

std::int32_t lowest_version(std::int64_t builtin) {
    return builtin == static_cast<std::int64_t>(fb::BuiltinOperator::BROADCAST_TO) ? 2 : 1;
}

const Options* find_options(bool second, std::uint8_t number) {
    return catalogue().find(second, number);
}
const Options* find_options(std::string_view name) {
    return catalogue().find(name);
}
const Options* options_of(std::string_view op) {
    return catalogue().of_op(op);
}

std::string_view graph_attribute(const reflection::Field& field) {
    const auto* entry =
        field.attributes() != nullptr ? field.attributes()->LookupByKey("graph") : nullptr;
    return entry != nullptr ? view(entry->value()) : std::string_view();
}

const reflection::Enum* enum_of(const reflection::Field& field) {
    const auto at = field.type()->index();
    const bool is_table = field.type()->base_type() == reflection::BaseType::Obj ||
                          field.type()->element() == reflection::BaseType::Obj;
    return at < 0 || is_table
               ? nullptr
               : catalogue().schema().enums()->Get(static_cast<flatbuffers::uoffset_t>(at));
}

std::optional<std::string> enum_text(const reflection::Enum& kind, std::int64_t value) {
    const auto* found = kind.values()->LookupByKey(value);
    return found != nullptr ? std::optional(std::string(view(found->name()))) : std::nullopt;
}

std::optional<std::int64_t> enum_value(const reflection::Enum& kind, std::string_view text) {
    for (const auto* value : *kind.values()) {
        if (view(value->name()) == text) {
            return value->value();
        }
    }
    return std::nullopt;
}

}  // namespace trocar::tflite
