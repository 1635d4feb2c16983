#include <flatbuffers/reflection.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "formats/tflite/options.h"
#include "formats/tflite/types.h"
#include "trocar/error.h"
#include "util/text.h"

namespace trocar::tflite {

namespace {

using reflection::BaseType;
using Builder = flatbuffers::FlatBufferBuilder;

std::string_view attribute_name(const reflection::Field& field) {
    const auto graph = graph_attribute(field);
    return graph.empty() ? text_of(field.name()) : graph;
}

// One table in the making.
class TableWriter {
public:
    TableWriter(Builder& builder, const std::string& where,
                const std::function<std::int64_t(const Graph&)>& number)
        : builder_(builder), where_(where), number_(number) {}

    // Vectors and texts stand before the table that refers to them.
    void prepare(const reflection::Field& field, const Attribute& attribute) {
        if (field.type()->base_type() == BaseType::String) {
            const auto* text = std::get_if<std::string>(&attribute.value);
            offsets_[&field] = builder_.CreateString(text != nullptr ? *text : misfit(attribute)).o;
        } else if (field.type()->base_type() == BaseType::Vector) {
            offsets_[&field] = vector(field, attribute);
        }
    }

    void add(const reflection::Field& field, const Attribute& attribute) {
        if (const auto found = offsets_.find(&field); found != offsets_.end()) {
            builder_.AddOffset(field.offset(), flatbuffers::Offset<void>(found->second));
            return;
        }
        switch (field.type()->base_type()) {
            case BaseType::Float:
                builder_.AddElement(field.offset(), real(attribute),
                                    static_cast<float>(field.default_real()));
                break;
            case BaseType::Bool:
            case BaseType::UByte:
                add_integer<std::uint8_t>(field, attribute);
                break;
            case BaseType::Byte:
                add_integer<std::int8_t>(field, attribute);
                break;
            case BaseType::Int:
                add_integer<std::int32_t>(field, attribute);
                break;
            case BaseType::UInt:
                add_integer<std::uint32_t>(field, attribute);
                break;
            case BaseType::Long:
                add_integer<std::int64_t>(field, attribute);
                break;
            default:
                misfit(attribute);
        }
    }

private:
    [[noreturn]] std::string misfit(const Attribute& attribute) {
        throw Error(Fault::unsupported,
                    fmt::format("{}: the value of '{}' is not one that TensorFlow Lite has there",
                                where_, attribute.name));
    }

    template <class T>
    T narrow(std::int64_t value, const Attribute& attribute) {
        if (value < static_cast<std::int64_t>(std::numeric_limits<T>::min()) ||
            value > static_cast<std::int64_t>(std::numeric_limits<T>::max())) {
            misfit(attribute);
        }
        return static_cast<T>(value);
    }

    std::int64_t named(const reflection::Field& field, const std::string& text,
                       const Attribute& attribute) {
        const auto* kind = enum_of(field);
        const auto value = kind != nullptr ? enum_value(*kind, text) : std::nullopt;
        return value ? *value : (misfit(attribute), 0);
    }

    std::int64_t integer(const reflection::Field& field, const Attribute& attribute) {
        if (const auto* number = std::get_if<std::int64_t>(&attribute.value)) {
            return *number;
        }
        if (const auto* text = std::get_if<std::string>(&attribute.value)) {
            return named(field, *text, attribute);
        }
        if (const auto* graph = std::get_if<std::shared_ptr<Graph>>(&attribute.value);
            graph != nullptr && *graph) {
            return number_(**graph);
        }
        misfit(attribute);
    }

    float real(const Attribute& attribute) {
        if (const auto* number = std::get_if<float>(&attribute.value)) {
            return *number;
        }
        if (const auto* number = std::get_if<std::int64_t>(&attribute.value)) {
            return static_cast<float>(*number);
        }
        misfit(attribute);
    }

    template <class T>
    void add_integer(const reflection::Field& field, const Attribute& attribute) {
        builder_.AddElement<T>(field.offset(), narrow<T>(integer(field, attribute), attribute),
                               static_cast<T>(field.default_integer()));
    }

    std::vector<std::int64_t> integers(const reflection::Field& field, const Attribute& attribute) {
        if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(&attribute.value)) {
            return *numbers;
        }
        std::vector<std::int64_t> found;
        if (const auto* texts = std::get_if<std::vector<std::string>>(&attribute.value)) {
            for (const auto& text : *texts) {
                found.push_back(named(field, text, attribute));
            }
            return found;
        }
        if (const auto* graphs =
                std::get_if<std::vector<std::shared_ptr<Graph>>>(&attribute.value)) {
            for (const auto& graph : *graphs) {
                found.push_back(number_(*graph));
            }
            return found;
        }
        misfit(attribute);
    }

    template <class T>
    flatbuffers::uoffset_t numbers(const reflection::Field& field, const Attribute& attribute) {
        std::vector<T> made;
        for (const auto number : integers(field, attribute)) {
            made.push_back(narrow<T>(number, attribute));
        }
        return builder_.CreateVector(made).o;
    }

    flatbuffers::uoffset_t vector(const reflection::Field& field, const Attribute& attribute) {
        switch (field.type()->element()) {
            case BaseType::Float: {
                const auto* reals = std::get_if<std::vector<float>>(&attribute.value);
                if (reals == nullptr) {
                    misfit(attribute);
                }
                return builder_.CreateVector(*reals).o;
            }
            case BaseType::UByte: {
                const auto* bytes = std::get_if<Constant>(&attribute.value);
                if (bytes == nullptr || bytes->dtype() != DType::u8) {
                    misfit(attribute);
                }
                const auto all = bytes->bytes();
                return builder_
                    .CreateVector(reinterpret_cast<const std::uint8_t*>(all.data()), all.size())
                    .o;
            }
            case BaseType::Bool:
                return numbers<std::uint8_t>(field, attribute);
            case BaseType::Int:
                return numbers<std::int32_t>(field, attribute);
            case BaseType::UInt:
                return numbers<std::uint32_t>(field, attribute);
            case BaseType::Long:
                return numbers<std::int64_t>(field, attribute);
            default:
                misfit(attribute);
        }
    }

    Builder& builder_;
    const std::string& where_;
    const std::function<std::int64_t(const Graph&)>& number_;
    std::map<const reflection::Field*, flatbuffers::uoffset_t> offsets_;
};

std::vector<std::pair<const reflection::Field*, const Attribute*>> matched(
    const Options& options, const std::vector<Attribute>& attributes) {
    std::vector<std::pair<const reflection::Field*, const Attribute*>> pairs;
    for (const auto* field : *options.object->fields()) {
        for (const auto& attribute : attributes) {
            if (!field->deprecated() && attribute_name(*field) == attribute.name) {
                pairs.emplace_back(field, &attribute);
                break;
            }
        }
    }
    return pairs;
}

}  // namespace

bool is_given(const Options& options, const std::vector<Attribute>& attributes) {
    return options.object->fields()->size() == 0 || !matched(options, attributes).empty();
}

void check_attributes(const Options* options, const std::vector<Attribute>& attributes,
                      std::span<const std::string_view> others, const std::string& where) {
    std::vector<std::string> known;
    if (options != nullptr) {
        for (const auto* field : *options->object->fields()) {
            known.emplace_back(attribute_name(*field));
        }
    }
    for (const auto& attribute : attributes) {
        if (std::holds_alternative<std::monostate>(attribute.value)) {
            throw Error(Fault::unsupported,
                        fmt::format("{}: '{}' is an option that this version does not know and "
                                    "cannot write",
                                    where, attribute.name),
                        "models that are not edited are written as they were read");
        }
        if (std::find(known.begin(), known.end(), attribute.name) == known.end() &&
            std::find(others.begin(), others.end(), attribute.name) == others.end()) {
            throw Error(
                Fault::unsupported,
                fmt::format("{}: TensorFlow Lite has no option '{}' there", where, attribute.name),
                did_you_mean(attribute.name, known));
        }
    }
}

flatbuffers::Offset<void> write_options(Builder& builder, const Options& options,
                                        const std::vector<Attribute>& attributes,
                                        const std::string& where,
                                        const std::function<std::int64_t(const Graph&)>& number) {
    const auto pairs = matched(options, attributes);
    TableWriter writer(builder, where, number);
    for (const auto& [field, attribute] : pairs) {
        writer.prepare(*field, *attribute);
    }
    const auto start = builder.StartTable();
    for (const auto& [field, attribute] : pairs) {
        writer.add(*field, *attribute);
    }
    return flatbuffers::Offset<void>(builder.EndTable(start));
}

}  // namespace trocar::tflite
