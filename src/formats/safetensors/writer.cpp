#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/json.h"
#include "formats/safetensors/safetensors.h"
#include "trocar/error.h"
#include "util/files.h"
#include "util/growing_file.h"
#include "util/text.h"

namespace trocar::safetensors {

namespace {

// Elements begin at a multiple of this.
constexpr std::size_t alignment = 64;
// The header stands before the elements and is known only at the end: room is kept for it, about
// 2,000 tensors.
constexpr std::size_t archive_header = (std::size_t{1} << 18) - 8;

std::string entry_text(std::string_view name, const Value& value, std::uint64_t first) {
    return fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                       json_quoted(name), type_name(value.dtype()), join(value.shape(), ","), first,
                       first + value.bytes().size());
}

std::string length_text(std::uint64_t length) {
    std::string bytes;
    for (int i = 0; i < 8; ++i) {
        bytes.push_back(static_cast<char>(length >> (8 * i) & 0xff));
    }
    return bytes;
}

void require(const Value& value, const std::filesystem::path& path) {
    if (!holds(value)) {
        throw Error(Fault::unsupported,
                    fmt::format("'{}' cannot hold {}", path.string(), value_text(value)),
                    "ONNX .pb files hold every type");
    }
}

class Archive final : public ValueArchive {
public:
    explicit Archive(const std::filesystem::path& path) : file_(path) {
        std::string start = length_text(archive_header) + "{}";
        start.resize(8 + archive_header, ' ');
        file_.write(start);
    }

    bool full(std::string_view name) const override {
        constexpr std::size_t longest_rest = 1024;  // type, shape and offsets
        return header_.size() + json_quoted(name).size() + longest_rest > archive_header;
    }

    std::uint64_t add(const NamedValue& value) override {
        require(value.value, file_.path());
        const auto at = file_.size();
        auto entry = entry_text(value.name, value.value, at - 8 - archive_header);
        if (header_.size() + entry.size() + 2 > archive_header) {
            throw Error(Fault::unsupported,
                        fmt::format("'{}' has no room for one more tensor", file_.path().string()));
        }
        file_.write({value.value.bytes()});
        header_ += header_.empty() ? "{" : ",";
        header_ += entry;
        return at;
    }

    void close() override {
        if (!header_.empty()) {
            file_.overwrite(8, header_ + "}");
        }
    }

private:
    GrowingFile file_;
    std::string header_;
};

}  // namespace

bool holds(const Value& value) {
    return value.is_tensor() && value.device().is_host() && type_name(value.dtype()) != nullptr;
}

void write_values(std::span<const NamedValue> values, const std::filesystem::path& path,
                  Sync sync) {
    // The largest elements first, so that all are aligned though there are no gaps.
    std::vector<const NamedValue*> ordered;
    for (const auto& value : values) {
        require(value.value, path);
        ordered.push_back(&value);
    }
    std::stable_sort(ordered.begin(), ordered.end(), [](const auto* a, const auto* b) {
        return bits(a->value.dtype()) > bits(b->value.dtype());
    });
    std::string header = "{";
    std::uint64_t at = 0;
    for (const auto* value : ordered) {
        header += header.size() > 1 ? "," : "";
        header += entry_text(value->name, value->value, at);
        at += value->value.bytes().size();
    }
    header += '}';
    const auto used = 8 + header.size();
    header.append((alignment - used % alignment) % alignment, ' ');
    FileWriter writer(path);
    writer.write(length_text(header.size()));
    writer.write(header);
    for (const auto* value : ordered) {
        writer.write(value->value.bytes());
    }
    writer.commit(sync);
}

void write_value(const NamedValue& value, const std::filesystem::path& path, Sync sync) {
    write_values({&value, 1}, path, sync);
}

std::unique_ptr<ValueArchive> create_archive(const std::filesystem::path& path) {
    return std::make_unique<Archive>(path);
}

}  // namespace trocar::safetensors
