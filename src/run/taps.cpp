#include "run/taps.h"

#include <fmt/format.h>

#include <algorithm>

#include "run/dtypes.h"
#include "trocar/error.h"

namespace trocar {

namespace {

// Is the tensor an element-wise accessible one as far as the file tells?
bool may_be_tensor(const Type& type) {
    return type.kind == Type::Kind::tensor || type.kind == Type::Kind::unknown;
}

// Ops whose outputs are no plain tensors; others may pass such values on, which shows in the types.
bool makes_others(const Op& op) {
    static constexpr std::string_view types[]{
        "SequenceConstruct", "SequenceEmpty", "SequenceInsert", "SequenceErase", "SplitToSequence",
        "SequenceMap",       "Optional",      "ZipMap",         "DictVectorizer"};
    return std::find(std::begin(types), std::end(types), op.type) != std::end(types);
}
bool takes_others(const Op& op) {
    static constexpr std::string_view types[]{
        "SequenceAt",         "SequenceLength", "SequenceInsert",     "SequenceErase",
        "ConcatFromSequence", "SequenceMap",    "OptionalHasElement", "OptionalGetElement"};
    return std::find(std::begin(types), std::end(types), op.type) != std::end(types);
}

// Nobody at the site changes anything. Reshape takes the shape as a tensor from version 5 on.
bool only_watches(const Model& model, const Site& site) {
    return site.before.empty() && site.instead.empty() && !any(site.after, &Probe::modifies) &&
           model.opset() >= 5;
}

class Inserter {
public:
    Inserter(Model& model, const Site& site, std::size_t site_number, Port::When when,
             std::size_t number)
        : model_(model), site_(site), graph_(graph_at(model.graph, site.path)), dtypes_(model) {
        tap_.when = when;
        tap_.site = site_number;
        const auto& probes = when == Port::When::before ? site.before : site.after;
        spec_.type = any(probes, &Probe::modifies) ? "Tap" : "Look";
        spec_.domain = host_domain;
        spec_.name = fmt::format("trocar tap {}", number);
        number_ = static_cast<std::int64_t>(number);
    }

    Tap insert() {
        switch (tap_.when) {
            case Port::When::after:
                insert_after();
                break;
            case Port::When::before:
                insert_before();
                break;
            case Port::When::instead:
                replace();
                break;
        }
        update_bodies();
        return std::move(tap_);
    }

private:
    const Op& op() const { return graph_.op(site_.op); }

    bool is_constant(TensorId id) const { return graph_.tensor(id).constant.has_value(); }

    // The engine wants to know what a tap gives, where it cannot see it.
    Type type_of(TensorId id) {
        const auto& declared = graph_.tensor(id).type;
        if (declared.kind != Type::Kind::unknown) {
            return declared;
        }
        const auto dtype = dtypes_.of(site_.path, id);
        return dtype == DType::undefined ? declared : Type::tensor(dtype);
    }

    // A name that is free in all graphs around and inside this one, too.
    std::string fresh() { return fmt::format("trocar/tap{}/{}", number_, made_++); }

    void add_attributes(OpSpec& spec) const {
        spec.attributes.push_back({"site", number_, {}, {}});
        spec.attributes.push_back(
            {"passes", static_cast<std::int64_t>(tap_.passed.size()), {}, {}});
    }

    // A tensor of a graph further out, as seen in the innermost graph.
    TensorId seen_inside(const std::string& name, std::size_t depth) {
        for (std::size_t d = depth + 1; d <= site_.path.size(); ++d) {
            auto& inner = graph_at(model_.graph, std::span(site_.path).first(d));
            if (!inner.find_tensor(name)) {
                inner.add_capture(name);
            }
        }
        return graph_.find_tensor(name).value();
    }

    // The inputs that tell the rounds of the loops around the tap.
    void read_loops(std::vector<TensorId>& inputs) {
        for (std::size_t d = 0; d < site_.path.size(); ++d) {
            auto& outer = graph_at(model_.graph, std::span(site_.path).first(d));
            const auto& loop = outer.op(site_.path[d].op);
            const auto& body = *loop.subgraphs().at(site_.path[d].body);
            if (loop.type == "Loop" && !body.inputs().empty()) {
                const auto name = body.tensor(body.inputs()[0]).name;
                tap_.loops.push_back({inputs.size(), true, 0});
                inputs.push_back(seen_inside(name, d + 1));
            } else if (loop.type == "Scan" && !loop.inputs.empty()) {
                // The first scanned tensor stands behind the states.
                const auto scanned = loop.integer("num_scan_inputs", 1);
                const auto first = loop.inputs.size() - static_cast<std::size_t>(scanned);
                const auto axes = loop.integers("scan_input_axes");
                const auto axis = axes.empty() ? 0 : axes.front();
                if (axis < 0) {
                    continue;
                }
                const auto name = outer.tensor(loop.inputs.at(first)).name;
                tap_.loops.push_back({inputs.size(), false, static_cast<std::size_t>(axis)});
                inputs.push_back(seen_inside(name, d));
            }
        }
    }

    // Everything a tap reads besides what it passes on.
    void read_others(std::vector<TensorId>& inputs, bool with_inputs) {
        for (std::size_t slot = 0; with_inputs && slot < op().inputs.size(); ++slot) {
            const auto id = op().inputs[slot];
            if (id != TensorId::none && !is_constant(id)) {
                tap_.read.push_back(slot);
                inputs.push_back(id);
            }
        }
        read_loops(inputs);
    }

    // What readers of `passed` are to read from now on; the inputs of `tap` are still to be set.
    std::vector<TensorId> pass_on(const std::vector<TensorId>& passed, OpId& tap) {
        auto spec = spec_;
        add_attributes(spec);
        for (const auto id : passed) {
            spec.outputs.push_back(graph_.add_tensor(fresh(), type_of(id)));
        }
        const auto outputs = spec.outputs;
        tap = graph_.insert_after(site_.op, std::move(spec));
        return outputs;
    }

    // The same where nothing tells the type of a tensor, for a tap that only looks: it gives the
    // tensor's shape, and a Reshape to that shape, for which nothing is copied, passes the tensor
    // on. The engine then needs to be told no type.
    struct Reshape {
        OpId op;
        TensorId shape;
    };
    std::vector<TensorId> reshape_on(const std::vector<TensorId>& passed, OpId& tap,
                                     std::vector<Reshape>& reshapes) {
        auto shape_type = Type::tensor(DType::i64);
        shape_type.dims.emplace(1);
        tap_.gives_shapes = true;
        auto spec = spec_;
        spec.type = "Call";
        add_attributes(spec);
        for (std::size_t i = 0; i < passed.size(); ++i) {
            spec.outputs.push_back(graph_.add_tensor(fresh(), shape_type));
        }
        const auto shapes = spec.outputs;
        tap = graph_.insert_after(site_.op, std::move(spec));
        std::vector<TensorId> outputs;
        for (std::size_t i = 0; i < passed.size(); ++i) {
            OpSpec reshape;
            reshape.type = "Reshape";
            reshape.name = fmt::format("{} passes {}", spec_.name, i);
            outputs.push_back(graph_.add_tensor(fresh(), graph_.tensor(passed[i]).type));
            reshape.outputs = {outputs.back()};
            reshapes.push_back({graph_.insert_after(tap, std::move(reshape)), shapes[i]});
        }
        return outputs;
    }

    bool any_unknown(const std::vector<TensorId>& tensors) {
        return std::any_of(tensors.begin(), tensors.end(),
                           [&](TensorId id) { return type_of(id).kind == Type::Kind::unknown; });
    }

    void insert_after() {
        std::vector<TensorId> inputs;
        for (std::size_t slot = 0; slot < op().outputs.size(); ++slot) {
            if (op().outputs[slot] != TensorId::none) {
                tap_.passed.push_back(slot);
                inputs.push_back(op().outputs[slot]);
            }
        }
        const auto passed = inputs;
        read_others(inputs, any(site_.after, &Probe::reads_inputs));
        // Readers are turned to the new tensors before the tap itself reads the old ones.
        OpId tap = OpId::none;
        std::vector<Reshape> reshapes;
        const auto outputs = only_watches(model_, site_) && any_unknown(passed)
                                 ? reshape_on(passed, tap, reshapes)
                                 : pass_on(passed, tap);
        for (std::size_t i = 0; i < passed.size(); ++i) {
            const bool output = graph_.tensor(passed[i]).is_output;
            graph_.replace_uses(passed[i], outputs[i]);
            if (output && site_.path.empty()) {
                const auto name = graph_.tensor(passed[i]).name;
                graph_.rename(passed[i], fresh());
                graph_.rename(outputs[i], name);
            }
        }
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            graph_.set_input(tap, i, inputs[i]);
        }
        for (std::size_t i = 0; i < reshapes.size(); ++i) {
            graph_.set_input(reshapes[i].op, 0, passed[i]);
            graph_.set_input(reshapes[i].op, 1, reshapes[i].shape);
        }
    }

    void insert_before() {
        std::vector<TensorId> inputs;
        const bool constants = any(site_.before, &Probe::constants);
        for (std::size_t slot = 0; slot < op().inputs.size(); ++slot) {
            const auto id = op().inputs[slot];
            if (id != TensorId::none && (constants || !is_constant(id))) {
                tap_.passed.push_back(slot);
                inputs.push_back(id);
            }
        }
        auto spec = spec_;
        add_attributes(spec);
        for (const auto id : inputs) {
            spec.outputs.push_back(graph_.add_tensor(fresh(), type_of(id)));
        }
        const auto outputs = spec.outputs;
        read_loops(inputs);
        spec.inputs = std::move(inputs);
        graph_.insert_before(site_.op, std::move(spec));
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            graph_.set_input(site_.op, tap_.passed[i], outputs[i]);
        }
    }

    void replace() {
        auto spec = spec_;
        spec.type = "Call";
        read_others(spec.inputs, true);
        const auto& gives = site_.instead.front().probe->types;
        for (std::size_t slot = 0; slot < op().outputs.size(); ++slot) {
            const auto id = op().outputs[slot];
            if (id == TensorId::none) {
                continue;
            }
            tap_.passed.push_back(slot);
            if (graph_.tensor(id).type.dtype == DType::undefined) {
                Type type;
                type.kind = Type::Kind::tensor;
                type.dtype = slot < gives.size() ? gives[slot] : DType::f32;
                graph_.set_type(id, std::move(type));
            }
            spec.outputs.push_back(id);
        }
        add_attributes(spec);
        graph_.replace(site_.op, std::move(spec));
    }

    void update_bodies() {
        for (std::size_t d = site_.path.size(); d-- > 0;) {
            graph_at(model_.graph, std::span(site_.path).first(d))
                .update_captures(site_.path[d].op);
        }
    }

    Model& model_;
    const Site& site_;
    Graph& graph_;
    OpSpec spec_;
    std::int64_t number_ = 0;
    int made_ = 0;
    DTypes dtypes_;
    Tap tap_;
};

}  // namespace

Tap insert_tap(Model& model, const Site& site, std::size_t site_number, Port::When when,
               std::size_t number) {
    return Inserter(model, site, site_number, when, number).insert();
}

std::string why_no_tap(const Model& model, const Site& site) {
    const auto& graph = *site.graph;
    const auto& op = graph.op(site.op);
    if (any(site.before, &Probe::skips)) {
        return "it may be skipped";
    }
    const bool inputs = !site.before.empty() || any(site.after, &Probe::reads_inputs);
    const auto others = [&](const std::vector<TensorId>& list) {
        return std::any_of(list.begin(), list.end(), [&](TensorId id) {
            return id != TensorId::none && !may_be_tensor(graph.tensor(id).type);
        });
    };
    if ((!site.after.empty() && (makes_others(op) || others(op.outputs))) ||
        (inputs && (takes_others(op) || others(op.inputs)))) {
        return "it handles values that are no tensors";
    }
    // In the model's own graph the engine may know what the rules do not; if not, there are cuts.
    DTypes dtypes(model);
    const auto unknown = [&](const std::vector<TensorId>& list) {
        return std::any_of(list.begin(), list.end(), [&](TensorId id) {
            return id != TensorId::none && dtypes.of(site.path, id) == DType::undefined;
        });
    };
    if (site.in_body() && !only_watches(model, site) &&
        ((!site.after.empty() && unknown(op.outputs)) || (inputs && unknown(op.inputs)))) {
        return "nothing tells the type of its tensors";
    }
    return {};
}

}  // namespace trocar
