#include <fmt/format.h>

#include <csetjmp>
#include <cstdio>
#include <memory>

// After <cstdio>, which they need.
#include <jerror.h>
#include <jpeglib.h>

#include "data/picture.h"
#include "trocar/error.h"

namespace trocar::data {

namespace {

// A block of 64 pixels takes at least a bit.
constexpr std::size_t most_pixels_per_byte = 1024;

// Of a progressive file; each takes as long as the picture is large, and a few bytes. Usual are 10.
constexpr int most_scans = 100;

// What libjpeg's functions of ours see; `errors` comes first, so that a pointer to it is one to
// this.
struct JpegReading {
    jpeg_error_mgr errors{};
    std::jmp_buf back{};
    char message[JMSG_LENGTH_MAX] = {};
    jpeg_decompress_struct jpeg{};
    jpeg_progress_mgr progress{};
    std::vector<std::byte> pixels;

    JpegReading() {
        jpeg.err = jpeg_std_error(&errors);
        errors.error_exit = [](j_common_ptr about) {
            auto* reading = reinterpret_cast<JpegReading*>(about->err);
            about->err->format_message(about, reading->message);
            std::longjmp(reading->back, 1);
        };
        errors.output_message = [](j_common_ptr) {};
        errors.emit_message = [](j_common_ptr about, int level) {
            // libjpeg would fill the rest with gray.
            if (level < 0 && about->err->msg_code == JWRN_JPEG_EOF) {
                about->err->error_exit(about);
            }
        };
        progress.progress_monitor = [](j_common_ptr about) {
            if (reinterpret_cast<j_decompress_ptr>(about)->input_scan_number > most_scans) {
                about->err->msg_code = JERR_BAD_PROGRESSION;
                about->err->error_exit(about);
            }
        };
    }
    JpegReading(const JpegReading&) = delete;
    JpegReading& operator=(const JpegReading&) = delete;
    ~JpegReading() { jpeg_destroy_decompress(&jpeg); }
};

bool read_header(JpegReading& reading, Bytes file) {
    if (setjmp(reading.back) != 0) {
        return false;
    }
    jpeg_create_decompress(&reading.jpeg);
    reading.jpeg.progress = &reading.progress;
    jpeg_mem_src(&reading.jpeg, reinterpret_cast<const unsigned char*>(file.data()),
                 static_cast<unsigned long>(file.size()));
    jpeg_read_header(&reading.jpeg, TRUE);
    return true;
}

bool read_pixels(JpegReading& reading) {
    if (setjmp(reading.back) != 0) {
        return false;
    }
    jpeg_start_decompress(&reading.jpeg);
    const auto row_bytes = std::size_t{reading.jpeg.output_width} *
                           static_cast<std::size_t>(reading.jpeg.output_components);
    while (reading.jpeg.output_scanline < reading.jpeg.output_height) {
        auto* row = reinterpret_cast<JSAMPROW>(reading.pixels.data() +
                                               reading.jpeg.output_scanline * row_bytes);
        jpeg_read_scanlines(&reading.jpeg, &row, 1);
    }
    jpeg_finish_decompress(&reading.jpeg);
    return true;
}

}  // namespace

Picture decode_jpeg(Bytes file, std::string_view where) {
    const auto reading = std::make_unique<JpegReading>();
    const auto fail = [&](std::string_view what) {
        return Error(Fault::input, fmt::format("{} is a broken JPEG: {}", where, what));
    };
    if (!read_header(*reading, file)) {
        throw fail(reading->message);
    }
    auto& jpeg = reading->jpeg;
    const bool gray = jpeg.jpeg_color_space == JCS_GRAYSCALE;
    if (!gray && jpeg.jpeg_color_space != JCS_YCbCr && jpeg.jpeg_color_space != JCS_RGB) {
        throw Error(Fault::unsupported,
                    fmt::format("{} is a JPEG with {} channels that are not RGB", where,
                                jpeg.num_components),
                    "convert it to RGB");
    }
    const auto pixels = std::size_t{jpeg.image_width} * jpeg.image_height;
    if (pixels > most_pixels_per_byte * file.size()) {
        throw fail(fmt::format("{} bytes cannot hold {}x{} pixels", file.size(), jpeg.image_height,
                               jpeg.image_width));
    }
    jpeg.out_color_space = gray ? JCS_GRAYSCALE : JCS_RGB;
    const std::size_t channels = gray ? 1 : 3;
    reading->pixels.resize(pixels * channels);
    if (!read_pixels(*reading)) {
        throw fail(reading->message);
    }
    return picture_of(reading->pixels, jpeg.image_height, jpeg.image_width,
                      static_cast<std::int64_t>(channels));
}

}  // namespace trocar::data
