#include "inject/lane.h"

#include <algorithm>
#include <cstring>

#include "inject/bits.h"

namespace trocar::inject {

Patch* Lane::patch(TensorId id) {
    const auto found =
        std::find_if(patches.begin(), patches.end(), [&](const auto& p) { return p.first == id; });
    return found == patches.end() ? nullptr : &found->second;
}

const Patch* Lane::patch(TensorId id) const {
    return const_cast<Lane*>(this)->patch(id);
}

Constant changed(const Constant& original, const ConstantChange& change) {
    if (change.constant) {
        return *change.constant;
    }
    std::vector<std::byte> bytes(original.bytes().begin(), original.bytes().end());
    for (const auto& poke : change.pokes) {
        store_bits(original.dtype(), bytes, poke.stored, poke.word);
    }
    return Constant::copy(original.dtype(), original.shape(), bytes);
}

Value complete(const Value& golden, const Geometry& geometry, const Patch& patch) {
    if (patch.is_whole()) {
        return patch.whole;
    }
    auto value = Value::copy(golden.dtype(), golden.shape(), golden.bytes());
    overlay(geometry, patch, value.mutable_bytes().data());
    return value;
}

void overlay(const Geometry& geometry, const Patch& patch, std::byte* tensor) {
    const auto* from = patch.cells.data();
    for (const auto position : patch.positions) {
        auto* at = tensor + geometry.at(position) +
                   static_cast<std::size_t>(patch.low) * geometry.group_step;
        for (auto g = patch.low; g < patch.high; ++g) {
            std::memcpy(at, from, geometry.cell);
            at += geometry.group_step;
            from += geometry.cell;
        }
    }
}

namespace {

template <class Word>
bool any_nan(Bytes bytes, Word exponent, Word mantissa) {
    bool found = false;
    for (std::size_t i = 0; i + sizeof(Word) <= bytes.size(); i += sizeof(Word)) {
        Word word = 0;
        std::memcpy(&word, bytes.data() + i, sizeof word);
        found = found || ((word & exponent) == exponent && (word & mantissa) != 0);
    }
    return found;
}

}  // namespace

bool may_have_nan(const Patch& patch, DType dtype) {
    const auto bytes = patch.is_whole() ? patch.whole.bytes() : Bytes(patch.cells);
    switch (dtype) {
        case DType::f32:
            return any_nan<std::uint32_t>(bytes, 0x7f800000, 0x007fffff);
        case DType::f64:
            return any_nan<std::uint64_t>(bytes, 0x7ff0000000000000, 0x000fffffffffffff);
        case DType::f16:
            return any_nan<std::uint16_t>(bytes, 0x7c00, 0x03ff);
        case DType::bf16:
            return any_nan<std::uint16_t>(bytes, 0x7f80, 0x007f);
        default:
            return is_float(dtype);
    }
}

namespace {

// Marks the positions at which two tensors differ, and finds the groups.
struct Marks {
    std::vector<bool> at;
    std::size_t count = 0;
    std::int64_t low = -1;
    std::int64_t high = 0;
};

void mark(const std::byte* a, const std::byte* b, const Geometry& g, Marks& marks) {
    marks.at.assign(static_cast<std::size_t>(g.positions()), false);
    for (std::int64_t image = 0; image < g.outer; ++image) {
        for (std::int64_t group = 0; group < g.groups; ++group) {
            const auto plane = static_cast<std::size_t>(image) * g.outer_step +
                               static_cast<std::size_t>(group) * g.group_step;
            const auto size = static_cast<std::size_t>(g.inner()) * g.cell;
            if (std::memcmp(a + plane, b + plane, size) == 0) {
                continue;
            }
            marks.low = marks.low < 0 ? group : std::min(marks.low, group);
            marks.high = std::max(marks.high, group + 1);
            for (std::int64_t i = 0; i < g.inner(); ++i) {
                const auto position = static_cast<std::size_t>(image * g.inner() + i);
                const auto offset = plane + static_cast<std::size_t>(i) * g.cell;
                if (!marks.at[position] && std::memcmp(a + offset, b + offset, g.cell) != 0) {
                    marks.at[position] = true;
                    ++marks.count;
                }
            }
        }
    }
}

}  // namespace

Compared compare(const Value& golden, const Geometry& g, const Value& faulty) {
    Compared result;
    const bool comparable = golden.is_tensor() && faulty.is_tensor() &&
                            golden.dtype() == faulty.dtype() && bits(golden.dtype()) > 0 &&
                            golden.shape() == faulty.shape();
    if (!comparable) {
        result.patch.whole = faulty;
        return result;
    }
    if (golden.bytes().empty()) {
        result.same = true;
        return result;
    }
    const auto* a = golden.bytes().data();
    const auto* b = faulty.bytes().data();
    Marks marks;
    mark(a, b, g, marks);
    if (marks.count == 0) {
        result.same = true;
        return result;
    }
    auto& patch = result.patch;
    if (2 * marks.count >= marks.at.size()) {
        patch.whole = faulty;
    }
    for (std::size_t i = 0; marks.count < marks.at.size() && i < marks.at.size(); ++i) {
        if (marks.at[i]) {
            patch.positions.push_back(static_cast<std::int32_t>(i));
        }
    }
    if (patch.is_whole()) {
        return result;
    }
    patch.low = marks.low;
    patch.high = marks.high;
    patch.cells.resize(marks.count * static_cast<std::size_t>(patch.high - patch.low) * g.cell);
    auto* to = patch.cells.data();
    for (const auto position : patch.positions) {
        const auto* from = b + g.at(position) + static_cast<std::size_t>(patch.low) * g.group_step;
        for (auto group = patch.low; group < patch.high; ++group) {
            std::memcpy(to, from, g.cell);
            to += g.cell;
            from += g.group_step;
        }
    }
    return result;
}

}  // namespace trocar::inject
