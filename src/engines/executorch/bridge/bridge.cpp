#include "bridge.h"

#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/extension/memory_allocator/malloc_memory_allocator.h>
#include <executorch/runtime/core/event_tracer.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/platform/platform.h>
#include <executorch/runtime/platform/runtime.h>

#include <chrono>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// Not in the headers of the wheel.
namespace executorch::extension::threadpool {
class ThreadPool {
public:
    bool _unsafe_reset_threadpool(std::uint32_t count);  // NOLINT(readability-identifier-naming)
};
ThreadPool* get_threadpool();
}  // namespace executorch::extension::threadpool

namespace trocar::executorch {

namespace {

namespace et = ::executorch::runtime;
using ::executorch::aten::ScalarType;
using ::executorch::extension::BufferDataLoader;
using ::executorch::extension::MallocMemoryAllocator;

constexpr std::size_t longest_reason = 2000;

std::string& reason() {
    thread_local std::string text;
    return text;
}

void note(std::string_view text) {
    auto& all = reason();
    if (all.size() + text.size() < longest_reason) {
        all += (all.empty() ? "" : "; ") + std::string(text);
    }
}

void keep_message(et_timestamp_t, et_pal_log_level_t level, const char*, const char*, std::size_t,
                  const char* message, std::size_t length) {
    if (level == kError || level == kFatal) {
        note({message, length});
    }
}

// ExecuTorch ends the process where a kernel is given what it does not take. Inside of `guarded`
// that is an error like any other; elsewhere, as on threads of its own, the process ends as before.
struct Aborted {};
thread_local bool is_guarded = false;

void (*own_stop)() = nullptr;  // ExecuTorch's

void stop() {
    if (is_guarded) {
        throw Aborted{};
    }
    own_stop();
}

template <class F>
auto guarded(F work, decltype(work()) otherwise) -> decltype(work()) {
    const bool before = std::exchange(is_guarded, true);
    try {
        auto result = work();
        is_guarded = before;
        return result;
    } catch (const Aborted&) {
        is_guarded = before;
        note("a kernel is given what it does not take");
        return otherwise;
    }
}

double now_ns() {
    return std::chrono::duration<double, std::nano>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// Times the instructions, and nothing below them.
class Tracer final : public et::EventTracer {
public:
    std::vector<BridgeEvent> events;

    void create_event_block(const char*) override { events.clear(); }
    et::EventTracerEntry start_profiling(const char* name, et::ChainID, et::DebugHandle) override {
        et::EventTracerEntry entry{};
        entry.event_id = -1;
        if (std::strcmp(name, "OPERATOR_CALL") == 0 || std::strcmp(name, "DELEGATE_CALL") == 0) {
            entry.event_id = static_cast<std::int64_t>(events.size());
            events.push_back({static_cast<std::int64_t>(debug_handle_), now_ns(), 0});
        }
        return entry;
    }
    void end_profiling(et::EventTracerEntry entry) override {
        if (entry.event_id >= 0 && entry.event_id < static_cast<std::int64_t>(events.size())) {
            auto& event = events[static_cast<std::size_t>(entry.event_id)];
            event.spent_ns = now_ns() - event.start_ns;
        }
    }
    et::EventTracerEntry start_profiling_delegate(const char*, et::DelegateDebugIntId) override {
        et::EventTracerEntry entry{};
        entry.event_id = -1;
        return entry;
    }
    void end_profiling_delegate(et::EventTracerEntry, const void*, std::size_t) override {}
    void log_profiling_delegate(const char*, et::DelegateDebugIntId, et_timestamp_t, et_timestamp_t,
                                const void*, std::size_t) override {}
    void track_allocation(et::AllocatorID, std::size_t) override {}
    et::AllocatorID track_allocator(const char*) override { return 0; }
    et::Result<bool> log_evalue(const et::EValue&, et::LoggedEValueType) override { return true; }
    et::Result<bool> log_intermediate_output_delegate(const char*, et::DelegateDebugIntId,
                                                      const ::executorch::aten::Tensor&) override {
        return true;
    }
    et::Result<bool> log_intermediate_output_delegate(
        const char*, et::DelegateDebugIntId,
        const et::ArrayRef<::executorch::aten::Tensor>) override {
        return true;
    }
    et::Result<bool> log_intermediate_output_delegate(const char*, et::DelegateDebugIntId,
                                                      const int&) override {
        return true;
    }
    et::Result<bool> log_intermediate_output_delegate(const char*, et::DelegateDebugIntId,
                                                      const bool&) override {
        return true;
    }
    et::Result<bool> log_intermediate_output_delegate(const char*, et::DelegateDebugIntId,
                                                      const double&) override {
        return true;
    }
    void set_delegation_intermediate_output_filter(et::EventTracerFilterBase*) override {}
};

bool failed(et::Error error, const char* what) {
    if (error == et::Error::Ok) {
        return false;
    }
    note(std::string(what) + ": " + et::to_string(error));
    return true;
}

}  // namespace

struct BridgeProgram {
    std::optional<BufferDataLoader> loader;
    std::optional<et::Program> program;
    std::string method_name;
    MallocMemoryAllocator method_memory;
    MallocMemoryAllocator scratch;
    std::vector<std::unique_ptr<std::uint8_t[]>> buffers;
    std::vector<et::Span<std::uint8_t>> spans;
    std::optional<et::HierarchicalAllocator> planned;
    std::optional<et::MemoryManager> memory;
    std::optional<et::Method> method;
    std::vector<std::vector<std::uint8_t>> own_outputs;  // where none are planned
    std::vector<std::int64_t> scalars;                   // outputs that are numbers
    Tracer tracer;

    bool load(const void* bytes, std::size_t size, bool time_instructions) {
        loader.emplace(bytes, size);
        auto loaded = et::Program::load(&*loader, et::Program::Verification::InternalConsistency);
        if (failed(loaded.error(), "the program")) {
            return false;
        }
        program.emplace(std::move(*loaded));
        method_name = "forward";
        if (!program->method_meta(method_name.c_str()).ok()) {
            const auto first = program->get_method_name(0);
            if (failed(first.error(), "its first method")) {
                return false;
            }
            method_name = *first;
        }
        reason().clear();
        const auto meta = program->method_meta(method_name.c_str());
        if (failed(meta.error(), "its method")) {
            return false;
        }
        for (std::size_t i = 0; i < meta->num_memory_planned_buffers(); ++i) {
            const auto wanted = meta->memory_planned_buffer_size(i);
            if (failed(wanted.error(), "its memory") || *wanted < 0) {
                return false;
            }
            const auto count = static_cast<std::size_t>(*wanted);
            buffers.emplace_back(new (std::nothrow) std::uint8_t[count + 64]());
            if (buffers.back() == nullptr) {
                note("there is not enough memory for its plan");
                return false;
            }
            auto* start = buffers.back().get();
            start += (64 - reinterpret_cast<std::uintptr_t>(start) % 64) % 64;
            spans.emplace_back(start, count);
        }
        planned.emplace(et::Span<et::Span<std::uint8_t>>(spans.data(), spans.size()));
        memory.emplace(&method_memory, &*planned, &scratch);
        auto found = program->load_method(method_name.c_str(), &*memory,
                                          time_instructions ? &tracer : nullptr);
        if (failed(found.error(), "its method")) {
            return false;
        }
        method.emplace(std::move(*found));
        return own_memory(*meta);
    }

    bool own_memory(const et::MethodMeta& meta) {
        own_outputs.resize(meta.num_outputs());
        scalars.resize(meta.num_outputs());
        for (std::size_t i = 0; i < meta.num_outputs(); ++i) {
            const auto info = meta.output_tensor_meta(i);
            if (info.ok() && !info->is_memory_planned() && info->nbytes() > 0) {
                own_outputs[i].resize(info->nbytes());
                // Fails where the output is a constant or an input, which have their memory.
                (void)method->set_output_data_ptr(own_outputs[i].data(), own_outputs[i].size(), i);
            }
        }
        reason().clear();
        return true;
    }
};

namespace {

BridgeProgram* load(const void* bytes, std::size_t size, bool time_instructions) {
    reason().clear();
    auto program = std::make_unique<BridgeProgram>();
    return program->load(bytes, size, time_instructions) ? program.release() : nullptr;
}

void release(BridgeProgram* program) {
    delete program;
}

std::size_t input_count(const BridgeProgram* program) {
    return program->method->inputs_size();
}

std::size_t output_count(const BridgeProgram* program) {
    return program->method->outputs_size();
}

int set_input(BridgeProgram* program, std::size_t number, const BridgeTensor* given) {
    reason().clear();
    std::int32_t sizes[most_dimensions];
    std::int32_t strides[most_dimensions];
    std::uint8_t order[most_dimensions];
    std::int32_t step = 1;
    for (int i = given->rank; i-- > 0;) {
        sizes[i] = given->sizes[i];
        strides[i] = step;
        order[i] = static_cast<std::uint8_t>(i);
        step *= given->sizes[i] > 0 ? given->sizes[i] : 1;
    }
    ::executorch::aten::TensorImpl implementation(static_cast<ScalarType>(given->scalar_type),
                                                  given->rank, sizes,
                                                  const_cast<void*>(given->data), order, strides);
    const auto error =
        program->method->set_input(et::EValue(::executorch::aten::Tensor(&implementation)), number);
    return failed(error, "an input") ? 1 : 0;
}

int run(BridgeProgram* program) {
    reason().clear();
    program->tracer.events.clear();
    return guarded(
        [&] {
            const auto error = program->method->execute();
            program->scratch.reset();
            return failed(error, "running it") ? 1 : 0;
        },
        1);
}

int output(BridgeProgram* program, std::size_t number, BridgeTensor* made) {
    reason().clear();
    const auto& value = program->method->get_output(number);
    *made = BridgeTensor{};
    if (value.isTensor()) {
        const auto tensor = value.toTensor();
        if (tensor.dim() > most_dimensions) {
            note("an output has too many dimensions");
            return 1;
        }
        made->scalar_type = static_cast<int>(tensor.scalar_type());
        made->rank = static_cast<int>(tensor.dim());
        for (int i = 0; i < made->rank; ++i) {
            made->sizes[i] = static_cast<std::int32_t>(tensor.size(i));
        }
        made->data = tensor.const_data_ptr();
        made->bytes = tensor.nbytes();
        return 0;
    }
    auto& kept = program->scalars[number];
    made->data = &kept;
    made->bytes = sizeof kept;
    if (value.isInt()) {
        made->scalar_type = static_cast<int>(ScalarType::Long);
        kept = value.toInt();
        return 0;
    }
    if (value.isDouble()) {
        made->scalar_type = static_cast<int>(ScalarType::Double);
        const double number_given = value.toDouble();
        std::memcpy(&kept, &number_given, sizeof kept);
        return 0;
    }
    if (value.isBool()) {
        made->scalar_type = static_cast<int>(ScalarType::Bool);
        kept = value.toBool() ? 1 : 0;
        made->bytes = 1;
        return 0;
    }
    note("an output is neither a tensor nor a number");
    return 1;
}

std::size_t events(const BridgeProgram* program, const BridgeEvent** found) {
    *found = program->tracer.events.data();
    return program->tracer.events.size();
}

const char* why() {
    return reason().c_str();
}

void set_threads(unsigned count) {
    if (auto* pool = ::executorch::extension::threadpool::get_threadpool()) {
        pool->_unsafe_reset_threadpool(count);
    }
}

const Bridge bridge{bridge_version, load,   release, input_count, output_count, set_input, run,
                    output,         events, why,     set_threads};

}  // namespace

extern "C" __attribute__((visibility("default"))) const Bridge* trocar_executorch_bridge() {
    static std::once_flag once;
    std::call_once(once, [] {
        auto platform = et::PalImpl::create(keep_message, __FILE__);
        own_stop = {et::get_pal_impl()->abort};
        platform.abort = stop;
        et::register_pal(platform);
        et::runtime_init();
    });
    return &bridge;
}

}  // namespace trocar::executorch
