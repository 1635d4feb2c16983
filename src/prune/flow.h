#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "prune/weights.h"
#include "trocar/model.h"
#include "trocar/prune.h"

namespace trocar::pruning {

// A channel somewhere in the model. Channels that can only go together are one class.
using Atom = std::uint32_t;
// The channels along an axis, one for each place. nullptr: nothing of this axis can go.
using Axis = std::shared_ptr<const std::vector<Atom>>;
using Axes = std::vector<Axis>;  // of a tensor

// How channels go through a graph of ONNX ops: which places of which tensors belong together.
// Removing the channels of a class, in all places where they are, leaves a model whose shapes fit.
class Flow {
public:
    Flow(const Model& model, const Shapes& shapes);

    // A weight that makes channels.
    struct Source {
        OpId op = OpId::none;
        Place weight;
        std::size_t axis = 0;  // of the constant
        Axis channels;
        bool own = true;  // not a depthwise convolution, which has those of its input
    };
    // A constant and what its axes hold.
    struct Held {
        Place place;
        Axes axes;
        bool parameter = false;
    };
    // A number that says how many channels there are: element `at` of the constant that `op` reads.
    struct Entry {
        OpId op = OpId::none;
        std::size_t slot = 0;
        std::size_t at = 0;
        Axis channels;
    };
    struct Group {
        OpId op = OpId::none;
        Axis inputs;
    };
    struct Parting {
        OpId op = OpId::none;
        std::vector<Axis> channels;  // of each output
    };

    const std::vector<Source>& sources() const { return sources_; }
    const std::map<TensorId, Held>& constants() const { return constants_; }
    const std::vector<Entry>& entries() const { return entries_; }
    const std::vector<Group>& groups() const { return groups_; }
    const std::vector<Parting>& partings() const { return partings_; }
    const Axes& axes(TensorId id) const { return tensors_[index(id)]; }

    std::size_t atom_count() const { return parent_.size(); }
    Atom find(Atom atom) const;
    // Why a class stays; empty: it need not.
    const std::string& why(Atom atom) const;
    void freeze(const Axis& channels, const std::string& why);

private:
    using Rule = void (Flow::*)(OpId);
    static const std::map<std::string_view, Rule>& rules();

    void walk(OpId id);
    void close();
    bool has_channels(const Op& op) const;
    const Op& op(OpId id) const { return graph_.op(id); }
    TensorId input(OpId id, std::size_t slot) const;
    TensorId output(OpId id, std::size_t slot = 0) const;
    const std::optional<Shape>& shape(TensorId id) const { return shapes_[index(id)]; }
    Axis channels(TensorId id, std::size_t axis) const;
    void give(TensorId id, std::size_t axis, Axis channels);
    std::string label(OpId id) const;

    Atom fresh_atom();
    Axis fresh(std::size_t count);
    Axis fixed(std::size_t count, const std::string& why);
    void unite(Atom a, Atom b);
    void unite(const Axis& a, const Axis& b);
    void unite_across(const Axis& channels, std::size_t groups);
    void freeze_tensor(TensorId id, const std::string& why);
    void freeze_inputs(OpId id, const std::string& why);
    void freeze_but(TensorId id, std::initializer_list<std::size_t> axes, const std::string& why);

    // The constant that input `slot` reads has these channels along `axis`. False: it is none, or
    // does not fit.
    bool demand(OpId id, std::size_t slot, std::size_t axis, const Axis& channels);
    std::optional<Shape> constant_shape(OpId id, std::size_t slot) const;
    std::optional<std::vector<std::int64_t>> integers(OpId id, std::size_t slot) const;
    // The numbers of a constant input or, in older versions of the op, of an attribute.
    std::optional<std::vector<std::int64_t>> integers(OpId id, std::size_t slot,
                                                      const char* attribute) const;
    std::size_t axis_of(std::int64_t axis, std::size_t rank) const;
    void check_uses(const Held& held);
    bool read_elsewhere(TensorId id, const Held& held, std::size_t axis,
                        const std::vector<std::size_t>& turned, std::string& where) const;

    // Ops that compute (flow.cpp).
    void unknown(OpId id);
    void unary(OpId id);
    void elementwise(OpId id);
    void conv(OpId id);
    void grouped_conv(OpId id, std::size_t group, const Shape& weight);
    void conv_transpose(OpId id);
    void gemm(OpId id);
    void matmul(OpId id);
    void normalize_channels(OpId id);
    void normalize_last(OpId id);
    void softmax(OpId id);
    void pool(OpId id);
    void reduce(OpId id);
    void made(OpId id, std::size_t axis, const Axis& out, std::size_t bias_slot);
    void same_axis(OpId id, std::size_t axis, std::size_t rank, const Shape& whole);

    // Ops that move numbers (flow_moves.cpp).
    void concat(OpId id);
    void reshape(OpId id);
    void transpose(OpId id);
    void gather(OpId id);
    void resize(OpId id);
    void pad(OpId id);
    void slice(OpId id);
    void split(OpId id);
    void ask_shape(OpId id);
    Axes reshaped(TensorId from, const Shape& in, const Shape& out, const std::string& by);
    struct Written {
        std::optional<std::int64_t> value;  // absent: computed
        OpId op = OpId::none;
        std::size_t slot = 0;
        std::size_t at = 0;
    };
    std::vector<Written> written_shape(OpId id) const;

    const Model& model_;
    const Graph& graph_;
    const Shapes& shapes_;
    mutable std::vector<Atom> parent_;
    std::map<Atom, std::string> why_;  // by class
    std::vector<Axes> tensors_;        // by TensorId
    std::vector<Source> sources_;
    std::map<TensorId, Held> constants_;
    std::vector<Entry> entries_;
    std::vector<Group> groups_;
    std::vector<Parting> partings_;
    std::set<std::tuple<OpId, std::size_t, std::size_t>> demanded_;  // op, slot, axis as read
};

}  // namespace trocar::pruning
