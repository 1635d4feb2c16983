#pragma once

#include <functional>
#include <memory>

#include "formats/tflite/model_generated.h"
#include "formats/tflite/sparsity.h"
#include "trocar/graph.h"

// Quantization and sparsity between a file and a graph.
namespace trocar::tflite {

// nullptr: the file says nothing. `constant` gives the constant of a tensor by its number.
std::shared_ptr<const Quantization> read_quantization(
    const fb::QuantizationParameters* stored,
    const std::function<Constant(std::int64_t)>& constant);
// `tensor` gives the number of a tensor that holds a constant.
flatbuffers::Offset<fb::QuantizationParameters> write_quantization(
    flatbuffers::FlatBufferBuilder& builder, const Quantization& quantization,
    const std::function<std::int32_t(const Constant&)>& tensor);

Sparsity read_sparsity(const fb::SparsityParameters& stored);
flatbuffers::Offset<fb::SparsityParameters> write_sparsity(flatbuffers::FlatBufferBuilder& builder,
                                                           const Sparsity& sparsity);

}  // namespace trocar::tflite
