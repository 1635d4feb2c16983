#pragma once

#include <memory>
#include <optional>

#include "engines/onnxruntime/library.h"
#include "engines/onnxruntime/ort_api.h"
#include "trocar/value.h"

namespace trocar::ort {

// The engine's number for an element type, and back. The numbers are those of the ONNX file format
// up to f4e2m1; after it they differ. Throws Error(engine) where the engine has no such type.
ElementType element_type(DType dtype);
DType dtype_of(ElementType type);

// An OrtValue that is released at the end.
class Owned {
public:
    Owned() = default;
    Owned(const Api& api, OrtValue* value) : api_(&api), value_(value) {}
    Owned(Owned&& other) noexcept : api_(other.api_), value_(other.release()) {}
    Owned& operator=(Owned&& other) noexcept {
        reset();
        api_ = other.api_;
        value_ = other.release();
        return *this;
    }
    ~Owned() { reset(); }
    // Somebody else's: not released.
    static Owned lent(const OrtValue* value) {
        Owned owned;
        owned.value_ = const_cast<OrtValue*>(value);
        return owned;
    }

    OrtValue* get() const { return value_; }
    bool is_lent() const { return api_ == nullptr; }
    OrtValue* release() {
        auto* value = value_;
        value_ = nullptr;
        return value;
    }
    void reset() {
        if (value_ != nullptr && api_ != nullptr) {
            (*api_)(release_value, value_);
        }
        value_ = nullptr;
    }

private:
    const Api* api_ = nullptr;
    OrtValue* value_ = nullptr;
};

// A value that lives in ONNX Runtime. Asks the engine only when it is asked; outlives the program
// that made it.
class OrtBody final : public Value::Body {
public:
    // `keep`: what the value's memory belongs to, where that is not the engine.
    OrtBody(std::shared_ptr<Environment> environment, Owned value, std::shared_ptr<const void> keep)
        : environment_(std::move(environment)), keep_(std::move(keep)), value_(std::move(value)) {}

    Value::Kind kind() const override;
    DType dtype() const override;
    Shape shape() const override;
    Device device() const override;
    Bytes bytes() const override;
    std::span<std::byte> own_bytes() override;
    std::vector<std::string> strings() const override;
    std::vector<Value> items() const override;

    // Makes a tensor that was lent its own, by copying it. Before what was lent ends.
    void own();
    // A tensor that was lent in order to be filled.
    void let_write() { writable_ = true; }

    const OrtValue* get() const { return value_.get(); }
    const Environment& environment() const { return *environment_; }

private:
    struct Description;
    Description describe() const;
    DType item_dtype() const;

    std::shared_ptr<Environment> environment_;
    std::shared_ptr<const void> keep_;
    bool writable_ = false;
    Owned value_;  // last: goes first
};

// Has it a value? An optional may have none; then nothing else may be asked of it.
bool is_there(const Environment& environment, const OrtValue* value);

// The OrtValue behind a Value when it was made with the library of `environment`; nullptr:
// another's.
const OrtValue* own_value(const Environment& environment, const Value& value);

// Writes the elements of a string tensor.
void fill_strings(const Environment& environment, const std::vector<std::string>& strings,
                  OrtValue* tensor);

// A host tensor as the engine sees it. Without `copy` the bytes are borrowed: `value` must outlive
// the result, strings excepted. Throws Error(engine) on what the engine cannot take.
Owned wrap_tensor(const Environment& environment, const Value& value, bool copy = false);

// Any value but none that is not the engine's own, for an input declared as `type`. Parts of
// sequences and maps are copied.
Owned wrap(const Environment& environment, const Value& value, const Type& type);

}  // namespace trocar::ort
