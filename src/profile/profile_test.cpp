#include "trocar/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "trocar/error.h"
#include "trocar/inputs.h"

namespace trocar {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Times are whatever they are; how they hang together is not.

std::shared_ptr<Engine> engine() {
    EngineOptions options;
    options.search = {TROCAR_SOURCE_DIR "/.deps/onnxruntime-1.31.1"};
    options.threads = 1;
    return open_engine(options);
}

Profile profile_of(const std::string& file, ProfileOptions options, std::size_t runs = 3) {
    const auto model = load(TROCAR_SOURCE_DIR "/build/test-models/" + file);
    InputSpec spec;
    spec.fill = "ones";
    spec.unknown_dims = 1;
    options.runs = options.runs == 0 ? runs : options.runs;
    return profile(model, engine(), make_inputs(model, spec).values, options);
}

ProfileOptions layers(const char* cut) {
    ProfileOptions options;
    options.view = View::source;
    options.cut = parse_selector(cut);
    return options;
}

void expect_it_adds_up(const Profile& profile) {
    for (std::size_t run = 0; run < profile.wall_ns.size(); ++run) {
        double sum = 0;
        for (const auto& part : profile.parts) {
            ASSERT_EQ(profile.wall_ns.size(), part.self_ns.size());
            sum += part.self_ns[run];
            EXPECT_GE(part.total_ns[run] + 1e-6, part.self_ns[run]);
        }
        const auto rest = unattributed(profile, {run});
        EXPECT_NEAR(profile.wall_ns[run], sum + rest, 1e-6 * profile.wall_ns[run]);
    }
}

TEST(Profile, ResNet50AddsUpAndHasAllItsOps) {
    const auto profile = profile_of("resnet50.onnx", {});
    expect_it_adds_up(profile);
    // The engine's clock and ours agree: parts do not take longer than the whole.
    EXPECT_GT(unattributed(profile, typical_runs(profile)), 0);
    EXPECT_EQ(3U, profile.wall_ns.size());
    EXPECT_EQ(3U, profile.plain_ns.size());
    EXPECT_EQ(58U, profile.parts.size());
    std::size_t ops = profile.folded.size();
    std::uint64_t macs = 0;
    for (const auto& part : profile.parts) {
        ops += part.ops.size();
        macs += part.macs.value_or(0);
        EXPECT_TRUE(part.bytes) << part.name;
        EXPECT_TRUE(part.live_bytes) << part.name;
        EXPECT_GT(part.cold_ns, 0) << part.name;
    }
    const auto model = load(TROCAR_SOURCE_DIR "/build/test-models/resnet50.onnx");
    EXPECT_EQ(model.graph.op_count(), ops);
    EXPECT_EQ(4'089'184'256U, macs);
    EXPECT_EQ("Conv + BatchNormalization + Relu", profile.parts[0].type);
    EXPECT_EQ("layer1.0", profile.parts[3].module);
}

TEST(Profile, PartsAreInTheOrderInWhichTheyRan) {
    const auto profile = profile_of("resnet18.onnx", {});
    for (std::size_t i = 1; i < profile.parts.size(); ++i) {
        EXPECT_LE(profile.parts[i - 1].start_ns.back(), profile.parts[i].start_ns.back());
    }
}

TEST(Profile, OpsOfBodiesStandInTheirOp) {
    const auto profile = profile_of("loop.onnx", {});
    expect_it_adds_up(profile);
    bool any = false;
    for (const auto& part : profile.parts) {
        if (part.inside != ProfilePart::none) {
            any = true;
            EXPECT_EQ("Loop", profile.parts[part.inside].type);
        }
    }
    EXPECT_TRUE(any);
}

TEST(Profile, LayersEndWhereTheyAreCut) {
    const auto profile = profile_of("resnet18.onnx", layers("MaxPool, GlobalAveragePool"));
    expect_it_adds_up(profile);
    ASSERT_EQ(3U, profile.parts.size());
    EXPECT_EQ(3U, profile.programs);
    EXPECT_THAT(profile.parts[0].type, HasSubstr("MaxPool"));
    EXPECT_THAT(profile.parts[2].type, HasSubstr("Gemm"));
    EXPECT_TRUE(profile.peak_bytes);
}

TEST(Profile, MemoryOfLayersIsThatOfTheLiveTensors) {
    // relu(x)·2 negated, plus relu(x): a residual branch keeps a tensor alive.
    const auto profile = profile_of("resnet18.onnx", layers("all"));
    std::uint64_t live = 0;
    std::uint64_t peak = 0;
    for (const auto& part : profile.parts) {
        peak = std::max(peak, *part.live_bytes);
        live = *part.live_bytes - *part.freed_bytes;
    }
    EXPECT_EQ(profile.peak_bytes, peak);
    EXPECT_EQ(4000U, live);  // the logits
}

TEST(Profile, InterruptedProfileIsPartial) {
    ProfileOptions options;
    int asked = 0;
    options.interrupted = [&] { return ++asked > 2; };
    options.runs = 100;
    const auto profile = profile_of("lstm.onnx", options);
    EXPECT_TRUE(profile.partial);
    EXPECT_EQ(2U, profile.wall_ns.size());

    options.interrupted = [] { return true; };
    EXPECT_THROW(profile_of("lstm.onnx", options), Error);
}

TEST(Profile, TypicalRunsAreTheMiddleOfTheSteadyOnes) {
    Profile profile;
    profile.wall_ns = {900, 5, 1, 4, 3, 2};
    profile.steady = 1;
    EXPECT_THAT(typical_runs(profile), ElementsAre(3, 4, 5));
    EXPECT_EQ(3, typical(profile.wall_ns, typical_runs(profile)));
}

TEST(Peaks, AreThere) {
    const auto peaks = measure_peaks(*engine(), 2);
    EXPECT_GT(peaks.flops, 0);
    EXPECT_GT(peaks.bytes, 0);
}

TEST(HardwareCounters, CountOrSayWhyNot) {
    HardwareCounters counters;
    if (!counters.unavailable().empty()) {
        SUCCEED() << counters.unavailable();
        return;
    }
    counters.start();
    EXPECT_GT(counters.stop().instructions, 0U);
}

}  // namespace
}  // namespace trocar
