#include "trocar/difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <optional>

#include "trocar/error.h"
#include "util/corners.h"
#include "util/difference_axes.h"
#include "util/elements.h"
#include "util/pair_sums.h"
#include "util/rank_search.h"
#include "util/tensor_pair.h"
#include "util/text.h"

namespace trocar {

namespace {

using PairBlock = TensorPair::Block;

constexpr double relative_floor = 1e-3;  // of the rms

// Numbers by order of magnitude.
class Magnitudes {
public:
    // Of doubles from 0 on, by their bits: the exponent and four bits of the mantissa.
    static constexpr int double_shift = 48;
    static std::size_t bin_of_double(std::uint64_t bits) { return bits >> double_shift; }
    // Of integers: those below 64 alone, others by the highest bit and the five below it.
    static std::size_t bin_of_integer(std::uint64_t number) {
        const auto shift = static_cast<std::size_t>(std::bit_width(number | 63)) - 6;
        return shift * 32 + (number >> shift);
    }
    static constexpr std::size_t double_bins = std::size_t{0x7ff0} + 1;
    static constexpr std::size_t integer_bins = 64 + 58 * 32;
};

// The rank of a share of `count` numbers, from 1: ⌈share · count⌉.
std::uint64_t rank_of(std::size_t count, std::uint64_t percent) {
    return count / 100 * percent + (count % 100 * percent + 99) / 100;
}

// Powers of two, by which numbers are multiplied before they are squared.
struct Scales {
    double off = 1;
    double a = 1;
    double b = 1;
};

double scale_for(double top) {
    return top == 0 || std::isinf(top) || (top < 1e140 && top > 1e-140)
               ? 1
               : std::ldexp(1.0, -std::max(std::ilogb(top), -1022));
}

// One comparison under way.
class Comparison {
public:
    Comparison(const Value& a, const Value& b, const DifferenceOptions& options)
        : pair_(a, b), shape_(a.shape()), options_(options), bounds_(options.tolerance) {
        found_.count = pair_.count();
        const auto rms = statistics(a, {.spread = StatisticsOptions::Spread::none}).rms;
        floor_ = std::isfinite(rms) ? relative_floor * rms : 0;
        if (options_.detail) {
            offs_.resize(Magnitudes::double_bins);
            ulps_.resize(Magnitudes::integer_bins);
            corners_.emplace();
        }
    }

    Difference run() {
        each_block([&](PairBlock& block) {
            if (block.odd_count > 0) {
                note_odd(block);
            }
            const bool same = add(block).max_off == 0;
            if (pair_.has_ulps() && !same) {
                pair_.read_ulps(block);
                max_ulp_ = std::max(max_ulp_, *std::max_element(block.ulps.begin(),
                                                                block.ulps.begin() + block.count));
            }
            if (options_.detail && !same) {
                add_detail(block);
            } else if (options_.detail) {
                offs_[0] += block.count;
                ulps_[0] += block.count;
            }
        });
        found_.finite = found_.count - odd_;
        finish();
        if (options_.detail) {
            finish_detail();
        }
        return found_;
    }

private:
    void each_block(const std::function<void(PairBlock&)>& work) {
        for (std::size_t first = 0; first < found_.count; first += TensorPair::block_numbers) {
            pair_.read(first, std::min(TensorPair::block_numbers, found_.count - first), block_);
            work(block_);
        }
    }

    void note_odd(const PairBlock& block) {
        using Odd = TensorPair::Odd;
        odd_ += block.odd_count;
        for (std::size_t i = 0; i < block.count; ++i) {
            if (block.odd[i] == Odd::no || block.odd[i] == Odd::same) {
                continue;
            }
            const bool nan = block.odd[i] == Odd::nan;
            auto& first = nan ? found_.first_nan : found_.first_infinity;
            first = first.value_or((block.first + i) / pair_.per_element());
            worst_odd_ = worst_odd_.value_or(block.first + i);
            ++(nan ? found_.nan_mismatches : found_.infinity_mismatches);
            ++found_.mismatches;
        }
    }

    PairSums add(PairBlock& block) {
        const auto padded = (block.count + pair_lanes - 1) / pair_lanes * pair_lanes;
        for (auto i = block.count; i < padded; ++i) {
            block.a[i] = block.b[i] = block.off[i] = 0;
        }
        auto sums = sums_of_pairs(block.a.data(), block.b.data(), block.off.data(), padded, floor_,
                                  bounds_);
        sums.zeros -= padded - block.count;
        if (sums.max_off > sums_.max_off) {
            const auto at = std::find(block.off.begin(), block.off.end(), sums.max_off);
            worst_ = block.first + static_cast<std::size_t>(at - block.off.begin());
        }
        found_.mismatches += sums.beyond == sums.perhaps ? sums.beyond : mismatches(block);
        merge(sums);
        return sums;
    }

    std::uint64_t mismatches(const PairBlock& block) const {
        std::uint64_t count = 0;
        for (std::size_t i = 0; i < block.count; ++i) {
            count += bounds_.exceeded(std::abs(block.a[i]), block.off[i]) ? 1 : 0;
        }
        return count;
    }

    void merge(const PairSums& more) {
        sums_.zeros += more.zeros;
        sums_.off += more.off;
        sums_.rel += more.rel;
        sums_.squares += more.squares;
        sums_.squares_a += more.squares_a;
        sums_.squares_b += more.squares_b;
        sums_.products += more.products;
        sums_.max_off = std::max(sums_.max_off, more.max_off);
        sums_.max_rel = std::max(sums_.max_rel, more.max_rel);
        sums_.max_a = std::max(sums_.max_a, more.max_a);
        sums_.max_b = std::max(sums_.max_b, more.max_b);
    }

    void add_detail(const PairBlock& block) {
        for (std::size_t i = 0; i < block.count; ++i) {
            ++offs_[Magnitudes::bin_of_double(std::bit_cast<std::uint64_t>(block.off[i]))];
            corners_->add(std::abs(block.a[i]), block.off[i]);
        }
        for (std::size_t i = 0; i < block.count && pair_.has_ulps(); ++i) {
            ++ulps_[Magnitudes::bin_of_integer(block.ulps[i])];
        }
    }

    // Squares that are no doubles are made of smaller or larger numbers.
    Scales rescale() {
        const Scales scales{scale_for(sums_.max_off), scale_for(sums_.max_a),
                            scale_for(sums_.max_b)};
        if (scales.off == 1 && scales.a == 1 && scales.b == 1) {
            return scales;
        }
        sums_.off = sums_.squares = sums_.squares_a = sums_.squares_b = sums_.products = 0;
        each_block([&](const PairBlock& block) {
            for (std::size_t i = 0; i < block.count; ++i) {
                const double a = block.a[i] * scales.a;
                const double b = block.b[i] * scales.b;
                const double off = block.off[i] * scales.off;
                sums_.off += off;
                sums_.squares += off * off;
                sums_.squares_a += a * a;
                sums_.squares_b += b * b;
                sums_.products += a * b;
            }
        });
        return scales;
    }

    void finish() {
        note_worst();
        if (found_.finite == 0) {
            return;
        }
        const auto finite = static_cast<double>(found_.finite);
        if (pair_.has_ulps()) {
            found_.max_ulp = max_ulp_;
        }
        found_.max_abs = sums_.max_off;
        found_.max_rel = sums_.max_rel;
        found_.mean_rel = sums_.rel / finite;
        const auto scales = rescale();
        found_.mean_abs = sums_.off / finite / scales.off;
        const double rmse = std::sqrt(sums_.squares / finite);
        found_.rmse = rmse / scales.off;
        found_.mse = scales.off == 1 ? sums_.squares / finite : found_.rmse * found_.rmse;
        fill_ratios(rmse, scales);
        if (sums_.squares_a > 0 && sums_.squares_b > 0) {
            const double cosine =
                sums_.products / std::sqrt(sums_.squares_a) / std::sqrt(sums_.squares_b);
            found_.cosine = std::clamp(cosine, -1.0, 1.0);
        }
    }

    // `rmse` is scaled. Logarithms are taken apart: ratios of extremes are no doubles.
    void fill_ratios(double rmse, const Scales& scales) {
        if (sums_.max_off == 0) {
            found_.normalized_l2 = 0;
            found_.sqnr_db = found_.psnr_db = std::numeric_limits<double>::infinity();
            return;
        }
        const double apart = 20 * (std::log10(scales.off) - std::log10(scales.a));
        const double ratio = sums_.squares_a / sums_.squares;
        found_.normalized_l2 = std::sqrt(sums_.squares / sums_.squares_a) / scales.off * scales.a;
        found_.sqnr_db = 10 * std::log10(ratio) + apart;
        found_.psnr_db = 20 * (std::log10(sums_.max_a) - std::log10(rmse) + std::log10(scales.off));
    }

    void note_worst() {
        if (!worst_odd_ && sums_.max_off == 0) {
            return;
        }
        const auto at = worst_odd_.value_or(worst_);
        found_.worst = at / pair_.per_element();
        decode(pair_.dtype(), pair_.a(), at, std::span(&found_.worst_a, 1));
        decode(pair_.dtype(), pair_.b(), at, std::span(&found_.worst_b, 1));
    }

    void finish_detail() {
        found_.corners = corners_->finish();
        compare_rows(pair_, shape_, options_.top_k, found_);
        find_worst_channel(pair_, shape_, options_.tolerance, found_);
        if (found_.finite == 0) {
            return;
        }
        offs_[0] -= sums_.zeros;
        fill_histogram();
        search_ranks();
    }

    void fill_histogram() {
        found_.histogram[0] = sums_.zeros - odd_;
        for (std::size_t bin = 0; bin < offs_.size(); ++bin) {
            const auto exponent =
                static_cast<std::int64_t>(bin >> (52 - Magnitudes::double_shift)) - 1023;
            const auto place =
                std::clamp<std::int64_t>(exponent + 65, 1, Difference::histogram_bins - 1);
            found_.histogram[static_cast<std::size_t>(place)] += offs_[bin];
        }
    }

    // Where the number of a rank is, when `zeros` are before all that are in the bins.
    template <class Low>
    static std::optional<RankSearch> search(std::uint64_t rank, std::uint64_t zeros,
                                            const std::vector<std::uint64_t>& bins,
                                            const Low& low) {
        if (rank <= zeros) {
            return std::nullopt;
        }
        rank -= zeros;
        std::size_t bin = 0;
        while (bins[bin] < rank) {
            rank -= bins[bin++];
        }
        const auto [first, width] = low(bin);
        return RankSearch(rank, first, width, bins[bin]);
    }

    void search_ranks() {
        const auto low_double = [](std::size_t bin) {
            return std::pair(std::uint64_t{bin} << Magnitudes::double_shift,
                             Magnitudes::double_shift);
        };
        const auto low_integer = [](std::size_t bin) {
            const auto width = bin < 64 ? 0 : static_cast<int>((bin - 64) / 32) + 1;
            const auto top = bin < 64 ? bin : (bin - 64) % 32 + 32;
            return std::pair(std::uint64_t{top} << width, width);
        };
        const auto zeros = sums_.zeros - odd_;
        auto p50 = search(rank_of(found_.finite, 50), zeros, offs_, low_double);
        auto p99 = search(rank_of(found_.finite, 99), zeros, offs_, low_double);
        std::optional<RankSearch> ulp;
        if (pair_.has_ulps()) {
            const auto same = ulps_[0] - odd_;
            ulps_[0] = 0;
            ulp = search(rank_of(found_.finite, 99), same, ulps_, low_integer);
        }
        const auto open = [](const std::optional<RankSearch>& one) { return one && !one->found(); };
        while (open(p50) || open(p99) || open(ulp)) {
            pass(open(p50) ? &*p50 : nullptr, open(p99) ? &*p99 : nullptr,
                 open(ulp) ? &*ulp : nullptr);
        }
        const auto number = [](const std::optional<RankSearch>& one) {
            return one ? one->number() : 0;
        };
        found_.p50_abs = std::bit_cast<double>(number(p50));
        found_.p99_abs = std::bit_cast<double>(number(p99));
        if (pair_.has_ulps()) {
            found_.p99_ulp = number(ulp);
        }
    }

    void pass(RankSearch* p50, RankSearch* p99, RankSearch* ulp) {
        std::array<std::uint64_t, TensorPair::block_numbers> bits;
        each_block([&](PairBlock& block) {
            std::transform(block.off.begin(), block.off.begin() + block.count, bits.begin(),
                           [](double off) { return std::bit_cast<std::uint64_t>(off); });
            for (auto* search : {p50, p99}) {
                if (search != nullptr) {
                    search->add(std::span(bits).first(block.count));
                }
            }
            if (ulp != nullptr) {
                pair_.read_ulps(block);
                ulp->add(std::span(block.ulps).first(block.count));
            }
        });
        for (auto* search : {p50, p99, ulp}) {
            if (search != nullptr) {
                search->end_pass();
            }
        }
    }

    TensorPair pair_;
    Shape shape_;
    DifferenceOptions options_;
    Difference found_;
    PairBlock block_;
    double floor_ = 0;
    PairSums sums_;
    Bounds bounds_;
    std::size_t odd_ = 0;
    std::size_t worst_ = 0;
    std::optional<std::size_t> worst_odd_;
    std::uint64_t max_ulp_ = 0;
    std::vector<std::uint64_t> offs_;
    std::vector<std::uint64_t> ulps_;
    std::optional<CornerSearch> corners_;  // with detail
};

}  // namespace

Difference difference(const Value& a, const Value& b, const DifferenceOptions& options) {
    if (!has_statistics(a) || !has_statistics(b) || a.dtype() != b.dtype() ||
        a.shape() != b.shape()) {
        throw Error(Fault::usage, fmt::format("{} and {} cannot be compared number by number",
                                              value_text(a), value_text(b)));
    }
    auto found = Comparison(a, b, options).run();
    found.same_bits = std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin());
    return found;
}

Difference difference(const Value& a, const Value& b, const Tolerance& tolerance) {
    return difference(a, b, DifferenceOptions{.tolerance = tolerance, .detail = false});
}

double Difference::histogram_low(std::size_t bin) {
    return bin < 2 ? 0 : std::ldexp(1.0, static_cast<int>(bin) - 65);
}

std::string element_index(const Shape& shape, std::size_t place) {
    std::vector<std::size_t> index(shape.size());
    for (auto axis = shape.size(); axis-- > 0;) {
        const auto length = std::max<std::size_t>(static_cast<std::size_t>(shape[axis]), 1);
        index[axis] = place % length;
        place /= length;
    }
    return fmt::format("{}", join(index, ","));
}

}  // namespace trocar
