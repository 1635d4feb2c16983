#pragma once

#include <cstddef>
#include <cstdint>

// PyTorch has C++ headers only. The library of this folder is compiled with them and offers what
// the engine needs as plain functions; the engine opens it at run time, and nothing else of Trocar
// knows those headers.
namespace trocar::libtorch {

// Both sides are compiled from this file; the number tells that it is the same one.
inline constexpr int bridge_version = 2;
inline constexpr int most_dimensions = 32;

struct BridgeTensor {
    int scalar_type = 0;  // torch's number
    int rank = 0;
    std::int64_t sizes[most_dimensions] = {};
    const void* data = nullptr;
    std::size_t bytes = 0;
};

struct BridgeOp;     // an operator with its schema
struct BridgeValue;  // what one of them takes or makes: a tensor, a number, a list, nothing

enum class BridgeKind { nothing, tensor, number, numbers, tensors, other };

// What an operator's schema says of an argument.
struct BridgeParameter {
    const char* name = nullptr;
    BridgeKind kind = BridgeKind::other;  // tensor, tensors, or other
    bool required = false;                // it has no default
};

// What an argument is given. Elements of a list come one after the other; one that is computed is a
// value, where the list has a nullptr it is a number. A single value may be the whole list.
struct BridgeArgument {
    const char* name = nullptr;
    std::size_t count = 0;
    const BridgeValue* const* values = nullptr;
    const std::int64_t* integers = nullptr;
    const double* numbers = nullptr;
    const char* text = nullptr;
};

using BridgeTake = void (*)(void* into, BridgeValue* value);

struct Bridge {
    int version;
    const char* torch_version;
    // "aten::add", "Tensor"; those of tensors, and those of TorchScript's numbers and lists.
    // nullptr: there is none.
    const BridgeOp* (*find)(const char* name, const char* overload);
    bool (*changes_arguments)(const BridgeOp* op);
    // Calls `take` for each argument of the schema.
    void (*parameters)(const BridgeOp* op, void (*take)(void* into, const BridgeParameter& one),
                       void* into);
    // A view of the data, or a copy of it.
    BridgeValue* (*tensor)(const BridgeTensor* tensor, bool copy);
    BridgeValue* (*nothing)();
    // A list of tensors, or of the numbers that the values are.
    BridgeValue* (*list)(const BridgeValue* const* values, std::size_t count, bool tensors);
    void (*release)(BridgeValue* value);
    BridgeKind (*kind)(const BridgeValue* value);
    // Gives every result to `take`. False: see `why`.
    bool (*call)(const BridgeOp* op, const BridgeArgument* arguments, std::size_t count,
                 BridgeTake take, void* into);
    // Gives the elements of a list to `take`. False: see `why`.
    bool (*items)(const BridgeValue* value, BridgeTake take, void* into);
    // The elements in order, kept as long as the value that is returned lives. nullptr: see `why`.
    BridgeValue* (*read)(const BridgeValue* value, BridgeTensor* tensor);
    const char* (*why)();
    void (*set_threads)(int count);
};

inline constexpr const char* bridge_function = "trocar_torch_bridge";
using BridgeFunction = const Bridge* (*)();

}  // namespace trocar::libtorch
