#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trocar/difference.h"
#include "trocar/parts.h"
#include "trocar/side.h"
#include "trocar/value.h"

#pragma GCC visibility push(default)
namespace trocar {

// From good to bad. Beyond the tolerance by at most Judging::warn is `warn`.
enum class Verdict { pass, warn, fail, incomparable };
const char* name(Verdict verdict);  // "PASS"

// A tolerance for tensors of layers whose type, name or module, or whose own name matches.
struct ToleranceRule {
    std::string glob;
    Tolerance tolerance;
};
// "Softmax=1e-3,1e-6": rtol, then atol (0 where left out). Throws Error(usage).
ToleranceRule parse_tolerance_rule(std::string_view text);

struct Judging {
    // For all tensors; where neither is given, `default_tolerance` says.
    std::optional<double> rtol = {};
    std::optional<double> atol = {};
    std::vector<ToleranceRule> rules = {};  // the last one that matches
    double warn = 8;
};

// What is expected of engines that compute alike but sum in another order: rtol is eight steps of
// the type times the root of the length of sums, atol the same share of the reference's rms.
// Quantised types: one step. Other integers: none.
Tolerance default_tolerance(DType dtype, double reduction_length, double rms);

// How many numbers are summed up for one of the part's outputs, at most.
double reduction_length(const Chain& chain, const Part& part, std::span<const Value> inputs);

// One tensor of a layer on one side, against the reference.
struct TensorComparison {
    std::string tensor;
    Type reference;
    Type found;
    std::optional<Difference> difference;  // absent: no numbers of one type and shape
    Tolerance by_default;                  // as `default_tolerance` says
    // Elements are compared in row-major order of the model's axes. Where they do not agree so, but
    // do in another order of axes: which; a sentence.
    std::string layout;
    // What was judged.
    Verdict verdict = Verdict::incomparable;
    Tolerance tolerance;
    double factor = 0;   // by which the tolerance must be multiplied to pass
    std::string reason;  // unless it passes
};

// A part of the model, as a report speaks of it.
struct Layer {
    std::size_t number = 0;  // among all layers of the model
    std::string name;
    std::string type;
    std::string module;
    std::vector<std::string> ops;
};

// A layer on one side: fed the reference's values (isolated), or those that the side itself
// computed (cumulative).
struct LayerComparison {
    std::size_t layer = 0;  // its place in Comparison::layers
    std::size_t side = 0;   // from 1 on; 0 is the reference
    std::size_t set = 0;    // of inputs
    bool cumulative = false;
    RunEnd end = RunEnd::done;
    std::string reason;  // unless done
    double seconds = 0;
    double reference_seconds = 0;
    std::vector<TensorComparison> tensors;
    Verdict verdict = Verdict::incomparable;  // the worst of its tensors
};

struct Comparison {
    std::vector<std::string> sides;  // labels; the first is the reference
    std::vector<Layer> layers;
    std::vector<LayerComparison> results;  // by set, layer, side; isolated before cumulative
    std::vector<std::string> notes;
    bool complete = false;
};

struct CompareOptions {
    Judging judging;
    bool isolated = true;
    bool cumulative = true;
    // Called with each result; what it returns false for is the last one.
    std::function<bool(const LayerComparison&)> on_result = {};
    // Called before it, where the layer ran on both sides, with the values of that run.
    std::function<void(const LayerComparison&, std::span<const Value> inputs,
                       std::span<const Value> reference, std::span<const Value> found)>
        on_values = {};
    std::function<void(std::size_t done, std::size_t total)> progress = {};
};

// Runs all parts, one after the other, on all sides; at any time only the tensors that are still
// read are kept. Sets of inputs by name.
Comparison compare(const Chain& chain, const std::vector<Part>& parts, std::vector<Side>& sides,
                   const std::vector<std::vector<NamedValue>>& sets, const CompareOptions& options);

// The tensors of one layer, judged.
LayerComparison compare_outputs(const Chain& chain, const Part& part, std::span<const Value> inputs,
                                std::span<const Value> reference, std::span<const Value> found);

// Judges again what was measured.
void judge(Comparison& comparison, const Judging& judging);
void judge(LayerComparison& result, const Layer& layer, const Judging& judging);
Layer describe_layer(const Chain& chain, const Part& part, std::size_t number);

// The share of the reference that the error is: of the worst tensor; NaN where none was compared.
double relative_error(const LayerComparison& result);

// All that was measured, for judging again later.
std::string to_json(const Comparison& comparison);
Comparison comparison_from_json(std::string_view text);  // throws Error(input)

}  // namespace trocar
#pragma GCC visibility pop
