#include "formats/tflite/sparsity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "trocar/error.h"
#include "util/text.h"

namespace trocar::tflite {

namespace {

constexpr std::size_t most_levels = 32;
// Dense elements for each byte in the file, beyond which a shape is not believed.
constexpr std::size_t most_growth = 1024;

[[noreturn]] void broken(const char* what) {
    throw Error(Fault::input, fmt::format("a sparse tensor is broken: {}", what));
}

// Walks the stored values, level by level, and puts each in its place.
class Decoder {
public:
    Decoder(const Sparsity& how, const Shape& shape, Bytes values, std::size_t width,
            std::span<std::byte> dense)
        : how_(how), shape_(shape), values_(values), width_(width), dense_(dense) {
        check();
        at_.assign(how.levels.size(), 0);
    }

    void run() {
        visit(0, 0);
        if (used_ != values_.size()) {
            broken("it has more values than places");
        }
    }

private:
    void check() {
        const auto rank = shape_.size();
        const auto count = rank + how_.block_map.size();
        if (how_.levels.size() != count || how_.order.size() != count || count > most_levels) {
            broken("its dimensions do not fit its shape");
        }
        std::vector<bool> seen(count);
        std::vector<std::size_t> level_of(count);
        for (std::size_t level = 0; level < count; ++level) {
            const auto dim = how_.order[level];
            if (dim < 0 || static_cast<std::size_t>(dim) >= count ||
                seen[static_cast<std::size_t>(dim)]) {
                broken("a dimension is visited twice or never");
            }
            seen[static_cast<std::size_t>(dim)] = true;
            level_of[static_cast<std::size_t>(dim)] = level;
        }
        extents_.assign(shape_.begin(), shape_.end());
        for (std::size_t block = 0; block < how_.block_map.size(); ++block) {
            const auto dim = how_.block_map[block];
            const auto& level = how_.levels[level_of[rank + block]];
            if (dim < 0 || static_cast<std::size_t>(dim) >= rank || level.listed ||
                level.size <= 0 || extents_[static_cast<std::size_t>(dim)] % level.size != 0) {
                broken("its blocks do not divide its shape");
            }
            extents_[static_cast<std::size_t>(dim)] /= level.size;
            extents_.push_back(level.size);
        }
        for (std::size_t dim = 0; dim < rank; ++dim) {
            const auto& level = how_.levels[level_of[dim]];
            if (!level.listed && level.size != extents_[dim]) {
                broken("a dense dimension has another size than the shape");
            }
        }
    }

    void visit(std::size_t level, std::size_t parent) {
        if (level == how_.levels.size()) {
            place();
            return;
        }
        const auto& here = how_.levels[level];
        if (!here.listed) {
            const auto size = static_cast<std::size_t>(here.size);
            for (std::size_t i = 0; i < size; ++i) {
                at_[level] = static_cast<std::int64_t>(i);
                visit(level + 1, parent * size + i);
            }
            return;
        }
        if (parent + 1 >= here.segments.size()) {
            broken("a list of segments is too short");
        }
        const auto begin = here.segments[parent];
        const auto end = here.segments[parent + 1];
        if (begin < 0 || end < begin || static_cast<std::size_t>(end) > here.places.size()) {
            broken("a segment lies outside its list");
        }
        const auto extent = extents_[static_cast<std::size_t>(how_.order[level])];
        for (auto i = begin; i < end; ++i) {
            at_[level] = here.places[static_cast<std::size_t>(i)];
            if (at_[level] < 0 || at_[level] >= extent) {
                broken("a place lies outside the shape");
            }
            visit(level + 1, static_cast<std::size_t>(i));
        }
    }

    void place() {
        if (values_.size() - used_ < width_) {
            broken("it has fewer values than places");
        }
        std::vector<std::int64_t>& by_dim = scratch_;
        by_dim.assign(extents_.size(), 0);
        for (std::size_t level = 0; level < at_.size(); ++level) {
            by_dim[static_cast<std::size_t>(how_.order[level])] = at_[level];
        }
        const auto rank = shape_.size();
        for (std::size_t block = 0; block < how_.block_map.size(); ++block) {
            auto& whole = by_dim[static_cast<std::size_t>(how_.block_map[block])];
            whole = whole * extents_[rank + block] + by_dim[rank + block];
        }
        std::size_t flat = 0;
        for (std::size_t dim = 0; dim < rank; ++dim) {
            flat = flat * static_cast<std::size_t>(shape_[dim]) +
                   static_cast<std::size_t>(by_dim[dim]);
        }
        std::memcpy(dense_.data() + flat * width_, values_.data() + used_, width_);
        used_ += width_;
    }

    const Sparsity& how_;
    const Shape& shape_;
    Bytes values_;
    std::size_t width_;
    std::span<std::byte> dense_;
    std::vector<std::int64_t> extents_;  // by dimension, those of blocks last
    std::vector<std::int64_t> at_;       // by level
    std::vector<std::int64_t> scratch_;
    std::size_t used_ = 0;
};

}  // namespace

SparseForm::SparseForm(Sparsity how, DType dtype, Shape shape, Bytes values,
                       std::shared_ptr<const void> owner)
    : how_(std::move(how)),
      dtype_(dtype),
      shape_(std::move(shape)),
      values_(values),
      owner_(std::move(owner)) {
    for (const auto& level : how_.levels) {
        index_bytes_ +=
            level.segments.size() * level.segment_width + level.places.size() * level.place_width;
    }
}

std::string SparseForm::text() const {
    std::vector<std::int32_t> blocks;
    for (std::size_t level = 0; level < std::min(how_.levels.size(), how_.order.size()); ++level) {
        if (how_.order[level] >= static_cast<std::int64_t>(shape_.size())) {
            blocks.push_back(how_.levels[level].size);
        }
    }
    const auto dense = byte_size(dtype_, element_count(shape_));
    const auto share =
        dense == 0 ? 0.0 : 100.0 * static_cast<double>(values_.size()) / static_cast<double>(dense);
    return fmt::format("sparse{}, {:.3g} % of the elements stored",
                       blocks.empty() ? "" : fmt::format(" in blocks of {}", join(blocks, "x")),
                       share);
}

std::vector<std::byte> SparseForm::decode() const {
    const auto width = bits(dtype_) / 8;
    if (width == 0) {
        throw Error(Fault::unsupported,
                    fmt::format("sparse tensors of {} cannot be decoded", name(dtype_)));
    }
    const auto size = byte_size(dtype_, element_count(shape_));
    if (size / most_growth > values_.size() + index_bytes_) {
        broken("its shape is far larger than its values");
    }
    std::vector<std::byte> dense(size);
    Decoder(how_, shape_, values_, width, dense).run();
    return dense;
}

Constant sparse_constant(Sparsity how, DType dtype, Shape shape, Bytes values,
                         std::shared_ptr<const void> owner) {
    auto form =
        std::make_shared<const SparseForm>(std::move(how), dtype, shape, values, std::move(owner));
    return Constant::lazy(
        dtype, std::move(shape), [form] { return form->decode(); }, form);
}

}  // namespace trocar::tflite
