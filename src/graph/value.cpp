#include "trocar/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "trocar/error.h"

namespace trocar {

namespace {

constexpr std::size_t alignment = 64;

struct Freed {
    void operator()(std::byte* p) const { std::free(p); }
};

class HostTensor final : public Value::Body {
public:
    HostTensor(DType dtype, Shape shape) : dtype_(dtype), shape_(std::move(shape)) {
        size_ = byte_size(dtype, trocar::element_count(shape_));
        const auto padded = (size_ / alignment + 1) * alignment;
        owned_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, padded)));
        if (!owned_) {
            throw std::bad_alloc();
        }
        std::memset(owned_.get(), 0, padded);
        data_ = owned_.get();
    }
    HostTensor(DType dtype, Shape shape, Bytes bytes, std::shared_ptr<const void> owner)
        : dtype_(dtype),
          shape_(std::move(shape)),
          data_(bytes.data()),
          size_(bytes.size()),
          owner_(std::move(owner)) {}

    Value::Kind kind() const override { return Value::Kind::tensor; }
    DType dtype() const override { return dtype_; }
    Shape shape() const override { return shape_; }
    Bytes bytes() const override { return {data_, size_}; }
    std::span<std::byte> own_bytes() override {
        return owned_ ? std::span(owned_.get(), size_) : std::span<std::byte>{};
    }

private:
    DType dtype_;
    Shape shape_;
    const std::byte* data_ = nullptr;
    std::size_t size_ = 0;
    std::unique_ptr<std::byte, Freed> owned_;
    std::shared_ptr<const void> owner_;
};

class StringTensor final : public Value::Body {
public:
    StringTensor(Shape shape, std::vector<std::string> values)
        : shape_(std::move(shape)), values_(std::move(values)) {}
    Value::Kind kind() const override { return Value::Kind::tensor; }
    DType dtype() const override { return DType::string; }
    Shape shape() const override { return shape_; }
    std::vector<std::string> strings() const override { return values_; }

private:
    Shape shape_;
    std::vector<std::string> values_;
};

class Collection final : public Value::Body {
public:
    Collection(Value::Kind kind, std::vector<Value> items)
        : kind_(kind), items_(std::move(items)) {}
    Value::Kind kind() const override { return kind_; }
    std::vector<Value> items() const override { return items_; }

private:
    Value::Kind kind_;
    std::vector<Value> items_;
};

}  // namespace

Value Value::tensor(DType dtype, Shape shape) {
    if (bits(dtype) == 0) {
        throw Error(Fault::unsupported,
                    fmt::format("a tensor of {} has no bytes of fixed size", trocar::name(dtype)));
    }
    return Value(std::make_shared<HostTensor>(dtype, std::move(shape)));
}

Value Value::copy(DType dtype, Shape shape, Bytes bytes) {
    auto value = tensor(dtype, std::move(shape));
    const auto room = value.mutable_bytes();
    if (room.size() != bytes.size()) {
        throw Error(Fault::input, fmt::format("{} takes {} bytes, but {} are there",
                                              value_text(value), room.size(), bytes.size()));
    }
    if (!bytes.empty()) {
        std::memcpy(room.data(), bytes.data(), bytes.size());
    }
    return value;
}

Value Value::borrow(DType dtype, Shape shape, Bytes bytes, std::shared_ptr<const void> owner) {
    const auto expected = byte_size(dtype, trocar::element_count(shape));
    if (bits(dtype) != 0 && expected != bytes.size()) {
        throw Error(Fault::input,
                    fmt::format("{} {} takes {} bytes, but {} are there", trocar::name(dtype),
                                shape_text(shape), expected, bytes.size()));
    }
    return Value(std::make_shared<HostTensor>(dtype, std::move(shape), bytes, std::move(owner)));
}

Value Value::strings(Shape shape, std::vector<std::string> values) {
    if (trocar::element_count(shape) != values.size()) {
        throw Error(Fault::input,
                    fmt::format("string {} takes {} texts, but {} are there", shape_text(shape),
                                trocar::element_count(shape), values.size()));
    }
    return Value(std::make_shared<StringTensor>(std::move(shape), std::move(values)));
}

Value Value::sequence(std::vector<Value> items) {
    return Value(std::make_shared<Collection>(Kind::sequence, std::move(items)));
}

Value Value::map(Value keys, Value values) {
    return Value(std::make_shared<Collection>(
        Kind::map, std::vector<Value>{std::move(keys), std::move(values)}));
}

Value Value::of(const Constant& constant) {
    if (constant.is_sparse()) {
        return of(densify(constant));
    }
    if (constant.is_string()) {
        return strings(constant.shape(), constant.string_values());
    }
    const auto bytes = constant.bytes();
    const auto whole = std::clamp<std::size_t>(bits(constant.dtype()) / 8, 1, 8);
    if (reinterpret_cast<std::uintptr_t>(bytes.data()) % whole != 0) {
        return copy(constant.dtype(), constant.shape(), bytes);
    }
    return borrow(constant.dtype(), constant.shape(), bytes, constant.owner());
}

Bytes Value::bytes() const {
    if (kind() != Kind::tensor || dtype() == DType::string) {
        throw Error(Fault::usage, fmt::format("{} has no bytes of fixed size", value_text(*this)));
    }
    if (!device().is_host()) {
        throw Error(Fault::usage, fmt::format("{} is on {}:{}, not in host memory",
                                              value_text(*this), device().kind, device().index));
    }
    return body_->bytes();
}

std::span<std::byte> Value::mutable_bytes() {
    const auto own = body_ ? body_->own_bytes() : std::span<std::byte>{};
    if (own.data() == nullptr && (!is_tensor() || bits(dtype()) == 0 || element_count() > 0)) {
        throw Error(Fault::usage, fmt::format("{} cannot be written", value_text(*this)));
    }
    return own;
}

std::vector<std::string> Value::string_values() const {
    return body_ ? body_->strings() : std::vector<std::string>{};
}

std::vector<Value> Value::items() const {
    return body_ ? body_->items() : std::vector<Value>{};
}

std::string value_text(const Value& value) {
    switch (value.kind()) {
        case Value::Kind::tensor:
            return fmt::format("{} {}", name(value.dtype()), shape_text(value.shape()));
        case Value::Kind::sparse_tensor:
            return fmt::format("sparse {} {}", name(value.dtype()), shape_text(value.shape()));
        case Value::Kind::sequence:
            return fmt::format("sequence of {}", value.items().size());
        case Value::Kind::map: {
            const auto items = value.items();
            return items.size() == 2 ? fmt::format("map of {}", items[0].element_count()) : "map";
        }
        case Value::Kind::opaque:
            return "opaque value";
        case Value::Kind::none:
            break;
    }
    return "none";
}

Type type_of(const Value& value) {
    Type type;
    const auto items = value.kind() == Value::Kind::sequence || value.kind() == Value::Kind::map
                           ? value.items()
                           : std::vector<Value>{};
    switch (value.kind()) {
        case Value::Kind::tensor:
            return Type::tensor(value.dtype(), value.shape());
        case Value::Kind::sparse_tensor:
            type = Type::tensor(value.dtype(), value.shape());
            type.kind = Type::Kind::sparse_tensor;
            return type;
        case Value::Kind::sequence:
            type.kind = Type::Kind::sequence;
            // Items of a sequence may differ in shape: only the type of their elements is common.
            type.element.push_back(items.empty()               ? Type::tensor(value.dtype())
                                   : items.front().is_tensor() ? Type::tensor(items.front().dtype())
                                                               : type_of(items.front()));
            return type;
        case Value::Kind::map:
            type.kind = Type::Kind::map;
            if (items.size() == 2) {
                type.dtype = items[0].dtype();
                type.element.push_back(Type::tensor(items[1].dtype()));
            }
            return type;
        case Value::Kind::opaque:
            type.kind = Type::Kind::opaque;
            return type;
        case Value::Kind::none:
            type.kind = Type::Kind::optional;
            return type;
    }
    return type;
}

Value fit_optional(const Value& value, const Type& declared) {
    if (declared.kind != Type::Kind::optional || value.kind() != Value::Kind::sequence) {
        return value;
    }
    const auto items = value.items();
    const bool of_sequence =
        !declared.element.empty() && declared.element.front().kind == Type::Kind::sequence;
    if (items.size() == 1 && (!of_sequence || items[0].kind() == Value::Kind::sequence)) {
        return items[0];
    }
    return items.empty() && !of_sequence ? Value{} : value;
}

}  // namespace trocar
