#pragma once

#include <map>
#include <new>
#include <set>
#include <string>

#include "inject/program_cache.h"
#include "inject/runner.h"
#include "trocar/error.h"
#include "util/clock.h"

namespace trocar::inject {

std::uint64_t next_golden();  // for Golden::id
Value copy_of(const Value& value);

// Kernels may sum in another order where memory begins elsewhere: all that an engine is lent begins
// as its own memory does.
inline constexpr std::size_t memory_alignment = 64;
template <class T>
struct Aligned {
    using value_type = T;
    Aligned() = default;
    template <class U>
    Aligned(const Aligned<U>&) {}
    T* allocate(std::size_t count) {
        return static_cast<T*>(
            ::operator new (count * sizeof(T), std::align_val_t{memory_alignment}));
    }
    void deallocate(T* at, std::size_t) {
        ::operator delete (at, std::align_val_t{memory_alignment});
    }
    bool operator==(const Aligned&) const = default;
};
using Buffer = std::vector<std::byte, Aligned<std::byte>>;
// The value itself, or a copy that begins where it must.
Value aligned(const Value& value);

// A lane and the positions of the step's output that its changes can reach.
struct Runner::Job {
    Lane* lane;
    std::vector<std::int32_t> positions;
    Patch made = {};  // where the output differs
};

// Numbers of columns that gathered programs are run with.
inline constexpr std::array<std::size_t, 8> column_classes = {8, 16, 32, 64, 128, 256, 512, 1024};

// What a step needs to be run at some positions only.
struct Gathered {
    enum class State { unknown, works, differs };
    bool failed = false;
    bool checked_finite = false;
    std::array<State, column_classes.size()> states{};
    std::array<double, column_classes.size()> seconds{};  // of one run
    Buffer windows;                                       // input 0, window beside window
    std::vector<Buffer> locals;                           // by local slot
};

// What a step needs to be run at some blocks of output channels only.
struct Blocks {
    std::map<std::size_t, bool> works;  // by the number of blocks
    bool failed = false;
    Buffer filters;
    Buffer bias;
    Buffer added;
    Buffer input;
};

// What a step needs to be run for several lanes as one batch.
struct Stacked {
    // By the number of lanes: how often it has been seen to give what each lane alone gives; -1:
    // it does not.
    std::map<std::size_t, int> seen;
    std::vector<Buffer> inputs;
};

// What a step needs to be run at some columns of a product only: by their number, whether it gives
// the bits of the whole.
struct Columns {
    std::map<std::size_t, bool> works;
};

struct Runner::Parts {
    Parts(const Circuit& circuit, std::size_t steps, std::size_t tensors)
        : programs(circuit),
          shapes(steps),
          gathered(steps),
          blocks(steps),
          stacked(steps),
          columns(steps),
          copies(tensors) {}

    // Kernels depend on shapes: what was seen of parts of a step holds for the shapes it was seen
    // with.
    void meet(const Golden& golden, std::size_t number, const Step& step);

    ProgramCache programs;
    OpProgram replaced;  // with a constant that is replaced as a whole: of the last such run
    std::vector<std::vector<Shape>> shapes;  // by step: of its inputs, when parts were last run

    std::vector<Value> in;
    std::vector<Value> values;  // by TensorId
    std::vector<Gathered> gathered;
    std::vector<Blocks> blocks;
    std::vector<Stacked> stacked;
    std::vector<Columns> columns;
    // Copies of golden tensors that are patched for one run.
    struct Copy {
        std::uint64_t of = 0;  // Golden::id
        Value value;
    };
    std::vector<Copy> copies;  // by TensorId
    std::vector<std::int32_t> slots;
    std::set<std::string> proven;  // programs that run without faults
};

// What an engine refuses is the end of the lane, and its outcome; other errors are thrown on. To be
// called where `error` was caught.
void take_failure(Lane& lane, const Error& error);

// Does a step read NaN that the golden run does not have?
bool sees_nan(const Golden& golden, const Step& step, const Lane& lane);

// Looks at what differs in a tensor of a lane: monitors, and with `clip` mends what is out of
// range. To be called once for a tensor, when all faults are in it.
void look(const Circuit& circuit, const Golden& golden, TensorId id, Patch& patch,
          const Watch& watch, Lane& lane);

}  // namespace trocar::inject
