#include "formats/tensorflow/types.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "formats/tensorflow/schema.h"
#include "trocar/error.h"

namespace trocar::tensorflow {

using namespace schema;

namespace {

struct TypeEntry {
    std::int64_t number;
    DType dtype;
    const char* name;
};

// Quantized types are the integers that they are stored as.
constexpr std::array types{
    TypeEntry{1, DType::f32, "float32"},
    TypeEntry{2, DType::f64, "float64"},
    TypeEntry{3, DType::i32, "int32"},
    TypeEntry{4, DType::u8, "uint8"},
    TypeEntry{5, DType::i16, "int16"},
    TypeEntry{6, DType::i8, "int8"},
    TypeEntry{7, DType::string, "string"},
    TypeEntry{8, DType::c64, "complex64"},
    TypeEntry{9, DType::i64, "int64"},
    TypeEntry{10, DType::boolean, "bool"},
    TypeEntry{11, DType::i8, "qint8"},
    TypeEntry{12, DType::u8, "quint8"},
    TypeEntry{13, DType::i32, "qint32"},
    TypeEntry{14, DType::bf16, "bfloat16"},
    TypeEntry{15, DType::i16, "qint16"},
    TypeEntry{16, DType::u16, "quint16"},
    TypeEntry{17, DType::u16, "uint16"},
    TypeEntry{18, DType::c128, "complex128"},
    TypeEntry{19, DType::f16, "float16"},
    TypeEntry{22, DType::u32, "uint32"},
    TypeEntry{23, DType::u64, "uint64"},
    TypeEntry{24, DType::f8e5m2, "float8_e5m2"},
    TypeEntry{25, DType::f8e4m3fn, "float8_e4m3fn"},
};
constexpr std::int64_t first_reference = 100;
constexpr std::int64_t resource = 20;
constexpr std::int64_t variant = 21;

// What a message without raw bytes may be spread to: one value can stand for all elements.
constexpr std::size_t allowance = std::size_t{256} << 20;
constexpr std::size_t most_strings = 4096;
constexpr std::size_t most_text = std::size_t{1} << 20;

const TypeEntry* find(std::int64_t number) {
    number -= number > first_reference ? first_reference : 0;
    for (const auto& type : types) {
        if (type.number == number) {
            return &type;
        }
    }
    return nullptr;
}

class TensorReader {
public:
    TensorReader(const std::shared_ptr<const File>& file, Bytes message)
        : file_(file), message_(message) {}

    Constant read() {
        scan();
        if (dtype_ == DType::string) {
            return strings();
        }
        const auto width = bits(dtype_) / 8;
        if (width == 0) {
            throw Error(Fault::unsupported,
                        fmt::format("'{}': a constant holds elements of the type {}", file_->name,
                                    name(dtype_)));
        }
        const auto size = byte_size(dtype_, element_count(shape_));
        if (!content_.empty()) {
            if (content_.size() != size) {
                fail_in(*file_, content_,
                        fmt::format("a tensor of {} {} has {} bytes", name(dtype_),
                                    shape_text(shape_), content_.size()));
            }
            return Constant::view(dtype_, shape_, content_, file_->owner);
        }
        std::vector<std::byte> values = listed(width);
        if (values.size() > size) {
            fail_in(*file_, message_, "a tensor has more values than elements");
        }
        if (values.size() == size) {
            return Constant::copy(dtype_, shape_, values);
        }
        if (size > allowance && size / 1024 > message_.size()) {
            fail_in(*file_, message_,
                    fmt::format("a tensor of {} bytes is made of {}", size, message_.size()));
        }
        // The last value stands for all that follow; none at all is zero.
        return Constant::lazy(dtype_, shape_, [values = std::move(values), size, width] {
            std::vector<std::byte> all(size);
            std::copy(values.begin(), values.end(), all.begin());
            for (auto at = values.size(); at < size && !values.empty(); at += width) {
                std::memcpy(all.data() + at, all.data() + at - width, width);
            }
            return all;
        });
    }

private:
    void scan() {
        for (Fields at(*file_, message_); at.next();) {
            switch (at.number()) {
                case tensor::dtype:
                    dtype_ = dtype_of(at.integer());
                    break;
                case tensor::shape: {
                    shape_.clear();
                    const auto dims = read_shape(*file_, at.bytes());
                    for (const auto& dim : dims.value_or(std::vector<Dim>())) {
                        shape_.push_back(dim.value);
                    }
                    element_count(shape_);
                    break;
                }
                case tensor::content:
                    content_ = at.bytes();
                    break;
                default:
                    break;
            }
        }
    }

    Constant strings() {
        std::vector<std::string> texts;
        for (Fields at(*file_, message_); at.next();) {
            if (at.number() == tensor::strings) {
                texts.emplace_back(at.text());
            }
        }
        const auto count = element_count(shape_);
        // The last one stands for all that follow here too.
        const auto last = texts.empty() ? std::string() : texts.back();
        if (texts.size() < count && count <= most_strings &&
            last.size() * count <= message_.size() + most_text) {
            texts.resize(count, last);
        }
        return Constant::strings(shape_, std::move(texts));
    }

    // The values of the repeated field of the type, as elements.
    std::vector<std::byte> listed(std::size_t width) const {
        std::vector<std::byte> values;
        const auto put = [&](std::uint64_t bits) {
            std::array<std::byte, 8> bytes{};
            std::memcpy(bytes.data(), &bits, sizeof bits);
            values.insert(
                values.end(), bytes.begin(),
                bytes.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(width, 8)));
        };
        for (Fields at(*file_, message_); at.next();) {
            switch (at.number()) {
                case tensor::floats:
                    at.fixed32s([&](std::uint32_t bits) { put(bits); });
                    break;
                case tensor::complex64s:
                    at.fixed32s([&](std::uint32_t bits) {
                        const auto* bytes = reinterpret_cast<const std::byte*>(&bits);
                        values.insert(values.end(), bytes, bytes + sizeof bits);
                    });
                    break;
                case tensor::doubles:
                case tensor::complex128s:
                    at.fixed64s([&](std::uint64_t bits) {
                        const auto* bytes = reinterpret_cast<const std::byte*>(&bits);
                        values.insert(values.end(), bytes, bytes + sizeof bits);
                    });
                    break;
                case tensor::ints:
                case tensor::int64s:
                case tensor::bools:
                case tensor::halves:
                case tensor::uint32s:
                case tensor::uint64s:
                    at.integers(put);
                    break;
                case tensor::float8s: {
                    const auto bytes = at.bytes();
                    values.insert(values.end(), bytes.begin(), bytes.end());
                    break;
                }
                default:
                    break;
            }
        }
        values.resize(values.size() / width * width);
        return values;
    }

    const std::shared_ptr<const File>& file_;
    Bytes message_;
    DType dtype_ = DType::undefined;
    Shape shape_;  // a scalar's is an empty message, which may be left out
    Bytes content_;
};

}  // namespace

DType dtype_of(std::int64_t number) {
    if (const auto* type = find(number)) {
        return type->dtype;
    }
    return number > 0 && number < 1000 ? static_cast<DType>(1000 + number) : DType::undefined;
}

std::string dtype_name(std::int64_t number) {
    if (const auto* type = find(number)) {
        return type->name;
    }
    return number == resource ? "resource" : number == variant ? "variant" : std::to_string(number);
}

std::optional<std::vector<Dim>> read_shape(const File& file, Bytes message) {
    std::vector<Dim> dims;
    for (Fields at(file, message); at.next();) {
        if (at.number() == shape::unknown_rank && at.integer() != 0) {
            return std::nullopt;
        }
        if (at.number() != shape::dim) {
            continue;
        }
        Dim dim{.value = 0, .symbol = {}};
        for (Fields inner(file, at.bytes()); inner.next();) {
            if (inner.number() == dim::size) {
                dim.value = inner.integer();
            } else if (inner.number() == dim::name) {
                dim.symbol = inner.text();
            }
        }
        if (dim.value < 0) {
            dim.value = -1;
        } else {
            dim.symbol.clear();
        }
        dims.push_back(std::move(dim));
    }
    return dims;
}

Constant read_tensor(const std::shared_ptr<const File>& file, Bytes message) {
    return TensorReader(file, message).read();
}

}  // namespace trocar::tensorflow
