#pragma once

#include <compare>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "inject/circuit.h"
#include "inject/lane.h"

namespace trocar::inject {

// Everything that a program of an op depends on, besides the op and the types of its inputs. The
// program is compiled from it, and it is the key under which the program is kept: two programs that
// differ cannot share an entry. Nothing else builds keys.
struct ProgramSpec {
    enum class Form : std::uint8_t {
        whole,      // the op as it is
        positions,  // on windows side by side, see gather.cpp
        channels,   // filters and bias as inputs, see blocks.cpp
        columns,    // a product with some columns of its matrix, see columns.cpp
    };
    std::size_t step = 0;
    Form form = Form::whole;
    std::int64_t width = 0;                 // columns or channels compiled in; 0: those of the op
    std::vector<std::size_t> columns = {};  // which column of the op is in each place
    // A constant of the op with some elements changed.
    struct Baked {
        TensorId tensor = TensorId::none;
        std::vector<ConstantChange::Poke> pokes = {};
        bool operator==(const Baked&) const = default;
    };
    // Of each lane, in order. `whole` has at most one lane; in `columns`, lane i is in place i.
    std::vector<std::vector<Baked>> lanes = {};

    // What a lane changes in the constants of the spec's step. All of it must be pokes.
    void add(const Lane& lane);
    bool operator==(const ProgramSpec&) const = default;
};

// Compiled programs of one runner. Those with changed constants are forgotten, the least recently
// used first, when they take too much memory.
class ProgramCache {
public:
    explicit ProgramCache(const Circuit& circuit) : circuit_(circuit) {}

    // `types`: as for Circuit::compile. The program stays until the next call. Throws what
    // compiling throws.
    OpProgram& get(const ProgramSpec& spec, const std::vector<Value>& types);

private:
    struct Hash {
        std::size_t operator()(const ProgramSpec& spec) const;
    };
    struct Entry {
        OpProgram program;
        std::size_t bytes = 0;
        std::uint64_t used = 0;
    };
    void make_room(std::size_t bytes);

    const Circuit& circuit_;
    std::unordered_map<ProgramSpec, Entry, Hash> entries_;
    std::size_t bytes_ = 0;
    std::uint64_t clock_ = 0;
};

// How the program of a spec departs from its op; each is beside the code that runs it.
Variant positions_variant(const Circuit& circuit, const ProgramSpec& spec);
Variant channels_variant(const Circuit& circuit, const ProgramSpec& spec);
Variant columns_variant(const Circuit& circuit, const ProgramSpec& spec);

}  // namespace trocar::inject
