#include "bridge.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/version.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace trocar::libtorch {

struct BridgeOp {
    c10::OperatorHandle handle;
};
struct BridgeValue {
    c10::IValue value;
};

namespace {

thread_local std::string reason;

template <class F>
auto guarded(F work, decltype(work()) otherwise) -> decltype(work()) {
    try {
        reason.clear();
        return work();
    } catch (const c10::Error& error) {
        reason = error.what_without_backtrace();
    } catch (const std::exception& error) {
        reason = error.what();
    }
    return otherwise;
}

[[noreturn]] void refuse(const std::string& why) {
    throw std::runtime_error(why);
}

// --- Arguments ---

constexpr std::pair<const char*, c10::ScalarType> element_types[] = {
    {"uint8", c10::ScalarType::Byte},
    {"int8", c10::ScalarType::Char},
    {"int16", c10::ScalarType::Short},
    {"int32", c10::ScalarType::Int},
    {"int64", c10::ScalarType::Long},
    {"float16", c10::ScalarType::Half},
    {"float32", c10::ScalarType::Float},
    {"float64", c10::ScalarType::Double},
    {"complex64", c10::ScalarType::ComplexFloat},
    {"complex128", c10::ScalarType::ComplexDouble},
    {"bool", c10::ScalarType::Bool},
    {"bfloat16", c10::ScalarType::BFloat16},
    {"uint16", c10::ScalarType::UInt16},
    {"uint32", c10::ScalarType::UInt32},
    {"uint64", c10::ScalarType::UInt64},
};
constexpr std::pair<const char*, c10::MemoryFormat> memory_formats[] = {
    {"contiguous_format", c10::MemoryFormat::Contiguous},
    {"preserve_format", c10::MemoryFormat::Preserve},
    {"channels_last", c10::MemoryFormat::ChannelsLast},
    {"channels_last_3d", c10::MemoryFormat::ChannelsLast3d},
};

template <class Table>
std::int64_t named(const Table& table, const char* name) {
    for (const auto& [text, value] : table) {
        if (std::strcmp(text, name) == 0) {
            return static_cast<std::int64_t>(value);
        }
    }
    refuse(std::string("'") + name + "' is not known");
}

std::int64_t integer_of(const c10::IValue& value) {
    return value.isTensor()   ? value.toTensor().item<std::int64_t>()
           : value.isBool()   ? std::int64_t{value.toBool()}
           : value.isDouble() ? static_cast<std::int64_t>(value.toDouble())
                              : value.toInt();
}
double number_of(const c10::IValue& value) {
    return value.isTensor()   ? value.toTensor().item<double>()
           : value.isDouble() ? value.toDouble()
                              : static_cast<double>(integer_of(value));
}

// One element of an argument, whatever it is given as.
struct Element {
    const BridgeArgument& argument;
    std::size_t at;

    const BridgeValue* value() const {
        return argument.values != nullptr ? argument.values[at] : nullptr;
    }
    bool is_real() const {
        if (const auto* held = value()) {
            return held->value.isDouble() ||
                   (held->value.isTensor() && held->value.toTensor().is_floating_point());
        }
        return argument.numbers != nullptr;
    }
    std::int64_t integer() const {
        return value() != nullptr             ? integer_of(value()->value)
               : argument.integers != nullptr ? argument.integers[at]
               : argument.numbers != nullptr  ? static_cast<std::int64_t>(argument.numbers[at])
                                              : missing();
    }
    double number() const {
        return value() != nullptr             ? number_of(value()->value)
               : argument.numbers != nullptr  ? argument.numbers[at]
               : argument.integers != nullptr ? static_cast<double>(argument.integers[at])
                                              : static_cast<double>(missing());
    }
    at::Tensor tensor() const {
        const auto* held = value();
        if (held != nullptr && held->value.isTensor()) {
            return held->value.toTensor();
        }
        return is_real() ? at::scalar_tensor(number(), at::kDouble)
                         : at::scalar_tensor(integer(), at::kLong);
    }
    std::int64_t missing() const {
        refuse(std::string("the argument '") + argument.name + "' has no number");
    }
};

c10::IValue one(const c10::TypePtr& type, const c10::TypePtr& real, const BridgeArgument& from) {
    const Element element{from, 0};
    switch (real->kind()) {
        case c10::TypeKind::ScalarTypeType:
            return from.text != nullptr ? named(element_types, from.text) : element.integer();
        case c10::TypeKind::MemoryFormatType:
            return from.text != nullptr ? named(memory_formats, from.text) : element.integer();
        case c10::TypeKind::LayoutType:
            return static_cast<std::int64_t>(c10::Layout::Strided);
        case c10::TypeKind::DeviceObjType:
            return c10::Device(c10::kCPU);
        default:
            break;
    }
    switch (type->kind()) {
        case c10::TypeKind::TensorType:
            return element.tensor();
        case c10::TypeKind::IntType:
        case c10::TypeKind::SymIntType:
            return element.integer();
        case c10::TypeKind::FloatType:
        case c10::TypeKind::SymFloatType:
            return element.number();
        case c10::TypeKind::BoolType:
        case c10::TypeKind::SymBoolType:
            return element.integer() != 0;
        case c10::TypeKind::NumberType:
            return element.is_real() ? c10::IValue(element.number())
                                     : c10::IValue(element.integer());
        case c10::TypeKind::StringType:
            return std::string(from.text != nullptr ? from.text : "");
        default:
            refuse(std::string("an argument of the type ") + type->str() + " cannot be given");
    }
}

c10::IValue several(const c10::TypePtr& type, const BridgeArgument& from) {
    const auto fill = [&](auto list, auto get) {
        for (std::size_t i = 0; i < from.count; ++i) {
            list.push_back(get(Element{from, i}));
        }
        return c10::IValue(std::move(list));
    };
    switch (type->kind()) {
        case c10::TypeKind::TensorType:
            return fill(c10::List<at::Tensor>(), [](const Element& e) { return e.tensor(); });
        case c10::TypeKind::OptionalType:
            return fill(c10::List<std::optional<at::Tensor>>(), [](const Element& e) {
                return e.value() != nullptr ? std::optional(e.tensor()) : std::nullopt;
            });
        case c10::TypeKind::IntType:
        case c10::TypeKind::SymIntType:
            return fill(c10::List<std::int64_t>(), [](const Element& e) { return e.integer(); });
        case c10::TypeKind::FloatType:
            return fill(c10::List<double>(), [](const Element& e) { return e.number(); });
        case c10::TypeKind::BoolType:
            return fill(c10::List<bool>(), [](const Element& e) { return e.integer() != 0; });
        default:
            refuse(std::string("a list of the type ") + type->str() + " cannot be given");
    }
}

c10::IValue argument(const c10::Argument& wanted, const BridgeArgument* from) {
    if (from == nullptr) {
        if (wanted.default_value()) {
            return *wanted.default_value();
        }
        if (wanted.type()->kind() == c10::TypeKind::OptionalType) {
            return {};
        }
        refuse("the argument '" + wanted.name() + "' is not given");
    }
    auto type = wanted.type();
    auto real = wanted.real_type();
    if (const auto optional = type->cast<c10::OptionalType>()) {
        type = optional->getElementType();
    }
    if (const auto optional = real->cast<c10::OptionalType>()) {
        real = optional->getElementType();
    }
    if (const auto list = type->cast<c10::ListType>()) {
        auto element = list->getElementType();
        // One number stands for all of a list of fixed length.
        if (from->count == 1 && wanted.N() && *wanted.N() > 1 && from->values == nullptr) {
            return c10::IValue(c10::List<std::int64_t>(std::vector<std::int64_t>(
                static_cast<std::size_t>(*wanted.N()), Element{*from, 0}.integer())));
        }
        return several(element, *from);
    }
    return one(type, real, *from);
}

// --- The functions ---

const BridgeOp* find(const char* name, const char* overload) {
    return guarded(
        [&]() -> const BridgeOp* {
            const auto found = c10::Dispatcher::singleton().findSchema({name, overload});
            return found ? new BridgeOp{*found} : nullptr;  // kept: there are only so many
        },
        nullptr);
}

bool changes_arguments(const BridgeOp* op) {
    return op->handle.schema().is_mutable();
}

BridgeValue* tensor(const BridgeTensor* from, bool copy) {
    return guarded(
        [&]() -> BridgeValue* {
            const auto options =
                at::TensorOptions().dtype(static_cast<c10::ScalarType>(from->scalar_type));
            const at::IntArrayRef sizes(from->sizes, static_cast<std::size_t>(from->rank));
            if (from->bytes == 0) {
                return new BridgeValue{at::empty(sizes, options)};
            }
            // Only ops that change their arguments write, and those get a copy.
            auto made = at::from_blob(const_cast<void*>(from->data), sizes, options);
            return new BridgeValue{copy ? made.clone() : made};
        },
        nullptr);
}

void release(BridgeValue* value) {
    delete value;
}

void give(const c10::IValue& result, void (*take)(void*, BridgeValue*), void* into) {
    if (result.isTensorList()) {
        for (const auto& one : result.toTensorVector()) {
            take(into, new BridgeValue{one});
        }
    } else if (result.isList()) {
        for (const auto& one : result.toListRef()) {
            take(into, new BridgeValue{one});
        }
    } else {
        take(into, new BridgeValue{result});
    }
}

bool call(const BridgeOp* op, const BridgeArgument* arguments, std::size_t count,
          void (*take)(void* into, BridgeValue* result), void* into) {
    return guarded(
        [&] {
            const c10::InferenceMode no_gradients(false);
            const at::NoGradGuard guard;
            std::vector<c10::IValue> stack;
            for (const auto& wanted : op->handle.schema().arguments()) {
                const auto* const end = arguments + count;
                const auto* const given = std::find_if(
                    arguments, end,
                    [&](const BridgeArgument& one) { return wanted.name() == one.name; });
                stack.push_back(argument(wanted, given != end ? given : nullptr));
            }
            op->handle.callBoxed(stack);
            for (const auto& result : stack) {
                give(result, take, into);
            }
            return true;
        },
        false);
}

BridgeValue* read(const BridgeValue* value, BridgeTensor* into) {
    return guarded(
        [&]() -> BridgeValue* {
            const auto& held = value->value;
            if (!held.isTensor() && !held.isInt() && !held.isDouble() && !held.isBool()) {
                refuse("it is no tensor but " + held.tagKind());
            }
            const auto plain = (held.isTensor()   ? held.toTensor()
                                : held.isInt()    ? at::scalar_tensor(held.toInt(), at::kLong)
                                : held.isDouble() ? at::scalar_tensor(held.toDouble(), at::kDouble)
                                                  : at::scalar_tensor(held.toBool(), at::kBool))
                                   .resolve_conj()
                                   .resolve_neg()
                                   .contiguous();
            if (plain.dim() > most_dimensions) {
                refuse("it has too many dimensions");
            }
            into->scalar_type = static_cast<int>(plain.scalar_type());
            into->rank = static_cast<int>(plain.dim());
            std::copy(plain.sizes().begin(), plain.sizes().end(), into->sizes);
            into->data = plain.const_data_ptr();
            into->bytes = plain.nbytes();
            return new BridgeValue{plain};
        },
        nullptr);
}

const char* why() {
    return reason.c_str();
}

void set_threads(int count) {
    at::set_num_threads(count);
}

constexpr Bridge bridge{bridge_version, TORCH_VERSION, find, changes_arguments, tensor, release,
                        call,           read,          why,  set_threads};

}  // namespace

}  // namespace trocar::libtorch

extern "C" __attribute__((visibility("default"))) const trocar::libtorch::Bridge*
trocar_torch_bridge() {
    return &trocar::libtorch::bridge;
}
