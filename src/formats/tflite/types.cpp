#include "formats/tflite/types.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "trocar/error.h"

namespace trocar::tflite {

namespace {

constexpr DType dtypes[] = {
    DType::f32,     DType::f16, DType::i32, DType::u8,       DType::i64,    DType::string,
    DType::boolean, DType::i16, DType::c64, DType::i8,       DType::f64,    DType::c128,
    DType::u64,     DType{},    DType{},    DType::u32,      DType::u16,    DType::i4,
    DType::bf16,    DType::i2,  DType::u4,  DType::f8e4m3fn, DType::f8e5m2,
};

std::uint32_t word_at(Bytes bytes, std::size_t place) {
    std::uint32_t word = 0;
    std::memcpy(&word, bytes.data() + place * sizeof word, sizeof word);
    return word;
}

}  // namespace

DType to_dtype(fb::TensorType type) {
    const auto number = static_cast<std::int32_t>(type);
    const bool named = number >= 0 && static_cast<std::size_t>(number) < std::size(dtypes) &&
                       dtypes[number] != DType::undefined;
    // The number is a signed byte: negative ones are of no type and still are kept.
    return named ? dtypes[number]
                 : static_cast<DType>(foreign_dtype + static_cast<std::uint8_t>(number));
}

fb::TensorType from_dtype(DType dtype) {
    const auto number = static_cast<std::int32_t>(dtype);
    if (number >= foreign_dtype && number < foreign_dtype + 256) {
        return static_cast<fb::TensorType>(static_cast<std::int8_t>(number - foreign_dtype));
    }
    const auto found = std::find(std::begin(dtypes), std::end(dtypes), dtype);
    if (dtype == DType::undefined || found == std::end(dtypes)) {
        throw Error(Fault::unsupported,
                    fmt::format("TensorFlow Lite has no tensors of {}", name(dtype)));
    }
    return static_cast<fb::TensorType>(found - std::begin(dtypes));
}

std::string_view property(const std::vector<Property>& properties, std::string_view key) {
    for (const auto& entry : properties) {
        if (entry.key == key) {
            return entry.value;
        }
    }
    return {};
}

std::string unique_name(const Graph& graph, std::string_view in_file, std::size_t place) {
    if (!in_file.empty() && !graph.find_tensor(in_file)) {
        return std::string(in_file);
    }
    auto candidate = fmt::format("{}#{}", in_file, place);
    while (graph.find_tensor(candidate)) {
        candidate += "0";
    }
    return candidate;
}

std::string file_name(const Tensor& tensor) {
    for (const auto& entry : tensor.metadata) {
        if (entry.key != key::name || !tensor.name.starts_with(entry.value)) {
            continue;
        }
        const auto rest = std::string_view(tensor.name).substr(entry.value.size());
        if (rest.size() > 1 && rest[0] == '#' &&
            rest.find_first_not_of("0123456789", 1) == std::string_view::npos) {
            return entry.value;
        }
    }
    return tensor.name;
}

Constant read_strings(Shape shape, Bytes bytes) {
    const auto fail = [] { throw Error(Fault::input, "the texts of a string tensor are broken"); };
    if (bytes.size() < 4) {
        fail();
    }
    const std::size_t count = word_at(bytes, 0);
    if (count != element_count(shape) || count > bytes.size() / 4 ||
        (count + 2) * 4 > bytes.size()) {
        fail();
    }
    std::vector<std::string> texts;
    texts.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t begin = word_at(bytes, i + 1);
        const std::size_t end = word_at(bytes, i + 2);
        if (begin > end || end > bytes.size()) {
            fail();
        }
        const auto part = bytes.subspan(begin, end - begin);
        texts.emplace_back(reinterpret_cast<const char*>(part.data()), part.size());
    }
    return Constant::strings(std::move(shape), std::move(texts));
}

std::string write_strings(const std::vector<std::string>& texts) {
    std::string head;
    std::string body;
    const auto add = [&](std::size_t number) {
        if (number > std::size_t{std::numeric_limits<std::int32_t>::max()}) {
            throw Error(Fault::unsupported, "a string tensor takes more than 2 GB");
        }
        const auto word = static_cast<std::uint32_t>(number);
        head.append(reinterpret_cast<const char*>(&word), sizeof word);
    };
    const auto begin = (texts.size() + 2) * 4;
    add(texts.size());
    for (const auto& text : texts) {
        add(begin + body.size());
        body += text;
    }
    add(begin + body.size());
    return head + body;
}

}  // namespace trocar::tflite
