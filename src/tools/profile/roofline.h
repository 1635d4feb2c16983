#pragma once

#include <optional>
#include <string>

#include "tools/profile/rows.h"
#include "trocar/command.h"

namespace trocar::profiles {

// How near a row comes to what the machine can do.
struct Roof {
    std::optional<double> flops;     // per second, reached
    std::optional<double> bytes;     // per second, reached
    std::optional<double> headroom;  // share of what is attainable at its intensity
    std::string
        bound;  // "compute" or "memory": what limits it; "overhead": neither; empty: unknown
};
Roof roof_of(const Row& row, const std::optional<Peaks>& peaks);

// The peaks of this machine with this engine: from the cache, else measured and kept there.
Peaks find_peaks(Context& context, bool measure_anew);

}  // namespace trocar::profiles
