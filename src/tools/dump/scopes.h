#pragma once

#include <map>
#include <string>

#include "trocar/model.h"

namespace trocar::dump {

// Names for the graphs of a model: where a body stands.
class Scopes {
public:
    explicit Scopes(const Model& model);
    // Empty for the model's own graph. The engine's view and inlined functions are graphs of their
    // own, known by name only.
    std::string of(const Graph& graph) const;

private:
    void walk(const Graph& graph, const std::string& scope);
    std::map<const Graph*, std::string> names_;
    std::string main_;
};

}  // namespace trocar::dump
