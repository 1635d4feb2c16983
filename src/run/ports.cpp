#include "run/ports.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "trocar/error.h"
#include "trocar/random.h"

namespace trocar {

namespace {

// Where a tap carries a slot of its op: among those it passes on, or those it only reads.
std::optional<std::size_t> place_in_tap(const Tap& tap, bool is_output, std::size_t slot) {
    const bool passes = tap.when == Port::When::before ? !is_output : is_output;
    if (passes && tap.when != Port::When::instead) {
        const auto at = std::find(tap.passed.begin(), tap.passed.end(), slot);
        if (at != tap.passed.end()) {
            return static_cast<std::size_t>(at - tap.passed.begin());
        }
        return std::nullopt;
    }
    if (!is_output) {
        const auto at = std::find(tap.read.begin(), tap.read.end(), slot);
        if (at != tap.read.end()) {
            const auto first = tap.when == Port::When::instead ? 0 : tap.passed.size();
            return first + static_cast<std::size_t>(at - tap.read.begin());
        }
    }
    return std::nullopt;
}

void copy_bytes(Bytes from, std::span<std::byte> to) {
    if (!from.empty() && from.data() != to.data()) {
        std::memcpy(to.data(), from.data(), std::min(from.size(), to.size()));
    }
}

Value copy_of(const Value& value) {
    return Value::copy(value.dtype(), value.shape(), value.bytes());
}

}  // namespace

SitePort::SitePort(const Site& site, When when, RunState& state,
                   std::span<const Constant* const> constants)
    : Port(when, *site.graph, site.op, state), site_(site) {
    const auto& o = op();
    inputs_.resize(o.inputs.size());
    outputs_.resize(o.outputs.size());
    for (const auto input : o.inputs) {
        const bool known = input != TensorId::none && index(input) < constants.size();
        constants_.push_back(known ? constants[index(input)] : nullptr);
    }
    for (const auto& step : site.path) {
        key_ = (key_ + index(step.op) + 1) << 20 | step.body;
    }
    key_ = (key_ << 20) + index(site.op);
    may_skip_ = std::any_of(site.before.begin(), site.before.end(),
                            [](const Attached& a) { return a.probe->skips; });
}

Value PlainMemory::plain(const Value& value, const Layout& layout) {
    auto shape = plain_shape(value.shape(), layout);
    const auto size = byte_size(value.dtype(), element_count(shape));
    auto free = std::find_if(buffers_.begin(), buffers_.end(),
                             [](const auto& buffer) { return buffer.use_count() == 1; });
    if (free == buffers_.end()) {
        free = buffers_.insert(free, std::make_shared<std::vector<std::byte>>());
    }
    auto& bytes = **free;
    if (bytes.size() < size) {
        bytes.resize(size);
    }
    const auto room = std::span(bytes).first(size);
    to_plain(value, layout, room);
    return Value::borrow(value.dtype(), std::move(shape), room, *free);
}

void SitePort::set_layouts(const std::vector<Layout>& by_tensor, PlainMemory& memory) {
    memory_ = &memory;
    const auto set = [&](const std::vector<TensorId>& ids, std::vector<PortTensor>& tensors) {
        for (std::size_t i = 0; i < ids.size(); ++i) {
            if (ids[i] != TensorId::none && by_tensor[index(ids[i])].block > 0) {
                tensors[i].layout = &by_tensor[index(ids[i])];
            }
        }
    };
    set(op().inputs, inputs_);
    set(op().outputs, outputs_);
}

void SitePort::open() {
    call_ = nullptr;
    tap_ = nullptr;
    skipped_ = false;
    for (auto* list : {&inputs_, &outputs_}) {
        for (auto& t : *list) {
            t.here = false;
            t.fetched = false;
            t.changed = false;
            t.at = nullptr;
        }
    }
}

void SitePort::open(HostCall& call, const Tap& tap) {
    open();
    call_ = &call;
    tap_ = &tap;
    for (const auto slot : tap.read) {
        inputs_[slot].here = true;
    }
    auto& passed = tap.when == When::before ? inputs_ : outputs_;
    for (const auto slot : tap.passed) {
        passed[slot].here = tap.when != When::instead;
    }
    count_rounds(call, tap);
}

void SitePort::count_rounds(HostCall& call, const Tap& tap) {
    rounds_.clear();
    for (const auto& loop : tap.loops) {
        const auto& value = call.input(loop.input);
        if (loop.counts) {
            rounds_.push_back(value.as<std::int64_t>()[0]);
        } else {
            const auto length = value.shape().at(loop.axis);
            rounds_.push_back(length > 0 ? static_cast<std::int64_t>(tap.calls) % length : 0);
        }
    }
    iterations_ = rounds_;
}

void SitePort::close(HostCall& call, const Tap& tap) {
    auto& passed = tap.when == When::before ? inputs_ : outputs_;
    const auto written = std::min(tap.passed.size(), call.output_count());
    for (std::size_t i = 0; i < written; ++i) {
        auto& t = passed[tap.passed[i]];
        if (tap.when == When::instead && !t.changed) {
            throw Error(Fault::usage, fmt::format("{}: its replacement gives no output {}",
                                                  describe(), tap.passed[i]));
        }
        if (tap.gives_shapes) {
            const auto shape = call.input(i).shape();
            call.give(i, Value::copy(DType::i64, {static_cast<std::int64_t>(shape.size())},
                                     std::as_bytes(std::span(shape))));
        } else {
            call.give(i, t.changed ? leaving(t) : call.input(i));
        }
    }
    end();
}

void SitePort::end() {
    for (auto* list : {&inputs_, &outputs_}) {
        for (auto& t : *list) {
            if (t.fetched) {
                t.value = {};
                t.plain.reset();
            }
        }
    }
    call_ = nullptr;
}

// A blocked tensor comes in and goes out blocked; in between it was plain.
Value SitePort::leaving(const PortTensor& tensor) {
    if (tensor.layout == nullptr || !tensor.value.is_tensor()) {
        return tensor.value;
    }
    auto shape = tensor.value.shape();
    const auto block = tensor.layout->block;
    if (shape.size() > 1) {
        shape[1] = (shape[1] + block - 1) / block * block;
    }
    auto blocked = Value::tensor(tensor.value.dtype(), std::move(shape));
    to_blocked(tensor.value, *tensor.layout, blocked.mutable_bytes());
    return blocked;
}

PortTensor& SitePort::tensor(std::vector<PortTensor>& list, std::size_t slot,
                             const char* what) const {
    if (slot >= list.size()) {
        throw Error(Fault::usage, fmt::format("{} has {} {}s; there is no {} {}", describe(),
                                              list.size(), what, what, slot));
    }
    return list[slot];
}

// Brings the value of a tensor that has been asked for.
void SitePort::fetch(PortTensor& t, const std::vector<PortTensor>& list, std::size_t slot) const {
    if (t.fetched) {
        return;
    }
    if (t.at != nullptr) {
        t.value = *t.at;
    } else if (t.here && call_ != nullptr) {
        t.value = call_->input(*place_in_tap(*tap_, &list == &outputs_, slot));
    } else if (&list == &inputs_ && constants_[slot] != nullptr) {
        t.value = Value::of(*constants_[slot]);
    } else if (&list == &inputs_ && op().inputs[slot] == TensorId::none) {
        t.value = {};
    } else if (&list == &outputs_) {
        throw Error(Fault::usage, fmt::format("{}: output {} has no value yet", describe(), slot));
    } else {
        throw Error(Fault::usage,
                    fmt::format("{}: input {} was not kept for this port", describe(), slot),
                    "ask for it with Probe::with_inputs()");
    }
    t.fetched = true;
}

const Value& SitePort::read(std::vector<PortTensor>& list, std::size_t slot,
                            const char* what) const {
    auto& t = tensor(list, slot, what);
    fetch(t, list, slot);
    if (t.layout == nullptr || t.changed) {
        return t.value;
    }
    if (!t.plain) {
        t.plain = memory_->plain(t.value, *t.layout);
    }
    return *t.plain;
}

Writable SitePort::write(std::vector<PortTensor>& list, std::size_t slot, const char* what) {
    auto& t = tensor(list, slot, what);
    if (!t.changed) {
        const auto& now = read(list, slot, what);
        if (!now.is_tensor() || bits(now.dtype()) == 0) {
            throw Error(Fault::usage,
                        fmt::format("{}: {} {} is {}, whose elements cannot be written", describe(),
                                    what, slot, value_text(now)));
        }
        const auto place =
            tap_ != nullptr ? place_in_tap(*tap_, &list == &outputs_, slot) : std::nullopt;
        if (place && t.layout == nullptr && *place < call_->output_count()) {
            // Straight into the memory that readers will see.
            auto out = call_->output(*place, now.dtype(), now.shape());
            copy_bytes(now.bytes(), out.mutable_bytes());
            t.value = std::move(out);
        } else if (auto own = now.body()->own_bytes();
                   !own.empty() && tap_ == nullptr && &list == &outputs_ && t.layout == nullptr) {
            // Made by the program just now, and nobody has seen it yet.
        } else {
            t.value = copy_of(now);
        }
        t.changed = true;
    }
    return {t.value.dtype(), t.value.shape(), t.value.mutable_bytes()};
}

const Value& SitePort::input(std::size_t slot) const {
    return read(inputs_, slot, "input");
}

const Value& SitePort::output(std::size_t slot) const {
    return read(outputs_, slot, "output");
}

Writable SitePort::writable_input(std::size_t slot) {
    if (when_ != When::before) {
        throw Error(Fault::usage,
                    fmt::format("{}: what it reads can be changed before it only", describe()));
    }
    const auto& t = tensor(inputs_, slot, "input");
    if (!t.here) {
        throw Error(Fault::usage,
                    fmt::format("{}: input {} is a constant, or left out", describe(), slot),
                    "ask for constants with Probe::with_constants()");
    }
    return write(inputs_, slot, "input");
}

void SitePort::set_input(std::size_t slot, Value value) {
    auto& t = tensor(inputs_, slot, "input");
    if (when_ != When::before || !t.here) {
        throw Error(Fault::usage,
                    fmt::format("{}: input {} cannot be changed here", describe(), slot));
    }
    t.value = std::move(value);
    t.fetched = t.changed = true;
}

Writable SitePort::writable_output(std::size_t slot) {
    if (when_ == When::before && !skipped_) {
        throw Error(Fault::usage, fmt::format("{} has not run yet: it has no outputs", describe()));
    }
    return write(outputs_, slot, "output");
}

void SitePort::set_output(std::size_t slot, Value value) {
    auto& t = tensor(outputs_, slot, "output");
    if (when_ == When::before && !may_skip_) {
        throw Error(Fault::usage, fmt::format("{} will run: its outputs cannot be set", describe()),
                    "ask for Probe::may_skip() and call skip()");
    }
    t.here = t.fetched = t.changed = true;
    t.value = std::move(value);
}

void SitePort::together(std::size_t parts, const std::function<void(std::size_t)>& work) const {
    call_ != nullptr ? call_->together(parts, work) : Port::together(parts, work);
}

void SitePort::skip() {
    if (when_ != When::before || !may_skip_) {
        throw Error(Fault::usage, fmt::format("{} cannot be skipped here", describe()),
                    "ask for it with Probe::may_skip() on a probe before the op");
    }
    skipped_ = true;
}

namespace {

bool wanted(Attached& attached, const SitePort& port, std::uint64_t site_key) {
    const auto& probe = *attached.probe;
    if (attached.calls >= probe.limit) {
        return false;
    }
    const auto number = attached.calls;
    if (probe.share < 1) {
        const auto words = philox(probe.sample_seed, site_key, number);
        if (unit_double(words[0], words[1]) >= probe.share) {
            ++attached.calls;
            return false;
        }
    }
    if (probe.predicate && !probe.predicate(port)) {
        return false;
    }
    ++attached.calls;
    return true;
}

[[noreturn]] void rethrow_named(const Attached& attached, const SitePort& port) {
    const auto who = attached.tool->name().empty()
                         ? std::string("the tool")
                         : fmt::format("the tool '{}'", attached.tool->name());
    try {
        throw;
    } catch (const Error& e) {
        // Errors of the port name the op already.
        const auto place = port.describe();
        const std::string what = e.what();
        throw Error(e.fault(),
                    what.find(place) == std::string::npos
                        ? fmt::format("{} failed at {}: {}", who, place, what)
                        : fmt::format("{} failed: {}", who, what),
                    e.hint());
    } catch (const std::exception& e) {
        throw Error(Fault::usage,
                    fmt::format("{} failed at {}: {}", who, port.describe(), e.what()));
    } catch (...) {
        throw Error(Fault::usage, fmt::format("{} failed at {}: it threw something that is no "
                                              "exception",
                                              who, port.describe()));
    }
}

}  // namespace

void call_probes(std::vector<Attached>& probes, SitePort& port) {
    for (auto& attached : probes) {
        try {
            if (wanted(attached, port, port.key())) {
                attached.probe->callback(port);
            }
        } catch (...) {
            port.end();
            rethrow_named(attached, port);
        }
    }
}

}  // namespace trocar
