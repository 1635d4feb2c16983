#pragma once

#include <span>
#include <string>

#include "mapping/evaluate.h"

namespace trocar::mapping {

// What a function may ask about tensors. Throws Declined where it is not known.
struct Facts {
    Builder* builder = nullptr;  // nullptr: there are no tensors
    bool raw = false;

    Type type(const RuleValue& tensor) const;
    const Quantization* quantization(const RuleValue& tensor) const;
    const Constant* constant(const RuleValue& tensor) const;  // nullptr: it is none
    std::string shown(const RuleValue& tensor) const;         // its name in quotes
};

bool is_function(const std::string& name);
// Throws Declined, or Error(input) without a place.
RuleValue call(const std::string& name, std::span<const RuleValue> arguments, const Facts& facts);

}  // namespace trocar::mapping
