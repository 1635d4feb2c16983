#include "engines/reference/convolution.h"

#include <algorithm>
#include <cmath>

#include "engines/reference/product.h"

namespace trocar::reference {

namespace {

constexpr std::size_t unfolded_numbers = std::size_t{1} << 17;  // at once: 1 MB
constexpr std::size_t most_positions = 512;

Shape tail(const Shape& shape, std::size_t from) {
    require(shape.size() > from, "a tensor has too few dimensions");
    return {shape.begin() + to_integer(from), shape.end()};
}

std::int64_t group_count(const Call& call, std::int64_t channels) {
    const auto groups = call.integer("group", 1);
    require(groups >= 1 && channels % groups == 0, "the channels are no multiple of the groups");
    return groups;
}

Shape kernel_of(const Call& call, const Shape& weights) {
    const auto kernel = tail(weights, 2);
    require(call.integers("kernel_shape").value_or(kernel) == kernel,
            "kernel_shape is not that of the weights");
    return kernel;
}

std::size_t positions_at_once(std::size_t rows) {
    return std::clamp<std::size_t>(unfolded_numbers / std::max<std::size_t>(rows, 1), 16,
                                   most_positions);
}

// What every tap of every channel reads at some positions: a matrix of taps by positions.
void unfold(const Windows& windows, const double* x, std::size_t channels, std::size_t first,
            std::size_t positions, Numbers& matrix) {
    matrix.assign(channels * windows.taps() * positions, 0.0);
    Integers places(positions);
    for (std::size_t tap = 0; tap < windows.taps(); ++tap) {
        windows.read(tap, first, places);
        for (std::size_t c = 0; c < channels; ++c) {
            const double* from = x + c * windows.picture();
            double* to = matrix.data() + (c * windows.taps() + tap) * positions;
            for (std::size_t i = 0; i < positions; ++i) {
                to[i] = places[i] == Windows::outside ? 0.0 : from[places[i]];
            }
        }
    }
}

// The opposite: adds what stands in the matrix to where it would be read.
void fold_back(const Windows& windows, const Numbers& matrix, std::size_t channels,
               std::size_t first, std::size_t positions, double* x) {
    Integers places(positions);
    for (std::size_t tap = 0; tap < windows.taps(); ++tap) {
        windows.read(tap, first, places);
        for (std::size_t c = 0; c < channels; ++c) {
            double* to = x + c * windows.picture();
            const double* from = matrix.data() + (c * windows.taps() + tap) * positions;
            for (std::size_t i = 0; i < positions; ++i) {
                if (places[i] != Windows::outside) {
                    to[places[i]] += from[i];
                }
            }
        }
    }
}

Picture read_picture(const Call& call, std::size_t slot) {
    return {call.shape(slot), call.numbers(slot)};
}

}  // namespace

Picture convolved(const Call& call, const Picture& x, const Picture& weights) {
    require(x.shape.size() >= 3 && weights.shape.size() == x.shape.size(),
            "input and weights are of different ranks, or of too few dimensions");
    const auto groups = group_count(call, x.shape[1]);
    require(weights.shape[1] * groups == x.shape[1] && weights.shape[0] % groups == 0,
            "the weights do not fit the channels");
    auto geometry = window_of(call, tail(x.shape, 2), kernel_of(call, weights.shape));
    place(call, geometry, false);
    const Windows windows(geometry);
    Picture made;
    made.shape = {x.shape[0], weights.shape[0]};
    made.shape.insert(made.shape.end(), geometry.positions.begin(), geometry.positions.end());
    made.numbers.assign(count(made.shape), 0.0);
    const auto channels = to_size(weights.shape[1]);
    const auto filters = to_size(weights.shape[0] / groups);
    const auto rows = channels * windows.taps();
    const auto at_once = positions_at_once(rows);
    Numbers matrix;
    for (std::size_t part = 0; part < to_size(x.shape[0] * groups); ++part) {
        const auto group = part % to_size(groups);
        const double* from = x.numbers.data() + part * channels * windows.picture();
        const double* w = weights.numbers.data() + group * filters * rows;
        double* to = made.numbers.data() + part * filters * windows.positions();
        for (std::size_t first = 0; first < windows.positions(); first += at_once) {
            const auto positions = std::min(at_once, windows.positions() - first);
            unfold(windows, from, channels, first, positions, matrix);
            multiply_add({filters, rows, positions}, w, matrix.data(), to + first,
                         windows.positions());
        }
    }
    return made;
}

void add_bias(Picture& x, const Numbers& bias) {
    require(bias.size() == to_size(x.shape[1]), "one bias per channel is wanted");
    const auto plane = count(tail(x.shape, 2));
    for (std::size_t i = 0; i < x.numbers.size(); ++i) {
        x.numbers[i] += bias[i / plane % bias.size()];
    }
}

namespace {

void conv(Call& call) {
    auto made = convolved(call, read_picture(call, 0), read_picture(call, 1));
    if (call.has(2)) {
        add_bias(made, call.numbers(2));
    }
    call.give(0, call.dtype(0), made.shape, made.numbers);
}

// Pads and the size of the output follow from one another.
void place_transposed(const Call& call, const Shape& from, Geometry& g) {
    const auto rank = from.size();
    const auto mode = call.text("auto_pad", "NOTSET");
    const auto extra = call.integers("output_padding").value_or(Integers(rank, 0));
    auto sizes = call.integers("output_shape");
    if (sizes && sizes->size() == rank + 2) {
        sizes->erase(sizes->begin(), sizes->begin() + 2);
    }
    require(extra.size() == rank && (!sizes || sizes->size() == rank),
            "output_padding or output_shape do not fit the picture's dimensions");
    g.positions = from;
    for (std::size_t i = 0; i < rank; ++i) {
        require(extra[i] >= 0 && extra[i] <= to_integer(most_elements),
                "a padding is out of range");
        const auto whole = g.strides[i] * (from[i] - 1) + extra[i] + g.extent(i);
        if (mode == "VALID") {
            g.before[i] = g.after[i] = 0;
        }
        if (sizes || mode == "SAME_UPPER" || mode == "SAME_LOWER") {
            const auto size = sizes ? (*sizes)[i] : from[i] * g.strides[i];
            require(size >= 0 && size <= to_integer(most_elements), "a size is out of range");
            const auto total = std::max<std::int64_t>(whole - size, 0);
            g.before[i] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
            g.after[i] = total - g.before[i];
            g.picture[i] = size;
        } else {
            g.picture[i] = whole - g.before[i] - g.after[i];
            require(g.picture[i] >= 0, "the pads take away more than there is");
        }
    }
}

// A convolution the other way: each input is spread over what it would have been computed from.
void conv_transpose(Call& call) {
    const auto x = read_picture(call, 0);
    const auto w = read_picture(call, 1);
    require(x.shape.size() >= 3 && w.shape.size() == x.shape.size() && w.shape[0] == x.shape[1],
            "the weights do not fit the input");
    const auto groups = group_count(call, x.shape[1]);
    const auto from = tail(x.shape, 2);
    auto geometry = window_of(call, from, kernel_of(call, w.shape));
    place_transposed(call, from, geometry);
    const Windows windows(geometry);
    Picture made;
    made.shape = {x.shape[0], w.shape[1] * groups};
    made.shape.insert(made.shape.end(), geometry.picture.begin(), geometry.picture.end());
    made.numbers.assign(count(made.shape), 0.0);
    const auto channels = to_size(x.shape[1] / groups);
    const auto filters = to_size(w.shape[1]);
    const auto rows = filters * windows.taps();
    const auto positions = windows.positions();
    const auto at_once = positions_at_once(rows);
    Numbers part_of_x;
    for (std::size_t part = 0; part < to_size(x.shape[0] * groups); ++part) {
        const auto group = part % to_size(groups);
        const auto begin = w.numbers.begin() + to_integer(group * channels * rows);
        const auto weights =
            transposed(Numbers(begin, begin + to_integer(channels * rows)), channels, rows);
        for (std::size_t first = 0; first < positions; first += at_once) {
            const auto now = std::min(at_once, positions - first);
            part_of_x.resize(channels * now);
            for (std::size_t c = 0; c < channels; ++c) {
                std::copy_n(x.numbers.data() + (part * channels + c) * positions + first, now,
                            part_of_x.data() + c * now);
            }
            Numbers matrix(rows * now, 0.0);
            multiply_add({rows, channels, now}, weights.data(), part_of_x.data(), matrix.data(),
                         now);
            fold_back(windows, matrix, filters, first, now,
                      made.numbers.data() + part * filters * windows.picture());
        }
    }
    if (call.has(2)) {
        add_bias(made, call.numbers(2));
    }
    call.give(0, call.dtype(0), made.shape, made.numbers);
}

// Columns of blocks become a picture; blocks that overlap add up.
void col2im(Call& call) {
    const auto shape = call.shape(0);
    const auto sizes = call.integers(1);
    const auto kernel = call.integers(2);
    require(shape.size() == 3, "three dimensions are wanted");
    auto geometry = window_of(call, sizes, kernel);
    place(call, geometry, false);
    const Windows windows(geometry);
    require(to_size(shape[2]) == windows.positions() && to_size(shape[1]) % windows.taps() == 0,
            "the columns do not fit the picture");
    const auto channels = to_size(shape[1]) / windows.taps();
    Shape to{shape[0], to_integer(channels)};
    to.insert(to.end(), sizes.begin(), sizes.end());
    Numbers made(count(to), 0.0);
    const auto x = call.numbers(0);
    const auto columns = to_size(shape[1] * shape[2]);
    for (std::size_t n = 0; n < to_size(shape[0]); ++n) {
        const auto begin = x.begin() + to_integer(n * columns);
        fold_back(windows, Numbers(begin, begin + to_integer(columns)), channels, 0,
                  windows.positions(), made.data() + n * channels * windows.picture());
    }
    call.give(0, call.dtype(0), to, made);
}

// Each channel by itself, over its own past: what stood last in an earlier call, then the input.
void causal_conv_with_state(Call& call) {
    const auto shape = call.shape(0);
    const auto weights = call.shape(1);
    require(shape.size() == 3 && weights.size() == 3 && weights[0] == shape[1] && weights[1] == 1 &&
                weights[2] > 0,
            "the weights do not fit the input");
    const auto activation = call.text("activation", "none");
    require(activation == "none" || activation == "silu" || activation == "swish",
            "there is no such activation");
    const auto taps = to_size(weights[2]);
    const auto length = to_size(shape[2]);
    const auto lines = count({shape[0], shape[1]});
    const auto x = call.numbers(0);
    const auto w = call.numbers(1);
    const auto bias = call.has(2) ? call.numbers(2) : Numbers(to_size(shape[1]), 0.0);
    const auto past = call.has(3) ? call.numbers(3) : Numbers(lines * (taps - 1), 0.0);
    require(bias.size() == to_size(shape[1]) && past.size() == lines * (taps - 1),
            "bias or state do not fit the input");
    Numbers made;
    Numbers last;
    for (std::size_t line = 0; line < lines; ++line) {
        const auto channel = line % to_size(shape[1]);
        const auto begin = past.begin() + to_integer(line * (taps - 1));
        Numbers all(begin, begin + to_integer(taps - 1));
        all.insert(all.end(), x.begin() + to_integer(line * length),
                   x.begin() + to_integer((line + 1) * length));
        for (std::size_t i = 0; i < length; ++i) {
            double sum = bias[channel];
            for (std::size_t tap = 0; tap < taps; ++tap) {
                sum += w[channel * taps + tap] * all[i + tap];
            }
            made.push_back(activation == "none" ? sum : sum / (1 + std::exp(-sum)));
        }
        last.insert(last.end(), all.end() - to_integer(taps - 1), all.end());
    }
    call.give(0, call.dtype(0), shape, made);
    call.give(1, call.dtype(0), {shape[0], shape[1], weights[2] - 1}, last);
}

}  // namespace

std::span<const Entry> convolution_ops() {
    static constexpr Entry ops[]{
        {"CausalConvWithState", causal_conv_with_state},
        {"Col2Im", col2im},
        {"Conv", conv},
        {"ConvTranspose", conv_transpose},
    };
    return ops;
}

}  // namespace trocar::reference
