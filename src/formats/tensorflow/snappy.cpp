#include "formats/tensorflow/snappy.h"

#include <fmt/format.h>

#include "trocar/error.h"

// A block is its unpacked length and then a row of pieces: bytes as they are, or "copy so many
// bytes from so far back in what is unpacked so far".
namespace trocar::tensorflow {

namespace {

class Unpacker {
public:
    Unpacker(Bytes packed, const std::string& where) : rest_(packed), where_(where) {}

    std::vector<std::byte> unpack(std::size_t most) {
        const auto length = varint();
        if (length > most) {
            fail(fmt::format("a block of {} bytes would be {}", rest_.size(), length));
        }
        while (!rest_.empty()) {
            piece(length);
        }
        if (out_.size() != length) {
            fail(fmt::format("a block has {} bytes and not {}", out_.size(), length));
        }
        return std::move(out_);
    }

private:
    [[noreturn]] void fail(std::string_view what) const {
        throw Error(Fault::input, fmt::format("{}: {}", where_, what));
    }

    std::uint64_t number(std::size_t width) {
        if (rest_.size() < width) {
            fail("a packed block is cut off");
        }
        std::uint64_t value = 0;
        for (std::size_t i = width; i-- > 0;) {
            value = value << 8 | static_cast<std::uint64_t>(rest_[i]);
        }
        rest_ = rest_.subspan(width);
        return value;
    }

    std::uint64_t varint() {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 35; shift += 7) {
            const auto byte = number(1);
            value |= (byte & 0x7f) << shift;
            if (byte < 0x80) {
                return value;
            }
        }
        fail("the length of a packed block is broken");
    }

    void piece(std::uint64_t limit) {
        const auto tag = number(1);
        if ((tag & 3) == 0) {
            auto length = tag >> 2;
            if (length >= 60) {  // the length follows in 1 to 4 bytes
                length = number(length - 59);
            }
            ++length;
            if (length > rest_.size() || length > limit - out_.size()) {
                fail("a packed block is broken");
            }
            out_.insert(out_.end(), rest_.begin(),
                        rest_.begin() + static_cast<std::ptrdiff_t>(length));
            rest_ = rest_.subspan(length);
            return;
        }
        std::uint64_t length = (tag >> 2) + 1;
        std::uint64_t back = 0;
        if ((tag & 3) == 1) {
            length = ((tag >> 2) & 7) + 4;
            back = (tag >> 5) << 8 | number(1);
        } else {
            back = number((tag & 3) == 2 ? 2 : 4);
        }
        if (back == 0 || back > out_.size() || length > limit - out_.size()) {
            fail("a packed block is broken");
        }
        for (std::uint64_t i = 0; i < length; ++i) {  // may overlap: repeats
            out_.push_back(out_[out_.size() - back]);
        }
    }

    Bytes rest_;
    const std::string& where_;
    std::vector<std::byte> out_;
};

}  // namespace

std::vector<std::byte> unpack_snappy(Bytes packed, std::size_t most, const std::string& where) {
    return Unpacker(packed, where).unpack(most);
}

}  // namespace trocar::tensorflow
