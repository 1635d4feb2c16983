#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/summary/parameters.h"
#include "tools/summary/scope.h"
#include "trocar/counting.h"

namespace trocar::summary {

// Numbers that add up over ops.
struct Sums {
    std::uint64_t ops = 0;
    std::uint64_t parameters = 0;
    std::uint64_t parameter_bytes = 0;
    std::uint64_t shared_parameters = 0;  // read here, counted at an earlier op
    std::uint64_t buffers = 0;
    std::uint64_t weights = 0;  // elements whose zeros were counted
    std::uint64_t zeros = 0;
    std::uint64_t macs = 0;
    std::uint64_t effective_macs = 0;  // those with weights that are not zero
    std::uint64_t other_flops = 0;
    std::uint64_t read = 0;
    std::uint64_t written = 0;
    std::uint64_t uncounted = 0;  // ops whose arithmetic is unknown
    std::uint64_t unsized = 0;    // ops whose traffic is unknown

    std::uint64_t flops() const;
    // `times`: how often it all runs; parameters are there once.
    void add(const Sums& more, std::uint64_t times = 1);
};

// One op of the model, or of a body.
struct OpRow {
    static constexpr std::size_t none = static_cast<std::size_t>(-1);

    const Scope* scope = nullptr;
    OpId op = OpId::none;
    std::size_t place = 0;      // in order, within its graph
    std::size_t inside = none;  // row of the op whose body it is in
    std::string body;           // which body: "then_branch"
    std::string label;          // last part of its name, its type when it has none
    std::string type;           // with the domain where it is not the dialect's own
    std::string attributes;
    std::uint64_t times = 1;  // how often it runs in one run of the model
    bool times_known = true;  // false: `times` is for one iteration
    bool taken = true;        // false: in a branch that the run did not go into
    bool has_bodies = false;  // its sums are those of its bodies
    OpCount count;
    Sums sums;                                  // of one run of the model; `times` is in it
    std::optional<std::uint64_t> output_bytes;  // of one time
    std::string pattern;                        // of the zeros of its weight
    std::string no_zeros;                       // why zeros are not known
    std::uint64_t structure = 0;  // equal for ops of equal type, attributes, shapes and dtypes
};

// Why an op is not counted, and how many there are.
struct Uncounted {
    std::string type;
    std::string why;
    std::uint64_t ops = 0;
    std::string example;
};

struct Rows {
    std::vector<OpRow> rows;  // in order; those of a body right after their op
    Sums total;
    std::uint64_t arithmetic = 0;  // ops counted, with arithmetic
    std::uint64_t movement = 0;    // ops without arithmetic
    std::uint64_t passing = 0;     // ops that only stand for a constant: no rows
    std::uint64_t not_taken = 0;   // ops in branches that the run did not go into
    std::vector<Uncounted> uncounted;
    std::map<std::string, Sums> by_type;
    std::map<std::string, std::uint64_t> macs_by_dtype;
    bool some_per_iteration = false;
    bool some_branch_open = false;  // without a run: both branches of an If are counted
};

// Counts everything. `zeros`, by number of ScanJob, may be empty: then there are none.
Rows count_rows(const Scope& scope, const Inventory& inventory, const std::vector<Zeros>& zeros,
                bool ran);

// The inputs and outputs of an op as texts; constants that are no parameters are left out of
// inputs.
std::vector<std::string> input_texts(const OpRow& row);
std::vector<std::string> output_texts(const OpRow& row);
// Where the shapes of its outputs come from: "run", "declared", "unavailable: why".
std::string shapes_from(const OpRow& row);

// Adds a number to a hash.
std::uint64_t mix(std::uint64_t hash, std::uint64_t more);

}  // namespace trocar::summary
