#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "trocar/engine.h"
#include "trocar/model.h"
#include "trocar/report.h"
#include "trocar/value.h"

#pragma GCC visibility push(default)
namespace trocar {

// What became of an op when its model was mapped to another dialect.
struct MappedOp {
    enum class State { mapped, impossible };
    State state = State::mapped;
    OpId op = OpId::none;  // of the source
    std::string type;
    std::string name;
    std::string rule;  // that mapped it
    std::string why;   // not
};

struct MapOptions {
    std::vector<std::filesystem::path> rules;  // rule files, asked before those of this build
    // Changes of layout are moved together, and those that cancel left out; activations go into the
    // ops before them, and ops between quantised tensors compute on integers.
    bool tidy = true;
};

struct Mapped {
    Model model;  // complete only where `complete`: else ops without a rule are left out
    std::vector<MappedOp> ops;  // of the source, in order
    std::size_t transposes_made = 0;
    std::size_t transposes_left = 0;
    std::size_t integers = 0;  // ops that compute on integers instead of between real numbers
    bool complete() const;
};

// A model in the words of another dialect: "onnx", "tflite". Ops remember where they come from, and
// tensors keep their names. Throws Error(unsupported) when there are no rules for the two dialects,
// Error(input) when a rule file is wrong.
Mapped map_model(const Model& model, const std::string& dialect, const MapOptions& options = {});

// Sets the element types and shapes of all tensors as they are in a run with these inputs.
void complete_types(Model& model, const std::shared_ptr<Engine>& engine,
                    const std::vector<NamedValue>& inputs);
bool has_all_types(const Graph& graph);

// What became of the ops, for a report. Sets its verdict to false when some cannot be mapped.
void report_mapping(const Mapped& mapped, const std::string& from, Report& report);

// The rule files of this build.
struct MappingInfo {
    std::string from;
    std::string to;
    std::vector<std::string> types;  // of source ops that have a rule
};
std::vector<MappingInfo> mappings();
// One rule, of this build or of a file.
struct RuleInfo {
    std::string name;
    std::vector<std::string> matches;  // types of source ops: those of each op of the pattern
    std::vector<std::string> makes;    // types of target ops, in the order of their names
    std::size_t tests = 0;
    std::string untested;  // why it has none
};
// Throws Error(unsupported) when there are none for the two dialects.
std::vector<RuleInfo> rule_infos(const std::string& from, const std::string& to,
                                 const std::vector<std::filesystem::path>& rules = {});
bool can_map(const std::string& from, const std::string& to);
// Must element types and shapes of all tensors be known?
bool needs_types(const std::string& from, const std::string& to);

// A rule tried on both sides: the ops it matches on an engine for the source's dialect, those it
// makes on one for the target's.
struct RuleCheck {
    enum class Outcome { passed, failed, untried };
    std::string rule;
    std::string what;  // "padding SAME, x f32[1, 5, 5, 3]"
    Outcome outcome = Outcome::failed;
    double difference = 0;  // largest, relative to the largest element
    std::string why;        // it failed, or could not be tried
};
struct RuleChecks {
    EngineInfo source;  // without a name where there is none for the dialect
    EngineInfo target;
    std::vector<RuleCheck> cases;
};
struct RuleCheckOptions {
    std::vector<std::filesystem::path> rules;
    std::string only;                 // the name of a rule; empty: all
    std::vector<std::string> search;  // folders in which engines are looked for
    std::uint64_t seed = 0;
    // Engines for either dialect, "NAME[:PATH]"; empty: one that takes it, PyTorch for aten where
    // it is there, ExecuTorch where rules map to aten.
    std::string source;
    std::string target;
};
RuleChecks check_rules(const std::string& from, const std::string& to,
                       const RuleCheckOptions& options);

}  // namespace trocar
#pragma GCC visibility pop
