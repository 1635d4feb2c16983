#include "util/zip_archive.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "trocar/error.h"
#include "util/test_zip.h"

namespace trocar {
namespace {

Bytes as_bytes(const std::string& text) {
    return std::as_bytes(std::span(text));
}

std::string text(Bytes bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(ZipArchive, StoredMembersAreViews) {
    const auto file = TestZip().add("a/x", "hello", 37).add("a/y", "").bytes();
    const ZipArchive archive(as_bytes(file), "'a.zip'");
    ASSERT_EQ(archive.members().size(), 2u);
    const auto view = ZipArchive::view(*archive.find("a/x"));
    ASSERT_TRUE(view);
    EXPECT_EQ(text(*view), "hello");
    EXPECT_GE(reinterpret_cast<const char*>(view->data()), file.data());
    EXPECT_LT(reinterpret_cast<const char*>(view->data()), file.data() + file.size());
    EXPECT_EQ(archive.find("x"), nullptr);
}

TEST(ZipArchive, PackedMembersAreUnpacked) {
    // "aaaaaaaaaa", deflated.
    const std::string packed("KL\x84\x01\x00", 5);
    const auto file = TestZip().put("x", packed, "aaaaaaaaaa", 8).bytes();
    const ZipArchive archive(as_bytes(file), "'a.zip'");
    EXPECT_FALSE(ZipArchive::view(archive.members()[0]));
    EXPECT_EQ(text(archive.unpack(archive.members()[0])), "aaaaaaaaaa");
    for (const std::string_view other : {"aaaaaaaaa", "aaaaaaaaaaa"}) {
        const auto wrong = TestZip().put("x", packed, other, 8).bytes();
        const ZipArchive lies(as_bytes(wrong), "'a.zip'");
        EXPECT_THROW(lies.unpack(lies.members()[0]), Error);
    }
}

TEST(ZipArchive, EveryCutAndEveryChangedByteIsAnErrorOrAnArchive) {
    const auto whole = TestZip().add("one", "11111").add("two", "22", 5).bytes();
    const auto read = [](const std::string& file) {
        try {
            const ZipArchive archive(as_bytes(file), "'a.zip'");
            for (const auto& member : archive.members()) {
                archive.unpack(member);
            }
        } catch (const Error& e) {
            EXPECT_TRUE(e.fault() == Fault::input || e.fault() == Fault::unsupported);
        }
    };
    for (std::size_t i = 0; i < whole.size(); ++i) {
        read(whole.substr(0, i));
        for (const char change : {'\0', '\x7f', '\xff'}) {
            auto changed = whole;
            changed[i] = change;
            read(changed);
        }
    }
}

TEST(ZipArchive, MembersTogetherUnpackToABoundedSize) {
    constexpr std::size_t size = std::size_t{10} << 20;
    const std::string zeros(size, '\0');
    std::string packed(compressBound(size), '\0');
    z_stream stream{};
    ASSERT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(zeros.data()));
    stream.avail_in = size;
    stream.next_out = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_out = static_cast<uInt>(packed.size());
    ASSERT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    packed.resize(stream.total_out);
    deflateEnd(&stream);
    const auto file = TestZip().put("x", packed, zeros, 8).put("y", packed, zeros, 8).bytes();
    const ZipArchive archive(as_bytes(file), "'a.zip'");
    EXPECT_EQ(archive.unpack(*archive.find("x")).size(), size);
    EXPECT_THROW(archive.unpack(*archive.find("y")), Error);
}

TEST(ZipArchive, OneNameTwiceIsAnError) {
    const auto file = TestZip().add("x", "1").add("x", "2").bytes();
    EXPECT_THROW(ZipArchive(as_bytes(file), "'a.zip'"), Error);
}

}  // namespace
}  // namespace trocar
