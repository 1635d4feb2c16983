#include "formats/pt2/payload.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <nlohmann/json.hpp>

namespace trocar::pt2 {

namespace {

// What a tensor that names its elements more than once (a stride of 0) may grow to.
constexpr std::size_t allowance = std::size_t{64} << 20;
constexpr std::size_t expansion = 16;

// Where the elements of a tensor lie in its storage, in elements.
struct Extent {
    Shape shape;
    std::vector<std::int64_t> strides;
    std::size_t first = 0;
    std::size_t count = 0;
    bool contiguous = true;
};

std::int64_t number_of(const JsonPlace& place, const Dim& dim) {
    if (!dim.symbol.empty() || dim.value < 0) {
        place.fail("a stored tensor has a size, stride or offset that is no number");
    }
    return dim.value;
}

Extent extent_of(const JsonPlace& place, const TensorMeta& meta, std::size_t stored) {
    Extent extent;
    for (const auto& dim : *meta.type.dims) {
        extent.shape.push_back(number_of(place, dim));
    }
    extent.count = element_count(extent.shape);
    extent.first = static_cast<std::size_t>(number_of(place, meta.storage_offset));
    std::int64_t expected = 1;
    std::size_t last = extent.first;
    for (std::size_t i = extent.shape.size(); i-- > 0;) {
        const auto size = extent.shape[i];
        const auto stride = meta.strides.empty() ? expected : number_of(place, meta.strides[i]);
        extent.strides.insert(extent.strides.begin(), size == 1 ? 0 : stride);
        if (size == 1 || extent.count == 0) {
            continue;
        }
        extent.contiguous = extent.contiguous && stride == expected;
        expected *= size;
        std::size_t reach = 0;
        if (__builtin_mul_overflow(static_cast<std::size_t>(size - 1),
                                   static_cast<std::size_t>(stride), &reach) ||
            __builtin_add_overflow(last, reach, &last)) {
            place.fail("its strides do not fit 64 bits");
        }
    }
    if (extent.count > 0 && last >= stored) {
        place.fail(fmt::format("its elements reach to {}, its file holds {}", last + 1, stored));
    }
    return extent;
}

// The elements in order, the last dimension innermost.
std::vector<std::byte> gather(const Extent& extent, Bytes storage, std::size_t width) {
    std::vector<std::byte> bytes(extent.count * width);
    if (bytes.empty()) {
        return bytes;
    }
    std::vector<std::int64_t> at(extent.shape.size());
    auto place = static_cast<std::int64_t>(extent.first);
    for (std::size_t i = 0; i < extent.count; ++i) {
        std::memcpy(bytes.data() + i * width,
                    storage.data() + static_cast<std::size_t>(place) * width, width);
        for (std::size_t axis = at.size(); axis-- > 0;) {
            place += extent.strides[axis];
            if (++at[axis] < extent.shape[axis]) {
                break;
            }
            place -= extent.strides[axis] * extent.shape[axis];
            at[axis] = 0;
        }
    }
    return bytes;
}

}  // namespace

Payloads::Payloads(const ZipArchive& archive, std::string root, std::shared_ptr<const void> owner,
                   JsonPlace place)
    : archive_(archive),
      root_(std::move(root)),
      owner_(std::move(owner)),
      place_(std::move(place)) {}

void Payloads::read_config(const std::string& folder, const std::string& name) {
    const auto* member = archive_.find(root_ + folder + name);
    if (member == nullptr) {
        return;
    }
    const auto place = place_.in(fmt::format("'{}{}'", folder, name));
    const auto bytes = archive_.unpack(*member);
    const auto* text = reinterpret_cast<const char*>(bytes.data());
    const auto document = Json::parse(text, text + bytes.size(), nullptr, false);
    if (!document.is_object()) {
        place.fail("it is no JSON object");
    }
    for (const auto& [tensor, entry] : place.object(document, "config").items()) {
        const auto inside = place.in(fmt::format("'{}'", tensor));
        const auto file = folder + inside.text(entry, "path_name");
        const auto& meta = inside.member(entry, "tensor_meta");
        if (meta.is_null()) {
            objects_.emplace(tensor, file);
            continue;
        }
        entries_.emplace(tensor, Entry{.file = file,
                                       .meta = read_tensor_meta(inside, meta),
                                       .is_parameter = inside.flag(entry, "is_param"),
                                       .is_pickled = inside.flag(entry, "use_pickle")});
    }
}

std::vector<std::string> Payloads::names() const {
    std::vector<std::string> names;
    for (const auto& [name, entry] : entries_) {
        names.push_back(name);
    }
    return names;
}

Payloads::Storage Payloads::storage(const Entry& entry, const JsonPlace& place) const {
    const auto* member = archive_.find(root_ + entry.file);
    if (member == nullptr) {
        place.fail(fmt::format("its file '{}' is missing", entry.file));
    }
    if (const auto view = ZipArchive::view(*member)) {
        return {*view, owner_};
    }
    auto& unpacked = unpacked_[entry.file];
    if (!unpacked.owner) {
        auto bytes = std::make_shared<const std::vector<std::byte>>(archive_.unpack(*member));
        unpacked = {*bytes, bytes};
    }
    return unpacked;
}

std::optional<Payloads::Payload> Payloads::find(const std::string& name) const {
    const auto found = entries_.find(name);
    if (found == entries_.end()) {
        return std::nullopt;
    }
    const auto& entry = found->second;
    const auto place = place_.in(fmt::format("'{}'", name));
    const auto refuse = [&](Fault fault, const std::string& what, const std::string& hint) {
        Shape shape;
        for (const auto& dim : *entry.meta.type.dims) {
            shape.push_back(number_of(place, dim));
        }
        const auto sentence = fmt::format("'{}' {}", name, what);
        return Constant::lazy(entry.meta.type.dtype, shape, [=]() -> std::vector<std::byte> {
            throw Error(fault, sentence, hint);
        });
    };
    Payload payload{
        .constant = {}, .meta = entry.meta, .identity = {}, .is_parameter = entry.is_parameter};
    if (entry.is_pickled) {
        payload.constant =
            refuse(Fault::unsupported, "is stored as a pickle, which is never executed",
                   "make it a plain tensor before torch.export.save");
        return payload;
    }
    const auto storage = this->storage(entry, place);
    const auto width = bits(entry.meta.type.dtype) / 8;
    if (width == 0) {
        Shape shape;
        for (const auto& dim : *entry.meta.type.dims) {
            shape.push_back(number_of(place, dim));
        }
        payload.constant =
            Constant::view(entry.meta.type.dtype, shape, storage.bytes, storage.owner);
        return payload;
    }
    const auto extent = extent_of(place, entry.meta,
                                  storage.bytes.empty() ? SIZE_MAX : storage.bytes.size() / width);
    payload.identity =
        fmt::format("{} {} {} {} {}", entry.file, trocar::name(entry.meta.type.dtype), extent.first,
                    fmt::join(extent.shape, ","), fmt::join(extent.strides, ","));
    if (storage.bytes.empty() && extent.count > 0) {
        payload.constant = refuse(Fault::input, "has no elements in the file",
                                  "the model was exported without its weights");
    } else if (extent.contiguous) {
        payload.constant = Constant::view(
            entry.meta.type.dtype, extent.shape,
            extent.count == 0 ? Bytes()
                              : storage.bytes.subspan(extent.first * width, extent.count * width),
            storage.owner);
    } else if (extent.count > allowance && extent.count / expansion > storage.bytes.size()) {
        place.fail(
            fmt::format("{} elements are made of {} bytes", extent.count, storage.bytes.size()));
    } else {
        payload.constant = Constant::lazy(entry.meta.type.dtype, extent.shape,
                                          [=] { return gather(extent, storage.bytes, width); });
    }
    return payload;
}

}  // namespace trocar::pt2
