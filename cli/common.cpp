#include "cli/common.h"

#include <algorithm>

#include "trocar/error.h"

namespace trocar::cli {

void declare(Declarations& declarations, Common& common, bool several_engines) {
    declarations.begin(Group::output);
    declarations.flag("--json", common.json, "Print the report as JSON, with everything in it");
    declarations.option(
        "--report", common.reports, "FILE",
        "Also write the report to FILE; the suffix says how: .json, .csv (the first "
        "table), .md, .xml (JUnit) or .txt; - is standard output, as text");
    declarations.flag("-q,--quiet", common.quiet,
                      "Print nothing but errors, and what --json and --report ask for");
    declarations.flag("-v,--verbose", common.verbose,
                      "Say what is being done, and what the numbers depend on");
    declarations.choice("--color", common.colour, "auto|always|never", "Use colours");
    declarations.option("--width", common.width, "N",
                        "Columns of the text; 0: no limit; when not given, those of the terminal");
    declarations.begin(Group::engine);
    const auto* form = "NAME[:PATH][,KEY=VALUE...]";
    const auto* what =
        "Engine to run on, where it stands, and options for it, such as provider=cuda; `trocar "
        "engines` lists what is here";
    if (several_engines) {
        declarations.option("--engine", common.engines, form, what);
    } else {
        declarations.option("--engine", common.engine, form, what);
        declarations.once("--engine", "`trocar compare` and `trocar bisect` take several engines");
    }
    declarations.option("--threads", common.threads, "N",
                        "Threads the engine may use; 0: one per core");
    declarations.option("--format", common.format, "NAME",
                        "Format of the model file, where its content does not tell");
    declarations.option("--seed", common.seed, "N", "Seed of everything random");
}

void check(const Common& common) {
    const auto refuse = [](const char* sentence, const char* hint = "") {
        throw Error(Fault::usage, sentence, hint);
    };
    if (common.quiet && common.verbose) {
        refuse("--quiet and --verbose contradict each other");
    }
    if (common.json && std::count(common.reports.begin(), common.reports.end(), "-") > 0) {
        refuse("--json and --report - both want standard output",
               "give one of them a file: --report FILE.json");
    }
    if (common.threads < 0 || common.threads > 4096) {
        refuse("--threads must be between 0 and 4096", "0 means one per core");
    }
    if (common.seed < 0) {
        refuse("--seed must not be negative");
    }
    if (common.width < -1 || (common.width > 0 && common.width < 20)) {
        refuse("--width must be at least 20", "0 means no limit");
    }
}

}  // namespace trocar::cli
