#include "formats/executorch/plan_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "formats/executorch/types.h"
#include "trocar/error.h"

// The values and the instructions of a plan. argument_writer.cpp has the arguments of kernels.
namespace trocar::executorch {

namespace {

constexpr std::uint32_t memory_number = 1;

}  // namespace

std::uint32_t Data::constant(const Constant& value) {
    const auto dense = value.is_sparse() ? densify(value) : value;
    const auto bytes = dense.bytes();
    const auto [at, is_new] = known_.try_emplace({bytes.data(), bytes.size()},
                                                 static_cast<std::uint32_t>(offsets_.size()));
    if (is_new) {
        size_ = (size_ + tensor_alignment - 1) / tensor_alignment * tensor_alignment;
        offsets_.push_back(size_);
        constants_.push_back(bytes);
        held_.push_back(dense);
        size_ += bytes.size();
    }
    return at->second;
}

std::uint32_t Data::segment(Bytes bytes, std::shared_ptr<const void> owner) {
    segments_.push_back(bytes);
    owners_.push_back(std::move(owner));
    // The first segment holds the constants.
    return static_cast<std::uint32_t>(segments_.size());
}

void Data::named(const std::string& key, const Constant& value) {
    if (!named_.contains(key)) {
        named_[key] = segment(value.bytes(), value.owner());
    }
}

void PlanWriter::fail(OpId op, const std::string& what) const {
    throw Error(Fault::unsupported, fmt::format("{}: {}", graph_.describe(op), what));
}

std::int32_t PlanWriter::add(fb::KernelTypes type, flatbuffers::Offset<void> value) {
    values_.push_back(fb::CreateEValue(builder_, type, value));
    return static_cast<std::int32_t>(values_.size() - 1);
}

std::int32_t PlanWriter::null() {
    if (null_ < 0) {
        null_ = add(fb::KernelTypes::Null, fb::CreateNull(builder_).Union());
    }
    return null_;
}

std::int32_t PlanWriter::integer(std::int64_t number) {
    const auto [at, is_new] = integers_.try_emplace(number, 0);
    if (is_new) {
        at->second = add(fb::KernelTypes::Int, fb::CreateInt(builder_, number).Union());
    }
    return at->second;
}

std::int32_t PlanWriter::truth(bool value) {
    const auto [at, is_new] = truths_.try_emplace(value, 0);
    if (is_new) {
        at->second = add(fb::KernelTypes::Bool, fb::CreateBool(builder_, value).Union());
    }
    return at->second;
}

std::int32_t PlanWriter::real(double number) {
    const auto [at, is_new] = reals_.try_emplace(std::bit_cast<std::uint64_t>(number), 0);
    if (is_new) {
        at->second = add(fb::KernelTypes::Double, fb::CreateDouble(builder_, number).Union());
    }
    return at->second;
}

std::int32_t PlanWriter::text(const std::string& words) {
    const auto [at, is_new] = texts_.try_emplace(words, 0);
    if (is_new) {
        at->second = add(fb::KernelTypes::String,
                         fb::CreateString(builder_, builder_.CreateString(words)).Union());
    }
    return at->second;
}

std::int32_t PlanWriter::integers(const std::vector<std::int32_t>& values) {
    const auto [at, is_new] = integer_lists_.try_emplace(values, 0);
    if (is_new) {
        const std::vector<std::int64_t> items(values.begin(), values.end());
        at->second = add(fb::KernelTypes::IntList,
                         fb::CreateIntList(builder_, builder_.CreateVector(items)).Union());
    }
    return at->second;
}

std::int32_t PlanWriter::tensor_list(const std::vector<TensorId>& tensors, bool optional) {
    std::vector<std::int32_t> items;
    for (const auto id : tensors) {
        items.push_back(id == TensorId::none ? -1 : value_of(id));
    }
    const auto list = builder_.CreateVector(items);
    return optional
               ? add(fb::KernelTypes::OptionalTensorList,
                     fb::CreateOptionalTensorList(builder_, list).Union())
               : add(fb::KernelTypes::TensorList, fb::CreateTensorList(builder_, list).Union());
}

std::int32_t PlanWriter::value_of(TensorId id) {
    const auto found = tensors_.find(id);
    return found != tensors_.end() ? found->second : new_tensor(id);
}

std::int32_t PlanWriter::new_tensor(TensorId id) {
    const auto& tensor = graph_.tensor(id);
    const auto shape = tensor.constant ? tensor.constant->shape() : *tensor.type.shape();
    const auto dtype = tensor.constant ? tensor.constant->dtype() : tensor.type.dtype;
    std::vector<std::int32_t> sizes;
    std::vector<std::uint8_t> order;
    for (const auto size : shape) {
        if (size > INT32_MAX || order.size() > UINT8_MAX) {
            throw Error(Fault::unsupported,
                        fmt::format("the shape of '{}' is too large for ExecuTorch", tensor.name));
        }
        sizes.push_back(static_cast<std::int32_t>(size));
        order.push_back(static_cast<std::uint8_t>(order.size()));
    }
    std::uint32_t data = 0;
    flatbuffers::Offset<fb::AllocationDetails> memory;
    if (tensor.constant) {
        if (tensor.constant->is_string()) {
            throw Error(Fault::unsupported,
                        fmt::format("'{}' holds texts, which ExecuTorch has not", tensor.name));
        }
        data = data_.constant(*tensor.constant);
    } else {
        const auto offset = offsets_.at(id);
        memory = fb::CreateAllocationDetails(builder_, memory_number,
                                             static_cast<std::uint32_t>(offset & UINT32_MAX),
                                             static_cast<std::uint32_t>(offset >> 32U));
    }
    const auto more = fb::CreateExtraTensorInfo(builder_, 0, builder_.CreateString(tensor.name));
    const auto made = fb::CreateTensor(builder_, from_dtype(dtype), 0, builder_.CreateVector(sizes),
                                       builder_.CreateVector(order), false, data, memory, 0,
                                       fb::TensorShapeDynamism::STATIC, more);
    return tensors_[id] = add(fb::KernelTypes::Tensor, made.Union());
}

// Gives every tensor that is computed a place in memory.
void PlanWriter::plan_tensors() {
    std::map<TensorId, std::size_t> numbers;
    std::vector<TensorId> ids;
    std::vector<Lifetime> lifetimes;
    const auto begin = [&](TensorId id, std::size_t step) {
        const auto& tensor = graph_.tensor(id);
        const auto shape = tensor.type.shape();
        if (!shape || tensor.type.dtype == DType::undefined) {
            throw Error(Fault::unsupported,
                        fmt::format("the {} of '{}' is not known, and a program for ExecuTorch "
                                    "plans the memory of every tensor",
                                    shape ? "element type" : "shape", tensor.name),
                        "--shape gives sizes to dimensions that are left open");
        }
        numbers[id] = lifetimes.size();
        ids.push_back(id);
        lifetimes.push_back({byte_size(tensor.type.dtype, element_count(*shape)), step, step});
    };
    const auto extend = [&](TensorId id, std::size_t step) {
        if (const auto at = numbers.find(id); at != numbers.end()) {
            lifetimes[at->second].last = std::max(lifetimes[at->second].last, step);
        }
    };
    for (const auto id : graph_.inputs()) {
        if (!graph_.tensor(id).constant) {
            begin(id, 0);
        }
    }
    std::size_t step = 0;
    for (const auto op : graph_.ops()) {
        ++step;
        for (const auto id : graph_.op(op).inputs) {
            extend(id, step);
        }
        for (const auto id : graph_.op(op).outputs) {
            if (id != TensorId::none) {
                begin(id, step);
            }
        }
    }
    for (const auto id : graph_.outputs()) {
        extend(id, step + 1);
    }
    const auto plan = plan_memory(lifetimes);
    for (std::size_t i = 0; i < ids.size(); ++i) {
        offsets_[ids[i]] = plan.offsets[i];
    }
    memory_size_ = plan.size;
}

void PlanWriter::append(fb::InstructionArguments type, flatbuffers::Offset<void> arguments) {
    instructions_.push_back(fb::CreateInstruction(builder_, type, arguments));
}

void PlanWriter::delegate(OpId id) {
    const auto& op = graph_.op(id);
    std::vector<std::int32_t> args;
    for (const auto* list : {&op.inputs, &op.outputs}) {
        for (const auto tensor : *list) {
            if (tensor != TensorId::none) {
                args.push_back(value_of(tensor));
            }
        }
    }
    flatbuffers::Offset<fb::BackendDelegateDataReference> where;
    std::vector<flatbuffers::Offset<fb::CompileSpec>> specs;
    constexpr std::string_view spec_prefix = "spec.";
    for (const auto& attribute : op.attributes) {
        const auto* bytes = std::get_if<Constant>(&attribute.value);
        if (bytes == nullptr) {
            continue;
        }
        if (attribute.name == "processed") {
            where = fb::CreateBackendDelegateDataReference(
                builder_, fb::DataLocation::SEGMENT, data_.segment(bytes->bytes(), bytes->owner()));
        } else if (attribute.name.starts_with(spec_prefix)) {
            const auto* data = reinterpret_cast<const std::uint8_t*>(bytes->bytes().data());
            specs.push_back(fb::CreateCompileSpec(
                builder_, builder_.CreateString(attribute.name.substr(spec_prefix.size())),
                builder_.CreateVector(data, bytes->bytes().size())));
        }
    }
    const auto* keys = op.attribute("data_keys");
    const auto* data = op.attribute("data");
    if (keys != nullptr && data != nullptr) {
        const auto* names = std::get_if<std::vector<std::string>>(&keys->value);
        const auto* values = std::get_if<std::vector<Constant>>(&data->value);
        for (std::size_t i = 0;
             names != nullptr && values != nullptr && i < std::min(names->size(), values->size());
             ++i) {
            data_.named((*names)[i], (*values)[i]);
        }
    }
    if (where.IsNull()) {
        fail(id, "it has no attribute 'processed', which a delegate is made of");
    }
    delegates_.push_back(fb::CreateBackendDelegate(builder_, builder_.CreateString(op.type), where,
                                                   builder_.CreateVector(specs)));
    append(fb::InstructionArguments::DelegateCall,
           fb::CreateDelegateCall(builder_, static_cast<std::int32_t>(delegates_.size() - 1),
                                  builder_.CreateVector(args))
               .Union());
}

flatbuffers::Offset<fb::ExecutionPlan> PlanWriter::write(const std::string& name) {
    plan_tensors();
    std::vector<std::int32_t> inputs;
    std::vector<std::int32_t> outputs;
    for (const auto id : graph_.inputs()) {
        if (!graph_.tensor(id).constant) {
            inputs.push_back(value_of(id));
        }
    }
    for (const auto op : graph_.ops()) {
        const auto& domain = graph_.op(op).domain;
        if (domain == delegate_domain) {
            delegate(op);
        } else if (domain == instruction_domain) {
            fail(op, "programs with instructions of this kind cannot be written anew");
        } else {
            kernel(op);
        }
    }
    for (const auto id : graph_.outputs()) {
        outputs.push_back(value_of(id));
    }
    const auto none = builder_.CreateString("");
    const auto container = fb::CreateContainerMetadata(builder_, none, none);
    const auto nothing = builder_.CreateVector(std::vector<std::int32_t>());
    const auto chain =
        fb::CreateChain(builder_, nothing, nothing, builder_.CreateVector(instructions_));
    const std::vector<std::int64_t> sizes{0, static_cast<std::int64_t>(memory_size_)};
    const std::vector<flatbuffers::Offset<fb::Chain>> chains{chain};
    return fb::CreateExecutionPlan(builder_, builder_.CreateString(name), container,
                                   builder_.CreateVector(values_), builder_.CreateVector(inputs),
                                   builder_.CreateVector(outputs), builder_.CreateVector(chains),
                                   builder_.CreateVector(operators_),
                                   builder_.CreateVector(delegates_), builder_.CreateVector(sizes));
}

}  // namespace trocar::executorch
