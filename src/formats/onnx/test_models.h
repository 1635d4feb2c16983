#pragma once

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "formats/onnx/reader.h"
#include "formats/onnx/rope.h"
#include "formats/onnx/schema.h"
#include "trocar/error.h"
#include "trocar/model.h"
#include "util/files.h"
#include "util/test_folder.h"

// Small ONNX messages for tests, field by field.
namespace trocar::onnx::test {

using Names = std::vector<std::string>;

inline Rope join(std::vector<Rope> parts) {
    Rope all;
    for (auto& part : parts) {
        all.append(std::move(part));
    }
    return all;
}

inline Rope text(schema::Number number, std::string_view value) {
    Rope out;
    out.text(number, value);
    return out;
}
inline Rope integer(schema::Number number, std::int64_t value) {
    Rope out;
    out.integer(number, value);
    return out;
}
inline Rope message(schema::Number number, Rope value) {
    Rope out;
    out.message(number, std::move(value));
    return out;
}

inline Rope node(std::string_view type, const Names& inputs, const Names& outputs,
                 std::string_view name = "", std::vector<Rope> attributes = {}) {
    Rope out;
    for (const auto& input : inputs) {
        out.text(schema::node::input, input);
    }
    for (const auto& output : outputs) {
        out.text(schema::node::output, output);
    }
    if (!name.empty()) {
        out.text(schema::node::name, name);
    }
    out.text(schema::node::type, type);
    for (auto& attribute : attributes) {
        out.message(schema::node::attribute, std::move(attribute));
    }
    return message(schema::graph::node, std::move(out));
}

inline Rope attribute(std::string_view name, schema::AttributeKind kind, Rope value) {
    return join({text(schema::attribute::name, name), std::move(value),
                 integer(schema::attribute::kind, static_cast<std::int64_t>(kind))});
}
inline Rope graph_attribute(std::string_view name, Rope graph) {
    return attribute(name, schema::AttributeKind::g,
                     message(schema::attribute::g, std::move(graph)));
}

// A declaration of f32[dims…].
inline Rope declared(std::string_view name, const Shape& dims = {2}) {
    Rope shape;
    for (const auto dim : dims) {
        shape.message(schema::shape::dim, integer(schema::shape::dim_value, dim));
    }
    Rope tensor = join({integer(schema::type::element, 1), message(schema::type::shape, shape)});
    return join({text(schema::value_info::name, name),
                 message(schema::value_info::type, message(schema::type::tensor, tensor))});
}
inline Rope input(std::string_view name, const Shape& dims = {2}) {
    return message(schema::graph::input, declared(name, dims));
}
inline Rope output(std::string_view name, const Shape& dims = {2}) {
    return message(schema::graph::output, declared(name, dims));
}

inline Rope tensor(std::string_view name, DType dtype, const Shape& dims, Rope data) {
    Rope out;
    for (const auto dim : dims) {
        out.integer(schema::tensor::dims, dim);
    }
    out.integer(schema::tensor::dtype, static_cast<int>(dtype));
    out.text(schema::tensor::name, name);
    out.append(std::move(data));
    return out;
}
inline Rope raw(std::string_view bytes) {
    return text(schema::tensor::raw_data, bytes);
}
inline Rope initializer(std::string_view name, const Shape& dims = {2},
                        std::string_view bytes = "abcdefgh") {
    return message(schema::graph::initializer, tensor(name, DType::f32, dims, raw(bytes)));
}

inline Rope external(std::string_view location, std::string_view offset, std::string_view length) {
    Rope out;
    const auto entry = [&](std::string_view key, std::string_view value) {
        if (!value.empty()) {
            out.message(schema::tensor::external, join({text(schema::property::key, key),
                                                        text(schema::property::value, value)}));
        }
    };
    entry("location", location);
    entry("offset", offset);
    entry("length", length);
    out.integer(schema::tensor::location, schema::tensor::location_external);
    return out;
}

inline Rope graph(std::vector<Rope> fields) {
    return join(std::move(fields));
}

inline std::string model(Rope graph, std::vector<Rope> more = {}) {
    Rope out = integer(schema::model::ir_version, 10);
    out.message(schema::model::graph, std::move(graph));
    out.message(schema::model::opset, integer(schema::opset::version, 20));
    out.append(join(std::move(more)));
    return out.str();
}

inline Model read(std::string bytes, const std::filesystem::path& path = "") {
    const auto owner = std::make_shared<const std::string>(std::move(bytes));
    return read_onnx(std::as_bytes(std::span(*owner)), owner, path);
}

// The sentence with which reading fails; empty when it does not.
inline std::string failure(std::string bytes) {
    try {
        read(std::move(bytes), "bad.onnx");
    } catch (const Error& e) {
        return e.fault() == Fault::input ? e.what() : "another fault";
    }
    return {};
}

// x → Relu → a → Add(w) → y
inline std::string small_model(std::vector<Rope> more = {}) {
    std::vector<Rope> fields;
    fields.push_back(node("Relu", {"x"}, {"a"}, "/block/relu/Relu"));
    fields.push_back(node("Add", {"a", "w"}, {"y"}, "add"));
    fields.push_back(text(schema::graph::name, "small"));
    fields.push_back(initializer("w"));
    fields.push_back(input("x"));
    fields.push_back(output("y"));
    fields.push_back(message(schema::graph::value_info, declared("a")));
    for (auto& field : more) {
        fields.push_back(std::move(field));
    }
    return model(graph(std::move(fields)));
}

using Folder = TestFolder;

}  // namespace trocar::onnx::test
