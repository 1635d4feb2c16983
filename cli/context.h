#pragma once

#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "cli/common.h"
#include "cli/guard.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "trocar/command.h"

namespace trocar::cli {

// What the command line gives a tool to work with.
class CommandContext : public Context {
public:
    // Throws Error(usage) when --engine cannot be understood.
    CommandContext(const Common& common, Console console);

    Model load(const std::filesystem::path& path) override;
    std::shared_ptr<Engine> engine() override;
    const EngineOptions& engine_options() const override;
    std::vector<std::string> engines() const override;
    std::uint64_t seed() const override { return static_cast<std::uint64_t>(common_.seed); }
    int threads() const override { return threads_; }
    int verbosity() const override { return common_.verbosity(); }
    void log(LogLevel level, std::string_view text) override;  // from any thread
    void progress(std::string_view what, std::uint64_t done, std::uint64_t total) override;
    void isolate() override { guard_.enter(); }
    void doing(std::string_view what) override { guard_.doing(what); }
    bool interrupted() const override;
    std::filesystem::path cache_folder() const override;
    std::vector<Scalar> describe(const Model& model, bool with_engine) override;

    void end_progress();

private:
    const Common& common_;
    Console console_;
    int threads_;
    mutable EngineOptions engine_options_;
    std::string dialect_;            // of the first model
    mutable bool searched_ = false;  // engine_options_.search is filled
    std::mutex mutex_;               // of progress_ and what is written to the terminal
    Progress progress_;
    Guard guard_;
    std::shared_ptr<Engine> engine_;
    // By path; begun when the model is loaded, beside the tool's own work. Last: it ends first.
    std::map<std::filesystem::path, std::shared_future<Cell>> digests_;
};

}  // namespace trocar::cli
