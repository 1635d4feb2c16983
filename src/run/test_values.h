#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "graph/test_graphs.h"
#include "trocar/model.h"
#include "trocar/value.h"

namespace trocar::testing {

inline Model model_of(Graph graph) {
    Model model;
    model.format = "onnx";
    model.dialect = "onnx";
    model.ir_version = 10;
    model.opsets = {{"", 17}};
    graph.name = "test";
    model.graph = std::move(graph);
    return model;
}

// A vector unless a shape is given.
inline Value floats(const std::vector<float>& values, Shape shape = {}) {
    if (shape.empty()) {
        shape = {static_cast<std::int64_t>(values.size())};
    }
    return Value::copy(DType::f32, std::move(shape), std::as_bytes(std::span(values)));
}

inline std::vector<float> numbers(const Value& value) {
    const auto span = value.as<float>();
    return {span.begin(), span.end()};
}

// A vector of any length.
inline Type vector_type() {
    auto type = Type::tensor(DType::f32);
    type.dims = {{-1, "n"}};
    return type;
}

// y = -2·relu(x) + relu(x).
inline Model residual_model() {
    auto graph = residual();
    graph.set_type(graph.inputs()[0], vector_type());
    return model_of(std::move(graph));
}

}  // namespace trocar::testing
