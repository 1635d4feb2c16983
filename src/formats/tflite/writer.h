#pragma once

#include <filesystem>

#include "trocar/format.h"

namespace trocar::tflite {

void write_file(const Model& model, const std::filesystem::path& path, const SaveOptions& options);
Encoded encode(const Model& model, const EncodeOptions& options);

// Writes the model anew even where it was not edited. Constants that take more than `inside` bytes
// together go behind the flatbuffer, which cannot grow beyond 2 GB.
inline constexpr std::size_t most_inside = std::size_t{1900} << 20;
std::string rebuild(const Model& model, std::size_t inside = most_inside);

}  // namespace trocar::tflite
