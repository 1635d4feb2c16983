#include <fmt/format.h>

#include <limits>
#include <string>

#include "formats/numpy/npy.h"
#include "formats/numpy/npz.h"
#include "trocar/error.h"
#include "util/crc32.h"
#include "util/growing_file.h"

// A ZIP file: each entry a local header and the bytes, then the directory, then where that is.
// Sizes and offsets from 4 GiB on, and more than 65,535 entries, stand in further fields ("ZIP64").

namespace trocar::numpy {

namespace {

constexpr std::uint64_t large = 0xffffffff;
constexpr std::uint32_t local_header = 0x04034b50;
constexpr std::uint32_t directory_header = 0x02014b50;
constexpr std::uint32_t directory_end = 0x06054b50;
constexpr std::uint32_t large_directory_end = 0x06064b50;
constexpr std::uint32_t large_directory_locator = 0x07064b50;
constexpr std::uint16_t plain_version = 20;
constexpr std::uint16_t large_version = 45;
constexpr std::uint16_t utf8_names = 0x0800;
constexpr std::uint16_t first_day = 0x0021;  // of 1980: the same bytes whenever it is written

// Little-endian fields, one after the other.
class Fields {
public:
    Fields& two(std::uint64_t number) { return put(number, 2); }
    Fields& four(std::uint64_t number) { return put(number, 4); }
    Fields& eight(std::uint64_t number) { return put(number, 8); }
    Fields& text(std::string_view text) {
        bytes_ += text;
        return *this;
    }
    const std::string& bytes() const { return bytes_; }

private:
    Fields& put(std::uint64_t number, int bytes) {
        for (int i = 0; i < bytes; ++i) {
            bytes_.push_back(static_cast<char>(number >> (8 * i) & 0xff));
        }
        return *this;
    }
    std::string bytes_;
};

struct WrittenEntry {
    std::string name;
    std::uint64_t at = 0;
    std::uint64_t size = 0;
    std::uint32_t crc = 0;
};

// The fields that local headers and the directory share, from the version needed on.
void put_common(Fields& fields, const WrittenEntry& entry, std::uint16_t version, bool is_large,
                std::size_t extra_bytes) {
    const auto size = is_large ? large : entry.size;
    fields.two(version).two(utf8_names).two(0).two(0).two(first_day);
    fields.four(entry.crc).four(size).four(size).two(entry.name.size()).two(extra_bytes);
}

std::string local_bytes(const WrittenEntry& entry) {
    const bool is_large = entry.size >= large;
    Fields extra;
    if (is_large) {
        extra.two(1).two(16).eight(entry.size).eight(entry.size);
    }
    Fields fields;
    fields.four(local_header);
    put_common(fields, entry, is_large ? large_version : plain_version, is_large,
               extra.bytes().size());
    return fields.text(entry.name).text(extra.bytes()).bytes();
}

std::string directory_bytes(const WrittenEntry& entry) {
    const bool is_large = entry.size >= large || entry.at >= large;
    Fields extra;
    if (is_large) {
        extra.two(1).two(24).eight(entry.size).eight(entry.size).eight(entry.at);
    }
    Fields fields;
    fields.four(directory_header).two(large_version);
    put_common(fields, entry, is_large ? large_version : plain_version, is_large,
               extra.bytes().size());
    fields.two(0).two(0).two(0).four(0).four(is_large ? large : entry.at);
    return fields.text(entry.name).text(extra.bytes()).bytes();
}

std::string end_bytes(std::uint64_t entries, std::uint64_t at, std::uint64_t size) {
    Fields fields;
    const bool is_large = entries >= 0xffff || at >= large || size >= large;
    if (is_large) {
        fields.four(large_directory_end).eight(44).two(large_version).two(large_version);
        fields.four(0).four(0).eight(entries).eight(entries).eight(size).eight(at);
        fields.four(large_directory_locator).four(0).eight(at + size).four(1);
    }
    const auto shown = is_large ? 0xffff : entries;
    fields.four(directory_end).two(0).two(0).two(shown).two(shown);
    fields.four(is_large ? large : size).four(is_large ? large : at).two(0);
    return fields.bytes();
}

class ArchiveWriter final : public ValueArchive {
public:
    explicit ArchiveWriter(const std::filesystem::path& path) : file_(path) {}

    std::uint64_t add(const NamedValue& value) override {
        const auto elements = value.value.is_tensor() ? value.value.bytes() : Bytes();
        WrittenEntry entry{.name = value.name + ".npy", .at = file_.size()};
        if (entry.name.size() > std::numeric_limits<std::uint16_t>::max()) {
            throw Error(Fault::unsupported, "an .npz archive holds no name of over 65,535 bytes");
        }
        // How long the local header is does not depend on what is not known yet, but for sizes
        // near 4 GiB, where some bytes of padding more do not matter.
        entry.size = elements.size() + 256;
        const auto array_at = file_.size() + local_bytes(entry).size();
        const auto header = array_header(value.value, array_at, file_.path().string());
        const auto header_bytes = std::as_bytes(std::span(header));
        entry.size = header.size() + elements.size();
        entry.crc = crc32(elements, crc32(header_bytes));
        const auto local = local_bytes(entry);
        file_.write({std::as_bytes(std::span(local)), header_bytes, elements});
        entries_.push_back(std::move(entry));
        return file_.size() - elements.size();
    }

    void close() override {
        const auto at = file_.size();
        std::string directory;
        for (const auto& entry : entries_) {
            directory += directory_bytes(entry);
        }
        directory += end_bytes(entries_.size(), at, directory.size());
        file_.write(directory);
    }

private:
    GrowingFile file_;
    std::vector<WrittenEntry> entries_;
};

}  // namespace

std::unique_ptr<ValueArchive> create_archive(const std::filesystem::path& path) {
    return std::make_unique<ArchiveWriter>(path);
}

}  // namespace trocar::numpy
