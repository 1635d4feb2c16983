#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>

#include "lab/files.h"
#include "tools/partition/commands.h"
#include "tools/partition/given.h"
#include "tools/partition/present.h"
#include "trocar/error.h"
#include "trocar/format.h"
#include "trocar/partition.h"
#include "trocar/shapes.h"
#include "util/file_stem.h"
#include "util/files.h"
#include "util/same_bits.h"
#include "util/scratch.h"
#include "util/sha256.h"
#include "util/text.h"

namespace trocar {

namespace {

namespace fs = std::filesystem;
namespace parts = partition_tool_parts;

struct Options {
    std::string model;
    std::string folder;
    std::vector<std::string> devices;
    std::string device_file;
    std::int64_t parts = 0;
    std::string cost = "macs";
    std::string max_bytes;
    std::string hidden;
    InputSpec inputs;
    bool no_verify = false;
    bool no_run = false;
};

class Work {
public:
    Work(const Options& options, Context& context)
        : options_(options), context_(context), model_(context.load(options.model)) {}

    Report run() {
        Report report;
        report.tool = "partition";
        std::error_code ignored;
        if (fs::exists(options_.folder, ignored) && !fs::is_empty(options_.folder, ignored)) {
            throw Error(Fault::usage, fmt::format("'{}' has something in it", options_.folder),
                        "parts are written to a folder of their own: name a new one, or empty "
                        "this one");
        }
        const auto* writer = find_writer(lab::model_file(model_.format, "part"));
        if (writer == nullptr || writer->dialect != model_.dialect) {
            throw Error(
                Fault::unsupported,
                fmt::format("parts of models of the format '{}' cannot be written", model_.format),
                "`trocar convert` maps it to onnx, whose parts can be");
        }
        observe(report);
        const auto costs = costs_of(report);
        auto partition = divide(costs);
        const fs::path target = fs::path(options_.folder).lexically_normal();
        auto named = target.has_filename() ? target : target.parent_path();
        const auto parent = named.has_parent_path() ? named.parent_path() : fs::path(".");
        fs::create_directories(parent, ignored);
        // Complete or not there at all.
        const ScratchFolder scratch(parent);
        const auto made = scratch.path() / "parts";
        lab::on_files([&] { return fs::create_directory(made); });
        auto manifest = write_parts(partition, made, report);
        const bool same = verify(manifest, made, report);
        if (same) {
            write_file(made / partition_manifest_file, partition_json(manifest));
            lab::on_files([&] {
                fs::rename(made, named);
                return true;
            });
        }
        report.context = context_.describe(model_, !options_.no_run);
        describe(partition, manifest, same, report);
        return report;
    }

private:
    bool has_open_sizes() const {
        const auto inputs = model_.graph.inputs();
        return std::any_of(inputs.begin(), inputs.end(),
                           [&](TensorId id) { return !model_.graph.tensor(id).type.shape(); });
    }

    void observe(Report& report) {
        types_.resize(model_.graph.tensor_limit());
        for (const auto id : model_.graph.tensors()) {
            types_[index(id)] = model_.graph.tensor(id).type;
        }
        if (options_.no_run) {
            return;
        }
        auto spec = options_.inputs;
        spec.seed = context_.seed();
        spec.fill = spec.fill.empty() ? "random" : spec.fill;
        spec.unknown_dims = 1;
        const auto inputs = make_inputs(model_, spec);
        inputs_ = inputs.values;
        report.notes = inputs.notes;
        try {
            types_ = observed_types(model_, context_.engine(), inputs_);
        } catch (const Error& error) {
            if (!error.hint().empty() || !has_open_sizes()) {
                throw;
            }
            throw Error(error.fault(), error.what(),
                        "sizes that the model leaves open were taken as 1: --shape gives others, "
                        "--input real inputs; --no-run runs nothing");
        }
        // What has another size with other inputs is left open.
        const bool free = spec.sources.empty() && spec.shapes.empty();
        if (has_open_sizes() && free) {
            spec.unknown_dims = 2;
            look_again(spec);
            // Steps of convolutions make one size of small ones. A batch may stay small.
            for (const std::int64_t size : {67, 64}) {
                const auto before = others_.size();
                if (spec.shapes = shapes_with(size); !spec.shapes.empty()) {
                    look_again(spec);
                }
                if (others_.size() > before) {
                    break;
                }
            }
        }
    }
    void look_again(const InputSpec& spec) {
        try {
            others_.push_back(
                observed_types(model_, context_.engine(), make_inputs(model_, spec).values));
        } catch (const Error&) {
            return;  // it does not take such a size
        }
    }
    // Shapes of the inputs with a size in the place of open ones, the first apart; none: only the
    // first ones are open.
    std::vector<std::string> shapes_with(std::int64_t size) const {
        std::vector<std::string> all;
        bool any = false;
        for (const auto id : model_.graph.inputs()) {
            const auto& tensor = model_.graph.tensor(id);
            if (tensor.constant || !tensor.type.dims) {
                continue;
            }
            std::vector<std::int64_t> shape;
            for (const auto& dim : *tensor.type.dims) {
                const bool open = dim.value < 0;
                any = any || (open && !shape.empty());
                shape.push_back(!open ? dim.value : shape.empty() ? 2 : size);
            }
            all.push_back(fmt::format("{}={}", tensor.name, join(shape, ",")));
        }
        return any ? all : std::vector<std::string>{};
    }

    PartitionCosts costs_of(Report& report) {
        auto shapes = std::make_shared<Shapes>(shapes_of(types_));
        PartitionCosts costs;
        if (options_.cost == "macs") {
            costs.op = [this, shapes](OpId id) {
                return static_cast<double>(macs_of(model_, id, *shapes).value_or(0));
            };
        } else if (options_.cost == "ops") {
            costs.op = [](OpId) { return 1.0; };
        } else if (options_.cost == "bytes") {
            costs.op = [this](OpId id) {
                double sum = 0;
                for (const auto in : model_.graph.op(id).inputs) {
                    const auto* tensor = in == TensorId::none ? nullptr : &model_.graph.tensor(in);
                    sum += tensor != nullptr && tensor->constant
                               ? static_cast<double>(tensor->constant->stored_bytes())
                               : 0;
                }
                return sum;
            };
        } else {
            auto read =
                std::make_shared<std::map<std::string, double>>(parts::read_costs(options_.cost));
            std::size_t found = 0;
            for (const auto id : model_.graph.ops()) {
                found += read->contains(op_name(model_.graph, id)) ? 1 : 0;
            }
            if (found == 0) {
                throw Error(
                    Fault::input,
                    fmt::format("'{}' has costs for none of the model's ops", options_.cost),
                    "a profile by op names them: `trocar profile --by op`");
            }
            if (found < model_.graph.op_count()) {
                report.notes.push_back(
                    fmt::format("{} has a cost for {} of {} ops; the others count as 0",
                                options_.cost, found, model_.graph.op_count()));
            }
            costs.op = [this, read](OpId id) {
                const auto at = read->find(op_name(model_.graph, id));
                return at == read->end() ? 0 : at->second;
            };
        }
        costs.tensor = [this](TensorId id) -> std::optional<std::uint64_t> {
            const auto& type = types_[index(id)];
            const auto shape = type.kind == Type::Kind::tensor ? type.shape() : std::nullopt;
            return shape && bits(type.dtype) != 0
                       ? std::optional<std::uint64_t>(byte_size(type.dtype, element_count(*shape)))
                       : std::nullopt;
        };
        return costs;
    }

    Partition divide(const PartitionCosts& costs) {
        if (options_.parts > 0) {
            how_ = fmt::format("{} of nearly equal cost ({})",
                               counted(static_cast<std::size_t>(options_.parts), "part"),
                               options_.cost);
            return partition_by_cost(model_, static_cast<std::size_t>(options_.parts), costs);
        }
        if (!options_.max_bytes.empty()) {
            const auto limit = parse_size(options_.max_bytes);
            if (!limit || *limit == 0) {
                throw Error(Fault::usage,
                            fmt::format("--max-bytes {} is no size", options_.max_bytes),
                            "write a number of bytes, or 512M, 1.5GB…");
            }
            how_ = fmt::format("at most {} in each part", options_.max_bytes);
            return partition_by_bytes(model_, *limit, costs);
        }
        if (!options_.hidden.empty()) {
            const auto chosen = parse_selector(options_.hidden);
            select_some(model_.graph, chosen, "--private");
            how_ = fmt::format("private: {}", options_.hidden);
            return partition_private(model_, chosen, costs);
        }
        std::vector<DeviceRule> rules;
        for (const auto& text : options_.devices) {
            const auto equals = text.find('=');
            rules.push_back(parts::rule_of(
                model_, text.substr(0, equals),
                equals == std::string::npos ? "" : text.substr(equals + 1), "--device"));
        }
        if (!options_.device_file.empty()) {
            parts::read_rules(model_, options_.device_file, rules);
        }
        how_ = "devices";
        return partition_by_devices(model_, rules, costs);
    }

    // The type that a part declares for a tensor.
    Type declared(TensorId id) const {
        const auto& own = model_.graph.tensor(id).type;
        if (own.kind != Type::Kind::unknown && own.dims &&
            (own.kind != Type::Kind::tensor || own.dtype != DType::undefined)) {
            return own;
        }
        auto type = types_[index(id)];
        if (type.kind == Type::Kind::unknown || !type.dims) {
            return type.kind == Type::Kind::unknown ? own : type;
        }
        const bool known =
            !has_open_sizes() ||
            (!others_.empty() &&
             std::all_of(others_.begin(), others_.end(), [&](const auto& other) {
                 return other[index(id)].dims && other[index(id)].dims->size() == type.dims->size();
             }));
        for (std::size_t i = 0; i < type.dims->size(); ++i) {
            const bool differs =
                known && std::any_of(others_.begin(), others_.end(), [&](const auto& other) {
                    return (*other[index(id)].dims)[i] != (*type.dims)[i];
                });
            if (differs || !known) {
                (*type.dims)[i] = Dim{};
            }
        }
        return type;
    }

    PartitionManifest write_parts(const Partition& partition, const fs::path& folder,
                                  Report& report) {
        PartitionManifest manifest;
        manifest.model = fs::path(options_.model).filename().string();
        manifest.model_sha256 = sha256_of_file(options_.model);
        manifest.how = how_;
        std::map<TensorId, std::size_t> maker;
        std::map<TensorId, std::size_t> cut_of;
        for (const auto id : model_.graph.inputs()) {
            if (partition.plan.constants[index(id)] == nullptr) {
                manifest.inputs.push_back(value_of(id));
            }
        }
        for (const auto id : model_.graph.outputs()) {
            manifest.outputs.push_back(model_.graph.tensor(id).name);
        }
        for (std::size_t i = 0; i < partition.parts.size(); ++i) {
            const auto& part = partition.parts[i];
            auto model = part_model(model_, partition, i);
            bool open = false;
            for (const auto* list : {&part.inputs, &part.outputs}) {
                for (const auto id : *list) {
                    const auto own = model.graph.find_tensor(model_.graph.tensor(id).name);
                    auto type = declared(id);
                    open = open || (list == &part.inputs && type.kind == Type::Kind::unknown);
                    if (own && !(type == model.graph.tensor(*own).type) &&
                        !model.graph.tensor(*own).constant) {
                        model.graph.set_type(*own, std::move(type));
                    }
                }
            }
            if (open) {
                report.warnings.push_back(
                    fmt::format("part {} has inputs without a type, so engines may refuse it", i));
            }
            auto stem = fmt::format("part_{:02}", i);
            stem += part.device.empty() ? "" : "_" + FileStems().add(part.device);
            auto& entry = manifest.parts.emplace_back();
            entry.device = part.device;
            entry.ops = part.ops.size();
            entry.cost = part.cost;
            entry.constant_bytes = part.constant_bytes;
            entry.peak_bytes = part.peak_bytes;
            write_part(model, folder, lab::model_file(model_.format, stem), entry);
            for (const auto id : part.inputs) {
                entry.inputs.push_back(model_.graph.tensor(id).name);
                const auto at = maker.find(id);
                if (at == maker.end()) {
                    continue;  // an input of the model
                }
                if (!cut_of.contains(id)) {
                    cut_of[id] = manifest.cuts.size();
                    manifest.cuts.push_back(value_of(id));
                    manifest.cuts.back().from = at->second;
                }
                manifest.cuts[cut_of[id]].to.push_back(i);
            }
            for (const auto id : part.outputs) {
                entry.outputs.push_back(model_.graph.tensor(id).name);
                maker[id] = i;
            }
            context_.progress("parts", i + 1, partition.parts.size());
        }
        return manifest;
    }

    PartValue value_of(TensorId id) const {
        PartValue value;
        value.name = model_.graph.tensor(id).name;
        value.type = declared(id);
        const auto& seen = types_[index(id)];
        if (seen.kind == Type::Kind::tensor && seen.shape()) {
            value.shape = seen.shape();
            if (bits(seen.dtype) != 0) {
                value.bytes = byte_size(seen.dtype, element_count(*value.shape));
            }
        }
        return value;
    }

    static void write_part(const Model& model, const fs::path& folder, const std::string& file,
                           PartEntry& entry) {
        bool external = false;
        for (const auto id : model.graph.tensors()) {
            const auto& constant = model.graph.tensor(id).constant;
            external = external || (constant && constant->external());
        }
        save(model, folder / file,
             {.external = external ? ExternalPolicy::separate : ExternalPolicy::copy});
        const auto add = [&](const std::string& name) {
            entry.files.push_back(
                {name, sha256_of_file(folder / name), fs::file_size(folder / name)});
        };
        add(file);
        for (const auto& other : fs::directory_iterator(folder)) {
            const auto name = other.path().filename().string();
            if (name != file && name.starts_with(fs::path(file).stem().string() + ".")) {
                add(name);
            }
        }
    }

    // Runs the whole and the parts that were written, both without anything fused.
    bool verify(PartitionManifest& manifest, const fs::path& folder, Report& report) {
        if (options_.no_run || options_.no_verify) {
            report.notes.emplace_back("the parts were not run");
            return true;
        }
        SessionOptions plain;
        plain.compile.optimize = CompileOptions::Optimize::none;
        const auto whole = Session(model_, context_.engine(), plain).run(inputs_);
        std::map<std::string, std::string> hashes;
        PartsRunOptions how;
        how.engine = [this](const std::string&) { return context_.engine(); };
        how.compile.optimize = CompileOptions::Optimize::none;
        how.see = [&](std::size_t, const NamedValue& value) {
            if (value.value.is_tensor() && bits(value.value.dtype()) != 0) {
                hashes[value.name] = sha256_of(value.value.bytes());
            }
        };
        how.starts = [&](std::size_t part) {
            context_.progress("parts run", part, manifest.parts.size());
        };
        const auto ran =
            run_parts([&](std::size_t part) { return load_part(folder, manifest, part); }, manifest,
                      inputs_, how);
        for (auto& cut : manifest.cuts) {
            cut.sha256 = hashes[cut.name];
        }
        const auto& info = context_.engine()->info();
        manifest.ran = fmt::format(
            "{} {}, {}", info.name, info.version,
            options_.inputs.sources.empty()
                ? fmt::format("{} inputs, seed {}",
                              options_.inputs.fill.empty() ? "random" : options_.inputs.fill,
                              context_.seed())
                : "given inputs");
        same_as_whole_ = same_bits(whole, ran.outputs);
        if (same_as_whole_) {
            return true;
        }
        // An engine may keep more digits inside of a program than a tensor has, as with half
        // precision: then the bits are those of the model cut in the same places.
        std::set<std::string> cut;
        for (const auto& one : manifest.cuts) {
            cut.insert(one.name);
        }
        plain.cut = where([&cut](const Graph& graph, OpId op) {
            const auto& outputs = graph.op(op).outputs;
            return std::any_of(outputs.begin(), outputs.end(), [&](TensorId id) {
                return id != TensorId::none && cut.contains(graph.tensor(id).name);
            });
        });
        if (same_bits(Session(model_, context_.engine(), plain).run(inputs_), ran.outputs)) {
            report.notes.emplace_back(
                "the whole model gives other bits: the engine keeps more digits inside of a "
                "program than its tensors have. The parts give those of the model cut in the same "
                "places");
            return true;
        }
        report.verdict = false;
        report.notes.emplace_back(
            "the parts do not give the bits of the whole model, so nothing was written; "
            "--no-verify writes them all the same");
        return false;
    }

    void describe(const Partition& partition, const PartitionManifest& manifest, bool same,
                  Report& report) const {
        report.tables.push_back(parts::part_table(partition, manifest));
        report.tables.push_back(parts::cut_table(manifest));
        if (!partition.joined.empty()) {
            Table joined{.key = "joined",
                         .title = options_.hidden.empty() ? "Not chosen" : "Must stay with them",
                         .columns = {{.key = "op", .title = "Op"},
                                     {.key = "type", .title = "Type"},
                                     {.key = "why", .title = "Why"}},
                         .rows = {},
                         .note = {},
                         .hidden = options_.hidden.empty()};
            for (const auto& [id, why] : partition.joined) {
                joined.rows.push_back(
                    {.cells = {op_name(model_.graph, id), model_.graph.op(id).type, why}});
            }
            report.tables.push_back(std::move(joined));
        }
        Section section{.key = "partition", .title = "Partition", .scalars = {}};
        auto& scalars = section.scalars;
        scalars.push_back({"folder", "Folder",
                           same ? Cell(options_.folder) : Cell::unavailable("nothing was written"),
                           Show::plain, ""});
        scalars.push_back({"how", "Cut by", how_, Show::plain, ""});
        scalars.push_back(
            {"parts", "Parts", std::uint64_t{partition.parts.size()}, Show::count, ""});
        double most = 0;
        double sum = 0;
        for (const auto& part : partition.parts) {
            most = std::max(most, part.cost);
            sum += part.cost;
        }
        if (sum > 0) {
            scalars.push_back({"balance", "Largest to mean",
                               most * static_cast<double>(partition.parts.size()) / sum,
                               Show::ratio, fmt::format("cost by {}", options_.cost)});
        }
        std::uint64_t bytes = 0;
        for (const auto& cut : manifest.cuts) {
            bytes += cut.bytes.value_or(0);
        }
        scalars.push_back(
            {"cut_tensors", "Tensors cut", std::uint64_t{manifest.cuts.size()}, Show::count, ""});
        scalars.push_back({"cut_bytes", "Bytes cut", bytes, Show::bytes, "each counted once"});
        scalars.push_back({"same_bits", "Same bits as the whole",
                           options_.no_run || options_.no_verify
                               ? Cell::unavailable("the parts were not run")
                               : Cell(same_as_whole_),
                           Show::plain, manifest.ran});
        report.sections.push_back(std::move(section));
        report.order = {"parts", "cuts", "joined", "partition"};
    }

    const Options& options_;
    Context& context_;
    Model model_;
    std::string how_;
    std::vector<NamedValue> inputs_;
    std::vector<Type> types_;
    std::vector<std::vector<Type>> others_;
    bool same_as_whole_ = false;
};

void check(const Options& options) {
    const auto ways = (options.devices.empty() && options.device_file.empty() ? 0 : 1) +
                      (options.parts != 0 ? 1 : 0) + (options.max_bytes.empty() ? 0 : 1) +
                      (options.hidden.empty() ? 0 : 1);
    if (ways != 1) {
        throw Error(Fault::usage,
                    ways == 0 ? "nothing says where to cut" : "several options say where to cut",
                    "give one of --device, --parts, --max-bytes, --private");
    }
    if (options.parts < 0) {
        throw Error(Fault::usage, "--parts is 1 at least");
    }
}

std::function<Report(Context&)> bind(Args& args) {
    const auto options = std::make_shared<Options>();
    args.positional(options->model, "MODEL", "Model file");
    args.positional(options->folder, "FOLDER", "Folder to make, with a model for each part");
    args.option("--device", options->devices, "NAME=SELECTOR",
                "These ops go to this device; may be repeated, the first that chooses an op holds");
    args.option("--devices", options->device_file, "FILE",
                "The same, as lines of name and selector");
    args.option("--parts", options->parts, "N", "So many parts of nearly equal cost");
    args.option("--cost", options->cost, "COST",
                "What --parts balances: macs, bytes (of constants), ops, or a file: a JSON report "
                "of `trocar profile`, or lines NAME,COST; macs");
    args.option("--max-bytes", options->max_bytes, "SIZE",
                "As few parts as can be, each of which needs no more for constants and tensors");
    args.option("--private", options->hidden, "SELECTOR",
                "These ops, and only what must stay with them, are in parts of their own");
    declare_input_options(args, options->inputs);
    args.flag("--no-verify", options->no_verify,
              "Write the parts without comparing them with the whole");
    args.flag("--no-run", options->no_run, "Run nothing: types and sizes are those in the file");
    args.example("trocar partition model.onnx parts --parts 4", "Four parts of the same work");
    args.example("trocar partition model.onnx parts --device npu='Conv | Relu' --device cpu=all",
                 "By device, in as few parts as can be");
    args.example("trocar partition model.onnx parts --private 'module:head'",
                 "The head stays with its owner");
    args.example("trocar partition run parts --input x.npy", "Run the parts in their order");
    return [options](Context& context) {
        check(*options);
        return Work(*options, context).run();
    };
}

constexpr std::array<const Command*, 1> partition_commands{&partition_run};

}  // namespace

extern const Command partition_tool{
    .name = "partition",
    .summary = "Cut a model into parts that run alone: by device, cost, memory or privacy",
    .bind = bind,
    .commands = partition_commands,
};

}  // namespace trocar
