#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "trocar/compare.h"
#include "trocar/error.h"
#include "trocar/version.h"

namespace trocar {

namespace {

using Json = nlohmann::ordered_json;
constexpr int schema = 1;
constexpr int deepest = 16;  // twice what is written
constexpr std::array ends = {RunEnd::done, RunEnd::failed,      RunEnd::crashed,
                             RunEnd::hung, RunEnd::over_memory, RunEnd::bad_output};

Json type_json(const Type& type) {
    Json json;
    json["text"] = type_text(type);
    if (type.kind == Type::Kind::tensor) {
        json["dtype"] = name(type.dtype);
        if (const auto shape = type.shape()) {
            json["shape"] = *shape;
        }
    }
    return json;
}

Type type_from(const Json& json) {
    if (!json.contains("dtype")) {
        return {};
    }
    const auto dtype = parse_dtype(json.at("dtype").get<std::string>());
    if (!json.contains("shape")) {
        return Type::tensor(dtype.value_or(DType::undefined));
    }
    return Type::tensor(dtype.value_or(DType::undefined), json.at("shape").get<Shape>());
}

Json tensor_json(const TensorComparison& tensor) {
    Json json;
    json["tensor"] = tensor.tensor;
    json["reference"] = type_json(tensor.reference);
    json["found"] = type_json(tensor.found);
    json["default_rtol"] = tensor.by_default.rtol;
    json["default_atol"] = tensor.by_default.atol;
    if (!tensor.layout.empty()) {
        json["layout"] = tensor.layout;
    }
    if (tensor.difference) {
        json["difference"] = Json::parse(to_json(*tensor.difference));
    } else {
        json["verdict"] = name(tensor.verdict);
        json["reason"] = tensor.reason;
    }
    return json;
}

Verdict verdict_from(const std::string& text) {
    for (const auto verdict :
         {Verdict::pass, Verdict::warn, Verdict::fail, Verdict::incomparable}) {
        if (text == name(verdict)) {
            return verdict;
        }
    }
    throw Error(Fault::input, fmt::format("'{}' is no verdict", text));
}

TensorComparison tensor_from(const Json& json) {
    TensorComparison tensor;
    tensor.tensor = json.at("tensor").get<std::string>();
    tensor.reference = type_from(json.at("reference"));
    tensor.found = type_from(json.at("found"));
    tensor.by_default.rtol = json.at("default_rtol").get<double>();
    tensor.by_default.atol = json.at("default_atol").get<double>();
    if (tensor.by_default.rtol < 0 || tensor.by_default.atol < 0) {
        throw Error(Fault::input, fmt::format("'{}' has a tolerance below 0", tensor.tensor));
    }
    tensor.layout = json.value("layout", "");
    if (json.contains("difference")) {
        tensor.difference = difference_from_json(json.at("difference").dump());
    } else {
        tensor.verdict = verdict_from(json.at("verdict").get<std::string>());
        tensor.reason = json.at("reason").get<std::string>();
        tensor.factor =
            tensor.verdict == Verdict::fail ? std::numeric_limits<double>::infinity() : 0;
    }
    return tensor;
}

RunEnd end_from(const std::string& text) {
    for (const auto end : ends) {
        if (text == name(end)) {
            return end;
        }
    }
    throw Error(Fault::input, fmt::format("'{}' is no end of a run", text));
}

}  // namespace

std::string to_json(const Comparison& comparison) {
    Json json;
    json["trocar_comparison"] = schema;
    json["trocar"] = version();
    json["sides"] = comparison.sides;
    json["complete"] = comparison.complete;
    json["notes"] = comparison.notes;
    auto& layers = json["layers"] = Json::array();
    for (const auto& layer : comparison.layers) {
        layers.push_back({{"number", layer.number},
                          {"name", layer.name},
                          {"type", layer.type},
                          {"module", layer.module},
                          {"ops", layer.ops}});
    }
    auto& results = json["results"] = Json::array();
    for (const auto& result : comparison.results) {
        Json one;
        one["layer"] = result.layer;
        one["side"] = result.side;
        one["set"] = result.set;
        one["cumulative"] = result.cumulative;
        one["end"] = name(result.end);
        one["reason"] = result.reason;
        one["seconds"] = result.seconds;
        one["reference_seconds"] = result.reference_seconds;
        auto& tensors = one["tensors"] = Json::array();
        for (const auto& tensor : result.tensors) {
            tensors.push_back(tensor_json(tensor));
        }
        results.push_back(std::move(one));
    }
    return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Comparison comparison_from_json(std::string_view text) {
    try {
        const auto json = Json::parse(text, [](int depth, Json::parse_event_t, const Json&) {
            if (depth > deepest) {
                throw Error(Fault::input, "this is no saved comparison: it is nested too deep");
            }
            return true;
        });
        if (!json.is_object() || !json.contains("trocar_comparison") ||
            json.at("trocar_comparison") != schema) {
            throw Error(Fault::input, "this is no saved comparison of this version");
        }
        Comparison comparison;
        comparison.sides = json.at("sides").get<std::vector<std::string>>();
        if (comparison.sides.size() < 2) {
            throw Error(Fault::input, "a comparison has two sides at least");
        }
        comparison.complete = json.at("complete").get<bool>();
        comparison.notes = json.at("notes").get<std::vector<std::string>>();
        for (const auto& one : json.at("layers")) {
            Layer layer;
            layer.number = one.value("number", comparison.layers.size());
            layer.name = one.at("name").get<std::string>();
            layer.type = one.at("type").get<std::string>();
            layer.module = one.at("module").get<std::string>();
            layer.ops = one.at("ops").get<std::vector<std::string>>();
            comparison.layers.push_back(std::move(layer));
        }
        for (const auto& one : json.at("results")) {
            LayerComparison result;
            result.layer = one.at("layer").get<std::size_t>();
            result.side = one.at("side").get<std::size_t>();
            result.set = one.at("set").get<std::size_t>();
            result.cumulative = one.at("cumulative").get<bool>();
            result.end = end_from(one.at("end").get<std::string>());
            result.reason = one.at("reason").get<std::string>();
            result.seconds = one.at("seconds").get<double>();
            result.reference_seconds = one.at("reference_seconds").get<double>();
            for (const auto& tensor : one.at("tensors")) {
                result.tensors.push_back(tensor_from(tensor));
            }
            if (result.layer >= comparison.layers.size() || result.side == 0 ||
                result.side >= comparison.sides.size()) {
                throw Error(Fault::input, "it speaks of a layer or a side that it does not have");
            }
            comparison.results.push_back(std::move(result));
        }
        return comparison;
    } catch (const Json::exception& error) {
        throw Error(Fault::input, fmt::format("this is no saved comparison: {}", error.what()));
    }
}

}  // namespace trocar
