#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "trocar/model.h"
#include "trocar/selector.h"
#include "trocar/session.h"
#include "trocar/value.h"

#pragma GCC visibility push(default)
namespace trocar {

// Neighbours in a Chain: a convex part of a model that can stand alone.
struct Part {
    std::size_t first = 0;  // places in the chain, both included
    std::size_t last = 0;
    std::vector<OpId> ops;
    std::vector<TensorId> inputs;   // from the model's inputs or earlier ops; no constants
    std::vector<TensorId> outputs;  // read by later ops, or outputs of the model
    std::vector<TensorId> dead;     // values nobody reads after this part
    std::string name;               // of the op, or of the module
    std::string type;               // of the op; "Conv…Relu" of several
    std::string module;             // that all its ops are in; may be empty
};

// The ops of a model one after the other, without those that only pass constants on. Any run of
// neighbours is convex, as the order is topological. Keeps the model by reference.
class Chain {
public:
    enum class Order { graph, modules };  // modules: ops of a module stand together where they can
    explicit Chain(const Model& model, Order order = Order::graph, std::size_t module_depth = 0);

    const Model& model() const { return model_; }
    std::size_t size() const { return order_.size(); }
    OpId op(std::size_t place) const { return order_[place]; }
    // The module of an op, cut to the depth that the chain was made with.
    const std::string& module(std::size_t place) const { return modules_[place]; }
    Part part(std::size_t first, std::size_t last) const;
    // Tensors that are written up to `place` and read after it, constants left out.
    std::vector<TensorId> crossing(std::size_t place) const;
    // A model of its own, with constants. Where `inputs` are given, in the order of part.inputs,
    // their types are declared.
    Model extract(const Part& part, std::span<const Value> inputs = {}) const;
    // What stands for a tensor that is no op's output in the chain; nullptr: nothing does.
    const Constant* constant(TensorId id) const { return plan_.constants[index(id)]; }

private:
    const Model& model_;
    Plan plan_;
    std::vector<OpId> order_;
    std::vector<std::string> modules_;
    std::vector<std::size_t> written_;    // by TensorId: at which place
    std::vector<std::size_t> last_read_;  // by TensorId: at which place
};

struct PartsOptions {
    enum class By { op, module, segment } by = By::op;
    // Segments end after these ops.
    Selector cut = {};
    // Where not empty: may a part end at this place? What lies between such places stays together.
    std::function<bool(std::size_t)> may_end = {};
};
std::vector<Part> make_parts(const Chain& chain, const PartsOptions& options);

// For another model whose tensors have the same names, such as one that was changed or optimised.
// May a part end here, as the other model too has all tensors that cross?
std::function<bool(std::size_t)> shared_places(const Chain& chain, const Model& other);
// What the other model computes between the tensors of a part. Throws Error(unsupported) where it
// does not have them.
Model matching_part(const Chain& chain, const Part& part, const Model& other,
                    std::span<const Value> inputs);

}  // namespace trocar
#pragma GCC visibility pop
