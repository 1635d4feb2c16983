#include <flatbuffers/flexbuffers.h>
#include <flatbuffers/reflection.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "formats/tflite/options.h"
#include "formats/tflite/types.h"

namespace trocar::tflite {

namespace {

using reflection::BaseType;

// Largest flexbuffer that is shown.
constexpr std::size_t most_shown = std::size_t{1} << 16;

bool is_real(BaseType type) {
    return type == BaseType::Float || type == BaseType::Double;
}

std::vector<const reflection::Field*> in_order(const reflection::Object& object) {
    std::vector<const reflection::Field*> fields;
    for (const auto* field : *object.fields()) {
        if (!field->deprecated()) {
            fields.push_back(field);
        }
    }
    std::sort(fields.begin(), fields.end(),
              [](const auto* a, const auto* b) { return a->id() < b->id(); });
    return fields;
}

Attribute::Value read_scalar(const reflection::Field& field, const flatbuffers::Table& table) {
    if (is_real(field.type()->base_type())) {
        return static_cast<float>(flatbuffers::GetAnyFieldF(table, field));
    }
    const auto number = flatbuffers::GetAnyFieldI(table, field);
    if (const auto* kind = enum_of(field)) {
        if (auto text = enum_text(*kind, number)) {
            return *text;
        }
    }
    return number;
}

Attribute::Value read_numbers(const reflection::Field& field,
                              const flatbuffers::VectorOfAny& vector) {
    const auto element = field.type()->element();
    const auto count = vector.size();
    if (is_real(element)) {
        std::vector<float> numbers;
        for (flatbuffers::uoffset_t i = 0; i < count; ++i) {
            numbers.push_back(
                static_cast<float>(flatbuffers::GetAnyVectorElemF(&vector, element, i)));
        }
        return numbers;
    }
    std::vector<std::int64_t> numbers;
    for (flatbuffers::uoffset_t i = 0; i < count; ++i) {
        numbers.push_back(flatbuffers::GetAnyVectorElemI(&vector, element, i));
    }
    const auto* kind = enum_of(field);
    if (kind == nullptr) {
        return numbers;
    }
    std::vector<std::string> texts;
    for (const auto number : numbers) {
        if (auto text = enum_text(*kind, number)) {
            texts.push_back(std::move(*text));
        }
    }
    // One that has no name makes all of them numbers.
    if (texts.size() == numbers.size()) {
        return texts;
    }
    return numbers;
}

// What a vector holds; nothing for kinds that no options table of the schema has.
Attribute::Value read_vector(const reflection::Field& field,
                             const flatbuffers::VectorOfAny& vector) {
    const auto element = field.type()->element();
    if (element == BaseType::UByte && enum_of(field) == nullptr) {
        const auto bytes = std::as_bytes(std::span(vector.Data(), vector.size()));
        return Constant::copy(DType::u8, {static_cast<std::int64_t>(bytes.size())}, bytes);
    }
    if (flatbuffers::IsScalar(element)) {
        return read_numbers(field, vector);
    }
    return std::monostate();
}

// Fields that a file has beyond those of the schema.
void add_unknown(std::vector<Attribute>& attributes, const reflection::Object& object,
                 const flatbuffers::Table& table) {
    std::uint32_t known = 0;
    for (const auto* field : *object.fields()) {
        known = std::max<std::uint32_t>(known, field->id() + 1U);
    }
    const auto* vtable = table.GetVTable();
    const auto size = flatbuffers::ReadScalar<flatbuffers::voffset_t>(vtable);
    for (std::uint32_t id = known; 4 + 2 * (id + 1) <= size; ++id) {
        const auto at = static_cast<flatbuffers::voffset_t>(4 + 2 * id);
        if (table.GetOptionalFieldOffset(at) != 0) {
            attributes.push_back(
                {.name = fmt::format("field_{}", id), .value = {}, .reference = {}, .source = {}});
        }
    }
}

}  // namespace

std::vector<Attribute> read_options(
    const Options& options, const flatbuffers::Table& table,
    const std::function<std::shared_ptr<Graph>(std::int64_t)>& graph) {
    std::vector<Attribute> attributes;
    const auto add = [&](std::string_view name, Attribute::Value value) {
        attributes.push_back(
            {.name = std::string(name), .value = std::move(value), .reference = {}, .source = {}});
    };
    for (const auto* field : in_order(*options.object)) {
        const auto name = text_of(field->name());
        const auto base = field->type()->base_type();
        const auto subgraph = graph_attribute(*field);
        if (base == BaseType::Vector) {
            const auto* vector = flatbuffers::GetFieldAnyV(table, *field);
            if (vector == nullptr) {
                continue;
            }
            if (subgraph.empty()) {
                add(name, read_vector(*field, *vector));
                continue;
            }
            std::vector<std::shared_ptr<Graph>> graphs;
            for (flatbuffers::uoffset_t i = 0; i < vector->size(); ++i) {
                graphs.push_back(
                    graph(flatbuffers::GetAnyVectorElemI(vector, field->type()->element(), i)));
            }
            add(subgraph, std::move(graphs));
        } else if (base == BaseType::String) {
            if (const auto* text = flatbuffers::GetFieldS(table, *field)) {
                add(name, std::string(text_of(text)));
            }
        } else if (!subgraph.empty()) {
            add(subgraph, graph(flatbuffers::GetAnyFieldI(table, *field)));
        } else if (flatbuffers::IsScalar(base)) {
            add(name, read_scalar(*field, table));
        } else {
            add(name, std::monostate());
        }
    }
    add_unknown(attributes, *options.object, table);
    return attributes;
}

std::string flexbuffer_text(Bytes bytes) {
    if (bytes.size() < 3 || bytes.size() > most_shown) {
        return {};
    }
    // Elements are aligned to their size, counted from the beginning.
    std::vector<std::uint64_t> words((bytes.size() + 7) / 8);
    std::memcpy(words.data(), bytes.data(), bytes.size());
    const auto* data = reinterpret_cast<const std::uint8_t*>(words.data());
    std::vector<std::uint8_t> seen;
    if (!flexbuffers::VerifyBuffer(data, bytes.size(), &seen)) {
        return {};
    }
    const auto root = flexbuffers::GetRoot(data, bytes.size());
    std::string text;
    if (root.IsMap() || root.IsVector()) {
        root.ToString(true, true, text);
    }
    return text;
}

}  // namespace trocar::tflite
