#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trocar/engine.h"
#include "trocar/model.h"
#include "trocar/report.h"

#pragma GCC visibility push(default)
namespace trocar {

// What a tool takes from the command line. The variables must outlive the run of the tool.
class Args {
public:
    virtual ~Args() = default;
    virtual void positional(std::string& value, const char* name, const char* help) = 0;
    virtual void positionals(std::vector<std::string>& values, const char* name,
                             const char* help) = 0;
    // `names`: "--cut" or "-o,--output"; `placeholder`: "SELECTOR".
    virtual void flag(const char* names, bool& value, const char* help) = 0;
    virtual void option(const char* names, std::string& value, const char* placeholder,
                        const char* help) = 0;
    virtual void option(const char* names, std::vector<std::string>& values,
                        const char* placeholder, const char* help) = 0;
    virtual void option(const char* names, std::int64_t& value, const char* placeholder,
                        const char* help) = 0;
    virtual void option(const char* names, double& value, const char* placeholder,
                        const char* help) = 0;
    // One of `choices`, "none|all"; anything else is a usage error that lists them.
    virtual void choice(const char* names, std::string& value, const char* choices,
                        const char* help) = 0;
    // What is declared from here on stands together in the help, under this title; "": under none.
    virtual void section(const char* title) = 0;
    // A required option among those above.
    virtual void require(const char* name) = 0;
    virtual void example(const char* command, const char* what) = 0;  // for --help
};

// What a tool is given to work with.
class Context {
public:
    virtual ~Context() = default;
    virtual Model load(const std::filesystem::path& path) = 0;  // honours --format
    virtual std::shared_ptr<Engine> engine() = 0;  // as --engine and --threads say; opened once
    virtual const EngineOptions& engine_options() const = 0;
    // What --engine said, as texts. For a tool with Command::several_engines, engine_options() says
    // only what does not depend on them.
    virtual std::vector<std::string> engines() const { return {}; }
    virtual std::uint64_t seed() const = 0;
    virtual int threads() const = 0;    // resolved: ≥ 1
    virtual int verbosity() const = 0;  // -1 quiet, 0, 1 verbose
    virtual void log(LogLevel level, std::string_view text) = 0;
    // Shown on a terminal when the work takes over a second; `total` 0: unknown.
    virtual void progress(std::string_view what, std::uint64_t done, std::uint64_t total) = 0;
    // From here on the work is done in a process of its own: where an engine crashes there, the
    // command ends with Error(engine). To be called first, before anything is loaded.
    virtual void isolate() = 0;
    // What is under way, for the message about such a crash: "running op 3 (Conv 'c')".
    virtual void doing(std::string_view what) = 0;
    virtual bool interrupted() const = 0;  // Ctrl-C: finish early and return a partial report
    // Where a tool may keep what it can make anew; empty: nowhere.
    virtual std::filesystem::path cache_folder() const { return {}; }
    // Model, sha256 of its file (when cheap: under 1 GB), engine, version, threads, seed, host,
    // cpu.
    virtual std::vector<Scalar> describe(const Model& model, bool with_engine) = 0;
};

// One tool: a command of `trocar`. A unit src/tools/NAME/tool.cpp defines `NAME_tool`.
struct Command {
    const char* name;
    const char* summary;  // one line
    // Declares options on `args`; what it returns does the work. Null: only its commands do.
    std::function<Report(Context&)> (*bind)(Args& args);
    // What may follow the name instead: `trocar NAME COMMAND`. They have none of their own.
    std::span<const Command* const> commands = {};
    bool several_engines = false;  // --engine may be given more than once
};

std::span<const Command* const> commands();

}  // namespace trocar
#pragma GCC visibility pop
