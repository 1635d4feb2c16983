#pragma once

#include <map>
#include <string>

#include "inject/runner.h"
#include "trocar/error.h"
#include "util/clock.h"

namespace trocar::inject {

std::uint64_t next_golden();  // for Golden::id
Value copy_of(const Value& value);

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
    OpProgram made;
    bool failed = false;
    bool checked_finite = false;
    std::array<State, column_classes.size()> states{};
    std::array<double, column_classes.size()> seconds{};  // of one run
    std::vector<std::byte> windows;                       // input 0, window beside window
    std::vector<std::vector<std::byte>> locals;           // by local slot
};

// What a step needs to be run at some blocks of output channels only.
struct Blocks {
    std::map<std::int64_t, OpProgram> made;  // depthwise: by the number of blocks; else 0
    std::map<std::size_t, bool> works;       // by the number of blocks
    bool failed = false;
    std::vector<std::byte> filters;
    std::vector<std::byte> bias;
    std::vector<std::byte> added;
    std::vector<std::byte> input;
};

// What a step needs to be run for several lanes as one batch.
struct Stacked {
    // By the number of lanes: how often it has been seen to give what each lane alone gives; -1:
    // it does not.
    std::map<std::size_t, int> seen;
    std::vector<std::vector<std::byte>> inputs;
};

// What a step needs to be run at some columns of a product only: by their number, whether it gives
// the bits of the whole.
struct Columns {
    std::map<std::size_t, bool> works;
};

// Programs with changed constants: the same trial comes again with every input.
class Rebuilt {
public:
    OpProgram* find(const std::string& key) {
        const auto found = programs_.find(key);
        return found == programs_.end() ? nullptr : &found->second;
    }
    // Forgets all of them where there would be too many.
    OpProgram& keep(std::string key, OpProgram program, std::size_t bytes) {
        if (bytes_ + bytes > most_bytes) {
            programs_.clear();
            bytes_ = 0;
        }
        bytes_ += bytes;
        return programs_[std::move(key)] = std::move(program);
    }

private:
    static constexpr std::size_t most_bytes = std::size_t{256} << 20;
    std::map<std::string, OpProgram> programs_;
    std::size_t bytes_ = 0;
};

struct Runner::Parts {
    Parts(std::size_t steps, std::size_t tensors)
        : gathered(steps), blocks(steps), stacked(steps), columns(steps), copies(tensors) {}

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
    Rebuilt rebuilt;
};

// What an engine refuses is the end of the lane, and its outcome; other errors are thrown on. To be
// called where `error` was caught.
void take_failure(Lane& lane, const Error& error);

// Does a step read NaN that the golden run does not have?
bool sees_nan(const Golden& golden, const Step& step, const Lane& lane);

// Looks at what differs in a tensor of a lane: monitors, and with `clip` mends what is out of
// range.
void look(const Circuit& circuit, const Golden& golden, TensorId id, Patch& patch,
          const Watch& watch, Lane& lane);

}  // namespace trocar::inject
