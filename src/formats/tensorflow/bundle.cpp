#include "formats/tensorflow/bundle.h"

#include <fmt/format.h>

#include "formats/tensorflow/schema.h"
#include "formats/tensorflow/table.h"
#include "formats/tensorflow/types.h"
#include "trocar/error.h"

namespace trocar::tensorflow {

using namespace schema;

namespace {

constexpr std::int64_t most_shards = 100'000;
constexpr std::int64_t string_type = 7;

File file_of(const std::string& where, const std::string& message) {
    return {.name = where,
            .bytes = std::as_bytes(std::span(message)),
            .owner = nullptr,
            .folder = {},
            .kind = "TensorFlow checkpoint"};
}

}  // namespace

Bundle::Bundle(const std::filesystem::path& prefix) : where_(prefix.string() + ".index") {
    const auto index = MappedFile::open(where_);
    entries_ = read_table(index->bytes(), fmt::format("'{}'", where_));
    bytes_ = index->bytes().size();
    std::int64_t shards = 1;
    const auto header = entries_.find("");
    if (header != entries_.end()) {
        const auto file = file_of(where_, header->second);
        for (wire::Fields at(file, file.bytes); at.next();) {
            if (at.number() == bundle_header::shards) {
                shards = at.integer();
            } else if (at.number() == bundle_header::endianness && at.integer() != 0) {
                throw Error(
                    Fault::unsupported,
                    fmt::format("'{}' was written on a machine of the other byte order", where_));
            }
        }
        entries_.erase(header);
    }
    if (shards < 0 || shards > most_shards) {
        throw Error(Fault::input, fmt::format("'{}' would have {} files", where_, shards));
    }
    for (std::int64_t i = 0; i < shards; ++i) {
        const auto path = fmt::format("{}.data-{:05}-of-{:05}", prefix.string(), i, shards);
        std::error_code failure;
        // A checkpoint of one thing may have files without elements.
        const bool there = std::filesystem::exists(path, failure);
        shards_.push_back(there ? MappedFile::open(path) : nullptr);
        bytes_ += there ? shards_.back()->bytes().size() : 0;
    }
}

std::vector<std::string> Bundle::keys() const {
    std::vector<std::string> keys;
    for (const auto& [key, value] : entries_) {
        keys.push_back(key);
    }
    return keys;
}

Bundle::Place Bundle::place(const std::string& key, const std::string& message) const {
    Place result;
    const auto file = file_of(fmt::format("{}: {}", where_, key), message);
    for (wire::Fields at(file, file.bytes); at.next();) {
        switch (at.number()) {
            case bundle_entry::dtype:
                result.dtype = at.integer();
                break;
            case bundle_entry::shape:
                for (const auto& dim : read_shape(file, at.bytes()).value_or(std::vector<Dim>())) {
                    result.shape.push_back(dim.value);
                }
                break;
            case bundle_entry::shard:
                result.shard = static_cast<std::uint64_t>(at.integer());
                break;
            case bundle_entry::offset:
                result.offset = static_cast<std::uint64_t>(at.integer());
                break;
            case bundle_entry::size:
                result.size = static_cast<std::uint64_t>(at.integer());
                break;
            case bundle_entry::slices:
                result.sliced = true;
                break;
            default:
                break;
        }
    }
    return result;
}

Bytes Bundle::data(const Place& place, const std::string& key) const {
    if (place.shard >= shards_.size() || !shards_[place.shard]) {
        throw Error(
            Fault::input,
            fmt::format("the file with the elements of '{}' in '{}' is missing", key, where_));
    }
    const auto all = shards_[place.shard]->bytes();
    if (place.offset > all.size() || place.size > all.size() - place.offset) {
        throw Error(Fault::input, fmt::format("the elements of '{}' lie outside '{}'", key,
                                              shards_[place.shard]->path().string()));
    }
    return all.subspan(place.offset, place.size);
}

std::optional<Constant> Bundle::find(const std::string& key) const {
    const auto found = entries_.find(key);
    if (found == entries_.end()) {
        return std::nullopt;
    }
    const auto at = place(key, found->second);
    const auto dtype = dtype_of(at.dtype);
    if (at.sliced || bits(dtype) == 0) {
        throw Error(Fault::unsupported,
                    fmt::format("'{}' in '{}' is {}", key, where_,
                                at.sliced ? "stored in slices, which are not read"
                                          : "of the type " + dtype_name(at.dtype)));
    }
    return Constant::view(dtype, at.shape, data(at, key), shards_[at.shard]);
}

// Strings are their lengths, a checksum of these, and their bytes.
std::string Bundle::text(const std::string& key) const {
    const auto found = entries_.find(key);
    if (found == entries_.end()) {
        return {};
    }
    const auto at = place(key, found->second);
    if (at.dtype != string_type) {
        return {};
    }
    auto bytes = data(at, key);
    std::uint64_t length = 0;
    for (unsigned i = 0; i < 10 && !bytes.empty(); ++i) {
        const auto byte = static_cast<std::uint64_t>(bytes.front());
        bytes = bytes.subspan(1);
        length |= (byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            break;
        }
    }
    constexpr std::size_t checksum = 4;
    if (bytes.size() < checksum || bytes.size() - checksum != length) {
        return {};
    }
    bytes = bytes.subspan(checksum);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace trocar::tensorflow
