#pragma once

#include <memory>

#include "ops/survey.h"

namespace trocar::ops {

// An operator that can be called again and again, in one of the cache modes.
class Load {
public:
    virtual ~Load() = default;
    // Calls it so often. Returns the nanoseconds that the calls took, and nothing else did.
    virtual double run(std::uint64_t calls) = 0;
    // Operators in one call: more than one in a chain.
    virtual std::uint64_t operators() const { return 1; }
    // Inputs and outputs of the program that is called.
    virtual std::size_t ports() const = 0;
};

// Throws Error(unsupported) where the mode makes no sense for the operator: the reason is for the
// reader.
std::unique_ptr<Load> make_load(const Survey& survey, const Found& found, CacheMode mode);
// The whole model, as the engine likes it best.
std::unique_ptr<Load> make_whole(const Model& model, Engine& engine,
                                 const std::vector<NamedValue>& inputs);

// What calls cost beside the op.
class CallCostMeter {
public:
    explicit CallCostMeter(Engine& engine);
    ~CallCostMeter();
    // Takes so many rounds of short samples now; the answer is of these alone.
    CallCost measure(int rounds);

private:
    std::vector<std::unique_ptr<Load>> loads_;
};

// Bytes of the last cache of this machine.
std::size_t last_cache_bytes();

}  // namespace trocar::ops
