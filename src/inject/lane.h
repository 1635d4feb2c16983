#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "inject/circuit.h"
#include "trocar/campaign.h"
#include "trocar/fault.h"
#include "trocar/value.h"

namespace trocar::inject {

// All tensors of a run without faults.
struct Golden {
    std::vector<Value> values;         // by TensorId
    std::vector<Geometry> geometries;  // by TensorId
    std::vector<Type> types;           // by TensorId, with shapes
    std::vector<double> seconds;       // by step
    std::size_t bytes = 0;             // of all values that ops wrote
    std::uint64_t id = 0;              // no other golden run has it
    bool partial = false;  // too large to be kept: only inputs and outputs of the model are here
};

// How a tensor of a run with faults differs from the golden one.
struct Patch {
    // All of it, where not empty; its shape may be another one.
    Value whole = {};
    // Where it differs. Not known for some of those that are whole: then it may be everywhere.
    std::vector<std::int32_t> positions = {};
    // Else: the cells of groups low … high at each position, position by position.
    std::int64_t low = 0;
    std::int64_t high = 0;
    std::vector<std::byte> cells = {};

    bool is_whole() const { return whole.kind() != Value::Kind::none; }
    bool everywhere() const { return is_whole() && positions.empty(); }
};

// Elements of a tensor that are changed while a trial runs.
struct TensorChange {
    TensorId tensor = TensorId::none;
    std::size_t reader = no_step;  // the only one that sees it; no_step: all
    // Elements in row-major order of `shape`, the plain one that the tensor had when the fault was
    // resolved. In a run where it has another shape, elements that are not there stay away.
    std::vector<std::uint64_t> places = {};
    Shape shape = {};
    Effect effect = {};
    const CustomEffect* custom = nullptr;
};
// A constant that an op reads, changed before the trial runs.
struct ConstantChange {
    std::size_t step = 0;  // that reads it; no_step: the constant is an output of the model
    TensorId tensor = TensorId::none;
    // Elements by their place in memory, and their new bits.
    struct Poke {
        std::uint64_t stored = 0;
        std::uint64_t word = 0;
        bool operator==(const Poke&) const = default;
    };
    std::vector<Poke> pokes = {};
    std::optional<Constant> constant = std::nullopt;  // all of it, instead
};
// The constant as the change leaves it.
Constant changed(const Constant& original, const ConstantChange& change);

// One run with faults: what is changed, how far it has come, what came of it.
struct Lane {
    std::vector<TensorChange> tensors;
    std::vector<ConstantChange> constants;

    std::size_t first = 0;    // the first step that the faults can reach; all before are golden
    std::size_t pending = 0;  // the last step at which something is still to be changed
    std::vector<std::pair<TensorId, Patch>> patches;  // of tensors that are still to be read
    bool done = false;
    bool bad = false;       // NaN or infinity where the golden run has a number, as monitored
    bool detected = false;  // outside of a monitored range
    std::string failure = {};
    std::vector<LayerEffect>* effects = nullptr;  // filled where it is there

    Patch* patch(TensorId id);
    const Patch* patch(TensorId id) const;
};

// The tensor as a run with faults has it.
Value complete(const Value& golden, const Geometry& geometry, const Patch& patch);

// Does what differs hold NaN? Where max and min of vectors and of single numbers treat it
// differently, a part of an op need not have the bits of the whole.
bool may_have_nan(const Patch& patch, DType dtype);

// The cells of a patch into a tensor that is golden there.
void overlay(const Geometry& geometry, const Patch& patch, std::byte* tensor);

// How `faulty` differs from the golden tensor; nullopt where it does not. Takes the value over.
struct Compared {
    bool same = false;
    Patch patch;
};
Compared compare(const Value& golden, const Geometry& geometry, const Value& faulty);

}  // namespace trocar::inject
