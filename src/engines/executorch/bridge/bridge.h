#pragma once

#include <cstddef>
#include <cstdint>

// ExecuTorch has C++ headers only. The library of this folder is compiled with them and offers what
// the engine needs as plain functions; the engine opens it at run time, and nothing else of Trocar
// knows those headers.
namespace trocar::executorch {

// Both sides are compiled from this file; the number tells that it is the same one.
inline constexpr int bridge_version = 1;
inline constexpr int most_dimensions = 16;

struct BridgeTensor {
    int scalar_type = 0;  // ExecuTorch's number
    int rank = 0;
    std::int32_t sizes[most_dimensions] = {};
    const void* data = nullptr;
    std::size_t bytes = 0;
};

struct BridgeEvent {
    std::int64_t instruction = -1;
    double start_ns = 0;
    double spent_ns = 0;
};

struct BridgeProgram;

// Functions that return int return 0 when all went well. `why` is what ExecuTorch said meanwhile.
struct Bridge {
    int version;
    // The bytes must stay where they are. nullptr: see `why`.
    BridgeProgram* (*load)(const void* bytes, std::size_t size, bool time_instructions);
    void (*release)(BridgeProgram* program);
    std::size_t (*input_count)(const BridgeProgram* program);
    std::size_t (*output_count)(const BridgeProgram* program);
    int (*set_input)(BridgeProgram* program, std::size_t number, const BridgeTensor* tensor);
    int (*run)(BridgeProgram* program);
    // A view of an output, valid until the next run.
    int (*output)(BridgeProgram* program, std::size_t number, BridgeTensor* tensor);
    // The instructions of the last run.
    std::size_t (*events)(const BridgeProgram* program, const BridgeEvent** events);
    const char* (*why)();
    void (*set_threads)(unsigned count);
};

inline constexpr const char* bridge_function = "trocar_executorch_bridge";
using BridgeFunction = const Bridge* (*)();

}  // namespace trocar::executorch
