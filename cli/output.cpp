#include "cli/output.h"

#include <fmt/format.h>

#include <fstream>
#include <optional>

#include "trocar/error.h"
#include "util/files.h"

namespace trocar::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t file_width = 120;  // columns of a text report in a file

std::string known_suffixes() {
    std::string all;
    for (const auto* format : report_formats()) {
        all += fmt::format("{}{}", all.empty() ? "" : " ", format->suffixes);
    }
    return all;
}

// A pipe or a device is written to as it is; a file appears when it is complete.
void write_to(const fs::path& path, const std::string& text) {
    std::error_code ignored;
    const auto kind = fs::status(path, ignored).type();
    if (kind == fs::file_type::fifo || kind == fs::file_type::character) {
        std::ofstream out(path, std::ios::binary);
        out << text << std::flush;
        if (!out) {
            throw Error(Fault::input, fmt::format("cannot write '{}'", path.string()));
        }
        return;
    }
    write_file(path, text);
}

}  // namespace

Destinations::Destinations(const Common& common) : common_(common) {
    for (const auto& report : common.reports) {
        if (report == "-") {
            text_to_stdout_ = true;
            continue;
        }
        const fs::path path = report;
        const auto* format = report_format_for(path);
        if (!format) {
            throw Error(
                Fault::usage,
                fmt::format("the suffix of '{}' does not say what kind of report it is", report),
                fmt::format("known suffixes: {}", known_suffixes()));
        }
        std::error_code ignored;
        const auto folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
        if (!fs::is_directory(folder, ignored)) {
            throw Error(Fault::input, fmt::format("cannot write '{}': there is no folder '{}'",
                                                  report, folder.string()));
        }
        files_.push_back({path, format});
    }
}

void Destinations::write(Report report, Console console) const {
    if (!common_.quiet) {
        for (const auto& warning : report.warnings) {
            console.err.write(
                complaint("warning: ", warning, {}, console.err.colour(common_.colour)));
        }
    }
    std::optional<Error> failure;
    for (const auto& file : files_) {
        try {
            const Style style{.width = file_width, .colour = false, .ascii = false, .verbosity = 1};
            write_to(file.path, file.format->write(report, style));
        } catch (const Error& e) {
            if (!failure) {
                failure = e;
            }
        }
    }
    const bool as_text = text_to_stdout_ || !common_.quiet;
    if (common_.json) {
        console.out.write(find_report_format("json")->write(report, {}));
    } else if (as_text) {
        report.warnings.clear();  // they went to standard error
        const Style style{
            .width =
                common_.width >= 0 ? static_cast<std::size_t>(common_.width) : console.out.width(),
            .colour = console.out.colour(common_.colour),
            .ascii = only_ascii(),
            .verbosity = common_.verbosity(),
        };
        console.out.write(find_report_format("text")->write(report, style));
    }
    if (failure) {
        throw Error(*failure);
    }
}

}  // namespace trocar::cli
