#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trocar/engine.h"
#include "trocar/model.h"

#pragma GCC visibility push(default)
namespace trocar {

// How the elements of a tensor stand in memory.
struct Layout {
    // Channels in blocks of this size, [N][C/block][spatial…][block], behind a shape that reads
    // N, C, spatial… with C rounded up to whole blocks. 0: plain.
    std::int64_t block = 0;
    std::int64_t channels = 0;  // of which this many are real; 0: not known
    bool operator==(const Layout&) const = default;
};

// The graph that an engine made of a model, and how its parts came from the model's. Of one engine,
// version and CPU; never to be saved as a model. Run with Optimize::none it gives the bits of the
// model run whole with the engine's own optimisation.
struct Deployed {
    Model model;
    // By OpId of the deployed graph: the model's ops that it computes, in order. Empty: the
    // engine's own (a reordering of the layout).
    std::vector<std::vector<OpId>> sources;
    // By TensorId of the deployed graph: the tensor of the model with the same value; none.
    std::vector<TensorId> source_tensors;
    std::vector<Layout> layouts;  // by TensorId of the deployed graph
    // Ops of the model that no deployed op computes: folded into constants, or dropped.
    std::vector<OpId> folded;
};

// Throws Error(unsupported) where the engine cannot tell.
Deployed deploy(const Model& model, Engine& engine);

// A tensor in plain layout; the value itself where it is plain already.
Value to_plain(const Value& value, const Layout& layout);
// Into memory that is there already, of the shape that `plain_shape` gives.
void to_plain(const Value& value, const Layout& layout, std::span<std::byte> plain);
Shape plain_shape(Shape shape, const Layout& layout);
// The bytes of a plain tensor into a blocked one's memory; what pads is zero.
void to_blocked(const Value& plain, const Layout& layout, std::span<std::byte> blocked);

}  // namespace trocar
#pragma GCC visibility pop
