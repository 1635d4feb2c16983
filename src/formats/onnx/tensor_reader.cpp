#include <fmt/format.h>

#include <charconv>
#include <cstring>

#include "formats/onnx/declaration.h"
#include "formats/onnx/schema.h"
#include "formats/onnx/tensor_proto.h"
#include "trocar/error.h"

namespace trocar::onnx {

using namespace schema;

namespace {

// The field that holds elements of a type when they are not in raw_data; 0: none does.
Number typed_field(DType dtype) {
    switch (dtype) {
        case DType::f32:
        case DType::c64:
            return tensor::float_data;
        case DType::f64:
        case DType::c128:
            return tensor::double_data;
        case DType::i64:
            return tensor::int64_data;
        case DType::u32:
        case DType::u64:
            return tensor::uint64_data;
        case DType::string:
            return tensor::string_data;
        default:
            return bits(dtype) != 0 ? tensor::int32_data : 0;
    }
}

bool is_float6(DType dtype) {
    return dtype == DType::f6e2m3 || dtype == DType::f6e3m2;
}

// Entries of the typed field that `count` elements take: 4-bit and 2-bit elements share entries,
// a complex number has two.
std::size_t entry_count(DType dtype, std::size_t count) {
    if (dtype == DType::c64 || dtype == DType::c128) {
        return 2 * count;
    }
    return bits(dtype) < 8 && !is_float6(dtype) ? byte_size(dtype, count) : count;
}

std::size_t entry_bytes(DType dtype) {
    switch (dtype) {
        case DType::c64:
            return 4;
        case DType::c128:
            return 8;
        default:
            return std::max(bits(dtype), std::size_t{8}) / 8;
    }
}

// Elements written one after the other, each with the low `width` bytes of its value.
class ElementSink {
public:
    ElementSink(DType dtype, std::size_t count)
        : dtype_(dtype), width_(entry_bytes(dtype)), left_(entry_count(dtype, count)) {
        bytes_.reserve(byte_size(dtype, count));
    }

    bool put(std::uint64_t value) {
        if (left_ == 0) {
            return false;
        }
        --left_;
        if (is_float6(dtype_)) {
            put_bits(static_cast<std::uint32_t>(value & 0x3f), 6);
            return true;
        }
        const auto at = bytes_.size();
        bytes_.resize(at + width_);
        std::memcpy(bytes_.data() + at, &value, width_);
        return true;
    }
    std::size_t left() const { return left_; }
    std::vector<std::byte> finish() {
        if (pending_bits_ > 0) {
            bytes_.push_back(static_cast<std::byte>(pending_));
        }
        return std::move(bytes_);
    }

private:
    void put_bits(std::uint32_t value, unsigned count) {
        pending_ |= value << pending_bits_;
        pending_bits_ += count;
        if (pending_bits_ >= 8) {
            bytes_.push_back(static_cast<std::byte>(pending_));
            pending_ >>= 8;
            pending_bits_ -= 8;
        }
    }

    DType dtype_;
    std::size_t width_;
    std::size_t left_;
    std::vector<std::byte> bytes_;
    std::uint32_t pending_ = 0;
    unsigned pending_bits_ = 0;
};

std::vector<std::byte> decode(const File& file, Bytes message, DType dtype, std::size_t count) {
    const auto field = typed_field(dtype);
    ElementSink sink(dtype, count);
    bool fits = true;
    const auto put = [&](std::uint64_t value) { fits = sink.put(value) && fits; };
    for (Fields at(file, message); fits && at.next();) {
        if (at.number() != field) {
            continue;
        }
        if (field == tensor::float_data) {
            at.fixed32s(put);
        } else if (field == tensor::double_data) {
            at.fixed64s(put);
        } else {
            at.integers(put);
        }
    }
    if (!fits || sink.left() != 0) {
        fail_in(
            file, message,
            fmt::format("a tensor of {} elements has {} of them", count, fits ? "fewer" : "more"));
    }
    return sink.finish();
}

// What a TensorProto says, before its data is looked at.
struct Parts {
    Shape dims;
    DType dtype = DType::undefined;
    std::optional<Bytes> raw;
    // Of the typed field: how often it is there, its payload when packed, all of its bytes.
    std::size_t typed_fields = 0;
    Bytes typed;
    std::uint64_t typed_bytes = 0;
    bool packed = false;
    std::int64_t location = 0;
    std::string_view external_location;
    std::uint64_t external_offset = 0;
    std::optional<std::uint64_t> external_length;
};

std::uint64_t to_number(const Fields& at, std::string_view text, std::string_view key) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) {
        at.fail(fmt::format("the {} of external data is '{}', which is no number", key, text));
    }
    return number;
}

void read_external_entry(const Fields& at, Parts& parts) {
    std::string_view key;
    std::string_view value;
    for (Fields entry(at.file(), at.bytes()); entry.next();) {
        if (entry.number() == property::key) {
            key = entry.text();
        } else if (entry.number() == property::value) {
            value = entry.text();
        }
    }
    if (key == "location") {
        parts.external_location = value;
    } else if (key == "offset") {
        parts.external_offset = to_number(at, value, key);
    } else if (key == "length") {
        parts.external_length = to_number(at, value, key);
    }
}

Parts read_parts(const File& file, Bytes message, StoredTensor& stored) {
    Parts parts;
    for (Fields at(file, message); at.next();) {
        switch (at.number()) {
            case tensor::dims:
                at.integers([&](std::uint64_t dim) {
                    parts.dims.push_back(static_cast<std::int64_t>(dim));
                });
                break;
            case tensor::dtype:
                parts.dtype = static_cast<DType>(static_cast<int>(at.integer()));
                break;
            case tensor::name:
                stored.name = at.text();
                break;
            case tensor::doc:
                stored.doc = at.text();
                break;
            case tensor::metadata:
                stored.metadata.push_back(read_property(file, at.bytes()));
                break;
            case tensor::raw_data:
                parts.raw = at.bytes();
                break;
            case tensor::external:
                read_external_entry(at, parts);
                break;
            case tensor::location:
                parts.location = at.integer();
                break;
            default:
                break;
        }
    }
    const auto field = typed_field(parts.dtype);
    for (Fields at(file, message); field != 0 && at.next();) {
        if (at.number() == field) {
            ++parts.typed_fields;
            parts.packed = at.wire() == Wire::length;
            parts.typed = parts.packed ? at.bytes() : Bytes();
            parts.typed_bytes += parts.packed ? parts.typed.size() : at.whole().size();
        }
    }
    return parts;
}

class TensorReader {
public:
    TensorReader(const FilePtr& file, Bytes message, ExternalFiles& external,
                 std::string_view label)
        : file_(file), message_(message), external_(external), label_(label) {}

    StoredTensor read() {
        parts_ = read_parts(*file_, message_, stored_);
        if (!stored_.name.empty()) {
            label_ = stored_.name;
        }
        try {
            stored_.constant = read_data();
        } catch (const Error& e) {
            if (refused_) {
                throw;
            }
            fail(e.what());
        }
        return std::move(stored_);
    }

private:
    [[noreturn]] void fail(std::string_view what) {
        refused_ = true;
        fail_in(*file_, message_, fmt::format("tensor '{}': {}", label_, what));
    }

    Constant read_data() {
        const auto count = element_count(parts_.dims);
        if (parts_.location == tensor::location_external) {
            return read_external(count);
        }
        if (parts_.dtype == DType::string) {
            return read_strings(count);
        }
        if (parts_.raw && (!parts_.raw->empty() || parts_.typed_fields == 0)) {
            return Constant::view(parts_.dtype, parts_.dims, *parts_.raw, file_->owner);
        }
        if (parts_.typed_fields == 0) {
            // A view checks the size, which is 0.
            return Constant::view(parts_.dtype, parts_.dims, {}, file_->owner);
        }
        const auto field = typed_field(parts_.dtype);
        const bool fixed = field == tensor::float_data || field == tensor::double_data;
        if (fixed && parts_.packed && parts_.typed_fields == 1) {
            return Constant::view(parts_.dtype, parts_.dims, parts_.typed, file_->owner);
        }
        byte_size(parts_.dtype, count);  // throws when there are too many
        const auto needed = entry_count(parts_.dtype, count);
        if (needed > parts_.typed_bytes) {
            fail(fmt::format("{} {} takes {} numbers, but only {} bytes are there",
                             trocar::name(parts_.dtype), shape_text(parts_.dims), needed,
                             parts_.typed_bytes));
        }
        return Constant::lazy(parts_.dtype, parts_.dims,
                              [file = file_, message = message_, dtype = parts_.dtype, count] {
                                  return decode(*file, message, dtype, count);
                              });
    }

    Constant read_strings(std::size_t count) {
        if (count != parts_.typed_fields) {
            fail(fmt::format("string {} takes {} texts, but {} are there", shape_text(parts_.dims),
                             count, parts_.typed_fields));
        }
        std::vector<std::string> texts;
        texts.reserve(count);
        for (Fields at(*file_, message_); at.next();) {
            if (at.number() == tensor::string_data) {
                texts.emplace_back(at.text());
            }
        }
        return Constant::strings(parts_.dims, std::move(texts));
    }

    Constant read_external(std::size_t count) {
        if (parts_.dtype == DType::string) {
            fail("texts cannot be external data");
        }
        refused_ = true;  // what `open` throws says it all
        const auto& opened = external_.open(parts_.external_location, label_);
        refused_ = false;
        const auto all = opened->bytes();
        const auto expected = byte_size(parts_.dtype, count);
        const auto offset = parts_.external_offset;
        const bool known = bits(parts_.dtype) != 0;
        const auto rest = offset <= all.size() ? all.size() - offset : 0;
        const auto length = parts_.external_length.value_or(known ? expected : rest);
        if (known && length != expected) {
            fail(fmt::format("{} {} takes {} bytes, but its external data is said to have {}",
                             trocar::name(parts_.dtype), shape_text(parts_.dims), expected,
                             length));
        }
        if (offset > all.size() || length > rest) {
            fail(
                fmt::format("its data, {} bytes at offset {} of '{}', runs past the end of that "
                            "file, which has {} bytes",
                            length, offset, opened->path().string(), all.size()));
        }
        auto constant =
            Constant::view(parts_.dtype, parts_.dims, all.subspan(offset, length), opened);
        constant.set_external({.location = std::string(parts_.external_location),
                               .offset = offset,
                               .length = length,
                               .file = opened->path().string()});
        return constant;
    }

    const FilePtr& file_;
    Bytes message_;
    ExternalFiles& external_;
    std::string_view label_;
    StoredTensor stored_;
    Parts parts_;
    bool refused_ = false;
};

}  // namespace

std::optional<ExternalData> read_external_place(const File& file, Bytes message) {
    StoredTensor ignored;
    const auto parts = read_parts(file, message, ignored);
    if (parts.location != tensor::location_external) {
        return std::nullopt;
    }
    return ExternalData{.location = std::string(parts.external_location),
                        .offset = parts.external_offset,
                        .length = parts.external_length.value_or(0),
                        .file = {}};
}

StoredTensor read_tensor(const FilePtr& file, Bytes message, ExternalFiles& external,
                         std::string_view label) {
    return TensorReader(file, message, external, label).read();
}

StoredTensor read_sparse(const FilePtr& file, Bytes message, ExternalFiles& external,
                         std::string_view label) {
    std::optional<StoredTensor> values;
    std::optional<StoredTensor> indices;
    Shape dims;
    for (Fields at(*file, message); at.next();) {
        if (at.number() == sparse::dims) {
            at.integers([&](std::uint64_t dim) { dims.push_back(static_cast<std::int64_t>(dim)); });
        } else if (at.number() == sparse::values || at.number() == sparse::indices) {
            auto& part = at.number() == sparse::values ? values : indices;
            if (part) {
                at.fail("a sparse tensor has its values or indices twice");
            }
            part = read_tensor(file, at.bytes(), external, label);
        }
    }
    if (!values) {
        fail_in(*file, message, fmt::format("sparse tensor '{}' has no values", label));
    }
    auto result = std::move(*values);
    auto where =
        indices ? std::move(indices->constant) : Constant::view(DType::i64, {0}, {}, file->owner);
    try {
        result.constant =
            Constant::sparse(std::move(dims), std::move(result.constant), std::move(where));
    } catch (const Error& e) {
        fail_in(
            *file, message,
            fmt::format("tensor '{}': {}", result.name.empty() ? label : result.name, e.what()));
    }
    return result;
}

}  // namespace trocar::onnx
