#include "util/zip_archive.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

#include "trocar/error.h"

namespace trocar {

namespace {

// What a member, and all of them together, may unpack to: text packs tenfold, zeros a thousandfold.
constexpr std::uint64_t allowance = std::uint64_t{16} << 20;
constexpr std::uint64_t deflate_expansion = 20;

constexpr std::uint32_t local_mark = 0x04034b50;
constexpr std::uint32_t entry_mark = 0x02014b50;
constexpr std::uint32_t end_mark = 0x06054b50;
constexpr std::uint32_t zip64_end_mark = 0x06064b50;
constexpr std::uint32_t zip64_locator_mark = 0x07064b50;
constexpr std::size_t local_size = 30;
constexpr std::size_t entry_size = 46;
constexpr std::size_t end_size = 22;
constexpr std::size_t zip64_end_size = 56;
constexpr std::size_t zip64_locator_size = 20;
constexpr std::size_t longest_comment = 0xffff;

std::uint64_t number(Bytes bytes, std::size_t offset, std::size_t width) {
    std::uint64_t value = 0;
    for (std::size_t i = width; i-- > 0;) {
        value = value << 8 | static_cast<std::uint64_t>(bytes[offset + i]);
    }
    return value;
}
std::uint16_t u16(Bytes bytes, std::size_t offset) {
    return static_cast<std::uint16_t>(number(bytes, offset, 2));
}
std::uint32_t u32(Bytes bytes, std::size_t offset) {
    return static_cast<std::uint32_t>(number(bytes, offset, 4));
}
std::uint64_t u64(Bytes bytes, std::size_t offset) {
    return number(bytes, offset, 8);
}

// The place of the record that ends an archive: a comment of unknown length follows it.
std::optional<std::size_t> find_end(Bytes file) {
    if (file.size() < end_size) {
        return std::nullopt;
    }
    const auto last = file.size() - end_size;
    const auto first = last - std::min(last, longest_comment);
    for (auto at = last + 1; at-- > first;) {
        if (u32(file, at) == end_mark) {
            return at;
        }
    }
    return std::nullopt;
}

class Inflater {
public:
    Inflater() { started_ = inflateInit2(&stream_, -15) == Z_OK; }  // negative: no header
    Inflater(const Inflater&) = delete;
    Inflater& operator=(const Inflater&) = delete;
    ~Inflater() { inflateEnd(&stream_); }

    bool started() const { return started_; }
    z_stream* operator->() { return &stream_; }
    int step() { return inflate(&stream_, Z_NO_FLUSH); }

private:
    z_stream stream_{};
    bool started_ = false;
};

}  // namespace

bool is_zip(Bytes head) {
    return head.size() >= 4 && u32(head, 0) == local_mark;
}

ZipArchive::ZipArchive(Bytes file, std::string where) : file_(file), where_(std::move(where)) {
    const auto end = find_end(file_);
    if (!end) {
        fail("the directory of the archive is missing: is the file complete?");
    }
    const auto record = file_.subspan(*end);
    std::uint64_t size = u32(record, 12);
    std::uint64_t begin = u32(record, 16);
    if (u16(record, 4) != u16(record, 6)) {
        throw Error(Fault::unsupported, fmt::format("{} is one part of several", where_));
    }
    if (*end >= zip64_locator_size && u32(file_, *end - zip64_locator_size) == zip64_locator_mark) {
        const auto place = u64(file_, *end - zip64_locator_size + 8);
        const auto large = at(place, zip64_end_size, "the directory's end");
        if (u32(large, 0) != zip64_end_mark) {
            fail("the directory of the archive is broken");
        }
        size = u64(large, 40);
        begin = u64(large, 48);
    }
    read_directory(begin, size);
}

const ZipArchive::Member* ZipArchive::find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : &members_[found->second];
}

void ZipArchive::fail(std::string_view what) const {
    throw Error(Fault::input, fmt::format("{}: {}", where_, what));
}

Bytes ZipArchive::at(std::uint64_t offset, std::uint64_t size, std::string_view what) const {
    if (offset > file_.size() || size > file_.size() - offset) {
        fail(fmt::format("{} lies outside the file", what));
    }
    return file_.subspan(offset, size);
}

void ZipArchive::read_directory(std::uint64_t begin, std::uint64_t size) {
    auto rest = at(begin, size, "the directory");
    while (!rest.empty()) {
        if (rest.size() < entry_size || u32(rest, 0) != entry_mark) {
            fail(fmt::format("entry {} of the directory is broken", members_.size()));
        }
        const std::size_t name_size = u16(rest, 28);
        const std::size_t extra_size = u16(rest, 30);
        const auto whole = entry_size + name_size + extra_size + u16(rest, 32);
        if (whole > rest.size()) {
            fail(fmt::format("entry {} of the directory is cut off", members_.size()));
        }
        Member member;
        const auto name = rest.subspan(entry_size, name_size);
        member.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
        member.method = u16(rest, 10);
        member.packed = u32(rest, 20);
        member.size = u32(rest, 24);
        std::uint64_t header = u32(rest, 42);
        if ((u16(rest, 8) & 1) != 0) {
            throw Error(Fault::unsupported,
                        fmt::format("{}: '{}' is encrypted", where_, member.name));
        }
        read_zip64(rest.subspan(entry_size + name_size, extra_size), member, header);
        member.data = find_data(member, header);
        members_.push_back(std::move(member));
        rest = rest.subspan(whole);
    }
    for (std::size_t i = 0; i < members_.size(); ++i) {
        if (!by_name_.emplace(members_[i].name, i).second) {
            fail(fmt::format("the archive holds '{}' twice", members_[i].name));
        }
    }
}

// Sizes and places that do not fit 32 bits are all ones in the entry, and stand in this field in
// the order of the entry.
void ZipArchive::read_zip64(Bytes extra, Member& member, std::uint64_t& header) const {
    constexpr std::uint64_t elsewhere = std::numeric_limits<std::uint32_t>::max();
    while (extra.size() >= 4) {
        const auto kind = u16(extra, 0);
        const std::size_t size = u16(extra, 2);
        if (size > extra.size() - 4) {
            return;  // padding that is no field
        }
        if (kind == 1) {
            auto field = extra.subspan(4, size);
            for (auto* value : {&member.size, &member.packed, &header}) {
                if (*value == elsewhere) {
                    if (field.size() < 8) {
                        fail(fmt::format("the size of '{}' is missing", member.name));
                    }
                    *value = u64(field, 0);
                    field = field.subspan(8);
                }
            }
            return;
        }
        extra = extra.subspan(4 + size);
    }
}

Bytes ZipArchive::find_data(const Member& member, std::uint64_t header) const {
    const auto quoted = fmt::format("'{}'", member.name);
    const auto local = at(header, local_size, quoted);
    if (u32(local, 0) != local_mark) {
        fail(fmt::format("{} is not where the directory says", quoted));
    }
    const std::uint64_t skipped = local_size + u16(local, 26) + u16(local, 28);
    if (member.method == 0 && member.packed != member.size) {
        fail(fmt::format("{} is not packed, but its two sizes differ", quoted));
    }
    return at(header + skipped, member.packed, quoted);
}

std::optional<Bytes> ZipArchive::view(const Member& member) {
    return member.method == 0 ? std::optional(member.data) : std::nullopt;
}

std::vector<std::byte> ZipArchive::unpack(const Member& member) const {
    const auto broken = [&](std::string_view why) {
        fail(fmt::format("'{}' cannot be unpacked: {}", member.name, why));
    };
    if (member.method == 0) {
        return {member.data.begin(), member.data.end()};
    }
    if (member.method != Z_DEFLATED) {
        throw Error(Fault::unsupported, fmt::format("{}: '{}' is packed by method {}, not deflated",
                                                    where_, member.name, member.method));
    }
    if (member.size > allowance + deflate_expansion * std::min(member.packed, file_.size())) {
        broken(fmt::format("{} bytes stand for {}", member.packed, member.size));
    }
    if (member.packed > std::numeric_limits<uInt>::max()) {
        broken("it has over 4 GB");
    }
    if (member.size > allowance + deflate_expansion * file_.size() - unpacked_) {
        broken("the members stand for far more than the archive can hold");
    }
    unpacked_ += member.size;
    Inflater inflater;
    if (!inflater.started()) {
        throw Error(Fault::internal, "zlib cannot be started");
    }
    inflater->next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(member.data.data()));
    inflater->avail_in = static_cast<uInt>(member.data.size());
    constexpr std::size_t chunk = std::size_t{1} << 20;
    std::vector<std::byte> bytes;
    for (;;) {
        const auto done = bytes.size();
        bytes.resize(done + std::min<std::uint64_t>(std::max(chunk, done), member.size - done + 1));
        const auto room = static_cast<uInt>(
            std::min<std::size_t>(bytes.size() - done, std::numeric_limits<uInt>::max()));
        inflater->next_out = reinterpret_cast<Bytef*>(bytes.data() + done);
        inflater->avail_out = room;
        const int status = inflater.step();
        bytes.resize(done + room - inflater->avail_out);
        if (bytes.size() > member.size) {
            broken("it holds more than it declares");
        }
        if (status == Z_STREAM_END) {
            break;
        }
        if (status != Z_OK) {
            broken("its bytes are broken");
        }
    }
    if (bytes.size() != member.size) {
        broken(fmt::format("{} bytes are declared, {} are there", member.size, bytes.size()));
    }
    return bytes;
}

std::optional<std::string> ZipArchive::root_of(std::string_view file) const {
    for (const auto& member : members_) {
        const std::string_view name = member.name;
        if (name == file) {
            return std::string();
        }
        if (name.ends_with(file) && name.size() > file.size() &&
            name.find('/') == name.size() - file.size() - 1) {
            return std::string(name.substr(0, name.size() - file.size()));
        }
    }
    return std::nullopt;
}

std::string ZipArchive::text(std::string_view name) const {
    const auto* member = find(name);
    if (member == nullptr) {
        return {};
    }
    const auto bytes = unpack(*member);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace trocar
