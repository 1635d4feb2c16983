#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "formats/executorch/plan_reader.h"
#include "formats/executorch/types.h"
#include "util/text.h"

// The tensors of a plan, and numbers that instructions compute, which are tensors of one element.
namespace trocar::executorch {

namespace {

// What a tensor without data may take when somebody asks for its zeros.
constexpr std::size_t most_zeros = std::size_t{1} << 30;

Constant zeros(DType dtype, Shape shape) {
    const auto size = byte_size(dtype, element_count(shape));
    const auto decode = [size] {
        if (size > most_zeros) {
            throw Error(Fault::input,
                        fmt::format("a tensor without data would take {} bytes", size));
        }
        return std::vector<std::byte>(size);
    };
    return Constant::lazy(dtype, std::move(shape), decode, std::make_shared<NoData>());
}

bool in_order(const flatbuffers::Vector<std::uint8_t>* order) {
    for (flatbuffers::uoffset_t i = 0; i < size_of(order); ++i) {
        if (order->Get(i) != i) {
            return false;
        }
    }
    return true;
}

// Elements that are stored with other dimensions inside, in the order of the shape.
std::vector<std::byte> reordered(const Shape& shape, const std::vector<std::uint8_t>& order,
                                 std::size_t width, Bytes bytes) {
    const auto rank = shape.size();
    std::vector<std::size_t> strides(rank);
    std::size_t step = width;
    for (std::size_t i = rank; i-- > 0;) {
        strides[order[i]] = step;
        step *= static_cast<std::size_t>(shape[order[i]]);
    }
    std::vector<std::byte> made(bytes.size());
    std::vector<std::int64_t> at(rank);
    for (std::size_t to = 0; to < made.size(); to += width) {
        std::size_t from = 0;
        for (std::size_t i = 0; i < rank; ++i) {
            from += static_cast<std::size_t>(at[i]) * strides[i];
        }
        std::memcpy(made.data() + to, bytes.data() + from, width);
        for (std::size_t i = rank; i-- > 0;) {
            if (++at[i] < shape[i]) {
                break;
            }
            at[i] = 0;
        }
    }
    return made;
}

std::uint64_t offset_of(const fb::AllocationDetails& where) {
    return std::uint64_t{where.memory_offset_high()} << 32U |
           std::uint64_t{where.memory_offset_low()};
}

bool is_external(const fb::Tensor& tensor) {
    const auto* more = tensor.extra_tensor_info();
    return more != nullptr && more->location() == fb::TensorDataLocation::EXTERNAL;
}

}  // namespace

std::string PlanReader::name_of(std::int64_t number, Place& at) {
    std::string name;
    if (const auto* tensor = value(number).val_as_Tensor()) {
        const auto* more = tensor->extra_tensor_info();
        name = more != nullptr ? text_of(more->fully_qualified_name()) : std::string_view();
        file_.spend(2 * name.size() + sizeof(Tensor) / 4);
    }
    if (name.empty()) {
        name = fmt::format("value_{}", number);
    }
    if (at.versions++ > 0) {
        name = fmt::format("{}#{}", name, at.versions);
    }
    while (graph_.find_tensor(name)) {
        file_.spend(name.size());
        name += fmt::format("#{}", number);
    }
    return name;
}

Type PlanReader::type_of(const fb::EValue& stored) const {
    if (const auto* tensor = stored.val_as_Tensor()) {
        auto type = Type::tensor(to_dtype(tensor->scalar_type()));
        if (tensor->shape_dynamism() == fb::TensorShapeDynamism::DYNAMIC_UNBOUND) {
            return type;
        }
        const bool open = tensor->shape_dynamism() != fb::TensorShapeDynamism::STATIC;
        auto& dims = type.dims.emplace();
        for (flatbuffers::uoffset_t i = 0; i < size_of(tensor->sizes()); ++i) {
            const auto size = tensor->sizes()->Get(i);
            if (size < 0) {
                file_.fail("a tensor has a negative size");
            }
            dims.push_back(open && size > 1 ? Dim{} : Dim{.value = size, .symbol = {}});
        }
        return type;
    }
    switch (stored.val_type()) {
        case fb::KernelTypes::Int:
            return Type::tensor(DType::i64, Shape{});
        case fb::KernelTypes::Double:
            return Type::tensor(DType::f64, Shape{});
        case fb::KernelTypes::Bool:
            return Type::tensor(DType::boolean, Shape{});
        default:
            return {};
    }
}

void PlanReader::describe(TensorId id, const fb::Tensor& tensor) {
    auto& made = graph_.tensor_from_file(id);
    const auto note = [&](const char* key, std::string text) {
        file_.spend(text.size());
        made.metadata.push_back({key, std::move(text)});
    };
    if (const auto* where = tensor.allocation_info()) {
        note(key::memory, fmt::format("{}:{}", where->memory_id(), offset_of(*where)));
    }
    if (!in_order(tensor.dim_order())) {
        const std::vector<int> order(tensor.dim_order()->begin(), tensor.dim_order()->end());
        note(key::order, fmt::format("{}", join(order, ",")));
    }
    if (tensor.shape_dynamism() == fb::TensorShapeDynamism::DYNAMIC_BOUND) {
        const Shape sizes(tensor.sizes() != nullptr
                              ? Shape(tensor.sizes()->begin(), tensor.sizes()->end())
                              : Shape());
        note(key::at_most, shape_text(sizes));
    }
    if (const auto* more = tensor.extra_tensor_info();
        more != nullptr && more->device_type() != fb::DeviceType::CPU) {
        note(key::device, fmt::format("{}:{}", fb::EnumNameDeviceType(more->device_type()),
                                      static_cast<int>(more->device_index())));
    }
    if (is_external(tensor)) {
        note(key::external, "true");
    }
}

Constant PlanReader::constant_of(const fb::Tensor& tensor) {
    const auto dtype = to_dtype(tensor.scalar_type());
    Shape shape;
    for (flatbuffers::uoffset_t i = 0; i < size_of(tensor.sizes()); ++i) {
        shape.push_back(tensor.sizes()->Get(i));
    }
    const auto size = byte_size(dtype, element_count(shape));
    if (is_external(tensor)) {
        return Constant::lazy(dtype, std::move(shape), []() -> std::vector<std::byte> {
            throw Error(Fault::unsupported,
                        "its elements are in another file (.ptd), which is not read");
        });
    }
    if (tensor.data_buffer_idx() == 0) {
        return zeros(dtype, std::move(shape));
    }
    const auto* more = tensor.extra_tensor_info();
    const auto bytes = tensor.allocation_info() == nullptr
                           ? file_.constant(tensor.data_buffer_idx(), size)
                           : file_.state(more != nullptr ? more->mutable_data_segments_idx() : 0,
                                         tensor.data_buffer_idx(), size);
    if (in_order(tensor.dim_order())) {
        return Constant::view(dtype, std::move(shape), bytes, file_.owner());
    }
    const std::vector<std::uint8_t> order(tensor.dim_order()->begin(), tensor.dim_order()->end());
    std::vector<bool> seen(shape.size());
    for (const auto axis : order) {
        if (order.size() != shape.size() || axis >= shape.size() || seen[axis]) {
            file_.fail("the order of a tensor's dimensions is none");
        }
        seen[axis] = true;
    }
    const auto width = bits(dtype) / 8;
    if (width == 0) {
        file_.fail("a tensor whose elements are no whole bytes has another order of dimensions");
    }
    return Constant::lazy(dtype, shape, [shape, order, width, bytes, owner = file_.owner()] {
        return reordered(shape, order, width, bytes);
    });
}

Constant PlanReader::scalar_of(const fb::EValue& stored) const {
    if (const auto* integer = stored.val_as_Int()) {
        return Constant::of(DType::i64, {}, std::vector<std::int64_t>{integer->int_val()});
    }
    if (const auto* fraction = stored.val_as_Double()) {
        return Constant::of(DType::f64, {}, std::vector<double>{fraction->double_val()});
    }
    if (const auto* truth = stored.val_as_Bool()) {
        return Constant::of(DType::boolean, {}, std::vector<std::uint8_t>{truth->bool_val()});
    }
    file_.fail(fmt::format("a value that is {} stands where a tensor or a number should",
                           fb::EnumNameKernelTypes(stored.val_type())));
}

void PlanReader::note_memory(std::int64_t number, const fb::Tensor& tensor) {
    if (const auto* where = tensor.allocation_info()) {
        memory_[{where->memory_id(), offset_of(*where)}] = number;
    }
}

// A tensor that no instruction writes, in the memory of one that was written: a view of it, which
// takes no instruction. In the graph it takes an op. None: it is no view.
TensorId PlanReader::view_at(std::int64_t number, const fb::Tensor& tensor) {
    const auto* where = tensor.allocation_info();
    if (where == nullptr || tensor.data_buffer_idx() != 0) {
        return TensorId::none;
    }
    const auto found = memory_.find({where->memory_id(), offset_of(*where)});
    if (found == memory_.end()) {
        return TensorId::none;
    }
    const auto& of = *value(found->second).val_as_Tensor();
    const auto size = [](const fb::Tensor& one) {
        std::uint64_t count = 1;
        for (flatbuffers::uoffset_t i = 0; i < size_of(one.sizes()); ++i) {
            const auto length = static_cast<std::uint64_t>(std::max(one.sizes()->Get(i), 0));
            if (__builtin_mul_overflow(count, length, &count)) {
                return std::uint64_t{0};
            }
        }
        return count;
    };
    const auto source = place(found->second).now;
    if (of.scalar_type() != tensor.scalar_type() || size(of) != size(tensor) ||
        source == TensorId::none) {
        return TensorId::none;
    }
    file_.spend(sizeof(Op) / 4);
    Draft draft;
    draft.spec.type = "view_copy";
    draft.spec.overload = "default";
    draft.spec.inputs = {source};
    draft.slots = {"self"};
    const auto made = tensor_after(number);
    draft.spec.outputs = {made};
    std::vector<std::int64_t> sizes;
    for (flatbuffers::uoffset_t i = 0; i < size_of(tensor.sizes()); ++i) {
        sizes.push_back(tensor.sizes()->Get(i));
    }
    set_attribute(draft, "size", std::move(sizes));
    draft.spec.metadata = {{"instruction", "none: a view in the same memory"}};
    finish(std::move(draft), nullptr);
    return made;
}

TensorId PlanReader::tensor_at(std::int64_t number) {
    auto& at = place(number);
    if (at.now != TensorId::none) {
        return at.now;
    }
    const auto& stored = value(number);
    if (const auto* tensor = stored.val_as_Tensor()) {
        if (const auto view = view_at(number, *tensor); view != TensorId::none) {
            return view;
        }
    }
    const auto name = name_of(number, at);
    try {
        if (const auto* tensor = stored.val_as_Tensor()) {
            auto type = type_of(stored);
            at.now = graph_.add_constant(name, constant_of(*tensor));
            graph_.tensor_from_file(at.now).type = std::move(type);
            describe(at.now, *tensor);
            if (tensor->allocation_info() != nullptr) {
                graph_.tensor_from_file(at.now).metadata.push_back({key::state, "state"});
            }
        } else {
            at.now = graph_.add_constant(name, scalar_of(stored));
        }
    } catch (const Error& e) {
        file_.fail(fmt::format("value {}: {}", number, e.what()), e.fault());
    }
    return at.now;
}

TensorId PlanReader::tensor_after(std::int64_t number) {
    auto& at = place(number);
    const auto& stored = value(number);
    at.now = graph_.add_tensor(name_of(number, at), type_of(stored));
    at.computed = true;
    if (const auto* tensor = stored.val_as_Tensor()) {
        describe(at.now, *tensor);
        note_memory(number, *tensor);
    }
    return at.now;
}

}  // namespace trocar::executorch
