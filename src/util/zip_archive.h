#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trocar/tensor.h"

namespace trocar {

// Do these first bytes of a file begin a zip archive?
bool is_zip(Bytes head);

// The members of a zip archive in memory, found through its directory (also that of zip64).
// Members that are not packed are views of the archive's bytes. Nothing is trusted: every offset
// and length is checked, and unpacking stops at what the archive could reasonably hold: that is
// counted over all members, which may lie over one another. One thread at a time may unpack.
class ZipArchive {
public:
    struct Member {
        std::string name;
        std::uint64_t packed = 0;  // bytes in the archive
        std::uint64_t size = 0;    // bytes of the member
        unsigned method = 0;       // 0: stored as it is, 8: deflated
        Bytes data;                // as it lies in the archive
    };

    // `where` names the archive in messages: "'model.pt2'". The bytes must outlive the object.
    // Throws Error(input) when they are no archive, Error(unsupported) on encrypted members and
    // archives of several disks.
    ZipArchive(Bytes file, std::string where);
    ZipArchive(const ZipArchive&) = delete;
    ZipArchive& operator=(const ZipArchive&) = delete;
    ZipArchive(ZipArchive&&) = default;

    const std::vector<Member>& members() const { return members_; }
    const Member* find(std::string_view name) const;  // nullptr: not there

    // The member's bytes where they are stored as they are; else nothing.
    static std::optional<Bytes> view(const Member& member);
    // The member's bytes, unpacked. Throws Error(input) when they are broken or far more than the
    // packed ones can stand for, Error(unsupported) on a method of packing that is not known.
    std::vector<std::byte> unpack(const Member& member) const;

    // The folder in which all members lie, with its slash, where `file` is in it; "" where they lie
    // in none. Nothing: there is no such file.
    std::optional<std::string> root_of(std::string_view file) const;
    // The member unpacked, as text; "" where it is not there.
    std::string text(std::string_view name) const;

private:
    Bytes at(std::uint64_t offset, std::uint64_t size, std::string_view what) const;
    void read_directory(std::uint64_t begin, std::uint64_t size);
    void read_zip64(Bytes extra, Member& member, std::uint64_t& header) const;
    Bytes find_data(const Member& member, std::uint64_t header) const;
    [[noreturn]] void fail(std::string_view what) const;

    Bytes file_;
    std::string where_;
    mutable std::uint64_t unpacked_ = 0;  // bytes so far, of members that are packed
    std::vector<Member> members_;
    std::unordered_map<std::string_view, std::size_t> by_name_;
};

}  // namespace trocar
