#include "bridge.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/jit/runtime/operator.h>
#include <torch/version.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// What came with later versions of torch 2.
#define TROCAR_TORCH_UNSIGNED \
    (TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 3))

namespace trocar::libtorch {

// One of the dispatcher's, or one that only TorchScript has: numbers and lists.
struct BridgeOp {
    std::optional<c10::OperatorHandle> handle;
    std::shared_ptr<torch::jit::Operator> scripted;

    const c10::FunctionSchema& schema() const {
        return handle ? handle->schema() : scripted->schema();
    }
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
#if TROCAR_TORCH_UNSIGNED
    {"uint16", c10::ScalarType::UInt16},
    {"uint32", c10::ScalarType::UInt32},
    {"uint64", c10::ScalarType::UInt64},
#endif
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
        // A number gives way to the element type of the tensors beside it.
        auto made = held != nullptr && held->value.isBool()
                        ? at::scalar_tensor(held->value.toBool(), at::kBool)
                    : is_real() ? at::scalar_tensor(number(), at::kDouble)
                                : at::scalar_tensor(integer(), at::kLong);
        made.unsafeGetTensorImpl()->set_wrapped_number(true);
        return made;
    }
    std::int64_t missing() const {
        refuse(std::string("the argument '") + argument.name + "' has no number");
    }
};

// A number as it is: of the kind that it has.
c10::IValue plain_number(const c10::IValue& value) {
    if (!value.isTensor()) {
        return value;
    }
    const auto& tensor = value.toTensor();
    return tensor.scalar_type() == at::kBool ? c10::IValue(tensor.item<bool>())
           : tensor.is_floating_point()      ? c10::IValue(tensor.item<double>())
                                             : c10::IValue(tensor.item<std::int64_t>());
}

// A list of the numbers that a tensor of one dimension holds.
c10::IValue numbers_in(const at::Tensor& tensor) {
    if (tensor.dim() != 1) {
        refuse("a list of numbers has one dimension");
    }
    const auto flat = tensor.contiguous();
    if (tensor.is_floating_point()) {
        const auto all = flat.to(at::kDouble);
        const auto* data = all.data_ptr<double>();
        return c10::List<double>(std::vector<double>(data, data + all.numel()));
    }
    const auto all = flat.to(at::kLong);
    const auto* data = all.data_ptr<std::int64_t>();
    if (tensor.scalar_type() == at::kBool) {
        c10::List<bool> truths;
        for (std::int64_t i = 0; i < all.numel(); ++i) {
            truths.push_back(data[i] != 0);
        }
        return truths;
    }
    return c10::List<std::int64_t>(std::vector<std::int64_t>(data, data + all.numel()));
}

c10::IValue one(const c10::TypePtr& type, const c10::TypePtr& real, const BridgeArgument& from) {
    const Element element{from, 0};
    switch (real->kind()) {
        case c10::TypeKind::ScalarTypeType:
            // "like": that of a tensor.
            return from.text == nullptr ? element.integer()
                   : std::strcmp(from.text, "like") == 0
                       ? static_cast<std::int64_t>(element.tensor().scalar_type())
                       : named(element_types, from.text);
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
            return from.text != nullptr ? named(element_types, from.text) : element.integer();
        case c10::TypeKind::FloatType:
        case c10::TypeKind::SymFloatType:
            return element.number();
        case c10::TypeKind::BoolType:
            return element.integer() != 0;
        case c10::TypeKind::NumberType:
            return element.value() != nullptr ? plain_number(element.value()->value)
                   : element.is_real()        ? c10::IValue(element.number())
                                              : c10::IValue(element.integer());
        case c10::TypeKind::StringType:
            return std::string(from.text != nullptr ? from.text : "");
        case c10::TypeKind::VarType:
        case c10::TypeKind::AnyType:
            return element.value() != nullptr ? element.value()->value
                   : element.is_real()        ? c10::IValue(element.number())
                                              : c10::IValue(element.integer());
        default:
            break;
    }
    if (type->str() == "SymBool") {
        return element.integer() != 0;
    }
    refuse(std::string("an argument of the type ") + type->str() + " cannot be given");
}

// What an optional tensor is in this version of torch.
using OptionalTensor = decltype(std::declval<c10::IValue&>().toOptional<at::Tensor>());

// Of a list of anything: tensors, unless there is a number among them.
c10::TypePtr type_of_items(const BridgeArgument& from) {
    bool tensors = from.count > 0;
    bool real = false;
    for (std::size_t i = 0; i < from.count; ++i) {
        const Element element{from, i};
        tensors = tensors && element.value() != nullptr && element.value()->value.isTensor();
        real = real || element.is_real();
    }
    return tensors ? c10::TypePtr(c10::TensorType::get())
           : real  ? c10::TypePtr(c10::FloatType::get())
                   : c10::TypePtr(c10::IntType::get());
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
            return fill(c10::List<OptionalTensor>(), [](const Element& e) {
                return e.value() != nullptr ? OptionalTensor(e.tensor()) : OptionalTensor();
            });
        case c10::TypeKind::IntType:
        case c10::TypeKind::SymIntType:
            return fill(c10::List<std::int64_t>(), [](const Element& e) { return e.integer(); });
        case c10::TypeKind::FloatType:
            return fill(c10::List<double>(), [](const Element& e) { return e.number(); });
        case c10::TypeKind::BoolType:
            return fill(c10::List<bool>(), [](const Element& e) { return e.integer() != 0; });
        case c10::TypeKind::VarType:
            return several(type_of_items(from), from);
        default:
            refuse(std::string("a list of the type ") + type->str() + " cannot be given");
    }
}

// A single value that is the whole list; none where it is one of its elements.
c10::IValue whole_list(const c10::TypePtr& element, const BridgeArgument& from) {
    const auto* held = from.count == 1 && from.values != nullptr ? from.values[0] : nullptr;
    if (held == nullptr) {
        return {};
    }
    if (held->value.isList()) {
        return held->value;
    }
    const bool tensors = element->kind() == c10::TypeKind::TensorType ||
                         element->kind() == c10::TypeKind::OptionalType;
    return !tensors && held->value.isTensor() && held->value.toTensor().dim() == 1
               ? numbers_in(held->value.toTensor())
               : c10::IValue();
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
        if (auto whole = whole_list(element, *from); !whole.isNone()) {
            return whole;
        }
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

std::unique_ptr<const BridgeOp> look_up(const char* name, const char* overload) {
    const auto made = [](auto handle, std::shared_ptr<torch::jit::Operator> scripted) {
        return std::unique_ptr<const BridgeOp>(new BridgeOp{handle, std::move(scripted)});
    };
    const auto found = c10::Dispatcher::singleton().findSchema({name, overload});
    if (found) {
        return made(*found, nullptr);
    }
    const auto all = torch::jit::getAllOperatorsFor(c10::Symbol::fromQualString(name));
    // TorchScript's own ops are written without an overload.
    const bool own = std::strncmp(name, "prim::", 6) == 0 && *overload == '\0';
    for (const auto& one : all) {
        const auto& known = one->schema().overload_name();
        if (known == overload || (own && (all.size() == 1 || known == "Scalar"))) {
            return made(std::nullopt, one);
        }
    }
    return nullptr;
}

const BridgeOp* find(const char* name, const char* overload) {
    static std::mutex mutex;
    static std::map<std::pair<std::string, std::string>, std::unique_ptr<const BridgeOp>> known;
    return guarded(
        [&]() -> const BridgeOp* {
            const std::lock_guard<std::mutex> lock(mutex);
            auto& op = known[{name, overload}];
            if (!op) {
                op = look_up(name, overload);
            }
            return op.get();
        },
        nullptr);
}

bool changes_arguments(const BridgeOp* op) {
    return op->schema().is_mutable();
}

BridgeKind parameter_kind(c10::TypePtr type) {
    if (const auto optional = type->cast<c10::OptionalType>()) {
        type = optional->getElementType();
    }
    if (const auto list = type->cast<c10::ListType>()) {
        const auto element = list->getElementType()->str();
        return element == "Tensor" || element == "Tensor?" || element == "Optional[Tensor]"
                   ? BridgeKind::tensors
                   : BridgeKind::other;
    }
    return type->kind() == c10::TypeKind::TensorType ? BridgeKind::tensor : BridgeKind::other;
}

void parameters(const BridgeOp* op, void (*take)(void*, const BridgeParameter&), void* into) {
    for (const auto& one : op->schema().arguments()) {
        take(into, {one.name().c_str(), parameter_kind(one.type()), !one.default_value()});
    }
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

BridgeValue* nothing() {
    return new BridgeValue{c10::IValue()};
}

BridgeValue* list(const BridgeValue* const* values, std::size_t count, bool tensors) {
    return guarded(
        [&]() -> BridgeValue* {
            BridgeArgument from;
            from.name = "items";
            from.count = count;
            from.values = values;
            if (tensors) {
                return new BridgeValue{several(c10::TensorType::get(), from)};
            }
            const auto first = count > 0 ? plain_number(values[0]->value) : c10::IValue();
            const c10::TypePtr type = first.isDouble() ? c10::TypePtr(c10::FloatType::get())
                                      : first.isBool() ? c10::TypePtr(c10::BoolType::get())
                                                       : c10::TypePtr(c10::IntType::get());
            return new BridgeValue{several(type, from)};
        },
        nullptr);
}

BridgeKind kind(const BridgeValue* value) {
    const auto& held = value->value;
    return held.isTensor()                                                ? BridgeKind::tensor
           : held.isNone()                                                ? BridgeKind::nothing
           : held.isInt() || held.isDouble() || held.isBool()             ? BridgeKind::number
           : held.isTensorList()                                          ? BridgeKind::tensors
           : held.isIntList() || held.isDoubleList() || held.isBoolList() ? BridgeKind::numbers
                                                                          : BridgeKind::other;
}

bool call(const BridgeOp* op, const BridgeArgument* arguments, std::size_t count, BridgeTake take,
          void* into) {
    return guarded(
        [&] {
            const at::NoGradGuard guard;
            std::vector<c10::IValue> stack;
            for (const auto& wanted : op->schema().arguments()) {
                const auto* const end = arguments + count;
                const auto* const given = std::find_if(
                    arguments, end,
                    [&](const BridgeArgument& one) { return wanted.name() == one.name; });
                stack.push_back(argument(wanted, given != end ? given : nullptr));
            }
            if (op->handle) {
                op->handle->callBoxed(stack);
            } else {
                op->scripted->getOperation()(stack);
            }
            for (const auto& result : stack) {
                take(into, new BridgeValue{result});
            }
            return true;
        },
        false);
}

bool items(const BridgeValue* value, BridgeTake take, void* into) {
    return guarded(
        [&] {
            const auto& held = value->value;
            if (!held.isList() && !(held.isTensor() && held.toTensor().dim() == 1)) {
                refuse("it is no list but " + held.tagKind());
            }
            const auto all = held.isList() ? held : numbers_in(held.toTensor());
            for (const auto& one : all.toListRef()) {
                take(into, new BridgeValue{one});
            }
            return true;
        },
        false);
}

at::Tensor as_tensor(const c10::IValue& held) {
    if (held.isTensor()) {
        return held.toTensor();
    }
    if (held.isInt()) {
        return at::scalar_tensor(held.toInt(), at::kLong);
    }
    if (held.isDouble()) {
        return at::scalar_tensor(held.toDouble(), at::kDouble);
    }
    if (held.isBool()) {
        return at::scalar_tensor(held.toBool(), at::kBool);
    }
    if (held.isIntList()) {
        return at::tensor(held.toIntVector(), at::kLong);
    }
    if (held.isDoubleList()) {
        return at::tensor(held.toDoubleVector(), at::kDouble);
    }
    if (held.isBoolList()) {
        std::vector<std::int64_t> numbers;
        for (const bool one : held.toBoolList()) {
            numbers.push_back(one ? 1 : 0);
        }
        return at::tensor(numbers, at::kLong).to(at::kBool);
    }
    refuse("it is no tensor but " + held.tagKind());
}

BridgeValue* read(const BridgeValue* value, BridgeTensor* into) {
    return guarded(
        [&]() -> BridgeValue* {
            const auto plain = as_tensor(value->value).resolve_conj().resolve_neg().contiguous();
            if (plain.dim() > most_dimensions) {
                refuse("it has too many dimensions");
            }
            into->scalar_type = static_cast<int>(plain.scalar_type());
            into->rank = static_cast<int>(plain.dim());
            std::copy(plain.sizes().begin(), plain.sizes().end(), into->sizes);
            into->data = plain.data_ptr();
            into->bytes = plain.nbytes();
            return new BridgeValue{plain};
        },
        nullptr);
}

const char* why() {
    return reason.c_str();
}

// Nothing is printed from here.
class Silence final : public c10::WarningHandler {
public:
#if TORCH_VERSION_MAJOR < 2
    void process(const c10::SourceLocation& /*place*/, const std::string& /*text*/,
                 const bool /*verbatim*/) override {}
#else
    void process(const c10::Warning& /*warning*/) override {}
#endif
};
#if TORCH_VERSION_MAJOR < 2
namespace warnings = c10::Warning;
#else
namespace warnings = c10::WarningUtils;
#endif

void set_threads(int count) {
    static Silence silence;
    warnings::set_warning_handler(&silence);
    at::set_num_threads(count);
}

constexpr Bridge bridge{bridge_version, TORCH_VERSION, find,       changes_arguments,
                        parameters,     tensor,        nothing,    list,
                        release,        kind,          call,       items,
                        read,           why,           set_threads};

}  // namespace

}  // namespace trocar::libtorch

extern "C" __attribute__((visibility("default"))) const trocar::libtorch::Bridge*
trocar_torch_bridge() {
    return &trocar::libtorch::bridge;
}
