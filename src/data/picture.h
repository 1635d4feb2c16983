#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "trocar/preprocess.h"
#include "trocar/tensor.h"
#include "trocar/value.h"

namespace trocar::data {

// A picture: height × width × channels numbers, row by row, the channels of a pixel together.
struct Picture {
    std::int64_t height = 0;
    std::int64_t width = 0;
    std::int64_t channels = 0;
    bool eight_bit = true;  // whole numbers from 0 to 255
    std::vector<float> values;
};

// A picture of bytes that are stored in this order (planes: channel by channel). The bytes must be
// as many as its size says.
Picture picture_of(Bytes bytes, std::int64_t height, std::int64_t width, std::int64_t channels,
                   bool planes = false);

// Decodes PNG or JPEG: gray or RGB with 8 bits a channel; transparency is dropped, 16 bits are
// scaled, colour profiles and EXIF orientation are not looked at. `where` names the file in
// messages. Throws Error(input), Error(unsupported).
Picture decode_picture(Bytes file, std::string_view where);
Picture decode_png(Bytes file, std::string_view where);
Picture decode_jpeg(Bytes file, std::string_view where);
bool is_png(Bytes file);
bool is_jpeg(Bytes file);

// The steps. `where` names the sample in messages; each throws Error(input) on a picture that it
// cannot be taken with.
Picture with_color(Picture picture, Preprocess::Color color, std::int64_t wanted_channels,
                   std::string_view where);
Picture resized(const Picture& picture, Preprocess::Size size, Preprocess::Filter filter,
                std::string_view where);
Picture cropped(const Picture& picture, Preprocess::Size size, std::string_view where);
void normalise(Picture& picture, const Preprocess& preprocess, std::string_view where);

// Its elements in a layout (not `automatic`) without batch dimension: u8 while `eight_bit`, else
// f32.
Value laid_out(const Picture& picture, Preprocess::Layout layout);

}  // namespace trocar::data
