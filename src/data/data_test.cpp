#include "trocar/data.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "trocar/error.h"
#include "trocar/format.h"
#include "util/files.h"
#include "util/test_folder.h"

namespace trocar {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string from_hex(std::string_view hex) {
    std::string bytes;
    for (std::size_t i = 0; i < hex.size(); i += 2) {
        bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
    }
    return bytes;
}

// 1 × 2 pixels: (255, 0, 0), (1, 2, 3).
const std::string color_png = from_hex(
    "89504e470d0a1a0a0000000d49484452000000020000000108020000007b40e8dd0000000f49444154789c63f8cfc0"
    "c0c8c40c00060b0106040b992d0000000049454e44ae426082");
// 2 × 2 pixels: 0, 100, 200, 255.
const std::string gray_png = from_hex(
    "89504e470d0a1a0a0000000d494844520000000200000002080000000057dd52f80000000e49444154789c63604861"
    "38f11f000425022cc60fba210000000049454e44ae426082");

// A model with one input; -1 is a dimension that is not known.
Graph model(DType dtype, const std::vector<std::int64_t>& shape, const std::string& name = "x") {
    Type type = Type::tensor(dtype);
    type.dims.emplace();
    for (const auto size : shape) {
        type.dims->push_back({size, ""});
    }
    Graph graph;
    graph.add_input(name, type);
    return graph;
}

std::string message(const std::function<void()>& work) {
    try {
        work();
    } catch (const Error& e) {
        return fmt::format("{} | {}", e.what(), e.hint());
    }
    return "nothing was wrong";
}

class Data : public testing::Test {
protected:
    void write(const std::string& name, const std::string& bytes) const {
        std::filesystem::create_directories((folder_ / name).parent_path());
        write_file(folder_ / name, bytes);
    }
    template <class T>
    void array(const std::string& stem, DType dtype, const Shape& shape,
               const std::vector<T>& values) const {
        const auto parent = (folder_ / stem).parent_path();
        std::filesystem::create_directories(parent);
        save_value({"", Value::copy(dtype, shape, std::as_bytes(std::span(values)))}, parent,
                   std::filesystem::path(stem).filename().string());
    }
    std::unique_ptr<Dataset> open(const Graph& graph, const std::string& name = "",
                                  const std::vector<std::string>& prep = {}) const {
        DataOptions options;
        options.path = name.empty() ? folder_.path() : folder_ / name;
        options.preprocess = parse_preprocess(prep);
        return open_data(options, graph);
    }
    std::string fault(const Graph& graph, const std::string& name = "",
                      const std::vector<std::string>& prep = {}) const {
        return message([&] { open(graph, name, prep)->sample(1); });
    }

    TestFolder folder_;
};

const auto any_picture = [] { return model(DType::f32, {-1, -1, -1, -1}); };

std::vector<float> floats_of(const Sample& sample) {
    const auto values = sample.inputs.front().value.as<float>();
    return {values.begin(), values.end()};
}

TEST_F(Data, LabelsStandInAFile) {
    write("a.png", color_png);
    write("b.png", color_png);
    write("spare.png", color_png);
    write("labels.csv", "file,label\r\nb.png,7\r\n\"a.png\",0\r\n");
    const auto data = open(any_picture());
    ASSERT_EQ(2U, data->size());
    EXPECT_TRUE(data->labelled());
    EXPECT_EQ("b.png", data->name(0));
    EXPECT_EQ(7, data->label(0));
    EXPECT_EQ(0, data->sample(1).label);
    EXPECT_THAT(data->notes(), ElementsAre("1 picture without a label is left out"));
    EXPECT_EQ((Shape{1, 3, 1, 2}), data->sample(0).inputs.front().value.shape());
    EXPECT_THAT(floats_of(data->sample(0)), ElementsAre(255, 1, 0, 2, 0, 3));
    EXPECT_THAT(data->description(), HasSubstr("2 pictures of"));
}

TEST_F(Data, FoldersAreClasses) {
    write("dog/1.png", color_png);
    write("cat/2.png", color_png);
    write("cat/notes.txt", "no picture");
    const auto data = open(any_picture());
    ASSERT_EQ(2U, data->size());
    EXPECT_THAT(data->class_names(), ElementsAre("cat", "dog"));
    EXPECT_EQ("cat/2.png", data->name(0));
    EXPECT_EQ(1, data->label(1));
    write("classes.txt", "dog\ncat\n");
    EXPECT_EQ(1, open(any_picture())->label(0));
    write("classes.txt", "dog\nbird\n");
    EXPECT_THAT(fault(any_picture()), HasSubstr("there is no class 'cat'"));
}

TEST_F(Data, WordsAreLabelsInTheirOrder) {
    write("a.png", color_png);
    write("b.png", color_png);
    write("labels.csv", "a.png,zebra\nb.png,ape\n");
    EXPECT_EQ(1, open(any_picture())->label(0));
    EXPECT_EQ(0, open(any_picture())->label(1));
}

TEST_F(Data, LabelsThatDoNotFitAreRefused) {
    write("a.png", color_png);
    const auto with = [&](const std::string& rows) {
        write("labels.csv", rows);
        return fault(any_picture());
    };
    EXPECT_THAT(with("a.png,-1\n"), HasSubstr("'a.png': the label -1 is negative"));
    EXPECT_THAT(with("b.png,1\n"), HasSubstr("'b.png': there is no such file"));
    EXPECT_THAT(with("../a.png,1\n"), HasSubstr("is not a file below the folder"));
    EXPECT_THAT(with("/etc/passwd,1\n"), HasSubstr("is not a file below the folder"));
    EXPECT_THAT(with("a.png,1\na.png,2\n"), HasSubstr("named twice"));
    EXPECT_THAT(with("a.png\n"), HasSubstr("'a.png' has no label"));
    EXPECT_THAT(with("file,label\n"), HasSubstr("names no pictures"));
    EXPECT_THAT(with("\"a.png,1\n"), HasSubstr("a quoted field does not end"));
    write("labels.csv", "a.png,5\n");
    DataOptions options;
    options.path = folder_.path();
    options.classes = 5;
    EXPECT_THAT(message([&] { open_data(options, any_picture()); }),
                HasSubstr("has the label 5, but there are 5 classes"));
}

TEST_F(Data, FoldersWithoutPicturesAreRefused) {
    EXPECT_THAT(fault(any_picture()), HasSubstr("cannot be told"));
    EXPECT_THAT(fault(any_picture(), "nowhere"), HasSubstr("does not exist"));
    write("cat/notes.txt", "no picture");
    EXPECT_THAT(fault(any_picture()), HasSubstr("holds no .png or .jpg"));
    write("cat/a.png", color_png);
    write("b.png", color_png);
    EXPECT_THAT(fault(any_picture()), HasSubstr("both in folders and beside them"));
}

TEST_F(Data, PicturesMustBeAlikeUnlessResized) {
    write("a.png", color_png);
    write("b.png", gray_png);
    EXPECT_THAT(fault(any_picture()), HasSubstr("'b.png' is 1x1x2x2, but 'a.png' is 1x3x1x2"));
    EXPECT_EQ("nothing was wrong", fault(any_picture(), "", {"color=rgb resize=4x4"}));
}

TEST_F(Data, BrokenPicturesAreRefused) {
    write("a.png", color_png.substr(0, 60));
    EXPECT_THAT(fault(any_picture()), HasSubstr("is a broken PNG"));
    auto huge = color_png;
    huge[16] = 0x0f;  // the width
    write("a.png", huge);
    EXPECT_THAT(fault(any_picture()), HasSubstr("is a broken PNG"));
    write("a.png", "\xff\xd8\xff\xe0 nothing");
    EXPECT_THAT(fault(any_picture()), HasSubstr("is a broken JPEG"));
    write("a.png", "");
    EXPECT_THAT(fault(any_picture()), HasSubstr("neither PNG nor JPEG"));
}

TEST_F(Data, TheModelSaysLayoutAndChannels) {
    write("a.png", color_png);
    const auto nhwc = open(model(DType::u8, {1, 1, 2, 3}))->sample(0).inputs.front().value;
    EXPECT_EQ((Shape{1, 1, 2, 3}), nhwc.shape());
    EXPECT_EQ(DType::u8, nhwc.dtype());
    EXPECT_EQ(255, nhwc.as<std::uint8_t>()[0]);
    EXPECT_EQ(2, nhwc.as<std::uint8_t>()[4]);
    EXPECT_THAT(fault(model(DType::f32, {1, 1, 1, 2})), HasSubstr("| --prep color=gray"));
    EXPECT_THAT(fault(model(DType::f32, {1, 3, 8, 9})), HasSubstr("| --prep resize=8x9"));
    EXPECT_THAT(fault(model(DType::f32, {8, 3, 1, 2})), HasSubstr("takes 8 samples at once"));
    write("a.png", gray_png);
    EXPECT_THAT(floats_of(open(model(DType::f32, {1, 3, 2, 2}))->sample(0)),
                ElementsAre(0, 100, 200, 255, 0, 100, 200, 255, 0, 100, 200, 255));
    EXPECT_EQ((Shape{1, 4}),
              open(model(DType::f32, {-1, 4}))->sample(0).inputs.front().value.shape());
    EXPECT_EQ((Shape{1, 2, 2}),
              open(model(DType::f32, {-1, 2, 2}))->sample(0).inputs.front().value.shape());
}

TEST_F(Data, StepsAreTakenInTheirOrder) {
    write("a.png", color_png);
    const auto data =
        open(any_picture(), "", {"color=bgr scale=1/255 mean=0,0,1 std=1,2,0.5", "layout=nhwc"});
    EXPECT_EQ((Shape{1, 1, 2, 3}), data->sample(0).inputs.front().value.shape());
    const auto values = floats_of(data->sample(0));
    EXPECT_FLOAT_EQ(0, values[2]);          // (255 / 255 - 1) / 0.5
    EXPECT_FLOAT_EQ(3.F / 255, values[3]);  // blue comes first
    EXPECT_FLOAT_EQ(2.F / 255 / 2, values[4]);
    EXPECT_THAT(fault(any_picture(), "", {"mean=1,2"}), HasSubstr("mean has 2 numbers"));
    EXPECT_THAT(fault(any_picture(), "", {"crop=2"}), HasSubstr("2x2 cannot be cropped from it"));
    EXPECT_THAT(fault(model(DType::u8, {-1, 3, 1, 2}), "", {"scale=1/255"}),
                HasSubstr("which u8 of the model's input cannot"));
}

TEST_F(Data, ArraysAreInputsByName) {
    array<float>("x", DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6});
    array<std::int64_t>("mask", DType::i64, {2}, {8, 9});
    array<std::int32_t>("labels", DType::i32, {2}, {1, 0});
    Graph graph = model(DType::f32, {-1, 3});
    graph.add_input("mask", Type::tensor(DType::i64));
    const auto data = open(graph);
    const auto sample = data->sample(1);
    ASSERT_EQ(2U, sample.inputs.size());
    EXPECT_EQ("x", sample.inputs[0].name);
    EXPECT_EQ((Shape{1, 3}), sample.inputs[0].value.shape());
    EXPECT_THAT(floats_of(sample), ElementsAre(4, 5, 6));
    EXPECT_EQ(9, sample.inputs[1].value.as<std::int64_t>()[0]);
    EXPECT_EQ(0, sample.label);
    EXPECT_THAT(fault(graph, "", {"scale=2"}), HasSubstr("preprocessing is for one input"));
    EXPECT_THAT(fault(model(DType::f32, {-1, 3}, "other")), HasSubstr("none of which is an input"));
}

TEST_F(Data, ASingleArrayIsForTheSingleInput) {
    array<std::uint8_t>("images", DType::u8, {2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
    array<std::int64_t>("images_labels", DType::i64, {2}, {3, 4});
    const auto data = open(model(DType::f32, {-1, 1, 2, 2}), "images.npy", {"layout=nchw scale=2"});
    EXPECT_THAT(floats_of(data->sample(1)), ElementsAre(8, 10, 12, 14));
    EXPECT_EQ(4, data->label(1));
    EXPECT_THAT(floats_of(open(model(DType::f32, {-1, 2, 2}), "images.npy")->sample(0)),
                ElementsAre(0, 1, 2, 3));
}

TEST_F(Data, ArraysThatDoNotFitAreRefused) {
    const auto graph = model(DType::f32, {-1, 3});
    array<float>("x", DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6});
    array<std::int32_t>("labels", DType::i32, {1}, {1});
    EXPECT_THAT(fault(graph), HasSubstr("there are 1 labels for 2 samples"));
    array<std::int32_t>("labels", DType::i32, {2}, {1, -2});
    EXPECT_THAT(fault(graph), HasSubstr("the label -2 is negative"));
    array<float>("labels", DType::f32, {2}, {1, 2});
    EXPECT_THAT(fault(graph), HasSubstr("labels are integers"));
    std::filesystem::remove(folder_ / "labels.npy");
    EXPECT_THAT(fault(model(DType::f32, {-1, 4})), HasSubstr("is f32 3, but the input 'x' is"));
    array<float>("x", DType::f32, {0, 3}, {});
    EXPECT_THAT(fault(graph), HasSubstr("cannot be samples"));
}

TEST_F(Data, APartCanBeChosen) {
    array<float>("x", DType::f32, {5, 1}, {1, 2, 3, 4, 5});
    DataOptions options;
    options.path = folder_ / "x.npy";
    options.offset = 3;
    const auto graph = model(DType::f32, {-1, 1});
    EXPECT_EQ(2U, open_data(options, graph)->size());
    options.limit = 1;
    EXPECT_THAT(floats_of(open_data(options, graph)->sample(0)), ElementsAre(4));
    EXPECT_THROW(open_data(options, graph)->sample(1), Error);
    options.offset = 5;
    EXPECT_THAT(message([&] { open_data(options, graph); }), HasSubstr("leaves none of 5 samples"));
}

TEST_F(Data, TheHashTellsDataApart) {
    write("a.png", color_png);
    write("labels.csv", "a.png,1\n");
    const auto first = open(any_picture())->hash();
    EXPECT_EQ(first, open(any_picture())->hash());
    EXPECT_NE(first, open(any_picture(), "", {"scale=2"})->hash());
    write("labels.csv", "a.png,2\n");
    EXPECT_NE(first, open(any_picture())->hash());
    write("labels.csv", "a.png,1\n");
    EXPECT_EQ(first, open(any_picture())->hash());
    write("a.png", gray_png);
    EXPECT_NE(first, open(any_picture())->hash());
}

TEST_F(Data, ACommandCanMakeTheSample) {
    array<float>("x", DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6});
    const auto graph = model(DType::f32, {-1, 3});
    EXPECT_THAT(floats_of(open(graph, "", {"scale=2 command=cat"})->sample(1)),
                ElementsAre(8, 10, 12));
    EXPECT_THAT(fault(graph, "", {"command=echo no such thing >&2; exit 3"}),
                HasSubstr("failed on 'sample 0' with exit code 3 | no such thing"));
    EXPECT_THAT(fault(graph, "", {"command=true"}), HasSubstr("is no .npy array"));
}

TEST_F(Data, OtherModelsThanWithOneInputNeedArrays) {
    write("a.png", color_png);
    Graph graph = model(DType::f32, {-1, 3});
    graph.add_input("more", Type::tensor(DType::f32));
    EXPECT_THAT(fault(graph), HasSubstr("the model takes 2 inputs"));
    DataOptions options;
    options.path = folder_.path();
    options.kind = "image";
    EXPECT_THAT(message([&] { open_data(options, graph); }), HasSubstr("did you mean 'images'?"));
}

TEST(PreprocessText, IsReadAndWrittenBack) {
    const std::vector<std::string> texts{"imagenet", "crop=192x200 batch=1",
                                         "command=python3 pre.py --size 3"};
    const auto read = parse_preprocess(texts);
    EXPECT_EQ(192, read.crop->height);
    EXPECT_EQ(200, read.crop->width);
    EXPECT_EQ("python3 pre.py --size 3", read.command);
    const auto text = preprocess_text(read);
    EXPECT_THAT(text, HasSubstr("color=rgb resize=256 filter=antialias crop=192x200 scale=0.0039"));
    EXPECT_EQ(read, parse_preprocess(std::vector{text}));
    EXPECT_EQ("", preprocess_text({}));
    const std::vector<std::string> events{
        "steps=4 split=count values=binary sensor=8x16 downscale=2"};
    EXPECT_EQ(events.front(), preprocess_text(parse_preprocess(events)));
}

TEST(PreprocessText, WhatIsWrongIsSaid) {
    const auto fault = [](const std::string& text) {
        return message([&] { parse_preprocess(std::vector{text}); });
    };
    EXPECT_THAT(fault("resiz=3"), HasSubstr("no key 'resiz' | did you mean 'resize'?"));
    EXPECT_THAT(fault("resize=0"), HasSubstr("'0' is no resize"));
    EXPECT_THAT(fault("resize=1x2x3"), HasSubstr("is no resize"));
    EXPECT_THAT(fault("scale=1/0"), HasSubstr("divided by 0"));
    EXPECT_THAT(fault("std=1,0"), HasSubstr("divided by 0"));
    EXPECT_THAT(fault("mean=a"), HasSubstr("write a number"));
    EXPECT_THAT(fault("color=pink"), HasSubstr("as-is, rgb, bgr, gray"));
    EXPECT_THAT(fault("fast"), HasSubstr("write KEY=VALUE"));
    EXPECT_THAT(fault("sensor=128 downscale=3"), HasSubstr("cannot be scaled down by 3"));
}

}  // namespace
}  // namespace trocar
