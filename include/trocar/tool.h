#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "trocar/engine.h"
#include "trocar/model.h"
#include "trocar/selector.h"
#include "trocar/value.h"

#pragma GCC visibility push(default)
namespace trocar {

struct Report;

// A tensor that a callback may write. Valid during the call.
class Writable {
public:
    Writable(DType dtype, Shape shape, std::span<std::byte> bytes)
        : dtype_(dtype), shape_(std::move(shape)), bytes_(bytes) {}

    DType dtype() const { return dtype_; }
    const Shape& shape() const { return shape_; }
    std::size_t element_count() const { return trocar::element_count(shape_); }
    std::span<std::byte> bytes() const { return bytes_; }
    template <class T>
    std::span<T> as() const {  // the caller knows the type
        return {reinterpret_cast<T*>(bytes_.data()), bytes_.size() / sizeof(T)};
    }
    // Every element becomes `number`, rounded to the type. Throws Error(usage) for types that are
    // not numbers.
    void fill(double number) const;

private:
    DType dtype_;
    Shape shape_;
    std::span<std::byte> bytes_;
};

// What a run is doing when it calls.
struct RunState {
    std::uint64_t number = 0;  // of the run in its session, from 0
    bool stopped = false;      // somebody called Port::stop
};

// An op as a callback meets it, with its tensors. All of it is valid during the call; a Value that
// is copied out of it stays valid (its bytes are copied then).
class Port {
public:
    enum class When { before, after, instead };

    virtual ~Port() = default;

    When when() const { return when_; }
    // The graph that the op stands in: the model's own or the body of a control-flow op; in the
    // deployed view the engine's.
    const Graph& graph() const { return *graph_; }
    OpId id() const { return id_; }
    const Op& op() const { return graph_->op(id_); }
    // "op 12 (Conv '/layer1/conv1')"
    std::string describe() const;
    // Deployed view: the ops of the model that are computed here. Source view: the op itself.
    std::span<const OpId> sources() const { return sources_; }
    // Deployed view: the tensor of the model that has the value of this output. none: no tensor
    // has, or source view.
    TensorId source_tensor(std::size_t slot) const {
        const auto id = op().outputs.at(slot);
        return source_tensors_.empty() || id == TensorId::none ? TensorId::none
                                                               : source_tensors_[index(id)];
    }
    // Rounds of the loops around the op, outermost first; empty outside of loops.
    std::span<const std::int64_t> iterations() const { return iterations_; }
    std::uint64_t run() const { return state_->number; }

    std::size_t input_count() const { return op().inputs.size(); }
    std::size_t output_count() const { return op().outputs.size(); }
    // What the op reads. Constants are always there; other tensors before and instead of the op,
    // and after it for probes `with_inputs`. Throws Error(usage) otherwise. none: left out.
    virtual const Value& input(std::size_t slot) const = 0;
    // What the op wrote: after the op; instead of it what was set so far.
    virtual const Value& output(std::size_t slot) const = 0;

    // Before the op: what it reads from now on, and nobody else. A copy is made where the bytes
    // are not ours alone.
    virtual Writable writable_input(std::size_t slot) = 0;
    virtual void set_input(std::size_t slot, Value value) = 0;
    // After the op: what all readers see from now on.
    virtual Writable writable_output(std::size_t slot) = 0;
    // After and instead of the op; before it together with `skip`. Any shape that readers take.
    virtual void set_output(std::size_t slot, Value value) = 0;
    // Instead of the op: a new output tensor, zeroed, for filling.
    Writable make_output(std::size_t slot, DType dtype, Shape shape);
    // Before the op: do not run it. All outputs that are read must be set. For probes `may_skip`.
    virtual void skip() = 0;
    // Calls `work` with 0 … `parts` - 1: at a tap on the engine's threads, which are awake and have
    // nothing to do meanwhile; else on this thread alone. `work` must not throw.
    virtual void together(std::size_t parts, const std::function<void(std::size_t)>& work) const;
    // Ends the run when this callback returns: Session::run then gives no outputs.
    void stop() { state_->stopped = true; }

protected:
    Port(When when, const Graph& graph, OpId id, RunState& state)
        : when_(when), graph_(&graph), id_(id), state_(&state) {}
    When when_;
    const Graph* graph_;
    OpId id_;
    RunState* state_;
    std::span<const OpId> sources_;
    std::span<const TensorId> source_tensors_;  // by TensorId of `graph_`; empty: source view
    std::span<const std::int64_t> iterations_;
};

using PortCallback = std::function<void(Port&)>;

// A callback at the ports of a selector, and when it is to be called.
class Probe {
public:
    // Only this share of the calls, chosen by `seed`, run and op: the same ones in every
    // repetition.
    Probe& sample(double share, std::uint64_t seed = 0);
    // At every op only the first `calls` calls of the session's life.
    Probe& first(std::uint64_t calls);
    // Only where `predicate` holds; asked before anything is copied for the callback.
    Probe& when(std::function<bool(const Port&)> predicate);
    // After an op: keep its inputs for the callback. They are then not fused away.
    Probe& with_inputs();
    // Before an op: the callback may call `skip`. The op then stands in a program of its own.
    Probe& may_skip();
    // Before an op: constants, too, may be changed. They are then copied in every run.
    Probe& with_constants();
    // Instead of an op: element types of its outputs, for those whose type the file does not
    // declare; where that, too, says nothing, f32. Needed inside bodies only.
    Probe& gives(std::vector<DType> types);
    // Not in the bodies of If, Loop and Scan.
    Probe& outside_bodies();

    Selector selector;
    Port::When at = Port::When::after;
    PortCallback callback;
    bool modifies = true;
    bool reads_inputs = false;
    bool skips = false;
    bool constants = false;
    std::vector<DType> types;
    bool in_bodies = true;
    double share = 1;
    std::uint64_t sample_seed = 0;
    std::uint64_t limit = UINT64_MAX;
    std::function<bool(const Port&)> predicate;
};

// An instrument: which ports it wants, and what it does there. Several tools in one run are called
// in their order, the probes of one tool in the order in which they were added; at one op all
// `before` come before all `after`.
//
// A callback that takes `const Port&` observes; one that takes `Port&` may change what it sees,
// which costs a copy where the engine cannot work in place.
class Tool {
public:
    Tool() = default;
    explicit Tool(std::string name) : name_(std::move(name)) {}
    virtual ~Tool() = default;

    template <class F>
    Probe& before(Selector selector, F callback) {
        return add(Port::When::before, std::move(selector), std::move(callback));
    }
    template <class F>
    Probe& after(Selector selector, F callback) {
        return add(Port::When::after, std::move(selector), std::move(callback));
    }
    // Instead of the op, which need not be known to the engine. The first one that matches is used.
    template <class F>
    Probe& replace(Selector selector, F callback) {
        return add(Port::When::instead, std::move(selector), std::move(callback));
    }
    // Before the first op and after the last one of every run, also of one that failed.
    void at_start(std::function<void(const RunState&)> callback);
    void at_end(std::function<void(const RunState&)> callback);

    // Adds what the tool has found to the report of the command that ran it.
    virtual void report(Report& /*report*/) const {}

    const std::string& name() const { return name_; }
    void set_name(std::string name) { name_ = std::move(name); }
    // Stable addresses: a Probe& stays valid while the tool lives.
    const std::vector<std::unique_ptr<Probe>>& probes() const { return probes_; }
    const std::vector<std::function<void(const RunState&)>>& starts() const { return starts_; }
    const std::vector<std::function<void(const RunState&)>>& ends() const { return ends_; }

private:
    template <class F>
    Probe& add(Port::When when, Selector selector, F callback) {
        constexpr bool observes = std::is_invocable_v<F&, const Port&>;
        auto& probe = *probes_.emplace_back(std::make_unique<Probe>());
        probe.at = when;
        probe.selector = std::move(selector);
        probe.modifies = !observes;
        probe.callback = PortCallback(std::move(callback));
        return probe;
    }

    std::string name_;
    std::vector<std::unique_ptr<Probe>> probes_;
    std::vector<std::function<void(const RunState&)>> starts_;
    std::vector<std::function<void(const RunState&)>> ends_;
};

// How ports are brought into a run.
enum class Lowering {
    automatic,  // taps where they can serve, else cuts
    tap,  // an op of ours inside the engine's program; Error(unsupported) where that cannot be
    cut,  // a program ends there
};

// Whose ops ports stand at.
enum class View {
    source,    // the model's
    deployed,  // those the engine made of them; runs give the bits of the plain run
};

// "source", "deployed"; "auto", "tap", "cut". Throw Error(usage) on others.
View parse_view(std::string_view text);
Lowering parse_lowering(std::string_view text);

// Runs a model once with tools at its ports; opens the default engine. The model is not touched.
std::vector<NamedValue> run(const Model& model, const std::vector<NamedValue>& inputs, Tool& tool);
std::vector<NamedValue> run(const Model& model, const std::vector<NamedValue>& inputs, Tool& tool,
                            const EngineOptions& engine);

}  // namespace trocar
#pragma GCC visibility pop
