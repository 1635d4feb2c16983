#include "engines/executorch/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>

#include "trocar/error.h"
#include "trocar/format.h"
#include "trocar/mapping.h"

namespace trocar::executorch {

namespace {

constexpr std::array types{
    std::pair{DType::u8, 0},    std::pair{DType::i8, 1},   std::pair{DType::i16, 2},
    std::pair{DType::i32, 3},   std::pair{DType::i64, 4},  std::pair{DType::f16, 5},
    std::pair{DType::f32, 6},   std::pair{DType::f64, 7},  std::pair{DType::boolean, 11},
    std::pair{DType::bf16, 15}, std::pair{DType::u16, 27}, std::pair{DType::u32, 28},
    std::pair{DType::u64, 29},
};

int number_of(DType dtype, const std::string& tensor) {
    for (const auto& [ours, theirs] : types) {
        if (ours == dtype) {
            return theirs;
        }
    }
    throw Error(Fault::unsupported, fmt::format("ExecuTorch takes no tensors of {}, which '{}' is",
                                                name(dtype), tensor));
}

DType dtype_of(int number) {
    for (const auto& [ours, theirs] : types) {
        if (theirs == number) {
            return ours;
        }
    }
    throw Error(Fault::unsupported,
                fmt::format("ExecuTorch gives a tensor of its type {}", number));
}

struct Release {
    const Bridge* bridge;
    void operator()(BridgeProgram* program) const { bridge->release(program); }
};
using Loaded = std::unique_ptr<BridgeProgram, Release>;

constexpr std::size_t page = 4096;
struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
};

// Where an output of the program comes from.
struct Route {
    enum class From { engine, input, constant } from = From::engine;
    std::size_t place = 0;
    Value constant = {};
};

class EtProgram final : public Program {
public:
    EtProgram(std::shared_ptr<Library> library, const Model& model, const CompileOptions& options)
        : library_(std::move(library)),
          time_kernels_(options.time_kernels),
          program_(nullptr, {&library_->bridge()}) {
        const auto& graph = model.graph;
        for (const auto id : graph.inputs()) {
            if (!graph.tensor(id).constant) {
                places_.emplace(id, inputs_.size());
                inputs_.push_back(graph.tensor(id).name);
                types_.push_back(graph.tensor(id).type);
            }
        }
        bool any = false;
        for (const auto id : graph.outputs()) {
            outputs_.push_back(graph.tensor(id).name);
            auto& route = routes_.emplace_back();
            if (graph.tensor(id).constant) {
                route = {Route::From::constant, 0, Value::of(*graph.tensor(id).constant)};
            } else if (const auto at = places_.find(id); at != places_.end()) {
                route = {Route::From::input, at->second, {}};
            } else {
                route.place = routes_.size() - 1;
                any = true;
            }
        }
        for (const auto id : graph.ops()) {
            // A file as it was read has no instructions for some views.
            const auto& facts = graph.op(id).metadata;
            const bool silent =
                model.intact() && std::any_of(facts.begin(), facts.end(), [](const Property& one) {
                    return one.key == "instruction";
                });
            if (!silent) {
                ops_.push_back(graph.op(id).name);
            }
        }
        if (any) {
            load(model);
        }
    }

    std::span<const std::string> input_names() const override { return inputs_; }
    std::span<const std::string> output_names() const override { return outputs_; }
    void run(std::span<const Value> inputs, std::span<Value> outputs) override;
    Footprint footprint() const override { return {own_ ? size_ : 0, {}}; }
    KernelTimes take_times() override;

private:
    [[noreturn]] void fail(const std::string& what) const {
        const std::string why = library_->bridge().why();
        throw Error(Fault::engine,
                    fmt::format("ExecuTorch could not {}{}{}", what, why.empty() ? "" : ": ", why));
    }

    void load(const Model& model) {
        auto bytes = model.source.bytes;
        if (model.format == "executorch" && model.intact()) {
            file_ = model.image;  // as it is mapped
        } else {
            bytes = copy(find_format("executorch")->encode(model, {}).bytes);
        }
        size_ = bytes.size();
        program_.reset(library_->bridge().load(bytes.data(), bytes.size(), time_kernels_));
        if (!program_) {
            fail("load the program");
        }
        const auto takes = library_->bridge().input_count(program_.get());
        const auto gives = library_->bridge().output_count(program_.get());
        if (takes != inputs_.size() || gives != outputs_.size()) {
            throw Error(Fault::engine,
                        fmt::format("ExecuTorch takes {} inputs and gives {} outputs where the "
                                    "graph has {} and {}",
                                    takes, gives, inputs_.size(), outputs_.size()));
        }
    }
    // Delegates want their data where it would lie in a mapped file.
    Bytes copy(const std::string& bytes) {
        const auto room = (bytes.size() + page - 1) / page * page;
        own_.reset(static_cast<std::byte*>(std::aligned_alloc(page, std::max(room, page))));
        if (!own_) {
            throw Error(Fault::engine, fmt::format("there is no memory for {} bytes", room));
        }
        std::memcpy(own_.get(), bytes.data(), bytes.size());
        return {own_.get(), bytes.size()};
    }
    void give(std::size_t place, const Value& value);
    Value take(std::size_t place);
    void note(std::chrono::steady_clock::time_point start);

    std::shared_ptr<Library> library_;
    bool time_kernels_;
    // What the program is read from, with its constants: a mapped file, or memory of its own.
    std::shared_ptr<const void> file_;
    std::unique_ptr<std::byte, Free> own_;
    std::size_t size_ = 0;
    Loaded program_;
    std::map<TensorId, std::size_t> places_;
    std::vector<std::string> inputs_;
    std::vector<Type> types_;
    std::vector<std::string> outputs_;
    std::vector<Route> routes_;
    std::vector<std::string> ops_;
    KernelTimes times_;
};

void EtProgram::give(std::size_t place, const Value& value) {
    const auto& name = inputs_[place];
    if (!value.is_tensor() || !value.device().is_host()) {
        throw Error(Fault::engine,
                    fmt::format("input '{}' is {}; ExecuTorch takes tensors of the host only", name,
                                value_text(value)));
    }
    const auto shape = value.shape();
    if (shape.size() > most_dimensions) {
        throw Error(Fault::engine, fmt::format("input '{}' has {} dimensions; ExecuTorch takes {}",
                                               name, shape.size(), most_dimensions));
    }
    if (const auto declared = types_[place].shape();
        declared && (*declared != shape || types_[place].dtype != value.dtype())) {
        throw Error(Fault::engine, fmt::format("input '{}' is {}, but the program takes {}", name,
                                               value_text(value), type_text(types_[place])));
    }
    BridgeTensor tensor;
    tensor.scalar_type = number_of(value.dtype(), name);
    tensor.rank = static_cast<int>(shape.size());
    std::copy(shape.begin(), shape.end(), tensor.sizes);
    tensor.data = value.bytes().data();
    tensor.bytes = value.bytes().size();
    if (library_->bridge().set_input(program_.get(), place, &tensor) != 0) {
        fail(fmt::format("take the input '{}'", name));
    }
}

Value EtProgram::take(std::size_t place) {
    BridgeTensor tensor;
    if (library_->bridge().output(program_.get(), place, &tensor) != 0) {
        fail(fmt::format("give the output '{}'", outputs_[place]));
    }
    const Shape shape(tensor.sizes, tensor.sizes + tensor.rank);
    auto value = Value::tensor(dtype_of(tensor.scalar_type), shape);
    const auto to = value.mutable_bytes();
    if (to.size() != tensor.bytes || (tensor.data == nullptr && tensor.bytes > 0)) {
        fail(fmt::format("give the output '{}'", outputs_[place]));
    }
    if (!to.empty()) {
        std::memcpy(to.data(), tensor.data, to.size());
    }
    return value;
}

void EtProgram::note(std::chrono::steady_clock::time_point start) {
    const auto nanoseconds = [](auto span) {
        return std::chrono::duration<double, std::nano>(span).count();
    };
    TimedRun run;
    run.start_ns = nanoseconds(start.time_since_epoch());
    run.spent_ns = nanoseconds(std::chrono::steady_clock::now() - start);
    const BridgeEvent* events = nullptr;
    const auto count = library_->bridge().events(program_.get(), &events);
    for (std::size_t i = 0; i < count; ++i) {
        const auto number = static_cast<std::size_t>(events[i].instruction);
        KernelTime kernel;
        kernel.op = events[i].instruction >= 0 && number < ops_.size() ? ops_[number] : "";
        kernel.start_ns = events[i].start_ns;
        kernel.spent_ns = events[i].spent_ns;
        run.kernels.push_back(std::move(kernel));
    }
    times_.runs.push_back(std::move(run));
}

void EtProgram::run(std::span<const Value> inputs, std::span<Value> outputs) {
    if (inputs.size() != inputs_.size() || outputs.size() != outputs_.size()) {
        throw Error(Fault::usage,
                    fmt::format("the program takes {} inputs and gives {} outputs, not {} and {}",
                                inputs_.size(), outputs_.size(), inputs.size(), outputs.size()));
    }
    if (program_) {
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            give(i, inputs[i]);
        }
        const auto start = std::chrono::steady_clock::now();
        if (library_->bridge().run(program_.get()) != 0) {
            fail("run the program");
        }
        if (time_kernels_) {
            note(start);
        }
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const auto& route = routes_[i];
        outputs[i] = route.from == Route::From::constant ? route.constant
                     : route.from == Route::From::input  ? inputs[route.place]
                                                         : take(route.place);
    }
}

KernelTimes EtProgram::take_times() {
    if (!time_kernels_) {
        return Program::take_times();
    }
    time_kernels_ = false;
    times_.resolution_ns = 1;
    return std::move(times_);
}

}  // namespace

std::unique_ptr<Program> compile_program(std::shared_ptr<Library> library, const Model& model,
                                         const CompileOptions& options) {
    if (model.dialect != "aten") {
        throw Error(
            Fault::unsupported,
            fmt::format("ExecuTorch takes models of the dialect 'aten', not '{}'", model.dialect));
    }
    // Programs of torch.export use ops that ExecuTorch has no kernels for.
    if (model.format != "executorch" && !model.format.empty() && can_map("aten", "aten")) {
        const auto lowered = map_model(model, "aten");
        for (const auto& op : lowered.ops) {
            if (op.state == MappedOp::State::impossible) {
                throw Error(Fault::unsupported, fmt::format("ExecuTorch cannot run {} '{}': {}",
                                                            op.type, op.name, op.why));
            }
        }
        return std::make_unique<EtProgram>(std::move(library), lowered.model, options);
    }
    return std::make_unique<EtProgram>(std::move(library), model, options);
}

}  // namespace trocar::executorch
