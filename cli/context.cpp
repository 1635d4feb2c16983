#include "cli/context.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "cli/engine_search.h"
#include "cli/interrupt.h"
#include "trocar/error.h"
#include "util/sha256.h"
#include "util/text.h"

namespace trocar::cli {

namespace {

constexpr std::uint64_t digest_limit = std::uint64_t{1} << 30;  // bytes

int all_cores() {
    return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

std::string host_name() {
    utsname names{};
    return ::uname(&names) == 0 ? names.nodename : "";
}

std::string cpu_name() {
    std::ifstream in("/proc/cpuinfo");
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("model name")) {
            const auto colon = line.find(':');
            if (colon != std::string::npos) {
                return std::string(trim(std::string_view(line).substr(colon + 1)));
            }
        }
    }
    utsname names{};
    return ::uname(&names) == 0 ? names.machine : "";
}

Cell digest(const std::filesystem::path& path) {
    try {
        return sha256_of_file(path);
    } catch (const Error& e) {
        return Cell::unavailable(e.what());
    }
}

// A wrong name is said at once, also by tools that may not need the engine.
void check_engine_name(const std::string& name) {
    std::vector<std::string> names;
    for (const auto* kind : engine_kinds()) {
        names.emplace_back(kind->name);
    }
    if (std::find(names.begin(), names.end(), name) == names.end()) {
        const auto guess = did_you_mean(name, names);
        throw Error(Fault::usage, fmt::format("there is no engine named '{}'", name),
                    fmt::format("{}{}known engines: {}", guess, guess.empty() ? "" : " ",
                                join(names, ", ")));
    }
}

}  // namespace

CommandContext::CommandContext(const Common& common, Console console)
    : common_(common),
      console_(console),
      threads_(common.threads > 0 ? static_cast<int>(common.threads) : all_cores()),
      progress_(console.err, console.err.is_terminal() && !common.quiet) {
    if (!common.engine.empty()) {
        engine_options_ = parse_engine(common.engine);
        check_engine_name(engine_options_.name);
    }
    engine_options_.threads = threads_;
    // What matters of an engine's words is in the errors that it raises; all of it is for -v.
    engine_options_.log = [this](LogLevel level, std::string_view text) {
        if (common_.verbose) {
            log(level, text);
        }
    };
}

Model CommandContext::load(const std::filesystem::path& path) {
    auto model = trocar::load(path, common_.format);
    // Where nobody named an engine, it is one that takes the first model that is loaded.
    if (common_.engine.empty() && common_.engines.empty() && dialect_.empty()) {
        dialect_ = model.dialect;
        // Programs of torch.export and TorchScript speak ExecuTorch's words, and use many that it
        // has no kernels for.
        if (dialect_ != "onnx" && model.format != "pt2" && model.format != "torchscript") {
            const auto& options = engine_options();
            engine_options_.name = engine_for(dialect_, options);
        }
    }
    if (common_.wants_context() && !digests_.contains(path)) {
        if (model.file_bytes > digest_limit) {
            std::promise<Cell> skipped;
            skipped.set_value(Cell::unavailable("not computed: the file is over 1 GiB"));
            digests_[path] = skipped.get_future().share();
        } else {
            digests_[path] = std::async(std::launch::async, digest, path).share();
        }
    }
    return model;
}

std::vector<std::string> CommandContext::engines() const {
    return common_.engine.empty() ? common_.engines : std::vector{common_.engine};
}

const EngineOptions& CommandContext::engine_options() const {
    if (!searched_) {
        std::error_code ignored;
        const auto executable = std::filesystem::read_symlink("/proc/self/exe", ignored);
        const auto here = std::filesystem::current_path(ignored);
        engine_options_.search = engine_folders(process_environment, executable, here);
        std::error_code none;
        if (const auto scratch = std::filesystem::temp_directory_path(none); !none) {
            engine_options_.scratch = scratch.string();
        }
        searched_ = true;
    }
    return engine_options_;
}

std::shared_ptr<Engine> CommandContext::engine() {
    if (!engine_) {
        engine_ = open_engine(engine_options());
        const auto& info = engine_->info();
        log(LogLevel::info, fmt::format("engine {} {} at {}, {}", info.name, info.version,
                                        info.path.empty() ? "no path" : info.path,
                                        counted(static_cast<std::size_t>(threads_), "thread")));
    }
    return engine_;
}

void CommandContext::log(LogLevel level, std::string_view text) {
    const bool shown = level == LogLevel::error || (level == LogLevel::warning && !common_.quiet) ||
                       common_.verbose;
    if (!shown) {
        return;
    }
    const auto* label = level == LogLevel::error     ? "error: "
                        : level == LogLevel::warning ? "warning: "
                                                     : "";
    const bool colour = level >= LogLevel::warning && console_.err.colour(common_.colour);
    const std::lock_guard lock(mutex_);
    progress_.clear();
    console_.err.write(complaint(label, text, {}, colour));
}

void CommandContext::progress(std::string_view what, std::uint64_t done, std::uint64_t total) {
    const std::lock_guard lock(mutex_);
    progress_.update(what, done, total);
}

void CommandContext::end_progress() {
    const std::lock_guard lock(mutex_);
    progress_.clear();
}

bool CommandContext::interrupted() const {
    return cli::interrupted();
}

std::filesystem::path CommandContext::cache_folder() const {
    if (const auto named = process_environment("XDG_CACHE_HOME"); !named.empty()) {
        return std::filesystem::path(named) / "trocar";
    }
    const auto home = process_environment("HOME");
    return home.empty() ? std::filesystem::path{} : std::filesystem::path(home) / ".cache/trocar";
}

std::vector<Scalar> CommandContext::describe(const Model& model, bool with_engine) {
    std::vector<Scalar> all;
    if (!model.path.empty()) {
        all.push_back({"model", "Model", model.path.string(), Show::plain, ""});
        all.push_back({"model_bytes", "Model size", model.file_bytes, Show::bytes, ""});
        const auto at = digests_.find(model.path);
        all.push_back({"model_sha256", "Model SHA-256",
                       at == digests_.end() ? Cell::unavailable("not computed") : at->second.get(),
                       Show::plain, ""});
    }
    if (with_engine) {
        const auto& info = engine()->info();
        all.push_back({"engine", "Engine", info.name, Show::plain, ""});
        all.push_back({"engine_version", "Engine version", info.version, Show::plain, ""});
        all.push_back({"engine_path", "Engine path", info.path, Show::plain, ""});
        for (const auto& [key, value] : engine_options_.options) {
            all.push_back({"engine_" + key, "Engine " + key, value, Show::plain, ""});
        }
        all.push_back({"threads", "Threads", threads_, Show::plain, ""});
    }
    all.push_back({"seed", "Seed", common_.seed, Show::plain, ""});
    all.push_back({"host", "Host", host_name(), Show::plain, ""});
    all.push_back({"cpu", "CPU", cpu_name(), Show::plain, ""});
    return all;
}

}  // namespace trocar::cli
