#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engines/reference/arrays.h"
#include "trocar/graph.h"

namespace trocar::reference {

class Machine;
struct Frame;
struct Step;

// One op at work: its inputs and attributes, checked as they are asked for, and its outputs.
class Call {
public:
    Call(Machine& machine, Frame& frame, const Step& step, const Op& op);

    Machine& machine() const { return machine_; }
    Frame& frame() const { return frame_; }
    const Step& step() const { return step_; }
    const Op& op() const { return op_; }
    std::int64_t opset() const;  // version of the op set that the op is of

    // --- Inputs: all throw when there is none at the slot, or it is of another kind -------------
    std::size_t input_count() const { return op_.inputs.size(); }
    bool has(std::size_t slot) const;
    const Value& value(std::size_t slot) const;   // any kind, an optional without value included
    const Value& tensor(std::size_t slot) const;  // a tensor on the host
    DType dtype(std::size_t slot) const { return tensor(slot).dtype(); }
    Shape shape(std::size_t slot) const { return tensor(slot).shape(); }
    Numbers numbers(std::size_t slot) const { return read<double>(tensor(slot)); }
    Integers integers(std::size_t slot) const { return read<std::int64_t>(tensor(slot)); }
    double number(std::size_t slot) const;         // of a tensor of one element
    std::int64_t integer(std::size_t slot) const;  // likewise

    // --- Attributes: all throw when there is one of another kind ---------------------------------
    const Attribute* attribute(std::string_view name) const;  // nullptr: not there
    std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
    double number(std::string_view name, double otherwise) const;
    std::string text(std::string_view name, std::string_view otherwise) const;
    std::optional<Integers> integers(std::string_view name) const;
    std::optional<Numbers> numbers(std::string_view name) const;
    std::optional<std::vector<std::string>> texts(std::string_view name) const;
    // Integers that older versions of the op have as an attribute and newer ones as an input.
    std::optional<Integers> integers(std::string_view name, std::size_t slot) const;

    // --- Outputs ---------------------------------------------------------------------------------
    std::size_t output_count() const { return op_.outputs.size(); }
    bool wants(std::size_t slot) const;
    void give(std::size_t slot, Value value);  // what nobody reads is dropped
    template <class T>
    void give(std::size_t slot, DType dtype, const Shape& shape, const std::vector<T>& numbers) {
        if (wants(slot)) {
            give(slot, write<T>(dtype, shape, numbers));
        }
    }

private:
    Machine& machine_;
    Frame& frame_;
    const Step& step_;
    const Op& op_;
};

using Kernel = void (*)(Call& call);

struct Entry {
    const char* op;  // of the dialect's own domain
    Kernel kernel;
};

// One table per file of kernels.
std::span<const Entry> arithmetic_ops();
std::span<const Entry> attention_ops();
std::span<const Entry> cast_ops();
std::span<const Entry> contraction_ops();
std::span<const Entry> control_ops();
std::span<const Entry> convolution_ops();
std::span<const Entry> creation_ops();
std::span<const Entry> gather_ops();
std::span<const Entry> loss_ops();
std::span<const Entry> normalisation_ops();
std::span<const Entry> pooling_ops();
std::span<const Entry> quantisation_ops();
std::span<const Entry> recurrent_ops();
std::span<const Entry> reduction_ops();
std::span<const Entry> resize_ops();
std::span<const Entry> scatter_ops();
std::span<const Entry> sequence_ops();
std::span<const Entry> shape_ops();
std::span<const Entry> signal_ops();
std::span<const Entry> softmax_ops();
std::span<const Entry> sorting_ops();
std::span<const Entry> unary_ops();
std::span<const Entry> vision_ops();

Kernel find_kernel(std::string_view op);  // nullptr: the engine has none

}  // namespace trocar::reference
