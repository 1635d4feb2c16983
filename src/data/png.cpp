#include <fmt/format.h>
#include <png.h>

#include <csetjmp>
#include <cstring>
#include <memory>

#include "data/picture.h"
#include "trocar/error.h"

namespace trocar::data {

namespace {

// Deflate makes at most 1032 bytes of one.
constexpr std::size_t most_png_expansion = 1032;

// What libpng's functions of ours see. Errors jump out of libpng, so whatever must be freed lives
// here and not on the stack between.
struct PngReading {
    Bytes file;
    std::size_t at = 0;
    char message[160] = {};
    png_structp png = nullptr;
    png_infop info = nullptr;
    png_uint_32 width = 0;
    png_uint_32 height = 0;
    std::size_t row_bytes = 0;
    std::size_t channels = 0;
    std::vector<std::byte> pixels;
    std::vector<png_bytep> rows;

    PngReading() = default;
    PngReading(const PngReading&) = delete;
    PngReading& operator=(const PngReading&) = delete;
    ~PngReading() { png_destroy_read_struct(&png, &info, nullptr); }
};

[[noreturn]] void on_error(png_structp png, png_const_charp message) {
    auto* reading = static_cast<PngReading*>(png_get_error_ptr(png));
    std::strncpy(reading->message, message, sizeof reading->message - 1);
    png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

void on_read(png_structp png, png_bytep to, png_size_t count) {
    auto* reading = static_cast<PngReading*>(png_get_io_ptr(png));
    if (count > reading->file.size() - reading->at) {
        png_error(png, "the file ends too early");
    }
    std::memcpy(to, reading->file.data() + reading->at, count);
    reading->at += count;
}

// False on an error, which `message` tells.
bool read_header(PngReading& reading) {
    if (setjmp(png_jmpbuf(reading.png)) != 0) {
        return false;
    }
    png_set_read_fn(reading.png, &reading, on_read);
    png_read_info(reading.png, reading.info);
    png_set_expand(reading.png);
    png_set_scale_16(reading.png);
    png_set_strip_alpha(reading.png);
    png_set_interlace_handling(reading.png);
    png_read_update_info(reading.png, reading.info);
    reading.width = png_get_image_width(reading.png, reading.info);
    reading.height = png_get_image_height(reading.png, reading.info);
    reading.row_bytes = png_get_rowbytes(reading.png, reading.info);
    reading.channels = png_get_channels(reading.png, reading.info);
    return true;
}

bool read_pixels(PngReading& reading) {
    if (setjmp(png_jmpbuf(reading.png)) != 0) {
        return false;
    }
    png_read_image(reading.png, reading.rows.data());
    png_read_end(reading.png, nullptr);
    return true;
}

}  // namespace

Picture decode_png(Bytes file, std::string_view where) {
    const auto reading = std::make_unique<PngReading>();
    reading->file = file;
    const auto fail = [&](std::string_view what) {
        return Error(Fault::input, fmt::format("{} is a broken PNG: {}", where, what));
    };
    reading->png =
        png_create_read_struct(PNG_LIBPNG_VER_STRING, reading.get(), on_error, on_warning);
    reading->info = reading->png != nullptr ? png_create_info_struct(reading->png) : nullptr;
    if (reading->info == nullptr) {
        throw Error(Fault::internal, "libpng cannot be started");
    }
    if (!read_header(*reading)) {
        throw fail(reading->message);
    }
    if (reading->row_bytes == 0 ||
        reading->height > most_png_expansion * file.size() / reading->row_bytes) {
        throw fail(fmt::format("{} bytes cannot hold {}x{} pixels", file.size(), reading->height,
                               reading->width));
    }
    reading->pixels.resize(reading->row_bytes * reading->height);
    for (std::size_t y = 0; y < reading->height; ++y) {
        reading->rows.push_back(
            reinterpret_cast<png_bytep>(reading->pixels.data() + y * reading->row_bytes));
    }
    if (!read_pixels(*reading)) {
        throw fail(reading->message);
    }
    return picture_of(reading->pixels, reading->height, reading->width,
                      static_cast<std::int64_t>(reading->channels));
}

}  // namespace trocar::data
