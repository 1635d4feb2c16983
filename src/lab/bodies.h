#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "trocar/model.h"
#include "trocar/value.h"

namespace trocar::lab {

// The body of a model's one op, in the graph of that op: its ops stand before it, and read what is
// around it.
class BodyCopy {
public:
    BodyCopy(Graph& graph, OpId at, Graph body);
    // The tensor that stands for one of the body.
    TensorId operator()(TensorId inner);
    const Graph& body() const { return body_; }

private:
    Graph& graph_;
    Graph body_;
    std::unordered_map<std::size_t, TensorId> here_;
};

// The body of an op by the name of its attribute; nothing where there is none with ops.
std::optional<Graph> body_of(const Op& op, const std::string& attribute);
// The value of a tensor: one that is given, or its constant; no value where there is neither.
Value known_value(const Graph& graph, TensorId id, const std::vector<NamedValue>& inputs);
// Leaves only inputs that are read or given out.
void drop_unread_inputs(Graph& graph);

// The body of a Loop or a Scan as a model of its own: one iteration.
struct Iteration {
    // What the body gives: a tensor of the model, which may be one that it was given, or a
    // constant.
    struct Made {
        std::string name;
        Value constant;
    };
    Model model;
    std::vector<std::string> given;  // inputs of the body in its order, as the model names them
    std::vector<Made> made;          // outputs of the body in its order
};
// Of a model with one op, a Loop or a Scan (of opset 9 or later); nothing where it is no such
// model.
std::optional<Iteration> open_iteration(const Model& model);

// What the iterations of a model's one op, a Loop or a Scan, are given, one after the other.
class Iterations {
public:
    // `inputs`: of the model with the op. Nothing where they do not tell.
    static std::optional<Iterations> of(const Model& model, const std::vector<NamedValue>& inputs);

    bool done() const { return done_; }
    std::size_t number() const { return number_; }
    // In the order of the body's inputs. What it reads from around it stays the same.
    const std::vector<Value>& given() const { return given_; }
    // Goes on with what the body gave for that, in the order of its outputs.
    void next(const std::vector<Value>& made);

private:
    void slice();
    std::vector<Value> given_;
    std::vector<Value> whole_;        // what a Scan takes slices of
    std::vector<std::int64_t> axes_;  // of these
    std::vector<bool> backwards_;     // likewise
    std::size_t number_ = 0;
    std::size_t most_ = 0;
    bool loop_ = false;
    bool done_ = false;
};

}  // namespace trocar::lab
