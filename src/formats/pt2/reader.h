#pragma once

#include <filesystem>
#include <memory>

#include "trocar/model.h"

namespace trocar::pt2 {

// A zip archive that torch.export wrote, in the present layout or an older one? Looks at the
// archive's directory, so `path` must be a file.
bool matches(Bytes head, const std::filesystem::path& path);

Model read_file(const std::filesystem::path& path);

// A model from the bytes of an archive, which `owner` keeps alive (nullptr: the caller does).
// `path` names it in messages.
Model read_pt2(Bytes bytes, std::shared_ptr<const void> owner, const std::filesystem::path& path);

}  // namespace trocar::pt2
