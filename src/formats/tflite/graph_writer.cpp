// Subgraphs, ops and tensors of a file that is written.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "formats/tflite/encodings.h"
#include "formats/tflite/model_writer.h"
#include "formats/tflite/options.h"
#include "formats/tflite/reader.h"
#include "formats/tflite/types.h"
#include "trocar/error.h"
#include "util/text.h"

namespace trocar::tflite {

namespace {

// Attributes that are no options of the op's own.
constexpr std::string_view general_attributes[] = {
    "custom_options",
    "debug_metadata_index",
    "intermediates",
    "mutating_variable_inputs",
};

std::int32_t version_of(const Op& op, std::int64_t builtin) {
    const auto text = property(op.metadata, key::version);
    std::int32_t number = lowest_version(builtin);
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

std::int32_t narrow(std::int64_t dim, const std::string& name) {
    if (dim > std::numeric_limits<std::int32_t>::max()) {
        throw Error(Fault::unsupported,
                    fmt::format("a dimension of tensor '{}' does not fit 32 bits", name));
    }
    return static_cast<std::int32_t>(dim);
}

// The shape that the file gave where a dimension is open; 1 where it gave none.
std::vector<std::int32_t> usual_shape(const Tensor& tensor) {
    const auto parts = split(property(tensor.metadata, key::shape), 'x');
    std::vector<std::int32_t> shape;
    for (std::size_t i = 0; i < tensor.type.dims->size(); ++i) {
        std::int32_t value = 1;
        if (const auto dim = (*tensor.type.dims)[i].value; dim >= 0) {
            value = narrow(dim, tensor.name);
        } else if (parts.size() == tensor.type.dims->size()) {
            std::from_chars(parts[i].data(), parts[i].data() + parts[i].size(), value);
        }
        shape.push_back(value);
    }
    return shape;
}

const Options* options_for(const Op& op, const std::string& where) {
    if (const auto named = property(op.metadata, key::options); !named.empty()) {
        const auto* found = find_options(named);
        if (found == nullptr) {
            throw Error(Fault::unsupported,
                        fmt::format("{}: there is no options table '{}'", where, named));
        }
        return found;
    }
    return op.domain.empty() ? options_of(op.type) : nullptr;
}

}  // namespace

std::uint32_t ModelWriter::opcode(const Op& op, const std::string& where) {
    std::int64_t code = static_cast<std::int64_t>(fb::BuiltinOperator::CUSTOM);
    std::string custom;
    if (op.domain == "custom") {
        custom = op.type;
    } else if (const auto known = op.domain.empty() ? builtin_code(op.type) : std::nullopt) {
        code = *known;
    } else {
        throw Error(Fault::unsupported,
                    fmt::format("{}: TensorFlow Lite has no op of that type", where),
                    "ops of other makers have the domain 'custom'");
    }
    return opcodes_
        .emplace(std::tuple(code, custom, version_of(op, code)),
                 static_cast<std::uint32_t>(opcodes_.size()))
        .first->second;
}

std::int32_t ModelWriter::tensor_with(Place& place, const Constant& constant) {
    const auto* data = constant.bytes().data();
    const auto [found, fresh] = place.constants.emplace(data, place.next);
    if (fresh) {
        place.extras.push_back({nullptr, &constant});
        ++place.next;
    }
    return found->second;
}

flatbuffers::Offset<fb::Operator> ModelWriter::write_op(Place& place, OpId id) {
    const auto& op = place.graph.op(id);
    const auto where = op.name.empty() ? op.type : fmt::format("{} '{}'", op.type, op.name);
    const auto numbers = [&](const std::vector<TensorId>& ids) {
        std::vector<std::int32_t> found;
        for (const auto tensor : ids) {
            found.push_back(tensor == TensorId::none ? -1 : place.numbers[index(tensor)]);
        }
        return builder_.CreateVector(found);
    };
    const auto* options = options_for(op, where);
    check_attributes(options, op.attributes, general_attributes, where);
    if (options != nullptr && !is_given(*options, op.attributes)) {
        options = nullptr;
    }
    const auto code = opcode(op, where);
    const auto inputs = numbers(op.inputs);
    const auto outputs = numbers(op.outputs);
    flatbuffers::Offset<void> table = 0;
    if (options != nullptr) {
        table = write_options(builder_, *options, op.attributes, where,
                              [&](const Graph& graph) { return number_of(graph); });
    }
    flatbuffers::Offset<flatbuffers::Vector<std::uint8_t>> custom = 0;
    if (const auto* attribute = op.attribute("custom_options")) {
        const auto* held = std::get_if<Constant>(&attribute->value);
        if (held == nullptr || held->dtype() != DType::u8) {
            throw Error(Fault::unsupported, fmt::format("{}: custom_options are bytes", where));
        }
        const auto bytes = held->bytes();
        builder_.ForceVectorAlignment(bytes.size(), 1, 16);
        custom = builder_.CreateVector(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                       bytes.size());
    }
    flatbuffers::Offset<flatbuffers::Vector<std::uint8_t>> variables = 0;
    if (const auto flags = op.integers("mutating_variable_inputs"); !flags.empty()) {
        variables = builder_.CreateVector(std::vector<std::uint8_t>(flags.begin(), flags.end()));
    }
    std::vector<std::int32_t> aside;
    if (const auto* attribute = op.attribute("intermediates")) {
        if (const auto* held = std::get_if<std::shared_ptr<Graph>>(&attribute->value)) {
            for (const auto inner : (*held)->tensors()) {
                const auto& tensor = (*held)->tensor(inner);
                const bool absent = tensor.type.kind == Type::Kind::unknown;
                aside.push_back(absent ? -1 : place.next++);
                if (!absent) {
                    place.extras.push_back({&tensor, nullptr});
                }
            }
        }
    }
    const auto intermediates = aside.empty() ? 0 : builder_.CreateVector(aside);
    fb::OperatorBuilder made(builder_);
    made.add_opcode_index(code);
    made.add_inputs(inputs);
    made.add_outputs(outputs);
    if (options != nullptr && !options->second) {
        made.add_builtin_options_type(static_cast<fb::BuiltinOptions>(options->number));
        made.add_builtin_options(table);
    } else if (options != nullptr) {
        made.add_builtin_options_2_type(static_cast<fb::BuiltinOptions2>(options->number));
        made.add_builtin_options_2(table);
    }
    made.add_custom_options(custom);
    made.add_mutating_variable_inputs(variables);
    made.add_intermediates(intermediates);
    made.add_debug_metadata_index(
        static_cast<std::int32_t>(op.integer("debug_metadata_index", -1)));
    return made.Finish();
}

std::uint32_t ModelWriter::buffer_of(const Constant& constant) {
    if (const auto* form = constant.form().get()) {
        if (dynamic_cast<const NoData*>(form) != nullptr) {
            return 0;
        }
        if (const auto* sparse = dynamic_cast<const SparseForm*>(form)) {
            return buffer(sparse->values());
        }
    }
    if (constant.is_sparse()) {
        throw Error(Fault::unsupported,
                    "a constant is sparse in a way that TensorFlow Lite does not have",
                    "make it dense");
    }
    if (constant.is_string()) {
        texts_.push_back(write_strings(constant.string_values()));
        return buffer(std::as_bytes(std::span(texts_.back())));
    }
    return buffer(constant.bytes());
}

flatbuffers::Offset<fb::Tensor> ModelWriter::write_tensor(Place& place, const Tensor& tensor,
                                                          const Constant* constant) {
    const auto number = constant != nullptr ? buffer_of(*constant) : 0;
    const auto dtype = constant != nullptr ? constant->dtype() : tensor.type.dtype;
    std::vector<std::int32_t> shape;
    bool open = false;
    if (tensor.type.dims) {
        shape = usual_shape(tensor);
        open = !tensor.type.shape();
    }
    if (constant != nullptr && !open) {
        shape.clear();
        for (const auto dim : constant->shape()) {
            shape.push_back(narrow(dim, tensor.name));
        }
    }
    if (dtype == DType::undefined) {
        throw Error(Fault::unsupported,
                    fmt::format("the element type of tensor '{}' is not known", tensor.name),
                    "TensorFlow Lite declares the type of every tensor");
    }
    flatbuffers::Offset<flatbuffers::Vector<std::int32_t>> signature = 0;
    if (open) {
        auto dims = shape;
        for (std::size_t i = 0; i < dims.size(); ++i) {
            dims[i] = (*tensor.type.dims)[i].value < 0 ? -1 : dims[i];
        }
        signature = builder_.CreateVector(dims);
    }
    Tables<fb::VariantSubType> variants;
    for (const auto& element : tensor.type.element) {
        std::vector<std::int32_t> dims;
        for (const auto& dim : element.dims.value_or(std::vector<Dim>())) {
            dims.push_back(narrow(dim.value, tensor.name));
        }
        const auto stored = builder_.CreateVector(dims);
        variants.push_back(fb::CreateVariantSubType(builder_, stored, from_dtype(element.dtype),
                                                    element.dims.has_value()));
    }
    const auto stored_variants = variants.empty() ? 0 : builder_.CreateVector(variants);
    flatbuffers::Offset<fb::QuantizationParameters> quantization = 0;
    if (tensor.quantization) {
        quantization =
            write_quantization(builder_, *tensor.quantization,
                               [&](const Constant& held) { return tensor_with(place, held); });
    }
    flatbuffers::Offset<fb::SparsityParameters> sparsity = 0;
    if (const auto* sparse = constant != nullptr
                                 ? dynamic_cast<const SparseForm*>(constant->form().get())
                                 : nullptr) {
        sparsity = write_sparsity(builder_, sparse->how());
    }
    const auto stored_shape = builder_.CreateVector(shape);
    const auto name = builder_.CreateString(file_name(tensor));
    return fb::CreateTensor(builder_, stored_shape, from_dtype(dtype), number, name, quantization,
                            property(tensor.metadata, key::variable) == "true", sparsity, signature,
                            property(tensor.metadata, key::ranked) == "true", stored_variants);
}

flatbuffers::Offset<fb::SubGraph> ModelWriter::write_graph(const Graph& graph) {
    Place place{.graph = graph};
    const auto live = graph.tensors();
    place.numbers.assign(graph.tensor_limit(), -1);
    for (const auto id : live) {
        const auto& constant = graph.tensor(id).constant;
        if (constant && !constant->form() && !constant->is_string() && !constant->is_sparse() &&
            !constant->bytes().empty()) {
            place.constants.emplace(constant->bytes().data(), place.next);
        }
        place.numbers[index(id)] = place.next++;
    }
    numbers_[&graph] = place.numbers;
    Tables<fb::Operator> ops;
    for (const auto id : graph.ops()) {
        ops.push_back(write_op(place, id));
    }
    Tables<fb::Tensor> tensors;
    for (const auto id : live) {
        const auto& tensor = graph.tensor(id);
        tensors.push_back(
            write_tensor(place, tensor, tensor.constant ? &*tensor.constant : nullptr));
    }
    for (std::size_t i = 0; i < place.extras.size(); ++i) {
        const auto extra = place.extras[i];
        if (extra.tensor != nullptr) {
            tensors.push_back(write_tensor(place, *extra.tensor, nullptr));
            continue;
        }
        Tensor plain;
        plain.type = Type::tensor(extra.constant->dtype(), extra.constant->shape());
        tensors.push_back(write_tensor(place, plain, extra.constant));
    }
    const auto interface = [&](std::span<const TensorId> ids) {
        std::vector<std::int32_t> found;
        for (const auto id : ids) {
            found.push_back(place.numbers[index(id)]);
        }
        return builder_.CreateVector(found);
    };
    const auto inputs = interface(graph.inputs());
    const auto outputs = interface(graph.outputs());
    const auto stored_ops = builder_.CreateVector(ops);
    const auto stored_tensors = builder_.CreateVector(tensors);
    const auto name = graph.name.empty() ? 0 : builder_.CreateString(graph.name);
    const auto* image = static_cast<const GraphImage*>(graph.image.get());
    return fb::CreateSubGraph(builder_, stored_tensors, inputs, outputs, stored_ops, name,
                              image != nullptr ? image->debug_metadata : -1);
}

}  // namespace trocar::tflite
