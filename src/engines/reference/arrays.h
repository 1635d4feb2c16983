#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "trocar/value.h"

// Tensors as the kernels see them: row-major numbers, and indices into them.
namespace trocar::reference {

using Indices = std::vector<std::size_t>;
using Integers = std::vector<std::int64_t>;
using Numbers = std::vector<double>;

// Throws Error(engine). The sentence goes on after the name of the op: "Conv: the weights have…".
[[noreturn]] void fail(const std::string& sentence);
void require(bool holds, const char* sentence);

// --- Shapes -------------------------------------------------------------------------------------

// No tensor has more elements: a model cannot make the engine take memory without bound.
inline constexpr std::size_t most_elements = std::size_t{1} << 28;

std::size_t count(const Shape& shape);  // throws on more than most_elements
std::size_t to_size(std::int64_t number);
std::int64_t to_integer(std::size_t number);
std::size_t size_at(const Shape& shape, std::size_t axis);

// A negative axis counts from the end. Throws when it is outside.
std::size_t axis_of(std::int64_t axis, std::size_t rank);
Indices axes_of(std::span<const std::int64_t> axes, std::size_t rank);  // sorted; no axis twice
Indices all_axes(std::size_t rank);

Integers strides_of(const Shape& shape);
// For every element of a tensor of this shape, in order: `start` + the sum of index * stride.
Indices strided(const Shape& shape, std::span<const std::int64_t> strides, std::int64_t start = 0);
Shape broadcast(const Shape& a, const Shape& b);
// For every element of `to` the one of `from` that is broadcast there.
Indices spread(const Shape& from, const Shape& to);

// A tensor as lines along some axes: element i of line l stands at starts[l] + steps[i].
struct Lines {
    Indices starts;
    Indices steps;
    Shape kept;  // the shape with the axes of the lines as 1
};
Lines lines_along(const Shape& shape, const Indices& axes);
Shape without(const Shape& shape, const Indices& axes);

// --- Numbers ------------------------------------------------------------------------------------

// Elements as numbers of a type that computes them: double for floats; for integers and booleans
// int64, for u64 uint64. Throws on an integer type asked for floats.
template <class T>
std::vector<T> read(const Value& value);
template <>
std::vector<double> read<double>(const Value& value);
template <>
std::vector<std::int64_t> read<std::int64_t>(const Value& value);
template <>
std::vector<std::uint64_t> read<std::uint64_t>(const Value& value);
// Doubles are rounded to nearest, ties to even, and kept within the range of an integer type;
// integers keep their low bits.
template <class T>
Value write(DType dtype, const Shape& shape, std::span<const T> numbers);
template <class T>
Value write(DType dtype, const Shape& shape, const std::vector<T>& numbers) {
    return write<T>(dtype, shape, std::span<const T>(numbers));
}
// A number as an element of the type would hold it.
double rounded_to(DType dtype, double number);
void round_all(DType dtype, std::span<double> numbers);

Value scalar(DType dtype, double number);
Value integers_value(const Integers& numbers);  // i64, one dimension

// Calls `work` with a zero of the type that computes elements of this dtype.
template <class Work>
auto with_number(DType dtype, Work&& work) {
    if (dtype == DType::u64) {
        return work(std::uint64_t{});
    }
    if (is_integer(dtype) || dtype == DType::boolean) {
        return work(std::int64_t{});
    }
    if (!is_float(dtype)) {
        fail("elements of type " + name(dtype) + " cannot be computed with");
    }
    return work(double{});
}

// --- Elements that are only moved ---------------------------------------------------------------

// Elements of any type, strings included, that can be copied one by one.
class Elements {
public:
    explicit Elements(const Value& value);
    Elements(DType dtype, std::size_t size);  // zeros
    std::size_t size() const { return size_; }
    DType dtype() const { return dtype_; }
    void set(std::size_t at, const Elements& from, std::size_t from_at);  // of the same type
    Value value(const Shape& shape) const;

private:
    DType dtype_;
    std::size_t size_;
    std::size_t width_ = 0;  // bytes; packed types are unpacked to doubles
    bool packed_ = false;
    std::vector<std::byte> bytes_;
    std::vector<std::string> strings_;
};

// The elements of `value` at `indices`.
Value take(const Value& value, const Shape& shape, const Indices& indices);
// The same elements in another shape of as many.
Value reshaped(const Value& value, const Shape& shape);

}  // namespace trocar::reference
