#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engines/torch/arguments.h"
#include "engines/torch/exchange.h"
#include "trocar/graph.h"

namespace trocar::libtorch {

// A graph, op by op; the bodies of its ops are graphs again.
class Steps {
public:
    // Throws Error(unsupported) for what PyTorch has no op for; in a body that is said when it is
    // reached, which may never be.
    Steps(const Exchange& exchange, const Graph& graph, bool is_body = false);

    // Does an op, here or in a body, write into its arguments?
    bool changes() const { return changes_; }
    // What the graph reads from the one around it: its own tensor there, and the one here.
    using Captures = std::vector<std::pair<TensorId, TensorId>>;

    using Values = std::map<TensorId, Held>;
    // `inputs` for the graph's inputs in order, with `values` of what it captures. `copy`: its
    // constants are copied.
    std::vector<Held> run(const std::vector<Held>& inputs, Values values, bool copy) const;

private:
    enum class Kind {
        call,        // an operator
        arithmetic,  // of numbers, in Python's words
        list,        // of its inputs
        unpack,      // a list in its elements
        pass,        // its input
        nothing,     // what is never read
        raise,       // an error of the model's own
        missing,     // there is no such operator
        choice,      // one of two bodies
        loop,        // a body, as often as it says
        repeat,      // a body as long as another one says
    };
    struct Body {
        std::unique_ptr<Steps> steps;
        Captures captures;
    };
    struct Step {
        Kind kind = Kind::call;
        const BridgeOp* op = nullptr;
        std::string type;
        std::string what;  // for messages
        std::vector<TensorId> inputs;
        std::vector<TensorId> outputs;
        std::vector<Argument> arguments;
        std::vector<Body> bodies;
        bool whole = false;              // its one output is a list
        bool numbers = false;            // a list that it makes is one of numbers
        std::string text;                // what an error says
        std::vector<TensorId> last_use;  // tensors that nobody reads afterwards
    };

    void add(const Graph& graph, OpId id);
    bool add_special(const Graph& graph, const Op& op, Step& step);
    void add_bodies(const Graph& graph, const Op& op, Step& step,
                    const std::vector<const char*>& names);
    void find_last_uses(const Graph& graph);

    void run(const Step& step, Values& values, bool copy) const;
    std::vector<Held> results_of(const Step& step, Values& values, bool copy) const;
    std::vector<Held> call(const Step& step, const Values& values) const;
    std::vector<Held> calculate(const Step& step, const Values& values) const;
    std::vector<Held> enter(const Body& body, const std::vector<Held>& inputs, const Values& values,
                            bool copy) const;
    std::vector<Held> choose(const Step& step, const Values& values, bool copy) const;
    std::vector<Held> loop(const Step& step, const Values& values, bool copy) const;
    std::vector<Held> repeat(const Step& step, const Values& values, bool copy) const;
    std::vector<Held> given(const Step& step, const Values& values, std::size_t from = 0) const;

    const Exchange& exchange_;
    bool is_body_ = false;
    bool changes_ = false;
    std::vector<TensorId> inputs_;
    std::vector<TensorId> outputs_;
    std::vector<std::pair<TensorId, Value>> constants_;
    std::vector<Step> steps_;
};

}  // namespace trocar::libtorch
