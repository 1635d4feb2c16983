#pragma once

#include <optional>
#include <string>

#include "engines/openvino/library.h"
#include "trocar/value.h"

namespace trocar::ov {

// The engine's number for an element type, and back; nothing where the other has no such type.
std::optional<ElementType> element_type(DType dtype);
std::optional<DType> dtype_of(ElementType type);

// The shape that one of the engine's functions gives for an object of its own.
template <class Object>
Shape shape_of(const Library& library, const Function<Status(const Object*, Dimensions*)>& ask,
               const Object* object) {
    Dimensions dims;
    const auto status = ask(object, &dims);
    if (status == Status::invalid_parameter) {
        return {};  // the C API has no shape of rank 0 to give: it is a scalar
    }
    library.check(status, "tell a shape");
    Shape shape(dims.dims, dims.dims + dims.rank);
    library.api().release_shape(&dims);
    return shape;
}

// A host tensor as the engine sees it.
struct Wrapped {
    Owned<TensorHandle> tensor;
    Value kept;  // the bytes that it reads: the caller's, or a copy where these are not aligned
};

// Throws Error(engine) or Error(unsupported) on what the engine cannot take, and on integers that
// it would cut: it computes all integers in 32 bits.
Wrapped wrap(const Library& library, const Value& value);

// A copy of a tensor of the engine's, which is its own only until the next run.
Value copy_of(const Library& library, const TensorHandle* tensor);

}  // namespace trocar::ov
