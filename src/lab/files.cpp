#include "lab/files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/json.h"
#include "trocar/error.h"
#include "trocar/format.h"
#include "trocar/version.h"
#include "util/files.h"
#include "util/sha256.h"
#include "util/text.h"

namespace trocar::lab {

namespace {

namespace fs = std::filesystem;

// Members stand in a file in the order in which they are added.
Json object(std::initializer_list<JsonMember> members = {}) {
    return Json::object(Json::Order::given, members);
}

std::string text_of(const Json& json) {
    return json.dump(1) + "\n";
}

Json texts_json(const std::map<std::string, std::string>& texts) {
    auto json = object();
    for (const auto& [key, text] : texts) {
        json[key] = text;
    }
    return json;
}

std::map<std::string, std::string> texts_from(const Json& json) {
    std::map<std::string, std::string> texts;
    for (const auto& [key, text] : json.items()) {
        texts.emplace(key, text.string());
    }
    return texts;
}

Json value_json(const LabValue& value) {
    auto json = object();
    json["name"] = value.name;
    json["type"] = type_text(value.type);
    if (value.type.kind == Type::Kind::tensor) {
        json["dtype"] = name(value.type.dtype);
        if (const auto shape = value.type.shape()) {
            json["shape"] = *shape;
        }
    }
    json["files"] = texts_json(value.files);
    json["sha256"] = texts_json(value.sha256);
    return json;
}

LabValue value_from(const Json& json) {
    LabValue value;
    value.name = json.at("name").string();
    if (json.contains("dtype")) {
        const auto dtype = parse_dtype(json.at("dtype").string()).value_or(DType::undefined);
        value.type = json.contains("shape") ? Type::tensor(dtype, json.at("shape").int64s())
                                            : Type::tensor(dtype);
    }
    value.files = texts_from(json.at("files"));
    value.sha256 = texts_from(json.at("sha256"));
    return value;
}

Json values_json(const std::vector<LabValue>& values) {
    Json list = Json::array();
    for (const auto& value : values) {
        list.push_back(value_json(value));
    }
    return list;
}

std::vector<LabValue> values_from(const Json& json) {
    std::vector<LabValue> values;
    for (const auto& one : json) {
        values.push_back(value_from(one));
    }
    return values;
}

template <class Work>
auto parsed(std::string_view text, const fs::path& path, const Work& work) {
    try {
        return work(Json::parse_or_throw(text, Json::Order::given));
    } catch (const JsonError& error) {
        throw Error(Fault::input, fmt::format("'{}' is not what `trocar split` wrote: {}",
                                              path.string(), error.what()));
    }
}

constexpr std::array ends = {RunEnd::done, RunEnd::failed,      RunEnd::crashed,
                             RunEnd::hung, RunEnd::over_memory, RunEnd::bad_output};

}  // namespace

std::string lab_json(const Lab& lab, const SplitOptions& options) {
    auto json = object();
    json["trocar_lab"] = schema;
    json["trocar"] = version();
    json["complete"] = lab.complete;
    json["model"] = object({{"path", lab.model}, {"sha256", lab.model_sha256}});
    json["golden"] = object({{"engine", lab.engine}, {"seed", lab.seed}});
    json["by"] = options.by;
    json["tensors"] = options.kinds;
    auto& layers = json["layers"] = Json::array();
    for (const auto& layer : lab.layers) {
        auto one = object();
        one["number"] = layer.number;
        one["folder"] = layer.folder;
        one["name"] = layer.name;
        one["type"] = layer.type;
        one["module"] = layer.module;
        one["ops"] = layer.ops;
        if (!layer.error.empty()) {
            one["error"] = layer.error;
        }
        if (!layer.occurrences.empty()) {
            one["occurrences"] = layer.occurrences;
        }
        layers.push_back(std::move(one));
    }
    return text_of(json);
}

std::string model_file(std::string_view format, std::string_view stem) {
    const auto* found = find_format(format);
    const auto suffix = found != nullptr && found->encode != nullptr
                            ? split(found->suffixes, ' ').front()
                            : ".onnx";
    return fmt::format("{}{}", stem, suffix);
}

std::string format_of(const Model& model) {
    if (const auto* own = find_format(model.format); own != nullptr && own->encode != nullptr) {
        return own->name;
    }
    for (const auto* format : formats()) {
        if (format->encode != nullptr && format->dialect == model.dialect) {
            return format->name;
        }
    }
    return model.dialect;
}

fs::path model_in(const fs::path& folder) {
    for (const auto* format : formats()) {
        std::error_code ignored;
        if (format->encode != nullptr && fs::exists(folder / model_file(format->name), ignored)) {
            return folder / model_file(format->name);
        }
    }
    return folder / model_file("onnx");
}

std::string layer_json(const Lab& lab, const LabLayer& layer) {
    auto json = object();
    json["trocar_layer"] = schema;
    json["number"] = layer.number;
    json["name"] = layer.name;
    json["type"] = layer.type;
    json["module"] = layer.module;
    json["ops"] = layer.ops;
    json["of"] = object({{"model", lab.model}, {"sha256", lab.model_sha256}});
    json["golden"] = object({{"engine", lab.engine}, {"seed", lab.seed}});
    json["model"] = object({{"file", layer.model_file}, {"sha256", layer.model_sha256}});
    auto& tolerances = json["tolerance"] = object();
    for (const auto& [output, tolerance] : layer.tolerances) {
        tolerances[output] = object({{"rtol", tolerance.rtol}, {"atol", tolerance.atol}});
    }
    auto& samples = json["samples"] = Json::array();
    for (const auto& sample : layer.samples) {
        samples.push_back(object(
            {{"inputs", values_json(sample.inputs)}, {"outputs", values_json(sample.outputs)}}));
    }
    json["occurrences"] = layer.occurrences;
    return text_of(json);
}

void layer_from_json(std::string_view text, const fs::path& path, LabLayer& layer) {
    parsed(text, path, [&](const Json& json) {
        if (!json.contains("trocar_layer") || json.at("trocar_layer") != schema) {
            throw Error(Fault::input,
                        fmt::format("'{}' is no layer of a lab of this version", path.string()));
        }
        layer.model_sha256 = json.at("model").at("sha256").string();
        for (const auto& [output, tolerance] : json.at("tolerance").items()) {
            layer.tolerances[output] = {.rtol = tolerance.at("rtol").number(),
                                        .atol = tolerance.at("atol").number()};
            if (layer.tolerances[output].rtol < 0 || layer.tolerances[output].atol < 0) {
                throw Error(Fault::input,
                            fmt::format("'{}' has a tolerance below 0", path.string()));
            }
        }
        for (const auto& sample : json.at("samples")) {
            layer.samples.push_back(
                {values_from(sample.at("inputs")), values_from(sample.at("outputs"))});
        }
        layer.occurrences = json.at("occurrences").strings();
        return 0;
    });
}

void read_layer(const fs::path& folder, LabLayer& layer) {
    const auto path = folder / manifest_file;
    layer_from_json(read_file(path), path, layer);
}

fs::path inside(const fs::path& folder, const std::string& name) {
    const fs::path path(name);
    if (name.empty() || path.is_absolute() ||
        std::any_of(path.begin(), path.end(), [](const auto& step) { return step == ".."; })) {
        throw Error(Fault::input,
                    fmt::format("a manifest in '{}' names the file '{}', which is outside of it",
                                folder.string(), name));
    }
    return folder / path;
}

Value load_elements(const fs::path& path, const Type& type) {
    const auto shape = type.shape();
    if (!shape || bits(type.dtype) == 0) {
        throw Error(Fault::input,
                    fmt::format("'{}' holds raw elements, and nothing says of which type and shape",
                                path.filename().string()));
    }
    const auto text = read_file(path);
    const auto size = byte_size(type.dtype, element_count(*shape));
    if (text.size() != size) {  // before memory is taken for it
        throw Error(Fault::input,
                    fmt::format("'{}' has {} bytes instead of {} for {}", path.filename().string(),
                                text.size(), size, type_text(type)));
    }
    return Value::copy(type.dtype, *shape, std::as_bytes(std::span(text)));
}

Value load_value(const fs::path& layer, const LabValue& value) {
    std::string missing;
    for (const auto* kind : {"npy", "pb", "bin"}) {
        const auto found = value.files.find(kind);
        if (found == value.files.end()) {
            continue;
        }
        const auto path = inside(layer, found->second);
        std::error_code ignored;
        if (!fs::exists(path, ignored)) {
            missing = path.string();
            continue;
        }
        const auto hash = value.sha256.find(kind);
        if (hash != value.sha256.end() && sha256_of_file(path) != hash->second) {
            throw Error(Fault::input, fmt::format("'{}' is not what was written: its hash differs",
                                                  path.string()));
        }
        if (std::string_view(kind) == "bin") {
            return load_elements(path, value.type);
        }
        auto values = load_values(path);
        if (values.size() == 1) {
            return fit_optional(values.front().value, value.type);
        }
        throw Error(Fault::input, fmt::format("'{}' does not hold one value", path.string()));
    }
    throw Error(Fault::input, missing.empty() ? fmt::format("no file holds '{}'", value.name)
                                              : fmt::format("'{}' is missing", missing));
}

fs::path result_path(const Lab& lab, const LabLayer& layer, const std::string& name,
                     bool cumulative) {
    const auto folder = inside(lab.folder, layer.folder) / results_folder / name;
    return cumulative ? folder / "cumulative" : folder / "isolated";
}

std::string result_json(const StoredResult& result) {
    auto json = object();
    json["trocar_result"] = schema;
    json["end"] = name(result.end);
    json["reason"] = result.reason;
    json["side"] = result.side;
    json["model_sha256"] = result.model_sha256;
    json["seconds"] = result.seconds;
    json["outputs"] = Json::array_of(result.outputs);
    return text_of(json);
}

StoredResult result_from_json(std::string_view text, const fs::path& path) {
    return parsed(text, path, [&](const Json& json) {
        StoredResult result;
        const auto end = json.at("end").string();
        for (const auto one : ends) {
            result.end = end == name(one) ? one : result.end;
        }
        result.reason = json.at("reason").string();
        result.side = json.at("side").string();
        result.model_sha256 = json.at("model_sha256").string();
        result.seconds = json.at("seconds").number();
        for (const auto& files : json.at("outputs")) {
            result.outputs.push_back(files.strings());
        }
        return result;
    });
}

std::optional<StoredResult> read_result(const fs::path& folder) {
    const auto path = folder / result_file;
    std::error_code ignored;
    if (!fs::exists(path, ignored)) {
        return std::nullopt;
    }
    try {
        return result_from_json(read_file(path), path);
    } catch (const Error&) {
        return std::nullopt;  // cut short: it is run again
    }
}

Lab lab_from_json(std::string_view text, const fs::path& path) {
    return parsed(text, path, [&](const Json& json) {
        const auto folder = path.parent_path();
        if (!json.contains("trocar_lab") || json.at("trocar_lab") != schema) {
            throw Error(Fault::input,
                        fmt::format("'{}' is no lab of this version", folder.string()));
        }
        Lab lab;
        lab.folder = folder;
        lab.complete = json.at("complete").boolean();
        lab.model = json.at("model").at("path").string();
        lab.model_sha256 = json.at("model").at("sha256").string();
        lab.engine = json.at("golden").at("engine").string();
        lab.seed = json.at("golden").at("seed").uint64();
        for (const auto& one : json.at("layers")) {
            LabLayer layer;
            layer.number = one.at("number").uint64();
            layer.folder = one.at("folder").string();
            (void)inside(folder, layer.folder);
            layer.name = one.at("name").string();
            layer.type = one.at("type").string();
            layer.module = one.at("module").string();
            layer.ops = one.at("ops").strings();
            layer.error = one.string_or("error", "");
            lab.layers.push_back(std::move(layer));
        }
        return lab;
    });
}

}  // namespace trocar::lab

namespace trocar {

Lab read_lab(const std::filesystem::path& folder) {
    const auto path = folder / lab::manifest_file;
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) {
        throw Error(Fault::input,
                    fmt::format("'{}' is no lab: it has no manifest", folder.string()),
                    "`trocar split MODEL FOLDER` makes one");
    }
    auto read = lab::lab_from_json(read_file(path), path);
    read.folder = folder;
    for (auto& layer : read.layers) {
        if (!layer.error.empty()) {
            continue;
        }
        try {
            lab::read_layer(lab::inside(folder, layer.folder), layer);
        } catch (const Error& error) {
            layer.error = error.what();
        }
    }
    return read;
}

}  // namespace trocar
