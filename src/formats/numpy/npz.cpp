#include "formats/numpy/npz.h"

#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <unordered_set>

#include "formats/numpy/npy.h"
#include "trocar/error.h"
#include "util/mapped_file.h"

namespace trocar::numpy {

namespace {

// What all arrays together may unpack to: zeros deflate a thousandfold, measured data hardly
// tenfold.
constexpr std::uint64_t allowance = std::uint64_t{256} << 20;
constexpr std::uint64_t expansion = 100;
constexpr std::size_t chunk = std::size_t{1} << 20;

struct ArchiveCloser {
    void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct EntryCloser {
    void operator()(zip_file_t* entry) const { zip_fclose(entry); }
};
using Archive = std::unique_ptr<zip_t, ArchiveCloser>;
using Entry = std::unique_ptr<zip_file_t, EntryCloser>;

Archive open_archive(const std::filesystem::path& path) {
    int code = 0;
    Archive archive(zip_open(path.c_str(), ZIP_RDONLY, &code));
    if (!archive) {
        zip_error_t error;
        zip_error_init_with_code(&error, code);
        const std::string reason = zip_error_strerror(&error);
        zip_error_fini(&error);
        throw Error(Fault::input,
                    fmt::format("'{}' is not a readable .npz archive: {}", path.string(), reason));
    }
    return archive;
}

zip_stat_t stat_entry(zip_t* archive, zip_uint64_t index, std::string_view file) {
    zip_stat_t stat;
    zip_stat_init(&stat);
    constexpr zip_uint64_t needed = ZIP_STAT_NAME | ZIP_STAT_SIZE;
    if (zip_stat_index(archive, index, 0, &stat) != 0 || (stat.valid & needed) != needed) {
        throw Error(Fault::input, fmt::format("{}: entry {} is broken", file, index));
    }
    return stat;
}

// Unpacks an entry. Memory grows with what arrives, never with what is declared.
std::vector<std::byte> unpack(zip_t* archive, zip_uint64_t index, std::uint64_t size,
                              std::string_view where) {
    const auto fail = [&](std::string_view reason) {
        return Error(Fault::input, fmt::format("{} cannot be unpacked: {}", where, reason));
    };
    const Entry entry(zip_fopen_index(archive, index, 0));
    if (!entry) {
        throw fail(zip_strerror(archive));
    }
    std::vector<std::byte> bytes;
    for (;;) {
        const auto at = bytes.size();
        bytes.resize(at + static_cast<std::size_t>(
                              std::min<std::uint64_t>(std::max(chunk, at), size - at + 1)));
        const auto count = zip_fread(entry.get(), bytes.data() + at, bytes.size() - at);
        if (count < 0) {
            throw fail(zip_file_strerror(entry.get()));
        }
        bytes.resize(at + static_cast<std::size_t>(count));
        if (count == 0) {
            break;
        }
        if (bytes.size() > size) {
            throw fail(fmt::format("it holds more than the {} bytes declared", size));
        }
    }
    if (bytes.size() != size) {
        throw fail(fmt::format("{} bytes are declared, {} are there", size, bytes.size()));
    }
    return bytes;
}

}  // namespace

std::vector<NamedValue> read_archive(const std::filesystem::path& path) {
    const auto file_bytes = MappedFile::open(path)->bytes().size();
    const auto archive = open_archive(path);
    const auto file = fmt::format("'{}'", path.string());
    const auto limit = allowance + expansion * file_bytes;
    std::uint64_t total = 0;
    std::unordered_set<std::string> names;
    std::vector<NamedValue> values;
    const auto count =
        static_cast<zip_uint64_t>(std::max<zip_int64_t>(zip_get_num_entries(archive.get(), 0), 0));
    for (zip_uint64_t index = 0; index < count; ++index) {
        const auto stat = stat_entry(archive.get(), index, file);
        std::string name(stat.name);
        const auto where = fmt::format("'{}' in {}", name, file);
        if (!name.ends_with(".npy")) {
            throw Error(Fault::input, fmt::format("{} is not an .npy array", where));
        }
        total = stat.size > limit - total ? limit + 1 : total + stat.size;
        if (total > limit) {
            throw Error(Fault::input,
                        fmt::format("{} declares arrays of over {} MiB in a file of {} bytes", file,
                                    limit >> 20, file_bytes),
                        "if that is right, unpack it and give the .npy files");
        }
        name.resize(name.size() - 4);
        if (!names.insert(name).second) {
            throw Error(Fault::input, fmt::format("{} holds '{}' twice", file, name));
        }
        const auto bytes = std::make_shared<const std::vector<std::byte>>(
            unpack(archive.get(), index, stat.size, where));
        values.push_back({std::move(name), read_array(*bytes, bytes, where)});
    }
    return values;
}

}  // namespace trocar::numpy
