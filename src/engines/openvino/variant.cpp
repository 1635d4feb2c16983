#include "engines/openvino/variant.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "engines/openvino/messages.h"
#include "engines/openvino/values.h"
#include "trocar/format.h"

namespace trocar::ov {

namespace {

// Constants from this size on are not written into the bytes of the model: the engine copies them
// from where they are.
constexpr std::size_t leave_out_from = 1024;
// The file name by which the engine knows that the offset of external data is an address.
constexpr const char* by_address = "*/_ORT_MEM_ADDR_/*";

constexpr std::size_t most_properties = 64;  // keys and values

template <std::size_t... places>
Status call_compile(const Api& api, const Core* core, const Source* source,
                    const std::string& device, std::size_t count, Compiled** compiled,
                    const std::array<const char*, most_properties>& texts,
                    std::index_sequence<places...> /*all*/) {
    return api.compile_model.call(core, source, device.c_str(), count, compiled, texts[places]...);
}

Encoded encode(const Part& part) {
    auto encoded = find_format("onnx")->encode(
        part.model,
        {.leave_out_from = leave_out_from, .location = by_address, .offset_is_address = true});
    if (encoded.bytes.size() > std::numeric_limits<std::int32_t>::max()) {
        throw Error(Fault::unsupported,
                    fmt::format("OpenVINO takes no model with 2 GB of constants inside bodies and "
                                "attributes, and this one has {} bytes",
                                encoded.bytes.size()));
    }
    return encoded;
}

Status read(Library& library, const Encoded& encoded, Owned<Source>& source) {
    return library.api().read_model(library.core(), encoded.bytes.data(), encoded.bytes.size(),
                                    nullptr, source.fill());
}

}  // namespace

Owned<Source> read_part(Library& library, const Part& part) {
    Owned<Source> source(library.api().release_model);
    const auto encoded = encode(part);
    library.check(read(library, encoded, source), "compile the program");
    return source;
}

void check_ops(Library& library, const Part& part) {
    Owned<Source> source(library.api().release_model);
    const auto encoded = encode(part);
    if (const auto status = read(library, encoded, source); status != Status::ok) {
        const auto message = library.message(status);
        if (says_unknown_op(message)) {
            throw Error(Fault::engine, fmt::format("OpenVINO could not compile the program: {}",
                                                   trim_message(message)));
        }
    }
}

Variant::Variant(const Compiler& compiler, const Part& part, const std::vector<Type>& types,
                 bool time_kernels)
    : library_(compiler.library),
      compiled_(library_->api().release_compiled),
      request_(library_->api().release_request) {
    constexpr const char* what = "compile the program";
    const auto& api = library_->api();
    const auto source = read_part(*library_, part);
    const auto wanted = properties(compiler.settings, compiler.threads, time_kernels);
    if (wanted.size() > most_properties) {
        throw Error(Fault::usage, fmt::format("the engine openvino takes at most {} properties",
                                              most_properties / 2));
    }
    std::array<const char*, most_properties> texts{};
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        texts[i] = wanted[i].c_str();
    }
    library_->check(
        call_compile(api, library_->core(), source.get(), compiler.settings.device, wanted.size(),
                     compiled_.fill(), texts, std::make_index_sequence<most_properties>()),
        what);
    check_precision(compiler);
    find_inputs(part, types);
    library_->check(api.create_request(compiled_.get(), request_.fill()), what);
}

// The hint is one: a processor that cannot compute in bf16 does so in f32, without a word.
void Variant::check_precision(const Compiler& compiler) const {
    char* text = nullptr;
    const auto& api = library_->api();
    if (api.compiled_property(compiled_.get(), "INFERENCE_PRECISION_HINT", &text) != Status::ok) {
        return;  // a device without this property computes in one precision
    }
    const std::string precision = text;
    api.release_text(text);
    if (precision != compiler.settings.precision) {
        throw Error(Fault::engine,
                    fmt::format("OpenVINO computes in {} on this {}, not in {}", precision,
                                compiler.settings.device, compiler.settings.precision),
                    "leave out precision=, or choose another device");
    }
}

std::vector<Variant::Entry> Variant::entries() const {
    constexpr const char* what = "describe the program";
    const auto& api = library_->api();
    std::size_t count = 0;
    library_->check(api.compiled_input_count(compiled_.get(), &count), what);
    std::vector<Entry> entries(count);
    for (std::size_t number = 0; number < count; ++number) {
        Owned<Port> port(api.release_port);
        char* text = nullptr;
        ElementType type{};
        library_->check(api.compiled_input(compiled_.get(), number, port.fill()), what);
        library_->check(api.port_name(port.get(), &text), what);
        library_->check(api.port_type(port.get(), &type), what);
        entries[number] = {text, dtype_of(type),
                           shape_of(*library_, api.port_shape, std::as_const(port).get())};
        api.release_text(text);
    }
    return entries;
}

// The engine keeps the order of inputs. It drops those that its own ops do not need, and an input
// that it hands through to an output has the output's name. So inputs are found by their names, and
// those in between by their order, where their number or their types leave one way only.
void Variant::find_inputs(const Part& part, const std::vector<Type>& types) {
    const auto found = entries();
    const auto name_of = [&](std::size_t i) { return part.input_names[part.inputs[i].place]; };
    const auto is_input = [&](const std::string& name) {
        return std::any_of(part.inputs.begin(), part.inputs.end(),
                           [&](const auto& i) { return part.input_names[i.place] == name; });
    };
    std::size_t at = 0;  // the first of the part's inputs that is still free
    for (std::size_t first = 0; first <= found.size();) {
        auto last = first;  // the next one that is known by its name
        while (last < found.size() && !is_input(found[last].name)) {
            ++last;
        }
        auto until = at;
        while (until < part.inputs.size() &&
               (last == found.size() || name_of(until) != found[last].name)) {
            ++until;
        }
        std::vector<std::size_t> free;
        for (auto i = at; i < until; ++i) {
            free.push_back(part.inputs[i].place);
        }
        const auto renamed = last - first;
        if (renamed == 1 && free.size() > 1) {
            std::erase_if(free, [&](std::size_t place) {
                return types[place] != Type::tensor(found[first].dtype.value_or(DType::undefined),
                                                    found[first].shape);
            });
        }
        if ((last < found.size() && until == part.inputs.size()) ||
            (renamed > 0 && renamed != free.size())) {
            throw Error(Fault::engine,
                        fmt::format("OpenVINO dropped inputs of the program and renamed others: "
                                    "which of them '{}' is cannot be told",
                                    found[renamed > 0 ? first : last].name));
        }
        if (renamed > 0) {
            places_.insert(places_.end(), free.begin(), free.end());
        }
        if (last < found.size()) {
            places_.push_back(part.inputs[until].place);
        }
        at = until + 1;
        first = last + 1;
    }
    std::size_t outputs = 0;
    library_->check(library_->api().compiled_output_count(compiled_.get(), &outputs),
                    "describe the program");
    if (outputs != part.computed) {
        throw Error(Fault::engine,
                    fmt::format("OpenVINO made a program with {} outputs of a model with {}",
                                outputs, part.computed));
    }
}

void Variant::run(const Part& part, std::span<const Value> inputs, std::span<Value> outputs) {
    const auto& api = library_->api();
    std::vector<Wrapped> wrapped;
    wrapped.reserve(places_.size());
    for (std::size_t number = 0; number < places_.size(); ++number) {
        const auto place = places_[number];
        const auto& name = part.input_names[place];
        try {
            wrapped.push_back(wrap(*library_, inputs[place]));
        } catch (const Error& e) {
            throw Error(e.fault(), fmt::format("input '{}': {}", name, e.what()), e.hint());
        }
        library_->check(api.set_request_input(request_.get(), number, wrapped.back().tensor.get()),
                        fmt::format("take input '{}'", name));
    }
    library_->check(api.infer(request_.get()), "run the program");
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        Owned<TensorHandle> tensor(api.release_tensor);
        library_->check(api.request_output(request_.get(), i, tensor.fill()), "give an output");
        outputs[i] = copy_of(*library_, tensor.get());
    }
}

std::vector<KernelTime> Variant::kernels() const {
    const auto& api = library_->api();
    KernelInfos infos;
    library_->check(api.kernel_infos(request_.get(), &infos), "tell what its kernels took");
    std::vector<KernelTime> kernels;
    for (std::size_t i = 0; i < infos.size; ++i) {
        const auto& info = infos.infos[i];
        if (info.state == KernelState::executed) {
            kernels.push_back(
                {.op = info.name, .spent_ns = static_cast<double>(info.real_microseconds) * 1000});
        }
    }
    api.release_kernel_infos(&infos);
    return kernels;
}

}  // namespace trocar::ov
