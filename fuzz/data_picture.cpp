// Reads arbitrary bytes as PNG or JPEG and takes the steps of preprocessing with the result.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "data/picture.h"
#include "trocar/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace trocar;
    try {
        auto picture = data::decode_picture(std::as_bytes(std::span(data, size)), "'file'");
        if (picture.values.size() !=
            static_cast<std::size_t>(picture.height * picture.width * picture.channels)) {
            std::abort();
        }
        picture = data::with_color(picture, Preprocess::Color::gray, 0, "'file'");
        for (const auto filter : {Preprocess::Filter::bilinear, Preprocess::Filter::antialias,
                                  Preprocess::Filter::nearest}) {
            data::cropped(data::resized(picture, {9, 7}, filter, "'file'"), {5, 0}, "'file'");
        }
    } catch (const Error& e) {
        if (e.fault() != Fault::input && e.fault() != Fault::unsupported) {
            std::abort();
        }
    }
    return 0;
}
