#pragma once

#include <string>
#include <vector>

#include "campaign/tally.h"

namespace trocar::campaign {

struct Measure {
    std::string key;
    std::string title;
    Count what;
    std::string meaning;
};

// What is counted, from bad to good, and what each means with the decision of the campaign; without
// one there is no SDC.
std::vector<Measure> measures_of(const Tally& tally);

// "SDC-1" where that is another first choice, "SDC" with other decisions.
std::string sdc_title(const Tally& tally);
bool has_sdc(const Tally& tally);
// Were several positions decided in some result?
bool has_positions(const Tally& tally);

}  // namespace trocar::campaign
