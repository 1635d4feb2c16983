#include "tools/summary/body_inputs.h"

#include <algorithm>

namespace trocar::summary {
namespace {

// The first slice along an axis; of other axes than the first its values are zeros, as only the
// shape is asked for.
Value first_slice(const Value& value, std::int64_t axis) {
    if (!value.is_tensor()) {
        return {};
    }
    Shape shape = value.shape();
    auto rank = static_cast<std::int64_t>(shape.size());
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank || shape[static_cast<std::size_t>(axis)] < 1) {
        return {};
    }
    auto steps = static_cast<std::size_t>(shape[static_cast<std::size_t>(axis)]);
    shape.erase(shape.begin() + axis);
    bool plain = axis == 0 && bits(value.dtype()) >= 8;
    if (!plain) {
        return Value::tensor(value.dtype(), shape);
    }
    Bytes all = value.bytes();
    return Value::copy(value.dtype(), shape, all.first(all.size() / steps));
}

}  // namespace

std::vector<Value> first_inputs(const Op& op, const Body& body,
                                const std::function<Value(TensorId)>& value_of) {
    std::vector<Value> values;
    auto given = [&](std::size_t slot) { return value_of(op.inputs[slot]); };
    if (body.function != nullptr) {
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            values.push_back(given(slot));
        }
    } else if (op.type == "Loop" && op.inputs.size() >= 2) {
        values.push_back(Value::tensor(DType::i64, {}));
        Value go = Value::tensor(DType::boolean, {});
        go.mutable_bytes()[0] = std::byte{1};
        values.push_back(go);
        for (std::size_t slot = 2; slot < op.inputs.size(); ++slot) {
            values.push_back(given(slot));
        }
    } else if (op.type == "Scan") {
        auto scanned = static_cast<std::size_t>(std::clamp<std::int64_t>(
            op.integer("num_scan_inputs", 0), 0, static_cast<std::int64_t>(op.inputs.size())));
        std::size_t states = op.inputs.size() - scanned;
        std::vector<std::int64_t> axes = op.integers("scan_input_axes");
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            std::size_t n = slot - states;
            values.push_back(slot < states
                                 ? given(slot)
                                 : first_slice(given(slot), n < axes.size() ? axes[n] : 0));
        }
    }
    return values;
}

}  // namespace trocar::summary
