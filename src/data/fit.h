#pragma once

#include <string>
#include <string_view>

#include "data/source.h"
#include "trocar/tensor.h"

namespace trocar::data {

// An input of the model that samples are made for.
struct Target {
    std::string name;
    Type type;
};

// The steps that `preprocess` names, and the model's batch dimension and element type. `where`
// names the sample in messages. Throws Error(input) where the result does not fit.
Value fitted(const RawSample& sample, const Target& target, const Preprocess& preprocess,
             std::string_view where);

// One of several inputs, which are taken as they are.
Value fitted(const Value& value, const Target& target, std::int64_t batch_axis,
             std::string_view where);

// Does it name a step that changes values, apart from what `events` says?
bool changes_values(const Preprocess& preprocess);

}  // namespace trocar::data
