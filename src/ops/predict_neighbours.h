#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trocar/op_predict.h"

namespace trocar {

// Samples around an operator, by their places in what it was made from.
class OpNeighbours {
public:
    static constexpr std::size_t none = static_cast<std::size_t>(-1);

    OpNeighbours() = default;
    explicit OpNeighbours(const std::vector<OpSample>& samples);

    // Weights, which sum to 1, of samples with the same type, attributes and dtype that lie around
    // an operator. Between two samples that is the line from one to the other, in logs of sizes.
    struct Weights {
        std::vector<std::pair<std::size_t, double>> samples;
        double width = 0;  // how far they are from it
    };
    // Nothing when the operator is outside of their hull by more than a little. `skip` is left out.
    std::optional<Weights> around(const OpFeatures& features, std::size_t skip = none) const;

    // To the nearest sample, of its type where there are any; 1 is the median among the samples.
    double distance(const OpFeatures& features, std::size_t skip = none) const;

    // Samples of the same type, attributes aside.
    const std::vector<std::size_t>* of_type(const OpFeatures& features) const;
    double gap(std::size_t one, std::size_t other) const;  // between two samples, as distance()

private:
    struct Point {
        std::array<double, 4> totals{};  // logs of MACs and bytes
        std::vector<double> sizes;       // logs of all numbers, by name
        std::size_t attributes = none;   // equal for equal texts; none: not among the samples
        std::size_t dtype = none;
    };
    Point point(const OpFeatures& features) const;
    double apart(const Point& at, std::size_t sample) const;
    double nearest(const OpFeatures& features, std::size_t skip) const;

    std::vector<Point> points_;
    std::map<std::string, std::size_t> texts_;  // to a number that is quick to compare
    std::map<std::string, std::vector<std::size_t>> groups_;  // may be interpolated between
    std::map<std::string, std::vector<std::size_t>> types_;
    double unit_ = 1;
};

}  // namespace trocar
