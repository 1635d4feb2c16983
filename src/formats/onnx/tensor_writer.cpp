#include <fmt/format.h>

#include <algorithm>

#include "formats/onnx/schema.h"
#include "formats/onnx/tensor_proto.h"
#include "trocar/error.h"

namespace trocar::onnx {

using namespace schema;

std::optional<ExternalData> placed_as_read(const Constant& constant) {
    return constant.external();
}

namespace {

bool same_place(const std::optional<ExternalData>& a, const std::optional<ExternalData>& b) {
    if (!a || !b) {
        return !a && !b;
    }
    return a->location == b->location && a->offset == b->offset && a->length == b->length;
}

bool same_elements(const Constant& a, const Constant& b) {
    if (a.is_string()) {
        return a.string_values() == b.string_values();
    }
    const auto x = a.bytes();
    const auto y = b.bytes();
    return x.size() == y.size() &&
           (x.data() == y.data() || std::equal(x.begin(), x.end(), y.begin()));
}

// Does `base` store this very constant? Then its data can stay as it stands.
bool stores(Bytes base, const Constant& constant) {
    if (base.empty()) {
        return false;
    }
    const auto file = std::make_shared<const File>(File{"", base, nullptr, {}, false});
    Shape dims;
    DType dtype = DType::undefined;
    for (Fields at(*file, base); at.next();) {
        if (at.number() == tensor::dtype) {
            dtype = static_cast<DType>(static_cast<int>(at.integer()));
        } else if (at.number() == tensor::dims) {
            at.integers([&](std::uint64_t dim) { dims.push_back(static_cast<std::int64_t>(dim)); });
        }
    }
    if (dtype != constant.dtype() || dims != constant.shape()) {
        return false;
    }
    // External data is recognised by its place, without being opened.
    const auto place = read_external_place(*file, base);
    const auto& known = constant.external();
    if (place || known) {
        return place && known && place->location == known->location &&
               place->offset == known->offset &&
               (place->length == known->length || place->length == 0);
    }
    ExternalFiles none("", {});
    return same_elements(read_tensor(file, base, none, "").constant, constant);
}

Rope external_entry(std::string_view key, std::string_view value) {
    Rope out;
    out.text(property::key, key);
    out.text(property::value, value);
    return out;
}

void replace_data(Rewrite& message, const Constant& constant,
                  const std::optional<ExternalData>& place) {
    for (const auto field : {tensor::float_data, tensor::int32_data, tensor::int64_data,
                             tensor::double_data, tensor::uint64_data}) {
        message.drop(field);
    }
    if (constant.is_string()) {
        message.drop(tensor::raw_data);
        message.texts(tensor::string_data, constant.string_values());
        message.drop(tensor::external);
        message.integer(tensor::location, 0);
        return;
    }
    message.drop(tensor::string_data);
    if (!place) {
        const auto bytes = constant.bytes();
        message.list(tensor::raw_data, 1, [bytes](Rope& out, std::size_t, const Fields*) {
            out.bytes(tensor::raw_data, bytes);
        });
        message.drop(tensor::external);
        message.integer(tensor::location, 0);
        return;
    }
    message.drop(tensor::raw_data);
    message.list(tensor::external, 3, [place](Rope& out, std::size_t k, const Fields*) {
        out.message(tensor::external,
                    k == 0   ? external_entry("location", place->location)
                    : k == 1 ? external_entry("offset", std::to_string(place->offset))
                             : external_entry("length", std::to_string(place->length)));
    });
    message.integer(tensor::location, tensor::location_external);
}

void rewrite_dims(Rewrite& message, Number number, const Shape& dims) {
    message.list(number, dims.size(),
                 [=](Rope& out, std::size_t k, const Fields*) { out.integer(number, dims[k]); });
}

}  // namespace

bool stays(const Constant& constant, const Placement& place) {
    if (constant.is_sparse()) {
        return stays(constant.values(), place) && stays(constant.indices(), place);
    }
    return constant.is_string() || same_place(place(constant), constant.external());
}

Rope write_tensor(const Constant& constant, std::optional<std::string_view> name,
                  const Placement& place, Bytes base) {
    Rewrite message(base);
    const auto where = constant.is_string() ? std::nullopt : place(constant);
    if (!same_place(where, constant.external()) || !stores(base, constant)) {
        rewrite_dims(message, tensor::dims, constant.shape());
        message.integer(tensor::dtype, static_cast<int>(constant.dtype()));
        replace_data(message, constant, where);
    }
    if (name) {
        message.text(tensor::name, *name);
    }
    return message.finish();
}

Rope write_sparse(const Constant& constant, std::optional<std::string_view> name,
                  const Placement& place, Bytes base) {
    const auto part = [&place](Number number, const Constant& value,
                               std::optional<std::string_view> value_name) {
        return [=](Rope& out, std::size_t, const Fields* slot) {
            auto rope = write_tensor(value, value_name, place, slot ? slot->bytes() : Bytes());
            if (slot != nullptr && rope.is(slot->bytes())) {
                out.borrow(slot->whole());
            } else {
                out.message(number, std::move(rope));
            }
        };
    };
    Rewrite message(base);
    message.list(sparse::values, 1, part(sparse::values, constant.values(), name));
    message.list(sparse::indices, 1, part(sparse::indices, constant.indices(), std::nullopt));
    const File file{"", base, nullptr, {}, false};
    Shape dims;
    for (Fields at(file, base); at.next();) {
        if (at.number() == sparse::dims) {
            at.integers([&](std::uint64_t dim) { dims.push_back(static_cast<std::int64_t>(dim)); });
        }
    }
    if (dims != constant.shape()) {
        rewrite_dims(message, sparse::dims, constant.shape());
    }
    return message.finish();
}

}  // namespace trocar::onnx
