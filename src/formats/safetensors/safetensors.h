#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "trocar/format.h"

// A safetensors file: the length of the header (eight bytes, little-endian); the header, a JSON
// object with the type, the shape and the first and last byte of each tensor, padded with blanks;
// then the elements of the tensors without gaps.

namespace trocar::safetensors {

// "BF16": what the format calls a type; nullptr where it has no name that all readers know.
const char* type_name(DType dtype);
std::optional<DType> type_of_name(std::string_view name);

bool holds(const Value& value);
// The tensors, mapped, not copied where they are aligned. Throws Error(input) on a broken file,
// Error(unsupported) on types that are not read.
std::vector<NamedValue> read_values(const std::filesystem::path& path);
void write_value(const NamedValue& value, const std::filesystem::path& path, Sync sync);
// Names must differ.
void write_values(std::span<const NamedValue> values, const std::filesystem::path& path, Sync sync);
std::unique_ptr<ValueArchive> create_archive(const std::filesystem::path& path);

}  // namespace trocar::safetensors
