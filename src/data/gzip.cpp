#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

#include "data/idx.h"
#include "trocar/error.h"

namespace trocar::data {

namespace {

// An inflating stream of zlib's.
class Inflater {
public:
    Inflater() {
        if (inflateInit2(&stream_, 15 + 16) != Z_OK) {  // 16: with the header of gzip
            throw Error(Fault::internal, "zlib cannot be started");
        }
    }
    Inflater(const Inflater&) = delete;
    Inflater& operator=(const Inflater&) = delete;
    ~Inflater() { inflateEnd(&stream_); }

    z_stream* operator->() { return &stream_; }
    int step() { return inflate(&stream_, Z_NO_FLUSH); }

private:
    z_stream stream_{};
};

}  // namespace

bool is_gzip(Bytes file) {
    return file.size() >= 2 && file[0] == std::byte{0x1f} && file[1] == std::byte{0x8b};
}

std::vector<std::byte> unpack_gzip(Bytes file, std::size_t most, std::string_view where) {
    constexpr std::size_t chunk = std::size_t{1} << 20;
    if (file.size() > std::numeric_limits<uInt>::max()) {
        throw Error(Fault::unsupported, fmt::format("{} has over 4 GB", where), "unpack it");
    }
    Inflater inflater;
    inflater->next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(file.data()));
    inflater->avail_in = static_cast<uInt>(file.size());
    std::vector<std::byte> bytes;
    for (;;) {
        const auto at = bytes.size();
        if (at == most) {
            return bytes;
        }
        bytes.resize(at + std::min(chunk, most - at));
        inflater->next_out = reinterpret_cast<Bytef*>(bytes.data() + at);
        inflater->avail_out = static_cast<uInt>(bytes.size() - at);
        const int status = inflater.step();
        bytes.resize(bytes.size() - inflater->avail_out);
        if (status == Z_STREAM_END) {
            return bytes;
        }
        if (status != Z_OK || (bytes.size() == at && inflater->avail_in == 0)) {
            throw Error(Fault::input,
                        fmt::format("{} cannot be unpacked: {}", where,
                                    inflater->msg != nullptr ? inflater->msg : "it ends too early"),
                        "get it anew");
        }
    }
}

}  // namespace trocar::data
