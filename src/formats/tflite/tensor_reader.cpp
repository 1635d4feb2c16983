// Tensors of a subgraph: their types, constants, names and encodings.
#include <fmt/format.h>

#include <algorithm>

#include "formats/tflite/encodings.h"
#include "formats/tflite/graph_reader.h"
#include "formats/tflite/types.h"
#include "trocar/error.h"
#include "util/mapped_file.h"

namespace trocar::tflite {

namespace {

// What a tensor without data may take when somebody asks for its zeros.
constexpr std::size_t most_zeros = std::size_t{1} << 30;

[[noreturn]] void broken(const std::string& what) {
    throw Error(Fault::input, what);
}

Constant zeros(DType dtype, Shape shape) {
    if (dtype == DType::string) {
        const auto count = element_count(shape);
        return Constant::strings(std::move(shape), std::vector<std::string>(count));
    }
    const auto size = byte_size(dtype, element_count(shape));
    const auto decode = [size] {
        if (size > most_zeros) {
            broken(fmt::format("a tensor without data would take {} bytes", size));
        }
        return std::vector<std::byte>(size);
    };
    return Constant::lazy(dtype, std::move(shape), decode, std::make_shared<NoData>());
}

}  // namespace

Bytes GraphReader::buffer(std::uint32_t number) const {
    if (number >= size_of(model_.buffers())) {
        if (number == 0) {
            return {};
        }
        broken(fmt::format("there is no buffer {}", number));
    }
    const auto& buffer = *model_.buffers()->Get(number);
    // 0 and 1 stand for "not outside".
    if (buffer.offset() > 1) {
        if (buffer.offset() > file_.size() || buffer.size() > file_.size() - buffer.offset()) {
            broken(fmt::format("buffer {} lies outside the file", number));
        }
        return file_.subspan(buffer.offset(), buffer.size());
    }
    return bytes_of(buffer.data());
}

Type GraphReader::type_of(const fb::Tensor& tensor) const {
    Type type = Type::tensor(to_dtype(tensor.type()), integers_of(tensor.shape()));
    const auto* signature = tensor.shape_signature();
    if (signature != nullptr && signature->size() == type.dims->size()) {
        for (flatbuffers::uoffset_t i = 0; i < signature->size(); ++i) {
            if (signature->Get(i) < 0) {
                (*type.dims)[i].value = -1;
            }
        }
    }
    for (auto& dim : *type.dims) {
        dim.value = std::max<std::int64_t>(dim.value, -1);
    }
    if (tensor.type() == fb::TensorType::RESOURCE || tensor.type() == fb::TensorType::VARIANT) {
        type.kind = Type::Kind::opaque;
        for (flatbuffers::uoffset_t i = 0; i < size_of(tensor.variant_tensors()); ++i) {
            const auto* inner = tensor.variant_tensors()->Get(i);
            auto& element = type.element.emplace_back(Type::tensor(to_dtype(inner->type())));
            if (inner->has_rank() || size_of(inner->shape()) > 0) {
                element = Type::tensor(to_dtype(inner->type()), integers_of(inner->shape()));
            }
        }
    }
    return type;
}

Constant GraphReader::external_constant(const fb::Tensor& tensor) {
    const fb::ExternalBuffer* found = nullptr;
    for (flatbuffers::uoffset_t i = 0; i < size_of(model_.external_buffers()); ++i) {
        const auto* candidate = model_.external_buffers()->Get(i);
        found = candidate->id() == tensor.external_buffer() ? candidate : found;
    }
    if (found == nullptr || found->group() >= size_of(model_.external_buffer_groups())) {
        broken(fmt::format("there is no external buffer {}", tensor.external_buffer()));
    }
    const std::string location(
        text_of(model_.external_buffer_groups()->Get(found->group())->name()));
    const std::filesystem::path below(location);
    if (location.empty() || below.is_absolute() ||
        std::find(below.begin(), below.end(), "..") != below.end()) {
        broken(fmt::format("the external data '{}' lies outside the model's folder", location));
    }
    if (path_.empty()) {
        broken(fmt::format("the external data '{}' is not there: the model is not from a file",
                           location));
    }
    const auto file = MappedFile::open(path_.parent_path() / below);
    const auto all = file->bytes();
    if (found->offset() > all.size() || found->length() > all.size() - found->offset()) {
        broken(fmt::format("external buffer {} lies outside '{}'", found->id(), location));
    }
    auto constant = Constant::view(to_dtype(tensor.type()), integers_of(tensor.shape()),
                                   all.subspan(found->offset(), found->length()), file);
    constant.set_external({location, found->offset(), found->length(), file->path().string()});
    files_.emplace(location, file);
    external_bytes_ += found->length();
    return constant;
}

Constant GraphReader::constant_of(const fb::Tensor& tensor) {
    if (tensor.external_buffer() != 0) {
        return external_constant(tensor);
    }
    const auto bytes = buffer(tensor.buffer());
    const auto dtype = to_dtype(tensor.type());
    auto shape = integers_of(tensor.shape());
    if (tensor.sparsity() != nullptr) {
        auto how = read_sparsity(*tensor.sparsity());
        for (const auto& level : how.levels) {
            spend((level.segments.size() + level.places.size()) * sizeof(std::int32_t));
        }
        return sparse_constant(std::move(how), dtype, std::move(shape), bytes, owner_);
    }
    if (dtype == DType::string) {
        spend(bytes.size());
        return read_strings(std::move(shape), bytes);
    }
    return Constant::view(dtype, std::move(shape), bytes, owner_);
}

void GraphReader::describe(Graph& graph, TensorId id, const fb::Tensor& tensor,
                           const fb::SubGraph& subgraph) {
    auto& made = graph.tensor_from_file(id);
    const auto note = [&](std::string_view key, std::string_view value) {
        made.metadata.push_back({std::string(key), std::string(value)});
    };
    if (const auto name = text_of(tensor.name()); name != made.name) {
        spend(name.size());
        note(key::name, name);
    }
    if (tensor.is_variable()) {
        note(key::variable, "true");
    }
    if (made.type.dims && !made.type.shape()) {
        note(key::shape, shape_text(integers_of(tensor.shape())));
    }
    if (tensor.has_rank()) {
        note(key::ranked, "true");
    }
    const auto* stored = tensor.quantization();
    if (stored == nullptr) {
        return;
    }
    auto& known = quantizations_[stored];
    if (!known) {
        spend((size_of(stored->scale()) + size_of(stored->min()) + size_of(stored->max())) * 4U +
              size_of(stored->zero_point()) * 8U);
        known = read_quantization(stored, [&](std::int64_t index) {
            if (index < 0 || index >= size_of(subgraph.tensors())) {
                return Constant();
            }
            const auto& held = *subgraph.tensors()->Get(static_cast<flatbuffers::uoffset_t>(index));
            if (held.sparsity() != nullptr || held.type() == fb::TensorType::STRING) {
                broken("scales of a quantization are sparse or texts");
            }
            return buffer(held.buffer()).empty() ? Constant() : constant_of(held);
        });
        if (stored->details_type() > fb::QuantizationDetails::MAX) {
            newer_ = true;
        }
    }
    made.quantization = known;
}

void GraphReader::add_tensor(Place& place, std::size_t index) {
    const auto& tensor = *place.subgraph.tensors()->Get(static_cast<flatbuffers::uoffset_t>(index));
    spend(text_of(tensor.name()).size());
    auto name = unique_name(place.graph, text_of(tensor.name()), index);
    newer_ = newer_ || has_more(tensor, tensor_fields);
    try {
        auto type = type_of(tensor);
        const bool has_data = tensor.external_buffer() != 0 || !buffer(tensor.buffer()).empty();
        if (has_data && place.written[index]) {
            broken("it has data, and an op writes it");
        }
        const bool nothing_gives_it = !has_data && !place.written[index] && !place.input[index] &&
                                      (place.read[index] || place.output[index]);
        TensorId id{};
        if (has_data) {
            id = place.graph.add_constant(name, constant_of(tensor));
        } else if (nothing_gives_it) {
            // A variable, or a list of no elements.
            const auto shape = integers_of(tensor.shape());
            if (tensor.type() == fb::TensorType::STRING) {
                spend(element_count(shape));
            }
            id = place.graph.add_constant(name, zeros(to_dtype(tensor.type()), shape));
        } else {
            id = place.graph.add_tensor(name, {});
        }
        place.ids[index] = id;
        place.graph.tensor_from_file(id).type = std::move(type);
        describe(place.graph, id, tensor, place.subgraph);
    } catch (const Error& e) {
        fail(
            fmt::format("tensor {} ('{}') of subgraph {}: {}", index, name, place.number, e.what()),
            e.fault());
    }
}

}  // namespace trocar::tflite
