#pragma once

#include <filesystem>
#include <string>

#include "trocar/format.h"

namespace trocar::executorch {

// Throw Error(unsupported) where the format, or the kernels of ExecuTorch, have no words for a
// model.
void write_file(const Model& model, const std::filesystem::path& path, const SaveOptions& options);
Encoded encode(const Model& model, const EncodeOptions& options);
// The same, also where the file it was read from could be given back.
std::string rebuild(const Model& model);

}  // namespace trocar::executorch
