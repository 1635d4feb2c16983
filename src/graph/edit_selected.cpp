#include <fmt/format.h>

#include "trocar/error.h"
#include "trocar/selector.h"

namespace trocar {

// Edits of all ops that a selector chooses. The ops are chosen before the first edit.

std::size_t Graph::remove(const Selector& selector) {
    const auto chosen = select(*this, selector);
    for (const auto id : chosen) {
        remove(id);
    }
    return chosen.size();
}

std::size_t Graph::replace(const Selector& selector, const OpSpec& spec) {
    const auto chosen = select(*this, selector);
    for (const auto id : chosen) {
        auto made = spec;
        if (made.inputs.empty()) {
            made.inputs = op(id).inputs;
        }
        if (made.name.empty()) {
            made.name = op(id).name;
        }
        if (made.origin.module.empty()) {
            made.origin = op(id).origin;
        }
        replace(id, std::move(made));
    }
    return chosen.size();
}

std::size_t Graph::insert_after(const Selector& selector, const OpSpec& spec) {
    const auto chosen = select(*this, selector);
    for (const auto id : chosen) {
        if (op(id).outputs.empty() || op(id).outputs[0] == TensorId::none) {
            throw Error(Fault::usage, fmt::format("{} has no first output", describe(id)));
        }
        insert_on(op(id).outputs[0], spec);
    }
    return chosen.size();
}

std::size_t Graph::insert_before(const Selector& selector, const OpSpec& spec) {
    const auto chosen = select(*this, selector);
    for (const auto id : chosen) {
        if (op(id).inputs.empty() || op(id).inputs[0] == TensorId::none) {
            throw Error(Fault::usage, fmt::format("{} has no first input", describe(id)));
        }
        auto made = spec;
        const auto from = op(id).inputs[0];
        if (made.inputs.empty()) {
            made.inputs.push_back(from);
        }
        made.inputs[0] = from;
        const auto between = add_tensor({}, tensor(from).type);
        made.outputs = {between};
        insert_before(id, std::move(made));
        set_input(id, 0, between);
    }
    return chosen.size();
}

}  // namespace trocar
