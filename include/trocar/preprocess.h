#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#pragma GCC visibility push(default)
namespace trocar {

// What is done with a sample before a model gets it; nothing that is not said here. The steps are
// taken in the order of the members. Pictures are numbers from 0 to 255 until `scale`.
struct Preprocess {
    // `rgb` and `bgr` repeat the one channel of a gray picture; `gray` is Rec. 601 luma, rounded,
    // as Pillow makes it. `as_is`: the channels of the file, save that a gray picture becomes RGB
    // for a model that takes three channels.
    enum class Color { as_is, rgb, bgr, gray };
    enum class Filter {
        bilinear,   // between the four nearest pixels, as OpenCV and torch.nn.functional do
        antialias,  // over all pixels that a new one covers, as Pillow and torchvision do
        nearest,    // by the centre of the new pixel
    };
    enum class Layout {
        automatic,  // the one of the model's input, as far as it tells; else nchw
        nchw,
        nhwc,
        flat,  // height × width × channels numbers in a row
    };
    struct Size {
        std::int64_t height = 0;
        std::int64_t width = 0;  // 0: `height` is the length of the shorter side
        bool operator==(const Size&) const = default;
    };

    Layout from = Layout::automatic;  // of arrays that hold pictures, without the N
    Color color = Color::as_is;
    std::optional<Size> resize;
    Filter filter = Filter::bilinear;  // of 8-bit pictures the result is rounded to 8 bits
    std::optional<Size> crop;          // the centre; a width of 0: square
    double scale = 1;                  // times this…
    std::vector<double> mean;          // …less this, one or one for each channel…
    std::vector<double> std;           // …divided by this
    Layout layout = Layout::automatic;
    // For /bin/sh. Gets the sample so far as .npy on standard input, 8-bit where it still is, and
    // writes another one to standard output. Empty: none.
    std::string command;
    // Where the dimension of size 1 goes that stands for the batch: 0 is in front. Then the
    // elements get the type of the model's input.
    std::int64_t batch_axis = 0;

    // Event recordings: how the events of a sample become steps × 2 × height × width numbers.
    struct Events {
        std::int64_t steps = 16;
        bool equal_counts = false;   // steps of as many events each, not of as much time
        bool binary = false;         // 1 where there was any event, not how many there were
        Size sensor{128, 128};       // where events come from
        std::int64_t downscale = 1;  // squares of so many pixels a side become one
        bool operator==(const Events&) const = default;
    };
    Events events;

    bool operator==(const Preprocess&) const = default;
};

// Texts of "KEY=VALUE", several separated by blanks; `command` takes the rest of its text. Keys:
// from, color, resize, filter, crop, scale, mean, std, layout, batch, command, and for events
// steps, split, values, sensor, downscale. A size is 256, or 256x320 for height and width.
// `imagenet` stands for what models of torchvision are given. Throws Error(usage).
Preprocess parse_preprocess(std::span<const std::string> texts);

// The same back, all that differs from the default, in the order of the steps; "" for nothing.
std::string preprocess_text(const Preprocess& preprocess);

}  // namespace trocar
#pragma GCC visibility pop
