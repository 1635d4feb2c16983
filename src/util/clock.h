#pragma once

#include <chrono>

namespace trocar {

// On a clock that only goes forward.
inline double now_ns() {
    return std::chrono::duration<double, std::nano>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}
inline double now_seconds() {
    return 1e-9 * now_ns();
}

}  // namespace trocar
