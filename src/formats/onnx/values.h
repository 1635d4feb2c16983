#pragma once

#include <filesystem>
#include <vector>

#include "trocar/format.h"
#include "trocar/value.h"

// Files of one value each: a TensorProto, SequenceProto, OptionalProto or MapProto.
namespace trocar::onnx {

// Such a file does not say which of them it holds; its fields tell, but for an optional with a
// value, which has the bytes of a sequence of one and is read as that.
std::vector<NamedValue> read_values(const std::filesystem::path& path);
std::vector<NamedValue> read_values(Bytes bytes, std::shared_ptr<const void> owner,
                                    const std::filesystem::path& path);
void write_value(const NamedValue& value, const std::filesystem::path& path, Sync sync = Sync::yes);
std::string encode_value(const NamedValue& value);
bool holds(const Value& value);

}  // namespace trocar::onnx
