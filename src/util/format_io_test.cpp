#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "trocar/error.h"
#include "trocar/format.h"
#include "util/files.h"
#include "util/test_folder.h"

namespace trocar {
namespace {

class FormatIo : public testing::Test {
protected:
    std::filesystem::path file(const std::string& name) const { return folder_ / name; }

    // What is said, with FOLDER for the folder, the hint behind a '|'.
    template <class Work>
    std::string fault(Work&& work, Fault expected) const {
        try {
            work();
        } catch (const Error& e) {
            EXPECT_EQ(e.fault(), expected) << e.what();
            std::string text =
                e.hint().empty() ? e.what() : fmt::format("{} | {}", e.what(), e.hint());
            for (auto at = text.find(folder_.string()); at != std::string::npos;
                 at = text.find(folder_.string())) {
                text.replace(at, folder_.string().size(), "FOLDER");
            }
            return text;
        }
        return "no error";
    }
    std::string load_fault(const std::string& name, Fault expected = Fault::input,
                           std::string_view format = {}) const {
        return fault([&] { load(file(name), format); }, expected);
    }

    TestFolder scratch_;
    const std::filesystem::path& folder_ = scratch_.path();
};

TEST_F(FormatIo, FormatsAreFoundByName) {
    ASSERT_NE(find_format("numpy"), nullptr);
    EXPECT_STREQ(find_format("numpy")->name, "numpy");
    EXPECT_EQ(find_format("nmpy"), nullptr);
}

TEST_F(FormatIo, MissingFilesFoldersAndEmptyFilesHaveTheirOwnSentences) {
    write_file(file("model.onnx"), "x");
    write_file(file("empty.onnx"), "");
    EXPECT_EQ(load_fault("modle.onnx"),
              "there is no file 'FOLDER/modle.onnx' | did you mean 'FOLDER/model.onnx'?");
    EXPECT_EQ(load_fault("none/model.onnx"), "there is no folder 'FOLDER/none'");
    EXPECT_EQ(load_fault("empty.onnx"), "'FOLDER/empty.onnx' is empty");
    EXPECT_TRUE(load_fault("").starts_with("'FOLDER/' is a folder, not a file"));
    EXPECT_EQ(fault([] { load("/dev/null"); }, Fault::input),
              "'/dev/null' is not an ordinary file");
}

TEST_F(FormatIo, ContentThatNoFormatTakesListsTheFormats) {
    write_file(file("notes.txt"), "these are notes");
    const auto said = load_fault("notes.txt", Fault::unsupported);
    EXPECT_TRUE(
        said.starts_with("'FOLDER/notes.txt' is not a model format this build can read | known "
                         "formats: "))
        << said;
    EXPECT_TRUE(said.ends_with("; force one with --format")) << said;
}

TEST_F(FormatIo, TensorsAreNoModel) {
    const auto path = save_value({"x", Value::tensor(DType::f32, {2})}, folder_, "x");
    EXPECT_EQ(path, file("x.npy"));
    EXPECT_EQ(
        load_fault("x.npy", Fault::unsupported),
        "'FOLDER/x.npy' is a file of tensors (numpy), not a model | `trocar convert MODEL OUT "
        "--weights FILE` puts tensors into a model");
    EXPECT_TRUE(load_fault("x.npy", Fault::unsupported, "numpy")
                    .starts_with("models in the format 'numpy' cannot be read"));
    EXPECT_TRUE(load_fault("x.npy", Fault::usage, "none").starts_with("no format named 'none'"));
}

TEST_F(FormatIo, APointerOfGitLfsIsNamed) {
    write_file(file("model.onnx"),
               "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
    EXPECT_EQ(load_fault("model.onnx"),
              "'FOLDER/model.onnx' is a Git LFS pointer, not the file it stands for | fetch the "
              "file with "
              "`git lfs pull`");
}

TEST_F(FormatIo, ASuffixThatNamesNoFormatIsNotWritten) {
    const Model model;
    const auto said = fault([&] { save(model, file("out.xyz")); }, Fault::usage);
    EXPECT_TRUE(said.starts_with(
        "the suffix of 'FOLDER/out.xyz' names no model format that can be written | known: "))
        << said;
    EXPECT_FALSE(std::filesystem::exists(file("out.xyz")));
}

TEST_F(FormatIo, ValuesGoThroughTheFormatOfTheirSuffix) {
    save_value({"", Value::copy(DType::u8, {2}, std::as_bytes(std::span("ab", 2)))},
               folder_ / "new", "a");
    std::filesystem::rename(folder_ / "new" / "a.npy", file("A.NPY"));
    const auto values = load_values(file("A.NPY"));
    ASSERT_EQ(values.size(), 1u);
    EXPECT_EQ(value_text(values[0].value), "u8 2");
    write_file(file("a.dat"), "ab");
    const auto said = fault([&] { load_values(file("a.dat")); }, Fault::unsupported);
    EXPECT_TRUE(said.starts_with(
        "the suffix of 'FOLDER/a.dat' names no format of tensors that can be read"))
        << said;
    EXPECT_EQ(fault([&] { load_values(file("b.npy")); }, Fault::input),
              "there is no file 'FOLDER/b.npy'");
}

TEST_F(FormatIo, AFolderThatCannotBeMadeIsNamed) {
    write_file(file("plain"), "x");
    EXPECT_TRUE(
        fault(
            [&] {
                save_value({"x", Value::tensor(DType::f32, {1})}, file("plain") / "sub", "x");
            },
            Fault::input)
            .starts_with("cannot make the folder 'FOLDER/plain/sub'"));
}

}  // namespace
}  // namespace trocar
