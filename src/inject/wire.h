#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "inject/injector.h"

namespace trocar::inject {

// What an injector takes and gives, as bytes between a process and the child that was forked from
// it. Those that take bytes throw Error(engine) when they make no sense: a child that is about to
// crash may send anything.

std::string packed(const Share& share);
Share unpacked_share(std::string_view bytes);

struct Results {
    std::vector<TrialResult> results;
    std::vector<LayerEffect> effects;
};
std::string packed(const std::vector<TrialResult>& results,
                   const std::vector<LayerEffect>& effects);
Results unpacked_results(std::string_view bytes);

// Without the outputs, which travel as values.
std::string packed(const GoldenResult& golden);
GoldenResult unpacked_golden(std::string_view bytes);

}  // namespace trocar::inject
