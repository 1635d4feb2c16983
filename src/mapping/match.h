#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mapping/syntax.h"
#include "mapping/values.h"
#include "trocar/graph.h"

namespace trocar::mapping {

// Ops of the source that a rule speaks of, and what its names stand for.
struct Match {
    std::vector<OpId> ops;  // one for each op of the rule; the last one is the anchor
    std::map<std::string, RuleValue> names;
    std::map<std::string, OpId> makers;  // of outputs
};

// "add", "aten.add.Tensor", "com.microsoft.Gelu": the type of an op as rules write it, for an op of
// a model in this dialect.
std::string rule_type(const Op& op, const std::string& dialect);
void set_type(OpSpec& op, const std::string& rule_type, const std::string& dialect);

// The rule's ops that end in `anchor`. Nothing where they are not there; `why` then says what is
// missing, when the anchor itself would do.
std::optional<Match> find_match(const Rule& rule, const Graph& graph, const std::string& dialect,
                                OpId anchor, std::string& why);

}  // namespace trocar::mapping
