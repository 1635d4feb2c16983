#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <unordered_map>

#include "trocar/model.h"

namespace trocar::onnx {

Model read_file(const std::filesystem::path& path);

// A model from bytes that `owner` keeps alive (nullptr: the caller does). `path` names it in
// messages; external data is looked for in its folder, and refused when `path` is empty.
// `is_mapped`: the bytes are those of a MappedFile, whose pages may be released.
Model read_onnx(Bytes bytes, std::shared_ptr<const void> owner, const std::filesystem::path& path,
                bool is_mapped = false);

// What the graph itself does not hold of the file it was read from (Graph::image).
struct GraphImage {
    // Declarations that are no tensor's `declaration`, by where they lie: of a tensor that has
    // another one, or of none (TensorId::none).
    std::unordered_map<const std::byte*, TensorId> more_declarations;
    // Tensors that quantization annotations name.
    std::unordered_map<std::string, TensorId> annotated;
};

}  // namespace trocar::onnx
