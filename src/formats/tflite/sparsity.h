#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trocar/tensor.h"

namespace trocar::tflite {

// One level of a sparse tensor: all places, or those that are listed.
struct SparseLevel {
    bool listed = false;
    std::int32_t size = 0;               // of a level with all places
    std::vector<std::int32_t> segments;  // where the places of each parent begin, and the last end
    std::vector<std::int32_t> places;
    std::uint8_t segment_width = 4;  // bytes of a number in the file: 1, 2 or 4
    std::uint8_t place_width = 4;
};

// How a sparse tensor is stored: dimensions (those of the shape, then those of blocks) in the order
// in which they are nested, and for each dimension of a block the one that it divides.
struct Sparsity {
    std::vector<std::int64_t> order;
    std::vector<std::int64_t> block_map;
    std::vector<SparseLevel> levels;
};

class SparseForm final : public StoredForm {
public:
    SparseForm(Sparsity how, DType dtype, Shape shape, Bytes values,
               std::shared_ptr<const void> owner);
    std::string text() const override;  // "sparse, 12 % stored", "sparse in blocks of 1x4…"
    std::size_t bytes() const override { return values_.size() + index_bytes_; }
    const Sparsity& how() const { return how_; }
    Bytes values() const { return values_; }
    std::vector<std::byte> decode() const;  // throws Error(input)

private:
    Sparsity how_;
    DType dtype_;
    Shape shape_;
    Bytes values_;
    std::shared_ptr<const void> owner_;
    std::size_t index_bytes_ = 0;
};

// A constant with the elements of a sparse tensor, decoded when somebody asks for them.
Constant sparse_constant(Sparsity how, DType dtype, Shape shape, Bytes values,
                         std::shared_ptr<const void> owner);

}  // namespace trocar::tflite
