#include "util/wire.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <vector>

#include "trocar/error.h"

namespace trocar::wire {

static_assert(std::endian::native == std::endian::little,
              "fixed-width values are read and written as they lie in memory");

void fail_in(const File& file, Bytes place, std::string_view what, std::string hint) {
    throw Error(Fault::input,
                fmt::format("'{}' is not a valid {} file: at byte {}: {}", file.name, file.kind,
                            place.data() - file.bytes.data(), what),
                std::move(hint));
}

Fields::Fields(const File& file, Bytes message, int depth)
    : file_(&file), rest_(message), depth_(depth) {
    if (depth > depth_limit) {
        fail_in(file, message, fmt::format("messages are nested over {} deep", depth_limit));
    }
}

void Fields::fail_at(const std::byte* place, std::string_view what) const {
    fail_in(*file_, {place, 0}, what,
            "the file may be cut short, damaged, or of another format: get it again");
}

void Fields::fail(std::string_view what) const {
    fail_in(*file_, whole_, what);
}

std::uint64_t Fields::take_varint(Bytes& rest) const {
    std::uint64_t value = 0;
    const auto limit = std::min(rest.size(), std::size_t{10});
    for (std::size_t i = 0; i < limit; ++i) {
        const auto byte = static_cast<std::uint64_t>(rest[i]);
        value |= (byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            rest = rest.subspan(i + 1);
            return value;
        }
    }
    fail_at(rest.data(), rest.size() < 10 ? "a number runs past the end of its message"
                                          : "a number is over 10 bytes long");
}

Bytes Fields::take(std::uint64_t count) {
    if (count > rest_.size()) {
        fail_at(whole_.data(),
                fmt::format("field {} of {} bytes runs past the end of its message, {} remain",
                            number_, count, rest_.size()));
    }
    const auto taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
}

// A group lasts until the end mark of its number; groups inside it are skipped over.
Bytes Fields::take_group(std::uint32_t number) {
    const auto begin = rest_.data();
    std::vector<std::uint32_t> open{number};
    while (!open.empty()) {
        if (rest_.empty()) {
            fail_at(whole_.data(), fmt::format("group {} has no end", number));
        }
        const auto tag = take_varint(rest_);
        switch (static_cast<Wire>(tag & 7)) {
            case Wire::varint:
                take_varint(rest_);
                break;
            case Wire::fixed64:
                take(8);
                break;
            case Wire::fixed32:
                take(4);
                break;
            case Wire::length:
                take(take_varint(rest_));
                break;
            case Wire::group_begin:
                open.push_back(static_cast<std::uint32_t>(tag >> 3));
                break;
            case Wire::group_end:
                if (open.back() != tag >> 3) {
                    fail_at(whole_.data(), "a group ends that did not begin");
                }
                open.pop_back();
                break;
            default:
                fail_at(whole_.data(), "a field has an unknown wire type");
        }
        if (open.size() > depth_limit) {
            fail_at(whole_.data(), fmt::format("groups are nested over {} deep", depth_limit));
        }
    }
    return {begin, rest_.data()};
}

bool Fields::next() {
    if (rest_.empty()) {
        return false;
    }
    const auto begin = rest_.data();
    whole_ = rest_.first(0);
    const auto tag = take_varint(rest_);
    if (tag >> 3 == 0 || tag >> 32 != 0) {
        fail_at(begin, "a field has no valid number");
    }
    number_ = static_cast<std::uint32_t>(tag >> 3);
    wire_ = static_cast<Wire>(tag & 7);
    payload_ = {};
    switch (wire_) {
        case Wire::varint:
            value_ = take_varint(rest_);
            break;
        case Wire::fixed64:
            value_ = load64(take(8));
            break;
        case Wire::fixed32:
            value_ = load32(take(4));
            break;
        case Wire::length:
            payload_ = take(take_varint(rest_));
            break;
        case Wire::group_begin:
            payload_ = take_group(number_);
            break;
        default:
            fail_at(begin, fmt::format("field {} has wire type {}", number_, tag & 7));
    }
    whole_ = {begin, rest_.data()};
    return true;
}

void Fields::want(Wire wire, const char* what) const {
    if (wire_ != wire) {
        fail_at(whole_.data(), fmt::format("field {} should be {}, but has wire type {}", number_,
                                           what, static_cast<int>(wire_)));
    }
}

std::int64_t Fields::integer() const {
    want(Wire::varint, "an integer");
    return static_cast<std::int64_t>(value_);
}

float Fields::real() const {
    want(Wire::fixed32, "a 4-byte float");
    return std::bit_cast<float>(static_cast<std::uint32_t>(value_));
}

Bytes Fields::bytes() const {
    want(Wire::length, "text, bytes or a message");
    return payload_;
}

std::string_view Fields::text() const {
    const auto all = bytes();
    return {reinterpret_cast<const char*>(all.data()), all.size()};
}

Bytes Fields::multiple_of(std::size_t size) const {
    const auto all = bytes();
    if (all.size() % size != 0) {
        fail(fmt::format("field {} has {} bytes, which is no multiple of {}", number_, all.size(),
                         size));
    }
    return all;
}

std::uint32_t Fields::load32(Bytes bytes) {
    std::uint32_t value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
}

std::uint64_t Fields::load64(Bytes bytes) {
    std::uint64_t value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
}

}  // namespace trocar::wire
