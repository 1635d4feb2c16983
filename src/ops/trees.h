#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trocar {

// Rows of numbers, one column per feature. What is missing is `missing`, which sorts before all
// else.
struct TreeTable {
    static constexpr double missing = -1e30;
    std::size_t columns = 0;
    std::vector<double> values;  // row after row

    std::size_t rows() const { return columns == 0 ? 0 : values.size() / columns; }
    const double* row(std::size_t at) const { return values.data() + at * columns; }
};

struct TreeOptions {
    int trees = 200;
    int depth = 4;
    double rate = 0.1;
    double least = 3;        // rows in a leaf
    double ridge = 1;        // rows of residual zero that each leaf is mixed with
    double row_share = 0.7;  // drawn for a tree
    double column_share = 0.5;
    std::uint64_t seed = 1;
};

// Gradient boosting of regression trees on squared errors, with histograms. The same rows in the
// same order give the same trees.
class BoostedTrees {
public:
    BoostedTrees() = default;
    BoostedTrees(const TreeTable& table, const std::vector<double>& targets,
                 const TreeOptions& options = {});

    double predict(const double* row) const;  // 0 when made from no rows

private:
    friend class TreeGrower;
    struct Node {
        std::uint32_t column = 0;
        std::uint32_t left = 0;  // the right one follows it; 0: a leaf
        double value = 0;        // at most this: left; of a leaf its answer
    };
    double base_ = 0;
    std::vector<Node> nodes_;
    std::vector<std::uint32_t> roots_;
};

}  // namespace trocar
