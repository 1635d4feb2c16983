#include "engines/torch/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "trocar/error.h"
#include "util/elements.h"

namespace trocar::libtorch {

namespace {

constexpr std::array types{
    std::pair{DType::u8, 0},    std::pair{DType::i8, 1},       std::pair{DType::i16, 2},
    std::pair{DType::i32, 3},   std::pair{DType::i64, 4},      std::pair{DType::f16, 5},
    std::pair{DType::f32, 6},   std::pair{DType::f64, 7},      std::pair{DType::c64, 9},
    std::pair{DType::c128, 10}, std::pair{DType::boolean, 11}, std::pair{DType::bf16, 15},
    std::pair{DType::u16, 27},  std::pair{DType::u32, 28},     std::pair{DType::u64, 29},
};

int number_of(DType dtype) {
    for (const auto& [ours, theirs] : types) {
        if (ours == dtype) {
            return theirs;
        }
    }
    throw Error(Fault::unsupported, fmt::format("PyTorch takes no tensors of {}", name(dtype)));
}
DType dtype_of(int number) {
    for (const auto& [ours, theirs] : types) {
        if (theirs == number) {
            return ours;
        }
    }
    throw Error(Fault::unsupported, fmt::format("PyTorch gives a tensor of its type {}", number));
}

}  // namespace

void Exchange::fail(const std::string& what) const {
    // The first line says it.
    const std::string why = bridge_.why();
    throw Error(Fault::engine,
                fmt::format("PyTorch could not {}: {}", what, why.substr(0, why.find('\n'))));
}

Held Exchange::keep(BridgeValue* value) const {
    return {value, [release = bridge_.release](BridgeValue* one) { release(one); }};
}

Held Exchange::give(const Value& value, bool copy) const {
    if (value.kind() == Value::Kind::none) {
        return nothing();
    }
    if (value.kind() == Value::Kind::sequence) {
        std::vector<Held> all;
        for (const auto& item : value.items()) {
            all.push_back(give(item, copy));
        }
        return list(all, true);
    }
    if (!value.is_tensor() || bits(value.dtype()) < 8) {
        throw Error(Fault::unsupported, "PyTorch is given tensors of numbers only");
    }
    BridgeTensor tensor;
    tensor.scalar_type = number_of(value.dtype());
    const auto shape = value.shape();
    if (shape.size() > most_dimensions) {
        throw Error(Fault::unsupported, "a tensor has too many dimensions for PyTorch");
    }
    tensor.rank = static_cast<int>(shape.size());
    std::copy(shape.begin(), shape.end(), tensor.sizes);
    tensor.data = value.bytes().data();
    tensor.bytes = value.bytes().size();
    auto* const made = bridge_.tensor(&tensor, copy);
    if (made == nullptr) {
        fail("take a tensor");
    }
    return keep(made);
}

Held Exchange::integer(std::int64_t number) const {
    return give(Value::copy(DType::i64, {}, std::as_bytes(std::span(&number, 1))), true);
}
Held Exchange::real(double number) const {
    return give(Value::copy(DType::f64, {}, std::as_bytes(std::span(&number, 1))), true);
}
Held Exchange::truth(bool value) const {
    return give(Value::copy(DType::boolean, {}, std::as_bytes(std::span(&value, 1))), true);
}

Held Exchange::list(const std::vector<Held>& items, bool tensors) const {
    std::vector<const BridgeValue*> values;
    for (const auto& item : items) {
        values.push_back(item.get());
    }
    auto* const made = bridge_.list(values.data(), values.size(), tensors);
    if (made == nullptr) {
        fail("make a list");
    }
    return keep(made);
}

std::vector<Held> Exchange::items(const Held& list, const std::string& what) const {
    std::vector<Held> all;
    auto take = [&](BridgeValue* value) { all.push_back(keep(value)); };
    const bool done = bridge_.items(
        list.get(),
        [](void* into, BridgeValue* value) { (*static_cast<decltype(take)*>(into))(value); },
        &take);
    if (!done) {
        fail(what);
    }
    return all;
}

Value Exchange::take(const Held& value, const std::string& name, bool lend) const {
    const auto kind = bridge_.kind(value.get());
    if (kind == BridgeKind::nothing) {
        return {};
    }
    if (kind == BridgeKind::tensors) {
        std::vector<Value> all;
        for (const auto& item : items(value, fmt::format("give '{}'", name))) {
            all.push_back(take(item, name, lend));
        }
        return Value::sequence(std::move(all));
    }
    BridgeTensor tensor;
    const auto owner = keep(bridge_.read(value.get(), &tensor));
    if (!owner) {
        fail(fmt::format("give '{}'", name));
    }
    const Shape shape(tensor.sizes, tensor.sizes + tensor.rank);
    const Bytes bytes(static_cast<const std::byte*>(tensor.data), tensor.bytes);
    return lend ? Value::borrow(dtype_of(tensor.scalar_type), shape, bytes, owner)
                : Value::copy(dtype_of(tensor.scalar_type), shape, bytes);
}

std::int64_t Exchange::whole(const Held& value, const std::string& name) const {
    const auto held = take(value, name, false);
    if (!held.is_tensor() || held.element_count() != 1) {
        throw Error(Fault::engine, fmt::format("'{}' is not one number", name));
    }
    if (held.dtype() == DType::i64) {
        return held.as<std::int64_t>()[0];
    }
    double number = 0;
    decode(held.dtype(), held.bytes(), 0, std::span(&number, 1));
    return static_cast<std::int64_t>(number);
}

}  // namespace trocar::libtorch
