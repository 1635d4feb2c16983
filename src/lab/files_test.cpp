#include "lab/files.h"

#include <gtest/gtest.h>

#include "util/files.h"
#include "util/test_folder.h"

namespace trocar {
namespace {

std::string manifest(const std::string& number, const std::string& folder) {
    return R"({"trocar_lab":1,"complete":true,"model":{"path":"m.onnx","sha256":""},)"
           R"("golden":{"engine":"e","seed":0},"layers":[{"number":)" +
           number + R"(,"folder":")" + folder +
           R"(","name":"n","type":"Add","module":"","ops":[]}]})";
}

std::string layer(const std::string& rtol, const std::string& shape) {
    return R"({"trocar_layer":1,"model":{"sha256":""},"tolerance":{"y":{"rtol":)" + rtol +
           R"(,"atol":0}},"samples":[{"inputs":[],"outputs":[{"name":"y","dtype":"f32","shape":)" +
           shape + R"(,"files":{"bin":"y.bin"},"sha256":{}}]}],"occurrences":[]})";
}

TEST(Labs, AreComparedWhateverNumbersTheirLayersHave) {
    const TestFolder folder;
    for (const auto* number : {"7", "18446744073709551615", "4000000000000"}) {
        write_file(folder / "manifest.json", manifest(number, "layers/a"));
        const auto comparison = compare_lab(read_lab(folder.path()), {"results"}, {}, {});
        ASSERT_EQ(comparison.layers.size(), 1u);
        EXPECT_EQ(std::to_string(comparison.layers[0].number), number);
        ASSERT_FALSE(comparison.results.empty());
        EXPECT_EQ(comparison.results[0].verdict, Verdict::incomparable);
        // A saved comparison keeps them.
        EXPECT_EQ(comparison_from_json(to_json(comparison)).layers[0].number,
                  comparison.layers[0].number);
    }
}

TEST(Labs, DoNotLeadOutOfTheirFolder) {
    const TestFolder folder;
    for (const auto* layer : {"../a", "/etc", "a/../../b", ""}) {
        write_file(folder / "manifest.json", manifest("0", layer));
        EXPECT_THROW(read_lab(folder.path()), Error) << layer;
    }
}

TEST(Labs, TakeNoMemoryForWhatAFileDoesNotHold) {
    const TestFolder folder;
    write_file(folder / "y.bin", std::string(8, '\0'));
    const auto load = [&](const std::string& shape) {
        LabLayer read;
        lab::layer_from_json(layer("0", shape), "manifest.json", read);
        return lab::load_value(folder.path(), read.samples.at(0).outputs.at(0));
    };
    EXPECT_EQ(load("[1,2]").shape(), (Shape{1, 2}));
    for (const auto* shape : {"[3]", "[1000000000000]", "[4294967296,4294967296]", "[-2]"}) {
        EXPECT_THROW(load(shape), Error) << shape;
    }
}

TEST(Labs, HaveNoTolerancesBelowZero) {
    LabLayer read;
    EXPECT_NO_THROW(lab::layer_from_json(layer("0.5", "[1]"), "manifest.json", read));
    EXPECT_THROW(lab::layer_from_json(layer("-0.5", "[1]"), "manifest.json", read), Error);
}

TEST(Comparisons, ThatAreNoneAreRefused) {
    const auto saved = [](const std::string& sides, const std::string& results) {
        return R"({"trocar_comparison":1,"sides":)" + sides +
               R"(,"complete":true,"notes":[],"layers":[{"name":"","type":"","module":"","ops":[]}],)"
               R"("results":)" +
               results + "}";
    };
    EXPECT_NO_THROW(comparison_from_json(saved(R"(["a","b"])", "[]")));
    EXPECT_THROW(comparison_from_json(saved("[]", "[]")), Error);
    EXPECT_THROW(comparison_from_json(saved(R"(["a"])", "[]")), Error);
    const std::string deep(200000, '[');
    EXPECT_THROW(comparison_from_json(saved(R"(["a","b"])", deep)), Error);
    const auto with_tolerance = [&](const std::string& rtol, const std::string& difference) {
        return saved(
            R"(["a","b"])",
            R"([{"layer":0,"side":1,"set":0,"cumulative":false,"end":"done","reason":"","seconds":0,)"
            R"("reference_seconds":0,"tensors":[{"tensor":"y","reference":{},"found":{},)"
            R"("default_rtol":)" +
                rtol + R"(,"default_atol":0,)" + difference + "}]}]");
    };
    const std::string differs = R"("verdict":"FAIL","reason":"why")";
    EXPECT_NO_THROW(comparison_from_json(with_tolerance("0", differs)));
    EXPECT_THROW(comparison_from_json(with_tolerance("-1", differs)), Error);
    EXPECT_THROW(comparison_from_json(
                     with_tolerance("0", "\"difference\":" + deep + std::string(deep.size(), ']'))),
                 Error);
    Difference difference;
    difference.corners = {{-1, 1}};
    EXPECT_THROW(difference_from_json(to_json(difference)), Error);
    difference.corners = {{1, 0}};
    EXPECT_THROW(difference_from_json(to_json(difference)), Error);
}

}  // namespace
}  // namespace trocar
