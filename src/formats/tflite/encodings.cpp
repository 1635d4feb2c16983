#include "formats/tflite/encodings.h"

#include <fmt/format.h>

#include "formats/tflite/types.h"
#include "trocar/error.h"

namespace trocar::tflite {

namespace {

using Builder = flatbuffers::FlatBufferBuilder;

template <class T>
std::vector<T> copied(const flatbuffers::Vector<T>* vector) {
    return vector != nullptr ? std::vector<T>(vector->begin(), vector->end()) : std::vector<T>();
}

template <class T>
flatbuffers::Offset<flatbuffers::Vector<T>> stored(Builder& builder, const std::vector<T>& values) {
    return values.empty() ? flatbuffers::Offset<flatbuffers::Vector<T>>(0)
                          : builder.CreateVector(values);
}

std::vector<std::int32_t> narrowed(const std::vector<std::int64_t>& numbers) {
    return {numbers.begin(), numbers.end()};
}

void read_details(const fb::QuantizationParameters& from, Quantization& to,
                  const std::function<Constant(std::int64_t)>& constant) {
    if (const auto* custom = from.details_as_CustomQuantization()) {
        const auto bytes = bytes_of(custom->custom());
        to.custom = Constant::copy(DType::u8, {static_cast<std::int64_t>(bytes.size())}, bytes);
    } else if (const auto* blocks = from.details_as_BlockwiseQuantization()) {
        to.blocks = {.scales = constant(blocks->scales()),
                     .zero_points = constant(blocks->zero_points()),
                     .size = blocks->block_size(),
                     .shape = integers_of(blocks->block_shape())};
    } else if (const auto* axes = from.details_as_MultiAxisQuantization()) {
        to.blocks = {.scales = constant(axes->scales()),
                     .zero_points = constant(axes->zero_points()),
                     .size = axes->block_size(),
                     .axes = integers_of(axes->quantized_dimensions()),
                     .by_axes = true};
    }
}

// The numbers of a level, whatever their width in the file.
struct Numbers {
    std::vector<std::int32_t> values;
    std::uint8_t width = 4;
};
Numbers read_numbers(fb::SparseIndexVector kind, const void* table) {
    Numbers numbers;
    const auto fill = [&](const auto* stored_values, std::uint8_t width) {
        numbers.width = width;
        if (stored_values != nullptr) {
            numbers.values.assign(stored_values->begin(), stored_values->end());
        }
    };
    if (table == nullptr) {
        return numbers;
    }
    switch (kind) {
        case fb::SparseIndexVector::Int32Vector:
            fill(static_cast<const fb::Int32Vector*>(table)->values(), 4);
            break;
        case fb::SparseIndexVector::Uint16Vector:
            fill(static_cast<const fb::Uint16Vector*>(table)->values(), 2);
            break;
        case fb::SparseIndexVector::Uint8Vector:
            fill(static_cast<const fb::Uint8Vector*>(table)->values(), 1);
            break;
        default:
            break;
    }
    return numbers;
}

std::pair<fb::SparseIndexVector, flatbuffers::Offset<void>> write_numbers(
    Builder& builder, const std::vector<std::int32_t>& values, std::uint8_t width) {
    if (width == 1) {
        const std::vector<std::uint8_t> small(values.begin(), values.end());
        return {fb::SparseIndexVector::Uint8Vector,
                fb::CreateUint8Vector(builder, builder.CreateVector(small)).Union()};
    }
    if (width == 2) {
        const std::vector<std::uint16_t> small(values.begin(), values.end());
        return {fb::SparseIndexVector::Uint16Vector,
                fb::CreateUint16Vector(builder, builder.CreateVector(small)).Union()};
    }
    return {fb::SparseIndexVector::Int32Vector,
            fb::CreateInt32Vector(builder, builder.CreateVector(values)).Union()};
}

}  // namespace

std::shared_ptr<const Quantization> read_quantization(
    const fb::QuantizationParameters* from, const std::function<Constant(std::int64_t)>& constant) {
    if (from == nullptr) {
        return nullptr;
    }
    auto made = std::make_shared<Quantization>();
    made->scales = copied(from->scale());
    made->zero_points = copied(from->zero_point());
    made->axis = from->quantized_dimension();
    made->min = copied(from->min());
    made->max = copied(from->max());
    read_details(*from, *made, constant);
    const bool says =
        !made->empty() || !made->zero_points.empty() || !made->min.empty() || !made->max.empty();
    return says ? made : nullptr;
}

flatbuffers::Offset<fb::QuantizationParameters> write_quantization(
    Builder& builder, const Quantization& q,
    const std::function<std::int32_t(const Constant&)>& tensor) {
    auto kind = fb::QuantizationDetails::NONE;
    flatbuffers::Offset<void> details = 0;
    const auto zero_points = [&] {
        return q.blocks->zero_points.dtype() == DType::undefined ? -1
                                                                 : tensor(q.blocks->zero_points);
    };
    if (q.custom) {
        const auto bytes = q.custom->bytes();
        kind = fb::QuantizationDetails::CustomQuantization;
        // Some hold structs: as aligned as any.
        builder.ForceVectorAlignment(bytes.size(), 1, 16);
        details =
            fb::CreateCustomQuantization(
                builder, builder.CreateVector(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                              bytes.size()))
                .Union();
    } else if (q.blocks && q.blocks->by_axes) {
        kind = fb::QuantizationDetails::MultiAxisQuantization;
        const auto axes = stored(builder, narrowed(q.blocks->axes));
        details = fb::CreateMultiAxisQuantization(builder, tensor(q.blocks->scales), zero_points(),
                                                  static_cast<std::int32_t>(q.blocks->size), axes)
                      .Union();
    } else if (q.blocks) {
        kind = fb::QuantizationDetails::BlockwiseQuantization;
        const auto shape = stored(builder, narrowed(q.blocks->shape));
        details = fb::CreateBlockwiseQuantization(builder, tensor(q.blocks->scales), zero_points(),
                                                  static_cast<std::int32_t>(q.blocks->size), shape)
                      .Union();
    }
    auto zeros = q.zero_points;
    if (zeros.empty() && !q.scales.empty()) {
        zeros.assign(q.scales.size(), 0);
    }
    const auto min = stored(builder, q.min);
    const auto max = stored(builder, q.max);
    const auto scale = stored(builder, q.scales);
    const auto zero = stored(builder, zeros);
    return fb::CreateQuantizationParameters(builder, min, max, scale, zero, kind, details, q.axis);
}

Sparsity read_sparsity(const fb::SparsityParameters& from) {
    Sparsity how;
    how.order = integers_of(from.traversal_order());
    how.block_map = integers_of(from.block_map());
    for (flatbuffers::uoffset_t i = 0; i < size_of(from.dim_metadata()); ++i) {
        const auto* dim = from.dim_metadata()->Get(i);
        auto& level = how.levels.emplace_back();
        level.listed = dim->format() == fb::DimensionType::SPARSE_CSR;
        level.size = dim->dense_size();
        auto segments = read_numbers(dim->array_segments_type(), dim->array_segments());
        auto places = read_numbers(dim->array_indices_type(), dim->array_indices());
        level.segments = std::move(segments.values);
        level.segment_width = segments.width;
        level.places = std::move(places.values);
        level.place_width = places.width;
    }
    return how;
}

flatbuffers::Offset<fb::SparsityParameters> write_sparsity(Builder& builder,
                                                           const Sparsity& sparsity) {
    std::vector<flatbuffers::Offset<fb::DimensionMetadata>> levels;
    for (const auto& level : sparsity.levels) {
        if (!level.listed) {
            levels.push_back(
                fb::CreateDimensionMetadata(builder, fb::DimensionType::DENSE, level.size));
            continue;
        }
        const auto segments = write_numbers(builder, level.segments, level.segment_width);
        const auto places = write_numbers(builder, level.places, level.place_width);
        levels.push_back(fb::CreateDimensionMetadata(builder, fb::DimensionType::SPARSE_CSR,
                                                     level.size, segments.first, segments.second,
                                                     places.first, places.second));
    }
    const auto order = builder.CreateVector(narrowed(sparsity.order));
    const auto blocks = stored(builder, narrowed(sparsity.block_map));
    return fb::CreateSparsityParameters(builder, order, blocks, builder.CreateVector(levels));
}

}  // namespace trocar::tflite
