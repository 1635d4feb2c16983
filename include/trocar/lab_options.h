#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trocar/command.h"
#include "trocar/compare.h"
#include "trocar/inputs.h"

#pragma GCC visibility push(default)
namespace trocar {

// Options that tools which run parts of a model share.

// How a model is parted.
struct PartArguments {
    std::string by = "op";
    std::string cut;
    std::int64_t depth = 0;
};
void declare_part_options(Args& args, PartArguments& arguments);
Chain make_chain(const Model& model, const PartArguments& arguments);
PartsOptions parts_options(const Model& model, const PartArguments& arguments);

// Values to run it with: several sets where they are generated.
struct SetArguments {
    InputSpec inputs;
    std::int64_t samples = 1;
};
void declare_set_options(Args& args, SetArguments& arguments);
// `notes` tell what was chosen.
std::vector<std::vector<NamedValue>> make_sets(const Model& model, const SetArguments& arguments,
                                               std::uint64_t seed, std::vector<std::string>& notes);

// When tensors count as the same.
struct JudgeArguments {
    double rtol = -1;
    double atol = -1;
    std::vector<std::string> rules;
    double warn = -1;
};
void declare_judge_options(Args& args, JudgeArguments& arguments);
Judging judging_of(const JudgeArguments& arguments);  // throws Error(usage)

// Limits for what runs a part.
struct LimitArguments {
    double seconds = 0;
    std::string memory;  // "2GiB"
};
void declare_limit_options(Args& args, LimitArguments& arguments);
void set_limits(SideOptions& side, const LimitArguments& arguments);  // throws Error(usage)

}  // namespace trocar
#pragma GCC visibility pop
