#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "trocar/op_predict.h"
#include "trocar/random.h"

// A machine of which all is known, for tests: a roofline, stairs of 16 output channels, noise.
namespace trocar::synthetic {

constexpr double flops = 50e9;
constexpr double bytes = 10e9;
constexpr double dispatch_ns = 2000;

inline OpFeatures conv(double in, double out, double kernel, double size) {
    OpFeatures f;
    f.type = "Conv";
    f.attributes = "kernel=" + std::to_string(static_cast<int>(kernel));
    f.dtype = "float32";
    f.macs = size * size * in * out * kernel * kernel;
    f.other_flops = size * size * out;
    f.input_bytes = 4 * in * size * size;
    f.weight_bytes = 4 * in * out * kernel * kernel;
    f.output_bytes = 4 * out * size * size;
    f.numbers = {{"in.1", in},      {"in.2", size},   {"out.1", out},
                 {"weight.0", out}, {"weight.1", in}, {"kernel", kernel}};
    return f;
}

inline OpFeatures pointwise(const std::string& type, double channels, double size) {
    OpFeatures f;
    f.type = type;
    f.dtype = "float32";
    f.other_flops = channels * size * size;
    f.input_bytes = f.output_bytes = 4 * channels * size * size;
    f.numbers = {{"in.1", channels}, {"in.2", size}, {"out.1", channels}};
    return f;
}

inline OpFeatures reshape(double channels) {
    OpFeatures f;
    f.type = "Reshape";
    f.dtype = "float32";
    f.numbers = {{"in.1", channels}};
    return f;
}

inline double law(const OpFeatures& f) {
    double work = 2 * f.macs + f.other_flops;
    double factor = f.type == "Sigmoid" ? 4 : 1;
    if (f.type == "Conv")
        for (const auto& [name, value] : f.numbers)
            if (name == "out.1")
                factor = 1.3 * std::ceil(value / 16) * 16 / value;
    double moved = f.input_bytes + f.weight_bytes + f.output_bytes;
    return dispatch_ns + 1e9 * factor * std::max(work / flops, moved / bytes);
}

inline std::string key_of(const OpFeatures& f) {
    std::string key = f.type + " " + f.attributes;
    for (const auto& [name, value] : f.numbers)
        key += " " + name + "=" + std::to_string(static_cast<long>(value));
    return key;
}

// Normal, from the text: the same sample has the same noise wherever it is made.
inline double normal(const std::string& text, std::uint64_t seed) {
    auto words = philox(seed, stable_hash(text.data(), text.size()), 0);
    double radius = std::sqrt(-2 * std::log(1 - unit_double(words[0], words[1])));
    return radius * std::cos(6.283185307179586 * unit_double(words[2], words[3]));
}

inline OpSample measured(const OpFeatures& f, double noise, std::uint64_t seed = 1) {
    OpSample sample;
    sample.key = key_of(f);
    sample.features = f;
    sample.ns = law(f) * std::exp(noise * normal(sample.key, seed));
    sample.spread = 1.96 * noise;
    sample.watts = 20 + (f.type == "Conv" ? 10 : 0);
    return sample;
}

// Operators drawn at random, without the same twice.
inline std::vector<OpSample> machine(std::size_t count, double noise, std::uint64_t seed) {
    std::vector<OpSample> samples;
    std::vector<std::string> keys;
    for (std::uint64_t draw = 0; samples.size() < count; ++draw) {
        auto words = philox(seed, 7, draw);
        auto pick = [&](std::size_t word, double low, double high) {
            double unit = unit_double(words[word], words[word] * 2654435761u);
            return std::round(low * std::pow(high / low, unit));
        };
        OpFeatures f;
        switch (words[0] % 5) {
            case 0:
            case 1:
            case 2:
                f = conv(pick(1, 8, 256), pick(2, 8, 256), words[0] % 2 == 0 ? 3 : 1,
                         pick(3, 7, 56));
                break;
            case 3:
                f = pointwise(words[0] % 2 == 0 ? "Relu" : "Sigmoid", pick(1, 8, 512),
                              pick(2, 7, 112));
                break;
            default:
                f = words[0] % 3 == 0 ? reshape(pick(1, 8, 4096))
                                      : pointwise("Add", pick(1, 8, 512), pick(2, 7, 112));
        }
        OpSample sample = measured(f, noise, seed);
        if (std::find(keys.begin(), keys.end(), sample.key) != keys.end())
            continue;
        keys.push_back(sample.key);
        samples.push_back(std::move(sample));
    }
    return samples;
}

}  // namespace trocar::synthetic
