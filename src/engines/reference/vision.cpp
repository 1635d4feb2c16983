// Ops of detectors and spatial transformers.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "engines/reference/call.h"

namespace trocar::reference {

namespace {

// --- GridSample ---------------------------------------------------------------------------------

constexpr double farthest = 1e9;  // places beyond are as good as this one

struct Sampling {
    std::string mode;
    std::string padding;
    bool align = false;
};

// As often as it takes between two mirrors.
double reflected(double x, double low, double high) {
    const double range = high - low;
    if (range <= 0) {
        return low;
    }
    if (x >= low && x <= high) {
        return x;
    }
    const double beyond = x < low ? low - x : x - high;
    const double times = std::floor(beyond / range);
    const double rest = beyond - times * range;
    const bool even = std::fmod(times, 2) == 0;
    return (x < low) == even ? low + rest : high - rest;
}

struct Tap {
    std::size_t place = 0;
    double weight = 0;
};

// What one coordinate of a grid, in [-1, 1], reads along an axis.
class AxisReader {
public:
    AxisReader(const Sampling& sampling, std::int64_t size)
        : sampling_(sampling),
          size_(static_cast<double>(size)),
          low_(sampling.align ? 0 : -0.5),
          high_(sampling.align ? size_ - 1 : size_ - 0.5) {}

    std::vector<Tap> at(double coordinate) const {
        double x = sampling_.align ? (coordinate + 1) / 2 * (size_ - 1)
                                   : ((coordinate + 1) * size_ - 1) / 2;
        x = std::isnan(x) ? -farthest : std::clamp(x, -farthest, farthest);
        x = sampling_.mode == "nearest" ? std::nearbyint(x) : x;
        if (x < low_ || x > high_) {
            x = inside(x);
        }
        const double first = std::floor(x);
        std::vector<Tap> taps;
        if (sampling_.mode == "nearest") {
            add(taps, x, 1);
        } else if (sampling_.mode == "linear") {
            add(taps, first, first + 1 - x);
            add(taps, first + 1, x - first);
        } else {
            for (int i = -1; i <= 2; ++i) {
                add(taps, first + i, cubic(x - first - i));
            }
        }
        return taps;
    }

private:
    double inside(double x) const {
        return sampling_.padding == "border"       ? std::clamp(x, 0.0, size_ - 1)
               : sampling_.padding == "reflection" ? reflected(x, low_, high_)
                                                   : x;
    }
    void add(std::vector<Tap>& taps, double place, double weight) const {
        if (place < 0 || place > size_ - 1) {
            if (sampling_.padding == "zeros") {
                return;
            }
            place = std::clamp(std::floor(inside(place)), 0.0, size_ - 1);
        }
        taps.push_back({static_cast<std::size_t>(place), weight});
    }
    static double cubic(double x) {
        constexpr double a = -0.75;
        x = std::abs(x);
        return x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1
                      : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
    }

    const Sampling& sampling_;
    double size_;
    double low_;
    double high_;
};

Sampling sampling_of(const Call& call) {
    Sampling sampling{call.text("mode", "linear"), call.text("padding_mode", "zeros"),
                      call.integer("align_corners", 0) != 0};
    sampling.mode = sampling.mode == "bilinear"  ? "linear"
                    : sampling.mode == "bicubic" ? "cubic"
                                                 : sampling.mode;
    require(sampling.mode == "linear" || sampling.mode == "nearest" || sampling.mode == "cubic",
            "there is no such mode");
    require(sampling.padding == "zeros" || sampling.padding == "border" ||
                sampling.padding == "reflection",
            "there is no such padding_mode");
    return sampling;
}

// Places in a plane and their weights: all combinations of those of the axes.
std::vector<Tap> combined(const std::vector<AxisReader>& axes, const Shape& plane,
                          const double* coordinates) {
    std::vector<Tap> all{{0, 1}};
    for (std::size_t d = 0; d < axes.size(); ++d) {
        // Coordinates stand with the last dimension first.
        const auto taps = axes[d].at(coordinates[axes.size() - 1 - d]);
        std::vector<Tap> next;
        for (const auto& outer : all) {
            for (const auto& tap : taps) {
                next.push_back(
                    {outer.place * to_size(plane[d]) + tap.place, outer.weight * tap.weight});
            }
        }
        all = std::move(next);
    }
    return all;
}

void grid_sample(Call& call) {
    const auto sampling = sampling_of(call);
    const auto shape = call.shape(0);
    const auto grid_shape = call.shape(1);
    require(shape.size() >= 3 && shape.size() <= 7 && grid_shape.size() == shape.size() &&
                grid_shape[0] == shape[0] && grid_shape.back() == to_integer(shape.size() - 2),
            "the grid does not fit the picture");
    const Shape plane(shape.begin() + 2, shape.end());
    require(count(plane) > 0, "the picture is empty");
    std::vector<AxisReader> axes;
    for (const auto size : plane) {
        axes.emplace_back(sampling, size);
    }
    Shape to{shape[0], shape[1]};
    to.insert(to.end(), grid_shape.begin() + 1, grid_shape.end() - 1);
    const auto x = call.numbers(0);
    const auto grid = call.numbers(1);
    Numbers made(count(to));
    const auto pixels = count(Shape(to.begin() + 2, to.end()));
    const auto channels = to_size(shape[1]);
    for (std::size_t n = 0; n < to_size(shape[0]); ++n) {
        for (std::size_t p = 0; p < pixels; ++p) {
            const auto taps = combined(axes, plane, grid.data() + (n * pixels + p) * plane.size());
            for (std::size_t c = 0; c < channels; ++c) {
                const double* from = x.data() + (n * channels + c) * count(plane);
                double sum = 0;
                for (const auto& tap : taps) {
                    sum += tap.weight * from[tap.place];
                }
                made[(n * channels + c) * pixels + p] = sum;
            }
        }
    }
    call.give(0, call.dtype(0), to, made);
}

// Where an affine map takes the places of a picture.
void affine_grid(Call& call) {
    const auto size = call.integers(1);
    const auto theta = call.numbers(0);
    require(size.size() == 4 || size.size() == 5, "a picture of two or three dimensions is wanted");
    const auto rank = size.size() - 2;
    require(call.shape(0) == Shape{size[0], to_integer(rank), to_integer(rank + 1)},
            "the maps do not fit the size");
    const bool align = call.integer("align_corners", 0) != 0;
    const Shape plane(size.begin() + 2, size.end());
    Shape to{size[0]};
    to.insert(to.end(), plane.begin(), plane.end());
    to.push_back(to_integer(rank));
    const auto strides = strides_of(plane);
    Numbers made;
    made.reserve(count(to));
    for (std::size_t n = 0; n < to_size(size[0]); ++n) {
        for (std::size_t p = 0; p < count(plane); ++p) {
            Numbers at(rank + 1, 1.0);
            for (std::size_t d = 0; d < rank; ++d) {
                const auto i = static_cast<double>(to_integer(p) / strides[d] % plane[d]);
                const auto length = static_cast<double>(plane[d]);
                at[rank - 1 - d] = align ? (plane[d] > 1 ? -1 + 2 * i / (length - 1) : 0)
                                         : -1 + (2 * i + 1) / length;
            }
            for (std::size_t row = 0; row < rank; ++row) {
                const double* map = theta.data() + (n * rank + row) * (rank + 1);
                made.push_back(std::inner_product(at.begin(), at.end(), map, 0.0));
            }
        }
    }
    call.give(0, call.dtype(0), to, made);
}

// --- Boxes --------------------------------------------------------------------------------------

struct Box {
    double top, left, bottom, right;
    double area() const { return (bottom - top) * (right - left); }
};

Box box_at(const double* x, bool centred) {
    if (centred) {
        return {x[1] - x[3] / 2, x[0] - x[2] / 2, x[1] + x[3] / 2, x[0] + x[2] / 2};
    }
    return {std::min(x[0], x[2]), std::min(x[1], x[3]), std::max(x[0], x[2]), std::max(x[1], x[3])};
}

double overlap(const Box& a, const Box& b) {
    const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
    const double width = std::min(a.right, b.right) - std::max(a.left, b.left);
    if (height <= 0 || width <= 0 || a.area() <= 0 || b.area() <= 0) {
        return 0;
    }
    return height * width / (a.area() + b.area() - height * width);
}

void non_max_suppression(Call& call) {
    const auto boxes = call.numbers(0);
    const auto scores = call.numbers(1);
    const auto shape = call.shape(1);
    require(shape.size() == 3 && call.shape(0) == Shape{shape[0], shape[2], 4},
            "boxes and scores do not fit together");
    const auto most = call.has(2) ? call.integer(std::size_t{2}) : 0;
    const auto most_overlap = call.has(3) ? call.number(std::size_t{3}) : 0.0;
    const bool has_least = call.has(4);
    const auto least = has_least ? call.number(std::size_t{4}) : 0.0;
    const bool centred = call.integer("center_point_box", 0) != 0;
    const auto total = to_size(shape[2]);
    Integers chosen;
    for (std::size_t line = 0; line < count({shape[0], shape[1]}); ++line) {
        const auto batch = line / to_size(shape[1]);
        const double* score = scores.data() + line * total;
        const auto box = [&](std::size_t i) {
            return box_at(boxes.data() + (batch * total + i) * 4, centred);
        };
        Indices order;
        for (std::size_t i = 0; i < total; ++i) {
            if (!std::isnan(score[i]) && (!has_least || score[i] > least)) {
                order.push_back(i);
            }
        }
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return score[a] > score[b]; });
        Indices kept;
        for (const auto i : order) {
            if (to_integer(kept.size()) >= most) {
                break;
            }
            const bool alone = std::none_of(kept.begin(), kept.end(), [&](std::size_t other) {
                return overlap(box(i), box(other)) > most_overlap;
            });
            if (alone) {
                kept.push_back(i);
                chosen.insert(chosen.end(), {to_integer(batch),
                                             to_integer(line % to_size(shape[1])), to_integer(i)});
            }
        }
    }
    call.give(0, DType::i64, {to_integer(chosen.size() / 3), 3}, chosen);
}

// The value between four pixels, weights first; outside the picture there is nothing.
std::array<Tap, 4> between(double y, double x, std::int64_t height, std::int64_t width) {
    std::array<Tap, 4> taps{};
    if (!(y >= -1 && y <= static_cast<double>(height) && x >= -1 &&
          x <= static_cast<double>(width))) {
        return taps;
    }
    const auto split = [](double at, std::int64_t size) {
        at = std::max(at, 0.0);
        const auto low = std::min(static_cast<std::int64_t>(at), size - 1);
        const auto high = std::min(low + 1, size - 1);
        const double part = low == size - 1 ? 0 : at - static_cast<double>(low);
        return std::array<Tap, 2>{Tap{to_size(low), 1 - part}, Tap{to_size(high), part}};
    };
    const auto rows = split(y, height);
    const auto columns = split(x, width);
    for (std::size_t i = 0; i < 4; ++i) {
        const auto& row = rows[i / 2];
        const auto& column = columns[i % 2];
        taps[i] = {row.place * to_size(width) + column.place, row.weight * column.weight};
    }
    return taps;
}

void roi_align(Call& call) {
    const auto shape = call.shape(0);
    const auto x = call.numbers(0);
    const auto rois = call.numbers(1);
    const auto batches = call.integers(2);
    require(shape.size() == 4 && shape[2] > 0 && shape[3] > 0, "a picture is wanted");
    require(rois.size() == 4 * batches.size(), "one place in the batch per region is wanted");
    const auto height = call.integer("output_height", 1);
    const auto width = call.integer("output_width", 1);
    const auto ratio = call.integer("sampling_ratio", 0);
    require(ratio >= 0 && ratio < 1 << 15, "sampling_ratio is out of range");
    const auto scale = call.number("spatial_scale", 1);
    const auto mode = call.text("mode", "avg");
    require(mode == "avg" || mode == "max", "there is no such mode");
    const bool shifted = call.opset() >= 16 &&
                         call.text("coordinate_transformation_mode", "half_pixel") == "half_pixel";
    const double shift = shifted ? 0.5 : 0;
    const Shape to{to_integer(batches.size()), shape[1], height, width};
    Numbers made(count(to));
    std::size_t out = 0;
    for (std::size_t r = 0; r < batches.size(); ++r) {
        require(batches[r] >= 0 && batches[r] < shape[0], "a region is outside the batch");
        const double left = rois[4 * r] * scale - shift;
        const double top = rois[4 * r + 1] * scale - shift;
        double wide = rois[4 * r + 2] * scale - shift - left;
        double high = rois[4 * r + 3] * scale - shift - top;
        if (!shifted) {
            wide = std::max(wide, 1.0);
            high = std::max(high, 1.0);
        }
        const double bin_height = high / static_cast<double>(height);
        const double bin_width = wide / static_cast<double>(width);
        const auto samples = [&](double bin) {
            const double wanted = ratio > 0 ? static_cast<double>(ratio) : std::ceil(bin);
            require(wanted < 1 << 15, "a region is out of range");
            return static_cast<std::int64_t>(std::max(wanted, 0.0));
        };
        const auto down = samples(bin_height);
        const auto across = samples(bin_width);
        for (std::int64_t c = 0; c < shape[1]; ++c) {
            const double* plane =
                x.data() + to_size((batches[r] * shape[1] + c) * shape[2] * shape[3]);
            for (std::int64_t p = 0; p < height * width; ++p, ++out) {
                double sum = 0;
                double peak = 0;
                for (std::int64_t s = 0; s < down * across; ++s) {
                    const auto part = [](std::int64_t at, std::int64_t of) {
                        return (static_cast<double>(at) + 0.5) / static_cast<double>(of);
                    };
                    const auto line = p / width;
                    const double y =
                        top + (static_cast<double>(line) + part(s / across, down)) * bin_height;
                    const double u =
                        left +
                        (static_cast<double>(p % width) + part(s % across, across)) * bin_width;
                    const auto taps = between(y, u, shape[2], shape[3]);
                    double highest = 0;
                    for (std::size_t i = 0; i < taps.size(); ++i) {
                        const double weighted = taps[i].weight * plane[taps[i].place];
                        sum += weighted;
                        highest = i == 0 ? weighted : std::max(highest, weighted);
                    }
                    peak = s == 0 ? highest : std::max(peak, highest);
                }
                const auto total = static_cast<double>(std::max<std::int64_t>(down * across, 1));
                made[out] = mode == "avg" ? sum / total : peak;
            }
        }
    }
    call.give(0, call.dtype(0), to, made);
}

}  // namespace

std::span<const Entry> vision_ops() {
    static constexpr Entry ops[]{
        {"AffineGrid", affine_grid},
        {"GridSample", grid_sample},
        {"NonMaxSuppression", non_max_suppression},
        {"RoiAlign", roi_align},
    };
    return ops;
}

}  // namespace trocar::reference
