#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/json.h"
#include "lab/encode_part.h"
#include "lab/files.h"
#include "lab/signature.h"
#include "lab/views.h"
#include "trocar/error.h"
#include "trocar/format.h"
#include "trocar/lab.h"
#include "trocar/statistics.h"
#include "util/file_stem.h"
#include "util/files.h"
#include "util/sha256.h"

namespace trocar {

namespace {

namespace fs = std::filesystem;
using lab::error_file;
using lab::manifest_file;

void write(const fs::path& path, std::string_view text) {
    FileWriter writer(path);
    writer.write(text);
    writer.commit(Sync::no);
}

// A file of raw elements says nothing of itself: this stands beside it.
std::string sidecar(const NamedValue& value, const std::string& sha256) {
    auto json = Json::object(Json::Order::given);
    json["name"] = value.name;
    json["dtype"] = name(value.value.dtype());
    json["shape"] = value.value.shape();
    json["layout"] = "row-major";
    json["byte_order"] = "little";
    json["bits_per_element"] = bits(value.value.dtype());
    json["sha256"] = sha256;
    return json.dump(1) + "\n";
}

class Splitter {
public:
    Splitter(const Chain& chain, const std::vector<Part>& parts, Side& side,
             const SplitOptions& options)
        : chain_(chain), parts_(parts), side_(side), options_(options) {}

    Lab run(const std::vector<std::vector<NamedValue>>& sets) {
        open();
        start(sets);
        bool stopped = false;
        for (std::size_t i = 0; i < parts_.size() && !stopped; ++i) {
            stopped = options_.progress && !options_.progress(i, parts_.size());
            if (!stopped) {
                layer(i);
            }
        }
        lab_.complete = !stopped;
        write(options_.folder / manifest_file, lab::lab_json(lab_, options_));
        return std::move(lab_);
    }

private:
    const Graph& graph() const { return chain_.model().graph; }

    void open() {
        std::error_code ignored;
        if (fs::exists(options_.folder, ignored) && !fs::is_empty(options_.folder, ignored)) {
            throw Error(Fault::usage,
                        fmt::format("'{}' has something in it", options_.folder.string()),
                        "a lab is made in a folder of its own: name a new one, or empty this one");
        }
        fs::create_directories(options_.folder / "layers", ignored);
        if (!fs::is_directory(options_.folder / "layers", ignored)) {
            throw Error(Fault::input,
                        fmt::format("the folder '{}' cannot be made", options_.folder.string()));
        }
        lab_.folder = options_.folder;
        lab_.model = chain_.model().path.string();
        lab_.model_sha256 = chain_.model().path.empty() ? "" : sha256_of_file(chain_.model().path);
        lab_.engine = side_.label();
        lab_.seed = options_.seed;
    }

    void start(const std::vector<std::vector<NamedValue>>& sets) {
        values_.assign(sets.size(), std::vector<Value>(graph().tensor_limit()));
        known_.assign(graph().tensor_limit(), false);
        for (const auto id : graph().inputs()) {
            const auto& tensor = graph().tensor(id);
            known_[index(id)] = true;
            for (std::size_t set = 0; set < sets.size(); ++set) {
                auto& value = values_[set][index(id)];
                value = tensor.constant ? Value::of(*tensor.constant) : Value();
                for (const auto& input : sets[set]) {
                    if (input.name == tensor.name) {
                        value = fit_optional(input.value, tensor.type);
                    }
                }
            }
        }
    }

    std::vector<Value> inputs_of(std::size_t set, const Part& part) const {
        std::vector<Value> inputs;
        for (const auto id : part.inputs) {
            inputs.push_back(values_[set][index(id)]);
        }
        return inputs;
    }

    void layer(std::size_t number) {
        const auto& part = parts_[number];
        const auto about = describe_layer(chain_, part, number);
        LabLayer layer;
        layer.number = number;
        layer.name = about.name;
        layer.type = about.type;
        layer.module = about.module;
        layer.ops = about.ops;
        layer.folder = fmt::format("layers/{:04}_{}_{}", number, stem_of(part.type),
                                   stem_of(part.name).substr(0, 80));
        layer.error = run_part(part);
        const bool wanted = std::any_of(part.ops.begin(), part.ops.end(),
                                        [&](OpId id) { return options_.select(graph(), id); });
        if (wanted && !is_twin(part, layer)) {
            write_layer(part, layer);
            lab_.layers.push_back(std::move(layer));
        }
        for (auto& set : values_) {
            for (const auto id : part.dead) {
                set[index(id)] = {};
            }
        }
        for (const auto id : part.dead) {
            for (std::size_t set = 0; set < values_.size(); ++set) {
                written_.erase({index(id), set});
            }
        }
    }

    static std::string stem_of(const std::string& text) { return FileStems().add(text); }

    // Gives the outputs of all sets their values. Returns why it could not.
    std::string run_part(const Part& part) {
        for (const auto id : part.inputs) {
            if (!known_[index(id)]) {
                return fmt::format("its input '{}' has no value, as an earlier layer failed",
                                   graph().tensor(id).name);
            }
        }
        std::vector<std::vector<Value>> outputs;
        for (std::size_t set = 0; set < values_.size(); ++set) {
            auto run = side_.run(part, inputs_of(set, part));
            if (run.end != RunEnd::done) {
                return fmt::format("{}: {}", name(run.end), run.reason);
            }
            outputs.push_back(std::move(run.outputs));
        }
        for (std::size_t set = 0; set < values_.size(); ++set) {
            for (std::size_t i = 0; i < part.outputs.size(); ++i) {
                values_[set][index(part.outputs[i])] = outputs[set][i];
            }
        }
        for (const auto id : part.outputs) {
            known_[index(id)] = true;
        }
        return {};
    }

    bool is_twin(const Part& part, LabLayer& layer) {
        if (!options_.unique || !layer.error.empty()) {
            return false;
        }
        const auto key = lab::signature(chain_, part, inputs_of(0, part));
        const auto [found, is_new] = first_.emplace(key, lab_.layers.size());
        if (!is_new) {
            auto& first = lab_.layers[found->second];
            first.occurrences.push_back(layer.name);
            write(options_.folder / first.folder / manifest_file, lab::layer_json(lab_, first));
        }
        return !is_new;
    }

    void write_layer(const Part& part, LabLayer& layer) {
        const auto final_folder = options_.folder / layer.folder;
        // Complete or not there at all: it is made under another name.
        const auto folder = options_.folder / "layers" / fmt::format(".{:04}", layer.number);
        fs::remove_all(folder);
        fs::create_directories(folder);
        pending_.clear();
        try {
            if (layer.error.empty()) {
                write_data(part, layer, folder);
            }
        } catch (const Error& error) {
            if (error.fault() == Fault::input) {
                throw;  // the disk: nothing else can be written either
            }
            layer.error = error.what();
        }
        if (layer.error.empty()) {
            write(folder / manifest_file, lab::layer_json(lab_, layer));
        } else {
            write(folder / error_file, layer.error + "\n");
        }
        fs::rename(folder, final_folder);
        for (const auto& [key, value] : pending_) {
            auto& files = written_[key];
            files = value;
            for (auto& [kind, path] : files.files) {
                path = (final_folder / path).string();
            }
        }
    }

    void write_data(const Part& part, LabLayer& layer, const fs::path& folder) {
        const auto first = inputs_of(0, part);
        auto model = chain_.extract(part);
        for (const auto* list : {&part.inputs, &part.outputs}) {
            for (const auto tensor : *list) {
                const auto id = model.graph.find_tensor(graph().tensor(tensor).name);
                if (id && values_[0][index(tensor)].kind() != Value::Kind::none) {
                    model.graph.set_type(*id, common_type(tensor));
                }
            }
        }
        const auto format = options_.format.empty() ? lab::format_of(model) : options_.format;
        const auto encoded = lab::encode_part(
            model, format, [&](const Model& file) { return observed(part, file); });
        layer.model_file = lab::model_file(format);
        write(folder / layer.model_file, encoded);
        layer.model_sha256 = sha256_of(encoded);
        const auto length = reduction_length(chain_, part, first);
        for (const auto id : part.outputs) {
            const auto& value = values_[0][index(id)];
            if (has_statistics(value)) {
                const auto rms = statistics(value, {.spread = StatisticsOptions::Spread::none}).rms;
                layer.tolerances[graph().tensor(id).name] =
                    default_tolerance(value.dtype(), length, rms);
            }
        }
        if (std::any_of(part.ops.begin(), part.ops.end(),
                        [&](OpId id) { return options_.views(graph(), id); })) {
            fs::create_directories(folder / "views");
            for (std::size_t i = 0; i < part.outputs.size(); ++i) {
                lab::write_views(values_[0][index(part.outputs[i])],
                                 graph().tensor(part.outputs[i]).name,
                                 folder / "views" / fmt::format("output_{}", i));
            }
        }
        const std::vector<TensorId> inputs(model.graph.inputs().begin(),
                                           model.graph.inputs().end());
        for (std::size_t set = 0; set < values_.size(); ++set) {
            LabSample sample;
            for (std::size_t i = 0; i < inputs.size(); ++i) {
                const auto id = *graph().find_tensor(model.graph.tensor(inputs[i]).name);
                sample.inputs.push_back(place(id, set, folder, fmt::format("input_{}", i)));
            }
            for (std::size_t i = 0; i < part.outputs.size(); ++i) {
                sample.outputs.push_back(
                    place(part.outputs[i], set, folder, fmt::format("output_{}", i)));
            }
            layer.samples.push_back(std::move(sample));
        }
    }

    // A part of several ops with the types of what lies between them, from a run op by op.
    Model observed(const Part& part, const Model& file) {
        auto made = clone(file);
        std::map<TensorId, Value> inside;
        for (auto place = part.first; place <= part.last; ++place) {
            const auto one = chain_.part(place, place);
            std::vector<Value> inputs;
            for (const auto id : one.inputs) {
                const auto found = inside.find(id);
                inputs.push_back(found != inside.end() ? found->second : values_[0][index(id)]);
            }
            const auto run = side_.run(one, inputs);
            if (run.end != RunEnd::done) {
                throw Error(Fault::engine, fmt::format("{}: {}", name(run.end), run.reason));
            }
            for (std::size_t i = 0; i < one.outputs.size(); ++i) {
                inside[one.outputs[i]] = run.outputs[i];
                const auto id = made.graph.find_tensor(graph().tensor(one.outputs[i]).name);
                if (id) {
                    made.graph.set_type(*id, type_of(run.outputs[i]));
                }
            }
        }
        return made;
    }

    // The type of a tensor, with those dimensions that are the same in all sets.
    Type common_type(TensorId id) const {
        auto type = type_of(values_[0][index(id)]);
        for (std::size_t set = 1; set < values_.size(); ++set) {
            const auto other = type_of(values_[set][index(id)]);
            if (!type.dims || !other.dims || type.dims->size() != other.dims->size()) {
                type.dims.reset();
                return type;
            }
            for (std::size_t axis = 0; axis < type.dims->size(); ++axis) {
                if ((*type.dims)[axis] != (*other.dims)[axis]) {
                    (*type.dims)[axis] = Dim{};
                }
            }
        }
        return type;
    }

    // Files of a value in the folder of a layer: those of another layer by a further name where
    // there are such.
    LabValue place(TensorId id, std::size_t set, const fs::path& folder, const std::string& stem) {
        const std::pair key{index(id), set};
        const NamedValue value{graph().tensor(id).name, values_[set][index(id)]};
        LabValue made;
        made.name = value.name;
        made.type = type_of(value.value);
        const auto known = written_.find(key);
        for (const auto& kind : options_.kinds) {
            const auto file = kind == "pb" ? fmt::format("test_data_set_{}/{}.pb", set, stem)
                                           : fmt::format("{}/{}/{}.{}", kind, set, stem, kind);
            if (!holds(kind, value.value)) {
                continue;
            }
            fs::create_directories((folder / file).parent_path());
            const bool there = known != written_.end() && known->second.files.contains(kind);
            std::error_code failed;
            if (there) {
                fs::create_hard_link(known->second.files.at(kind), folder / file, failed);
            }
            if (there && !failed) {
                made.sha256[kind] = known->second.sha256.at(kind);
            } else {
                write_tensor(kind, value, folder / file);
                made.sha256[kind] = sha256_of_file(folder / file);
            }
            if (kind == "bin") {
                write((folder / file).replace_extension(".json"),
                      sidecar(value, made.sha256[kind]));
            }
            made.files[kind] = file;
        }
        if (made.files.empty() && value.value.kind() != Value::Kind::none) {
            throw Error(Fault::unsupported, fmt::format("no file can hold '{}', which is {}",
                                                        value.name, value_text(value.value)));
        }
        if (known == written_.end()) {
            pending_[key] = made;
        }
        return made;
    }

    static bool holds(const std::string& kind, const Value& value) {
        if (kind == "bin") {
            return value.is_tensor() && bits(value.dtype()) != 0 && value.device().is_host();
        }
        return find_format(kind == "pb" ? "onnx" : "numpy")->holds(value);
    }

    static void write_tensor(const std::string& kind, const NamedValue& value,
                             const fs::path& path) {
        if (kind == "bin") {
            FileWriter writer(path);
            writer.write(value.value.bytes());
            writer.commit(Sync::no);
        } else {
            find_format(kind == "pb" ? "onnx" : "numpy")->write_value(value, path, Sync::no);
        }
    }

    const Chain& chain_;
    const std::vector<Part>& parts_;
    Side& side_;
    const SplitOptions& options_;
    Lab lab_;
    std::vector<std::vector<Value>> values_;  // by set and TensorId
    std::vector<bool> known_;                 // by TensorId
    // Files that hold a tensor of a set already, and those of the layer that is being written.
    using Files = std::map<std::pair<std::size_t, std::size_t>, LabValue>;
    Files written_;
    Files pending_;
    std::map<std::string, std::size_t> first_;  // by signature: the layer that was written
};

}  // namespace

Lab split(const Chain& chain, const std::vector<Part>& parts, Side& side,
          const std::vector<std::vector<NamedValue>>& sets, const SplitOptions& options) {
    return lab::on_files([&] { return Splitter(chain, parts, side, options).run(sets); });
}

}  // namespace trocar
