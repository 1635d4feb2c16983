#include "formats/pt2/payload.h"

#include <fmt/format.h>

namespace trocar::pt2 {

namespace {

std::int64_t number_of(const JsonPlace& place, const Dim& dim) {
    if (!dim.symbol.empty() || dim.value < 0) {
        place.fail("a stored tensor has a size, stride or offset that is no number");
    }
    return dim.value;
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
    const auto document = Json::parse({text, bytes.size()});
    if (!document || !document->is_object()) {
        place.fail("it is no JSON object");
    }
    for (const auto& [tensor, entry] : place.object(*document, "config").items()) {
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

Storage Payloads::storage(const Entry& entry, const JsonPlace& place) const {
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
    Strided tensor{.dtype = entry.meta.type.dtype};
    for (const auto& dim : *entry.meta.type.dims) {
        tensor.shape.push_back(number_of(place, dim));
    }
    for (const auto& stride : entry.meta.strides) {
        tensor.strides.push_back(number_of(place, stride));
    }
    tensor.offset = number_of(place, entry.meta.storage_offset);
    auto made = strided_constant(
        tensor, storage(entry, place), entry.file,
        [&](const std::string& what) { place.fail(what); },
        [&] {
            return refuse(Fault::input, "has no elements in the file",
                          "the model was exported without its weights");
        });
    payload.constant = std::move(made.constant);
    payload.identity = std::move(made.identity);
    return payload;
}

}  // namespace trocar::pt2
