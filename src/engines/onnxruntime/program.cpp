#include "engines/onnxruntime/program.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <mutex>

#include "engines/onnxruntime/host_ops.h"
#include "engines/onnxruntime/kernel_times.h"
#include "trocar/error.h"
#include "trocar/format.h"
#include "util/mapped_file.h"
#include "util/scratch.h"

namespace trocar::ort {

namespace {

// Constants from this size on are not written into the model that a part becomes, but lent to the
// engine. Smaller ones are cheaper to write, and the engine may look at them to infer shapes.
constexpr std::size_t leave_out_from = 1024;

// Kernels may count on elements lying at multiples of their size; bytes inside a file need not.
bool is_aligned(const Constant& constant) {
    const auto size = std::clamp<std::size_t>(bits(constant.dtype()) / 8, 1, 8);
    return reinterpret_cast<std::uintptr_t>(constant.bytes().data()) % size == 0;
}

// Newer versions want the file of external data to exist, although they never read it when they are
// lent the data. This one does: the library itself.
std::filesystem::path place_of_lent(const Library& library) {
    return library.path();
}

class SessionOptionsOwner {
public:
    explicit SessionOptionsOwner(const Library& library) : library_(library) {
        library.check(library.api()(create_session_options, &options_), "start");
    }
    SessionOptionsOwner(const SessionOptionsOwner&) = delete;
    SessionOptionsOwner& operator=(const SessionOptionsOwner&) = delete;
    ~SessionOptionsOwner() { library_.api()(release_session_options, options_); }
    SessionOptions* get() const { return options_; }

    template <class... Parameters, class... Arguments>
    void set(const Function<Status*(SessionOptions*, Parameters...)>& function,
             Arguments... arguments) {
        library_.check(library_.api()(function, options_, arguments...), "take its options");
    }

private:
    const Library& library_;
    SessionOptions* options_ = nullptr;
};

// How much the heap of this process grows. Other threads' allocations count too.
class HeapCount {
public:
    // nullopt where the C library does not count: every session takes some memory.
    std::optional<std::uint64_t> growth() const {
        const auto now = count();
        return now > before_ ? std::optional(now - before_) : std::nullopt;
    }

private:
    // One thread at a time: where another allocator serves the process (a sanitizer's, a preloaded
    // one), the C library's first sets itself up here, and not safely for two threads.
    static std::uint64_t count() {
        static std::mutex one_at_a_time;
        const std::scoped_lock lock(one_at_a_time);
        const auto info = ::mallinfo2();
        return info.uordblks + info.hblkhd;
    }
    std::uint64_t before_ = count();
};

class OrtProgram final : public Program {
public:
    OrtProgram(const Compiler& compiler, const Model& model)
        : environment_(compiler.environment), log_(compiler.log) {
        const auto& graph = model.graph;
        for (const auto id : graph.inputs()) {
            const auto& tensor = graph.tensor(id);
            if (!tensor.constant) {
                input_names_.push_back(tensor.name);
                input_types_.push_back(tensor.type);
            }
        }
        for (const auto id : graph.outputs()) {
            output_names_.push_back(graph.tensor(id).name);
        }
        for (const auto& name : output_names_) {
            c_output_names_.push_back(name.c_str());
        }
        given_names_.resize(input_names_.size());
        given_values_.resize(input_names_.size());
        output_values_.resize(output_names_.size());
        wrapped_.resize(input_names_.size());
        wrapped_data_.resize(input_names_.size());
    }
    ~OrtProgram() override {
        if (session_ != nullptr) {
            environment_->api()(release_session, session_);
        }
    }

    void open_file(const SessionOptionsOwner& options, const std::string& path) {
        const HeapCount before;
        library().check(
            api()(create_session, environment_->get(), path.c_str(), options.get(), &session_),
            fmt::format("compile '{}'", path));
        heap_growth_ = before.growth();
    }
    void open_bytes(const SessionOptionsOwner& options, const std::string& bytes) {
        arena_before_ = environment_->arena_in_use();
        const HeapCount before;
        library().check(api()(create_session_from_array, environment_->get(), bytes.data(),
                              bytes.size(), options.get(), &session_),
                        "compile the program");
        heap_growth_ = before.growth();
    }
    // A constant whose bytes the engine reads as long as the program lives.
    void keep(Constant constant, Owned view) {
        constants_.push_back({std::move(constant), std::move(view)});
    }
    // The ops of the program that call back.
    void take_calls(const SessionOptionsOwner& options, HostFunction function) {
        host_ops_ = std::make_unique<HostOps>(environment_, std::move(function));
        host_ops_->add_to(options.get());
    }
    // After the session was opened. `by_allocator`: all constants were lent, so that what the
    // engine's allocator holds is what it made of them; else the growth of the heap is taken.
    void count_memory(bool by_allocator);

    std::span<const std::string> input_names() const override { return input_names_; }
    std::span<const std::string> output_names() const override { return output_names_; }
    void run(std::span<const Value> inputs, std::span<Value> outputs) override;
    Footprint footprint() const override { return footprint_; }
    KernelTimes take_times() override;
    // The folder that the engine writes its times to.
    void set_times(std::unique_ptr<ScratchFolder> folder) { times_ = std::move(folder); }

private:
    const Library& library() const { return environment_->library(); }
    const Api& api() const { return environment_->api(); }
    void take_inputs(std::span<const Value> inputs);
    std::shared_ptr<const void> borrowed_from(OrtValue* output, std::span<const Value> inputs);

    std::shared_ptr<Environment> environment_;
    std::shared_ptr<LogTarget> log_;
    struct Lent {
        Constant constant;
        Owned view;
    };
    std::vector<Lent> constants_;
    std::unique_ptr<HostOps> host_ops_;  // nullptr: the program does not call back
    std::unique_ptr<ScratchFolder> times_;
    Session* session_ = nullptr;
    Footprint footprint_;
    std::optional<std::uint64_t> heap_growth_;
    std::optional<std::uint64_t> arena_before_;

    std::vector<std::string> input_names_;
    std::vector<std::string> output_names_;
    std::vector<Type> input_types_;
    std::vector<const char*> c_output_names_;

    // Scratch of one run, sized once.
    std::size_t given_ = 0;  // inputs with a value
    std::vector<const char*> given_names_;
    std::vector<const OrtValue*> given_values_;
    std::vector<OrtValue*> output_values_;
    std::vector<Owned> wrapped_;             // inputs that are not the engine's own
    std::vector<const void*> wrapped_data_;  // where the tensors among them lie
    bool any_wrapped_ = false;
};

void OrtProgram::take_inputs(std::span<const Value> inputs) {
    any_wrapped_ = false;
    given_ = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        wrapped_data_[i] = nullptr;
        const auto* value = own_value(*environment_, inputs[i]);
        if (value != nullptr ? !is_there(*environment_, value)
                             : inputs[i].kind() == Value::Kind::none) {
            if (input_types_[i].kind != Type::Kind::optional) {
                throw Error(
                    Fault::engine,
                    fmt::format("input '{}' is not optional and has no value", input_names_[i]));
            }
            continue;  // an input that is not given is an optional without value
        }
        if (value == nullptr) {
            try {
                wrapped_[i] = wrap(*environment_, inputs[i], input_types_[i]);
            } catch (const Error& e) {
                throw Error(e.fault(), fmt::format("input '{}': {}", input_names_[i], e.what()),
                            e.hint());
            }
            value = wrapped_[i].get();
            if (inputs[i].is_tensor() && inputs[i].dtype() != DType::string) {
                wrapped_data_[i] = inputs[i].bytes().data();
                any_wrapped_ = true;
            }
        }
        given_names_[given_] = input_names_[i].c_str();
        given_values_[given_] = value;
        ++given_;
    }
}

// The engine hands an input through when it is an output too: then the output's memory is the
// caller's, and must live on with it.
std::shared_ptr<const void> OrtProgram::borrowed_from(OrtValue* output,
                                                      std::span<const Value> inputs) {
    if (!is_there(*environment_, output)) {
        return nullptr;
    }
    int tensor = 0;
    void* data = nullptr;
    library().check(api()(is_tensor, output, &tensor), "describe an output");
    if (tensor == 0) {
        return nullptr;
    }
    library().check(api()(get_tensor_data, output, &data), "read an output");
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (wrapped_data_[i] != nullptr && wrapped_data_[i] == data) {
            return inputs[i].body();
        }
    }
    return nullptr;
}

void OrtProgram::run(std::span<const Value> inputs, std::span<Value> outputs) {
    if (inputs.size() != input_names_.size() || outputs.size() != output_names_.size()) {
        throw Error(
            Fault::usage,
            fmt::format("the program takes {} inputs and gives {} outputs, not {} and {}",
                        input_names_.size(), output_names_.size(), inputs.size(), outputs.size()));
    }
    take_inputs(inputs);
    std::fill(output_values_.begin(), output_values_.end(), nullptr);
    auto* status =
        api()(run_session, session_, nullptr, given_names_.data(), given_values_.data(), given_,
              c_output_names_.data(), output_values_.size(), output_values_.data());
    for (auto& value : wrapped_) {
        value.reset();
    }
    if (host_ops_ != nullptr) {
        host_ops_->rethrow(status);
    }
    library().check(status, "run the program");
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        Owned owned(api(), output_values_[i]);
        auto from = any_wrapped_ ? borrowed_from(owned.get(), inputs) : nullptr;
        outputs[i] =
            Value(std::make_shared<OrtBody>(environment_, std::move(owned), std::move(from)));
    }
}

KernelTimes OrtProgram::take_times() {
    if (times_ == nullptr) {
        return Program::take_times();
    }
    const auto written = end_session_profiling(*environment_, session_);
    const auto folder = std::move(times_);
    return read_kernel_times(written);
}

// What the engine's allocator has in use; nullopt where it does not tell.
void OrtProgram::count_memory(bool by_allocator) {
    if (by_allocator) {
        const auto after = environment_->arena_in_use(session_);
        if (arena_before_ && after) {
            footprint_.constant_bytes_copied = *after - std::min(*after, *arena_before_);
        }
    }
    if (!footprint_.constant_bytes_copied) {
        footprint_.constant_bytes_copied = heap_growth_;
    }
    if (!footprint_.constant_bytes_copied) {
        footprint_.unavailable = "the C library keeps no count of the heap";
    }
}

void set_common(SessionOptionsOwner& to, const Compiler& compiler, const CompileOptions& options) {
    to.set(set_log_function, &log_message, compiler.log.get());
    to.set(set_log_severity, static_cast<int>(compiler.log->from));
    if (compiler.threads == 1) {
        to.set(set_intra_op_threads, 1);
    } else {
        to.set(disable_session_threads);
    }
    if (options.optimize == CompileOptions::Optimize::none) {
        to.set(set_graph_optimization, GraphOptimization::none);
    }
    if (options.low_memory) {
        to.set(disable_arena);
        to.set(disable_memory_pattern);
    }
    if (options.types_only) {
        to.set(add_config_entry, "session.disable_prepacking", "1");
    }
    for (const auto& [key, value] : compiler.settings.config) {
        to.set(add_config_entry, key.c_str(), value.c_str());
    }
    append_to(compiler.environment->library(), to.get(), compiler.settings);
}

// The optimised model is written with its larger constants in a file beside it: alone it could not
// be over 2 GB, and there they are aligned.
void set_files(SessionOptionsOwner& to, const SessionFiles& files) {
    if (files.optimized_model.empty()) {
        return;
    }
    to.set(set_optimized_model_path, files.optimized_model.c_str());
    to.set(add_config_entry, "session.optimized_model_external_initializers_file_name",
           "constants.bin");
    to.set(add_config_entry, "session.optimized_model_external_initializers_min_size_in_bytes",
           std::to_string(leave_out_from).c_str());
    // It warns that the file is for this machine only, which is what is wanted.
    to.set(set_log_severity, static_cast<int>(Severity::error));
}

// Gives the engine the constants that were left out. It copies what it is given, before it
// optimises. Where it does not optimise it can be lent them instead: then it reads the bytes where
// they are. Returns whether it was lent all.
bool give_constants(const Compiler& compiler, const CompileOptions& options, const Model& model,
                    const Encoded& encoded, SessionOptionsOwner& session_options,
                    OrtProgram& program) {
    const auto& environment = *compiler.environment;
    const bool may_lend = options.optimize == CompileOptions::Optimize::none &&
                          compiler.settings.on_cpu() &&
                          encoded.location == place_of_lent(environment.library()).filename();
    std::vector<const char*> names;
    std::vector<const OrtValue*> values;
    std::vector<Owned> views;
    for (const auto& [name, constant] : encoded.left_out) {
        const auto& tensor = model.graph.tensor(*model.graph.find_tensor(name));
        if (tensor.uses.empty() && !tensor.is_output) {
            continue;  // the engine drops it, and then finds no place for what it is given
        }
        // The constant's own bytes, aligned or not: they outlive the session's making, a copy would
        // not.
        auto view = wrap_tensor(environment, Value::borrow(constant.dtype(), constant.shape(),
                                                           constant.bytes(), nullptr));
        if (may_lend && is_aligned(constant)) {
            session_options.set(add_initializer, name.c_str(), view.get());
            program.keep(constant, std::move(view));
        } else {
            names.push_back(name.c_str());
            values.push_back(view.get());
            views.push_back(std::move(view));
        }
    }
    if (!names.empty()) {
        session_options.set(add_external_initializers, names.data(), values.data(), names.size());
    }
    return names.empty();
}

// Is the file that the model was read from still what it was?
bool stands_in_file(const Model& model) {
    std::error_code failure;
    return model.format == "onnx" && !model.path.empty() && model.intact() &&
           std::filesystem::file_size(model.path, failure) == model.file_bytes && !failure;
}

}  // namespace

std::unique_ptr<Program> compile_program(const Compiler& compiler, const Model& model,
                                         const CompileOptions& options, const SessionFiles& files) {
    if (model.dialect != "onnx") {
        throw Error(Fault::unsupported,
                    fmt::format("ONNX Runtime takes models of the dialect 'onnx', not '{}'",
                                model.dialect));
    }
    auto program = std::make_unique<OrtProgram>(compiler, model);
    SessionOptionsOwner session_options(compiler.environment->library());
    set_common(session_options, compiler, options);
    set_files(session_options, files);
    if (options.time_kernels) {
        auto folder = std::make_unique<ScratchFolder>(compiler.scratch);
        session_options.set(enable_profiling, (folder->path() / "kernels").c_str());
        program->set_times(std::move(folder));
    }
    if (options.host) {
        program->take_calls(session_options, options.host);
    }
    if (stands_in_file(model)) {
        program->open_file(session_options, model.path.string());
        program->count_memory(false);
        return program;
    }
    const auto* format = find_format("onnx");
    const auto place = place_of_lent(compiler.environment->library());
    const auto encoded = format->encode(
        model, {.leave_out_from = leave_out_from, .location = place.filename().string()});
    session_options.set(add_config_entry, "session.model_external_initializers_file_folder_path",
                        place.parent_path().c_str());
    if (!options.low_memory) {
        // Parts of a model take turns: with one arena the memory of one is used again by the next.
        session_options.set(add_config_entry, "session.use_env_allocators", "1");
    }
    const bool lent = give_constants(compiler, options, model, encoded, session_options, *program);
    program->open_bytes(session_options, encoded.bytes);
    if (options.low_memory && !lent) {
        // What the engine copied is not needed twice; pages of what it was lent come back when
        // read.
        for (const auto& [name, constant] : encoded.left_out) {
            release_pages(constant.bytes());
        }
    }
    program->count_memory(lent && !options.low_memory);
    return program;
}

}  // namespace trocar::ort
