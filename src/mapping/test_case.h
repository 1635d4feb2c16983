#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mapping/syntax.h"
#include "trocar/model.h"
#include "trocar/value.h"

namespace trocar::mapping {

// One way to fill in the test of a rule.
struct TestCase {
    std::vector<std::size_t> picks;  // which alternative of each field
    std::string text;                // "padding SAME, x f32[1, 5, 5, 3]": what there is a choice of
};

// All of them, up to a number that is still tried in no time.
std::vector<TestCase> test_cases(const RuleFile& file, const RuleTest& test);

// The ops that the rule matches as a model, and numbers for its inputs.
struct TestModel {
    Model model;
    std::vector<NamedValue> inputs;
};
// Throws Error(input) where the test does not say enough.
TestModel test_model(const RuleFile& file, const Rule& rule, const RuleTest& test,
                     const TestCase& which, std::uint64_t seed);

}  // namespace trocar::mapping
