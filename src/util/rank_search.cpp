#include "util/rank_search.h"

#include <algorithm>

namespace trocar {

RankSearch::RankSearch(std::uint64_t rank, std::uint64_t low, int width, std::uint64_t count)
    : rank_(rank), low_(low), width_(width), count_(count) {
    begin_pass();
}

void RankSearch::begin_pass() {
    found_ = width_ == 0;
    if (found_) {
        return;
    }
    if (count_ <= most_kept) {
        counts_.clear();
        kept_.reserve(count_);
    } else {
        counts_.assign(std::size_t{1} << std::min(width_, step_bits), 0);
    }
}

void RankSearch::add(std::span<const std::uint64_t> numbers) {
    const auto last = width_ == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width_) - 1;
    const int shift = std::max(0, width_ - step_bits);
    if (counts_.empty()) {
        const auto low = std::max(low_, std::uint64_t{1});
        const auto span = last - (low - low_);
        auto end = kept_.size();
        kept_.resize(end + numbers.size());
        for (const auto number : numbers) {
            kept_[end] = number;
            end += number - low <= span ? 1 : 0;  // without a branch, which none could foretell
        }
        kept_.resize(end);
        return;
    }
    for (const auto number : numbers) {
        if (number - low_ <= last && number != 0) {
            ++counts_[(number - low_) >> shift];
        }
    }
}

void RankSearch::end_pass() {
    if (counts_.empty()) {
        const auto at = kept_.begin() + static_cast<std::ptrdiff_t>(rank_ - 1);
        std::nth_element(kept_.begin(), at, kept_.end());
        low_ = *at;
        found_ = true;
        kept_ = {};
        return;
    }
    std::size_t part = 0;
    while (counts_[part] < rank_) {
        rank_ -= counts_[part++];
    }
    const int shift = std::max(0, width_ - step_bits);
    low_ += std::uint64_t{part} << shift;
    width_ = shift;
    count_ = counts_[part];
    begin_pass();
}

}  // namespace trocar
