#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trocar/graph.h"
#include "trocar/model.h"

#pragma GCC visibility push(default)
namespace trocar {

// What is known of a tensor that an op reads or writes.
struct TensorFacts {
    DType dtype = DType::undefined;
    std::optional<Shape> shape;          // absent: unknown
    const Constant* constant = nullptr;  // its value, where it is a constant; not owned
    bool present = true;                 // false: an optional input or output left out
};

// One op with its tensors, by slot.
struct OpFacts {
    const Op* op = nullptr;
    std::vector<TensorFacts> inputs;
    std::vector<TensorFacts> outputs;
    std::string_view dialect = "onnx";  // of the model that the op is in
};

enum class Counted {
    arithmetic,  // macs and other_flops hold the work
    movement,    // the op moves data or asks for shapes: no arithmetic
    unknown,     // not counted; `why` says why not
};

// The arithmetic of one op, by the convention of `counting_convention`.
struct OpCount {
    Counted counted = Counted::unknown;
    std::uint64_t macs = 0;         // multiply-accumulates of contractions
    std::uint64_t other_flops = 0;  // everything else, one per elementary operation and element
    std::string why;                // of Counted::unknown

    // Saturates at the largest 63-bit number.
    std::uint64_t flops() const;
};

// Counts one op of a dialect that has rules: "onnx" (its own domain and com.microsoft), "tflite",
// "tf", "mxnet", "aten". Ops with subgraphs and calls of a model's functions are unknown here:
// their bodies are to be counted. Never throws on shapes that do not fit the op; it then says so in
// `why`.
OpCount count(const OpFacts& facts);

// One sentence or two for reports: what a MAC and a FLOP are here.
const char* counting_convention();

// What a constant is to the op that reads it.
enum class Role {
    none,      // not read as a constant
    weight,    // parameter: kernel, matrix or table of a layer
    vector,    // parameter: bias, scale, slope and the like
    buffer,    // state that is not trained: running mean and variance, initial states
    constant,  // shapes, indices, axes, scales of a quantization, limits…
};
inline bool is_parameter(Role role) {
    return role == Role::weight || role == Role::vector;
}

// The role of a constant of this dtype and shape in input `slot` of `op`.
Role role(const Op& op, std::size_t slot, DType dtype, std::span<const std::int64_t> shape,
          std::string_view dialect = "onnx");
// The role that the file itself gives a constant: its metadata say whether it is a "parameter", a
// "buffer" or a "constant". Nothing where they do not.
std::optional<Role> declared_role(const Tensor& tensor);

// How many parameters a constant in a parameter's role stands for: its elements, except where an op
// stores several in one (MatMulNBits packs them into bytes).
std::uint64_t parameter_count(const Op& op, std::size_t slot, const Constant& constant);

// Does the op only pass input 0 on in another form (Identity, Cast, Transpose, DequantizeLinear…)?
// A constant read through such ops belongs to the layer at their end.
enum class Passing { no, unchanged, transposed, reshaped, dequantized };
Passing passing(const Op& op, std::string_view dialect = "onnx");

// The axis of a weight along which a layer's outputs are numbered, and the one over which it sums.
// Absent: the op or the slot has none.
struct WeightAxes {
    std::size_t output = 0;
    std::size_t reduced = 0;
};
std::optional<WeightAxes> weight_axes(const Op& op, std::size_t slot, std::size_t rank,
                                      std::string_view dialect = "onnx");

// Bytes that an op moves when each of its inputs is read once and each output written once; of
// tables that are indexed only what is picked, of shapes that are asked for nothing. Absent
// when a shape is unknown.
struct Traffic {
    std::optional<std::uint64_t> read;
    std::optional<std::uint64_t> written;
};
Traffic traffic(const OpFacts& facts);

}  // namespace trocar
#pragma GCC visibility pop
