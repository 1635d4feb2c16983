#include "lab/files.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "trocar/error.h"
#include "trocar/format.h"
#include "trocar/version.h"
#include "util/files.h"
#include "util/sha256.h"
#include "util/text.h"

namespace trocar::lab {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string text_of(const Json& json) {
    return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json value_json(const LabValue& value) {
    Json json;
    json["name"] = value.name;
    json["type"] = type_text(value.type);
    if (value.type.kind == Type::Kind::tensor) {
        json["dtype"] = name(value.type.dtype);
        if (const auto shape = value.type.shape()) {
            json["shape"] = *shape;
        }
    }
    json["files"] = value.files;
    json["sha256"] = value.sha256;
    return json;
}

LabValue value_from(const Json& json) {
    LabValue value;
    value.name = json.at("name").get<std::string>();
    if (json.contains("dtype")) {
        const auto dtype =
            parse_dtype(json.at("dtype").get<std::string>()).value_or(DType::undefined);
        value.type = json.contains("shape") ? Type::tensor(dtype, json.at("shape").get<Shape>())
                                            : Type::tensor(dtype);
    }
    value.files = json.at("files").get<std::map<std::string, std::string>>();
    value.sha256 = json.at("sha256").get<std::map<std::string, std::string>>();
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

// What the parser has to say, without its own name and number for it.
std::string plain_words(const Json::exception& error) {
    const std::string text = error.what();
    const auto end = text.find("] ");
    return end == std::string::npos ? text : text.substr(end + 2);
}

template <class Work>
auto parsed(std::string_view text, const fs::path& path, const Work& work) {
    try {
        return work(Json::parse(text));
    } catch (const Json::exception& error) {
        throw Error(Fault::input, fmt::format("'{}' is not what `trocar split` wrote: {}",
                                              path.string(), plain_words(error)));
    }
}

constexpr std::array ends = {RunEnd::done, RunEnd::failed,      RunEnd::crashed,
                             RunEnd::hung, RunEnd::over_memory, RunEnd::bad_output};

}  // namespace

std::string lab_json(const Lab& lab, const SplitOptions& options) {
    Json json;
    json["trocar_lab"] = schema;
    json["trocar"] = version();
    json["complete"] = lab.complete;
    json["model"] = {{"path", lab.model}, {"sha256", lab.model_sha256}};
    json["golden"] = {{"engine", lab.engine}, {"seed", lab.seed}};
    json["by"] = options.by;
    json["tensors"] = options.kinds;
    auto& layers = json["layers"] = Json::array();
    for (const auto& layer : lab.layers) {
        Json one;
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
    Json json;
    json["trocar_layer"] = schema;
    json["number"] = layer.number;
    json["name"] = layer.name;
    json["type"] = layer.type;
    json["module"] = layer.module;
    json["ops"] = layer.ops;
    json["of"] = {{"model", lab.model}, {"sha256", lab.model_sha256}};
    json["golden"] = {{"engine", lab.engine}, {"seed", lab.seed}};
    json["model"] = {{"file", layer.model_file}, {"sha256", layer.model_sha256}};
    auto& tolerances = json["tolerance"] = Json::object();
    for (const auto& [output, tolerance] : layer.tolerances) {
        tolerances[output] = {{"rtol", tolerance.rtol}, {"atol", tolerance.atol}};
    }
    auto& samples = json["samples"] = Json::array();
    for (const auto& sample : layer.samples) {
        samples.push_back(
            {{"inputs", values_json(sample.inputs)}, {"outputs", values_json(sample.outputs)}});
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
        layer.model_sha256 = json.at("model").at("sha256").get<std::string>();
        for (const auto& [output, tolerance] : json.at("tolerance").items()) {
            layer.tolerances[output] = {.rtol = tolerance.at("rtol").get<double>(),
                                        .atol = tolerance.at("atol").get<double>()};
            if (layer.tolerances[output].rtol < 0 || layer.tolerances[output].atol < 0) {
                throw Error(Fault::input,
                            fmt::format("'{}' has a tolerance below 0", path.string()));
            }
        }
        for (const auto& sample : json.at("samples")) {
            layer.samples.push_back(
                {values_from(sample.at("inputs")), values_from(sample.at("outputs"))});
        }
        layer.occurrences = json.at("occurrences").get<std::vector<std::string>>();
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
    Json json;
    json["trocar_result"] = schema;
    json["end"] = name(result.end);
    json["reason"] = result.reason;
    json["side"] = result.side;
    json["model_sha256"] = result.model_sha256;
    json["seconds"] = result.seconds;
    json["outputs"] = result.outputs;
    return text_of(json);
}

StoredResult result_from_json(std::string_view text, const fs::path& path) {
    return parsed(text, path, [&](const Json& json) {
        StoredResult result;
        const auto end = json.at("end").get<std::string>();
        for (const auto one : ends) {
            result.end = end == name(one) ? one : result.end;
        }
        result.reason = json.at("reason").get<std::string>();
        result.side = json.at("side").get<std::string>();
        result.model_sha256 = json.at("model_sha256").get<std::string>();
        result.seconds = json.at("seconds").get<double>();
        result.outputs = json.at("outputs").get<std::vector<std::vector<std::string>>>();
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
        lab.complete = json.at("complete").get<bool>();
        lab.model = json.at("model").at("path").get<std::string>();
        lab.model_sha256 = json.at("model").at("sha256").get<std::string>();
        lab.engine = json.at("golden").at("engine").get<std::string>();
        lab.seed = json.at("golden").at("seed").get<std::uint64_t>();
        for (const auto& one : json.at("layers")) {
            LabLayer layer;
            layer.number = one.at("number").get<std::size_t>();
            layer.folder = one.at("folder").get<std::string>();
            (void)inside(folder, layer.folder);
            layer.name = one.at("name").get<std::string>();
            layer.type = one.at("type").get<std::string>();
            layer.module = one.at("module").get<std::string>();
            layer.ops = one.at("ops").get<std::vector<std::string>>();
            layer.error = one.value("error", "");
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
