#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace reflection {
struct Enum;
struct Field;
struct Object;
}  // namespace reflection

// What options.fbs and model.fbs say, at run time.
namespace trocar::tflite {

// "CONV_2D" of 3; "BUILTIN_999" of a number that the schema does not have.
std::string builtin_name(std::int64_t code);
std::optional<std::int64_t> builtin_code(std::string_view name);
// The lowest version of an op that runtimes have a kernel for.
std::int32_t lowest_version(std::int64_t builtin);

// A table of options: one of those that a union of Operator can hold.
struct Options {
    const reflection::Object* object = nullptr;
    std::string_view name;    // "Conv2DOptions"
    bool second = false;      // of builtin_options_2
    std::uint8_t number = 0;  // in its union
};
const Options* find_options(bool second, std::uint8_t number);  // nullptr: the schema has none
const Options* find_options(std::string_view name);
// The one that ops of this type carry; nullptr: they have none.
const Options* options_of(std::string_view op);

// The name of the graph attribute that stands for a field; empty: the field is a plain one.
std::string_view graph_attribute(const reflection::Field& field);

const reflection::Enum* enum_of(const reflection::Field& field);  // nullptr: plain numbers
std::optional<std::string> enum_text(const reflection::Enum& kind, std::int64_t value);
std::optional<std::int64_t> enum_value(const reflection::Enum& kind, std::string_view text);

}  // namespace trocar::tflite
