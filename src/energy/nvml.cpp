#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "energy/reader.h"

namespace trocar::energy {

namespace {

constexpr double millijoule = 1e-3;
constexpr double milliwatt = 1e-3;
// Since Ampere the driver's power is an average over a second.
constexpr double averaged_seconds = 1;

// The part of NVML that is used, as in its documentation.
using Device = void*;
using Status = int;
constexpr Status success = 0;
constexpr Status no_permission = 4;

struct Library {
    void* handle = nullptr;
    Status (*init)() = nullptr;
    Status (*shutdown)() = nullptr;
    const char* (*text_of)(Status) = nullptr;
    Status (*device_count)(unsigned*) = nullptr;
    Status (*device_at)(unsigned, Device*) = nullptr;
    Status (*device_name)(Device, char*, unsigned) = nullptr;
    Status (*total_energy)(Device, unsigned long long*) = nullptr;  // mJ; drivers before 2017: none
    Status (*power_usage)(Device, unsigned*) = nullptr;             // mW

    Library() = default;
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;
    ~Library() {
        if (started) {
            shutdown();
        }
        if (handle != nullptr) {
            ::dlclose(handle);
        }
    }

    // Why not; empty: it is there.
    std::string open(const std::string& path) {
        handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (handle == nullptr) {
            const char* reason = ::dlerror();
            return fmt::format("'{}' cannot be loaded: {}", path,
                               reason != nullptr ? reason : "unknown reason");
        }
        const auto find = [&](auto& function, const char* name) {
            function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
                ::dlsym(handle, name));
            return function != nullptr;
        };
        find(total_energy, "nvmlDeviceGetTotalEnergyConsumption");
        find(device_name, "nvmlDeviceGetName");
        find(text_of, "nvmlErrorString");
        if (!find(init, "nvmlInit_v2") || !find(shutdown, "nvmlShutdown") ||
            !find(device_count, "nvmlDeviceGetCount_v2") ||
            !find(device_at, "nvmlDeviceGetHandleByIndex_v2") ||
            !find(power_usage, "nvmlDeviceGetPowerUsage")) {
            return fmt::format("'{}' lacks functions of NVML", path);
        }
        const auto status = init();
        started = status == success;
        return started ? "" : fmt::format("NVML cannot be started: {}", reason_of(status));
    }

    std::string reason_of(Status status) const {
        const char* text = text_of != nullptr ? text_of(status) : nullptr;
        return text != nullptr ? text : fmt::format("error {}", status);
    }

    std::string name_of(Device device) const {
        std::array<char, 97> name{};
        if (device_name == nullptr || device_name(device, name.data(), 96) != success) {
            return {};
        }
        return name.data();
    }

    bool started = false;
};

struct Gpu {
    Device device = nullptr;
    std::string name;
};

class NvmlReader final : public Reader {
public:
    NvmlReader(std::unique_ptr<Library> library, std::vector<Gpu> gpus, bool energy)
        : library_(std::move(library)), gpus_(std::move(gpus)), energy_(energy) {}

    Value read(std::size_t channel) override {
        Value value;
        const auto& gpu = gpus_[channel];
        Status status = success;
        if (energy_) {
            unsigned long long count = 0;
            status = library_->total_energy(gpu.device, &count);
            value.count = count;
        } else {
            unsigned power = 0;
            status = library_->power_usage(gpu.device, &power);
            value.watts = power * milliwatt;
        }
        if (status != success) {
            value.failed =
                fmt::format("{} could not be read: {}", gpu.name, library_->reason_of(status));
        }
        return value;
    }

private:
    std::unique_ptr<Library> library_;
    std::vector<Gpu> gpus_;
    bool energy_;
};

// The graphics processors that are wanted. `status`: of the first that could not be had.
std::vector<Gpu> gpus_of(const Library& library, const std::vector<unsigned>& wanted,
                         Status& status) {
    std::vector<Gpu> gpus;
    auto indices = wanted;
    unsigned count = 0;
    status = library.device_count(&count);
    for (unsigned i = 0; status == success && wanted.empty() && i < count; ++i) {
        indices.push_back(i);
    }
    for (const auto index : indices) {
        Gpu gpu;
        if (status == success) {
            status = library.device_at(index, &gpu.device);
        }
        if (status == success) {
            gpu.name = fmt::format("gpu-{} {}", index, library.name_of(gpu.device));
            gpus.push_back(std::move(gpu));
        }
    }
    return gpus;
}

bool all_count_energy(const Library& library, const std::vector<Gpu>& gpus) {
    for (const auto& gpu : gpus) {
        unsigned long long count = 0;
        if (library.total_energy == nullptr ||
            library.total_energy(gpu.device, &count) != success) {
            return false;
        }
    }
    return true;
}

}  // namespace

Found find_nvml(const EnergyOptions& options) {
    const bool named = options.choice.source == "nvml" && !options.choice.argument.empty();
    auto library = std::make_unique<Library>();
    if (auto why = library->open(named ? options.choice.argument : "libnvidia-ml.so.1");
        !why.empty()) {
        return unavailable("nvml", std::move(why),
                           "It comes with NVIDIA's driver; nvml:PATH names another file, and a "
                           "container needs `--gpus all`.");
    }
    Status status = success;
    auto gpus = gpus_of(*library, options.gpus, status);
    if (status != success) {
        return unavailable("nvml",
                           fmt::format("a GPU cannot be opened: {}", library->reason_of(status)),
                           status == no_permission ? "Ask for the right to use /dev/nvidia*."
                                                   : "`nvidia-smi` lists those that there are.");
    }
    if (gpus.empty()) {
        return unavailable("nvml", "the driver sees no GPU", "`nvidia-smi` should list one.");
    }
    const bool energy = all_count_energy(*library, gpus);
    Found found;
    found.source.name = "nvml";
    found.source.label = energy ? EnergyLabel::measured : EnergyLabel::integrated;
    for (const auto& gpu : gpus) {
        Channel channel;
        channel.domain.name = gpu.name;
        channel.part = Part::gpu;
        channel.unit = millijoule;
        found.channels.push_back(std::move(channel));
    }
    found.reader = std::make_unique<NvmlReader>(std::move(library), std::move(gpus), energy);
    if (energy) {
        return found;
    }
    found.sample_seconds = std::max(shortest_sample_seconds, options.sample_seconds);
    found.lag_seconds = averaged_seconds;
    found.source.resolution = milliwatt;
    found.source.notes.emplace_back(
        "not all GPUs count energy: power is sampled, which the driver may average over a second");
    for (std::size_t i = 0; i < found.channels.size(); ++i) {
        if (auto first = found.reader->read(i); !first.failed.empty()) {
            return unavailable("nvml", std::move(first.failed),
                               "This GPU tells neither energy nor power; leave it out.");
        }
    }
    return found;
}

}  // namespace trocar::energy
