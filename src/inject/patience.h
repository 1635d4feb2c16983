#pragma once

#include <sys/types.h>

#include <algorithm>
#include <string>

namespace trocar::inject {

// Two clocks, in seconds: that on the wall, and the processor's for one process.
struct Clocks {
    double wall = 0;
    double busy = 0;

    // Of this process, or of another one of the same user; `busy` is 0 where that one is gone.
    static Clocks now();
    static Clocks now_of(pid_t process);

    Clocks operator-(const Clocks& other) const { return {wall - other.wall, busy - other.busy}; }
};

// How long trials may take before they count as hung. A machine that has much else to do makes
// everything slow, and the golden run that was timed may have had it for itself: unless the user
// gives a limit, what counts is the processor's time, and waiting is allowed for much longer.
class Patience {
public:
    // `given`: seconds on the wall that the user allows; 0: as the golden run says.
    Patience(double given, double golden_seconds)
        : given_(given), limit_(given > 0 ? given : std::max(least, runs * golden_seconds)) {}

    // `taken` by a trial; `factor`: trials that go side by side, in a process that has still to
    // compile much, take longer.
    bool is_over(const Clocks& taken, double factor = 1) const {
        const auto limit = factor * limit_;
        return given_ > 0 ? taken.wall > limit
                          : std::min(taken.busy, taken.wall) > limit || taken.wall > idle * limit;
    }
    // For the record of a hang; the same on every machine.
    std::string text() const;

    static constexpr double least = 10;  // seconds
    static constexpr double runs = 100;  // golden ones
    static constexpr double idle = 10;   // times the limit, for one that only waits

private:
    double given_;
    double limit_;
};

}  // namespace trocar::inject
