#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/json.h"
#include "formats/safetensors/safetensors.h"
#include "trocar/error.h"
#include "util/mapped_file.h"

namespace trocar::safetensors {

namespace {

// As the reference implementation has it.
constexpr std::uint64_t longest_header = 100'000'000;

class Reader {
public:
    explicit Reader(const std::filesystem::path& path)
        : file_(MappedFile::open(path)), where_(fmt::format("'{}'", path.string())) {}

    std::vector<NamedValue> read() {
        const auto header = read_header();
        std::vector<NamedValue> values;
        for (const auto& [name, entry] : header.items()) {
            if (name != "__metadata__") {
                values.push_back({name, tensor(name, entry)});
            }
        }
        return values;
    }

private:
    [[noreturn]] void fail(std::string_view what) const {
        throw Error(Fault::input, fmt::format("{}: {}", where_, what));
    }

    Json read_header() {
        const auto bytes = file_->bytes();
        std::uint64_t length = 0;
        if (bytes.size() < sizeof(length)) {
            fail("too short for a safetensors file");
        }
        std::memcpy(&length, bytes.data(), sizeof(length));
        if (length > bytes.size() - sizeof(length) || length > longest_header) {
            fail(fmt::format("a header of {} bytes is declared, the file has {}", length,
                             bytes.size()));
        }
        const auto* text = reinterpret_cast<const char*>(bytes.data()) + sizeof(length);
        auto header = Json::parse({text, length});
        if (!header || !header->is_object()) {
            fail("the header is no JSON object");
        }
        data_ = bytes.subspan(sizeof(length) + length);
        return *std::move(header);
    }

    template <class T>
    std::vector<T> numbers(const std::string& name, const Json& entry, const char* key) const {
        std::vector<T> found;
        const auto* at = entry.find(key);
        if (at == nullptr || !at->is_array()) {
            fail(fmt::format("'{}' has no {}", name, key));
        }
        for (const auto& number : *at) {
            if (!number.is_natural() || number.uint64() > INT64_MAX) {
                fail(fmt::format("'{}': {} holds what is no size", name, key));
            }
            found.push_back(static_cast<T>(number.uint64()));
        }
        return found;
    }

    Value tensor(const std::string& name, const Json& entry) const {
        if (!entry.is_object()) {
            fail(fmt::format("'{}' is not described by a JSON object", name));
        }
        const auto* type = entry.find("dtype");
        const auto dtype =
            type != nullptr && type->is_string() ? type_of_name(type->string()) : std::nullopt;
        if (!dtype) {
            throw Error(Fault::unsupported,
                        fmt::format("{}: '{}' is of the type {}, which is not read", where_, name,
                                    type == nullptr ? "null" : type->dump()));
        }
        const auto shape = numbers<std::int64_t>(name, entry, "shape");
        const auto range = numbers<std::uint64_t>(name, entry, "data_offsets");
        if (range.size() != 2 || range[0] > range[1] || range[1] > data_.size()) {
            fail(fmt::format("the bytes of '{}' are not in the file", name));
        }
        if (byte_size(*dtype, element_count(shape)) != range[1] - range[0]) {
            fail(fmt::format("'{}' has {} bytes, which are not those of its shape {}", name,
                             range[1] - range[0], shape_text(shape)));
        }
        const auto bytes = data_.subspan(range[0], range[1] - range[0]);
        const auto item = std::max<std::size_t>(bits(*dtype) / 8, 1);
        const bool aligned = reinterpret_cast<std::uintptr_t>(bytes.data()) % item == 0;
        return aligned ? Value::borrow(*dtype, shape, bytes, file_)
                       : Value::copy(*dtype, shape, bytes);
    }

    std::shared_ptr<const MappedFile> file_;
    std::string where_;
    Bytes data_;
};

}  // namespace

std::vector<NamedValue> read_values(const std::filesystem::path& path) {
    return Reader(path).read();
}

}  // namespace trocar::safetensors
