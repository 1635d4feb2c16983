#pragma once

#include <filesystem>
#include <string>

namespace trocar::data {

// The kind of data that a file or a folder holds, as DataOptions names it. Throws Error(input) when
// it cannot be told.
std::string kind_of(const std::filesystem::path& path);

}  // namespace trocar::data
