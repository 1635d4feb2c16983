#pragma once

#include <string>
#include <vector>

#include "inject/circuit.h"
#include "inject/lane.h"

namespace trocar::inject {

// The outputs of the model in a run with faults, or the golden ones; plain.
std::vector<NamedValue> outputs_of(const Circuit& circuit, const Golden& golden, const Lane* lane);

bool same_bits(const std::vector<NamedValue>& a, const std::vector<NamedValue>& b);
// Which output has other bits, and where; empty where all are the same. As many of both.
std::string difference_text(const std::vector<NamedValue>& expected,
                            const std::vector<NamedValue>& found);
bool has_nan(const std::vector<NamedValue>& outputs);

// What a lane does, for finding lanes that do the same; empty: too much to say.
std::string key_of(const Lane& lane);

}  // namespace trocar::inject
