#pragma once

#include <complex>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "formats/torchscript/pickle.h"
#include "formats/torchscript/syntax.h"

namespace trocar::torchscript {

// What names of the code stand for while it is read. What the file settles is a plain value or a
// structure of them; what is known only when the model runs is a tensor of the graph.

struct Value;
struct ListValue;
struct TupleValue;
struct DictValue;
struct ObjectValue;

struct Runtime {  // a value of the graph: its place in the Builder's table
    std::size_t place = 0;
    bool operator==(const Runtime&) const = default;
};
struct SizesOf {  // torch.size(x), until somebody needs it as a list
    Runtime tensor;
};
struct TypeOf {  // the element type of x, as a number
    Runtime tensor;
};
struct Device {
    std::string name;
};
struct Uninitialized {
    std::string kind;
};
struct FunctionRef {
    const Function* function = nullptr;
};
struct ClassRef {
    const Class* of = nullptr;
};

struct Value {
    using What =
        std::variant<std::monostate, bool, std::int64_t, double, std::complex<double>, std::string,
                     Device, Runtime, SizesOf, TypeOf, Uninitialized, FunctionRef, ClassRef,
                     std::shared_ptr<ListValue>, std::shared_ptr<TupleValue>,
                     std::shared_ptr<DictValue>, std::shared_ptr<ObjectValue>>;
    What what;

    Value() = default;
    template <class T>
    requires std::constructible_from<What, T> Value(T value)
        : what(std::move(value)) {}  // NOLINT(google-explicit-constructor)

    bool is_none() const { return what.index() == 0; }
    template <class T>
    const T* as() const {
        return std::get_if<T>(&what);
    }
    ListValue* list() const {
        const auto* held = as<std::shared_ptr<ListValue>>();
        return held == nullptr ? nullptr : held->get();
    }
    TupleValue* tuple() const {
        const auto* held = as<std::shared_ptr<TupleValue>>();
        return held == nullptr ? nullptr : held->get();
    }
    DictValue* dict() const {
        const auto* held = as<std::shared_ptr<DictValue>>();
        return held == nullptr ? nullptr : held->get();
    }
    std::shared_ptr<ObjectValue> object() const {
        const auto* held = as<std::shared_ptr<ObjectValue>>();
        return held == nullptr ? nullptr : *held;
    }
    // None, a truth, a number or a text: settled by the file.
    bool is_plain() const { return what.index() <= 5; }
};

// A list or dictionary that code can still change. Once it is changed where only a run decides, it
// is a value of the graph.
struct ListValue {
    std::string element;  // kind of its items; "" not known
    std::vector<Value> items;
    std::optional<Runtime> runtime;
    int depth = 0;  // of the region that made it
};
struct DictValue {
    std::string kind;
    std::vector<std::pair<Value, Value>> items;
    std::optional<Runtime> runtime;
    int depth = 0;
};
struct TupleValue {
    std::vector<Value> items;
    const Class* of = nullptr;  // a named one
};
// A module, or an object of a class of the code.
struct ObjectValue {
    const Class* of = nullptr;
    const Pickled* pickled = nullptr;  // nullptr: made by the code
    std::string path;                  // "encoder.0"
    std::size_t number = 0;            // in the order in which they were met
};

// The kind that a type of the code is: "T" for Tensor, "i[]" for List[int].
std::string kind_of_type(const Expression* type);
bool same_plain(const Value& a, const Value& b);

}  // namespace trocar::torchscript
