#include "lab/png.h"

#include <fmt/format.h>
#include <png.h>

#include "trocar/error.h"
#include "util/files.h"

namespace trocar::lab {

void write_png(const std::filesystem::path& path, std::size_t width, std::size_t height,
               const std::vector<std::uint8_t>& shades) {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = static_cast<png_uint_32>(width);
    image.height = static_cast<png_uint_32>(height);
    image.format = PNG_FORMAT_GRAY;
    png_alloc_size_t size = 0;
    std::string bytes;
    if (png_image_write_get_memory_size(image, size, 0, shades.data(), 0, nullptr) != 0) {
        bytes.resize(size);
        if (png_image_write_to_memory(&image, bytes.data(), &size, 0, shades.data(), 0, nullptr) !=
            0) {
            bytes.resize(size);
            write_file(path, bytes);
            return;
        }
    }
    throw Error(Fault::input, fmt::format("'{}' cannot be made: {}", path.string(), image.message));
}

}  // namespace trocar::lab
