#pragma once

#include <filesystem>

#include "trocar/tensor.h"

namespace trocar::onnx {

// Do these first bytes of a file look like an ONNX model?
bool matches(Bytes head, const std::filesystem::path& path);

}  // namespace trocar::onnx
