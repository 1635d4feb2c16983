#include "formats/mxnet/params.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <optional>

#include "trocar/error.h"

namespace trocar::mxnet {

namespace {

constexpr std::uint64_t list_magic = 0x112;
constexpr std::uint32_t magic_v1 = 0xf993fac8;  // dimensions of 64 bits
constexpr std::uint32_t magic_v2 = 0xf993fac9;  // kinds of storage
constexpr std::uint32_t magic_v3 = 0xf993faca;  // scalars, and shapes that are not known
constexpr std::uint32_t most_dims = 32;

enum Storage : std::int32_t { dense = 0, row_sparse = 1, csr = 2 };

class ParamsReader {
public:
    ParamsReader(Bytes bytes, const std::shared_ptr<const void>& owner, const std::string& where)
        : all_(bytes), rest_(bytes), owner_(owner), where_(where) {}

    std::vector<NamedArray> read() {
        if (number<std::uint64_t>() != list_magic) {
            fail("this is no file of MXNet arrays");
        }
        number<std::uint64_t>();  // reserved
        const auto count = length(8, "arrays");
        std::vector<NamedArray> arrays;
        for (std::uint64_t i = 0; i < count; ++i) {
            arrays.push_back(read_array());
        }
        const auto names = length(8, "names");
        if (names != 0 && names != count) {
            fail(fmt::format("{} arrays have {} names", count, names));
        }
        for (std::uint64_t i = 0; i < names; ++i) {
            const auto text = take(number<std::uint64_t>());
            arrays[i].name.assign(reinterpret_cast<const char*>(text.data()), text.size());
        }
        return arrays;
    }

private:
    [[noreturn]] void fail(std::string_view what) const {
        throw Error(Fault::input,
                    fmt::format("{}: {} (byte {})", where_, what, all_.size() - rest_.size()));
    }

    Bytes take(std::uint64_t count) {
        if (count > rest_.size()) {
            fail(fmt::format("the file ends, {} more bytes are expected", count));
        }
        const auto taken = rest_.first(count);
        rest_ = rest_.subspan(count);
        return taken;
    }

    template <class T>
    T number() {
        T value{};
        std::memcpy(&value, take(sizeof value).data(), sizeof value);
        return value;
    }

    // How many of something follow, each of which takes at least `least` bytes.
    std::uint64_t length(std::uint64_t least, std::string_view what) {
        const auto count = number<std::uint64_t>();
        if (count > rest_.size() / least) {
            fail(fmt::format("{} {} are declared", count, what));
        }
        return count;
    }

    template <class T>
    Shape dims(std::uint32_t count) {
        if (count > most_dims) {
            fail(fmt::format("an array has {} dimensions", count));
        }
        Shape shape;
        for (std::uint32_t i = 0; i < count; ++i) {
            shape.push_back(static_cast<std::int64_t>(number<T>()));
            if (shape.back() < 0) {
                fail("an array has a negative dimension");
            }
        }
        return shape;
    }

    // Absent: the array was never given a shape.
    std::optional<Shape> shape(std::uint32_t magic) {
        const auto rank = number<std::int32_t>();
        if (magic == magic_v3 ? rank < 0 : rank == 0) {
            return std::nullopt;
        }
        return dims<std::int64_t>(static_cast<std::uint32_t>(rank));
    }

    NamedArray read_array() {
        const auto magic = number<std::uint32_t>();
        std::int32_t storage = dense;
        Shape stored;
        std::optional<Shape> whole;
        if (magic == magic_v2 || magic == magic_v3) {
            storage = number<std::int32_t>();
            if (storage == row_sparse || storage == csr) {
                stored = shape(magic).value_or(Shape());
            } else if (storage != dense) {
                throw Error(Fault::unsupported,
                            fmt::format("{}: an array is stored in a way that is not known ({})",
                                        where_, storage));
            }
            whole = shape(magic);
        } else if (magic == magic_v1) {
            whole = shape(magic);
        } else if (magic != 0) {
            whole = dims<std::uint32_t>(magic);  // the oldest files begin with the rank
        }
        if (!whole) {
            return {.name = {}, .constant = {}, .is_none = true};
        }
        take(8);  // the device it was on
        const auto dtype = dtype_of(number<std::int32_t>());
        if (bits(dtype) == 0) {
            throw Error(Fault::unsupported,
                        fmt::format("{}: an array has elements of a type that is not known ({})",
                                    where_, name(dtype)));
        }
        if (storage == dense) {
            return {.name = {}, .constant = elements(dtype, *whole)};
        }
        return {.name = {}, .constant = sparse(storage, dtype, *whole, stored)};
    }

    Constant elements(DType dtype, const Shape& shape) {
        return Constant::view(dtype, shape, take(byte_size(dtype, element_count(shape))), owner_);
    }

    struct Auxiliary {
        DType dtype = DType::i64;
        Shape shape;
    };

    Constant sparse(std::int32_t storage, DType dtype, const Shape& whole, const Shape& stored) {
        std::vector<Auxiliary> parts(storage == csr ? 2 : 1);
        for (auto& part : parts) {
            part.dtype = dtype_of(number<std::int32_t>());
            part.shape = shape(magic_v2).value_or(Shape{0});
            if (part.dtype != DType::i64 || part.shape.size() != 1) {
                throw Error(Fault::unsupported,
                            fmt::format("{}: a sparse array has indices {} {}", where_,
                                        name(part.dtype), shape_text(part.shape)));
            }
        }
        const auto values = elements(dtype, stored);
        std::vector<std::vector<std::int64_t>> indices;
        for (const auto& part : parts) {
            const auto bytes = take(byte_size(part.dtype, element_count(part.shape)));
            auto& list = indices.emplace_back(bytes.size() / sizeof(std::int64_t));
            if (!bytes.empty()) {
                std::memcpy(list.data(), bytes.data(), bytes.size());
            }
        }
        return storage == csr ? from_csr(whole, values, indices)
                              : from_rows(whole, values, indices);
    }

    Constant from_csr(const Shape& whole, const Constant& values,
                      const std::vector<std::vector<std::int64_t>>& indices) const {
        const auto& starts = indices[0];
        const auto& columns = indices[1];
        const auto count = static_cast<std::int64_t>(values.element_count());
        if (whole.size() != 2 || starts.size() != static_cast<std::size_t>(whole[0]) + 1 ||
            columns.size() != values.element_count() || starts.front() != 0 ||
            starts.back() != count) {
            fail("the rows of a sparse array do not fit its elements");
        }
        std::vector<std::int64_t> places;
        places.reserve(columns.size() * 2);
        for (std::size_t row = 0; row + 1 < starts.size(); ++row) {
            if (starts[row + 1] < starts[row] || starts[row + 1] > count) {
                fail("the rows of a sparse array do not fit its elements");
            }
            for (auto at = starts[row]; at < starts[row + 1]; ++at) {
                places.push_back(static_cast<std::int64_t>(row));
                places.push_back(columns[static_cast<std::size_t>(at)]);
            }
        }
        return coordinates(whole, values, places, 2);
    }

    // Whole rows are stored: each of their elements is one.
    Constant from_rows(const Shape& whole, const Constant& values,
                       const std::vector<std::vector<std::int64_t>>& indices) const {
        const auto count = values.element_count();
        const auto& rows = indices[0];
        Shape row(whole.begin() + (whole.empty() ? 0 : 1), whole.end());
        const auto width = element_count(row);
        element_count(whole);
        if (whole.empty() || (width != 0 && (count / width != rows.size() || count % width != 0)) ||
            (width == 0 && count != 0)) {
            fail("the rows of a sparse array do not fit its elements");
        }
        std::vector<std::int64_t> places;
        places.reserve(count);
        for (const auto at : rows) {
            if (at < 0 || at >= whole[0]) {
                fail("a row of a sparse array lies outside its shape");
            }
            for (std::size_t i = 0; i < width; ++i) {
                places.push_back(at * static_cast<std::int64_t>(width) +
                                 static_cast<std::int64_t>(i));
            }
        }
        return coordinates(whole, values, places, 1);
    }

    Constant coordinates(const Shape& whole, const Constant& values,
                         const std::vector<std::int64_t>& places, std::int64_t rank) const {
        const auto count = static_cast<std::int64_t>(values.element_count());
        const auto flat = Constant::view(values.dtype(), {count}, values.bytes(), owner_);
        const auto shape = rank == 1 ? Shape{count} : Shape{count, rank};
        return Constant::sparse(whole, flat, Constant::of(DType::i64, shape, places));
    }

    Bytes all_;
    Bytes rest_;
    const std::shared_ptr<const void>& owner_;
    const std::string& where_;
};

}  // namespace

DType dtype_of(std::int64_t type_flag) {
    constexpr std::array types{DType::f32, DType::f64, DType::f16,     DType::u8,  DType::i32,
                               DType::i8,  DType::i64, DType::boolean, DType::i16, DType::u16,
                               DType::u32, DType::u64, DType::bf16};
    if (type_flag >= 0 && type_flag < static_cast<std::int64_t>(types.size())) {
        return types[static_cast<std::size_t>(type_flag)];
    }
    return type_flag > 0 && type_flag < 1000 ? static_cast<DType>(1000 + type_flag)
                                             : DType::undefined;
}

bool begins_arrays(Bytes head) {
    std::uint64_t magic = 0;
    if (head.size() < 2 * sizeof magic) {
        return false;
    }
    std::memcpy(&magic, head.data(), sizeof magic);
    return magic == list_magic;
}

std::vector<NamedArray> read_arrays(Bytes bytes, const std::shared_ptr<const void>& owner,
                                    const std::string& where) {
    return ParamsReader(bytes, owner, where).read();
}

}  // namespace trocar::mxnet
