#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engines/openvino/part.h"
#include "engines/openvino/program.h"

namespace trocar::ov {

// A part compiled for inputs of certain types and shapes.
class Variant {
public:
    // `types` are those of all inputs of the program; those that `part` reads are declared in it.
    // Throws Error(engine).
    Variant(const Compiler& compiler, const Part& part, const std::vector<Type>& types,
            bool time_kernels);

    // `inputs` are all of the program's, `outputs` those that the engine computes. Throws
    // Error(engine).
    void run(const Part& part, std::span<const Value> inputs, std::span<Value> outputs);
    // The kernels of the last run.
    std::vector<KernelTime> kernels() const;

private:
    void check_precision(const Compiler& compiler) const;
    struct Entry {  // an input as the engine has it
        std::string name;
        std::optional<DType> dtype;
        Shape shape;
    };
    void find_inputs(const Part& part, const std::vector<Type>& types);
    std::vector<Entry> entries() const;

    std::shared_ptr<Library> library_;
    Owned<Compiled> compiled_;
    Owned<Request> request_;
    std::vector<std::size_t> places_;  // of the engine's inputs among the program's
};

// The model as the engine reads it. Throws Error(engine).
Owned<Source> read_part(Library& library, const Part& part);
// Throws Error(engine) where the engine lacks an op of the part, whatever the shapes.
void check_ops(Library& library, const Part& part);

}  // namespace trocar::ov
