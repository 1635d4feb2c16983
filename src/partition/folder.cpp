#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "base/json.h"
#include "lab/files.h"
#include "trocar/error.h"
#include "trocar/partition.h"
#include "trocar/version.h"
#include "util/files.h"
#include "util/sha256.h"

namespace trocar {

namespace {

namespace fs = std::filesystem;

constexpr const char* schema = "trocar.partition/1";
constexpr std::int64_t most_parts = 1'000'000;

Json type_json(const PartValue& value) {
    auto json = Json::object(Json::Order::given);
    json["name"] = value.name;
    json["type"] = type_text(value.type);
    if (value.type.kind == Type::Kind::tensor) {
        json["dtype"] = name(value.type.dtype);
    }
    if (value.shape) {
        json["shape"] = *value.shape;
    }
    if (value.bytes) {
        json["bytes"] = *value.bytes;
    }
    if (!value.sha256.empty()) {
        json["sha256"] = value.sha256;
    }
    return json;
}

// A number from 0 on; 0 where it is missing.
std::uint64_t count_from(const Json& object, const char* key, const JsonPlace& place) {
    const auto& value = place.member(object, key);
    const auto number = value.is_null() ? 0 : place.integer(value, key);
    if (number < 0) {
        place.fail(fmt::format("{} is negative", key));
    }
    return static_cast<std::uint64_t>(number);
}

PartValue value_from(const Json& json, const JsonPlace& place) {
    PartValue value;
    value.name = place.text(json, "name");
    const auto dtype = parse_dtype(place.text(json, "dtype", ""));
    if (const auto& shape = place.list(json, "shape");
        dtype && !place.member(json, "shape").is_null()) {
        Shape dims;
        for (const auto& dim : shape) {
            dims.push_back(place.integer(dim, "a dimension"));
        }
        if (std::any_of(dims.begin(), dims.end(), [](auto dim) { return dim < 0; })) {
            place.fail("a dimension is negative");
        }
        value.shape = dims;
    }
    if (dtype) {
        value.type = Type::tensor(*dtype);
    }
    if (!place.member(json, "bytes").is_null()) {
        value.bytes = count_from(json, "bytes", place);
    }
    value.sha256 = place.text(json, "sha256", "");
    return value;
}

std::vector<std::string> names_from(const Json& object, const char* key, const JsonPlace& place) {
    std::vector<std::string> all;
    for (const auto& one : place.list(object, key)) {
        all.push_back(place.as_text(one, key));
    }
    return all;
}

PartEntry part_from(const Json& json, const JsonPlace& place) {
    PartEntry part;
    part.device = place.text(json, "device", "");
    for (const auto& one : place.list(json, "files")) {
        part.files.push_back(
            {place.text(one, "file"), place.text(one, "sha256"), count_from(one, "bytes", place)});
    }
    if (part.files.empty()) {
        place.fail("a part has no file");
    }
    part.inputs = names_from(json, "inputs", place);
    part.outputs = names_from(json, "outputs", place);
    part.ops = count_from(json, "ops", place);
    part.constant_bytes = count_from(json, "constant_bytes", place);
    if (const auto& cost = place.member(json, "cost"); cost.is_number()) {
        part.cost = cost.number();
    }
    if (!place.member(json, "peak_bytes").is_null()) {
        part.peak_bytes = count_from(json, "peak_bytes", place);
    }
    return part;
}

// What a part reads must be there when it runs.
void check(const PartitionManifest& manifest, const JsonPlace& place) {
    std::set<std::string> known;
    for (const auto& input : manifest.inputs) {
        known.insert(input.name);
    }
    for (std::size_t i = 0; i < manifest.parts.size(); ++i) {
        for (const auto& name : manifest.parts[i].inputs) {
            if (!known.contains(name)) {
                place.fail(
                    fmt::format("part {} reads '{}', which no part before it makes", i, name));
            }
        }
        known.insert(manifest.parts[i].outputs.begin(), manifest.parts[i].outputs.end());
    }
    for (const auto& name : manifest.outputs) {
        if (!known.contains(name)) {
            place.fail(fmt::format("no part makes the output '{}'", name));
        }
    }
}

}  // namespace

std::string partition_json(const PartitionManifest& manifest) {
    auto json = Json::object(Json::Order::given);
    json["schema"] = schema;
    json["trocar"] = version();
    json["model"] = manifest.model;
    json["model_sha256"] = manifest.model_sha256;
    json["how"] = manifest.how;
    if (!manifest.ran.empty()) {
        json["ran"] = manifest.ran;
    }
    json["inputs"] = Json::array();
    for (const auto& value : manifest.inputs) {
        json["inputs"].push_back(type_json(value));
    }
    json["outputs"] = manifest.outputs;
    json["parts"] = Json::array();
    for (std::size_t i = 0; i < manifest.parts.size(); ++i) {
        const auto& part = manifest.parts[i];
        auto one = Json::object(Json::Order::given);
        one["number"] = i;
        one["device"] = part.device;
        one["files"] = Json::array();
        for (const auto& file : part.files) {
            one["files"].push_back(Json::object(
                Json::Order::given,
                {{"file", file.file}, {"sha256", file.sha256}, {"bytes", file.bytes}}));
        }
        one["ops"] = part.ops;
        one["cost"] = part.cost;
        one["constant_bytes"] = part.constant_bytes;
        if (part.peak_bytes) {
            one["peak_bytes"] = *part.peak_bytes;
        }
        one["inputs"] = part.inputs;
        one["outputs"] = part.outputs;
        json["parts"].push_back(std::move(one));
    }
    json["cuts"] = Json::array();
    for (const auto& value : manifest.cuts) {
        auto one = type_json(value);
        one["from"] = value.from;
        one["to"] = value.to;
        json["cuts"].push_back(std::move(one));
    }
    return json.dump(1) + "\n";
}

PartitionManifest partition_from_json(std::string_view text, const fs::path& path) {
    const JsonPlace place(fmt::format("'{}'", path.string()));
    const auto parsed = Json::parse(text);
    if (!parsed || !parsed->is_object()) {
        place.fail("it is no JSON object");
    }
    const auto& json = *parsed;
    if (place.text(json, "schema", "") != schema) {
        place.fail(fmt::format("its schema is not {}", schema));
    }
    PartitionManifest manifest;
    manifest.model = place.text(json, "model", "");
    manifest.model_sha256 = place.text(json, "model_sha256", "");
    manifest.how = place.text(json, "how", "");
    manifest.ran = place.text(json, "ran", "");
    for (const auto& one : place.list(json, "inputs")) {
        manifest.inputs.push_back(value_from(one, place));
    }
    manifest.outputs = names_from(json, "outputs", place);
    for (const auto& one : place.list(json, "parts")) {
        manifest.parts.push_back(
            part_from(one, place.in(fmt::format("part {}", manifest.parts.size()))));
    }
    for (const auto& one : place.list(json, "cuts")) {
        auto value = value_from(one, place);
        const auto number = [&](const Json& from) {
            const auto part = place.integer(from, "a part");
            if (part < 0 ||
                part >= std::min<std::int64_t>(most_parts,
                                               static_cast<std::int64_t>(manifest.parts.size()))) {
                place.fail("a tensor names a part that is not there");
            }
            return static_cast<std::size_t>(part);
        };
        value.from = number(place.member(one, "from"));
        for (const auto& to : place.list(one, "to")) {
            value.to.push_back(number(to));
        }
        manifest.cuts.push_back(std::move(value));
    }
    check(manifest, place);
    return manifest;
}

PartitionManifest read_partition(const fs::path& folder) {
    const auto path = folder / partition_manifest_file;
    std::error_code ignored;
    if (!fs::exists(folder, ignored)) {
        throw Error(Fault::input, fmt::format("there is no folder '{}'", folder.string()));
    }
    if (!fs::is_regular_file(path, ignored)) {
        throw Error(Fault::input,
                    fmt::format("'{}' has no parts of a model: it has no {}", folder.string(),
                                partition_manifest_file),
                    "`trocar partition MODEL FOLDER` writes it");
    }
    return partition_from_json(read_file(path), path);
}

void check_parts(const fs::path& folder, const PartitionManifest& manifest) {
    const auto* again = "`trocar partition` with the model makes the parts again";
    for (std::size_t part = 0; part < manifest.parts.size(); ++part) {
        for (const auto& file : manifest.parts[part].files) {
            const auto path = lab::inside(folder, file.file);
            std::error_code ignored;
            if (!fs::is_regular_file(path, ignored)) {
                throw Error(
                    Fault::input,
                    fmt::format("part {} is not complete: there is no '{}'", part, path.string()),
                    again);
            }
            if (const auto found = sha256_of_file(path); found != file.sha256) {
                throw Error(Fault::input,
                            fmt::format("'{}' of part {} was changed: its SHA-256 is {}…, the "
                                        "manifest has {}…",
                                        path.string(), part, found.substr(0, 12),
                                        file.sha256.substr(0, 12)),
                            again);
            }
        }
    }
}

Model load_part(const fs::path& folder, const PartitionManifest& manifest, std::size_t part) {
    return load(lab::inside(folder, manifest.parts.at(part).files.front().file));
}

PartsRun run_parts(const std::function<Model(std::size_t)>& part, const PartitionManifest& manifest,
                   const std::vector<NamedValue>& inputs, const PartsRunOptions& options) {
    std::map<std::string, Value> values;
    for (const auto& input : inputs) {
        values[input.name] = input.value;
    }
    // Where a value is read last; outputs of the model stay.
    std::map<std::string, std::size_t> last;
    for (std::size_t i = 0; i < manifest.parts.size(); ++i) {
        for (const auto& name : manifest.parts[i].inputs) {
            last[name] = i;
        }
    }
    for (const auto& name : manifest.outputs) {
        last[name] = manifest.parts.size();
    }
    PartsRun run;
    for (std::size_t i = 0; i < manifest.parts.size(); ++i) {
        if (options.starts) {
            options.starts(i);
        }
        const auto model = part(i);
        SessionOptions session_options;
        session_options.compile = options.compile;
        Session session(model, options.engine(manifest.parts[i].device), session_options);
        std::vector<NamedValue> given;
        for (const auto id : model.graph.inputs()) {
            const auto& name = model.graph.tensor(id).name;
            if (const auto at = values.find(name); at != values.end()) {
                given.push_back({name, at->second});
            }
        }
        const auto start = std::chrono::steady_clock::now();
        auto outputs = session.run(given);
        run.seconds.push_back(
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
        given.clear();
        for (auto& output : outputs) {
            if (options.see) {
                options.see(i, output);
            }
            if (last.contains(output.name)) {
                values[output.name] = std::move(output.value);
            }
        }
        std::erase_if(values, [&](const auto& one) {
            const auto at = last.find(one.first);
            return at == last.end() || at->second <= i;
        });
    }
    for (const auto& name : manifest.outputs) {
        const auto at = values.find(name);
        if (at == values.end()) {
            throw Error(Fault::input, fmt::format("no part gave the output '{}'", name));
        }
        run.outputs.push_back({name, at->second});
    }
    return run;
}

Model part_model(const Model& model, const Partition& partition, std::size_t number) {
    const auto& part = partition.parts.at(number);
    auto made = extract_ops(model, part.ops, part.outputs, partition.plan.constants);
    for (const auto id : part.inputs) {
        const auto& tensor = model.graph.tensor(id);
        const auto own = made.graph.find_tensor(tensor.name);
        // An input with a default keeps it.
        if (tensor.is_input && tensor.constant && own) {
            made.graph.set_constant(*own, *tensor.constant);
        }
    }
    return made;
}

}  // namespace trocar
