#include "util/elements.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "prune/weights.h"
#include "trocar/random.h"

namespace trocar::pruning {

namespace {

constexpr std::size_t piece = 4096;
constexpr int step_bits = 16;

// How much an element counts for: those with the smallest score go first.
class Scores {
public:
    Scores(const Graph& graph, const Weight& weight, const PruneOptions& options)
        : constant_(value_at(graph, weight.place)), random_(options.method == PruneMethod::random) {
        if (constant_.is_sparse()) {
            constant_ = densify(constant_);
        }
        if (random_) {
            const auto& name = graph.tensor(weight.place.tensor).name;
            key_ = options.seed ^ stable_hash(name.data(), name.size());
        }
    }

    std::size_t size() const { return constant_.element_count(); }

    // `work(first element, scores)` for one piece after the other.
    template <class Work>
    void each_piece(const Work& work) const {
        std::array<double, piece> numbers{};
        std::array<std::uint64_t, piece> scores{};
        for (std::size_t at = 0; at < size(); at += piece) {
            const auto some = std::min(piece, size() - at);
            if (random_) {
                for (std::size_t i = 0; i < some; ++i) {
                    const auto words = philox(key_, 0, at + i);
                    scores[i] = std::uint64_t{words[0]} << 32 | words[1];
                }
            } else {
                decode(constant_.dtype(), constant_.bytes(), at, std::span(numbers).first(some));
                for (std::size_t i = 0; i < some; ++i) {
                    // Of numbers from 0 on, the bits have the same order; NaN comes last.
                    scores[i] = std::bit_cast<std::uint64_t>(std::abs(numbers[i]));
                }
            }
            work(at, std::span<const std::uint64_t>(scores).first(some));
        }
    }

private:
    Constant constant_;
    bool random_;
    std::uint64_t key_ = 0;
};

// The score at which the `count` smallest end, and how many of those with just this score are among
// them.
struct Limit {
    std::uint64_t score = 0;
    std::uint64_t among = 0;
};
Limit limit_of(std::span<const Scores> all, std::uint64_t count) {
    Limit limit{0, count};
    for (int shift = 64 - step_bits; shift >= 0; shift -= step_bits) {
        std::vector<std::uint64_t> counts(std::size_t{1} << step_bits, 0);
        const auto above = shift + step_bits == 64 ? 0 : limit.score >> (shift + step_bits);
        for (const auto& scores : all) {
            scores.each_piece([&](std::size_t, std::span<const std::uint64_t> some) {
                for (const auto score : some) {
                    if ((shift + step_bits == 64 ? 0 : score >> (shift + step_bits)) == above) {
                        ++counts[score >> shift & (counts.size() - 1)];
                    }
                }
            });
        }
        std::size_t at = 0;
        while (at + 1 < counts.size() && counts[at] < limit.among) {
            limit.among -= counts[at++];
        }
        limit.score |= std::uint64_t{at} << shift;
    }
    return limit;
}

// Zeroes the smallest `count` of all; of equal ones the first.
void cut_smallest(std::span<const Scores> all, std::span<std::vector<std::uint8_t>> masks,
                  std::uint64_t count) {
    const auto limit = limit_of(all, count);
    auto left = limit.among;
    for (std::size_t i = 0; i < all.size(); ++i) {
        auto& mask = masks[i];
        mask.assign(all[i].size(), 1);
        if (count == 0) {
            continue;
        }
        all[i].each_piece([&](std::size_t at, std::span<const std::uint64_t> scores) {
            for (std::size_t k = 0; k < scores.size(); ++k) {
                const bool equal = scores[k] == limit.score && left > 0;
                left -= equal ? 1 : 0;
                mask[at + k] = equal || scores[k] < limit.score ? 0 : 1;
            }
        });
    }
}

std::uint64_t share_of(double share, std::uint64_t count) {
    return static_cast<std::uint64_t>(std::llround(share * static_cast<double>(count)));
}

// Of every M neighbours along an axis the N largest stay.
std::vector<std::uint8_t> pattern_mask(const Constant& constant, std::size_t axis,
                                       const PruneOptions& options) {
    const auto numbers = numbers_of(constant);
    const auto& shape = constant.shape();
    const auto inner = element_count(std::span(shape).subspan(axis + 1));
    const auto length = static_cast<std::size_t>(shape[axis]);
    const auto group = static_cast<std::size_t>(options.pattern_of);
    const auto drop = group - static_cast<std::size_t>(options.pattern_kept);
    std::vector<std::uint8_t> mask(numbers.size(), 1);
    std::vector<std::size_t> places(group);
    const auto rows = numbers.size() / std::max<std::size_t>(length * inner, 1);
    for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t column = 0; column < inner; ++column) {
            for (std::size_t first = 0; first < length; first += group) {
                for (std::size_t i = 0; i < group; ++i) {
                    places[i] = (row * length + first + i) * inner + column;
                }
                std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
                    return std::abs(numbers[a]) < std::abs(numbers[b]);
                });
                for (std::size_t i = 0; i < drop; ++i) {
                    mask[places[i]] = 0;
                }
            }
        }
    }
    return mask;
}

}  // namespace

std::vector<std::vector<std::uint8_t>> element_masks(const Graph& graph,
                                                     std::vector<Weight>& weights,
                                                     const PruneOptions& options) {
    std::vector<std::vector<std::uint8_t>> masks(weights.size());
    // A constant that several ops read is pruned once.
    std::map<TensorId, std::size_t> first;
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        auto& weight = weights[i];
        if (options.method == PruneMethod::pattern && weight.why.empty()) {
            const auto& shape = value_at(graph, weight.place).shape();
            if (!weight.axes) {
                weight.why = "it does not sum over an axis of its weights";
            } else if (shape[weight.axes->reduced] % options.pattern_of != 0) {
                weight.why = fmt::format("the axis it sums over has {}, no multiple of {}",
                                         shape[weight.axes->reduced], options.pattern_of);
            }
        }
        if (weight.why.empty() && first.emplace(weight.place.tensor, i).second) {
            chosen.push_back(i);
        }
    }
    if (options.method == PruneMethod::pattern) {
        for (const auto i : chosen) {
            const auto& constant = value_at(graph, weights[i].place);
            masks[i] = pattern_mask(constant, weights[i].axes->reduced, options);
        }
    } else {
        std::vector<Scores> scores;
        std::uint64_t elements = 0;
        for (const auto i : chosen) {
            scores.emplace_back(graph, weights[i], options);
            elements += scores.back().size();
        }
        std::vector<std::vector<std::uint8_t>> made(chosen.size());
        if (options.global) {
            cut_smallest(scores, made, share_of(options.sparsity, elements));
        } else {
            for (std::size_t i = 0; i < chosen.size(); ++i) {
                cut_smallest(std::span(scores).subspan(i, 1), std::span(made).subspan(i, 1),
                             share_of(options.sparsity, scores[i].size()));
            }
        }
        for (std::size_t i = 0; i < chosen.size(); ++i) {
            masks[chosen[i]] = std::move(made[i]);
        }
    }
    for (std::size_t i = 0; i < weights.size(); ++i) {
        if (weights[i].why.empty()) {
            const auto at = first.at(weights[i].place.tensor);
            if (at != i) {
                masks[i] = masks[at];
            }
        }
    }
    return masks;
}

}  // namespace trocar::pruning
