#include <fmt/format.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "ops/load.h"
#include "trocar/op_store.h"
#include "util/sha256.h"
#include "util/text.h"

namespace trocar {

namespace {

std::string cpu_field(const std::string& wanted) {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        const auto colon = line.find(':');
        if (colon != std::string::npos && trim(line.substr(0, colon)) == wanted) {
            return std::string(trim(line.substr(colon + 1)));
        }
    }
    return "";
}

}  // namespace

OpHost this_host() {
    OpHost host;
    host.cpu = cpu_field("model name");
    host.cores = static_cast<int>(std::thread::hardware_concurrency());
    host.cache_bytes = ops::last_cache_bytes();
    struct sysinfo info {};
    if (::sysinfo(&info) == 0) {
        // Rounded: what the system keeps for itself differs from boot to boot.
        const auto bytes = static_cast<std::uint64_t>(info.totalram) * info.mem_unit;
        host.memory_bytes = (bytes >> 28U) << 28U;
    }
    struct utsname system {};
    if (::uname(&system) == 0) {
        host.system = fmt::format("{} {}", system.sysname, system.machine);
    }
    if ((" " + cpu_field("flags") + " ").find(" hypervisor ") != std::string::npos) {
        host.hypervisor = "a virtual machine";
    }
    const auto text =
        fmt::format("{}|{}|{}|{}|{}|{}|{}", host.cpu, host.cores, host.cache_bytes,
                    host.memory_bytes, host.system, host.hypervisor, cpu_field("flags"));
    host.fingerprint = sha256_of(text).substr(0, 16);
    return host;
}

}  // namespace trocar
