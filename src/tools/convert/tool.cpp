#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "trocar/command.h"
#include "trocar/error.h"
#include "trocar/model.h"
#include "util/mapped_file.h"
#include "util/text.h"

namespace trocar {

namespace {

namespace fs = std::filesystem;

struct Options {
    std::string model;
    std::string out;
    std::string external = "copy";
    bool verify = false;
};

ExternalPolicy policy(const std::string& text) {
    if (text == "reference") {
        return ExternalPolicy::reference;
    }
    if (text == "inline") {
        return ExternalPolicy::inlined;
    }
    return text == "separate" ? ExternalPolicy::separate : ExternalPolicy::copy;
}

// Compared piece by piece, so that files larger than memory are not kept in it.
bool same_content(const fs::path& a, const fs::path& b) {
    constexpr std::size_t piece = std::size_t{4} << 20;
    const auto first = MappedFile::open(a);
    const auto second = MappedFile::open(b);
    const auto size = first->bytes().size();
    if (size != second->bytes().size()) {
        return false;
    }
    for (std::size_t at = 0; at < size; at += piece) {
        const auto left = first->bytes().subspan(at, std::min(piece, size - at));
        const auto right = second->bytes().subspan(at, left.size());
        if (!std::equal(left.begin(), left.end(), right.begin())) {
            return false;
        }
        release_pages(left);
        release_pages(right);
    }
    return true;
}

// Problems of the graph as a table, at most so many.
Table problem_table(const std::vector<Problem>& problems) {
    constexpr std::size_t shown = 50;
    Table table{.key = "problems",
                .title = "Problems",
                .columns = {{.key = "where", .title = "Where"}, {.key = "what", .title = "What"}},
                .rows = {},
                .note = {}};
    for (std::size_t i = 0; i < std::min(shown, problems.size()); ++i) {
        table.rows.push_back({.cells = {problems[i].where, problems[i].what}});
    }
    if (problems.size() > shown) {
        table.note = fmt::format("and {} more", problems.size() - shown);
    }
    return table;
}

// Into a folder means: under the same name, as cp does it.
fs::path target_of(const Options& options) {
    std::error_code ignored;
    if (fs::is_directory(options.out, ignored)) {
        return fs::path(options.out) / fs::path(options.model).filename();
    }
    if (options.out.ends_with('/')) {
        throw Error(Fault::usage, fmt::format("there is no folder '{}'", options.out));
    }
    return options.out;
}

Report convert(const Options& options, Context& context) {
    const auto model = context.load(options.model);
    Report report;
    report.tool = "convert";
    report.context = context.describe(model, false);
    if (options.verify) {
        const auto problems = model.graph.verify();
        if (!problems.empty()) {
            report.verdict = false;
            report.tables.push_back(problem_table(problems));
            report.notes.push_back(fmt::format("{} found, so nothing was written",
                                               counted(problems.size(), "problem")));
            return report;
        }
    }
    const auto target = target_of(options);
    std::error_code ignored;
    const bool in_place = fs::equivalent(options.model, target, ignored);
    // Asked before saving: the file may be about to be replaced.
    const bool intact = model.intact();
    save(model, target, {.external = policy(options.external)});

    Section written{.key = "written", .title = "Written", .scalars = {}};
    auto& scalars = written.scalars;
    scalars.push_back({"file", "File", target.string(), Show::plain, ""});
    scalars.push_back(
        {"file_bytes", "Size", std::uint64_t{fs::file_size(target)}, Show::bytes, ""});
    if (options.external != "reference") {
        // What was written must be readable; this also counts what went into further files.
        const auto back = load(target, model.format);
        scalars.push_back({"external_bytes", "In further files", std::uint64_t{back.external_bytes},
                           Show::bytes, ""});
    }
    const bool identical = in_place ? intact : same_content(options.model, target);
    scalars.push_back({"identical", "Same bytes as the source", identical, Show::plain,
                       in_place ? "written over the source" : ""});
    report.sections.push_back(std::move(written));
    return report;
}

std::function<Report(Context&)> bind(Args& args) {
    const auto options = std::make_shared<Options>();
    args.positional(options->model, "MODEL", "Model file to read");
    args.positional(options->out, "OUT", "File to write, or a folder to write it in");
    args.choice("--external-data", options->external, "copy|reference|inline|separate",
                "Constants in further files: copied beside OUT, left where they are, taken into "
                "OUT; or all "
                "constants of 1 kB and more put into one file beside OUT");
    args.flag("--verify", options->verify, "Write nothing when the graph has problems (exit 1)");
    args.example("trocar convert model.onnx copy.onnx", "Read a model and write it back");
    args.example("trocar convert model.onnx one.onnx --external-data inline",
                 "Gather a model and its external data in one file");
    return [options](Context& context) { return convert(*options, context); };
}

}  // namespace

extern const Command convert_tool{
    .name = "convert",
    .summary = "Read a model and write it back, with its external data where you want it",
    .bind = bind,
};

}  // namespace trocar
