#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "energy/reader.h"
#include "trocar/error.h"

namespace trocar::energy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int ok = 0;
constexpr int not_supported = 3;
constexpr int no_permission = 4;
constexpr int driver_not_loaded = 9;
constexpr int gpu_is_lost = 15;

// The library of tests/energy, kept loaded so that what a test sets stays.
class Nvml : public testing::Test {
protected:
    using Set = void(unsigned devices, int init, int energy, int power, double watts, bool reset);

    Nvml() : handle_(::dlopen(TROCAR_FAKE_NVML, RTLD_NOW | RTLD_LOCAL)) {
        set = reinterpret_cast<Set*>(::dlsym(handle_, "fake_nvml_set"));
        started = reinterpret_cast<int (*)()>(::dlsym(handle_, "fake_nvml_started"));
        set(1, ok, ok, ok, 100, false);
        options.choice = parse_energy(std::string("nvml:") + TROCAR_FAKE_NVML);
        options.sample_seconds = 0.01;
    }
    ~Nvml() override { ::dlclose(handle_); }

    EnergySource source() const { return find(options, this_machine()).source; }
    static void wait(int milliseconds) {
        std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    }

    Set* set = nullptr;
    int (*started)() = nullptr;
    EnergyOptions options;

private:
    void* handle_;
};

TEST_F(Nvml, TheEnergyCounterIsPreferred) {
    auto meter = EnergyMeter::open(options);
    EXPECT_EQ(meter.source().label, EnergyLabel::measured);
    ASSERT_TRUE(meter.source().tick_seconds);
    EXPECT_DOUBLE_EQ(*meter.source().resolution, 1e-3);
    meter.begin();
    wait(100);
    const auto window = meter.end();
    ASSERT_TRUE(window.joules) << window.gap;
    EXPECT_NEAR(*window.joules, 100 * *window.seconds, *window.uncertainty_joules + 0.5);
    EXPECT_EQ(window.label, EnergyLabel::measured);
    EXPECT_EQ(window.domains.front().name, "gpu-0 Fake GPU");
}

TEST_F(Nvml, AllGpusAreSummedOrTheChosenOnes) {
    set(3, ok, ok, ok, 100, false);
    EXPECT_EQ(source().domains.size(), 3U);
    options.gpus = {2};
    const auto one = source();
    ASSERT_EQ(one.domains.size(), 1U);
    EXPECT_EQ(one.domains.front().name, "gpu-2 Fake GPU");
    options.gpus = {7};
    EXPECT_THAT(source().unavailable, HasSubstr("cannot be opened"));
}

TEST_F(Nvml, WithoutACounterPowerIsIntegrated) {
    set(1, ok, not_supported, ok, 80, false);
    auto meter = EnergyMeter::open(options);
    EXPECT_EQ(meter.source().label, EnergyLabel::integrated);
    EXPECT_DOUBLE_EQ(*meter.source().tick_seconds, 0.01);
    meter.begin();
    wait(60);
    const auto window = meter.end();
    ASSERT_TRUE(window.joules) << window.gap;
    EXPECT_EQ(window.label, EnergyLabel::integrated);
    EXPECT_NEAR(*window.joules, 80 * *window.seconds, 1e-6);
}

TEST_F(Nvml, ADeviceLostInTheMiddleIsAGap) {
    auto meter = EnergyMeter::open(options);
    meter.begin();
    wait(10);
    set(1, ok, gpu_is_lost, gpu_is_lost, 100, false);
    const auto window = meter.end();
    EXPECT_FALSE(window.joules);
    EXPECT_THAT(window.gap, HasSubstr("GPU is lost"));
}

TEST_F(Nvml, ADeviceLostWhileItIsSampledIsAGap) {
    set(1, ok, not_supported, ok, 80, false);
    auto meter = EnergyMeter::open(options);
    meter.begin();
    wait(30);
    set(1, ok, not_supported, gpu_is_lost, 80, false);
    wait(400);  // of which a busy machine may take much
    set(1, ok, not_supported, ok, 80, false);
    wait(30);
    EXPECT_THAT(meter.end().gap, HasSubstr("GPU is lost"));
}

TEST_F(Nvml, AResetOfTheDriverIsAGap) {
    auto meter = EnergyMeter::open(options);
    meter.begin();
    wait(10);
    set(1, ok, ok, ok, 100, true);
    EXPECT_THAT(meter.end().gap, HasSubstr("reset"));
}

TEST_F(Nvml, SaysWhyItIsUnavailable) {
    set(0, ok, ok, ok, 100, false);
    EXPECT_THAT(source().unavailable, HasSubstr("no GPU"));
    set(1, driver_not_loaded, ok, ok, 100, false);
    EXPECT_THAT(source().unavailable, HasSubstr("Driver Not Loaded"));
    set(1, ok, not_supported, no_permission, 100, false);
    EXPECT_THAT(source().unavailable, HasSubstr("Insufficient Permissions"));
    options.choice = parse_energy("nvml:/nonexistent/libnvidia-ml.so.1");
    const auto none = source();
    EXPECT_THAT(none.unavailable, HasSubstr("cannot be loaded"));
    EXPECT_NE(none.remedy, "");
    EXPECT_THROW(EnergyMeter::open(options), Error);
}

TEST_F(Nvml, IsShutDownAsOftenAsItWasStarted) {
    { const auto meter = EnergyMeter::open(options); }
    set(0, ok, ok, ok, 100, false);
    source();
    set(1, driver_not_loaded, ok, ok, 100, false);
    source();
    EXPECT_EQ(started(), 0);
}

}  // namespace
}  // namespace trocar::energy
