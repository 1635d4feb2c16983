#pragma once

#include <string>
#include <vector>

#include "trocar/command.h"
#include "trocar/inputs.h"
#include "trocar/op_plan.h"
#include "trocar/op_store.h"

namespace trocar::ops_tool_parts {

// What `measure` and `explain` share.
struct Options {
    std::vector<std::string> models;
    std::string db;
    std::string unit = "auto";
    std::vector<std::string> modes;
    double half_width = 0;  // percent; 0: not said
    double seconds = 0;     // likewise
    bool again = false;
    std::string energy = "auto";
    InputSpec inputs;
};
void declare(Args& args, Options& options);

struct Target {
    Model model;
    Inputs inputs;
    MeasureOptions how;
    OpModelFacts facts;  // without operators
    double until = 0;    // percent to be explained; 0: all operators are measured
};
Target prepare(const Options& options, const std::string& path, Context& context);
Target prepare(const Options& options, Model model, const std::string& name, Context& context);
// What a file says and the command line does not.
void apply(const OpPlan& plan, const Options& options, MeasureOptions& how);

Table summary_table(const std::vector<std::pair<std::string, MeasureSummary>>& summaries);

}  // namespace trocar::ops_tool_parts
