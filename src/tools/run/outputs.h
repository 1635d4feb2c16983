#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "trocar/report.h"
#include "trocar/value.h"

namespace trocar {

// A file name for each tensor name, without suffix: characters that mean something to a shell or a
// file system become '_', and no two are the same, not even for a file system that ignores case.
std::vector<std::string> file_stems(const std::vector<NamedValue>& values);

// Writes each value to a file of its own in `folder`, which is made when it is not there. What no
// format holds is left out, with a sentence in `warnings`, and has an empty path.
std::vector<std::filesystem::path> write_outputs(const std::vector<NamedValue>& outputs,
                                                 const std::filesystem::path& folder,
                                                 std::vector<std::string>& warnings);

// One row per output: what it is and what its numbers are like. `files`: empty when none were
// written.
Table output_table(const std::vector<NamedValue>& outputs,
                   const std::vector<std::filesystem::path>& files);

}  // namespace trocar
