#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace trocar {

// What is known of an operator before it has run.
struct OpFeatures {
    std::string type;        // "Conv"; "Conv + Relu" of a fused one
    std::string attributes;  // canonical text of all attributes; equal text: equal attributes
    std::string dtype;       // of its first input
    double macs = 0;
    double other_flops = 0;
    double input_bytes = 0;
    double weight_bytes = 0;
    double output_bytes = 0;
    // What else may tell, by name: sizes of the first input, weight and output ("in.1", "weight.0",
    // "out.2"…), and attributes that are numbers ("group", "stride", "kernel").
    std::vector<std::pair<std::string, double>> numbers;
};

// One that was measured, on one machine, engine and setting.
struct OpSample {
    std::string key;  // of its configuration
    OpFeatures features;
    double ns = 0;      // of one call
    double spread = 0;  // half width of its 95 % interval, as a share of ns
    double watts = 0;   // 0: not known
};

struct OpPrediction {
    enum class How { exact, interpolated, model } how = How::model;
    double ns = 0;
    double low = 0;  // 90 % interval
    double high = 0;
    double watts = 0;  // 0: not known
    double distance =
        0;             // from what it was learned from: 1 is as far as samples are from each other
    bool far = false;  // beyond what was learned: better measure it
};

}  // namespace trocar
