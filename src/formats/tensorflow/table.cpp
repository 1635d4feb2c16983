#include "formats/tensorflow/table.h"

#include <fmt/format.h>

#include <functional>

#include "formats/tensorflow/snappy.h"
#include "trocar/error.h"

namespace trocar::tensorflow {

namespace {

constexpr std::uint64_t magic = 0xdb4775248b80fb57;
constexpr std::size_t footer_size = 48;
constexpr std::size_t trailer_size = 5;  // how the block is packed, and a checksum
// What one block, and all of them, may unpack to.
constexpr std::size_t largest_block = std::size_t{64} << 20;
constexpr std::size_t expansion = 100;

class BlockReader {
public:
    BlockReader(Bytes file, const std::string& where)
        : file_(file),
          where_(where),
          budget_((std::size_t{16} << 20) + expansion * std::min(file.size(), largest_block)) {}

    std::map<std::string, std::string> read() {
        if (file_.size() < footer_size || number(file_.last(8), 8) != magic) {
            fail("this is no table of a checkpoint");
        }
        auto footer = file_.last(footer_size);
        take_varint(footer);  // where the index of properties lies
        take_varint(footer);
        const auto offset = take_varint(footer);
        const auto size = take_varint(footer);
        std::map<std::string, std::string> found;
        each_entry(block(offset, size), [&](const std::string&, Bytes place) {
            const auto inner_offset = take_varint(place);
            const auto inner_size = take_varint(place);
            each_entry(block(inner_offset, inner_size), [&](const std::string& key, Bytes value) {
                found.emplace(
                    key, std::string(reinterpret_cast<const char*>(value.data()), value.size()));
            });
        });
        return found;
    }

private:
    [[noreturn]] void fail(std::string_view what) const {
        throw Error(Fault::input, fmt::format("{}: {}", where_, what));
    }

    static std::uint64_t number(Bytes bytes, std::size_t width) {
        std::uint64_t value = 0;
        for (std::size_t i = width; i-- > 0;) {
            value = value << 8 | static_cast<std::uint64_t>(bytes[i]);
        }
        return value;
    }

    std::uint64_t take_varint(Bytes& rest) const {
        std::uint64_t value = 0;
        for (unsigned i = 0; i < 10 && i < rest.size(); ++i) {
            const auto byte = static_cast<std::uint64_t>(rest[i]);
            value |= (byte & 0x7f) << (7 * i);
            if (byte < 0x80) {
                rest = rest.subspan(i + 1);
                return value;
            }
        }
        fail("a number in the table is broken");
    }

    std::vector<std::byte> block(std::uint64_t offset, std::uint64_t size) {
        if (offset > file_.size() || file_.size() - offset < trailer_size ||
            size > file_.size() - offset - trailer_size) {
            fail("a block lies outside the file");
        }
        const auto bytes = file_.subspan(offset, size);
        const auto packed = static_cast<unsigned>(file_[offset + size]);
        std::vector<std::byte> result;
        if (packed == 0) {
            result.assign(bytes.begin(), bytes.end());
        } else if (packed == 1) {
            result = unpack_snappy(bytes, std::min(largest_block, budget_), where_);
        } else {
            throw Error(Fault::unsupported,
                        fmt::format("{}: a block is packed in a way that is not known ({})", where_,
                                    packed));
        }
        // Blocks may be named more than once.
        spend(result.size());
        return result;
    }

    void spend(std::size_t bytes) {
        if (bytes > budget_) {
            fail("the table holds more than its file can stand for");
        }
        budget_ -= bytes;
    }

    using Each = std::function<void(const std::string& key, Bytes value)>;

    void each_entry(const std::vector<std::byte>& block, const Each& each) {
        Bytes rest(block);
        if (rest.size() < 4) {
            fail("a block is too short");
        }
        const auto restarts = number(rest.last(4), 4);
        if (restarts > (rest.size() - 4) / 4) {
            fail("a block is broken");
        }
        rest = rest.first(rest.size() - 4 - restarts * 4);
        std::string key;
        while (!rest.empty()) {
            const auto shared = take_varint(rest);
            const auto fresh = take_varint(rest);
            const auto length = take_varint(rest);
            if (shared > key.size() || fresh > rest.size() || length > rest.size() - fresh) {
                fail("an entry of the table is broken");
            }
            key.resize(shared);
            key.append(reinterpret_cast<const char*>(rest.data()), fresh);
            spend(key.size());  // what keys share costs the file nothing
            each(key, rest.subspan(fresh, length));
            rest = rest.subspan(fresh + length);
        }
    }

    Bytes file_;
    const std::string& where_;
    std::size_t budget_;
};

}  // namespace

std::map<std::string, std::string> read_table(Bytes file, const std::string& where) {
    return BlockReader(file, where).read();
}

}  // namespace trocar::tensorflow
