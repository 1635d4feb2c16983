#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/onnx/wire.h"
#include "trocar/tensor.h"

namespace trocar::onnx {

// Bytes to be written, as a list of borrowed and owned pieces: weights are never copied. What is
// borrowed must outlive the rope.
class Rope {
public:
    void borrow(Bytes bytes);  // joined with the last piece where it follows it in memory
    void own(std::string_view text);
    void append(Rope&& other);

    // One field: its tag, and a value of that wire type.
    void integer(std::uint32_t number, std::int64_t value);
    void real(std::uint32_t number, float value);
    void text(std::uint32_t number, std::string_view value);  // copied
    void bytes(std::uint32_t number, Bytes value);            // borrowed
    void message(std::uint32_t number, Rope&& value);

    std::uint64_t size() const { return size_; }
    // Is the whole rope exactly this place in memory?
    bool is(Bytes bytes) const;
    std::string str() const;
    template <class Each>  // each(Bytes)
    void for_each(Each&& each) const {
        for (const auto& piece : pieces_) {
            each(piece.bytes());
        }
    }

private:
    struct Piece {
        Bytes borrowed;
        std::string owned;  // not empty: this is the piece
        Bytes bytes() const {
            return owned.empty() ? borrowed : std::as_bytes(std::span(owned.data(), owned.size()));
        }
    };
    void tag(std::uint32_t number, Wire wire);
    void varint(std::uint64_t value);

    std::vector<Piece> pieces_;
    std::uint64_t size_ = 0;
};

// A message written over the bytes it was read from: fields that are not mentioned, and values that
// did not change, are kept as they stand, in their place; without such bytes it is a new message.
class Rewrite {
public:
    // Writes element `k`. `slot`, when not nullptr, is at the field whose place it takes.
    using Put = std::function<void(Rope& out, std::size_t k, const Fields* slot)>;

    explicit Rewrite(Bytes base = {}) : base_(base) {}

    // Fields that occur at most once; an empty text and a zero are left out unless they stand
    // there already.
    void text(std::uint32_t number, std::string_view value);
    void integer(std::uint32_t number, std::int64_t value);
    void texts(std::uint32_t number, std::vector<std::string> values);
    // `count` elements, the k-th into the k-th place; more of them follow the last place.
    void list(std::uint32_t number, std::size_t count, Put put);
    void drop(std::uint32_t number) { list(number, 0, {}); }

    Rope finish();

private:
    struct List {
        std::uint32_t number;
        std::size_t count;
        Put put;
        // For what occurs at most once: is this its value? Of several, the last one counts.
        std::function<bool(const Fields&)> same;
        bool keep = false;
        std::size_t slots = 0;
        std::size_t seen = 0;
        std::size_t done = 0;
    };
    List* find(std::uint32_t number);
    Bytes base_;
    std::vector<List> lists_;
};

}  // namespace trocar::onnx
