#pragma once

#include <optional>
#include <span>
#include <vector>

#include "run/sites.h"
#include "run/taps.h"
#include "trocar/tool.h"

namespace trocar {

// One tensor at a port while it is open.
struct PortTensor {
    bool here = false;          // the port can give it
    bool fetched = false;       // `value` is it
    const Value* at = nullptr;  // where it stands until it is asked for; nullptr: elsewhere
    Value value;
    bool changed = false;            // `value` is not what came in
    const Layout* layout = nullptr;  // nullptr: plain
    std::optional<Value> plain;      // of a blocked one, once asked for
};

// Memory for tensors in plain order, used again as soon as nobody holds the last one.
class PlainMemory {
public:
    Value plain(const Value& value, const Layout& layout);

private:
    std::vector<std::shared_ptr<std::vector<std::byte>>> buffers_;
};

// The port of one site. Lives as long as the session, so that a call costs no memory. Between
// `open` and the end of the callbacks it serves either values that it was given (at a cut) or those
// of a call from inside a program (at a tap).
class SitePort final : public Port {
public:
    // `constants` by TensorId of the site's graph; nullptr: not a constant.
    SitePort(const Site& site, When when, RunState& state,
             std::span<const Constant* const> constants);

    // At a tap.
    void open(HostCall& call, const Tap& tap);
    // Gives the engine what the tap passes on.
    void close(HostCall& call, const Tap& tap);

    // At a cut: the values there are, which must stay where they are until the port ends. Those
    // that are not given cannot be asked for.
    void open();
    void give_input(std::size_t slot, const Value& value) { give(inputs_[slot], value); }
    void give_constant(std::size_t slot) { inputs_[slot].here = true; }
    void give_output(std::size_t slot, const Value& value) { give(outputs_[slot], value); }
    // After the callbacks.
    const PortTensor& input_tensor(std::size_t slot) const { return inputs_[slot]; }
    const PortTensor& output_tensor(std::size_t slot) const { return outputs_[slot]; }
    // What leaves the port for a tensor that was changed: as its readers take it.
    static Value leaving(const PortTensor& tensor);
    bool skipped() const { return skipped_; }
    void end();  // forgets all values

    // A number of the op that does not depend on what else is instrumented.
    std::uint64_t key() const { return key_; }

    void set_sources(std::span<const OpId> sources, std::span<const TensorId> tensors) {
        sources_ = sources;
        source_tensors_ = tensors;
    }
    void set_layouts(const std::vector<Layout>& by_tensor, PlainMemory& memory);

    const Value& input(std::size_t slot) const override;
    const Value& output(std::size_t slot) const override;
    Writable writable_input(std::size_t slot) override;
    void set_input(std::size_t slot, Value value) override;
    Writable writable_output(std::size_t slot) override;
    void set_output(std::size_t slot, Value value) override;
    void skip() override;
    void together(std::size_t parts, const std::function<void(std::size_t)>& work) const override;

private:
    static void give(PortTensor& tensor, const Value& value) {
        tensor.here = true;
        tensor.at = &value;
    }
    PortTensor& tensor(std::vector<PortTensor>& list, std::size_t slot, const char* what) const;
    const Value& read(std::vector<PortTensor>& list, std::size_t slot, const char* what) const;
    void fetch(PortTensor& tensor, const std::vector<PortTensor>& list, std::size_t slot) const;
    Writable write(std::vector<PortTensor>& list, std::size_t slot, const char* what);
    void count_rounds(HostCall& call, const Tap& tap);

    const Site& site_;
    mutable std::vector<PortTensor> inputs_;
    mutable std::vector<PortTensor> outputs_;
    std::vector<const Constant*> constants_;  // by input slot
    PlainMemory* memory_ = nullptr;
    HostCall* call_ = nullptr;
    const Tap* tap_ = nullptr;
    std::vector<std::int64_t> rounds_;
    std::uint64_t key_ = 0;
    bool skipped_ = false;
    bool may_skip_ = false;
};

// Calls the probes at a site in order. What a callback throws comes out as an Error that names the
// op and the tool.
void call_probes(std::vector<Attached>& probes, SitePort& port);

}  // namespace trocar
