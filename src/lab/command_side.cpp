#include "lab/command_side.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "base/process.h"
#include "lab/files.h"
#include "trocar/error.h"
#include "trocar/format.h"
#include "util/file_stem.h"
#include "util/files.h"
#include "util/scratch.h"
#include "util/text.h"

namespace trocar::lab {

namespace {

namespace fs = std::filesystem;

bool replace_all(std::string& text, std::string_view what, const std::string& with) {
    bool any = false;
    for (auto at = text.find(what); at != std::string::npos;
         at = text.find(what, at + with.size())) {
        text.replace(at, what.size(), with);
        any = true;
    }
    return any;
}

[[noreturn]] void refuse(const std::string& what) {
    throw Error(Fault::engine, what);
}

// The one value of a file, or elements without a head.
Value read_one(const fs::path& path, const Type* expected) {
    if (path.extension() != ".bin") {
        auto values = load_values(path);
        if (values.size() != 1) {
            refuse(fmt::format("'{}' does not hold one value", path.filename().string()));
        }
        return values.front().value;
    }
    return load_elements(path, expected == nullptr ? Type{} : *expected);
}

void check_type(const Value& value, const Type& expected, const std::string& name) {
    if (expected.kind != Type::Kind::tensor) {
        return;
    }
    const auto found = type_of(value);
    if (found.kind != expected.kind || found.dtype != expected.dtype ||
        (expected.shape() && found.shape() != expected.shape())) {
        refuse(fmt::format("the output '{}' is {} instead of {}", name, type_text(found),
                           type_text(expected)));
    }
}

std::string last_line(const std::string& words) {
    std::string last;
    for (const auto& line : split(words, '\n')) {
        if (!trim(line).empty()) {
            last = trim(line);
        }
    }
    return last;
}

}  // namespace

std::string fill_in(const std::string& command, const CommandFiles& files) {
    auto text = command;
    const bool model = replace_all(text, "{model}", shell_word(files.model));
    const bool outputs = replace_all(text, "{outputs}", shell_word(files.outputs));
    replace_all(text, "{inputs}", shell_word(files.inputs));
    if (!model || !outputs) {
        throw Error(
            Fault::usage,
            fmt::format("the command '{}' names no {}", command, model ? "{outputs}" : "{model}"),
            "it is given files in the place of {model}, {inputs} and {outputs}");
    }
    return text;
}

void write_inputs(const std::string& folder, std::span<const Value> inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        save_value({"", inputs[i]}, folder, fmt::format("input_{}", i), Sync::no);
    }
}

std::vector<Value> read_outputs(const std::string& folder, std::span<const std::string> names,
                                std::span<const Type> expected) {
    std::vector<Value> outputs;
    FileStems stems;
    for (std::size_t i = 0; i < names.size(); ++i) {
        const auto* type = i < expected.size() ? &expected[i] : nullptr;
        fs::path found;
        for (const auto& stem : {fmt::format("output_{}", i), stems.add(names[i])}) {
            for (const auto* suffix : {".npy", ".pb", ".bin"}) {
                const auto path = fs::path(folder) / (stem + suffix);
                std::error_code ignored;
                if (found.empty() && fs::is_regular_file(path, ignored)) {
                    found = path;
                }
            }
        }
        if (found.empty()) {
            refuse(
                fmt::format("the command wrote no output_{}.npy (the output '{}')", i, names[i]));
        }
        try {
            outputs.push_back(read_one(found, type));
        } catch (const Error& error) {
            refuse(fmt::format("the output '{}' cannot be read: {}", names[i], error.what()));
        }
    }
    return outputs;
}

void check_outputs(std::span<const Value> outputs, std::span<const std::string> names,
                   std::span<const Type> expected) {
    for (std::size_t i = 0; i < outputs.size() && i < expected.size(); ++i) {
        check_type(outputs[i], expected[i], names[i]);
    }
}

PartRun run_on_files(const SideOptions& options, const CommandFiles& files,
                     const std::function<bool()>& cancel) {
    const auto end = run_command(fill_in(options.command, files),
                                 {options.time_limit, options.memory_limit, 0, cancel});
    PartRun run;
    run.seconds = end.seconds;
    const auto said = last_line(end.last_words);
    const auto with_words = [&](std::string sentence) {
        return said.empty() ? sentence : fmt::format("{}: {}", sentence, said);
    };
    using How = ProcessEnd::How;
    if (end.how == How::timed_out) {
        run.end = RunEnd::hung;
        run.reason = fmt::format("the command was not done within {:g} s",
                                 static_cast<double>(options.time_limit.count()) / 1000);
    } else if (end.how == How::over_memory) {
        run.end = RunEnd::over_memory;
        run.reason = fmt::format("the command took more than {} MiB", options.memory_limit >> 20);
    } else if (end.how == How::cancelled) {
        throw Error(Fault::interrupted, "interrupted");
    } else if (end.how == How::signalled || end.code >= 128) {
        // A shell tells of a signal by an exit code above 128.
        run.end = RunEnd::crashed;
        run.reason = with_words(
            fmt::format("the command crashed ({})",
                        signal_name(end.how == How::signalled ? end.code : end.code - 128)));
    } else if (end.code != 0) {
        run.end = RunEnd::failed;
        run.reason = with_words(fmt::format("the command failed with exit code {}", end.code));
    }
    return run;
}

PartRun run_command_side(const SideOptions& options, const Model& model,
                         std::span<const Value> inputs, std::span<const std::string> outputs,
                         std::span<const Type> expected) {
    const ScratchFolder scratch{fs::path(options.engine.scratch)};
    const CommandFiles files{(scratch.path() / lab::model_file(lab::format_of(model))).string(),
                             (scratch.path() / "inputs").string(),
                             (scratch.path() / "outputs").string()};
    fs::create_directory(files.inputs);
    fs::create_directory(files.outputs);
    save(model, files.model, {.external = ExternalPolicy::inlined});
    write_inputs(files.inputs, inputs);
    auto run = run_on_files(options, files, {});
    if (run.end == RunEnd::done) {
        try {
            run.outputs = read_outputs(files.outputs, outputs, expected);
            check_outputs(run.outputs, outputs, expected);
        } catch (const Error& error) {
            run.end = RunEnd::bad_output;
            run.reason = error.what();
            run.refused = std::exchange(run.outputs, {});
        }
    }
    return run;
}

}  // namespace trocar::lab
