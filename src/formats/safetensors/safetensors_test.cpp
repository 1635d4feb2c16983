#include "formats/safetensors/safetensors.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "trocar/error.h"
#include "util/files.h"
#include "util/test_folder.h"

namespace trocar::safetensors {
namespace {

class Safetensors : public testing::Test {
protected:
    std::filesystem::path file(const std::string& name) const { return folder_.path() / name; }

    std::vector<NamedValue> read(const std::string& header, const std::string& data) const {
        std::string bytes;
        for (int i = 0; i < 8; ++i) {
            bytes.push_back(static_cast<char>(header.size() >> (8 * i) & 0xff));
        }
        std::ofstream(file("a.safetensors"), std::ios::binary) << bytes << header << data;
        return read_values(file("a.safetensors"));
    }

    std::string fault(const std::string& header, const std::string& data) const {
        try {
            read(header, data);
        } catch (const Error& e) {
            return e.what();
        }
        return "no error";
    }

private:
    TestFolder folder_;
};

Value counting(DType dtype, const Shape& shape) {
    auto value = Value::tensor(dtype, shape);
    for (std::size_t i = 0; i < value.bytes().size(); ++i) {
        value.mutable_bytes()[i] = static_cast<std::byte>(i);
    }
    return value;
}

void expect_same(const Value& a, const Value& b) {
    EXPECT_EQ(a.dtype(), b.dtype());
    EXPECT_EQ(a.shape(), b.shape());
    EXPECT_TRUE(std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin(), b.bytes().end()));
}

TEST_F(Safetensors, ReadsWhatOthersWrite) {
    const auto values = read(
        R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
        R"("b":{"dtype":"BF16","shape":[],"data_offsets":[8,10]}}   )",
        std::string("\0\0\x80\x3f\0\0\0\x40\x80\x3f", 10));
    ASSERT_EQ(values.size(), 2u);
    EXPECT_EQ(values[0].name, "b");
    EXPECT_EQ(values[0].value.dtype(), DType::bf16);
    EXPECT_EQ(values[1].value.as<float>()[1], 2.0f);
}

TEST_F(Safetensors, EveryTypeIsReadBack) {
    for (const auto dtype :
         {DType::boolean, DType::i8, DType::i16, DType::i32, DType::i64, DType::u8, DType::u16,
          DType::u32, DType::u64, DType::f16, DType::f32, DType::f64, DType::bf16, DType::f8e4m3fn,
          DType::f8e5m2, DType::f8e8m0, DType::c64}) {
        for (const auto& shape : {Shape{}, Shape{3}, Shape{2, 0}, Shape{2, 3, 4}}) {
            const auto value = counting(dtype, shape);
            ASSERT_TRUE(holds(value));
            write_value({"x \"quoted\"", value}, file("x.safetensors"), Sync::no);
            const auto back = read_values(file("x.safetensors"));
            ASSERT_EQ(back.size(), 1u);
            EXPECT_EQ(back[0].name, "x \"quoted\"");
            expect_same(back[0].value, value);
        }
    }
    EXPECT_FALSE(holds(Value::tensor(DType::i4, {2})));
    EXPECT_FALSE(holds(Value::strings({1}, {"a"})));
}

TEST_F(Safetensors, ArchivesGrowAndSayWhereTheElementsAre) {
    const auto archive = create_archive(file("a.safetensors"));
    const auto odd = counting(DType::u8, {3});
    const auto floats = counting(DType::f32, {2, 2});
    archive->add({"odd", odd});
    const auto at = archive->add({"floats", floats});
    EXPECT_EQ(read_file(file("a.safetensors")).substr(at, 4), std::string("\0\1\2\3", 4));
    archive->close();
    const auto values = read_values(file("a.safetensors"));
    ASSERT_EQ(values.size(), 2u);
    expect_same(values[0].value, floats);
    expect_same(values[1].value, odd);
}

TEST_F(Safetensors, AnyNumberOfValuesIsWrittenAtOnceTheWidestFirst) {
    const auto odd = counting(DType::u8, {3});
    const auto wide = counting(DType::f64, {2});
    std::vector<NamedValue> values{{"odd", odd}, {"wide", wide}};
    for (int i = 0; i < 10'000; ++i) {
        values.push_back({fmt::format("tensor{}", i), counting(DType::f32, {})});
    }
    write_values(values, file("all.safetensors"), Sync::no);
    std::map<std::string, Value> back;
    for (auto& one : read_values(file("all.safetensors"))) {
        back.emplace(one.name, one.value);
    }
    ASSERT_EQ(back.size(), values.size());
    expect_same(back["odd"], odd);
    expect_same(back["wide"], wide);
    expect_same(back["tensor9999"], values.back().value);
    const auto text = read_file(file("all.safetensors"));
    EXPECT_LT(text.find("\"wide\""), text.find("\"tensor0\""));
    EXPECT_LT(text.find("\"tensor0\""), text.find("\"odd\""));
}

TEST_F(Safetensors, AnArchiveSaysWhenItIsFull) {
    const auto archive = create_archive(file("a.safetensors"));
    const auto value = counting(DType::u8, {1});
    int added = 0;
    for (; added < 100'000; ++added) {
        const auto name = fmt::format("tensor{}", added);
        if (archive->full(name)) {
            break;
        }
        archive->add({name, value});
    }
    archive->close();
    EXPECT_GT(added, 2000);
    EXPECT_EQ(read_values(file("a.safetensors")).size(), static_cast<std::size_t>(added));
}

TEST_F(Safetensors, BrokenFilesAreErrors) {
    const auto entry = [](const char* type, const char* shape, const char* offsets) {
        return fmt::format(R"({{"x":{{"dtype":{},"shape":{},"data_offsets":{}}}}})", type, shape,
                           offsets);
    };
    const std::string eight(8, '\0');
    EXPECT_EQ(fault(entry("\"F32\"", "[2]", "[0,8]"), eight), "no error");
    for (const auto& header :
         {entry("\"F32\"", "[3]", "[0,8]"), entry("\"F32\"", "[2]", "[0,9]"),
          entry("\"F32\"", "[2]", "[8,0]"), entry("\"F32\"", "[-2]", "[0,8]"),
          entry("\"F32\"", "[2]", "[0]"), entry("\"F99\"", "[2]", "[0,8]"),
          entry("3", "[2]", "[0,8]"), entry("\"F32\"", "[9223372036854775807,9]", "[0,8]"),
          entry("\"F32\"", "2", "[0,8]"), std::string("[]"), std::string("{\"x\":1}"),
          std::string("{"), std::string()}) {
        EXPECT_NE(fault(header, eight), "no error") << header;
    }
    std::ofstream(file("b.safetensors"), std::ios::binary) << std::string(8, '\xff') << "{}";
    EXPECT_THROW(read_values(file("b.safetensors")), Error);
}

}  // namespace
}  // namespace trocar::safetensors
