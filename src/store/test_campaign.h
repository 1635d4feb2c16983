#pragma once

#include <fmt/format.h>

#include <vector>

#include "trocar/campaign_store.h"
#include "trocar/random.h"

namespace trocar::testing {

// A campaign that never was: what a trial does is drawn from its number.

inline CampaignHeader small_header() {
    CampaignHeader header;
    header.campaign = "model: digits.onnx\nseed: 7\nmonitors:\n  ranges: observe\n";
    header.seed = 7;
    header.model = "digits.onnx";
    header.model_sha256 = "aa11";
    header.data = "digits.npz";
    header.data_hash = "dd22";
    header.engine = "onnxruntime";
    header.engine_version = "1.31.1";
    header.view = "deployed";
    header.context = {{"host", "here"}, {"cpu", "some"}};
    return header;
}

inline std::vector<Stratum> small_strata() {
    return {{"weights / conv1", "weights", "conv1", -1, 4000, 60},
            {"weights / conv2", "weights", "conv2", -1, 8000, 60},
            {"activations / fc", "activations", "fc", -1, 2000, 60}};
}

inline FaultRecord fault_of_trial(std::uint64_t trial) {
    const auto stratum = static_cast<std::uint32_t>(trial % 3);
    const auto of = small_strata()[stratum];
    FaultRecord fault;
    fault.trial = trial;
    fault.stratum = stratum;
    fault.bit = static_cast<int>(philox(1, 0, trial)[0] % 32);
    fault.target = of.target;
    fault.layer = of.layer;
    fault.tensor = of.layer + ".weight";
    fault.effect = "flip";
    fault.text = fmt::format("{} [#{}] flip {}", fault.tensor, trial, fault.bit);
    fault.hash = stable_hash(fault.text.data(), fault.text.size());
    return fault;
}

// High bits do harm.
inline TrialResult result_of_trial(std::uint64_t trial, std::uint64_t input) {
    const auto words = philox(2, input, trial);
    const auto bit = fault_of_trial(trial).bit;
    const double harm = bit < 20 ? 0.02 : bit == 30 ? 0.9 : 0.3;
    const double drawn = unit_double(words[0], words[1]);
    TrialResult result;
    result.trial = trial;
    result.input = input;
    result.golden_top = static_cast<std::int64_t>(input % 10);
    result.faulty_top = result.golden_top;
    result.golden_correct = input % 8 != 7;
    result.outcome = drawn < 0.2 * harm ? Outcome::due
                     : drawn < harm     ? Outcome::sdc
                     : drawn < 0.7      ? Outcome::benign
                                        : Outcome::masked;
    if (result.outcome == Outcome::sdc) {
        result.faulty_top = (result.golden_top + 1) % 10;
        result.sdc1 = true;
        result.sdc5 = words[2] % 3 == 0;
        result.sdc10 = result.sdc20 = true;
    }
    if (result.outcome == Outcome::due) {
        result.faulty_top = -1;
        result.failure = "NaN, \"after\" conv";
    }
    result.detected = result.outcome <= Outcome::sdc && words[3] % 2 == 0;
    result.faulty_correct = result.outcome > Outcome::sdc && *result.golden_correct;
    if (result.outcome != Outcome::due) {
        result.max_abs = result.outcome == Outcome::masked ? 0 : drawn;
        result.sqnr_db = result.outcome == Outcome::masked ? std::numeric_limits<double>::infinity()
                                                           : 20 - drawn;
    }
    return result;
}

inline std::vector<LayerEffect> effects_of_trial(std::uint64_t trial, std::uint64_t input) {
    return {{trial, input, "a", "conv1", trial + 1, 0, 0.5},
            {trial, input, "b", "fc", 3, input % 2, TrialResult::none}};
}

inline GoldenInput golden_of(std::uint64_t input) {
    GoldenInput golden;
    golden.input = input;
    golden.name = fmt::format("{}.png", input);
    golden.label = static_cast<std::int64_t>(input % 8 == 7 ? 0 : input % 10);
    golden.top = static_cast<std::int64_t>(input % 10);
    golden.correct = input % 8 != 7;
    golden.outputs = {{"logits", DType::f32, {1, 2}, std::vector<std::byte>(8, std::byte(input))},
                      {"empty", DType::i64, {}, {}}};
    return golden;
}

// Appends what is missing of trials [first, last) with `inputs` inputs each.
inline void work(CampaignStore& store, std::uint64_t first, std::uint64_t last,
                 std::uint64_t inputs = 2) {
    const auto done = store.done(first, last);
    store.set_strata(small_strata());
    for (std::uint64_t input = 0; input < inputs; ++input) {
        const auto golden = golden_of(input);
        store.add_golden({&golden, 1});
    }
    for (auto trial = first; trial < last; ++trial) {
        const auto fault = fault_of_trial(trial);
        store.add_faults({&fault, 1});
        for (std::uint64_t input = 0; input < inputs; ++input) {
            if (!done.contains(trial, input)) {
                const auto result = result_of_trial(trial, input);
                store.append({&result, 1}, effects_of_trial(trial, input));
            }
        }
    }
    store.commit();
}

}  // namespace trocar::testing
