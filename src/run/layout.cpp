#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "run/deployed_map.h"
#include "trocar/error.h"
#include "trocar/session.h"

namespace trocar {

namespace {

// Enough channels for the largest blocks that any CPU asks for.
constexpr std::int64_t probe_channels = 64;

// Two columns of `probe_channels` channels whose elements are numbered, as the engine blocks them.
Value blocked_numbers(Engine& engine) {
    Model model;
    model.format = "onnx";
    model.dialect = "onnx";
    model.ir_version = 8;
    model.opsets = {{"", 17}, {"com.microsoft.nchwc", 1}};
    model.graph.name = "blocks";
    const Shape shape{1, probe_channels, 1, 2};
    const auto in = model.graph.add_input("plain", Type::tensor(DType::f32, shape));
    const auto out = model.graph.add_tensor("blocked", Type::tensor(DType::f32, shape));
    model.graph.append({.type = "ReorderInput",
                        .domain = "com.microsoft.nchwc",
                        .inputs = {in},
                        .outputs = {out}});
    model.graph.set_outputs({out});
    auto numbers = Value::tensor(DType::f32, shape);
    auto bytes = numbers.mutable_bytes();
    for (std::size_t i = 0; i < bytes.size() / sizeof(float); ++i) {
        const auto number = static_cast<float>(i);
        std::memcpy(bytes.data() + i * sizeof(float), &number, sizeof number);
    }
    auto program = engine.compile(model, {.optimize = CompileOptions::Optimize::none});
    std::vector<Value> blocked(1);
    program->run(std::span(&numbers, 1), blocked);
    return blocked[0];
}

// Element 1 is the second column of channel 0: it comes after one block of first columns.
std::int64_t ask_block_size(Engine& engine) {
    const auto value = blocked_numbers(engine);
    const auto numbers = value.as<float>();
    const auto second = std::find(numbers.begin(), numbers.end(), 1.0F);
    const auto block = second - numbers.begin();
    for (std::int64_t c = 0; c < block; ++c) {
        if (block < 2 || second == numbers.end() ||
            numbers[static_cast<std::size_t>(c)] != static_cast<float>(2 * c)) {
            throw Error(Fault::internal,
                        fmt::format("{} {} blocks channels in a way that is not known",
                                    engine.info().name, engine.info().version));
        }
    }
    return block;
}

// Does what an op writes have as many channels as what it reads, which may be broadcast?
bool keeps_channels(const Op& op) {
    static constexpr std::array<std::string_view, 22> types{"Relu",          "Sigmoid",
                                                            "Tanh",          "LeakyRelu",
                                                            "HardSigmoid",   "HardSwish",
                                                            "Clip",          "Elu",
                                                            "Gelu",          "Add",
                                                            "Sub",           "Mul",
                                                            "Div",           "Sum",
                                                            "Identity",      "Dropout",
                                                            "MaxPool",       "AveragePool",
                                                            "Resize",        "GlobalAveragePool",
                                                            "GlobalMaxPool", "BatchNormalization"};
    return op.domain.empty() && std::find(types.begin(), types.end(), op.type) != types.end();
}

std::int64_t declared_channels(const Tensor& tensor) {
    const auto& dims = tensor.type.dims;
    return dims && dims->size() > 1 ? std::max<std::int64_t>((*dims)[1].value, 0) : 0;
}

// The channels of a model's tensors, by TensorId; 0 where they are not known. Convolutions tell
// those of what they read and write, also where the file declares no shapes.
std::vector<std::int64_t> channels_of(const Model& model) {
    const auto& graph = model.graph;
    const auto plan = make_plan(model, {});
    std::vector<std::int64_t> channels(graph.tensor_limit(), 0);
    for (const auto id : graph.tensors()) {
        channels[index(id)] = declared_channels(graph.tensor(id));
    }
    for (const auto id : graph.ops()) {
        const auto& op = graph.op(id);
        std::int64_t known = 0;
        if (op.type == "Conv" && op.inputs.size() > 1 && op.inputs[1] != TensorId::none) {
            const auto* weight = plan.constants[index(op.inputs[1])];
            if (weight != nullptr && weight->shape().size() > 1) {
                known = weight->shape()[0];
                channels[index(op.inputs[0])] = weight->shape()[1] * op.integer("group", 1);
            }
        } else if (keeps_channels(op)) {
            for (const auto input : op.inputs) {
                if (input != TensorId::none && plan.constants[index(input)] == nullptr) {
                    known = std::max(known, channels[index(input)]);
                }
            }
        }
        if (known != 0 && !op.outputs.empty() && op.outputs[0] != TensorId::none) {
            channels[index(op.outputs[0])] = known;
        }
    }
    return channels;
}

class Layouts {
public:
    Layouts(const Model& model, Deployed& to)
        : source_(model.graph),
          made_(to.model.graph),
          to_(to),
          plan_(make_plan(model, {})),
          channels_(channels_of(model)) {}

    bool any() const {
        return std::any_of(made_.ops().begin(), made_.ops().end(),
                           [&](OpId id) { return is_blocked_domain(made_.op(id)); });
    }

    void find(std::int64_t block) {
        unfolded_.assign(made_.tensor_limit(), false);
        for (const auto id : made_.ops()) {
            const auto& op = made_.op(id);
            if (!writes_blocks(op)) {
                unfold(op);
                continue;
            }
            const Layout layout{.block = block, .channels = channels(id)};
            for (const auto output : op.outputs) {
                if (output != TensorId::none) {
                    to_.layouts[index(output)] = layout;
                }
            }
        }
        back_from_outputs();
    }

private:
    const Layout& layout(TensorId id) const { return to_.layouts[index(id)]; }

    // Of the ops that know nothing of blocks only those work on them that treat every element
    // alike; what they write is blocked too.
    bool writes_blocks(const Op& op) const {
        if (is_blocked_domain(op)) {
            return op.type != "ReorderOutput";
        }
        if (op.type == "Reshape") {
            return unfolded_[index(op.inputs[0])];
        }
        return std::any_of(op.inputs.begin(), op.inputs.end(),
                           [&](TensorId t) { return t != TensorId::none && layout(t).block != 0; });
    }

    // Between two Reshapes the block is a dimension of its own, and the tensor plain.
    void unfold(const Op& op) {
        const auto input = op.inputs.empty() ? TensorId::none : op.inputs[0];
        if (input != TensorId::none && !op.outputs.empty() && !is_blocked_domain(op)) {
            unfolded_[index(op.outputs[0])] =
                op.type == "Reshape" ? layout(input).block != 0 : unfolded_[index(input)];
        }
    }

    std::int64_t of_inputs(const Op& op) const {
        std::int64_t sum = 0;
        for (const auto input : op.inputs) {
            if (input == TensorId::none || layout(input).block == 0) {
                continue;
            }
            if (op.type != "Concat") {
                return layout(input).channels;
            }
            if (layout(input).channels == 0) {
                return 0;
            }
            sum += layout(input).channels;
        }
        return sum;
    }

    // Those of the convolution that a blocked one computes.
    std::int64_t of_filters(OpId id) const {
        for (const auto source : to_.sources[index(id)]) {
            const auto& op = source_.op(source);
            if (op.type == "Conv" && op.inputs.size() > 1) {
                const auto* filters = plan_.constants[index(op.inputs[1])];
                return filters == nullptr || filters->shape().empty() ? 0 : filters->shape()[0];
            }
        }
        return 0;
    }

    std::int64_t channels(OpId id) const {
        const auto& op = made_.op(id);
        const auto output = op.outputs.empty() ? TensorId::none : op.outputs[0];
        const auto source =
            output == TensorId::none ? TensorId::none : to_.source_tensors[index(output)];
        if (source != TensorId::none && channels_[index(source)] != 0) {
            return channels_[index(source)];
        }
        return op.type == "Conv" ? of_filters(id) : of_inputs(op);
    }

    // Where blocks end the engine says how many channels are real.
    void back_from_outputs() {
        for (const auto id : made_.ops()) {
            const auto& op = made_.op(id);
            if (is_blocked_domain(op) && op.type == "ReorderOutput") {
                auto& input = to_.layouts[index(op.inputs[0])];
                input.channels = op.integer("channels", input.channels);
            }
        }
    }

    const Graph& source_;
    const Graph& made_;
    Deployed& to_;
    Plan plan_;
    std::vector<std::int64_t> channels_;  // by TensorId of the model
    std::vector<bool> unfolded_;          // by TensorId of the deployed graph
};

// Where the elements of a blocked tensor stand: by image, block and place in it.
struct Blocks {
    std::size_t images, channels, padded, places, block, element;

    Blocks(const Shape& shape, const Layout& layout, DType dtype) {
        if (shape.size() < 2 || layout.block <= 0 || bits(dtype) % 8 != 0 || bits(dtype) == 0) {
            throw Error(Fault::usage, fmt::format("a tensor of shape {} has no blocks of channels",
                                                  shape_text(shape)));
        }
        block = static_cast<std::size_t>(layout.block);
        images = static_cast<std::size_t>(shape[0]);
        padded = (static_cast<std::size_t>(shape[1]) + block - 1) / block * block;
        channels = layout.channels == 0 ? padded : static_cast<std::size_t>(layout.channels);
        places = trocar::element_count(std::span(shape).subspan(2));
        element = bits(dtype) / 8;
        if (channels > padded) {
            throw Error(Fault::usage, fmt::format("{} channels do not fit a tensor of shape {}",
                                                  channels, shape_text(shape)));
        }
    }

    std::size_t bytes() const { return images * padded * places * element; }
    std::size_t plain_bytes() const { return images * channels * places * element; }
};

// The transposition behind a change of layout, tile by tile: a tile of `tile` places and one block
// of channels stays in the first cache while it is read one way and written the other.
constexpr std::size_t tile = 16;

template <class Element, bool unblock>
void turn_tile(const Blocks& b, std::size_t rows, std::size_t first, std::size_t count,
               Element* plain, Element* blocked) {
    for (std::size_t p = 0; p < count; ++p) {
        auto* place = blocked + (first + p) * b.block;
        for (std::size_t c = 0; c < rows; ++c) {
            auto& there = plain[c * b.places + first + p];
            if constexpr (unblock) {
                there = place[c];
            } else {
                place[c] = there;
            }
        }
    }
}

template <class Element, bool unblock>
void turn(const Blocks& b, Element* plain, Element* blocked) {
    for (std::size_t n = 0; n < b.images; ++n) {
        for (std::size_t c = 0; c < b.channels; c += b.block) {
            auto* to = plain + (n * b.channels + c) * b.places;
            auto* from = blocked + (n * b.padded + c) * b.places;
            const auto rows = std::min(b.block, b.channels - c);
            for (std::size_t p = 0; p < b.places; p += tile) {
                turn_tile<Element, unblock>(b, rows, p, std::min(tile, b.places - p), to, from);
            }
        }
    }
}

template <bool unblock>
void turn(const Blocks& b, std::byte* plain, std::byte* blocked) {
    const auto as = [&](auto element) {
        using Element = decltype(element);
        turn<Element, unblock>(b, reinterpret_cast<Element*>(plain),
                               reinterpret_cast<Element*>(blocked));
    };
    switch (b.element) {
        case 1:
            return as(std::uint8_t{});
        case 2:
            return as(std::uint16_t{});
        case 4:
            return as(std::uint32_t{});
        default:
            return as(std::uint64_t{});
    }
}

}  // namespace

void find_layouts(const Model& model, Engine& engine, Deployed& deployed) {
    deployed.layouts.resize(deployed.model.graph.tensor_limit());
    Layouts layouts(model, deployed);
    if (layouts.any()) {
        layouts.find(ask_block_size(engine));
    }
}

Value to_plain(const Value& value, const Layout& layout) {
    if (layout.block == 0) {
        return value;
    }
    auto plain = Value::tensor(value.dtype(), plain_shape(value.shape(), layout));
    to_plain(value, layout, plain.mutable_bytes());
    return plain;
}

Shape plain_shape(Shape shape, const Layout& layout) {
    if (layout.block > 0 && layout.channels > 0 && shape.size() > 1) {
        shape[1] = layout.channels;
    }
    return shape;
}

void to_plain(const Value& value, const Layout& layout, std::span<std::byte> plain) {
    const Blocks blocks(value.shape(), layout, value.dtype());
    if (blocks.plain_bytes() != plain.size() || blocks.bytes() != value.bytes().size()) {
        throw Error(Fault::usage, fmt::format("{} does not fit {} bytes in plain order",
                                              value_text(value), plain.size()));
    }
    turn<true>(blocks, plain.data(), const_cast<std::byte*>(value.bytes().data()));
}

void to_blocked(const Value& plain, const Layout& layout, std::span<std::byte> blocked) {
    const auto from = plain.bytes();
    if (layout.block == 0) {
        if (from.size() != blocked.size()) {
            throw Error(Fault::usage, fmt::format("{} bytes do not fit a tensor of {} bytes",
                                                  from.size(), blocked.size()));
        }
        std::memcpy(blocked.data(), from.data(), from.size());
        return;
    }
    auto real = layout;
    real.channels = plain.shape().size() > 1 ? plain.shape()[1] : 0;
    const Blocks blocks(plain.shape(), real, plain.dtype());
    if (blocks.bytes() != blocked.size()) {
        throw Error(Fault::usage, fmt::format("a blocked tensor of {} takes {} bytes, not {}",
                                              value_text(plain), blocks.bytes(), blocked.size()));
    }
    std::fill(blocked.begin(), blocked.end(), std::byte{0});
    turn<false>(blocks, const_cast<std::byte*>(from.data()), blocked.data());
}

}  // namespace trocar
