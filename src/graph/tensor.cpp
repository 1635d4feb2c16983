#include "trocar/tensor.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <mutex>

#include "trocar/error.h"
#include "util/text.h"

namespace trocar {

std::size_t element_count(std::span<const std::int64_t> shape) {
    constexpr auto limit = static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max());
    std::size_t count = 1;
    bool empty = false;
    for (const auto dim : shape) {
        if (dim < 0) {
            throw Error(Fault::input,
                        fmt::format("shape [{}] has a negative dimension", join(shape, ",")));
        }
        if (dim == 0) {
            empty = true;
            continue;
        }
        if (count > limit / static_cast<std::size_t>(dim)) {
            throw Error(Fault::input, fmt::format("shape [{}] has more elements than 63 bits count",
                                                  join(shape, ",")));
        }
        count *= static_cast<std::size_t>(dim);
    }
    return empty ? 0 : count;
}

std::string shape_text(std::span<const std::int64_t> shape) {
    return shape.empty() ? "scalar" : fmt::format("{}", join(shape, "x"));
}

Type Type::tensor(DType dtype, std::span<const std::int64_t> shape) {
    Type type = tensor(dtype);
    auto& dims = type.dims.emplace();
    for (const auto dim : shape) {
        dims.push_back({.value = dim, .symbol = {}});
    }
    return type;
}

std::optional<Shape> Type::shape() const {
    if (!dims) {
        return std::nullopt;
    }
    Shape shape;
    for (const auto& dim : *dims) {
        if (dim.value < 0) {
            return std::nullopt;
        }
        shape.push_back(dim.value);
    }
    return shape;
}

std::string type_text(const Type& type) {
    const auto inner = [&] { return type.element.empty() ? "?" : type_text(type.element.front()); };
    switch (type.kind) {
        case Type::Kind::tensor:
        case Type::Kind::sparse_tensor: {
            std::string text = type.dtype == DType::undefined ? "?" : name(type.dtype);
            if (type.dims) {
                std::vector<std::string> dims;
                for (const auto& dim : *type.dims) {
                    dims.push_back(dim.value >= 0       ? std::to_string(dim.value)
                                   : dim.symbol.empty() ? "?"
                                                        : dim.symbol);
                }
                text += fmt::format("[{}]", join(dims, ","));
            }
            return type.kind == Type::Kind::tensor ? text : fmt::format("sparse({})", text);
        }
        case Type::Kind::sequence:
            return fmt::format("sequence({})", inner());
        case Type::Kind::optional:
            return fmt::format("optional({})", inner());
        case Type::Kind::map:
            return fmt::format("map({}, {})", name(type.dtype), inner());
        case Type::Kind::opaque:
            return "opaque";
        case Type::Kind::unknown:
            break;
    }
    return "unknown";
}

struct Constant::Lazy {
    std::function<std::vector<std::byte>()> decode;
    std::once_flag once;
    std::vector<std::byte> bytes;
};

struct Constant::Sparse {
    Constant values;
    Constant indices;
};

namespace {

void check_size(DType dtype, const Shape& shape, std::size_t size) {
    const auto count = element_count(shape);
    if (bits(dtype) == 0) {
        return;
    }
    const auto expected = byte_size(dtype, count);
    if (size != expected) {
        throw Error(Fault::input, fmt::format("{} {} takes {} bytes, but {} are there", name(dtype),
                                              shape_text(shape), expected, size));
    }
}

}  // namespace

Constant Constant::view(DType dtype, Shape shape, Bytes bytes, std::shared_ptr<const void> owner) {
    check_size(dtype, shape, bytes.size());
    Constant constant;
    constant.dtype_ = dtype;
    constant.shape_ = std::move(shape);
    constant.bytes_ = bytes;
    constant.owner_ = std::move(owner);
    return constant;
}

Constant Constant::copy(DType dtype, Shape shape, Bytes bytes) {
    auto owned = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
    const Bytes view_of_owned(*owned);
    return view(dtype, std::move(shape), view_of_owned, std::move(owned));
}

Constant Constant::lazy(DType dtype, Shape shape, std::function<std::vector<std::byte>()> decode,
                        std::shared_ptr<const StoredForm> form) {
    trocar::element_count(shape);
    Constant constant;
    constant.dtype_ = dtype;
    constant.shape_ = std::move(shape);
    constant.lazy_ = std::make_shared<Lazy>();
    constant.lazy_->decode = std::move(decode);
    constant.form_ = std::move(form);
    return constant;
}

Constant Constant::strings(Shape shape, std::vector<std::string> values) {
    if (trocar::element_count(shape) != values.size()) {
        throw Error(Fault::input,
                    fmt::format("string {} takes {} texts, but {} are there", shape_text(shape),
                                trocar::element_count(shape), values.size()));
    }
    Constant constant;
    constant.dtype_ = DType::string;
    constant.shape_ = std::move(shape);
    constant.strings_ = std::make_shared<const std::vector<std::string>>(std::move(values));
    return constant;
}

namespace {

// ONNX has indices of i64; ONNX Runtime reads all of these, and writes the smallest that will do.
bool is_index(DType dtype) {
    return dtype == DType::i64 || dtype == DType::i32 || dtype == DType::i16 || dtype == DType::i8;
}

// Element `place` of indices of any of these types.
std::int64_t index_at(DType dtype, Bytes bytes, std::size_t place) {
    const auto read = [&]<class T>(T value) -> std::int64_t {
        std::memcpy(&value, bytes.data() + place * sizeof value, sizeof value);
        return value;
    };
    switch (dtype) {
        case DType::i8:
            return read(std::int8_t{});
        case DType::i16:
            return read(std::int16_t{});
        case DType::i32:
            return read(std::int32_t{});
        default:
            return read(std::int64_t{});
    }
}

}  // namespace

Constant Constant::sparse(Shape shape, Constant values, Constant indices) {
    trocar::element_count(shape);
    const auto count = values.element_count();
    const auto& at = indices.shape();
    const bool linear = at.size() == 1 && indices.element_count() == count;
    const bool coordinates = at.size() == 2 && static_cast<std::size_t>(at[0]) == count &&
                             static_cast<std::size_t>(at[1]) == shape.size();
    if (values.shape().size() != 1 || !is_index(indices.dtype()) || (!linear && !coordinates)) {
        throw Error(Fault::input,
                    fmt::format("sparse {} has values {} and indices {} {}, which do not fit",
                                shape_text(shape), shape_text(values.shape()),
                                name(indices.dtype()), shape_text(at)));
    }
    Constant constant;
    constant.dtype_ = values.dtype();
    constant.shape_ = std::move(shape);
    constant.sparse_ =
        std::make_shared<const Sparse>(Sparse{std::move(values), std::move(indices)});
    return constant;
}

Bytes Constant::bytes() const {
    if (sparse_ || strings_) {
        throw Error(Fault::usage, sparse_ ? "a sparse constant has no dense bytes"
                                          : "a string constant has no bytes of fixed size");
    }
    if (lazy_) {
        std::call_once(lazy_->once, [&] {
            auto decoded = lazy_->decode();
            check_size(dtype_, shape_, decoded.size());
            lazy_->bytes = std::move(decoded);
        });
        return lazy_->bytes;
    }
    return bytes_;
}

const std::vector<std::string>& Constant::string_values() const {
    if (!strings_) {
        throw Error(Fault::usage, fmt::format("a constant of {} has no texts", name(dtype_)));
    }
    return *strings_;
}

const Constant& Constant::values() const {
    if (!sparse_) {
        throw Error(Fault::usage, "a dense constant has no sparse values");
    }
    return sparse_->values;
}

const Constant& Constant::indices() const {
    if (!sparse_) {
        throw Error(Fault::usage, "a dense constant has no sparse indices");
    }
    return sparse_->indices;
}

std::size_t Constant::stored_bytes() const {
    if (form_) {
        return form_->bytes();
    }
    if (sparse_) {
        return sparse_->values.stored_bytes() + sparse_->indices.stored_bytes();
    }
    if (strings_) {
        std::size_t total = 0;
        for (const auto& text : *strings_) {
            total += text.size();
        }
        return total;
    }
    return bits(dtype_) != 0 ? byte_size(dtype_, element_count()) : bytes_.size();
}

std::shared_ptr<const void> Constant::owner() const {
    if (lazy_) {
        return lazy_;
    }
    return owner_;
}

Constant densify(const Constant& sparse, std::size_t limit) {
    const auto& shape = sparse.shape();
    const auto count = sparse.element_count();
    const auto width = bits(sparse.dtype()) / 8;
    if (width == 0) {
        throw Error(Fault::unsupported, fmt::format("a sparse constant of {} cannot be made dense",
                                                    name(sparse.dtype())));
    }
    if (byte_size(sparse.dtype(), count) > limit) {
        throw Error(Fault::input,
                    fmt::format("sparse {} {} would take {} bytes when dense", name(sparse.dtype()),
                                shape_text(shape), byte_size(sparse.dtype(), count)));
    }
    const auto values = sparse.values().bytes();
    const auto index_bytes = sparse.indices().bytes();
    const std::size_t stored = sparse.values().element_count();
    const std::size_t per = sparse.indices().shape().size() == 2 ? shape.size() : 1;
    auto dense = std::make_shared<std::vector<std::byte>>(byte_size(sparse.dtype(), count));
    for (std::size_t i = 0; i < stored; ++i) {
        std::size_t at = 0;
        bool inside = true;
        for (std::size_t k = 0; k < per; ++k) {
            const auto position = index_at(sparse.indices().dtype(), index_bytes, i * per + k);
            const auto extent =
                sparse.indices().shape().size() == 2 ? shape[k] : static_cast<std::int64_t>(count);
            inside = inside && position >= 0 && position < extent;
            at = at * static_cast<std::size_t>(extent) + static_cast<std::size_t>(position);
        }
        if (!inside) {
            throw Error(Fault::input, fmt::format("index {} of a sparse constant lies outside {}",
                                                  i, shape_text(shape)));
        }
        std::memcpy(dense->data() + at * width, values.data() + i * width, width);
    }
    const Bytes all(*dense);
    return Constant::view(sparse.dtype(), shape, all, std::move(dense));
}

}  // namespace trocar
