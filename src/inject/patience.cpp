#include "inject/patience.h"

#include <fmt/format.h>

#include <chrono>
#include <ctime>

namespace trocar::inject {

namespace {

double wall_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

double seconds_of(clockid_t clock) {
    timespec time{};
    return ::clock_gettime(clock, &time) == 0
               ? static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec)
               : 0;
}

}  // namespace

Clocks Clocks::now() {
    return {wall_seconds(), seconds_of(CLOCK_PROCESS_CPUTIME_ID)};
}

Clocks Clocks::now_of(pid_t process) {
    clockid_t clock{};
    return {wall_seconds(), ::clock_getcpuclockid(process, &clock) == 0 ? seconds_of(clock) : 0};
}

std::string Patience::text() const {
    return given_ > 0 ? fmt::format("over {:g} s", given_) : "over the time limit";
}

}  // namespace trocar::inject
