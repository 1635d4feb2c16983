#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "trocar/tensor.h"

// The protobuf wire format, read in place: a message is a row of fields, each a number and a value
// whose kind ("wire type") says how long it is.
namespace trocar::wire {

// The bytes that messages are read from. Messages of errors name `name` and count from `bytes`.
struct File {
    std::string name;
    Bytes bytes;
    std::shared_ptr<const void> owner;  // keeps `bytes` alive
    std::filesystem::path folder;       // where external data lies; empty: nowhere
    bool is_mapped = false;             // `bytes` are those of a MappedFile
    const char* kind = "ONNX";          // of file, for messages
};

enum class Wire : std::uint8_t { varint, fixed64, length, group_begin, group_end, fixed32 };

// Messages inside messages, the outermost counted: as deep as protobuf itself reads.
constexpr int depth_limit = 100;

// A walk through the fields of one message. Every length is checked against what remains; all
// functions throw Error(input) with the file and the place.
class Fields {
public:
    // `file` must outlive the walk.
    Fields(const File& file, Bytes message, int depth = 0);

    bool next();  // to the first or next field; false at the end
    std::uint32_t number() const { return number_; }
    Wire wire() const { return wire_; }
    Bytes whole() const { return whole_; }  // the field with its tag

    // The value of the field as what the schema says it is.
    std::int64_t integer() const;
    float real() const;
    Bytes bytes() const;  // length-delimited: payload
    std::string_view text() const;
    // Elements of a repeated number, which may come one per field or packed. `each` gets the bits.
    template <class Each>
    void integers(Each&& each) const {
        if (wire_ == Wire::varint) {
            each(value_);
            return;
        }
        auto rest = bytes();
        while (!rest.empty()) {
            each(take_varint(rest));
        }
    }
    template <class Each>
    void fixed32s(Each&& each) const {
        if (wire_ == Wire::fixed32) {
            each(static_cast<std::uint32_t>(value_));
            return;
        }
        const auto all = multiple_of(4);
        for (std::size_t at = 0; at < all.size(); at += 4) {
            each(load32(all.subspan(at)));
        }
    }

    template <class Each>
    void fixed64s(Each&& each) const {
        if (wire_ == Wire::fixed64) {
            each(value_);
            return;
        }
        const auto all = multiple_of(8);
        for (std::size_t at = 0; at < all.size(); at += 8) {
            each(load64(all.subspan(at)));
        }
    }

    const File& file() const { return *file_; }
    int depth() const { return depth_; }
    [[noreturn]] void fail(std::string_view what) const;  // at the current field

private:
    std::uint64_t take_varint(Bytes& rest) const;
    Bytes multiple_of(std::size_t size) const;
    static std::uint32_t load32(Bytes bytes);
    static std::uint64_t load64(Bytes bytes);
    Bytes take(std::uint64_t count);
    Bytes take_group(std::uint32_t number);
    void want(Wire wire, const char* what) const;
    [[noreturn]] void fail_at(const std::byte* place, std::string_view what) const;

    const File* file_;
    Bytes rest_;
    int depth_;
    std::uint32_t number_ = 0;
    Wire wire_ = Wire::varint;
    std::uint64_t value_ = 0;
    Bytes payload_;
    Bytes whole_;
};

// Error(input) about `place` in the file.
[[noreturn]] void fail_in(const File& file, Bytes place, std::string_view what,
                          std::string hint = {});

}  // namespace trocar::wire
