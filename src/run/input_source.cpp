#include "run/input_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "trocar/error.h"
#include "trocar/format.h"
#include "util/mapped_file.h"
#include "util/text.h"

namespace trocar {

namespace {

namespace fs = std::filesystem;

bool exists(const std::string& path) {
    std::error_code ignored;
    return fs::exists(path, ignored);
}

bool is_folder(const std::string& path) {
    std::error_code ignored;
    return fs::is_directory(path, ignored);
}

bool is_raw_suffix(const std::string& path) {
    const auto suffix = fs::path(path).extension().string();
    return suffix == ".bin" || suffix == ".raw";
}

// The text up to the last ':' and the text after it.
std::pair<std::string, std::string> split_last(const std::string& text) {
    const auto at = text.rfind(':');
    return at == std::string::npos ? std::pair(text, std::string())
                                   : std::pair(text.substr(0, at), text.substr(at + 1));
}

// FILE:DTYPE:SHAPE, FILE:DTYPE, or a file whose suffix says that it is raw.
bool take_raw(InputSource& source) {
    const auto& text = source.origin;
    if (exists(text)) {
        source.raw_path = is_raw_suffix(text) && !is_folder(text) ? text : "";
        return !source.raw_path.empty();
    }
    const auto [front, last] = split_last(text);
    if (const auto dtype = parse_dtype(last); dtype && !front.empty()) {
        source.raw_path = front;
        source.raw_dtype = dtype;
        return true;
    }
    const auto [path, middle] = split_last(front);
    if (const auto dtype = parse_dtype(middle); dtype && !path.empty()) {
        source.raw_path = path;
        source.raw_dtype = dtype;
        source.raw_shape = parse_shape(last);
        if (!source.raw_shape) {
            throw Error(Fault::usage, fmt::format("'{}' in '{}' is not a shape", last, text),
                        "write it as 1x3x224x224, or scalar");
        }
        return true;
    }
    if (is_raw_suffix(text)) {
        source.raw_path = text;
        return true;
    }
    return false;
}

// A folder as ONNX keeps test data in: input_0.pb, input_1.pb…
std::vector<NamedValue> read_folder(const std::string& folder) {
    std::vector<NamedValue> values;
    for (std::size_t i = 0;; ++i) {
        const auto path = fs::path(folder) / fmt::format("input_{}.pb", i);
        if (!exists(path.string())) {
            break;
        }
        auto read = load_values(path);
        if (read.size() != 1) {
            throw Error(Fault::input,
                        fmt::format("'{}' holds {} values, not one", path.string(), read.size()));
        }
        values.push_back(std::move(read.front()));
    }
    if (values.empty()) {
        throw Error(Fault::input, fmt::format("the folder '{}' holds no input_0.pb", folder),
                    "give a file, or a folder of ONNX test data");
    }
    return values;
}

// FILE.npz:KEY, where the file exists and holds the key.
bool take_member(InputSource& source) {
    const auto [path, key] = split_last(source.origin);
    if (key.empty() || exists(source.origin) || !exists(path)) {
        return false;
    }
    auto values = load_values(path);
    const auto found =
        std::find_if(values.begin(), values.end(),
                     [&wanted = key](const NamedValue& value) { return value.name == wanted; });
    if (found == values.end()) {
        std::vector<std::string> names;
        for (const auto& value : values) {
            names.push_back(value.name);
        }
        throw Error(Fault::input, fmt::format("'{}' holds no array '{}'", path, key),
                    did_you_mean(key, names));
    }
    source.values = {std::move(*found)};
    return true;
}

// np.savez calls arrays that were given without a name arr_0, arr_1…
bool are_numbered(const std::vector<NamedValue>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i].name != fmt::format("arr_{}", i)) {
            return false;
        }
    }
    return true;
}

}  // namespace

Assignment parse_assignment(std::string_view text, std::span<const std::string> known) {
    const std::string* longest = nullptr;
    for (const auto& name : known) {
        const bool fits =
            text.size() > name.size() && text.starts_with(name) && text[name.size()] == '=';
        if (fits && (longest == nullptr || name.size() > longest->size())) {
            longest = &name;
        }
    }
    if (longest != nullptr) {
        return {*longest, std::string(text.substr(longest->size() + 1))};
    }
    const auto at = text.find('=');
    if (at == std::string_view::npos || exists(std::string(text))) {
        return {"", std::string(text)};
    }
    return {std::string(text.substr(0, at)), std::string(text.substr(at + 1))};
}

std::optional<Shape> parse_shape(std::string_view text) {
    if (text == "scalar") {
        return Shape{};
    }
    Shape shape;
    const char separator = text.find(',') != std::string_view::npos ? ',' : 'x';
    for (const auto& part : split(text, separator)) {
        const auto digits = trim(part);
        std::int64_t dim = 0;
        const auto* end = digits.data() + digits.size();
        const auto [last, status] = std::from_chars(digits.data(), end, dim);
        if (digits.empty() || status != std::errc() || last != end || dim < 0) {
            return std::nullopt;
        }
        shape.push_back(dim);
    }
    return shape;
}

InputSource read_source(std::string_view text, std::span<const std::string> input_names) {
    InputSource source;
    auto [name, rest] = parse_assignment(text, input_names);
    source.name = std::move(name);
    source.origin = std::move(rest);
    if (source.origin.empty()) {
        throw Error(Fault::usage, fmt::format("'{}' names no file", text),
                    "write NAME=FILE, NAME=random, NAME=zeros…");
    }
    source.fill = parse_fill(source.origin);
    if (source.fill || take_raw(source)) {
        return source;
    }
    if (is_folder(source.origin)) {
        source.values = read_folder(source.origin);
        source.by_position = true;
    } else if (!take_member(source)) {
        source.values = load_values(source.origin);
        source.by_position = !source.values.empty() && are_numbered(source.values);
    }
    return source;
}

Value read_raw(const std::string& path, DType dtype, const Shape& shape) {
    if (bits(dtype) == 0) {
        throw Error(Fault::input, fmt::format("'{}': {} has no raw form", path, name(dtype)),
                    "strings are read from .npy and ONNX .pb files");
    }
    const auto file = MappedFile::open(path);
    const auto needed = byte_size(dtype, element_count(shape));
    if (file->bytes().size() != needed) {
        throw Error(Fault::input,
                    fmt::format("'{}' has {} bytes, but {} {} takes {}", path, file->bytes().size(),
                                name(dtype), shape_text(shape), needed));
    }
    return Value::borrow(dtype, shape, file->bytes(), file);
}

}  // namespace trocar
