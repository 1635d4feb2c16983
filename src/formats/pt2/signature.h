#pragma once

#include "formats/pt2/graph_reader.h"
#include "formats/pt2/payload.h"

namespace trocar::pt2 {

// Gives the graph its inputs, constants and outputs as a program's signature says what they are:
// parameters, buffers and lifted tensors are constants under the names they have in the module;
// outputs that write a buffer or an input back say so in the tensor's metadata ("updates").
class Signature {
public:
    Signature(const JsonPlace& place, const Json& program, const Payloads& payloads);

    void add_inputs(GraphReader& reader);
    void add_outputs(GraphReader& reader);

private:
    void add_constant(GraphReader& reader, const std::string& argument, const std::string& name,
                      const char* kind);
    void add_object(GraphReader& reader, const Json& argument, const std::string& name,
                    const char* kind);
    // What an output is besides a result: "buffer 'bn.running_mean'"; empty for results.
    std::string update(const Json& spec) const;

    const JsonPlace& place_;
    const Json& graph_;
    const Json& signature_;
    const Payloads& payloads_;
    std::map<std::string, TensorId> by_identity_;
};

}  // namespace trocar::pt2
