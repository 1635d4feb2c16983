#include "formats/tflite/archive.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace trocar::tflite {

namespace {

// Signatures and sizes of the records, and places in them.
constexpr std::uint32_t local_header = 0x04034b50;
constexpr std::uint32_t entry_header = 0x02014b50;
constexpr std::uint32_t end_header = 0x06054b50;
constexpr std::size_t end_size = 22;
constexpr std::size_t entry_size = 46;
constexpr std::size_t longest_comment = 65535;

template <class T>
T number_at(Bytes bytes, std::size_t at) {
    T value{};
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}

struct Directory {
    std::size_t begin = 0;
    std::size_t size = 0;
    std::size_t end_record = 0;
};

// The directory of the archive whose end is the end of `bytes`.
bool find_directory(Bytes bytes, Directory& found) {
    if (bytes.size() < end_size) {
        return false;
    }
    const auto last = bytes.size() - end_size;
    for (std::size_t back = 0; back <= std::min(last, longest_comment); ++back) {
        const auto at = last - back;
        if (number_at<std::uint32_t>(bytes, at) != end_header ||
            number_at<std::uint16_t>(bytes, at + 20) != back) {
            continue;
        }
        found.size = number_at<std::uint32_t>(bytes, at + 12);
        found.begin = at - std::min(at, found.size);
        found.end_record = at;
        return found.begin + found.size == at;
    }
    return false;
}

// Calls `visit` with the place of each entry's record; false where the directory makes no sense.
template <class Visit>
bool for_each_entry(Bytes bytes, const Directory& directory, Visit&& visit) {
    auto at = directory.begin;
    const auto end = directory.begin + directory.size;
    while (at < end) {
        if (end - at < entry_size || number_at<std::uint32_t>(bytes, at) != entry_header) {
            return false;
        }
        visit(at);
        at += entry_size + number_at<std::uint16_t>(bytes, at + 28) +
              number_at<std::uint16_t>(bytes, at + 30) + number_at<std::uint16_t>(bytes, at + 32);
    }
    return at == end;
}

}  // namespace

Bytes appended_archive(Bytes file) {
    Directory directory;
    if (!find_directory(file, directory)) {
        return {};
    }
    auto first = std::numeric_limits<std::size_t>::max();
    const bool sane = for_each_entry(file, directory, [&](std::size_t at) {
        first = std::min<std::size_t>(first, number_at<std::uint32_t>(file, at + 42));
    });
    if (!sane || first >= directory.begin || directory.begin - first < 4 ||
        number_at<std::uint32_t>(file, first) != local_header) {
        return {};
    }
    return file.subspan(first);
}

std::string moved_archive(Bytes archive, std::uint64_t was, std::uint64_t begin) {
    std::string moved(reinterpret_cast<const char*>(archive.data()), archive.size());
    const auto shift = [&](std::size_t at) {
        const auto old = number_at<std::uint32_t>(archive, at);
        const auto now = static_cast<std::uint32_t>(old - was + begin);
        std::memcpy(moved.data() + at, &now, sizeof now);
    };
    Directory directory;
    if (find_directory(archive, directory)) {
        for_each_entry(archive, directory, [&](std::size_t at) { shift(at + 42); });
        shift(directory.end_record + 16);
    }
    return moved;
}

}  // namespace trocar::tflite
