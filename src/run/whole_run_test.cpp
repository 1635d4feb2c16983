#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/test_engines.h"
#include "trocar/inputs.h"
#include "trocar/session.h"
#include "util/same_bits.h"

namespace trocar {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class WholeRuns : public ::testing::TestWithParam<std::string> {
protected:
    // A run op by op, held against the whole one.
    WholeRun compared(const Model& model) {
        const auto engine = open_engine(engine_options(GetParam()));
        InputSpec spec;
        spec.fill = "random";
        spec.unknown_dims = 2;
        const auto inputs = make_inputs(model, spec).values;
        SessionOptions cut;
        cut.cut = parse_selector("all");
        Session session(model, engine, cut);
        const auto outputs = session.run(inputs);
        SessionOptions plain;
        plain.compile.optimize = CompileOptions::Optimize::none;
        const auto whole = Session(model, engine, plain).run(inputs);
        const auto found = compare_whole_run(model, engine, session.plan(), inputs, outputs);
        EXPECT_EQ(found.same, same_bits(outputs, whole));
        return found;
    }
};

INSTANTIATE_TEST_SUITE_P(Engines, WholeRuns, ::testing::Values("onnxruntime", "openvino"),
                         [](const auto& engine) { return engine.param; });

TEST_P(WholeRuns, NameTheOpsWhoseHalfFloatsAreNotRounded) {
    if (!engine_info(GetParam()).available) {
        GTEST_SKIP() << "there is no " << GetParam();
    }
    const auto model = load(TROCAR_SOURCE_DIR "/build/test-models/half_layers.onnx");
    EXPECT_TRUE(has_half_floats(model.graph));
    const auto found = compared(model);
    EXPECT_FALSE(found.same);
    EXPECT_EQ(found.output, "y");
    EXPECT_GT(found.largest, 0);
    EXPECT_LT(found.largest, 1e-2);
    EXPECT_THAT(found.ops, Not(IsEmpty()));
    EXPECT_THAT(text(found), HasSubstr("Conv 'conv1'"));
    // The result of the last op is an output, and rounded in any case.
    EXPECT_THAT(text(found), Not(HasSubstr("'head'")));
}

TEST_P(WholeRuns, AreTheSameWithoutHalfFloats) {
    if (GetParam() != "onnxruntime") {
        GTEST_SKIP() << "it fuses ops";
    }
    const auto model = load(TROCAR_SOURCE_DIR "/build/test-models/lstm.onnx");
    EXPECT_FALSE(has_half_floats(model.graph));
    EXPECT_TRUE(compared(model).same);
}

}  // namespace
}  // namespace trocar
