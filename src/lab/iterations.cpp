#include <algorithm>
#include <cstring>

#include "lab/bodies.h"

namespace trocar::lab {

namespace {

constexpr std::size_t no_limit = static_cast<std::size_t>(-1);

std::optional<bool> truth(const Value& value) {
    if (!value.is_tensor() || value.dtype() != DType::boolean || value.element_count() != 1) {
        return std::nullopt;
    }
    return value.bytes()[0] != std::byte{0};
}

std::optional<std::int64_t> whole_number(const Value& value) {
    if (!value.is_tensor() || value.dtype() != DType::i64 || value.element_count() != 1) {
        return std::nullopt;
    }
    return value.as<std::int64_t>().front();
}

Value scalar(DType dtype, const void* bytes, std::size_t size) {
    return Value::copy(dtype, {}, {static_cast<const std::byte*>(bytes), size});
}

bool has_axis(const Value& value, std::int64_t axis) {
    return value.is_tensor() && bits(value.dtype()) % 8 == 0 && bits(value.dtype()) > 0 &&
           axis >= 0 && static_cast<std::size_t>(axis) < value.shape().size();
}

// The part of a tensor at a place of an axis, without that axis.
Value slice_of(const Value& value, std::size_t axis, std::size_t place) {
    const auto shape = value.shape();
    auto inner = bits(value.dtype()) / 8;
    std::size_t outer = 1;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        (i < axis ? outer : inner) *= i == axis ? 1 : static_cast<std::size_t>(shape[i]);
    }
    const auto length = static_cast<std::size_t>(shape[axis]);
    const auto bytes = value.bytes();
    std::vector<std::byte> part(outer * inner);
    for (std::size_t i = 0; i < outer && inner > 0; ++i) {
        std::memcpy(part.data() + i * inner, bytes.data() + (i * length + place) * inner, inner);
    }
    Shape rest(shape.begin(), shape.end());
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(axis));
    return Value::copy(value.dtype(), rest, part);
}

}  // namespace

std::optional<Iteration> open_iteration(const Model& model) {
    if (model.graph.op_count() != 1) {
        return std::nullopt;
    }
    Iteration opened{.model = clone(model), .given = {}, .made = {}};
    auto& graph = opened.model.graph;
    const auto id = graph.first();
    const auto op = graph.op(id);  // a copy: the graph is edited
    auto body = op.type == "Loop" || op.type == "Scan" ? body_of(op, "body") : std::nullopt;
    if (!body || body->inputs().size() != op.inputs.size()) {
        return std::nullopt;
    }
    BodyCopy copy(graph, id, std::move(*body));
    for (const auto input : copy.body().inputs()) {
        opened.given.push_back(graph.tensor(copy(input)).name);
    }
    std::vector<TensorId> outputs;
    for (const auto inner : copy.body().outputs()) {
        const auto output = copy(inner);
        const auto& tensor = graph.tensor(output);
        opened.made.push_back(
            {tensor.name, tensor.constant ? Value::of(*tensor.constant) : Value()});
        if (tensor.producer != OpId::none &&
            std::find(outputs.begin(), outputs.end(), output) == outputs.end()) {
            outputs.push_back(output);
        }
    }
    if (outputs.empty()) {
        return std::nullopt;
    }
    graph.set_outputs(outputs);
    graph.remove(id);
    graph.remove_unused();
    drop_unread_inputs(graph);
    return opened;
}

std::optional<Iterations> Iterations::of(const Model& model,
                                         const std::vector<NamedValue>& inputs) {
    const auto& graph = model.graph;
    const auto& op = graph.op(graph.first());
    Iterations all;
    for (const auto id : op.inputs) {
        all.given_.push_back(known_value(graph, id, inputs));
    }
    if (op.type == "Loop") {
        if (all.given_.size() < 2) {
            return std::nullopt;
        }
        const auto most = whole_number(all.given_[0]);
        const auto condition = truth(all.given_[1]);
        if ((!most && op.inputs[0] != TensorId::none) ||
            (!condition && op.inputs[1] != TensorId::none)) {
            return std::nullopt;
        }
        all.loop_ = true;
        all.most_ = most ? static_cast<std::size_t>(std::max<std::int64_t>(*most, 0)) : no_limit;
        const std::int64_t first = 0;
        const bool goes_on = condition.value_or(true);
        all.given_[0] = scalar(DType::i64, &first, sizeof first);
        all.given_[1] = scalar(DType::boolean, &goes_on, 1);
        all.done_ = all.most_ == 0 || !goes_on;
        return all;
    }
    const auto count = op.integer("num_scan_inputs", 0);
    const auto states = static_cast<std::int64_t>(op.inputs.size()) - count;
    if (count < 1 || states < 0) {
        return std::nullopt;
    }
    const auto axes = op.integers("scan_input_axes");
    const auto directions = op.integers("scan_input_directions");
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
        const auto& value = all.given_[static_cast<std::size_t>(states) + i];
        auto axis = i < axes.size() ? axes[i] : 0;
        axis += axis < 0 ? static_cast<std::int64_t>(value.shape().size()) : 0;
        if (!has_axis(value, axis)) {
            return std::nullopt;
        }
        all.whole_.push_back(value);
        all.axes_.push_back(axis);
        all.backwards_.push_back(i < directions.size() && directions[i] != 0);
        const auto length = static_cast<std::size_t>(value.shape()[static_cast<std::size_t>(axis)]);
        if (i > 0 && length != all.most_) {
            return std::nullopt;
        }
        all.most_ = length;
    }
    all.done_ = all.most_ == 0;
    all.slice();
    return all;
}

void Iterations::slice() {
    const auto states = given_.size() - whole_.size();
    for (std::size_t i = 0; i < whole_.size() && !done_; ++i) {
        given_[states + i] = slice_of(whole_[i], static_cast<std::size_t>(axes_[i]),
                                      backwards_[i] ? most_ - 1 - number_ : number_);
    }
}

void Iterations::next(const std::vector<Value>& made) {
    ++number_;
    done_ = number_ >= most_;
    const auto states = given_.size() - whole_.size();
    // A Loop is given its number and whether it goes on; it gives whether it goes on.
    const std::size_t skipped = loop_ ? 1 : 0;
    if (made.size() + skipped < states) {
        done_ = true;
        return;
    }
    for (std::size_t i = skipped; i < states; ++i) {
        given_[i] = made[i - skipped];
    }
    if (loop_) {
        const auto number = static_cast<std::int64_t>(number_);
        given_[0] = scalar(DType::i64, &number, sizeof number);
        done_ = done_ || !truth(given_[1]).value_or(false);
    }
    slice();
}

}  // namespace trocar::lab
