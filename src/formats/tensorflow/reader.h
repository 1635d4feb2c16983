#pragma once

#include <filesystem>
#include <memory>

#include "trocar/model.h"

namespace trocar::tensorflow {

// A SavedModel, as its folder or its saved_model.pb, or a frozen graph?
bool matches(Bytes head, const std::filesystem::path& path);

Model read_path(const std::filesystem::path& path);

// A model from the bytes of a saved_model.pb or of a frozen graph, which `owner` keeps alive.
// `path` names it in messages; the variables of a SavedModel are looked for beside it, where it is
// not empty.
Model read_tensorflow(Bytes bytes, std::shared_ptr<const void> owner,
                      const std::filesystem::path& path);

}  // namespace trocar::tensorflow
