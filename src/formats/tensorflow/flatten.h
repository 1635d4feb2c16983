#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/tensorflow/library.h"

namespace trocar::tensorflow {

// Puts the bodies of functions in the place of their calls, and constants in the place of the ops
// that read a variable whose value is known. A call that would go on without end, or does not fit
// its function, stays an op.
class Flattener {
public:
    // `budget`: bytes that all copies may take together.
    Flattener(Library& library, std::size_t budget) : library_(library), budget_(budget) {}

    // `all`: with the ops whose results nobody reads.
    Graph flatten(const Graph& source, bool all);
    // The functions that ops of a graph name otherwise, as loops and choices do, and those that
    // these name in turn. Flattened too.
    std::vector<std::shared_ptr<Function>> functions(const Graph& graph);

    std::size_t calls() const { return calls_; }

private:
    using Map = std::vector<TensorId>;  // from tensors of a body to those of the new graph

    void expand(const Graph& source, Map& map, const std::string& scope, int depth);
    const Function* called(const Op& op, int depth);
    bool expand_call(const Graph& source, const Op& op, const Function& function, Map& map,
                     const std::string& scope, int depth);
    void copy(const Graph& source, const Op& op, Map& map, const std::string& scope);
    TensorId here(const Graph& source, TensorId tensor, Map& map, const std::string& scope);
    std::string free_name(const std::string& name) const;
    bool spend(std::size_t bytes);

    Library& library_;
    std::size_t budget_;
    std::size_t calls_ = 0;
    Graph* made_ = nullptr;
    std::vector<const Function*> open_;  // whose bodies are being put in
};

}  // namespace trocar::tensorflow
