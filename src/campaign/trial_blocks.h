#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trocar/campaign.h"

namespace trocar::campaign {

// The order in which the trials of a campaign are run. Numbers of trials go stratum by stratum; a
// block has trials of every stratum, in proportion to what is planned for each (rounded up from
// the first block on, so that each stratum is in the first one), and they are a random sample of
// the stratum. So all blocks up to any one are a sample of all faults. Which trials are in a block
// depends on the planned trials of the strata alone: a store is read with the same blocks.
class TrialBlocks {
public:
    static constexpr std::uint64_t size = 256;  // trials of a block, about

    explicit TrialBlocks(std::span<const Stratum> strata);

    std::uint64_t trials() const { return trials_; }
    std::uint64_t count() const { return count_; }
    // The numbers of the trials of a block, ascending.
    std::vector<std::uint64_t> numbers(std::uint64_t block) const;

private:
    struct Range {
        std::uint64_t first;
        std::uint64_t trials;
    };
    std::vector<Range> strata_;  // those with trials
    std::uint64_t trials_ = 0;
    std::uint64_t count_ = 0;
    bool listed_ = false;  // given faults are in an order of the user's: it is shuffled
};

// The inputs that a trial is run with, `wanted` of `count`, ascending.
std::vector<std::uint64_t> drawn_inputs(std::uint64_t seed, std::uint64_t trial,
                                        std::uint64_t wanted, std::uint64_t count);

}  // namespace trocar::campaign
