#include "engines/reference/arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "trocar/error.h"
#include "util/elements.h"

namespace trocar::reference {

namespace {

bool is_packed(DType dtype) {
    return bits(dtype) != 0 && bits(dtype) % 8 != 0;
}

template <class Work>
bool with_stored_integer(DType dtype, Work&& work) {
    switch (dtype) {
        case DType::boolean:
        case DType::u8:
            return work(std::uint8_t{}), true;
        case DType::i8:
            return work(std::int8_t{}), true;
        case DType::u16:
            return work(std::uint16_t{}), true;
        case DType::i16:
            return work(std::int16_t{}), true;
        case DType::u32:
            return work(std::uint32_t{}), true;
        case DType::i32:
            return work(std::int32_t{}), true;
        case DType::u64:
            return work(std::uint64_t{}), true;
        case DType::i64:
            return work(std::int64_t{}), true;
        default:
            return false;
    }
}

template <class T>
std::vector<T> read_integers(const Value& value) {
    const auto dtype = value.dtype();
    const auto bytes = value.bytes();
    std::vector<T> numbers(count(value.shape()));
    const bool whole = with_stored_integer(dtype, [&](auto zero) {
        using Stored = decltype(zero);
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            Stored element;
            std::memcpy(&element, bytes.data() + i * sizeof(Stored), sizeof(Stored));
            numbers[i] =
                dtype == DType::boolean ? static_cast<T>(element != 0) : static_cast<T>(element);
        }
    });
    if (!whole) {
        if (!is_integer(dtype)) {
            fail(fmt::format("integers are wanted, not elements of type {}", name(dtype)));
        }
        Numbers decoded(numbers.size());
        decode(dtype, bytes, 0, decoded);
        std::transform(decoded.begin(), decoded.end(), numbers.begin(), [](double number) {
            return static_cast<T>(static_cast<std::int64_t>(number));
        });
    }
    return numbers;
}

// A packed integer keeps its low bits.
double wrapped(DType dtype, std::int64_t number) {
    const auto width = bits(dtype);
    const auto low = static_cast<std::int64_t>(static_cast<std::uint64_t>(number) &
                                               ((std::uint64_t{1} << width) - 1));
    const bool negative = range(dtype).low < 0 && (low >> (width - 1)) != 0;
    return static_cast<double>(negative ? low - (std::int64_t{1} << width) : low);
}

template <class T>
Value write_integers(DType dtype, const Shape& shape, std::span<const T> numbers) {
    auto value = Value::tensor(dtype, shape);
    const auto bytes = value.mutable_bytes();
    const bool whole = with_stored_integer(dtype, [&](auto zero) {
        using Stored = decltype(zero);
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            const auto element = dtype == DType::boolean ? static_cast<Stored>(numbers[i] != 0)
                                                         : static_cast<Stored>(numbers[i]);
            std::memcpy(bytes.data() + i * sizeof(Stored), &element, sizeof(Stored));
        }
    });
    if (!whole) {
        Numbers all(numbers.size());
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            all[i] = is_integer(dtype) ? wrapped(dtype, static_cast<std::int64_t>(numbers[i]))
                                       : static_cast<double>(numbers[i]);
        }
        encode(dtype, all, 0, bytes);
    }
    return value;
}

}  // namespace

void fail(const std::string& sentence) {
    throw Error(Fault::engine, sentence);
}

void require(bool holds, const char* sentence) {
    if (!holds) {
        fail(sentence);
    }
}

std::size_t count(const Shape& shape) {
    const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
    const auto most = empty ? most_elements << 16 : most_elements;
    std::size_t total = 1;
    for (const auto dim : shape) {
        require(dim >= 0, "a dimension is negative");
        const auto size = std::max<std::size_t>(to_size(dim), 1);
        if (total > most / size) {
            fail(fmt::format("a tensor of shape {} has more elements than the engine takes",
                             shape_text(shape)));
        }
        total *= size;
    }
    return empty ? 0 : total;
}

std::size_t to_size(std::int64_t number) {
    require(number >= 0, "a size is negative");
    return static_cast<std::size_t>(number);
}

std::int64_t to_integer(std::size_t number) {
    return static_cast<std::int64_t>(number);
}

std::size_t size_at(const Shape& shape, std::size_t axis) {
    require(axis < shape.size(), "a tensor has too few dimensions");
    return to_size(shape[axis]);
}

std::size_t axis_of(std::int64_t axis, std::size_t rank) {
    const auto dims = to_integer(rank);
    if (axis < -dims || axis >= dims) {
        fail(fmt::format("there is no axis {} in {} dimensions", axis, rank));
    }
    return to_size(axis < 0 ? axis + dims : axis);
}

Indices axes_of(std::span<const std::int64_t> axes, std::size_t rank) {
    Indices found;
    for (const auto axis : axes) {
        found.push_back(axis_of(axis, rank));
    }
    std::sort(found.begin(), found.end());
    require(std::adjacent_find(found.begin(), found.end()) == found.end(),
            "an axis is given twice");
    return found;
}

Indices all_axes(std::size_t rank) {
    Indices axes(rank);
    std::iota(axes.begin(), axes.end(), std::size_t{0});
    return axes;
}

Integers strides_of(const Shape& shape) {
    count(shape);
    Integers strides(shape.size(), 1);
    for (std::size_t i = shape.size(); i-- > 1;) {
        strides[i - 1] = strides[i] * std::max<std::int64_t>(shape[i], 1);
    }
    return strides;
}

Indices strided(const Shape& shape, std::span<const std::int64_t> strides, std::int64_t start) {
    const auto total = count(shape);
    Indices indices(total);
    Integers at(shape.size(), 0);
    auto offset = start;
    for (std::size_t i = 0; i < total; ++i) {
        indices[i] = static_cast<std::size_t>(offset);
        for (std::size_t axis = shape.size(); axis-- > 0;) {
            offset += strides[axis];
            if (++at[axis] < shape[axis]) {
                break;
            }
            offset -= strides[axis] * shape[axis];
            at[axis] = 0;
        }
    }
    return indices;
}

Shape broadcast(const Shape& a, const Shape& b) {
    const auto rank = std::max(a.size(), b.size());
    Shape result(rank, 1);
    for (std::size_t i = 0; i < rank; ++i) {
        const auto left = i < a.size() ? a[a.size() - 1 - i] : 1;
        const auto right = i < b.size() ? b[b.size() - 1 - i] : 1;
        if (left != right && left != 1 && right != 1) {
            fail(fmt::format("shapes {} and {} do not fit together", shape_text(a), shape_text(b)));
        }
        result[rank - 1 - i] = left == 1 ? right : left;
    }
    count(result);
    return result;
}

Indices spread(const Shape& from, const Shape& to) {
    if (from.size() > to.size() || broadcast(from, to) != to) {
        fail(fmt::format("shape {} does not spread to {}", shape_text(from), shape_text(to)));
    }
    const auto own = strides_of(from);
    Integers strides(to.size(), 0);
    const auto lead = to.size() - from.size();
    for (std::size_t i = 0; i < from.size(); ++i) {
        strides[lead + i] = from[i] == 1 ? 0 : own[i];
    }
    return strided(to, strides);
}

Lines lines_along(const Shape& shape, const Indices& axes) {
    const auto strides = strides_of(shape);
    Lines lines;
    lines.kept = shape;
    Shape across;
    Shape along;
    Integers across_strides;
    Integers along_strides;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        const bool in = std::find(axes.begin(), axes.end(), i) != axes.end();
        (in ? along : across).push_back(shape[i]);
        (in ? along_strides : across_strides).push_back(strides[i]);
        lines.kept[i] = in ? 1 : shape[i];
    }
    lines.starts = strided(across, across_strides);
    lines.steps = strided(along, along_strides);
    return lines;
}

Shape without(const Shape& shape, const Indices& axes) {
    Shape left;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        if (std::find(axes.begin(), axes.end(), i) == axes.end()) {
            left.push_back(shape[i]);
        }
    }
    return left;
}

template <>
std::vector<double> read<double>(const Value& value) {
    if (!is_float(value.dtype()) && !is_integer(value.dtype()) && value.dtype() != DType::boolean) {
        fail(fmt::format("numbers are wanted, not elements of type {}", name(value.dtype())));
    }
    Numbers numbers(count(value.shape()));
    decode(value.dtype(), value.bytes(), 0, numbers);
    return numbers;
}
template <>
std::vector<std::int64_t> read<std::int64_t>(const Value& value) {
    return read_integers<std::int64_t>(value);
}
template <>
std::vector<std::uint64_t> read<std::uint64_t>(const Value& value) {
    return read_integers<std::uint64_t>(value);
}

template <>
Value write<double>(DType dtype, const Shape& shape, std::span<const double> numbers) {
    require(count(shape) == numbers.size(), "a result has another size than its shape");
    auto value = Value::tensor(dtype, shape);
    encode(dtype, numbers, 0, value.mutable_bytes());
    return value;
}
template <>
Value write<std::int64_t>(DType dtype, const Shape& shape, std::span<const std::int64_t> numbers) {
    require(count(shape) == numbers.size(), "a result has another size than its shape");
    return write_integers(dtype, shape, numbers);
}
template <>
Value write<std::uint64_t>(DType dtype, const Shape& shape,
                           std::span<const std::uint64_t> numbers) {
    require(count(shape) == numbers.size(), "a result has another size than its shape");
    return write_integers(dtype, shape, numbers);
}

double rounded_to(DType dtype, double number) {
    round_all(dtype, std::span(&number, 1));
    return number;
}

void round_all(DType dtype, std::span<double> numbers) {
    if (dtype == DType::f64) {
        return;
    }
    if (dtype == DType::f32) {
        for (auto& number : numbers) {
            number = static_cast<double>(static_cast<float>(number));
        }
        return;
    }
    std::vector<std::byte> bytes(byte_size(dtype, numbers.size()));
    encode(dtype, numbers, 0, bytes);
    decode(dtype, bytes, 0, numbers);
}

Value scalar(DType dtype, double number) {
    return write<double>(dtype, {}, std::span<const double>(&number, 1));
}

Value integers_value(const Integers& numbers) {
    return write<std::int64_t>(DType::i64, {to_integer(numbers.size())}, numbers);
}

Elements::Elements(const Value& value)
    : dtype_(value.dtype()), size_(count(value.shape())), packed_(is_packed(dtype_)) {
    if (dtype_ == DType::string) {
        strings_ = value.string_values();
        return;
    }
    if (packed_) {
        Numbers numbers(size_);
        decode(dtype_, value.bytes(), 0, numbers);
        const auto bytes = std::as_bytes(std::span(numbers));
        bytes_.assign(bytes.begin(), bytes.end());
        width_ = sizeof(double);
        return;
    }
    width_ = bits(dtype_) / 8;
    require(width_ != 0, "elements of an unknown type cannot be moved");
    const auto bytes = value.bytes();
    bytes_.assign(bytes.begin(), bytes.end());
}

Elements::Elements(DType dtype, std::size_t size)
    : dtype_(dtype), size_(size), packed_(is_packed(dtype)) {
    if (dtype_ == DType::string) {
        strings_.resize(size);
        return;
    }
    width_ = packed_ ? sizeof(double) : bits(dtype) / 8;
    require(width_ != 0, "elements of an unknown type cannot be moved");
    bytes_.resize(width_ * size);
}

void Elements::set(std::size_t at, const Elements& from, std::size_t from_at) {
    require(from.dtype_ == dtype_, "tensors of different types cannot be mixed");
    require(at < size_ && from_at < from.size_, "an index is outside its tensor");
    if (dtype_ == DType::string) {
        strings_[at] = from.strings_[from_at];
        return;
    }
    std::memcpy(bytes_.data() + at * width_, from.bytes_.data() + from_at * width_, width_);
}

Value Elements::value(const Shape& shape) const {
    require(count(shape) == size_, "a result has another size than its shape");
    if (dtype_ == DType::string) {
        return Value::strings(shape, strings_);
    }
    if (!packed_) {
        return Value::copy(dtype_, shape, bytes_);
    }
    Numbers numbers(size_);
    std::memcpy(numbers.data(), bytes_.data(), bytes_.size());
    return write<double>(dtype_, shape, numbers);
}

Value take(const Value& value, const Shape& shape, const Indices& indices) {
    const Elements from(value);
    Elements to(value.dtype(), indices.size());
    for (std::size_t i = 0; i < indices.size(); ++i) {
        to.set(i, from, indices[i]);
    }
    return to.value(shape);
}

Value reshaped(const Value& value, const Shape& shape) {
    if (count(shape) != count(value.shape())) {
        fail(fmt::format("shape {} does not become {}", shape_text(value.shape()),
                         shape_text(shape)));
    }
    if (value.dtype() == DType::string) {
        return Value::strings(shape, value.string_values());
    }
    return Value::borrow(value.dtype(), shape, value.bytes(), value.body());
}

}  // namespace trocar::reference
