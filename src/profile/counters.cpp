#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "trocar/profile.h"

namespace trocar {

namespace {

constexpr std::array<std::uint64_t, 3> events{PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_HW_INSTRUCTIONS,
                                              PERF_COUNT_HW_CACHE_MISSES};

// Threads that are started later are counted too; those of a pool that runs already are not.
int open_event(std::uint64_t event) {
    perf_event_attr attributes{};
    attributes.type = PERF_TYPE_HARDWARE;
    attributes.size = sizeof attributes;
    attributes.config = event;
    attributes.disabled = 1;
    attributes.inherit = 1;
    attributes.exclude_kernel = 1;
    attributes.exclude_hv = 1;
    return static_cast<int>(::syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0));
}

std::string reason() {
    const int error = errno;
    if (error == EACCES || error == EPERM) {
        std::ifstream file("/proc/sys/kernel/perf_event_paranoid");
        std::string level;
        file >> level;
        return fmt::format(
            "the kernel does not allow it (perf_event_paranoid is {}, or a container forbids it)",
            level.empty() ? "unknown" : level);
    }
    if (error == ENOENT || error == EOPNOTSUPP || error == ENODEV) {
        return "this machine has no such counters, as is usual in virtual machines";
    }
    return std::strerror(error);
}

}  // namespace

HardwareCounters::HardwareCounters() {
    for (const auto event : events) {
        const int fd = open_event(event);
        if (fd < 0) {
            unavailable_ = reason();
            return;
        }
        files_.push_back(fd);
    }
}

HardwareCounters::~HardwareCounters() {
    for (const int fd : files_) {
        ::close(fd);
    }
}

void HardwareCounters::start() {
    for (const int fd : files_) {
        ::ioctl(fd, PERF_EVENT_IOC_RESET, 0);
        ::ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
    }
}

Counts HardwareCounters::stop() {
    for (const int fd : files_) {
        ::ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
    }
    return read();
}

Counts HardwareCounters::read() const {
    std::array<std::uint64_t, 3> numbers{};
    for (std::size_t i = 0; i < files_.size(); ++i) {
        if (::read(files_[i], &numbers.at(i), sizeof(std::uint64_t)) != sizeof(std::uint64_t)) {
            numbers.at(i) = 0;
        }
    }
    return {numbers[0], numbers[1], numbers[2]};
}

}  // namespace trocar
