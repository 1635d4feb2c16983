// NVML's functions as far as src/energy uses them, told by a test what to answer.

#include <atomic>
#include <chrono>
#include <cstdio>

namespace {

constexpr int success = 0;
constexpr int invalid_argument = 2;
constexpr unsigned most_devices = 4;
constexpr double tick_seconds = 2e-3;

using Clock = std::chrono::steady_clock;

struct State {
    std::atomic<unsigned> devices{1};
    std::atomic<int> init_status{success};
    std::atomic<int> energy_status{success};
    std::atomic<int> power_status{success};
    std::atomic<double> watts{100};
    std::atomic<bool> reset{false};
    std::atomic<int> started{0};
    Clock::time_point begin = Clock::now();
};
State state;
char handles[most_devices];

}  // namespace

extern "C" {

void fake_nvml_set(unsigned devices, int init_status, int energy_status, int power_status,
                   double watts, bool reset) {
    state.devices = devices;
    state.init_status = init_status;
    state.energy_status = energy_status;
    state.power_status = power_status;
    state.watts = watts;
    state.reset = reset;
}

// How often it was started and not shut down.
int fake_nvml_started() {
    return state.started;
}

int nvmlInit_v2() {
    state.started += state.init_status == success ? 1 : 0;
    return state.init_status;
}

int nvmlShutdown() {
    --state.started;
    return success;
}

const char* nvmlErrorString(int status) {
    switch (status) {
        case 3:
            return "Not Supported";
        case 4:
            return "Insufficient Permissions";
        case 9:
            return "Driver Not Loaded";
        case 15:
            return "GPU is lost";
        default:
            return "Unknown Error";
    }
}

int nvmlDeviceGetCount_v2(unsigned* count) {
    *count = state.devices;
    return success;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
    if (index >= state.devices || index >= most_devices) {
        return invalid_argument;
    }
    *device = &handles[index];
    return success;
}

int nvmlDeviceGetName(void* /*device*/, char* name, unsigned length) {
    std::snprintf(name, length, "Fake GPU");
    return success;
}

// Millijoules, in steps. Each device began at another count.
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* energy) {
    const auto index = static_cast<unsigned long long>(static_cast<char*>(device) - handles);
    const double seconds = std::chrono::duration<double>(Clock::now() - state.begin).count();
    const auto ticks = static_cast<unsigned long long>(seconds / tick_seconds);
    *energy = state.reset ? ticks
                          : 1'000'000'000 * (index + 1) +
                                static_cast<unsigned long long>(static_cast<double>(ticks) *
                                                                tick_seconds * state.watts * 1000);
    return state.energy_status;
}

int nvmlDeviceGetPowerUsage(void* /*device*/, unsigned* power) {
    *power = static_cast<unsigned>(state.watts * 1000);
    return state.power_status;
}

}  // extern "C"
