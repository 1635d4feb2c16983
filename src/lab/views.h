#pragma once

#include <filesystem>
#include <string>

#include "trocar/value.h"

namespace trocar::lab {

// Pictures of a tensor with channels: STEM.png, a grid of its channels (of the first element of the
// batch), each from its least to its greatest number; STEM.svg, how the numbers of each channel are
// spread. Nothing for tensors without channels and numbers. Returns whether there were some.
bool write_views(const Value& value, const std::string& name, const std::filesystem::path& stem);

}  // namespace trocar::lab
