#include "campaign/trial_blocks.h"

#include <algorithm>

#include "inject/universe.h"
#include "trocar/random.h"

namespace trocar::campaign {

TrialBlocks::TrialBlocks(std::span<const Stratum> strata)
    : listed_(strata.size() == 1 && strata[0].target == "listed") {
    for (const auto& stratum : strata) {
        if (stratum.planned > 0) {
            strata_.push_back({trials_, stratum.planned});
            trials_ += stratum.planned;
        }
    }
    count_ = (trials_ + size - 1) / size;
}

std::vector<std::uint64_t> TrialBlocks::numbers(std::uint64_t block) const {
    constexpr std::uint64_t list_key = 0x6c697374;
    // Trials of a stratum that are in the blocks before `before`.
    const auto upto = [&](const Range& range, std::uint64_t before) {
        const auto whole = range.trials / count_ * before;
        const auto rest = range.trials % count_ * before;
        return whole + (rest + count_ - 1) / count_;
    };
    std::vector<std::uint64_t> all;
    for (const auto& range : strata_) {
        const auto last = upto(range, block + 1);
        for (auto i = upto(range, block); i < last; ++i) {
            all.push_back(listed_ ? inject::permuted(i, trials_, list_key) : range.first + i);
        }
    }
    std::sort(all.begin(), all.end());
    return all;
}

std::vector<std::uint64_t> drawn_inputs(std::uint64_t seed, std::uint64_t trial,
                                        std::uint64_t wanted, std::uint64_t count) {
    const auto key = philox(seed, 0x696e707574, trial);
    std::vector<std::uint64_t> chosen;
    for (std::uint64_t i = 0; i < std::min(wanted, count); ++i) {
        chosen.push_back(
            wanted >= count ? i : inject::permuted(i, count, std::uint64_t{key[0]} << 32 | key[1]));
    }
    std::sort(chosen.begin(), chosen.end());
    return chosen;
}

}  // namespace trocar::campaign
