#include "trocar/inputs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "run/generate.h"
#include "run/input_source.h"
#include "trocar/error.h"
#include "trocar/format.h"
#include "trocar/statistics.h"
#include "util/files.h"
#include "util/test_folder.h"

namespace trocar {
namespace {

Type dims(DType dtype, const std::vector<Dim>& dims) {
    Type type = Type::tensor(dtype);
    type.dims = dims;
    return type;
}

// image f32[batch,3,4], mask i64[batch,?], scale f32 (with a default).
Model model() {
    Model model;
    model.graph.add_input("image", dims(DType::f32, {{-1, "batch"}, {3, ""}, {4, ""}}));
    model.graph.add_input("mask", dims(DType::i64, {{-1, "batch"}, {-1, ""}}));
    const auto scale = model.graph.add_constant("scale", Constant::of<float>(DType::f32, {}, {2}));
    auto inputs = std::vector(model.graph.inputs().begin(), model.graph.inputs().end());
    inputs.push_back(scale);
    model.graph.set_inputs(inputs);
    return model;
}

Model one_input() {
    Model model;
    model.graph.add_input("x:0", Type::tensor(DType::f32, Shape{2, 3}));
    return model;
}

class InputsTest : public testing::Test {
protected:
    // An .npy file of zeros.
    std::string npy(const std::string& stem, DType dtype, const Shape& shape) const {
        return save_value({"", Value::tensor(dtype, shape)}, folder_, stem).string();
    }
    std::string path(const std::string& name) const { return (folder_ / name).string(); }

private:
    TestFolder scratch_;
    const std::filesystem::path& folder_ = scratch_.path();
};

// What is wrong, and behind a '|' what to do.
std::string fault(const Model& model, const InputSpec& input_spec) {
    try {
        make_inputs(model, input_spec);
    } catch (const Error& e) {
        return e.hint().empty() ? e.what() : fmt::format("{} | {}", e.what(), e.hint());
    }
    return "no error";
}

InputSpec input_spec(std::vector<std::string> sources, std::vector<std::string> shapes = {},
                     std::string fill = "") {
    InputSpec made;
    made.sources = std::move(sources);
    made.shapes = std::move(shapes);
    made.fill = std::move(fill);
    return made;
}

TEST_F(InputsTest, FilesAndGeneratedOnesTogether) {
    const auto made = make_inputs(
        model(),
        input_spec({"image=" + npy("image", DType::f32, {5, 3, 4}), "mask=ones"}, {"mask=5,7"}));
    ASSERT_EQ(made.values.size(), 2u);
    EXPECT_EQ(made.values[0].name, "image");
    EXPECT_EQ(made.values[1].value.shape(), (Shape{5, 7}));
    EXPECT_EQ(made.values[1].value.as<std::int64_t>()[34], 1);
    EXPECT_EQ(made.origins[1], "ones");
}

TEST_F(InputsTest, ASymbolLearnedFromAFileHoldsForGeneratedInputs) {
    Model pair;
    pair.graph.add_input("a", dims(DType::f32, {{-1, "n"}}));
    pair.graph.add_input("b", dims(DType::f32, {{-1, "n"}, {2, ""}}));
    const auto made =
        make_inputs(pair, input_spec({"a=" + npy("a", DType::f32, {9})}, {}, "random"));
    EXPECT_EQ(made.values[1].value.shape(), (Shape{9, 2}));
}

TEST_F(InputsTest, AllFaultsComeInOneMessage) {
    EXPECT_EQ(fault(model(), input_spec({"imgae=zeros"})),
              "the inputs do not fit the model: the model has no input 'imgae'; "
              "input 'image' (f32[batch,3,4]) is not given; "
              "input 'mask' (i64[batch,?]) is not given | did you mean 'image'? "
              "give it with --input image=FILE, or all that is missing with --fill random");
}

TEST_F(InputsTest, UnknownSizesAreNamed) {
    EXPECT_EQ(
        fault(model(), input_spec({"mask=zeros"}, {"mask=1,1"})),
        "input 'image' (f32[batch,3,4]) is not given | give it with --input image=FILE, or all "
        "that is missing with --fill random");
    EXPECT_EQ(fault(model(), input_spec({}, {"mask=1,1", "batch=2"}, "zeros")),
              "--shape gives input 'mask' 1x1, but the model takes i64[batch,?] with batch=2");
    EXPECT_EQ(
        fault(model(), input_spec({}, {}, "zeros")),
        "the inputs do not fit the model: input 'image' (f32[batch,3,4]): 'batch' must be given; "
        "input 'mask' (i64[batch,?]): 'batch', dimension 1 must be given | "
        "sizes are given with --shape batch=1 --shape mask=1,1");
}

TEST_F(InputsTest, UnknownSizesMayBeChosenByTheTool) {
    auto chosen = input_spec({}, {}, "zeros");
    chosen.unknown_dims = 1;
    const auto made = make_inputs(model(), chosen);
    EXPECT_EQ(made.values[0].value.shape(), (Shape{1, 3, 4}));
    EXPECT_EQ(made.values[1].value.shape(), (Shape{1, 1}));
    EXPECT_EQ(made.notes,
              (std::vector<std::string>{"input 'image': 'batch' taken as 1",
                                        "input 'mask': 'batch', dimension 1 taken as 1"}));
}

TEST_F(InputsTest, WrongTypesAndShapesAreNamedWithBothSides) {
    const auto file = npy("x", DType::f64, {2, 3});
    EXPECT_EQ(fault(one_input(), input_spec({file})),
              fmt::format("input 'x:0' is f64 2x3 in '{}', but the model takes f32[2,3]", file));
    const auto flat = npy("flat", DType::f32, {6});
    EXPECT_EQ(fault(one_input(), input_spec({"x:0=" + flat})),
              fmt::format("input 'x:0' is f32 6 in '{}', but the model takes f32[2,3]", flat));
    EXPECT_EQ(fault(one_input(), input_spec({"zeros"}, {"3,2"})),
              "--shape gives input 'x:0' 3x2, but the model takes f32[2,3]");
}

TEST_F(InputsTest, ANameIsOnlyNeededWhereItIsNotClear) {
    EXPECT_EQ(make_inputs(one_input(), input_spec({"random"})).values[0].name, "x:0");
    EXPECT_EQ(fault(model(), input_spec({"zeros"}, {"batch=1"}, "zeros")),
              "the inputs do not fit the model: 'zeros' does not say which input it is for; "
              "input 'mask' (i64[batch,?]): dimension 1 must be given | write image=zeros; "
              "sizes are given with --shape mask=1,1");
}

TEST_F(InputsTest, GivenTwiceIsAFault) {
    EXPECT_EQ(fault(one_input(), input_spec({"zeros", "x:0=ones"})),
              "input 'x:0' is given twice: 'zeros' and 'ones'");
}

TEST_F(InputsTest, RawElements) {
    write_file(path("data"), std::string(24, '\0'));
    const auto made = make_inputs(one_input(), input_spec({path("data") + ":f32:2x3"}));
    EXPECT_EQ(made.values[0].value.shape(), (Shape{2, 3}));
    EXPECT_EQ(fault(one_input(), input_spec({path("data") + ":f32:3x2x2"})),
              fmt::format("input 'x:0': '{}' has 24 bytes, but f32 3x2x2 takes 48", path("data")));
    EXPECT_EQ(
        fault(one_input(), input_spec({path("data") + ":f32:2xq"})),
        fmt::format("'2xq' in '{}:f32:2xq' is not a shape | write it as 1x3x224x224, or scalar",
                    path("data")));
    write_file(path("data.bin"), std::string(24, '\0'));
    EXPECT_EQ(make_inputs(one_input(), input_spec({path("data.bin")})).values.size(), 1u);
    EXPECT_EQ(fault(model(), input_spec({"mask=" + path("data.bin")}, {"batch=1"}, "zeros")),
              fmt::format(
                  "the type or shape of '{0}' for input 'mask' (i64[batch,?]) is not known | write "
                  "mask={0}:f32:1x3x224x224",
                  path("data.bin")));
}

TEST_F(InputsTest, UnknownShapeNamesGetASuggestion) {
    EXPECT_EQ(fault(model(), input_spec({}, {"bath=1", "mask=1,1"}, "zeros")),
              "--shape names 'bath', which is neither an input nor a dimension | did you mean "
              "'batch'?");
}

TEST_F(InputsTest, BadTextsAreUsageErrors) {
    for (const auto& bad :
         {input_spec({"x:0="}), input_spec({"random(1)"}), input_spec({"random(2,1)"}),
          input_spec({}, {"x:0=a"}), input_spec({}, {}, "noise")}) {
        try {
            make_inputs(one_input(), bad);
            FAIL();
        } catch (const Error& e) {
            EXPECT_EQ(e.fault(), Fault::usage);
        }
    }
}

TEST_F(InputsTest, FilesThatCannotBeReadAreNamed) {
    EXPECT_EQ(fault(one_input(), input_spec({path("none.npy")})),
              fmt::format("there is no file '{}'", path("none.npy")));
    EXPECT_EQ(
        fault(one_input(), input_spec({path("")})),
        fmt::format(
            "the folder '{}' holds no input_0.pb | give a file, or a folder of ONNX test data",
            path("")));
}

TEST_F(InputsTest, MoreThanTheMachineHoldsIsRefused) {
    Model large;
    large.graph.add_input("x", dims(DType::f32, {{-1, "n"}}));
    const auto said = fault(large, input_spec({"zeros"}, {"n=100000000000000"}));
    EXPECT_NE(said.find("more than this machine's memory"), std::string::npos) << said;
}

TEST_F(InputsTest, SequencesAndOptionalsAreGeneratedFromWhatTheyHold) {
    Model model;
    Type sequence;
    sequence.kind = Type::Kind::sequence;
    sequence.element = {Type::tensor(DType::f32, Shape{2})};
    model.graph.add_input("s", sequence);
    const auto made = make_inputs(model, input_spec({}, {}, "ones"));
    EXPECT_EQ(value_text(made.values[0].value), "sequence of 1");
    Type optional;
    optional.kind = Type::Kind::optional;
    optional.element = {Type::tensor(DType::f32, Shape{2})};
    Model maybe;
    maybe.graph.add_input("o", optional);
    EXPECT_EQ(value_text(make_inputs(maybe, input_spec({}, {}, "ones")).values.at(0).value),
              "f32 2");
    EXPECT_EQ(make_inputs(maybe, input_spec({})).values.size(), 0u);
    Type map;
    map.kind = Type::Kind::map;
    map.dtype = DType::i64;
    Model other;
    other.graph.add_input("m", map);
    EXPECT_NE(fault(other, input_spec({}, {}, "ones")).find("cannot be generated"),
              std::string::npos);
}

TEST(Assignment, TheLongestKnownNameWins) {
    const std::vector<std::string> names{"a", "a=b"};
    EXPECT_EQ(parse_assignment("a=b=c.npy", names).name, "a=b");
    EXPECT_EQ(parse_assignment("a=c=d.npy", names).rest, "c=d.npy");
    EXPECT_EQ(parse_assignment("z=c", names).name, "z");
    EXPECT_EQ(parse_assignment("c.npy", names).name, "");
}

// The first elements of what a seed gives are written down here: they must never change.
TEST(Generate, IsTheSameForEver) {
    const auto value = generate({}, DType::f32, {4}, "x", 7);
    const auto same = generate({}, DType::f32, {100}, "x", 7);
    EXPECT_TRUE(
        std::equal(value.as<float>().begin(), value.as<float>().end(), same.as<float>().begin()));
    EXPECT_NE(generate({}, DType::f32, {4}, "y", 7).as<float>()[0], value.as<float>()[0]);
    EXPECT_NE(generate({}, DType::f32, {4}, "x", 8).as<float>()[0], value.as<float>()[0]);
    EXPECT_EQ(fmt::format("{} {} {} {}", value.as<float>()[0], value.as<float>()[1],
                          value.as<float>()[2], value.as<float>()[3]),
              "0.7679979 0.19633466 0.29977322 0.41998374");
}

TEST(Generate, StaysInTheRangeOfTheType) {
    for (const auto dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::f8e4m3fn,
                             DType::u8, DType::i8, DType::i16, DType::i64, DType::u64,
                             DType::boolean, DType::i4, DType::u2, DType::c64, DType::c128}) {
        const auto value = generate({}, dtype, {1001}, "x", 1);
        const auto summary = statistics(dtype, value.bytes(), 1001);
        const bool whole = is_integer(dtype);
        const bool small = bits(dtype) <= 8;
        EXPECT_GE(summary.min, whole && small ? -128 : 0) << name(dtype);
        EXPECT_LE(summary.max, whole ? (small ? 255 : 9) : 1) << name(dtype);
        EXPECT_LT(summary.min, summary.max) << name(dtype);
        if (!whole) {
            EXPECT_NEAR(summary.mean, 0.5, 0.05) << name(dtype);
        }
    }
}

TEST(Generate, RangesAreHalfOpen) {
    const Fill fill{Fill::Kind::between, -2, 3};
    const auto value = generate(fill, DType::i32, {1000}, "x", 1);
    const auto summary = statistics(DType::i32, value.bytes(), 1000);
    EXPECT_EQ(summary.min, -2);
    EXPECT_EQ(summary.max, 2);
    EXPECT_THROW(generate({Fill::Kind::between, 0, 300}, DType::u8, {1}, "x", 1), Error);
    EXPECT_THROW(generate({Fill::Kind::number, -1}, DType::u8, {1}, "x", 1), Error);
    EXPECT_EQ(generate({Fill::Kind::number, 0}, DType::string, {2}, "x", 1).string_values()[1], "");
    EXPECT_EQ(generate({}, DType::string, {2}, "x", 1).string_values()[0].size(), 8u);
}

}  // namespace
}  // namespace trocar
