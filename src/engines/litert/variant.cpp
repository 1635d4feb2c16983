#include "engines/litert/variant.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "trocar/error.h"
#include "trocar/format.h"

namespace trocar::litert {

namespace {

constexpr std::size_t mark_size = 16;  // bytes at both ends of an output
constexpr std::size_t message_size = 4096;

constexpr std::pair<DType, int> types[]{
    {DType::f32, 1},     {DType::i32, 2},  {DType::u8, 3},    {DType::i64, 4},
    {DType::boolean, 6}, {DType::i16, 7},  {DType::c64, 8},   {DType::i8, 9},
    {DType::f16, 10},    {DType::f64, 11}, {DType::c128, 12}, {DType::u64, 13},
    {DType::u32, 16},    {DType::u16, 17}, {DType::i4, 18},   {DType::bf16, 19},
};

// While it lives, what the engine writes to the error stream is kept: it says there why it cannot
// compile, and greets there. The stream is the process's: nothing else should be written meanwhile.
class Hush {
public:
    Hush() {
        const std::lock_guard lock(mutex());
        if (users()++ == 0) {
            kept() = ::memfd_create("trocar-litert", MFD_CLOEXEC);
            saved() = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
            if (kept() >= 0 && saved() >= 0) {
                ::dup2(kept(), STDERR_FILENO);
            }
        }
    }
    Hush(const Hush&) = delete;
    Hush& operator=(const Hush&) = delete;
    ~Hush() { text(); }

    // What was written; the stream is as before from here on.
    std::string text() {
        if (done_) {
            return {};
        }
        done_ = true;
        const std::lock_guard lock(mutex());
        std::string said;
        if (kept() >= 0) {
            said.resize(message_size);
            const auto size = ::pread(kept(), said.data(), said.size(), 0);
            said.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
        }
        if (--users() == 0) {
            if (saved() >= 0) {
                ::dup2(saved(), STDERR_FILENO);
                ::close(saved());
            }
            if (kept() >= 0) {
                ::close(kept());
            }
        }
        return said;
    }

private:
    static std::mutex& mutex() {
        static std::mutex one;
        return one;
    }
    static int& users() {
        static int count = 0;
        return count;
    }
    static int& kept() {
        static int file = -1;
        return file;
    }
    static int& saved() {
        static int file = -1;
        return file;
    }
    bool done_ = false;
};

// The lines that say what went wrong, without where in the engine's sources.
std::string reason_in(std::string_view said) {
    std::string reason;
    while (!said.empty()) {
        const auto end = std::min(said.find('\n'), said.size());
        auto line = said.substr(0, end);
        said.remove_prefix(std::min(end + 1, said.size()));
        if (!line.starts_with("ERROR: ")) {
            continue;
        }
        line.remove_prefix(7);
        reason += (reason.empty() ? "" : "; ") + std::string(line);
    }
    while (!reason.empty() && (reason.back() == '.' || reason.back() == ' ')) {
        reason.pop_back();
    }
    return reason;
}

Shape shape_of(const Layout& layout) {
    const auto rank = std::min(layout.rank(), std::size(layout.dims));
    return {layout.dims, layout.dims + rank};
}

void release_text(void* text) {
    std::free(text);
}

}  // namespace

int element_type(DType dtype, const std::string& tensor) {
    for (const auto& [ours, theirs] : types) {
        if (ours == dtype) {
            return theirs;
        }
    }
    throw Error(Fault::unsupported, fmt::format("LiteRT takes and gives no tensors of {}, which "
                                                "'{}' is",
                                                name(dtype), tensor));
}

Variant::Variant(const Compiler& compiler, const Model& model, bool time_kernels)
    : library_(compiler.library),
      source_(library_->api().release_model),
      configuration_(library_->api().release_settings),
      compiled_(library_->api().release_compiled) {
    const auto& api = library_->api();
    const auto& graph = model.graph;
    bytes_ = find_format("tflite")->encode(model, {}).bytes;
    auto* environment = library_->environment();
    library_->check(api.create_model(environment, bytes_.data(), bytes_.size(), source_.fill()),
                    "read the model");
    library_->check(api.create_settings(configuration_.fill()), "take settings");
    library_->check(api.set_accelerators(configuration_.get(), static_cast<int>(cpu_only)),
                    "take settings");
    const auto add = [&](const char* part, const std::string& text) {
        Opaque* opaque = nullptr;
        library_->check(api.create_opaque(part, ::strdup(text.c_str()), release_text, &opaque),
                        "take settings");
        library_->check(api.add_opaque(configuration_.get(), opaque), "take settings");
    };
    // XNNPACK does not run what has no inputs.
    add("xnnpack", kernel_text(graph.inputs().empty() && compiler.settings.kernels == "delegate"
                                   ? Settings{.kernels = "builtin"}
                                   : compiler.settings,
                               compiler.threads));
    add("runtime_options_string", runtime_text(time_kernels));
    Hush hush;
    const auto status =
        api.compile(environment, source_.get(), configuration_.get(), compiled_.fill());
    const auto reason = reason_in(hush.text());
    if (status != Status::ok) {
        throw Error(Fault::engine, fmt::format("LiteRT could not compile the model: {}",
                                               reason.empty() ? status_text(status) : reason));
    }
    for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
        const auto& tensor = graph.tensor(graph.inputs()[i]);
        Layout layout;
        Needs* needs = nullptr;
        check(api.input_layout(compiled_.get(), 0, i, &layout), "tell of an input");
        check(api.input_needs(compiled_.get(), 0, i, &needs), "tell of an input");
        element_type(tensor.type.dtype, tensor.name);
        inputs_.push_back(make_slot(layout, tensor.type, needs));
    }
    std::vector<Layout> layouts(graph.outputs().size());
    check(api.output_layouts(compiled_.get(), 0, layouts.size(), layouts.data(), true),
          "tell of its outputs");
    for (std::size_t i = 0; i < layouts.size(); ++i) {
        const auto& tensor = graph.tensor(graph.outputs()[i]);
        Needs* needs = nullptr;
        check(api.output_needs(compiled_.get(), 0, i, &needs), "tell of an output");
        element_type(tensor.type.dtype, tensor.name);
        outputs_.push_back(make_slot(layouts[i], tensor.type, needs));
    }
    if (time_kernels) {
        check(api.profiler(compiled_.get(), &profiler_), "time its ops");
    }
}

Variant::Slot Variant::make_slot(const Layout& layout, const Type& type, Needs* needs) const {
    const auto& api = library_->api();
    Slot slot{Owned<Buffer>(api.release_buffer), Type::tensor(type.dtype, shape_of(layout)), 0};
    const TensorType theirs{element_type(type.dtype, {}), layout};
    slot.size = byte_size(type.dtype, element_count(shape_of(layout)));
    check(api.create_buffer(library_->environment(), &theirs, needs, slot.buffer.fill()),
          "make room for a tensor");
    return slot;
}

void Variant::fail(Status status, const char* what) const {
    const auto& api = library_->api();
    std::string reason;
    char* text = nullptr;
    if (api.messages(compiled_.get(), &text) == Status::ok && text != nullptr) {
        reason = text;
        std::free(text);
        api.clear_messages(compiled_.get());
        std::replace(reason.begin(), reason.end(), '\n', ' ');
    }
    while (!reason.empty() && (reason.back() == ' ' || reason.back() == '.')) {
        reason.pop_back();
    }
    throw Error(Fault::engine, fmt::format("LiteRT could not {}: {}", what,
                                           reason.empty() ? status_text(status) : reason));
}

void Variant::check(Status status, const char* what) const {
    if (status != Status::ok) {
        fail(status, what);
    }
}

void Variant::mark(std::byte with) {
    const auto& api = library_->api();
    for (const auto& slot : outputs_) {
        void* data = nullptr;
        check(api.lock(slot.buffer.get(), &data, Lock::write), "write a tensor");
        const auto size = std::min(slot.size, mark_size);
        std::memset(data, static_cast<int>(with), size);
        std::memset(static_cast<std::byte*>(data) + (slot.size - size), static_cast<int>(with),
                    size);
        check(api.unlock(slot.buffer.get()), "write a tensor");
    }
}

bool Variant::is_marked(const Slot& slot, std::byte with) const {
    const auto& api = library_->api();
    void* data = nullptr;
    check(api.lock(slot.buffer.get(), &data, Lock::read), "read a tensor");
    const auto size = std::min(slot.size, mark_size);
    const auto* first = static_cast<const std::byte*>(data);
    const auto* last = first + (slot.size - size);
    const bool same = std::all_of(first, first + size, [&](std::byte b) { return b == with; }) &&
                      std::all_of(last, last + size, [&](std::byte b) { return b == with; });
    check(api.unlock(slot.buffer.get()), "read a tensor");
    return same && slot.size > 0;
}

// Runs once; is nothing left of the marks?
bool Variant::run_marked(std::byte with) {
    const auto& api = library_->api();
    mark(with);
    std::vector<Buffer*> inputs;
    std::vector<Buffer*> outputs;
    for (const auto& slot : inputs_) {
        inputs.push_back(slot.buffer.get());
    }
    for (const auto& slot : outputs_) {
        outputs.push_back(slot.buffer.get());
    }
    if (profiler_ != nullptr) {
        check(api.reset_profiler(profiler_), "time its ops");
        check(api.start_profiler(profiler_), "time its ops");
    }
    const auto status =
        api.run(compiled_.get(), 0, inputs.size(), inputs.data(), outputs.size(), outputs.data());
    if (profiler_ != nullptr) {
        api.stop_profiler(profiler_);
    }
    if (status != Status::ok) {
        fail(status, "run");
    }
    return std::none_of(outputs_.begin(), outputs_.end(),
                        [&](const Slot& slot) { return is_marked(slot, with); });
}

bool Variant::run(std::span<const Value> inputs) {
    const auto& api = library_->api();
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
        const auto bytes = inputs[i].bytes();
        if (bytes.size() != inputs_[i].size) {
            throw Error(Fault::engine,
                        fmt::format("input {} has {} bytes, but the program takes {}", i,
                                    bytes.size(), inputs_[i].size));
        }
        void* data = nullptr;
        check(api.lock(inputs_[i].buffer.get(), &data, Lock::write), "write a tensor");
        std::memcpy(data, bytes.data(), bytes.size());
        check(api.unlock(inputs_[i].buffer.get()), "write a tensor");
    }
    if (run_marked(std::byte{0xa5})) {
        const auto now = output_shapes();
        for (std::size_t i = 0; i < now.size(); ++i) {
            if (now[i] != *outputs_[i].type.shape()) {
                return false;
            }
        }
        return true;
    }
    // The marks may be what was computed: another one tells.
    try {
        return run_marked(std::byte{0x3c});
    } catch (const Error&) {
        return false;  // an engine that gave an output otherwise does not run a second time
    }
}

std::vector<Shape> Variant::output_shapes() const {
    std::vector<Layout> layouts(outputs_.size());
    check(library_->api().output_layouts(compiled_.get(), 0, layouts.size(), layouts.data(), false),
          "tell of its outputs");
    std::vector<Shape> shapes;
    for (const auto& layout : layouts) {
        shapes.push_back(shape_of(layout));
    }
    return shapes;
}

std::vector<Value> Variant::outputs() const {
    const auto& api = library_->api();
    std::vector<Value> values;
    for (const auto& slot : outputs_) {
        auto value = Value::tensor(slot.type.dtype, *slot.type.shape());
        void* data = nullptr;
        check(api.lock(slot.buffer.get(), &data, Lock::read), "read a tensor");
        const auto to = value.mutable_bytes();
        std::memcpy(to.data(), data, to.size());
        check(api.unlock(slot.buffer.get()), "read a tensor");
        values.push_back(std::move(value));
    }
    return values;
}

std::vector<Event> Variant::events() const {
    const auto& api = library_->api();
    int count = 0;
    if (profiler_ == nullptr || api.event_count(profiler_, &count) != Status::ok || count <= 0) {
        return {};
    }
    std::vector<Event> events(static_cast<std::size_t>(count));
    check(api.events(profiler_, count, events.data()), "give the times of its ops");
    return events;
}

}  // namespace trocar::litert
