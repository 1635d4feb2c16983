#pragma once

#include <filesystem>
#include <vector>

#include "cli/common.h"
#include "cli/terminal.h"
#include "trocar/report.h"

namespace trocar::cli {

// Where reports go, checked before the work begins: throws Error(usage) on a suffix that says no
// kind, Error(input) where the folder is not there.
class Destinations {
public:
    explicit Destinations(const Common& common);

    // Warnings to standard error; the report to every file, then to standard output. A file that
    // cannot be written does not keep the others from being written; its Error is thrown at the
    // end.
    void write(Report report, Console console) const;

private:
    struct File {
        std::filesystem::path path;
        const ReportFormat* format;
    };
    const Common& common_;
    std::vector<File> files_;
    bool text_to_stdout_ = false;  // asked for, so also when quiet
};

}  // namespace trocar::cli
