#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "formats/numpy/npy.h"
#include "trocar/error.h"
#include "util/files.h"
#include "util/text.h"

namespace trocar::numpy {

namespace {

// numpy before 2.0 has no arrays of more dimensions.
constexpr std::size_t most_dimensions_written = 32;
constexpr std::size_t data_alignment = 64;

// Column-major elements of `Size` bytes into row-major order.
template <std::size_t Size>
void reorder(Bytes from, std::span<std::byte> to, const Shape& shape) {
    const auto rank = shape.size();
    std::vector<std::size_t> stride(rank);
    std::size_t step = Size;
    for (std::size_t axis = 0; axis < rank; ++axis) {
        stride[axis] = step;
        step *= static_cast<std::size_t>(shape[axis]);
    }
    std::vector<std::size_t> at(rank, 0);
    std::size_t source = 0;
    for (std::size_t target = 0; target < to.size(); target += Size) {
        std::memcpy(to.data() + target, from.data() + source, Size);
        for (auto axis = rank; axis-- > 0;) {
            source += stride[axis];
            if (++at[axis] < static_cast<std::size_t>(shape[axis])) {
                break;
            }
            source -= stride[axis] * at[axis];
            at[axis] = 0;
        }
    }
}

void reorder(std::size_t size, Bytes from, std::span<std::byte> to, const Shape& shape) {
    switch (size) {
        case 1:
            return reorder<1>(from, to, shape);
        case 2:
            return reorder<2>(from, to, shape);
        case 4:
            return reorder<4>(from, to, shape);
        case 8:
            return reorder<8>(from, to, shape);
        case 16:
            return reorder<16>(from, to, shape);
        default:
            throw Error(Fault::internal, fmt::format("no elements of {} bytes to reorder", size));
    }
}

void reverse_parts(std::span<std::byte> bytes, std::size_t part) {
    for (std::size_t at = 0; at + part <= bytes.size(); at += part) {
        std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                     bytes.begin() + static_cast<std::ptrdiff_t>(at + part));
    }
}

void append_utf8(std::string& text, std::uint32_t point, std::string_view where) {
    const auto put = [&](std::uint32_t byte) { text.push_back(static_cast<char>(byte)); };
    if (point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) {
        throw Error(Fault::input,
                    fmt::format("{}: a text holds {:#x}, which is no character", where, point));
    }
    if (point < 0x80) {
        put(point);
    } else if (point < 0x800) {
        put(0xc0 | point >> 6);
        put(0x80 | (point & 0x3f));
    } else if (point < 0x10000) {
        put(0xe0 | point >> 12);
        put(0x80 | (point >> 6 & 0x3f));
        put(0x80 | (point & 0x3f));
    } else {
        put(0xf0 | point >> 18);
        put(0x80 | (point >> 12 & 0x3f));
        put(0x80 | (point >> 6 & 0x3f));
        put(0x80 | (point & 0x3f));
    }
}

// One text; numpy pads them with zeros at the end.
std::string text_of(Bytes item, const Header& header, std::string_view where) {
    if (header.kind == Header::Kind::text) {
        const std::string_view all(reinterpret_cast<const char*>(item.data()), item.size());
        const auto last = all.find_last_not_of('\0');
        return std::string(all.substr(0, last == std::string_view::npos ? 0 : last + 1));
    }
    std::vector<std::uint32_t> points(item.size() / 4);
    for (std::size_t i = 0; i < points.size(); ++i) {
        const auto byte = [&](std::size_t k) {
            return std::to_integer<std::uint32_t>(
                item[4 * i + (header.swap_bytes != 0 ? 3 - k : k)]);
        };
        points[i] = byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24;
    }
    while (!points.empty() && points.back() == 0) {
        points.pop_back();
    }
    std::string text;
    for (const auto point : points) {
        append_utf8(text, point, where);
    }
    return text;
}

Value read_texts(Bytes data, const Header& header, std::string_view where) {
    const auto count = element_count(header.shape);
    // Column-major texts: their places are reordered as numbers, then read in that order.
    std::vector<std::uint64_t> places(count);
    for (std::size_t i = 0; i < count; ++i) {
        places[i] = i;
    }
    if (header.fortran_order && header.shape.size() > 1) {
        const auto column_major = places;
        reorder(sizeof(std::uint64_t), std::as_bytes(std::span(column_major)),
                std::as_writable_bytes(std::span(places)), header.shape);
    }
    std::vector<std::string> texts;
    texts.reserve(count);
    for (const auto place : places) {
        texts.push_back(
            text_of(data.subspan(place * header.item_bytes, header.item_bytes), header, where));
    }
    return Value::strings(header.shape, std::move(texts));
}

void check_truths(Bytes data, std::string_view where) {
    const auto odd =
        std::find_if(data.begin(), data.end(), [](std::byte b) { return b > std::byte{1}; });
    if (odd != data.end()) {
        throw Error(Fault::input,
                    fmt::format("{}: element {} is neither false nor true, but {}", where,
                                odd - data.begin(), std::to_integer<int>(*odd)));
    }
}

// "(3, 4)", "(3,)", "()": a Python tuple.
std::string tuple_text(const Shape& shape) {
    return shape.size() == 1 ? fmt::format("({},)", shape[0])
                             : fmt::format("({})", join(shape, ", "));
}

const char* description(DType dtype) {
    switch (dtype) {
        case DType::boolean:
            return "|b1";
        case DType::i8:
            return "|i1";
        case DType::u8:
            return "|u1";
        case DType::i16:
            return "<i2";
        case DType::u16:
            return "<u2";
        case DType::i32:
            return "<i4";
        case DType::u32:
            return "<u4";
        case DType::i64:
            return "<i8";
        case DType::u64:
            return "<u8";
        case DType::f16:
            return "<f2";
        case DType::f32:
            return "<f4";
        case DType::f64:
            return "<f8";
        case DType::c64:
            return "<c8";
        case DType::c128:
            return "<c16";
        default:
            return nullptr;
    }
}

}  // namespace

Value read_array(Bytes file, std::shared_ptr<const void> owner, std::string_view where) {
    const auto header = parse_header(file, where);
    const auto count = element_count(header.shape);
    const auto data = file.subspan(header.data_at);
    const bool fits = count <= std::numeric_limits<std::size_t>::max() / header.item_bytes &&
                      count * header.item_bytes <= data.size();
    if (!fits) {
        throw Error(
            Fault::input,
            fmt::format("{}: {} elements of {} bytes are declared, but only {} bytes follow", where,
                        count, header.item_bytes, data.size()),
            "the file was probably cut short");
    }
    if (count * header.item_bytes != data.size()) {
        throw Error(Fault::input,
                    fmt::format("{}: the array ends {} before the file does", where,
                                counted(data.size() - count * header.item_bytes, "byte")));
    }
    if (header.kind != Header::Kind::number) {
        return read_texts(data, header, where);
    }
    if (header.dtype == DType::boolean) {
        check_truths(data, where);
    }
    const bool in_order = !header.fortran_order || header.shape.size() < 2;
    const bool aligned = reinterpret_cast<std::uintptr_t>(data.data()) % header.item_bytes == 0;
    if (owner && in_order && header.swap_bytes == 0 && aligned) {
        return Value::borrow(header.dtype, header.shape, data, std::move(owner));
    }
    auto value = Value::tensor(header.dtype, header.shape);
    const auto bytes = value.mutable_bytes();
    if (in_order) {
        std::copy(data.begin(), data.end(), bytes.begin());
    } else {
        reorder(header.item_bytes, data, bytes, header.shape);
    }
    if (header.swap_bytes != 0) {
        reverse_parts(bytes, header.swap_bytes);
    }
    return value;
}

bool holds(const Value& value) {
    return value.is_tensor() && value.device().is_host() && description(value.dtype()) != nullptr &&
           value.shape().size() <= most_dimensions_written;
}

std::string array_header(const Value& value, std::uint64_t at, std::string_view where) {
    if (!holds(value)) {
        throw Error(Fault::unsupported,
                    fmt::format("'{}' cannot hold {}", where, value_text(value)),
                    "ONNX .pb files hold every type");
    }
    std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}",
                                     description(value.dtype()), tuple_text(value.shape()));
    constexpr std::size_t before = npy_magic.size() + 4;
    const auto used = at + before + header.size() + 1;
    header.append((data_alignment - used % data_alignment) % data_alignment, ' ');
    header.push_back('\n');
    std::string start(npy_magic);
    start.push_back(1);
    start.push_back(0);
    start.push_back(static_cast<char>(header.size() & 0xff));
    start.push_back(static_cast<char>(header.size() >> 8));
    return start + header;
}

void write_array(const Value& value, const std::filesystem::path& path, Sync sync) {
    const auto header = array_header(value, 0, path.string());
    FileWriter writer(path);
    writer.write(header);
    writer.write(value.bytes());
    writer.commit(sync);
}

}  // namespace trocar::numpy
