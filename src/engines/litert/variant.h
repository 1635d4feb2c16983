#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engines/litert/library.h"
#include "engines/litert/settings.h"
#include "trocar/model.h"
#include "trocar/value.h"

namespace trocar::litert {

// What programs are compiled with.
struct Compiler {
    std::shared_ptr<Library> library;
    Settings settings;
    int threads = 1;
};

// A model compiled for certain shapes of its inputs.
class Variant {
public:
    // Throws Error(engine).
    Variant(const Compiler& compiler, const Model& model, bool time_kernels);
    Variant(Variant&&) = default;

    // Runs, and says whether all outputs were written: the engine leaves those alone whose shapes
    // it learns only while it runs. Throws Error(engine).
    bool run(std::span<const Value> inputs);
    std::vector<Value> outputs() const;
    std::vector<Shape> output_shapes() const;  // as they are after a run
    // What the profiler noted of the last run.
    std::vector<Event> events() const;

private:
    struct Slot {
        Owned<Buffer> buffer;
        Type type;
        std::size_t size = 0;  // in bytes
    };
    Slot make_slot(const Layout& layout, const Type& type, Needs* needs) const;
    bool run_marked(std::byte mark);
    void mark(std::byte with);
    bool is_marked(const Slot& slot, std::byte with) const;
    [[noreturn]] void fail(Status status, const char* what) const;
    void check(Status status, const char* what) const;

    std::shared_ptr<Library> library_;
    std::string bytes_;  // that the model is read from
    Owned<Source> source_;
    Owned<Configuration> configuration_;
    Owned<Compiled> compiled_;
    std::vector<Slot> inputs_;
    std::vector<Slot> outputs_;
    Profiler* profiler_ = nullptr;  // of compiled_
};

// The engine's number of an element type; throws Error(unsupported).
int element_type(DType dtype, const std::string& tensor);

}  // namespace trocar::litert
