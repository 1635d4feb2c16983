#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "inject/circuit.h"
#include "inject/lane.h"
#include "trocar/campaign.h"
#include "trocar/error.h"

namespace trocar::inject {

// What was done, and what was not, for `--explain`.
struct Saved {
    std::uint64_t lanes = 0;
    std::uint64_t skipped = 0;       // steps before the fault
    std::uint64_t clean = 0;         // steps after it whose inputs were golden
    std::uint64_t after_death = 0;   // steps after all tensors were golden again
    std::uint64_t whole = 0;         // ops run whole
    std::uint64_t gathered = 0;      // ops run at the positions that were reached
    std::uint64_t positions = 0;     // that these were
    std::uint64_t blocks = 0;        // blocks of output channels run with changed filters
    std::uint64_t stacked = 0;       // ops run whole, several lanes as one batch
    std::uint64_t columns = 0;       // columns of products run with a changed matrix
    std::uint64_t rebuilt = 0;       // ops compiled anew with a changed constant
    std::uint64_t uncalibrated = 0;  // times that parts of an op did not have the bits of the whole
    double seconds_whole = 0;
    double seconds_gathered = 0;
    double seconds_stacked = 0;
    double seconds_columns = 0;
    double seconds_blocks = 0;
    double seconds_rebuilt = 0;

    Saved& operator+=(const Saved& other);
};

// What every run looks at besides the outputs.
struct Watch {
    bool nan_everywhere = false;  // NaN and infinity in all tensors, not only outputs
    Ranges ranges = Ranges::off;
    struct Bounds {
        double low = 0;
        double high = 0;
    };
    std::vector<std::optional<Bounds>> bounds;  // by TensorId
};

// Runs a circuit for one thread: golden, and with faults. Runs with faults have the bits of
// `run_plainly`, whatever is switched on.
class Runner {
public:
    Runner(const Circuit& circuit, const Accelerate& accelerate);
    ~Runner();

    // Keeps all tensors unless they are over the budget. `seen` is shown each one that an op wrote.
    Golden golden(const std::vector<NamedValue>& inputs,
                  std::size_t budget = std::numeric_limits<std::size_t>::max(),
                  const std::function<void(TensorId, const Value&)>& seen = {});
    // All lanes to their end; they keep patches of the model's outputs. `golden` must stay in
    // place.
    void run(const Golden& golden, std::span<Lane> lanes, const Watch& watch);
    // Brute force: every op of the model, from its inputs on, with the faults in place.
    void run_plainly(const Golden& golden, Lane& lane, const Watch& watch);
    // Compiles some ops once more, with their constants set anew, as runs with faults do. Throws
    // Error where that does not give the golden bits.
    void rehearse(const Golden& golden);

    const Saved& saved() const { return saved_; }
    void forget_saved() { saved_ = {}; }

private:
    struct Parts;
    struct Job;

    void run_golden(Golden& golden, std::size_t number);
    void forget_read(Golden& golden, std::size_t number) const;
    OpProgram& program(std::size_t step, const Golden& golden);
    std::vector<Value> run_program(OpProgram& program, const Step& step,
                                   const std::vector<Value>& values);
    void step(const Golden& golden, std::size_t number, std::span<Lane*> lanes, const Watch& watch);
    void run_whole(const Golden& golden, std::size_t number, Lane& lane, const Watch& watch);
    OpProgram& rebuilt(const Golden& golden, std::size_t number, const Lane& lane);
    void run_reader(const Golden& golden, std::size_t number, Lane& lane, const Watch& watch);
    void finish(const Golden& golden, std::size_t number, Lane& lane,
                std::vector<std::pair<TensorId, Patch>>&& outputs, const Watch& watch);
    void look_at(const Golden& golden, std::span<const TensorId> written, Lane& lane,
                 const Watch& watch) const;
    void change_written(const Golden& golden, std::size_t number, Lane& lane) const;
    void change(const Golden& golden, Lane& lane, const TensorChange& change) const;
    Value lend(const Golden& golden, TensorId id, const Patch& patch);
    void give_back(const Golden& golden, TensorId id, const Patch& patch);

    // prove.cpp
    void try_step(const Golden& golden, std::size_t number,
                  std::span<const ConstantChange> changes);
    // Only what the fault did is an outcome: throws Error(engine) where the step fails without it,
    // too. `error` is what the step of the lane ended with.
    void prove(const Golden& golden, std::size_t number, const Lane& lane, const Error& error);

    // gather.cpp
    bool can_gather(const Golden& golden, std::size_t number, const Lane& lane,
                    std::vector<std::int32_t>& positions);
    void run_gathered(const Golden& golden, std::size_t number, std::span<Job> jobs,
                      const Watch& watch);
    Value run_positions(const Golden& golden, std::size_t number, std::size_t columns);
    bool calibrated(const Golden& golden, std::size_t number, std::size_t size_class);
    void gather(const Golden& golden, std::size_t number, std::span<const Job> jobs,
                std::size_t first, std::size_t count, std::size_t columns);

    // stack.cpp
    bool can_stack(const Golden& golden, std::size_t number, const Lane& lane) const;
    void run_stacked(const Golden& golden, std::size_t number, std::span<Lane*> lanes,
                     const Watch& watch);
    bool run_some_stacked(const Golden& golden, std::size_t number, std::span<Lane*> lanes,
                          const Watch& watch);

    // columns.cpp
    bool can_column(const Golden& golden, std::size_t number, const Lane& lane) const;
    void run_columns_of(const Golden& golden, std::size_t number, std::span<Lane*> lanes,
                        const Watch& watch);

    // blocks.cpp
    bool can_block(const Golden& golden, std::size_t number, const Lane& lane) const;
    Value run_filters(const Golden& golden, std::size_t number,
                      const std::vector<std::int64_t>& blocks, std::span<Lane* const> lanes);
    void run_blocks(const Golden& golden, std::size_t number, std::span<Lane*> lanes,
                    const Watch& watch);

    const Circuit& circuit_;
    Accelerate accelerate_;
    Saved saved_;
    std::vector<OpProgram> programs_;  // by step
    std::unique_ptr<Parts> parts_;
};

// Applies a change to the elements of a tensor that is all there.
void change_all(const TensorChange& change, const Layout& layout, Value& value);

}  // namespace trocar::inject
