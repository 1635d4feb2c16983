#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/executorch/container.h"
#include "formats/executorch/kernels.h"
#include "trocar/graph.h"

namespace trocar::executorch {

// Makes a Graph of an execution plan. A value of the plan is a place that instructions write, maybe
// several times: each time makes a tensor of its own. docs/formats/executorch.md has the whole
// convention.
class PlanReader {
public:
    PlanReader(Container& container, const fb::ExecutionPlan& plan)
        : file_(container), plan_(plan), places_(size_of_values()) {}

    Graph read();

private:
    struct Place {
        TensorId now = TensorId::none;  // what stands there; none: nothing was read or written
        std::size_t versions = 0;
        bool computed = false;  // by an instruction, or an input
    };
    // An op while its arguments are read.
    struct Draft {
        OpSpec spec;
        std::vector<std::string> slots;    // the argument of each input
        std::vector<std::string> returns;  // likewise of each output
        bool grouped = false;              // some output is one of a list
    };

    std::size_t size_of_values() const;
    const fb::EValue& value(std::int64_t number) const;
    Place& place(std::int64_t number);

    void add_inputs();
    void add_outputs();
    void add_chain(const fb::Chain& chain);
    void add_kernel(const fb::KernelCall& call, Draft& draft);
    void add_known(const Kernel& kernel, const std::vector<std::int64_t>& args, Draft& draft);
    void add_unknown(std::string_view overload, const std::vector<std::int64_t>& args,
                     Draft& draft);
    void add_delegate(const fb::DelegateCall& call, Draft& draft);
    void add_named_data(Draft& draft);
    void add_instruction(const fb::Instruction& instruction, Draft& draft);
    void add_argument(Draft& draft, const Parameter& parameter, std::int64_t number);
    void add_tensors(Draft& draft, const std::string& name,
                     const flatbuffers::Vector<std::int32_t>* items);
    void add_integers(Draft& draft, const std::string& name, const fb::IntList& list);
    void add_result(Draft& draft, std::int64_t number, std::size_t result);
    void add_input(Draft& draft, const std::string& slot, std::int64_t number);
    static void set_attribute(Draft& draft, const std::string& name, Attribute::Value value);
    void finish(Draft draft, const fb::FrameList* frames);

    // What stands at a place now, and what an instruction puts there.
    TensorId tensor_at(std::int64_t number);
    TensorId view_at(std::int64_t number, const fb::Tensor& tensor);
    void note_memory(std::int64_t number, const fb::Tensor& tensor);
    TensorId tensor_after(std::int64_t number);
    std::string name_of(std::int64_t number, Place& at);
    Type type_of(const fb::EValue& value) const;
    Constant constant_of(const fb::Tensor& tensor);
    Constant scalar_of(const fb::EValue& value) const;
    void describe(TensorId id, const fb::Tensor& tensor);

    Container& file_;
    const fb::ExecutionPlan& plan_;
    std::vector<Place> places_;
    // Who was the last to be put at a place in memory.
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::int64_t> memory_;
    Graph graph_;
};

// Numbers of values.
std::vector<std::int64_t> numbers_of(const flatbuffers::Vector<std::int32_t>* items);

}  // namespace trocar::executorch
