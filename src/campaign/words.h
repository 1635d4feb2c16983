#pragma once

#include <array>
#include <string>

#include "trocar/campaign_file.h"

namespace trocar::campaign {

// Steps of preprocessing, in the order in which they are taken.
inline constexpr std::array preprocess_keys{
    "from",   "color", "resize", "filter", "crop",   "scale",     "mean",  "std",
    "layout", "steps", "split",  "values", "sensor", "downscale", "batch", "command"};

// The words of a population, as the texts of faults have them. Throw Error(usage).
Elements parse_elements(const std::string& text);  // "[0,:,2:4]", also without the brackets
Effect parse_effect(const std::string& text);      // "flip", "set 0", "random -1 1", "rate 1e-6"
Duration parse_duration(const std::string& text);  // "permanent", "transient 5", "every 3 from 1"
bool check_bits(const std::string& text);          // see parse_bits; for some type or other

std::string effect_text(const Effect& effect);
std::string duration_text(const Duration& duration);

}  // namespace trocar::campaign
