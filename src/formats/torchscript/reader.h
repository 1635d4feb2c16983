#pragma once

#include <filesystem>
#include <memory>

#include "trocar/model.h"

namespace trocar::torchscript {

// A zip archive that torch wrote around a pickle? Looks at the archive's directory, so `path` must
// be a file.
bool matches(Bytes head, const std::filesystem::path& path);

Model read_file(const std::filesystem::path& path);

// A model from the bytes of an archive, which `owner` keeps alive (nullptr: the caller does).
// `path` names it in messages.
Model read_torchscript(Bytes bytes, std::shared_ptr<const void> owner,
                       const std::filesystem::path& path);

}  // namespace trocar::torchscript
