#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zip.h>

#include <fstream>

#include "formats/numpy/npy.h"
#include "trocar/error.h"
#include "trocar/format.h"
#include "util/files.h"
#include "util/test_folder.h"

namespace trocar {

extern const Format numpy_format;

namespace {

// Without waiting for the disk, as write_file does.
void put(const std::filesystem::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
}

// A folder that goes with the test.
class Numpy : public testing::Test {
protected:
    std::filesystem::path file(const std::string& name) const { return folder_ / name; }

    Value read(const std::string& bytes) const {
        put(file("a.npy"), bytes);
        auto values = numpy_format.read_values(file("a.npy"));
        EXPECT_EQ(values.size(), 1u);
        return values.at(0).value;
    }

    // What is wrong with the file, in words.
    std::string fault(const std::string& bytes) const {
        try {
            read(bytes);
        } catch (const Error& e) {
            std::string text = e.what();
            const auto path = fmt::format("'{}'", file("a.npy").string());
            const auto at = text.find(path);
            return at == std::string::npos ? text : text.replace(at, path.size(), "FILE");
        }
        return "no error";
    }

private:
    TestFolder scratch_;
    const std::filesystem::path& folder_ = scratch_.path();
};

std::string with_header(const std::string& dictionary, const std::string& data, int version = 1) {
    std::string bytes(numpy::npy_magic);
    bytes += static_cast<char>(version);
    bytes += '\0';
    auto length = dictionary.size();
    for (int i = 0; i < (version == 1 ? 2 : 4); ++i) {
        bytes += static_cast<char>(length & 0xff);
        length >>= 8;
    }
    return bytes + dictionary + data;
}

std::string npy(const std::string& descr, const std::string& shape, const std::string& data,
                const std::string& fortran_order = "False", int version = 1) {
    return with_header(fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}\n", descr,
                                   fortran_order, shape),
                       data, version);
}

template <class T>
std::string raw(const std::vector<T>& elements) {
    return {reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T)};
}

template <class T>
std::vector<T> elements(const Value& value) {
    const auto span = value.as<T>();
    return {span.begin(), span.end()};
}

using Texts = std::vector<std::string>;

TEST_F(Numpy, ReadsEveryVersionOfTheHeader) {
    for (const int version : {1, 2, 3}) {
        const auto value =
            read(npy("<i4", "(2, 3)", raw<std::int32_t>({1, 2, 3, 4, 5, 6}), "False", version));
        EXPECT_EQ(value.dtype(), DType::i32);
        EXPECT_EQ(value.shape(), (Shape{2, 3}));
        EXPECT_EQ(elements<std::int32_t>(value), (std::vector<std::int32_t>{1, 2, 3, 4, 5, 6}));
    }
    EXPECT_EQ(fault(npy("<i4", "()", raw<int>({1}), "False", 4)),
              "FILE: .npy version 4.0 is not read");
}

TEST_F(Numpy, BigEndianElementsAreTurnedAround) {
    EXPECT_EQ(elements<std::int16_t>(read(npy(">i2", "(2,)", std::string("\x01\x02\xff\xfe", 4)))),
              (std::vector<std::int16_t>{0x0102, -2}));
    // Both parts of a complex number, each on its own: 1 + 2i.
    const std::string parts("\x3f\x80\x00\x00\x40\x00\x00\x00", 8);
    EXPECT_EQ(elements<float>(read(npy(">c8", "()", parts))), (std::vector<float>{1, 2}));
}

TEST_F(Numpy, ColumnMajorArraysAreReordered) {
    // 0 1 2 / 3 4 5, stored by columns.
    const auto stored = raw<std::int16_t>({0, 3, 1, 4, 2, 5});
    EXPECT_EQ(elements<std::int16_t>(read(npy("<i2", "(2, 3)", stored, "True"))),
              (std::vector<std::int16_t>{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(read(npy("|S1", "(2, 3)", "adbecf", "True")).string_values(),
              (Texts{"a", "b", "c", "d", "e", "f"}));
    EXPECT_EQ(read(npy("<f4", "(0, 3)", "", "True")).shape(), (Shape{0, 3}));
}

TEST_F(Numpy, TextsLoseTheirPadding) {
    EXPECT_EQ(read(npy("|S3", "(2,)", std::string("ab\0a\0b", 6))).string_values(),
              (Texts{"ab", std::string("a\0b", 3)}));
    const std::u32string points = U"é€😀\0";
    const std::string bytes(reinterpret_cast<const char*>(points.data()), 16);
    EXPECT_EQ(read(npy("<U4", "()", bytes)).string_values(), (Texts{"é€😀"}));
    EXPECT_EQ(read(npy(">U1", "(1,)", std::string("\0\0\0x", 4))).string_values(), (Texts{"x"}));
    EXPECT_EQ(fault(npy("<U1", "(1,)", std::string("\x00\xd8\x00\x00", 4))),
              "FILE: a text holds 0xd800, which is no character");
    EXPECT_EQ(fault(npy("<U0", "(1000000000000,)", "")),
              "FILE: texts of 0 characters are not read");
}

TEST_F(Numpy, LargeFilesAreNotCopied) {
    const Shape shape{1024, 1024};
    numpy_format.write_value({"", Value::tensor(DType::f32, shape)}, file("large.npy"), Sync::no);
    auto value = numpy_format.read_values(file("large.npy")).at(0).value;
    EXPECT_THROW(value.mutable_bytes(), Error);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(value.bytes().data()) % 64, 0u);
    std::filesystem::remove(file("large.npy"));
    EXPECT_EQ(value.as<float>()[1024 * 1024 - 1], 0.0f);
}

TEST_F(Numpy, MisalignedElementsAreCopied) {
    const std::vector<double> zeros(1 << 18);
    auto bytes = npy("<f8", "(262144,)", raw(zeros));
    const auto value = read(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(value.bytes().data()) % 8, 0u);
}

TEST_F(Numpy, WhatIsNoArrayOfNumbersIsRefused) {
    EXPECT_EQ(fault(npy("|O", "(1,)", "x")), "FILE: pickled objects are not read");
    EXPECT_EQ(fault(npy("|O8", "(1,)", "x")), "FILE: pickled objects are not read");
    EXPECT_EQ(fault(npy("<V2", "(1,)", "xx")),
              "FILE: elements of type '<V2' do not say what their bytes mean");
    EXPECT_EQ(fault(npy("<f16", "(1,)", "x")), "FILE: elements of type '<f16' are not read");
    EXPECT_EQ(fault(npy("<M8[ns]", "(1,)", "x")), "FILE: elements of type '<M8[ns]' are not read");
    EXPECT_EQ(
        fault(with_header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", "")),
        "FILE: structured arrays are not read");
}

TEST_F(Numpy, SizesMustAgree) {
    EXPECT_EQ(fault(npy("<f4", "(2,)", "1234567")),
              "FILE: 2 elements of 4 bytes are declared, but only 7 bytes follow");
    EXPECT_EQ(fault(npy("<f4", "(2,)", "123456789")),
              "FILE: the array ends 1 byte before the file does");
    EXPECT_EQ(
        fault(npy("<f8", "(9223372036854775807,)", "")),
        "FILE: 9223372036854775807 elements of 8 bytes are declared, but only 0 bytes follow");
    EXPECT_EQ(fault(npy("<f8", "(9223372036854775807, 2)", "")),
              "shape [9223372036854775807,2] has more elements than 63 bits count");
    EXPECT_EQ(fault(npy("|b1", "(2,)", "\x01\x02")),
              "FILE: element 1 is neither false nor true, but 2");
}

TEST_F(Numpy, BrokenHeadersAreNamed) {
    EXPECT_EQ(fault("\x93NUMPY\x01"), "FILE: the .npy header ends early, after 7 bytes");
    EXPECT_EQ(fault(std::string("\x93NUMPY\x01\x00\xff\x00{}", 12)),
              "FILE: the .npy header ends early, after 12 bytes");
    EXPECT_EQ(fault(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12)),
              "FILE: an .npy header of 4294967295 bytes is too long");
    EXPECT_EQ(fault(npy("<f4", "(-1,)", "")),
              "FILE: the .npy header is broken at character 51: a dimension expected");
    EXPECT_EQ(fault(npy("<f4", "3", "")),
              "FILE: the .npy header is broken at character 50: '(' expected");
    EXPECT_EQ(
        fault(with_header("{'descr': '<f4'}", "")),
        "FILE: the .npy header is broken at character 16: one of 'descr', 'fortran_order' and "
        "'shape' is missing");
    EXPECT_EQ(fault("not numpy"), "FILE is neither an .npy array nor an .npz archive");
}

TEST_F(Numpy, EveryCutAndEveryFlippedByteOfTheHeaderIsSurvived) {
    const auto whole = npy("<i2", "(2, 2)", raw<std::int16_t>({1, 2, 3, 4}), "True");
    for (std::size_t length = 0; length < whole.size(); ++length) {
        EXPECT_NE(fault(whole.substr(0, length)), "no error");
    }
    for (std::size_t at = 0; at < whole.size(); ++at) {
        for (const int flip : {0x01, 0x20, 0x80, 0xff}) {
            auto bent = whole;
            bent[at] = static_cast<char>(bent[at] ^ flip);
            fault(bent);
        }
    }
}

TEST_F(Numpy, WritesWhatItReads) {
    for (const auto dtype :
         {DType::boolean, DType::i8, DType::i16, DType::i32, DType::i64, DType::u8, DType::u16,
          DType::u32, DType::u64, DType::f16, DType::f32, DType::f64, DType::c64, DType::c128}) {
        for (const auto& shape : {Shape{}, Shape{3}, Shape{2, 0}, Shape{2, 3, 4}}) {
            auto value = Value::tensor(dtype, shape);
            for (std::size_t i = 0; i < value.bytes().size(); ++i) {
                value.mutable_bytes()[i] = static_cast<std::byte>(i % 2);
            }
            ASSERT_TRUE(numpy_format.holds(value));
            numpy_format.write_value({"x", value}, file("x.npy"), Sync::no);
            const auto back = numpy_format.read_values(file("x.npy")).at(0).value;
            EXPECT_EQ(back.dtype(), dtype);
            EXPECT_EQ(back.shape(), shape);
            EXPECT_TRUE(std::equal(back.bytes().begin(), back.bytes().end(), value.bytes().begin(),
                                   value.bytes().end()));
        }
    }
}

TEST_F(Numpy, WhatNumpyHasNoTypeForIsNotHeld) {
    for (const auto dtype : {DType::bf16, DType::f8e4m3fn, DType::i4}) {
        EXPECT_FALSE(numpy_format.holds(Value::tensor(dtype, {2})));
    }
    EXPECT_FALSE(numpy_format.holds(Value::strings({1}, {"a"})));
    EXPECT_FALSE(numpy_format.holds(Value::sequence({})));
    EXPECT_FALSE(numpy_format.holds(Value()));
    EXPECT_FALSE(numpy_format.holds(Value::tensor(DType::f32, Shape(33, 1))));
    EXPECT_THROW(
        numpy_format.write_value({"", Value::tensor(DType::bf16, {2})}, file("x.npy"), Sync::no),
        Error);
    EXPECT_FALSE(std::filesystem::exists(file("x.npy")));
}

// An archive with these files in it.
void write_archive(const std::filesystem::path& path,
                   const std::vector<std::pair<std::string, std::string>>& files, bool deflated) {
    int code = 0;
    zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
    ASSERT_NE(archive, nullptr);
    for (const auto& [name, bytes] : files) {
        zip_source_t* source = zip_source_buffer(archive, bytes.data(), bytes.size(), 0);
        const auto index = zip_file_add(archive, name.c_str(), source, 0);
        ASSERT_GE(index, 0);
        zip_set_file_compression(archive, static_cast<zip_uint64_t>(index),
                                 deflated ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0);
    }
    ASSERT_EQ(zip_close(archive), 0);
}

TEST_F(Numpy, ArchivesStoredAndDeflated) {
    const std::vector<std::int64_t> many(5000, 7);
    for (const bool deflated : {false, true}) {
        write_archive(
            file("a.npz"),
            {{"x.npy", npy("<i8", "(5000,)", raw(many))}, {"mask/y.npy", npy("|b1", "()", "\x01")}},
            deflated);
        const auto values = numpy_format.read_values(file("a.npz"));
        ASSERT_EQ(values.size(), 2u);
        EXPECT_EQ(values[0].name, "x");
        EXPECT_EQ(elements<std::int64_t>(values[0].value), many);
        EXPECT_EQ(values[1].name, "mask/y");
        EXPECT_EQ(values[1].value.dtype(), DType::boolean);
    }
}

TEST_F(Numpy, ArchivesWithOtherThingsAreRefused) {
    write_archive(file("a.npz"), {{"notes.txt", "hello"}}, false);
    EXPECT_THROW(numpy_format.read_values(file("a.npz")), Error);
    write_archive(file("a.npz"), {{"x.npy", "hello"}}, false);
    EXPECT_THROW(numpy_format.read_values(file("a.npz")), Error);
}

TEST_F(Numpy, ABrokenArchiveIsAnErrorWhereverItIsBroken) {
    write_archive(file("a.npz"), {{"x.npy", npy("<i4", "(2, 2)", raw<int>({1, 2, 3, 4}))}}, true);
    const auto whole = read_file(file("a.npz"));
    for (std::size_t at = 2; at < whole.size(); ++at) {
        auto bent = whole;
        bent[at] = static_cast<char>(bent[at] ^ 0x55);
        put(file("b.npz"), bent);
        try {
            numpy_format.read_values(file("b.npz"));
        } catch (const Error&) {
        }
        put(file("b.npz"), whole.substr(0, at));
        EXPECT_THROW(numpy_format.read_values(file("b.npz")), Error);
    }
}

TEST_F(Numpy, AnArchiveThatDeclaresFarTooMuchIsRefusedBeforeItIsUnpacked) {
    write_archive(file("bomb.npz"), {{"x.npy", npy("|u1", "()", "a")}}, true);
    auto bytes = read_file(file("bomb.npz"));
    const auto directory = bytes.find("PK\x01\x02");
    ASSERT_NE(directory, std::string::npos);
    bytes.replace(directory + 24, 4, "\xff\xff\xff\x7f");  // its unpacked size: 2 GiB
    put(file("bomb.npz"), bytes);
    try {
        numpy_format.read_values(file("bomb.npz"));
        FAIL();
    } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find("declares arrays of over 256 MiB"), std::string::npos)
            << e.what();
    }
}

TEST_F(Numpy, ArchivesThatGrowAreReadBack) {
    const auto archive = numpy_format.create_archive(file("grown.npz"));
    auto x = Value::tensor(DType::f32, {3, 2});
    x.mutable_bytes()[5] = std::byte{7};
    const auto at = archive->add({"/layer/x:0", x});
    EXPECT_EQ(at % 64, 0u);
    EXPECT_THROW(archive->add({"b", Value::tensor(DType::bf16, {2})}), Error);
    EXPECT_EQ(archive->add({"empty", Value::tensor(DType::i64, {0})}) % 64, 0u);
    archive->close();
    const auto values = numpy_format.read_values(file("grown.npz"));
    ASSERT_EQ(values.size(), 2u);
    EXPECT_EQ(values[0].name, "/layer/x:0");
    EXPECT_EQ(elements<float>(values[0].value), elements<float>(x));
    EXPECT_EQ(values[1].value.shape(), Shape{0});
    EXPECT_EQ(read_file(file("grown.npz"))[at + 5], 7);
}

}  // namespace
}  // namespace trocar
