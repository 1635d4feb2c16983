#include <fmt/format.h>

#include <map>
#include <memory>

#include "tools/partition/commands.h"
#include "trocar/error.h"
#include "trocar/format.h"
#include "trocar/partition.h"
#include "trocar/side.h"
#include "util/file_stem.h"
#include "util/sha256.h"

namespace trocar {

namespace {

struct RunOptions {
    std::string folder;
    InputSpec inputs;
    std::string output;
    std::vector<std::string> on;
    std::string optimize = "none";
};

// A model that has the inputs of the whole, as parts declare them, and nothing else.
Model inputs_of(const std::filesystem::path& folder, const PartitionManifest& manifest) {
    Model made;
    made.format = "onnx";
    made.dialect = "onnx";
    std::map<std::string, bool> wanted;
    for (const auto& input : manifest.inputs) {
        wanted[input.name] = true;
    }
    for (std::size_t i = 0; i < manifest.parts.size(); ++i) {
        const auto& names = manifest.parts[i].inputs;
        if (std::none_of(names.begin(), names.end(),
                         [&](const auto& name) { return wanted.contains(name) && wanted[name]; })) {
            continue;
        }
        const auto part = load_part(folder, manifest, i);
        made.ir_version = part.ir_version;
        made.dialect = part.dialect;
        for (const auto id : part.graph.inputs()) {
            const auto& tensor = part.graph.tensor(id);
            if (wanted.contains(tensor.name) && wanted[tensor.name]) {
                wanted[tensor.name] = false;
                const auto own = made.graph.add_input(tensor.name, tensor.type);
                if (tensor.constant) {
                    made.graph.set_constant(own, *tensor.constant);
                }
            }
        }
    }
    return made;
}

std::map<std::string, std::shared_ptr<Engine>> engines_of(const RunOptions& options,
                                                          const PartitionManifest& manifest,
                                                          Context& context) {
    std::map<std::string, std::shared_ptr<Engine>> engines;
    for (const auto& text : options.on) {
        const auto equals = text.find('=');
        const auto device = text.substr(0, equals);
        if (equals == std::string::npos || equals == 0) {
            throw Error(Fault::usage, fmt::format("'{}' is no engine for a device", text),
                        "write --on DEVICE=ENGINE, as in --on npu=openvino");
        }
        if (std::none_of(manifest.parts.begin(), manifest.parts.end(),
                         [&](const auto& part) { return part.device == device; })) {
            throw Error(Fault::usage, fmt::format("no part is for the device '{}'", device));
        }
        engines[device] =
            open_engine(parse_side(text.substr(equals + 1), context.engine_options()).engine);
    }
    return engines;
}

Report run_parts(const RunOptions& options, Context& context) {
    const auto manifest = read_partition(options.folder);
    check_parts(options.folder, manifest);
    if (!manifest.parts.empty()) {
        // Where no engine is named, the model chooses.
        context.load(std::filesystem::path(options.folder) /
                     manifest.parts.front().files.front().file);
    }
    const auto engines = engines_of(options, manifest, context);
    const auto shell = inputs_of(options.folder, manifest);
    auto spec = options.inputs;
    spec.seed = context.seed();
    const auto inputs = make_inputs(shell, spec);
    PartsRunOptions how;
    how.engine = [&](const std::string& device) {
        const auto at = engines.find(device);
        return at == engines.end() ? context.engine() : at->second;
    };
    if (options.optimize == "none") {
        how.compile.optimize = CompileOptions::Optimize::none;
    }
    how.starts = [&](std::size_t part) { context.progress("parts", part, manifest.parts.size()); };
    const auto ran =
        run_parts([&](std::size_t part) { return load_part(options.folder, manifest, part); },
                  manifest, inputs.values, how);
    Report report;
    report.tool = "partition run";
    report.notes = inputs.notes;
    report.context = {{"folder", "Folder", options.folder, Show::plain, ""},
                      {"model_sha256", "Model", manifest.model_sha256, Show::plain, ""},
                      {"seed", "Seed", context.seed(), Show::plain, ""}};
    Table parts{.key = "parts",
                .title = "Parts",
                .columns = {{.key = "part", .title = "Part"},
                            {.key = "device", .title = "Device"},
                            {.key = "engine", .title = "Engine"},
                            {.key = "ops", .title = "Ops", .show = Show::count},
                            {.key = "seconds", .title = "Time", .show = Show::seconds}},
                .rows = {},
                .note = "one run of each, compiling left out"};
    for (std::size_t i = 0; i < manifest.parts.size(); ++i) {
        const auto& part = manifest.parts[i];
        const auto& info = how.engine(part.device)->info();
        parts.rows.push_back(
            {.cells = {std::uint64_t{i}, part.device, fmt::format("{} {}", info.name, info.version),
                       std::uint64_t{part.ops}, ran.seconds[i]}});
    }
    Table outputs{.key = "outputs",
                  .title = "Outputs",
                  .columns = {{.key = "name", .title = "Name"},
                              {.key = "type", .title = "Type"},
                              {.key = "sha256", .title = "SHA-256", .hidden = true},
                              {.key = "file", .title = "File"}},
                  .rows = {},
                  .note = {}};
    FileStems stems;
    for (const auto& output : ran.outputs) {
        Cell file = Cell::unavailable("--output FOLDER writes it");
        if (!options.output.empty()) {
            std::error_code failure;
            std::filesystem::create_directories(options.output, failure);
            file = save_value(output, options.output, stems.add(output.name)).string();
        }
        const auto hash = output.value.is_tensor() && bits(output.value.dtype()) != 0
                              ? Cell(sha256_of(output.value.bytes()))
                              : Cell::unavailable("no bytes of its own");
        outputs.rows.push_back({.cells = {output.name, value_text(output.value), hash, file}});
    }
    report.tables = {std::move(parts), std::move(outputs)};
    return report;
}

std::function<Report(Context&)> bind_run(Args& args) {
    const auto options = std::make_shared<RunOptions>();
    args.positional(options->folder, "FOLDER", "Folder that `trocar partition` made");
    declare_input_options(args, options->inputs);
    args.option("-o,--output", options->output, "FOLDER", "Write each output to a file there");
    args.option("--on", options->on, "DEVICE=ENGINE",
                "Run the parts of a device on this engine; others run on --engine");
    args.choice("--optimize", options->optimize, "none|engine",
                "What the engine may do with a part: with none, the bits are those of the whole "
                "model run so");
    args.example("trocar partition run parts --input x.npy --output out",
                 "All parts in their order, handing over what they make");
    return [options](Context& context) { return run_parts(*options, context); };
}

}  // namespace

extern const Command partition_run{
    .name = "run",
    .summary = "Run the parts one after the other",
    .bind = bind_run,
};

}  // namespace trocar
