#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/tflite/reader.h"
#include "formats/tflite/sparsity.h"
#include "formats/tflite/writer.h"
#include "trocar/model.h"

// Small models for tests, built in memory.
namespace trocar::tflite::test {

inline Type floats(const Shape& shape) {
    return Type::tensor(DType::f32, shape);
}

inline Attribute attribute(std::string name, Attribute::Value value) {
    return {.name = std::move(name), .value = std::move(value), .reference = {}, .source = {}};
}

inline Model empty_model() {
    Model model;
    model.format = "tflite";
    model.dialect = "tflite";
    model.ir_version = 3;
    model.doc = "made for a test";
    model.graph.name = "main";
    return model;
}

// The model as it is read back from the bytes that stand for it.
inline Model reread(const Model& model) {
    auto bytes = std::make_shared<std::string>(rebuild(model));
    return read_bytes(std::as_bytes(std::span(*bytes)), bytes, {});
}

// y = RELU(x + x), with four elements.
inline Model add_model() {
    auto model = empty_model();
    auto& g = model.graph;
    const auto x = g.add_input("x", floats({1, 4}));
    const auto y = g.add_tensor("y", floats({1, 4}));
    g.append({.type = "ADD",
              .inputs = {x, x},
              .outputs = {y},
              .attributes = {attribute("fused_activation_function", std::string("RELU")),
                             attribute("pot_scale_int16", std::int64_t{0})}});
    g.set_outputs({y});
    return model;
}

inline std::shared_ptr<const Quantization> quantized(std::vector<float> scales,
                                                     std::vector<std::int64_t> zeros,
                                                     int axis = 0) {
    auto made = std::make_shared<Quantization>();
    made->scales = std::move(scales);
    made->zero_points = std::move(zeros);
    made->axis = axis;
    return made;
}

// A convolution in 8 bits whose two output channels have scales of their own.
inline Model quantized_conv() {
    auto model = empty_model();
    auto& g = model.graph;
    const auto x = g.add_input("x", Type::tensor(DType::i8, Shape{1, 3, 3, 2}));
    std::vector<std::int8_t> numbers(2 * 2 * 2 * 2);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        numbers[i] = static_cast<std::int8_t>(static_cast<int>(i) * 5 - 40);
    }
    const auto w = g.add_constant("w", Constant::of(DType::i8, {2, 2, 2, 2}, numbers));
    const auto b =
        g.add_constant("b", Constant::of(DType::i32, {2}, std::vector<std::int32_t>{7, -9}));
    const auto y = g.add_tensor("y", Type::tensor(DType::i8, Shape{1, 2, 2, 2}));
    g.append({.type = "CONV_2D",
              .inputs = {x, w, b},
              .outputs = {y},
              .attributes = {attribute("padding", std::string("VALID")),
                             attribute("stride_w", std::int64_t{1}),
                             attribute("stride_h", std::int64_t{1})},
              .metadata = {{"version", "3"}}});
    g.set_quantization(x, quantized({0.5F}, {-3}));
    g.set_quantization(w, quantized({0.25F, 0.125F}, {0, 0}));
    g.set_quantization(b, quantized({0.125F, 0.0625F}, {0, 0}));
    g.set_quantization(y, quantized({2.0F}, {4}));
    g.set_outputs({y});
    return model;
}

// A graph of its own: y = x · x, or y = x + x.
inline std::shared_ptr<Graph> body(const std::string& type, const std::string& name) {
    auto graph = std::make_shared<Graph>();
    graph->name = name;
    const auto x = graph->add_input("in", floats({1, 4}));
    const auto y = graph->add_tensor("out", floats({1, 4}));
    graph->append({.type = type,
                   .inputs = {x, x},
                   .outputs = {y},
                   .attributes = {attribute("fused_activation_function", std::string("NONE"))}});
    graph->set_outputs({y});
    return graph;
}

// y = c ? x · x : x + x.
inline Model branching() {
    auto model = empty_model();
    auto& g = model.graph;
    const auto c = g.add_input("c", Type::tensor(DType::boolean, Shape{}));
    const auto x = g.add_input("x", floats({1, 4}));
    const auto y = g.add_tensor("y", floats({1, 4}));
    g.append({.type = "IF",
              .inputs = {c, x},
              .outputs = {y},
              .attributes = {attribute("then_subgraph", body("MUL", "then")),
                             attribute("else_subgraph", body("ADD", "else"))}});
    g.set_outputs({y});
    return model;
}

// Doubles x while its first dimension's number is below a limit: i counts.
inline Model looping() {
    auto model = empty_model();
    auto& g = model.graph;
    const auto integers = [](const char* name, Graph& graph) {
        return graph.add_input(name, Type::tensor(DType::i32, Shape{1}));
    };
    const auto one = Constant::of(DType::i32, {1}, std::vector<std::int32_t>{1});
    auto cond = std::make_shared<Graph>();
    cond->name = "cond";
    {
        const auto i = integers("i", *cond);
        cond->add_input("x", floats({1, 4}));
        const auto limit = cond->add_constant(
            "limit", Constant::of(DType::i32, {1}, std::vector<std::int32_t>{3}));
        const auto go = cond->add_tensor("go", Type::tensor(DType::boolean, Shape{1}));
        cond->append({.type = "LESS", .inputs = {i, limit}, .outputs = {go}});
        cond->set_outputs({go});
    }
    auto step = std::make_shared<Graph>();
    step->name = "step";
    {
        const auto i = integers("i", *step);
        const auto x = step->add_input("x", floats({1, 4}));
        const auto by = step->add_constant("one", one);
        const auto next = step->add_tensor("next", Type::tensor(DType::i32, Shape{1}));
        const auto twice = step->add_tensor("twice", floats({1, 4}));
        const auto none = attribute("fused_activation_function", std::string("NONE"));
        step->append({.type = "ADD", .inputs = {i, by}, .outputs = {next}, .attributes = {none}});
        step->append({.type = "ADD", .inputs = {x, x}, .outputs = {twice}, .attributes = {none}});
        step->set_outputs({next, twice});
    }
    const auto i = integers("i", g);
    const auto x = g.add_input("x", floats({1, 4}));
    const auto last = g.add_tensor("last", Type::tensor(DType::i32, Shape{1}));
    const auto y = g.add_tensor("y", floats({1, 4}));
    g.append({.type = "WHILE",
              .inputs = {i, x},
              .outputs = {last, y},
              .attributes = {attribute("cond_subgraph", cond), attribute("body_subgraph", step)}});
    g.set_outputs({last, y});
    return model;
}

// y = DENSIFY(w) · x with a 4 × 4 matrix in blocks of 1 × 2, a quarter of which is stored.
inline Sparsity block_sparsity() {
    Sparsity how;
    how.order = {0, 1, 2};
    how.block_map = {1};
    how.levels.resize(3);
    how.levels[0].size = 4;
    how.levels[1].listed = true;
    how.levels[1].segments = {0, 1, 1, 2, 2};
    how.levels[1].places = {1, 0};
    how.levels[1].segment_width = 1;
    how.levels[1].place_width = 1;
    how.levels[2].size = 2;
    return how;
}
inline std::vector<float> sparse_values() {
    return {1, 2, 3, 4};
}
inline std::vector<float> dense_values() {
    return {0, 0, 1, 2, 0, 0, 0, 0, 3, 4, 0, 0, 0, 0, 0, 0};
}
inline Model sparse_model() {
    auto model = empty_model();
    auto& g = model.graph;
    const auto x = g.add_input("x", floats({1, 4}));
    auto values = std::make_shared<std::vector<float>>(sparse_values());
    const auto bytes = std::as_bytes(std::span(*values));
    const auto w =
        g.add_constant("w", sparse_constant(block_sparsity(), DType::f32, {4, 4}, bytes, values));
    const auto dense = g.add_tensor("dense", floats({4, 4}));
    const auto y = g.add_tensor("y", floats({1, 4}));
    g.append({.type = "DENSIFY", .inputs = {w}, .outputs = {dense}});
    g.append({.type = "FULLY_CONNECTED",
              .inputs = {x, dense, TensorId::none},
              .outputs = {y},
              .attributes = {attribute("fused_activation_function", std::string("NONE"))}});
    g.set_outputs({y});
    return model;
}

// An op that no runtime has, with options of its own.
inline Model custom_model() {
    auto model = empty_model();
    auto& g = model.graph;
    const auto x = g.add_input("x", floats({1, 4}));
    const auto y = g.add_tensor("y", floats({1, 4}));
    // {"a": 7} as a flexbuffer.
    const std::vector<std::uint8_t> options = {'a', 0, 1, 3, 1, 1, 1, 7, 4, 2, 36, 1};
    g.append({.type = "Mine",
              .domain = "custom",
              .inputs = {x},
              .outputs = {y},
              .attributes = {attribute("custom_options", Constant::of(DType::u8, {12}, options))}});
    g.set_outputs({y});
    return model;
}

// Texts as a constant, behind which nothing is computed.
inline Model string_model() {
    auto model = empty_model();
    auto& g = model.graph;
    const auto i = g.add_input("i", Type::tensor(DType::i32, Shape{1}));
    const auto words = g.add_constant("words", Constant::strings({3}, {"one", "", "three"}));
    const auto y = g.add_tensor("y", Type::tensor(DType::string, Shape{1}));
    g.append({.type = "GATHER",
              .inputs = {words, i},
              .outputs = {y},
              .attributes = {attribute("axis", std::int64_t{0})}});
    g.set_outputs({y});
    return model;
}

// Two entry points: "plain" into the graph and "other" into a function.
inline Model two_signatures() {
    auto model = add_model();
    auto& g = model.graph;
    auto other = std::make_shared<Function>();
    other->domain = "subgraph";
    other->name = "other";
    other->body = body("MUL", "other")->clone();
    model.signatures = {{.name = "plain",
                         .function = Signature::main_graph,
                         .inputs = {{"left", g.inputs()[0]}},
                         .outputs = {{"sum", g.outputs()[0]}}},
                        {.name = "other",
                         .function = 0,
                         .inputs = {{"left", other->body.inputs()[0]}},
                         .outputs = {{"product", other->body.outputs()[0]}}}};
    model.functions.push_back(std::move(other));
    model.metadata = {{"min_runtime_version", std::string("1.5.0\0\0", 7)}};
    return model;
}

}  // namespace trocar::tflite::test
