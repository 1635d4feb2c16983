#pragma once

#include <filesystem>

#include "formats/onnx/rope.h"
#include "formats/onnx/tensor_proto.h"
#include "trocar/format.h"
#include "trocar/model.h"

namespace trocar::onnx {

// Where the data of constants goes, by what holds them.
struct Placements {
    // Constants of the main graph; `name` is the tensor's.
    std::function<std::optional<ExternalData>(const Constant&, std::string_view name)> main;
    Placement nested;     // constants of subgraphs
    Placement attribute;  // tensors that are attributes
    bool moves = false;   // may any of them answer otherwise than the constant was read?
};
Placements keep_places();

// A model as bytes. What was not edited since it was read is borrowed from the file, all of it when
// nothing was. The model must outlive the rope.
Rope write_model(const Model& model, const Placements& places);

void write_file(const Model& model, const std::filesystem::path& path, const SaveOptions& options);
Encoded encode(const Model& model, const EncodeOptions& options);

}  // namespace trocar::onnx
