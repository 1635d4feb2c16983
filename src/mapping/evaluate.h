#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "mapping/match.h"
#include "mapping/syntax.h"
#include "mapping/values.h"
#include "trocar/graph.h"

namespace trocar::mapping {

// A rule does not apply: why, in a sentence.
struct Declined {
    std::string why;
};

// How the integers of a tensor stand for real numbers; nullptr: they do not.
const Quantization* quantization_of(const Tensor& tensor);

// What a rule builds in: the target graph, with what stands there for tensors of the source.
class Builder {
public:
    Builder(const Graph& source, Graph& target, const RuleFile& rules)
        : source_(source), target_(target), own_(rules), rules_(&rules) {}

    const Graph& source() const { return source_; }
    Graph& target() { return target_; }
    // The file of the rule that is at work, and that of this build, whose definitions all may use.
    const RuleFile& rules() const { return *rules_; }
    const RuleFile& own() const { return own_; }
    void use(const RuleFile& rules) { rules_ = &rules; }

    // What stands for a tensor of the source; real numbers for a quantised one, unless `raw`.
    TensorId tensor(TensorId source, bool raw);
    void set(TensorId source, TensorId made) { made_[source] = made; }
    bool has(TensorId source) const { return made_.contains(source); }

    TensorId constant(const Constant& value, const std::string& stem);
    // Appends an op with `count` new outputs.
    std::vector<TensorId> append(OpSpec spec, std::size_t count);
    std::string fresh_name(const std::string& stem) const;
    void rename(OpId op, const std::string& name);  // unless another has the name

    // From here on everything that is made can be taken back.
    void begin(const Match& match);
    void roll_back();
    const std::vector<OpId>& made_ops() const { return ops_; }

    // The integers that stand for a tensor of real numbers, as the source tensor has them.
    TensorId quantized(TensorId source, TensorId real);

private:
    TensorId dequantized(TensorId source);
    std::string unused(const std::string& stem);  // for an op
    void add_quantization(OpSpec& spec, const Tensor& tensor, const Quantization& how);

    const Graph& source_;
    Graph& target_;
    const RuleFile& own_;
    const RuleFile* rules_;
    std::set<std::string> op_names_;
    std::map<TensorId, TensorId> made_;
    std::map<TensorId, TensorId> real_;  // of quantised tensors
    // Since `begin`.
    const Match* match_ = nullptr;
    std::vector<OpId> ops_;
    std::vector<TensorId> constants_;
    std::vector<TensorId> sources_;     // constants of the source that were taken over
    std::vector<TensorId> real_since_;  // keys of real_
};

// Runs the body of a rule on a match. Returns what its outputs are, in their order. Throws
// Declined, or Error(input) with file and line where the rule itself is wrong.
std::vector<RuleValue> apply(const Rule& rule, const Match& match, Builder& builder);

// The value of an expression without tensors, for tests of rules.
RuleValue evaluate_plain(const Expression& expression, const RuleFile& rules);

}  // namespace trocar::mapping
