#include "ops/trees.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "trocar/random.h"

namespace trocar {
namespace {

constexpr std::size_t most_bins = 48;

// Bounds between bins: a value is in the first bin whose bound is not below it.
std::vector<double> bounds_of(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    std::vector<double> distinct = values;
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    std::vector<double> bounds;
    auto between = [](double low, double high) {
        // Half way from what is missing would be nowhere near the values.
        return low == TreeTable::missing ? std::nextafter(low, 0.0) : low + (high - low) / 2;
    };
    if (distinct.size() <= most_bins) {
        for (std::size_t i = 1; i < distinct.size(); ++i) {
            bounds.push_back(between(distinct[i - 1], distinct[i]));
        }
        return bounds;
    }
    for (std::size_t bin = 1; bin < most_bins; ++bin) {
        double value = values[bin * values.size() / most_bins];
        auto at = std::lower_bound(distinct.begin(), distinct.end(), value);
        if (at == distinct.begin()) {
            continue;
        }
        double bound = between(*(at - 1), *at);
        if (bounds.empty() || bound > bounds.back()) {
            bounds.push_back(bound);
        }
    }
    return bounds;
}

struct BinnedColumn {
    std::uint32_t column = 0;
    std::vector<double> bounds;
    std::vector<std::uint8_t> bins;  // of each row
};

// Columns that are the same for all rows tell nothing and are left out.
std::vector<BinnedColumn> binned(const TreeTable& table) {
    std::vector<BinnedColumn> result;
    std::vector<double> values(table.rows());
    for (std::size_t column = 0; column < table.columns; ++column) {
        for (std::size_t row = 0; row < values.size(); ++row) {
            values[row] = table.row(row)[column];
        }
        BinnedColumn made{static_cast<std::uint32_t>(column), bounds_of(values), {}};
        if (made.bounds.empty()) {
            continue;
        }
        made.bins.reserve(values.size());
        for (double value : values) {
            made.bins.push_back(static_cast<std::uint8_t>(
                std::lower_bound(made.bounds.begin(), made.bounds.end(), value) -
                made.bounds.begin()));
        }
        result.push_back(std::move(made));
    }
    return result;
}

double draw(std::uint64_t seed, std::uint64_t tree, std::uint64_t what) {
    auto words = philox(seed, tree, what);
    return unit_double(words[0], words[1]);
}

struct Sum {
    double total = 0;
    double count = 0;
};

struct Split {
    double gain = 0;
    const BinnedColumn* column = nullptr;
    std::size_t bin = 0;
};

}  // namespace

class TreeGrower {
public:
    TreeGrower(const TreeTable& table, const TreeOptions& options, BoostedTrees& trees)
        : options_(options), trees_(trees), columns_(binned(table)) {}

    void grow(int tree, const std::vector<double>& residuals) {
        auto at = static_cast<std::uint64_t>(tree);
        drawn_.clear();
        for (std::size_t i = 0; i < columns_.size(); ++i) {
            if (draw(options_.seed, at, i) < options_.column_share) {
                drawn_.push_back(&columns_[i]);
            }
        }
        std::vector<std::uint32_t> rows;
        for (std::size_t i = 0; i < residuals.size(); ++i) {
            if (draw(options_.seed, at, (std::uint64_t{1} << 32) + i) < options_.row_share) {
                rows.push_back(static_cast<std::uint32_t>(i));
            }
        }
        trees_.roots_.push_back(static_cast<std::uint32_t>(trees_.nodes_.size()));
        trees_.nodes_.emplace_back();
        grow_node(trees_.nodes_.size() - 1, std::move(rows), 0, residuals);
    }

private:
    double score(const Sum& sum) const {
        return sum.total * sum.total / (sum.count + options_.ridge);
    }

    Split best_split(const std::vector<std::uint32_t>& rows, const Sum& all,
                     const std::vector<double>& residuals) const {
        Split best;
        std::array<Sum, most_bins> bins;
        for (const BinnedColumn* column : drawn_) {
            std::size_t count = column->bounds.size() + 1;
            std::fill_n(bins.begin(), count, Sum{});
            const std::uint8_t* bin_of = column->bins.data();
            for (std::uint32_t row : rows) {
                Sum& bin = bins[bin_of[row]];
                bin.total += residuals[row];
                bin.count += 1;
            }
            Sum left;
            for (std::size_t bin = 0; bin + 1 < count; ++bin) {
                left.total += bins[bin].total;
                left.count += bins[bin].count;
                Sum right{all.total - left.total, all.count - left.count};
                if (left.count < options_.least || right.count < options_.least) {
                    continue;
                }
                double gain = score(left) + score(right) - score(all);
                if (gain > best.gain + 1e-12) {
                    best = {gain, column, bin};
                }
            }
        }
        return best;
    }

    void grow_node(std::size_t node, const std::vector<std::uint32_t>& rows, int depth,
                   const std::vector<double>& residuals) {
        Sum all;
        for (std::uint32_t row : rows) {
            all.total += residuals[row];
        }
        all.count = static_cast<double>(rows.size());
        Split split;
        if (depth < options_.depth && all.count >= 2 * options_.least) {
            split = best_split(rows, all, residuals);
        }
        if (split.column == nullptr) {
            trees_.nodes_[node].value = options_.rate * all.total / (all.count + options_.ridge);
            return;
        }
        std::size_t left = trees_.nodes_.size();
        trees_.nodes_.resize(left + 2);
        trees_.nodes_[node] = {split.column->column, static_cast<std::uint32_t>(left),
                               split.column->bounds[split.bin]};
        std::vector<std::uint32_t> right_rows;
        std::vector<std::uint32_t> left_rows;
        for (std::uint32_t row : rows) {
            (split.column->bins[row] <= split.bin ? left_rows : right_rows).push_back(row);
        }
        grow_node(left, std::move(left_rows), depth + 1, residuals);
        grow_node(left + 1, std::move(right_rows), depth + 1, residuals);
    }

    const TreeOptions& options_;
    BoostedTrees& trees_;
    std::vector<BinnedColumn> columns_;
    std::vector<const BinnedColumn*> drawn_;
};

BoostedTrees::BoostedTrees(const TreeTable& table, const std::vector<double>& targets,
                           const TreeOptions& options) {
    if (targets.empty()) {
        return;
    }
    base_ =
        std::accumulate(targets.begin(), targets.end(), 0.0) / static_cast<double>(targets.size());
    std::vector<double> residuals;
    for (double target : targets) {
        residuals.push_back(target - base_);
    }
    TreeGrower grower(table, options, *this);
    for (int tree = 0; tree < options.trees; ++tree) {
        grower.grow(tree, residuals);
        for (std::size_t row = 0; row < residuals.size(); ++row) {
            const double* values = table.row(row);
            std::uint32_t at = roots_.back();
            while (nodes_[at].left != 0) {
                at = nodes_[at].left + (values[nodes_[at].column] <= nodes_[at].value ? 0 : 1);
            }
            residuals[row] -= nodes_[at].value;
        }
    }
}

double BoostedTrees::predict(const double* row) const {
    double sum = base_;
    for (std::uint32_t root : roots_) {
        std::uint32_t at = root;
        while (nodes_[at].left != 0) {
            at = nodes_[at].left + (row[nodes_[at].column] <= nodes_[at].value ? 0 : 1);
        }
        sum += nodes_[at].value;
    }
    return sum;
}

}  // namespace trocar
