#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trocar/tensor.h"

#pragma GCC visibility push(default)
namespace trocar {

// Where a tensor's bytes are.
struct Device {
    std::string kind = "cpu";  // "cpu", "cuda"…
    int index = 0;
    bool is_host() const { return kind == "cpu"; }
    bool operator==(const Device&) const = default;
};

// What flows between programs at run time: a tensor, a sequence, a map, an optional without value.
// A handle: copies are cheap and share the data. An engine may hold the data in a form of its own.
class Value {
public:
    enum class Kind { none, tensor, sparse_tensor, sequence, map, opaque };

    // What stands behind a Value; engines derive their own. Must stay unchanged while shared,
    // apart from the bytes that `mutable_bytes` gives.
    class Body {
    public:
        virtual ~Body() = default;
        virtual Kind kind() const = 0;
        virtual DType dtype() const { return DType::undefined; }  // of a sequence: of its tensors
        virtual Shape shape() const { return {}; }
        virtual Device device() const { return {}; }
        virtual Bytes bytes() const { return {}; }  // host tensors, not strings
        // The same where the memory is this body's alone and may be written; else nothing.
        virtual std::span<std::byte> own_bytes() { return {}; }
        virtual std::vector<std::string> strings() const { return {}; }
        virtual std::vector<Value> items() const { return {}; }  // sequence; map: keys, values
    };

    Value() = default;  // none
    explicit Value(std::shared_ptr<Body> body) : body_(std::move(body)) {}

    // Host tensors. `tensor` allocates (zeroed, 64-byte aligned); `borrow` is a view whose bytes
    // `owner` keeps alive (nullptr: the caller does), and is never written through.
    static Value tensor(DType dtype, Shape shape);
    static Value copy(DType dtype, Shape shape, Bytes bytes);
    static Value borrow(DType dtype, Shape shape, Bytes bytes, std::shared_ptr<const void> owner);
    static Value strings(Shape shape, std::vector<std::string> values);
    static Value sequence(std::vector<Value> items);
    static Value map(Value keys, Value values);
    // Borrows; a sparse constant is made dense, bytes that are not aligned to their type (as files
    // may have them) are copied.
    static Value of(const Constant& constant);

    Kind kind() const { return body_ ? body_->kind() : Kind::none; }
    bool is_tensor() const { return kind() == Kind::tensor; }
    DType dtype() const { return body_ ? body_->dtype() : DType::undefined; }
    Shape shape() const { return body_ ? body_->shape() : Shape{}; }
    Device device() const { return body_ ? body_->device() : Device{}; }
    std::size_t element_count() const { return trocar::element_count(shape()); }

    Bytes bytes() const;  // throws Error(usage) unless a host tensor of a type with a fixed size
    // The bytes of a tensor whose memory is its own, as that of those made by `tensor` and `copy`,
    // for filling it; throws Error(usage) on others.
    std::span<std::byte> mutable_bytes();
    std::vector<std::string> string_values() const;
    std::vector<Value> items() const;

    template <class T>
    std::span<const T> as()
        const {  // as<float>(); the caller knows the type, and that it is aligned
        auto b = bytes();
        return {reinterpret_cast<const T*>(b.data()), b.size() / sizeof(T)};
    }

    const std::shared_ptr<Body>& body() const { return body_; }

private:
    std::shared_ptr<Body> body_;
};

struct NamedValue {
    std::string name;
    Value value;
};

// "f32 1x3x224x224", "sequence of 3", "none".
std::string value_text(const Value& value);

// The declared type that fits a value.
Type type_of(const Value& value);

// A value as `declared` wants it: files do not tell an optional from a sequence of at most one, so
// where an optional is declared such a sequence is opened.
Value fit_optional(const Value& value, const Type& declared);

}  // namespace trocar
#pragma GCC visibility pop
