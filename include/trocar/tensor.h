#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trocar/dtype.h"

#pragma GCC visibility push(default)
namespace trocar {

using Bytes = std::span<const std::byte>;
using Shape = std::vector<std::int64_t>;  // concrete: every dimension ≥ 0

// Product of the dimensions; 1 for a scalar. Throws Error(input) on a negative dimension or when
// the product does not fit 63 bits.
std::size_t element_count(std::span<const std::int64_t> shape);

// "2x3x224x224"; "scalar" for rank 0.
std::string shape_text(std::span<const std::int64_t> shape);

// One dimension as a file declares it: a number, a symbol ("batch"), or neither (unknown).
struct Dim {
    std::int64_t value = -1;  // -1: not a number
    std::string symbol;
    bool operator==(const Dim&) const = default;
};

// The declared type of a tensor, as far as the file tells.
struct Type {
    enum class Kind { unknown, tensor, sparse_tensor, sequence, map, optional, opaque };
    Kind kind = Kind::unknown;
    DType dtype = DType::undefined;        // of a (sparse) tensor's elements, or of a map's keys
    std::optional<std::vector<Dim>> dims;  // absent: not even the rank is known
    std::vector<Type> element;             // one entry for sequence, map (its values) and optional

    static Type tensor(DType dtype) { return {Kind::tensor, dtype, std::nullopt, {}}; }
    static Type tensor(DType dtype, std::span<const std::int64_t> shape);

    // The shape, when every dimension is a number.
    std::optional<Shape> shape() const;
    bool operator==(const Type&) const = default;
};

// "f32[batch,3,224,224]", "sequence(f32[?])", "unknown".
std::string type_text(const Type& type);

// Where a constant's bytes lie when they are not in the model file itself.
struct ExternalData {
    std::string location;  // as written in the model file, relative to its folder
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    std::string file = {};  // the file as it was found on this machine; empty: not known
};

// The form in which a file stores a constant whose elements are decoded when somebody asks for
// them.
class StoredForm {
public:
    virtual ~StoredForm() = default;
    virtual std::string text() const = 0;  // "block sparse 4x1"
    virtual std::size_t bytes() const = 0;
};

// The value of a constant. Copies are cheap and share the bytes, which live as long as any copy.
// Dense bytes are little-endian elements without padding, as in ONNX's raw_data.
class Constant {
public:
    Constant() = default;

    // A view: `owner` keeps `bytes` alive. Throws Error(input) when the size of `bytes` is not that
    // of the shape.
    static Constant view(DType dtype, Shape shape, Bytes bytes, std::shared_ptr<const void> owner);
    static Constant copy(DType dtype, Shape shape, Bytes bytes);
    // Decoded on first use, once, thread-safe; for files that store elements in another form, which
    // `form` keeps for writing it back.
    static Constant lazy(DType dtype, Shape shape, std::function<std::vector<std::byte>()> decode,
                         std::shared_ptr<const StoredForm> form = nullptr);
    static Constant strings(Shape shape, std::vector<std::string> values);
    // COO as in ONNX: `values` [nnz], `indices` [nnz] (linear) or [nnz, rank], signed integers.
    static Constant sparse(Shape shape, Constant values, Constant indices);

    template <class T>  // of(DType::i64, {2}, std::vector<std::int64_t>{1, -1})
    static Constant of(DType dtype, const Shape& shape, const std::vector<T>& values) {
        return copy(dtype, shape, std::as_bytes(std::span<const T>(values)));
    }

    DType dtype() const { return dtype_; }
    const Shape& shape() const { return shape_; }
    std::size_t element_count() const { return trocar::element_count(shape_); }

    bool is_sparse() const { return sparse_ != nullptr; }
    bool is_string() const { return dtype_ == DType::string; }
    Bytes bytes()
        const;  // dense constants only; decodes a lazy one. Throws Error(input) where it cannot
    const std::vector<std::string>& string_values() const;  // string constants only
    const Constant& values() const;                         // sparse constants only
    const Constant& indices() const;                        // sparse constants only
    std::size_t stored_bytes() const;  // what the file holds: values and indices where sparse
    const std::shared_ptr<const StoredForm>& form() const { return form_; }  // nullptr: plain

    // What `bytes()` keeps alive; for a Value that borrows them.
    std::shared_ptr<const void> owner() const;

    const std::optional<ExternalData>& external() const { return external_; }
    void set_external(ExternalData where) { external_ = std::move(where); }

private:
    struct Lazy;
    struct Sparse;
    DType dtype_ = DType::undefined;
    Shape shape_;
    Bytes bytes_;
    std::shared_ptr<const void> owner_;
    std::shared_ptr<Lazy> lazy_;
    std::shared_ptr<const StoredForm> form_;
    std::shared_ptr<const Sparse> sparse_;
    std::shared_ptr<const std::vector<std::string>> strings_;
    std::optional<ExternalData> external_;
};

// The elements of a sparse constant written out, row-major. Throws Error(input) on indices outside
// the shape, and when the dense form would be over `limit` bytes.
Constant densify(const Constant& sparse, std::size_t limit = std::size_t{1} << 32);

}  // namespace trocar
#pragma GCC visibility pop
