#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "trocar/format.h"
#include "trocar/value.h"

namespace trocar::numpy {

// The arrays of an .npz archive (stored or deflated), named as in it, in its order. Throws
// Error(input) on a broken archive, one that unpacks to far more than it could honestly hold, and
// names that are there twice.
std::vector<NamedValue> read_archive(const std::filesystem::path& path);

// A new archive: a ZIP file of .npy files, stored, not deflated.
std::unique_ptr<ValueArchive> create_archive(const std::filesystem::path& path);

}  // namespace trocar::numpy
