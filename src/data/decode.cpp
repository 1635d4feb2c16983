#include <fmt/format.h>

#include <algorithm>

#include "data/picture.h"
#include "trocar/error.h"

namespace trocar::data {

Picture picture_of(Bytes bytes, std::int64_t height, std::int64_t width, std::int64_t channels,
                   bool planes) {
    Picture picture{height, width, channels, true, std::vector<float>(bytes.size())};
    const auto pixels = static_cast<std::size_t>(height * width);
    const auto count = static_cast<std::size_t>(channels);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const auto to = planes ? i % pixels * count + i / pixels : i;
        picture.values[to] = std::to_integer<std::uint8_t>(bytes[i]);
    }
    return picture;
}

bool is_png(Bytes file) {
    constexpr unsigned char magic[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    return file.size() >= sizeof magic &&
           std::ranges::equal(std::as_bytes(std::span(magic)), file.first(sizeof magic));
}

bool is_jpeg(Bytes file) {
    return file.size() >= 3 && file[0] == std::byte{0xff} && file[1] == std::byte{0xd8} &&
           file[2] == std::byte{0xff};
}

Picture decode_picture(Bytes file, std::string_view where) {
    if (is_png(file)) {
        return decode_png(file, where);
    }
    if (is_jpeg(file)) {
        return decode_jpeg(file, where);
    }
    throw Error(Fault::input, fmt::format("{} is neither PNG nor JPEG", where),
                "convert it, or give the samples as .npz");
}

}  // namespace trocar::data
