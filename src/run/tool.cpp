#include "trocar/tool.h"

#include <fmt/format.h>

#include "trocar/error.h"
#include "trocar/session.h"
#include "util/elements.h"

namespace trocar {

void Writable::fill(double number) const {
    if (!is_numeric(dtype_)) {
        throw Error(Fault::usage,
                    fmt::format("a tensor of {} cannot be filled with a number", name(dtype_)));
    }
    // One element's bytes, repeated; packed types have several in a byte.
    const std::size_t per_byte = bits(dtype_) < 8 ? 8 / bits(dtype_) : 1;
    const std::size_t size = std::max<std::size_t>(bits(dtype_) / 8, 1);
    std::vector<std::byte> one(size);
    std::vector<double> numbers(number_count(dtype_, per_byte), 0);
    // Of a complex element the imaginary part stays 0.
    for (std::size_t i = 0; i < numbers.size(); i += number_count(dtype_, 1)) {
        numbers[i] = number;
    }
    encode(dtype_, numbers, 0, one);
    for (std::size_t at = 0; at + size <= bytes_.size(); at += size) {
        std::copy(one.begin(), one.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(at));
    }
}

std::string Port::describe() const {
    return graph_->describe(id_);
}

void Port::together(std::size_t parts, const std::function<void(std::size_t)>& work) const {
    for (std::size_t part = 0; part < parts; ++part) {
        work(part);
    }
}

Writable Port::make_output(std::size_t slot, DType dtype, Shape shape) {
    auto made = Value::tensor(dtype, std::move(shape));
    const auto bytes = made.mutable_bytes();
    auto writable = Writable(dtype, made.shape(), bytes);
    set_output(slot, std::move(made));
    return writable;
}

Probe& Probe::sample(double of_calls, std::uint64_t seed) {
    if (!(of_calls >= 0 && of_calls <= 1)) {
        throw Error(Fault::usage,
                    fmt::format("a share of the calls is between 0 and 1, not {}", of_calls));
    }
    share = of_calls;
    sample_seed = seed;
    return *this;
}

Probe& Probe::first(std::uint64_t calls) {
    limit = calls;
    return *this;
}

Probe& Probe::when(std::function<bool(const Port&)> holds) {
    predicate = std::move(holds);
    return *this;
}

Probe& Probe::with_inputs() {
    reads_inputs = true;
    return *this;
}

Probe& Probe::may_skip() {
    skips = true;
    return *this;
}

Probe& Probe::with_constants() {
    constants = true;
    return *this;
}

Probe& Probe::gives(std::vector<DType> output_types) {
    types = std::move(output_types);
    return *this;
}

Probe& Probe::outside_bodies() {
    in_bodies = false;
    return *this;
}

void Tool::at_start(std::function<void(const RunState&)> callback) {
    starts_.push_back(std::move(callback));
}

void Tool::at_end(std::function<void(const RunState&)> callback) {
    ends_.push_back(std::move(callback));
}

View parse_view(std::string_view text) {
    if (text != "source" && text != "deployed") {
        throw Error(Fault::usage, fmt::format("'{}' is no view", text), "write source or deployed");
    }
    return text == "source" ? View::source : View::deployed;
}

Lowering parse_lowering(std::string_view text) {
    if (text != "auto" && text != "tap" && text != "cut") {
        throw Error(Fault::usage, fmt::format("'{}' is no lowering", text),
                    "write auto, tap or cut");
    }
    return text == "auto" ? Lowering::automatic : text == "tap" ? Lowering::tap : Lowering::cut;
}

std::vector<NamedValue> run(const Model& model, const std::vector<NamedValue>& inputs, Tool& tool,
                            const EngineOptions& engine) {
    SessionOptions options;
    options.tools = {&tool};
    return Session(model, engine, options).run(inputs);
}

std::vector<NamedValue> run(const Model& model, const std::vector<NamedValue>& inputs, Tool& tool) {
    return run(model, inputs, tool, EngineOptions{});
}

}  // namespace trocar
