#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "tools/summary/scope.h"
#include "tools/summary/weights.h"

namespace trocar::summary {

// A constant that an op reads, directly or through ops that only pass it on.
struct ConstantUse {
    const Constant* constant = nullptr;
    Role role = Role::none;
    bool declared = false;  // the file says what it is: it counts once, whoever reads it
    std::size_t slot = 0;
    std::uint64_t count = 0;  // parameters, or elements
    std::uint64_t bytes = 0;  // as stored
    bool counts = false;      // false: the same parameter was counted at an earlier op
    std::size_t scan = 0;     // number of its ScanJob; only for parameters
};

// What the layers of a model have.
//
// A parameter is a constant in a parameter's role (trocar/counting.h). One constant behind several
// ops: a matrix or kernel is tied, and counts once; a vector counts once for each layer, because
// exporters store equal vectors of different layers once. Ops are the same layer when they have the
// same module path, or, where there is none, the same matrix. `stored` counts every constant once.
struct Inventory {
    std::map<const Scope*, std::map<OpId, std::vector<ConstantUse>>> uses;
    std::vector<ScanJob> jobs;  // one for each stored parameter

    std::uint64_t parameters = 0;
    std::uint64_t parameter_bytes = 0;
    std::uint64_t stored = 0;  // parameters, every constant once
    std::uint64_t stored_bytes = 0;
    std::uint64_t stored_tensors = 0;
    std::uint64_t buffers = 0;
    std::uint64_t buffer_bytes = 0;
    std::uint64_t constants = 0;  // every constant once
    std::uint64_t constant_bytes = 0;
    std::uint64_t read_bytes = 0;  // of all constants that ops read, every one once
    std::uint64_t unread = 0;      // constants that nothing reads
    std::uint64_t unread_bytes = 0;
    std::map<DType, std::pair<std::uint64_t, std::uint64_t>> by_dtype;  // stored parameters, bytes

    const std::vector<ConstantUse>& of(const Scope& scope, OpId op) const;
};

Inventory take_inventory(const Scope& scope);

}  // namespace trocar::summary
