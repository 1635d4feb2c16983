#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "formats/executorch/kernels.h"
#include "formats/executorch/memory_plan.h"
#include "formats/executorch/program_generated.h"
#include "trocar/graph.h"

namespace trocar::executorch {

// What plans share: the bytes that stand behind the program.
class Data {
public:
    // The number of a constant; equal bytes of the same constant have one.
    std::uint32_t constant(const Constant& value);
    // The number of a segment.
    std::uint32_t segment(Bytes bytes, std::shared_ptr<const void> owner);

    // Data that delegates ask for by name; the first of a name stays.
    void named(const std::string& key, const Constant& value);
    const std::map<std::string, std::uint32_t>& named() const { return named_; }

    const std::vector<Bytes>& constants() const { return constants_; }
    const std::vector<std::uint64_t>& offsets() const { return offsets_; }
    std::uint64_t constants_size() const { return size_; }
    const std::vector<Bytes>& segments() const { return segments_; }

private:
    std::vector<Bytes> constants_;
    std::vector<std::uint64_t> offsets_{0};  // the first stands for tensors without data
    std::uint64_t size_ = 0;
    std::vector<Bytes> segments_;
    std::map<std::string, std::uint32_t> named_;  // segments
    std::vector<Constant> held_;
    std::vector<std::shared_ptr<const void>> owners_;
    std::map<std::pair<const std::byte*, std::size_t>, std::uint32_t> known_;
};

// Makes an execution plan of a graph.
class PlanWriter {
public:
    PlanWriter(flatbuffers::FlatBufferBuilder& builder, const Graph& graph, Data& data)
        : builder_(builder), graph_(graph), data_(data) {}

    flatbuffers::Offset<fb::ExecutionPlan> write(const std::string& name);

private:
    // The inputs of an op by the argument they stand for.
    using Slots = std::map<std::string, std::vector<TensorId>, std::less<>>;

    [[noreturn]] void fail(OpId op, const std::string& what) const;
    void plan_tensors();
    std::int32_t add(fb::KernelTypes type, flatbuffers::Offset<void> value);
    std::int32_t null();
    std::int32_t integer(std::int64_t number);
    std::int32_t truth(bool value);
    std::int32_t real(double number);
    std::int32_t text(const std::string& words);
    std::int32_t integers(const std::vector<std::int32_t>& values);
    std::int32_t tensor_list(const std::vector<TensorId>& tensors, bool optional);
    std::int32_t value_of(TensorId id);
    std::int32_t new_tensor(TensorId id);
    std::int32_t result(OpId op, const Parameter& parameter, TensorId id);

    Slots slots_of(OpId op, const Kernel& kernel) const;
    std::int32_t argument(OpId op, const Parameter& parameter, const Slots& slots);
    std::int32_t given(OpId op, const Parameter& parameter, const Attribute::Value& value,
                       const Slots& slots);
    std::int32_t otherwise(const Parameter& parameter);
    std::int32_t list_of(OpId op, const Parameter& parameter, const Attribute::Value& value,
                         const Slots& slots);
    void kernel(OpId op);
    void delegate(OpId op);
    void append(fb::InstructionArguments type, flatbuffers::Offset<void> arguments);

    flatbuffers::FlatBufferBuilder& builder_;
    const Graph& graph_;
    Data& data_;
    std::vector<flatbuffers::Offset<fb::EValue>> values_;
    std::vector<flatbuffers::Offset<fb::Instruction>> instructions_;
    std::vector<flatbuffers::Offset<fb::Operator>> operators_;
    std::vector<flatbuffers::Offset<fb::BackendDelegate>> delegates_;
    std::map<const Kernel*, std::int32_t> operator_numbers_;
    std::map<TensorId, std::int32_t> tensors_;
    std::map<TensorId, std::uint64_t> offsets_;  // in the memory that is planned
    std::uint64_t memory_size_ = 0;
    std::int32_t null_ = -1;
    std::map<std::int64_t, std::int32_t> integers_;
    std::map<bool, std::int32_t> truths_;
    std::map<std::uint64_t, std::int32_t> reals_;
    std::map<std::string, std::int32_t> texts_;
    std::map<std::vector<std::int32_t>, std::int32_t> integer_lists_;
};

}  // namespace trocar::executorch
