#include "trocar/quantize.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "quantize/ranges.h"
#include "run/test_engines.h"
#include "trocar/error.h"
#include "trocar/random.h"
#include "trocar/session.h"

namespace trocar {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> drawn(std::size_t count, std::uint64_t seed, float scale = 1) {
    std::vector<float> all(count);
    for (std::size_t i = 0; i < count; ++i) {
        all[i] = scale * (2 * unit_float(philox(seed, 0, i)[0]) - 1);
    }
    return all;
}

TEST(Ranges, ZeroIsOneOfTheNumbers) {
    const auto plain = quantizing::affine_int8(-1, 1);
    EXPECT_FLOAT_EQ(plain.scale, 2.0F / 255);
    const auto positive = quantizing::affine_int8(2, 6);
    EXPECT_FLOAT_EQ(positive.scale, 6.0F / 255);
    EXPECT_EQ(positive.zero_point, -128);
    EXPECT_EQ(quantizing::affine_int8(-6, -2).zero_point, 127);
    EXPECT_EQ(quantizing::affine_int8(0, 0).scale, 1);
    EXPECT_EQ(quantizing::affine_int8(0, 1e-320).scale, 1);
}

TEST(Ranges, OutliersAreCutOff) {
    auto numbers = drawn(100'000, 1);
    quantizing::Histogram histogram(100);
    histogram.add(numbers);
    histogram.add(std::vector<float>{100});
    EXPECT_NEAR(histogram.percentile(0.999), 1, 0.06);
    EXPECT_LT(histogram.least_divergence(-1, 100), 20);
    EXPECT_LT(histogram.least_error(-1, 100).second, 90);
    EXPECT_EQ(histogram.percentile(1), 100);
}

// Exponentially distributed numbers, all on one side of 0: 255 steps lie there, not 128.
TEST(Ranges, TheLeastErrorIsThatOfTheStepsThereAre) {
    std::vector<float> numbers(200'000);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        numbers[i] = -std::log(1 - unit_float(philox(5, 0, i)[0]) * 0.99999F);
    }
    const auto high = static_cast<double>(*std::max_element(numbers.begin(), numbers.end()));
    quantizing::Histogram histogram(high);
    histogram.add(numbers);
    const auto error = [&](double edge) {
        const auto how = quantizing::affine_int8(0, edge);
        double sum = 0;
        for (const auto number : numbers) {
            const auto code = std::min(255.0F, std::nearbyint(number / how.scale));
            sum += std::pow(static_cast<double>(code * how.scale - number), 2);
        }
        return sum;
    };
    double best = error(high);
    for (double part = 0.2; part < 1; part += 0.02) {
        best = std::min(best, error(high * part));
    }
    EXPECT_LT(error(histogram.least_error(0, high).second), 1.02 * best);
}

// Conv, BatchNormalization, Relu, GlobalAveragePool, Flatten, Gemm.
class Quantizing : public ::testing::Test {
protected:
    Quantizing() {
        model_.dialect = "onnx";
        model_.opsets = {{"", 21}};
        model_.ir_version = 10;
        auto& graph = model_.graph;
        const auto x = graph.add_input("x", Type::tensor(DType::f32, Shape{1, 3, 8, 8}));
        const auto row = [&](const char* name, const std::vector<float>& numbers) {
            return graph.add_constant(
                name,
                Constant::of(DType::f32, {static_cast<std::int64_t>(numbers.size())}, numbers));
        };
        const auto w =
            graph.add_constant("w", Constant::of(DType::f32, {4, 3, 3, 3}, drawn(108, 2)));
        const auto c = op("Conv", {x, w, row("b", {0.1F, -0.2F, 0.3F, 0})}, "c");
        const auto n = op("BatchNormalization",
                          {c, row("scale", {1, 2, 0.5F, 1}), row("shift", {0, 0.5F, 0, -1}),
                           row("mean", {0.1F, 0, 0, 0.2F}), row("variance", {1, 2, 0.5F, 1})},
                          "n");
        const auto r = op("Relu", {n}, "r");
        const auto p = op("GlobalAveragePool", {r}, "p");
        const auto f = op("Flatten", {p}, "f");
        const auto g = graph.add_constant("g", Constant::of(DType::f32, {4, 5}, drawn(20, 3)));
        const auto y = op("Gemm", {f, g}, "y");
        graph.set_outputs({y});
    }
    TensorId op(const std::string& type, std::vector<TensorId> inputs, const std::string& output) {
        OpSpec spec;
        spec.type = type;
        spec.name = output + "_op";
        spec.inputs = std::move(inputs);
        spec.outputs = {model_.graph.add_tensor(output, Type::tensor(DType::f32))};
        const auto made = spec.outputs[0];
        model_.graph.append(std::move(spec));
        return made;
    }
    static bool inputs(std::size_t number, std::vector<NamedValue>& values) {
        if (number >= 4) {
            return false;
        }
        values = {
            {"x", Value::copy(DType::f32, {1, 3, 8, 8},
                              std::as_bytes(std::span<const float>(drawn(192, 10 + number))))}};
        return true;
    }
    static std::shared_ptr<Engine> engine() {
        return open_engine(testing::engine_options("onnxruntime"));
    }
    static std::vector<float> run(const Model& model) {
        std::vector<NamedValue> values;
        inputs(0, values);
        const auto made = Session(model, engine()).run(values);
        const auto numbers = made[0].value.as<float>();
        return {numbers.begin(), numbers.end()};
    }
    static std::size_t count(const Model& model, const std::string& type) {
        std::size_t all = 0;
        for (const auto id : model.graph.ops()) {
            all += model.graph.op(id).type == type ? 1 : 0;
        }
        return all;
    }

    Model model_;
};

TEST_F(Quantizing, NormalisationsGoIntoTheWeights) {
    const auto before = run(model_);
    auto folded = clone(model_);
    EXPECT_EQ(fold_batch_norms(folded), 1U);
    EXPECT_EQ(count(folded, "BatchNormalization"), 0U);
    EXPECT_TRUE(folded.graph.find_tensor("n"));
    EXPECT_TRUE(folded.graph.verify().empty());
    const auto after = run(folded);
    for (std::size_t i = 0; i < before.size(); ++i) {
        EXPECT_NEAR(after[i], before[i], 1e-5);
    }
}

TEST_F(Quantizing, StaticInt8IsNearAndSaysHowNear) {
    const QuantizeOptions options;
    for (const auto method :
         {RangeMethod::min_max, RangeMethod::percentile, RangeMethod::entropy, RangeMethod::mse}) {
        auto how = options;
        how.method = method;
        how.weight_bits = 7;  // whatever the processor: no sums that saturate
        const auto ranges = calibrate(model_, engine(), inputs, how);
        const auto made = quantize(model_, ranges, how);
        EXPECT_TRUE(made.model.graph.verify().empty());
        EXPECT_EQ(made.folded, 1U);
        EXPECT_LT(made.constant_bytes_after, made.constant_bytes_before);
        const auto quality = compare_quality(model_, made.model, engine(), inputs);
        ASSERT_EQ(quality.outputs.size(), 1U);
        EXPECT_GT(quality.outputs[0].sqnr_db, 20);
        EXPECT_LT(quality.outputs[0].sqnr_db, 80);
        EXPECT_EQ(quality.samples, 4U);
        EXPECT_GT(quality.layers.back().sqnr_db, 20);
        std::vector<std::string> tensors;
        for (const auto& layer : quality.layers) {
            tensors.push_back(layer.tensor);
        }
        EXPECT_THAT(tensors, ElementsAre("n", "r", "p", "f", "y"));
    }
}

TEST_F(Quantizing, BetweenAConvolutionAndItsReluNothingIsRounded) {
    const auto made = quantize(model_, calibrate(model_, engine(), inputs, {}), {});
    const auto& graph = made.model.graph;
    const auto between = graph.find_tensor("n");
    ASSERT_TRUE(between);
    ASSERT_EQ(graph.tensor(*between).uses.size(), 1U);
    EXPECT_EQ(graph.op(graph.tensor(*between).uses[0].op).type, "Relu");
    EXPECT_EQ(count(made.model, "QuantizeLinear"), 4U);    // x, r, p, f
    EXPECT_EQ(count(made.model, "DequantizeLinear"), 7U);  // and w, b, g
}

TEST_F(Quantizing, WeightsAlone) {
    const auto before = run(model_);
    for (const auto& [scheme, off] : {std::pair{QuantizeScheme::weights_int8, 0.02},
                                      {QuantizeScheme::weights_int4, 0.4},
                                      {QuantizeScheme::weights_f16, 1e-3},
                                      {QuantizeScheme::weights_bf16, 0.02}}) {
        QuantizeOptions options;
        options.scheme = scheme;
        options.block = 2;
        const auto made = quantize(model_, {}, options);
        EXPECT_TRUE(made.model.graph.verify().empty());
        EXPECT_LT(made.constant_bytes_after, made.constant_bytes_before);
        const auto after = run(made.model);
        for (std::size_t i = 0; i < before.size(); ++i) {
            EXPECT_NEAR(after[i], before[i], off);
        }
    }
}

TEST_F(Quantizing, OpsCanBeKept) {
    QuantizeOptions options;
    options.keep = trocar::op("Gemm");
    const auto made = quantize(model_, calibrate(model_, engine(), inputs, options), options);
    ASSERT_EQ(made.ops.size(), 3U);
    EXPECT_TRUE(made.ops[0].quantized);
    EXPECT_FALSE(made.ops[2].quantized);
    EXPECT_EQ(made.ops[2].why, "it was asked to be kept");
}

TEST_F(Quantizing, TheMostSensitiveOpComesFirst) {
    const auto ranges = calibrate(model_, engine(), inputs, {});
    const auto all = sensitivity(model_, engine(), inputs, ranges, {});
    ASSERT_EQ(all.size(), 3U);
    EXPECT_LE(all[0].sqnr_db, all[1].sqnr_db);
    EXPECT_LE(all[1].sqnr_db, all[2].sqnr_db);
}

TEST_F(Quantizing, ABiasOutlastsWeightsThatAreZeroOrTiny) {
    auto weights = drawn(108, 2);
    std::fill_n(weights.begin() + 27, 27, 0.0F);
    std::for_each(weights.begin() + 54, weights.begin() + 81, [](float& x) { x *= 1e-12F; });
    auto& graph = model_.graph;
    graph.set_constant(*graph.find_tensor("w"), Constant::of(DType::f32, {4, 3, 3, 3}, weights));
    graph.set_constant(*graph.find_tensor("b"),
                       Constant::of(DType::f32, {4}, std::vector<float>{0.1F, 0.3F, 7, 0}));
    QuantizeOptions options;
    options.weight_bits = 7;
    const auto made = quantize(model_, calibrate(model_, engine(), inputs, options), options);
    const auto quality = compare_quality(model_, made.model, engine(), inputs);
    EXPECT_GT(quality.outputs[0].sqnr_db, 30);
}

TEST_F(Quantizing, OutputsAreQuantisedWhereThatIsAskedFor) {
    QuantizeOptions options;
    options.outputs = true;
    const auto made = quantize(model_, calibrate(model_, engine(), inputs, options), options);
    const auto& graph = made.model.graph;
    const auto last = graph.tensor(graph.outputs()[0]);
    EXPECT_EQ(last.name, "y");
    EXPECT_EQ(graph.op(last.producer).type, "DequantizeLinear");
}

TEST_F(Quantizing, WhatIsQuantisedOrNotFiniteIsLeftAlone) {
    const auto once = quantize(model_, calibrate(model_, engine(), inputs, {}), {}).model;
    const auto twice = quantize(once, calibrate(once, engine(), inputs, {}), {});
    for (const auto& op : twice.ops) {
        EXPECT_FALSE(op.quantized);
        EXPECT_EQ(op.why, "it is quantised already");
    }
    auto weights = drawn(108, 2);
    weights[5] = std::numeric_limits<float>::infinity();
    model_.graph.set_constant(*model_.graph.find_tensor("w"),
                              Constant::of(DType::f32, {4, 3, 3, 3}, weights));
    QuantizeOptions options;
    options.scheme = QuantizeScheme::weights_int8;
    EXPECT_EQ(quantize(model_, {}, options).ops[0].why, "its weights are not all finite numbers");
}

TEST_F(Quantizing, WhatCalibrationSawNothingOfStays) {
    auto ranges = calibrate(model_, engine(), inputs, {});
    std::erase_if(ranges, [](const TensorRange& range) { return range.tensor == "p"; });
    const auto made = quantize(model_, ranges, {});
    ASSERT_EQ(made.ops.size(), 3U);
    EXPECT_TRUE(made.ops[0].quantized);
    EXPECT_FALSE(made.ops[1].quantized);
    EXPECT_THAT(made.ops[1].why, HasSubstr("'p'"));
    EXPECT_TRUE(made.model.graph.verify().empty());
}

TEST_F(Quantizing, NumbersThatAreNoneAreCountedNotUsed) {
    const auto spoilt = [](std::size_t number, std::vector<NamedValue>& values) {
        auto numbers = drawn(192, 10 + number);
        numbers[0] = std::numeric_limits<float>::quiet_NaN();
        values = {{"x", Value::copy(DType::f32, {1, 3, 8, 8},
                                    std::as_bytes(std::span<const float>(numbers)))}};
        return number < 2;
    };
    const auto ranges = calibrate(model_, engine(), spoilt, {});
    const auto x = std::find_if(ranges.begin(), ranges.end(),
                                [](const auto& range) { return range.tensor == "x"; });
    ASSERT_NE(x, ranges.end());
    EXPECT_EQ(x->left_out, 2U);
    EXPECT_LE(x->high, 1);
}

// Weights that ops write, or read twice, are weights like others, and stored once.
TEST_F(Quantizing, ConstantsThatOpsWriteAndSharedOnes) {
    Model model;
    model.dialect = "onnx";
    model.opsets = {{"", 12}};
    model.ir_version = 7;
    auto& graph = model.graph;
    const auto x = graph.add_input("x", Type::tensor(DType::f32, Shape{1, 3, 8, 8}));
    OpSpec written;
    written.type = "Constant";
    written.attributes = {{"value", Constant::of(DType::f32, {3, 3, 1, 1}, drawn(9, 4)), {}, {}}};
    written.outputs = {graph.add_tensor("w", Type::tensor(DType::f32))};
    const auto w = written.outputs[0];
    graph.append(std::move(written));
    auto from = x;
    for (const auto* name : {"a", "b"}) {
        OpSpec conv;
        conv.type = "Conv";
        conv.name = name;
        conv.inputs = {from, w};
        conv.outputs = {graph.add_tensor(std::string("y_") + name, Type::tensor(DType::f32))};
        from = conv.outputs[0];
        graph.append(std::move(conv));
    }
    graph.set_outputs({from});
    for (const auto scheme : {QuantizeScheme::int8, QuantizeScheme::weights_int8,
                              QuantizeScheme::weights_int4, QuantizeScheme::weights_f16}) {
        QuantizeOptions options;
        options.scheme = scheme;
        const auto ranges = scheme == QuantizeScheme::int8
                                ? calibrate(model, engine(), inputs, options)
                                : std::vector<TensorRange>{};
        const auto made = quantize(model, ranges, options);
        EXPECT_EQ(made.ops.size(), 2U);
        EXPECT_EQ(made.model.opset(), scheme == QuantizeScheme::weights_int4 ? 21 : 13);
        EXPECT_TRUE(made.model.graph.verify().empty());
        std::size_t constants = 0;
        for (const auto id : made.model.graph.tensors()) {
            constants += made.model.graph.tensor(id).constant &&
                                 made.model.graph.tensor(id).constant->element_count() == 9
                             ? 1
                             : 0;
        }
        EXPECT_EQ(constants, 1U);
        const auto quality = compare_quality(model, made.model, engine(), inputs);
        EXPECT_GT(quality.outputs[0].sqnr_db, scheme == QuantizeScheme::weights_int4 ? 10 : 25);
    }
}

// Two ops with the same weights and biases of very different sizes: other scales, other names.
TEST_F(Quantizing, NoTwoOpsHaveOneName) {
    Model model;
    model.dialect = "onnx";
    model.opsets = {{"", 17}};
    model.ir_version = 8;
    auto& graph = model.graph;
    auto from = graph.add_input("x", Type::tensor(DType::f32, Shape{1, 3, 8, 8}));
    auto weights = drawn(9, 4);
    weights[0] = weights[1] = weights[2] = 1e-11F;
    const auto w = graph.add_constant("w", Constant::of(DType::f32, {3, 3, 1, 1}, weights));
    for (const float size : {1.0F, 100.0F}) {
        const auto b =
            graph.add_constant(graph.fresh_name("b"),
                               Constant::of(DType::f32, {3}, std::vector<float>{size, size, size}));
        OpSpec conv;
        conv.type = "Conv";
        conv.name = fmt::format("conv_{}", size);
        conv.inputs = {from, w, b};
        conv.outputs = {graph.add_tensor(graph.fresh_name("y"), Type::tensor(DType::f32))};
        from = conv.outputs[0];
        graph.append(std::move(conv));
    }
    graph.set_outputs({from});
    const auto made = quantize(model, calibrate(model, engine(), inputs, {}), {});
    std::set<std::string> names;
    for (const auto id : made.model.graph.ops()) {
        EXPECT_TRUE(names.insert(made.model.graph.op(id).name).second)
            << made.model.graph.op(id).name;
    }
    EXPECT_EQ(count(made.model, "DequantizeLinear"), 6U);
    compare_quality(model, made.model, engine(), inputs);
}

TEST_F(Quantizing, SaysWhatIsWrong) {
    const auto why = [](auto&& call) {
        try {
            call();
        } catch (const Error& e) {
            return std::string(e.what());
        }
        return std::string("nothing");
    };
    EXPECT_THAT(why([&] { quantize(model_, {}, {}); }), HasSubstr("there is no range"));
    EXPECT_EQ(
        why([&] { calibrate(model_, engine(), [](std::size_t, auto&) { return false; }, {}); }),
        "there are no inputs to calibrate with");
    auto other = clone(model_);
    other.dialect = "tflite";
    EXPECT_THAT(why([&] { quantize(other, {}, {}); }), HasSubstr("cannot be quantised"));
    auto old = clone(model_);
    old.opsets = {{"", 6}};
    EXPECT_THAT(why([&] { quantize(old, {}, {}); }), HasSubstr("opset 6"));
    EXPECT_THROW(parse_range_method("best"), Error);
    EXPECT_THROW(parse_quantize_scheme("int3"), Error);
}

}  // namespace
}  // namespace trocar
