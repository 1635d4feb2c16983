#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "base/json.h"
#include "trocar/compare.h"
#include "trocar/error.h"
#include "trocar/version.h"

namespace trocar {

namespace {

constexpr int schema = 1;
constexpr std::size_t deepest_report = 16;  // twice what is written
constexpr std::array ends = {RunEnd::done, RunEnd::failed,      RunEnd::crashed,
                             RunEnd::hung, RunEnd::over_memory, RunEnd::bad_output};

Json type_json(const Type& type) {
    auto json = Json::object(Json::Order::given);
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
    const auto dtype = parse_dtype(json.at("dtype").string());
    if (!json.contains("shape")) {
        return Type::tensor(dtype.value_or(DType::undefined));
    }
    return Type::tensor(dtype.value_or(DType::undefined), json.at("shape").int64s());
}

Json tensor_json(const TensorComparison& tensor) {
    auto json = Json::object(Json::Order::given);
    json["tensor"] = tensor.tensor;
    json["reference"] = type_json(tensor.reference);
    json["found"] = type_json(tensor.found);
    json["default_rtol"] = tensor.by_default.rtol;
    json["default_atol"] = tensor.by_default.atol;
    if (!tensor.layout.empty()) {
        json["layout"] = tensor.layout;
    }
    if (tensor.difference) {
        json["difference"] = Json::parse_or_throw(to_json(*tensor.difference), Json::Order::given);
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
    tensor.tensor = json.at("tensor").string();
    tensor.reference = type_from(json.at("reference"));
    tensor.found = type_from(json.at("found"));
    tensor.by_default.rtol = json.at("default_rtol").number();
    tensor.by_default.atol = json.at("default_atol").number();
    if (tensor.by_default.rtol < 0 || tensor.by_default.atol < 0) {
        throw Error(Fault::input, fmt::format("'{}' has a tolerance below 0", tensor.tensor));
    }
    tensor.layout = json.string_or("layout", "");
    if (json.contains("difference")) {
        tensor.difference = difference_from_json(json.at("difference").dump());
    } else {
        tensor.verdict = verdict_from(json.at("verdict").string());
        tensor.reason = json.at("reason").string();
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
    auto json = Json::object(Json::Order::given);
    json["trocar_comparison"] = schema;
    json["trocar"] = version();
    json["sides"] = comparison.sides;
    json["complete"] = comparison.complete;
    json["notes"] = comparison.notes;
    auto& layers = json["layers"] = Json::array();
    for (const auto& layer : comparison.layers) {
        layers.push_back(Json::object(Json::Order::given, {{"number", layer.number},
                                                           {"name", layer.name},
                                                           {"type", layer.type},
                                                           {"module", layer.module},
                                                           {"ops", layer.ops}}));
    }
    auto& results = json["results"] = Json::array();
    for (const auto& result : comparison.results) {
        auto one = Json::object(Json::Order::given);
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
    return json.dump(1) + "\n";
}

Comparison comparison_from_json(std::string_view text) {
    try {
        const auto json = Json::parse_or_throw(text, Json::Order::given, deepest_report);
        if (!json.is_object() || !json.contains("trocar_comparison") ||
            json.at("trocar_comparison") != schema) {
            throw Error(Fault::input, "this is no saved comparison of this version");
        }
        Comparison comparison;
        comparison.sides = json.at("sides").strings();
        if (comparison.sides.size() < 2) {
            throw Error(Fault::input, "a comparison has two sides at least");
        }
        comparison.complete = json.at("complete").boolean();
        comparison.notes = json.at("notes").strings();
        for (const auto& one : json.at("layers")) {
            Layer layer;
            const auto* number = one.find("number");
            layer.number = number == nullptr ? comparison.layers.size() : number->uint64();
            layer.name = one.at("name").string();
            layer.type = one.at("type").string();
            layer.module = one.at("module").string();
            layer.ops = one.at("ops").strings();
            comparison.layers.push_back(std::move(layer));
        }
        for (const auto& one : json.at("results")) {
            LayerComparison result;
            result.layer = one.at("layer").uint64();
            result.side = one.at("side").uint64();
            result.set = one.at("set").uint64();
            result.cumulative = one.at("cumulative").boolean();
            result.end = end_from(one.at("end").string());
            result.reason = one.at("reason").string();
            result.seconds = one.at("seconds").number();
            result.reference_seconds = one.at("reference_seconds").number();
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
    } catch (const JsonError& error) {
        throw Error(Fault::input, fmt::format("this is no saved comparison: {}", error.what()));
    }
}

}  // namespace trocar
