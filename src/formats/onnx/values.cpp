#include "formats/onnx/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "formats/onnx/schema.h"
#include "formats/onnx/tensor_proto.h"
#include "trocar/error.h"
#include "util/files.h"
#include "util/mapped_file.h"

namespace trocar::onnx {

using namespace schema;

namespace {

// What SequenceProto.elem_type says of the elements; also OptionalProto's.
enum class ElementKind : std::int64_t { undefined, tensor, sparse, sequence, map, optional };

constexpr Number field_of(ElementKind kind) {
    return sequence::kind + static_cast<Number>(kind);
}
static_assert(field_of(ElementKind::tensor) == sequence::tensor);
static_assert(field_of(ElementKind::optional) == sequence::optional);

class ValueReader {
public:
    ValueReader(FilePtr file, ExternalFiles& external)
        : file_(std::move(file)), external_(external) {}

    // What the fields say a message is, without looking inside them.
    bool could_be_tensor(Bytes message) const {
        bool typed = false;
        for (Fields at(*file_, message); at.next();) {
            const auto number = at.number();
            const bool known = (number >= tensor::dims && number <= tensor::location) ||
                               number == tensor::metadata;
            const bool number_field = number == tensor::dtype || number == tensor::location;
            const bool list = number == tensor::dims || number == tensor::float_data ||
                              number == tensor::int32_data || number == tensor::int64_data ||
                              number == tensor::double_data || number == tensor::uint64_data;
            if (!known || (number_field && at.wire() != Wire::varint) ||
                (!number_field && !list && at.wire() != Wire::length)) {
                return false;
            }
            if (number == tensor::dtype) {
                const auto dtype = static_cast<DType>(static_cast<int>(at.integer()));
                typed = dtype == DType::string || bits(dtype) != 0;
            }
        }
        return typed;
    }

    bool could_be_sequence(Bytes message) const {
        auto kind = ElementKind::undefined;
        for (Fields at(*file_, message); at.next();) {
            if (at.number() > sequence::optional ||
                at.wire() != (at.number() == sequence::kind ? Wire::varint : Wire::length)) {
                return false;
            }
            if (at.number() == sequence::kind) {
                kind = static_cast<ElementKind>(at.integer());
            }
        }
        if (kind < ElementKind::undefined || kind > ElementKind::optional) {
            return false;
        }
        for (Fields at(*file_, message); at.next();) {
            if (at.number() > sequence::kind && at.number() != field_of(kind)) {
                return false;
            }
        }
        return true;
    }

    bool could_be_map(Bytes message) const {
        bool typed = false;
        for (Fields at(*file_, message); at.next();) {
            if (at.number() > map::values ||
                (at.number() == map::key_type && at.wire() != Wire::varint)) {
                return false;
            }
            typed = typed || at.number() == map::key_type;
        }
        return typed;
    }

    NamedValue read_tensor_value(Bytes message) {
        const auto stored = read_tensor(file_, message, external_, "value");
        return {std::string(stored.name), aligned(Value::of(stored.constant))};
    }

    NamedValue read_sequence(Bytes message, int depth) {
        NamedValue result;
        auto kind = ElementKind::undefined;
        std::vector<Value> items;
        for (Fields at(*file_, message, depth); at.next();) {
            if (at.number() == sequence::name) {
                result.name = at.text();
            } else if (at.number() == sequence::kind) {
                kind = static_cast<ElementKind>(at.integer());
            } else {
                items.push_back(read_item(at, depth));
            }
        }
        // An element type that is not given: an optional without value.
        if (kind != ElementKind::undefined || !items.empty()) {
            result.value = Value::sequence(std::move(items));
        }
        return result;
    }

    NamedValue read_map(Bytes message, int depth) {
        NamedValue result;
        auto key_type = DType::undefined;
        std::vector<std::int64_t> keys;
        std::vector<std::string> texts;
        Value values = Value::sequence({});
        for (Fields at(*file_, message, depth); at.next();) {
            switch (at.number()) {
                case map::name:
                    result.name = at.text();
                    break;
                case map::key_type:
                    key_type = static_cast<DType>(static_cast<int>(at.integer()));
                    break;
                case map::keys:
                    at.integers(
                        [&](std::uint64_t key) { keys.push_back(static_cast<std::int64_t>(key)); });
                    break;
                case map::string_keys:
                    texts.emplace_back(at.text());
                    break;
                case map::values:
                    values = read_sequence(at.bytes(), depth + 1).value;
                    break;
                default:
                    break;
            }
        }
        const auto count = key_type == DType::string ? texts.size() : keys.size();
        if (values.items().size() != count) {
            fail_in(*file_, message,
                    fmt::format("a map has {} keys and {} values", count, values.items().size()));
        }
        result.value =
            Value::map(make_keys(message, key_type, keys, std::move(texts)), join(values));
        return result;
    }

private:
    // Bytes in a file begin anywhere; those of a value can be read as numbers and by an engine.
    static Value aligned(Value value) {
        constexpr std::uintptr_t alignment = 64;
        if (value.dtype() == DType::string ||
            reinterpret_cast<std::uintptr_t>(value.bytes().data()) % alignment == 0) {
            return value;
        }
        return Value::copy(value.dtype(), value.shape(), value.bytes());
    }

    // A sparse tensor may be large when written out, but not out of all proportion.
    std::size_t dense_limit() const {
        return std::max(std::size_t{1} << 26, 64 * file_->bytes.size());
    }

    Value read_item(const Fields& at, int depth) {
        switch (at.number()) {
            case sequence::tensor:
                return read_tensor_value(at.bytes()).value;
            case sequence::sparse:
                return Value::of(densify(
                    read_sparse(file_, at.bytes(), external_, "value").constant, dense_limit()));
            case sequence::sequence:
                return read_sequence(at.bytes(), depth + 1).value;
            case sequence::map:
                return read_map(at.bytes(), depth + 1).value;
            case sequence::optional: {
                const auto inner = read_sequence(at.bytes(), depth + 1).value;
                const auto items = inner.items();
                return items.empty() ? Value() : items.front();
            }
            default:
                at.fail(fmt::format("a sequence has an unknown field {}", at.number()));
        }
    }

    // Scalars of one type become one tensor, as engines hold the values of a map.
    static Value join(const Value& values) {
        const auto items = values.items();
        const auto is_scalar = [&](const Value& item) {
            return item.is_tensor() && item.shape().empty() &&
                   item.dtype() == items.front().dtype();
        };
        if (items.empty() || !std::all_of(items.begin(), items.end(), is_scalar)) {
            return values;
        }
        const Shape shape{static_cast<std::int64_t>(items.size())};
        const auto dtype = items.front().dtype();
        if (dtype == DType::string) {
            std::vector<std::string> texts;
            for (const auto& item : items) {
                texts.push_back(item.string_values().front());
            }
            return Value::strings(shape, std::move(texts));
        }
        if (bits(dtype) < 8) {
            return values;
        }
        auto all = Value::tensor(dtype, shape);
        const auto width = bits(dtype) / 8;
        for (std::size_t i = 0; i < items.size(); ++i) {
            std::memcpy(all.mutable_bytes().data() + i * width, items[i].bytes().data(), width);
        }
        return all;
    }

    Value make_keys(Bytes message, DType type, const std::vector<std::int64_t>& keys,
                    std::vector<std::string> texts) const {
        if (type == DType::string) {
            const Shape shape{static_cast<std::int64_t>(texts.size())};
            return Value::strings(shape, std::move(texts));
        }
        if (!is_integer(type) || bits(type) < 8) {
            fail_in(*file_, message, fmt::format("a map has keys of {}", trocar::name(type)));
        }
        auto result = Value::tensor(type, {static_cast<std::int64_t>(keys.size())});
        const auto width = bits(type) / 8;
        for (std::size_t i = 0; i < keys.size(); ++i) {
            std::memcpy(result.mutable_bytes().data() + i * width, &keys[i], width);
        }
        return result;
    }

    FilePtr file_;
    ExternalFiles& external_;
};

}  // namespace

std::vector<NamedValue> read_values(Bytes bytes, std::shared_ptr<const void> owner,
                                    const std::filesystem::path& path) {
    const auto name = path.string();
    if (bytes.empty()) {
        // What protobuf writes for an optional without value and without a name.
        return {NamedValue{}};
    }
    auto folder = path.parent_path().empty() ? std::filesystem::path(".") : path.parent_path();
    const auto file =
        std::make_shared<const File>(File{name, bytes, std::move(owner), folder, false});
    ExternalFiles external(name, folder);
    ValueReader reader(file, external);
    const bool sequence = reader.could_be_sequence(bytes);
    const bool map = reader.could_be_map(bytes);
    if (reader.could_be_tensor(bytes)) {
        try {
            return {reader.read_tensor_value(bytes)};
        } catch (const Error&) {
            // A name that looks like dimensions: then the data does not fit them.
            if (!sequence && !map) {
                throw;
            }
        }
    }
    if (sequence) {
        return {reader.read_sequence(bytes, 1)};
    }
    if (map) {
        return {reader.read_map(bytes, 1)};
    }
    throw Error(Fault::input,
                fmt::format("'{}' holds no tensor, sequence, optional or map of ONNX", name));
}

std::vector<NamedValue> read_values(const std::filesystem::path& path) {
    const auto mapped = MappedFile::open(path);
    return read_values(mapped->bytes(), mapped, path);
}

namespace {

Rope write_any(const NamedValue& value);

Constant as_constant(const Value& value) {
    if (value.dtype() == DType::string) {
        return Constant::strings(value.shape(), value.string_values());
    }
    return Constant::view(value.dtype(), value.shape(), value.bytes(), value.body());
}

ElementKind kind_of(const Value& value) {
    switch (value.kind()) {
        case Value::Kind::tensor:
            return ElementKind::tensor;
        case Value::Kind::sequence:
            return ElementKind::sequence;
        case Value::Kind::map:
            return ElementKind::map;
        case Value::Kind::none:
            return ElementKind::optional;
        default:
            throw Error(Fault::unsupported,
                        fmt::format("a value of this kind ({}) has no form in ONNX's files",
                                    value_text(value)));
    }
}

Rope write_sequence(const std::string& name, const std::vector<Value>& items) {
    Rope out;
    if (!name.empty()) {
        out.text(sequence::name, name);
    }
    const auto kind = items.empty() ? ElementKind::tensor : kind_of(items.front());
    out.integer(sequence::kind, static_cast<std::int64_t>(kind));
    for (const auto& item : items) {
        if (kind_of(item) != kind) {
            throw Error(Fault::unsupported,
                        "a sequence of values of different kinds has no form in ONNX's files");
        }
        // Copied: an engine may make the items of a sequence anew for each call.
        out.text(field_of(kind), write_any({{}, item}).str());
    }
    return out;
}

// The values of a map, one by one: a tensor holds one in each element.
std::vector<Value> map_values(const Value& values) {
    if (!values.is_tensor()) {
        return values.items();
    }
    std::vector<Value> items;
    if (values.dtype() == DType::string) {
        for (auto& text : values.string_values()) {
            items.push_back(Value::strings({}, {std::move(text)}));
        }
        return items;
    }
    const auto width = bits(values.dtype()) / 8;
    for (std::size_t i = 0; width > 0 && i < values.element_count(); ++i) {
        items.push_back(Value::copy(values.dtype(), {}, values.bytes().subspan(i * width, width)));
    }
    return items;
}

Rope write_map(const std::string& name, const Value& value) {
    const auto items = value.items();
    if (items.size() != 2 || !items[0].is_tensor()) {
        throw Error(Fault::unsupported, "a map without keys and values cannot be written");
    }
    const auto& keys = items[0];
    Rope out;
    if (!name.empty()) {
        out.text(map::name, name);
    }
    out.integer(map::key_type, static_cast<int>(keys.dtype()));
    if (keys.dtype() == DType::string) {
        for (const auto& key : keys.string_values()) {
            out.text(map::string_keys, key);
        }
    } else {
        const auto width = bits(keys.dtype()) / 8;
        const bool is_signed = keys.dtype() == DType::i8 || keys.dtype() == DType::i16 ||
                               keys.dtype() == DType::i32 || keys.dtype() == DType::i64;
        for (std::size_t i = 0; i < keys.element_count(); ++i) {
            std::int64_t key = 0;
            std::memcpy(&key, keys.bytes().data() + i * width, width);
            if (is_signed) {
                const auto unused = 64 - 8 * width;
                key =
                    static_cast<std::int64_t>(static_cast<std::uint64_t>(key) << unused) >> unused;
            }
            out.integer(map::keys, key);
        }
    }
    out.message(map::values, write_sequence({}, map_values(items[1])));
    return out;
}

Rope write_any(const NamedValue& named) {
    const auto& value = named.value;
    switch (kind_of(value)) {
        case ElementKind::tensor:
            return write_tensor(as_constant(value), named.name, placed_as_read);
        case ElementKind::sequence:
            return write_sequence(named.name, value.items());
        case ElementKind::map:
            return write_map(named.name, value);
        default: {
            // Without value, and with no type of a value that could be stated.
            Rope out;
            if (!named.name.empty()) {
                out.text(sequence::name, named.name);
            }
            out.integer(sequence::kind, 0);
            return out;
        }
    }
}

}  // namespace

std::string encode_value(const NamedValue& value) {
    return write_any(value).str();
}

void write_value(const NamedValue& value, const std::filesystem::path& path, Sync sync) {
    const auto rope = write_any(value);
    FileWriter writer(path);
    rope.for_each([&](Bytes piece) { writer.write(piece); });
    writer.commit(sync);
}

bool holds(const Value& value) {
    switch (value.kind()) {
        case Value::Kind::none:
            return true;
        case Value::Kind::tensor:
            return value.device().is_host() &&
                   (value.dtype() == DType::string || bits(value.dtype()) != 0);
        case Value::Kind::sequence:
        case Value::Kind::map: {
            const auto items = value.items();
            return std::all_of(items.begin(), items.end(), holds) &&
                   (value.kind() == Value::Kind::map ||
                    std::all_of(items.begin(), items.end(), [&](const Value& item) {
                        return item.kind() == items.front().kind();
                    }));
        }
        default:
            return false;
    }
}

}  // namespace trocar::onnx
