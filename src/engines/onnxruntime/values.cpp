#include "engines/onnxruntime/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <typeinfo>

#include "engines/onnxruntime/empty_sequence.h"
#include "trocar/error.h"

namespace trocar::ort {

namespace {

constexpr ElementType last_common = static_cast<ElementType>(DType::f4e2m1);

struct Renumbered {
    DType dtype;
    ElementType type;
};
constexpr Renumbered renumbered[]{{DType::u2, 24}, {DType::i2, 25}, {DType::f8e8m0, 26}};

void check(const Environment& environment, Status* status, std::string_view what) {
    environment.library().check(status, what);
}

Owned empty_tensor(const Environment& environment, DType dtype, const Shape& shape) {
    OrtValue* made = nullptr;
    check(environment,
          environment.api()(create_tensor, environment.allocator(), shape.data(), shape.size(),
                            element_type(dtype), &made),
          "make a tensor");
    return {environment.api(), made};
}

Owned string_tensor(const Environment& environment, const Value& value) {
    auto made = empty_tensor(environment, DType::string, value.shape());
    fill_strings(environment, value.string_values(), made.get());
    return made;
}

Owned combine(const Environment& environment, const std::vector<Owned>& parts, ValueType type) {
    std::vector<const OrtValue*> pointers;
    for (const auto& part : parts) {
        pointers.push_back(part.get());
    }
    OrtValue* made = nullptr;
    check(environment,
          environment.api()(create_value, pointers.data(), pointers.size(), type, &made),
          type == ValueType::map ? "make a map" : "make a sequence");
    return {environment.api(), made};
}

const Type& element_of(const Type& type) {
    static const Type unknown;
    return type.element.empty() ? unknown : type.element.front();
}

}  // namespace

void fill_strings(const Environment& environment, const std::vector<std::string>& strings,
                  OrtValue* tensor) {
    for (std::size_t i = 0; i < strings.size(); ++i) {
        char* text = nullptr;
        check(environment, environment.api()(resize_string, tensor, i, strings[i].size(), &text),
              "take a string");
        std::memcpy(text, strings[i].data(), strings[i].size());
    }
}

ElementType element_type(DType dtype) {
    const auto number = static_cast<ElementType>(dtype);
    if (number > 0 && number <= last_common) {
        return number;
    }
    for (const auto& entry : renumbered) {
        if (entry.dtype == dtype) {
            return entry.type;
        }
    }
    throw Error(Fault::engine, fmt::format("ONNX Runtime has no element type {}", name(dtype)));
}

DType dtype_of(ElementType type) {
    if (type >= 0 && type <= last_common) {
        return static_cast<DType>(type);
    }
    for (const auto& entry : renumbered) {
        if (entry.type == type) {
            return entry.dtype;
        }
    }
    throw Error(
        Fault::engine,
        fmt::format("ONNX Runtime gave a tensor of element type {}, which Trocar does not know",
                    type));
}

struct OrtBody::Description {
    ElementType type = 0;
    Shape shape;
};

OrtBody::Description OrtBody::describe() const {
    constexpr const char* what = "describe a tensor";
    const auto& call = environment_->api();
    TensorInfo* info = nullptr;
    check(*environment_, call(get_tensor_info, value_.get(), &info), what);
    const auto release = [&call](TensorInfo* p) { call(release_tensor_info, p); };
    const std::unique_ptr<TensorInfo, decltype(release)> owner(info, release);
    Description description;
    std::size_t rank = 0;
    check(*environment_, call(get_element_type, info, &description.type), what);
    check(*environment_, call(get_rank, info, &rank), what);
    description.shape.resize(rank);
    check(*environment_, call(get_dimensions, info, description.shape.data(), rank), what);
    return description;
}

Value::Kind OrtBody::kind() const {
    const auto& call = environment_->api();
    if (!is_there(*environment_, value_.get())) {
        return Value::Kind::none;
    }
    int tensor = 0;
    check(*environment_, call(is_tensor, value_.get(), &tensor), "describe a value");
    if (tensor != 0) {
        return Value::Kind::tensor;
    }
    ValueType type{};
    check(*environment_, call(get_value_type, value_.get(), &type), "describe a value");
    switch (type) {
        case ValueType::sparse_tensor:
            return Value::Kind::sparse_tensor;
        case ValueType::sequence:
            return Value::Kind::sequence;
        case ValueType::map:
            return Value::Kind::map;
        default:
            return Value::Kind::opaque;
    }
}

DType OrtBody::dtype() const {
    switch (kind()) {
        case Value::Kind::tensor:
        case Value::Kind::sparse_tensor:
            return dtype_of(describe().type);
        case Value::Kind::sequence:
            return item_dtype();
        default:
            return DType::undefined;
    }
}

// An empty sequence, too, knows what it is a sequence of.
DType OrtBody::item_dtype() const {
    constexpr const char* what = "describe a sequence";
    const auto& call = environment_->api();
    const auto release = [&call](TypeInfo* p) { call(release_type_info, p); };
    using Owner = std::unique_ptr<TypeInfo, decltype(release)>;
    TypeInfo* info = nullptr;
    check(*environment_, call(get_type_info, value_.get(), &info), what);
    const Owner owner(info, release);
    const SequenceInfo* sequence = nullptr;
    check(*environment_, call(as_sequence_info, info, &sequence), what);
    TypeInfo* item = nullptr;
    check(*environment_, call(get_item_type, sequence, &item), what);
    const Owner item_owner(item, release);
    const TensorInfo* tensor = nullptr;
    check(*environment_, call(as_tensor_info, item, &tensor), what);
    if (tensor == nullptr) {
        return DType::undefined;  // a sequence of maps
    }
    ElementType type = 0;
    check(*environment_, call(get_element_type, tensor, &type), what);
    return dtype_of(type);
}

Shape OrtBody::shape() const {
    const auto k = kind();
    return k == Value::Kind::tensor || k == Value::Kind::sparse_tensor ? describe().shape : Shape{};
}

Device OrtBody::device() const {
    if (kind() != Value::Kind::tensor) {
        return {};
    }
    const auto& call = environment_->api();
    const MemoryInfo* memory = nullptr;
    const char* name = nullptr;
    Device device;
    check(*environment_, call(get_tensor_memory, value_.get(), &memory), "describe a tensor");
    check(*environment_, call(get_memory_name, memory, &name), "describe a tensor");
    check(*environment_, call(get_memory_id, memory, &device.index), "describe a tensor");
    device.kind = name;
    std::transform(device.kind.begin(), device.kind.end(), device.kind.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    // Pinned memory: "CudaPinned" and the like are memory of the host.
    if (device.kind.ends_with("pinned") || device.kind.ends_with("cpu")) {
        device = {};
    }
    return device;
}

Bytes OrtBody::bytes() const {
    if (kind() != Value::Kind::tensor || !device().is_host()) {
        return {};
    }
    const auto description = describe();
    const auto dtype = dtype_of(description.type);
    if (dtype == DType::string) {
        return {};
    }
    void* data = nullptr;
    check(*environment_, environment_->api()(get_tensor_data, value_.get(), &data),
          "read a tensor");
    return {static_cast<const std::byte*>(data),
            byte_size(dtype, element_count(description.shape))};
}

std::vector<std::string> OrtBody::strings() const {
    if (kind() != Value::Kind::tensor) {
        return {};
    }
    const auto description = describe();
    if (dtype_of(description.type) != DType::string) {
        return {};
    }
    constexpr const char* what = "read a string tensor";
    const auto& call = environment_->api();
    const auto count = element_count(description.shape);
    if (count == 0) {
        return {};
    }
    std::size_t size = 0;
    check(*environment_, call(get_string_bytes, value_.get(), &size), what);
    std::string text(size, '\0');
    std::vector<std::size_t> offsets(count);
    check(*environment_, call(get_strings, value_.get(), text.data(), size, offsets.data(), count),
          what);
    offsets.push_back(size);
    std::vector<std::string> result;
    result.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        result.push_back(text.substr(offsets[i], offsets[i + 1] - offsets[i]));
    }
    return result;
}

std::vector<Value> OrtBody::items() const {
    const auto k = kind();
    if (k != Value::Kind::sequence && k != Value::Kind::map) {
        return {};
    }
    const auto& call = environment_->api();
    std::size_t count = 2;  // of a map: keys, values
    if (k == Value::Kind::sequence) {
        check(*environment_, call(get_item_count, value_.get(), &count), "read a sequence");
    }
    std::vector<Value> result;
    for (std::size_t i = 0; i < count; ++i) {
        OrtValue* item = nullptr;
        check(*environment_,
              call(get_item, value_.get(), static_cast<int>(i), environment_->allocator(), &item),
              "read a sequence or map");
        result.emplace_back(std::make_shared<OrtBody>(environment_, Owned(call, item), keep_));
    }
    return result;
}

// What the engine made is ours, unless it stands in memory of somebody else.
std::span<std::byte> OrtBody::own_bytes() {
    if (keep_ != nullptr || (value_.is_lent() && !writable_) || kind() != Value::Kind::tensor) {
        return {};
    }
    const auto read_only = bytes();
    return {const_cast<std::byte*>(read_only.data()), read_only.size()};
}

void OrtBody::own() {
    // A view of this body that does not end it.
    const Value self(std::shared_ptr<Body>(std::shared_ptr<Body>(), this));
    value_ = wrap_tensor(*environment_, self, true);
}

bool is_there(const Environment& environment, const OrtValue* value) {
    int there = 0;
    check(environment, environment.api()(has_value, value, &there), "describe a value");
    return there != 0;
}

const OrtValue* own_value(const Environment& environment, const Value& value) {
    const auto* body = value.body().get();
    if (body == nullptr || typeid(*body) != typeid(OrtBody)) {
        return nullptr;
    }
    const auto* own = static_cast<const OrtBody*>(body);
    return &own->environment() == &environment ? own->get() : nullptr;
}

Owned wrap_tensor(const Environment& environment, const Value& value, bool copy) {
    if (value.dtype() == DType::string) {
        return string_tensor(environment, value);
    }
    if (!value.device().is_host()) {
        throw Error(
            Fault::engine,
            fmt::format("a tensor on {}:{} of another engine cannot be given to ONNX Runtime",
                        value.device().kind, value.device().index));
    }
    const auto shape = value.shape();
    const auto bytes = value.bytes();
    const auto& call = environment.api();
    if (copy) {
        auto made = empty_tensor(environment, value.dtype(), shape);
        void* data = nullptr;
        check(environment, call(get_tensor_data, made.get(), &data), "make a tensor");
        if (!bytes.empty()) {
            std::memcpy(data, bytes.data(), bytes.size());
        }
        return made;
    }
    // A tensor without elements needs an address too.
    static std::byte nothing{};
    auto* data = bytes.empty() ? &nothing : const_cast<std::byte*>(bytes.data());
    OrtValue* made = nullptr;
    check(environment,
          call(create_tensor_view, environment.host(), data, bytes.size(), shape.data(),
               shape.size(), element_type(value.dtype()), &made),
          "take a tensor");
    return {call, made};
}

Owned wrap(const Environment& environment, const Value& value, const Type& type) {
    const auto& declared = type.kind == Type::Kind::optional ? element_of(type) : type;
    switch (value.kind()) {
        case Value::Kind::tensor:
            return wrap_tensor(environment, value);
        case Value::Kind::sequence: {
            const auto items = value.items();
            if (items.empty()) {
                return make_empty_sequence(environment, element_of(declared).dtype);
            }
            std::vector<Owned> parts;
            for (const auto& item : items) {
                parts.push_back(item.is_tensor() ? wrap_tensor(environment, item, true)
                                                 : wrap(environment, item, element_of(declared)));
            }
            return combine(environment, parts, ValueType::sequence);
        }
        case Value::Kind::map: {
            std::vector<Owned> parts;
            for (const auto& item : value.items()) {
                parts.push_back(wrap_tensor(environment, item));
            }
            return combine(environment, parts, ValueType::map);
        }
        default:
            throw Error(Fault::engine,
                        fmt::format("ONNX Runtime cannot take a value of this kind: {}",
                                    value_text(value)));
    }
}

}  // namespace trocar::ort
