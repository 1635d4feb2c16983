#include "util/strided.h"

#include <fmt/format.h>

#include <cstring>

#include "trocar/error.h"
#include "util/text.h"

namespace trocar {

namespace {

// What a tensor that names its elements more than once (a stride of 0) may grow to.
constexpr std::size_t allowance = std::size_t{64} << 20;
constexpr std::size_t expansion = 16;

// Where the elements of a tensor lie in its storage, in elements.
struct Extent {
    Shape shape;
    std::vector<std::int64_t> strides;
    std::size_t first = 0;
    std::size_t count = 0;
    bool contiguous = true;
};

Extent extent_of(const Strided& tensor, std::size_t stored,
                 const std::function<void(const std::string&)>& fail) {
    Extent extent;
    for (const auto size : tensor.shape) {
        if (size < 0) {
            fail("a stored tensor has a size, stride or offset that is no number");
        }
    }
    extent.shape = tensor.shape;
    extent.count = element_count(extent.shape);
    if (tensor.offset < 0 ||
        (!tensor.strides.empty() && tensor.strides.size() != tensor.shape.size())) {
        fail("a stored tensor has a size, stride or offset that is no number");
    }
    extent.first = static_cast<std::size_t>(tensor.offset);
    std::int64_t expected = 1;
    std::size_t last = extent.first;
    for (std::size_t i = extent.shape.size(); i-- > 0;) {
        const auto size = extent.shape[i];
        const auto stride = tensor.strides.empty() ? expected : tensor.strides[i];
        if (stride < 0) {
            fail("a stored tensor has a size, stride or offset that is no number");
        }
        extent.strides.insert(extent.strides.begin(), size == 1 ? 0 : stride);
        if (size == 1 || extent.count == 0) {
            continue;
        }
        extent.contiguous = extent.contiguous && stride == expected;
        expected *= size;
        std::size_t reach = 0;
        if (__builtin_mul_overflow(static_cast<std::size_t>(size - 1),
                                   static_cast<std::size_t>(stride), &reach) ||
            __builtin_add_overflow(last, reach, &last)) {
            fail("its strides do not fit 64 bits");
        }
    }
    if (extent.count > 0 && last >= stored) {
        fail(fmt::format("its elements reach to {}, its file holds {}", last + 1, stored));
    }
    return extent;
}

// The elements in order, the last dimension innermost.
std::vector<std::byte> gather(const Extent& extent, Bytes storage, std::size_t width) {
    std::vector<std::byte> bytes(extent.count * width);
    if (bytes.empty()) {
        return bytes;
    }
    std::vector<std::int64_t> at(extent.shape.size());
    auto place = static_cast<std::int64_t>(extent.first);
    for (std::size_t i = 0; i < extent.count; ++i) {
        std::memcpy(bytes.data() + i * width,
                    storage.data() + static_cast<std::size_t>(place) * width, width);
        for (std::size_t axis = at.size(); axis-- > 0;) {
            place += extent.strides[axis];
            if (++at[axis] < extent.shape[axis]) {
                break;
            }
            place -= extent.strides[axis] * extent.shape[axis];
            at[axis] = 0;
        }
    }
    return bytes;
}

}  // namespace

StridedConstant strided_constant(const Strided& tensor, const Storage& storage,
                                 const std::string& storage_name,
                                 const std::function<void(const std::string&)>& fail,
                                 const std::function<Constant()>& absent) {
    StridedConstant made;
    const auto width = bits(tensor.dtype) / 8;
    if (width == 0) {
        made.constant = Constant::view(tensor.dtype, tensor.shape, storage.bytes, storage.owner);
        return made;
    }
    const auto extent =
        extent_of(tensor, storage.bytes.empty() ? SIZE_MAX : storage.bytes.size() / width, fail);
    made.identity = fmt::format("{} {} {} {} {}", storage_name, name(tensor.dtype), extent.first,
                                join(extent.shape, ","), join(extent.strides, ","));
    if (storage.bytes.empty() && extent.count > 0) {
        made.constant = absent();
    } else if (extent.contiguous) {
        made.constant = Constant::view(
            tensor.dtype, extent.shape,
            extent.count == 0 ? Bytes()
                              : storage.bytes.subspan(extent.first * width, extent.count * width),
            storage.owner);
    } else if (extent.count > allowance && extent.count / expansion > storage.bytes.size()) {
        fail(fmt::format("{} elements are made of {} bytes", extent.count, storage.bytes.size()));
    } else {
        made.constant = Constant::lazy(tensor.dtype, extent.shape, [extent, storage, width] {
            return gather(extent, storage.bytes, width);
        });
    }
    return made;
}

}  // namespace trocar
