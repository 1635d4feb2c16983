// Windows and Fourier transforms.
#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "engines/reference/call.h"

namespace trocar::reference {

namespace {

using Complex = std::complex<double>;

// --- Windows ------------------------------------------------------------------------------------

template <class F>
void window(Call& call, F&& f) {
    const auto size = call.integer(std::size_t{0});
    const auto dtype = static_cast<DType>(call.integer("output_datatype", 1));
    const bool periodic = call.integer("periodic", 1) != 0;
    Numbers made(count({size}));
    const auto period = static_cast<double>(periodic ? size : size - 1);
    for (std::size_t i = 0; i < made.size(); ++i) {
        made[i] = f(2 * std::numbers::pi * static_cast<double>(i) / period);
    }
    call.give(0, dtype, {size}, made);
}
void hann(Call& call) {
    window(call, [](double x) { return 0.5 - 0.5 * std::cos(x); });
}
void hamming(Call& call) {
    const double alpha = 25.0 / 46;
    window(call, [&](double x) { return alpha - (1 - alpha) * std::cos(x); });
}
void blackman(Call& call) {
    window(call, [](double x) { return 0.42 - 0.5 * std::cos(x) + 0.08 * std::cos(2 * x); });
}

// --- Fourier transforms -------------------------------------------------------------------------

// By the definition, with the roots of unity computed once.
std::vector<Complex> transformed(const std::vector<Complex>& x, std::size_t outputs, bool inverse) {
    const auto n = x.size();
    std::vector<Complex> roots(n);
    for (std::size_t i = 0; i < n; ++i) {
        const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n);
        roots[i] = {std::cos(angle), inverse ? std::sin(angle) : -std::sin(angle)};
    }
    std::vector<Complex> made(outputs);
    for (std::size_t k = 0; k < outputs; ++k) {
        for (std::size_t i = 0; i < n; ++i) {
            made[k] += x[i] * roots[i * k % n];
        }
        made[k] /= inverse ? static_cast<double>(n) : 1.0;
    }
    return made;
}

// Real (1) or complex (2) numbers stand in the last dimension.
void dft(Call& call) {
    auto shape = call.shape(0);
    require(shape.size() >= 2 && (shape.back() == 1 || shape.back() == 2),
            "the last dimension is neither 1 nor 2");
    const bool inverse = call.integer("inverse", 0) != 0;
    const bool onesided = call.integer("onesided", 0) != 0;
    const auto axis_given = call.opset() >= 20 ? (call.has(2) ? call.integer(std::size_t{2}) : -2)
                                               : call.integer("axis", 1);
    const auto axis = axis_of(axis_given, shape.size());
    require(axis + 1 < shape.size(), "the axis is that of the complex numbers");
    const bool to_real = inverse && onesided;
    const auto usual = to_real ? 2 * (shape[axis] - 1) : shape[axis];
    const auto length = call.has(1) ? call.integer(std::size_t{1}) : usual;
    require(length > 0 && length <= 1 << 20, "the length is out of range");
    const auto parts = shape.back();
    const auto x = call.numbers(0);
    shape.pop_back();
    const auto lines = lines_along(shape, {axis});
    shape[axis] = onesided && !inverse ? length / 2 + 1 : length;
    const auto into = lines_along(shape, {axis});
    const std::int64_t width = to_real ? 1 : 2;
    Shape to = shape;
    to.push_back(width);
    Numbers made(count(to));
    for (std::size_t l = 0; l < lines.starts.size(); ++l) {
        std::vector<Complex> signal(to_size(length));
        const auto at = [&](std::size_t i) {
            const auto place = (lines.starts[l] + lines.steps[i]) * to_size(parts);
            return Complex(x[place], parts == 2 ? x[place + 1] : 0.0);
        };
        for (std::size_t i = 0; i < std::min(signal.size(), lines.steps.size()); ++i) {
            signal[i] = at(i);
        }
        for (std::size_t i = signal.size() / 2 + 1; to_real && i < signal.size(); ++i) {
            signal[i] = std::conj(signal[signal.size() - i]);
        }
        const auto result = transformed(signal, into.steps.size(), inverse);
        for (std::size_t i = 0; i < result.size(); ++i) {
            const auto place = (into.starts[l] + into.steps[i]) * to_size(width);
            made[place] = result[i].real();
            if (width == 2) {
                made[place + 1] = result[i].imag();
            }
        }
    }
    call.give(0, call.dtype(0), to, made);
}

void stft(Call& call) {
    const auto shape = call.shape(0);
    const auto x = call.numbers(0);
    require(shape.size() == 2 || shape.size() == 3, "a signal with a batch is wanted");
    const auto parts = shape.size() == 3 ? shape[2] : 1;
    require(parts == 1 || parts == 2, "the last dimension is neither 1 nor 2");
    const auto step = call.integer(std::size_t{1});
    const auto window = call.has(2) ? call.numbers(2) : Numbers{};
    const auto frame = call.has(3) ? call.integer(std::size_t{3}) : to_integer(window.size());
    require(step > 0 && frame > 0 && frame <= shape[1], "frames do not fit the signal");
    require(window.empty() || window.size() == to_size(frame), "the window is no frame long");
    const bool onesided = call.integer("onesided", 1) != 0 && parts == 1;
    const auto frames = (shape[1] - frame) / step + 1;
    const auto bins = onesided ? frame / 2 + 1 : frame;
    const Shape to{shape[0], frames, bins, 2};
    Numbers made;
    made.reserve(count(to));
    for (std::int64_t b = 0; b < shape[0]; ++b) {
        for (std::int64_t f = 0; f < frames; ++f) {
            std::vector<Complex> signal(to_size(frame));
            for (std::size_t i = 0; i < signal.size(); ++i) {
                const auto place = to_size((b * shape[1] + f * step + to_integer(i)) * parts);
                const Complex value(x[place], parts == 2 ? x[place + 1] : 0.0);
                signal[i] = value * (window.empty() ? 1.0 : window[i]);
            }
            for (const auto& bin : transformed(signal, to_size(bins), false)) {
                made.push_back(bin.real());
                made.push_back(bin.imag());
            }
        }
    }
    call.give(0, call.dtype(0), to, made);
}

}  // namespace

std::span<const Entry> signal_ops() {
    static constexpr Entry ops[]{
        {"BlackmanWindow", blackman}, {"DFT", dft},   {"HammingWindow", hamming},
        {"HannWindow", hann},         {"STFT", stft},
    };
    return ops;
}

}  // namespace trocar::reference
