#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trocar/counting.h"

namespace trocar::summary {

// A constant whose zeros are to be counted, and how to read it.
struct ScanJob {
    const Constant* constant = nullptr;
    std::optional<WeightAxes> axes;
    DType as = DType::undefined;  // of the elements, where bytes hold packed ones; else undefined
    std::uint64_t zero_code =
        0;             // the stored number that stands for 0: a quantization's zero point
    std::string skip;  // not empty: why zeros cannot be counted
};

struct Zeros {
    std::uint64_t elements = 0;
    std::uint64_t zeros = 0;
    // "dense" (under 1 % zeros), "all zero", "2:4", "12.5 % of output channels", "1×16 blocks",
    // "unstructured", "COO" (a sparse constant).
    std::string pattern;
    std::string unavailable;  // not empty: why there are no numbers
};

// One pass at the speed of memory; a second one where there are zeros enough for a pattern. Pages
// of mapped files are given back on the way: resident memory does not grow with the model.
Zeros scan(const ScanJob& job);

// All of them, with `threads` threads; in the order of the jobs.
std::vector<Zeros> scan_all(std::span<const ScanJob> jobs, int threads);

}  // namespace trocar::summary
