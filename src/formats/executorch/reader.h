#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "trocar/model.h"

namespace trocar::executorch {

bool matches(Bytes head, const std::filesystem::path& path);

// Throws Error(input) on a broken file, Error(unsupported) on one of another version.
Model read_file(const std::filesystem::path& path);
// `owner` keeps the bytes alive; `path`, which may be empty, is for messages.
Model read_bytes(Bytes bytes, std::shared_ptr<const void> owner, const std::filesystem::path& path);

// What a model remembers of its file.
struct Image {
    std::shared_ptr<const void> owner;
    Bytes file;
    std::vector<Property> metadata;
};

}  // namespace trocar::executorch
