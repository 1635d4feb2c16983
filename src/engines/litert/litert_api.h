#pragma once

#include <cstddef>
#include <cstdint>

#include "util/c_library.h"

// The functions of LiteRT's C API that Trocar calls, by the names that libLiteRt.so exports. Facts
// of its ABI, restated: nothing of LiteRT is needed to build. They are those of the one version
// that library.h names, as others may differ.
namespace trocar::litert {

using c_library::Function;
using c_library::Owned;

// Objects of the engine, known by pointer only.
struct Environment;
struct Source;  // a model as read
struct Configuration;
struct Opaque;  // settings of one part of the engine
struct Compiled;
struct Needs;  // what a buffer must be like
struct Buffer;
struct Profiler;

enum class Status : int { ok = 0 };

// A setting of the environment: a number under a tag.
struct EnvironmentOption {
    int tag = 0;
    struct {
        int kind = 2;  // an integer
        std::int64_t integer = 0;
    } value;
};
inline constexpr int tag_accelerators = 24;  // which are looked for, as bits
inline constexpr int tag_log_severity = 25;
inline constexpr std::int64_t cpu_only = 1;
inline constexpr std::int64_t silent = 5;

struct Layout {
    std::uint32_t head = 0;  // 7 bits of rank, then one for strides
    std::int32_t dims[8] = {};
    std::uint32_t strides[8] = {};
    std::size_t rank() const { return head & 0x7f; }
};
struct TensorType {
    int element = 0;
    Layout layout;
};
static_assert(sizeof(TensorType) == 72);

enum class Lock : int { read = 0, write = 1 };

// One thing that a profiler noted.
struct Event {
    const char* tag = nullptr;
    std::uint64_t kind = 0;
    std::uint64_t start_us = 0;
    std::uint64_t spent_us = 0;
    std::uint64_t memory[6] = {};
    std::int64_t number = 0;    // of an op
    std::int64_t subgraph = 0;  // that the op is in
    std::uint64_t source = 0;
};
static_assert(sizeof(Event) == 104);
inline constexpr std::uint64_t event_op = 2;        // an op of the model
inline constexpr std::uint64_t event_delegate = 8;  // a kernel of a delegate

using Release = void (*)(void*);

struct Api {
    Function<Status(int, const EnvironmentOption*, Environment**)> create_environment{
        "LiteRtCreateEnvironment"};
    // The bytes must outlive the model.
    Function<Status(Environment*, const void*, std::size_t, Source**)> create_model{
        "LiteRtCreateModelFromBuffer"};
    Function<void(Source*)> release_model{"LiteRtDestroyModel"};
    Function<Status(Configuration**)> create_settings{"LiteRtCreateOptions"};
    Function<void(Configuration*)> release_settings{"LiteRtDestroyOptions"};
    Function<Status(Configuration*, int)> set_accelerators{"LiteRtSetOptionsHardwareAccelerators"};
    Function<Status(const char*, void*, Release, Opaque**)> create_opaque{
        "LiteRtCreateOpaqueOptions"};
    Function<Status(Configuration*, Opaque*)> add_opaque{"LiteRtAddOpaqueOptions"};
    Function<Status(Environment*, Source*, Configuration*, Compiled**)> compile{
        "LiteRtCreateCompiledModel"};
    Function<void(Compiled*)> release_compiled{"LiteRtDestroyCompiledModel"};
    // Of the signature and the place in it.
    Function<Status(Compiled*, std::size_t, std::size_t, Layout*)> input_layout{
        "LiteRtGetCompiledModelInputTensorLayout"};
    Function<Status(Compiled*, std::size_t, std::size_t, Layout*, bool)> output_layouts{
        "LiteRtGetCompiledModelOutputTensorLayouts"};
    Function<Status(Compiled*, std::size_t, std::size_t, Needs**)> input_needs{
        "LiteRtGetCompiledModelInputBufferRequirements"};
    Function<Status(Compiled*, std::size_t, std::size_t, Needs**)> output_needs{
        "LiteRtGetCompiledModelOutputBufferRequirements"};
    Function<Status(Needs*, std::size_t*)> needed_size{
        "LiteRtGetTensorBufferRequirementsBufferSize"};
    Function<Status(Environment*, const TensorType*, Needs*, Buffer**)> create_buffer{
        "LiteRtCreateManagedTensorBufferFromRequirements"};
    Function<void(Buffer*)> release_buffer{"LiteRtDestroyTensorBuffer"};
    Function<Status(Buffer*, void**, Lock)> lock{"LiteRtLockTensorBuffer"};
    Function<Status(Buffer*)> unlock{"LiteRtUnlockTensorBuffer"};
    Function<Status(Compiled*, std::size_t, std::size_t, Buffer**, std::size_t, Buffer**)> run{
        "LiteRtRunCompiledModel"};
    Function<Status(Compiled*, char**)> messages{"LiteRtCompiledModelGetErrorMessages"};
    Function<Status(Compiled*)> clear_messages{"LiteRtCompiledModelClearErrors"};
    Function<Status(Compiled*, Profiler**)> profiler{"LiteRtCompiledModelGetProfiler"};
    Function<Status(Profiler*)> start_profiler{"LiteRtStartProfiler"};
    Function<Status(Profiler*)> stop_profiler{"LiteRtStopProfiler"};
    Function<Status(Profiler*)> reset_profiler{"LiteRtResetProfiler"};
    Function<Status(Profiler*, int*)> event_count{"LiteRtGetNumProfilerEvents"};
    Function<Status(Profiler*, int, Event*)> events{"LiteRtGetProfilerEvents"};

    // Calls `visit` with every function.
    template <class Visitor>
    void each(Visitor visit) {
        visit(create_environment);
        visit(create_model);
        visit(release_model);
        visit(create_settings);
        visit(release_settings);
        visit(set_accelerators);
        visit(create_opaque);
        visit(add_opaque);
        visit(compile);
        visit(release_compiled);
        visit(input_layout);
        visit(output_layouts);
        visit(input_needs);
        visit(output_needs);
        visit(needed_size);
        visit(create_buffer);
        visit(release_buffer);
        visit(lock);
        visit(unlock);
        visit(run);
        visit(messages);
        visit(clear_messages);
        visit(profiler);
        visit(start_profiler);
        visit(stop_profiler);
        visit(reset_profiler);
        visit(event_count);
        visit(events);
    }
};

}  // namespace trocar::litert
