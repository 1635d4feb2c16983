#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace trocar::cli {

using Environment = std::function<std::string(const char* name)>;  // "" where not set
std::string process_environment(const char* name);

// Folders in which engines may stand, the first to look in first, each once; only
// ones that exist. Nothing is executed. In order:
//   what TROCAR_ENGINE_PATH lists, separated by colons (of a file: the folder it stands in);
//   the dependency folder of the project: TROCAR_DEPS, else .deps of the source tree in whose
//   build/NAME/ the executable stands, its NAME-VERSION folders with the newest first;
//   site-packages of VIRTUAL_ENV, of CONDA_PREFIX, of the python3 on PATH (also behind pyenv), of
//   the user, and of the system.
std::vector<std::string> engine_folders(const Environment& environment,
                                        const std::filesystem::path& executable,
                                        const std::filesystem::path& working_folder);

// Orders texts with numbers in them by the numbers: "ort-1.9" before "ort-1.31".
bool version_less(const std::string& a, const std::string& b);

}  // namespace trocar::cli
