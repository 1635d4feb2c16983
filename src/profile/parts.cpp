#include <fmt/format.h>

#include <algorithm>

#include "profile/instrument.h"
#include "trocar/counting.h"
#include "trocar/error.h"
#include "util/text.h"

namespace trocar::profiling {

namespace {

// The modules around both: "a.b" for "a.b.c" and "a.b.d".
std::string common_module(const std::string& a, const std::string& b) {
    const auto x = split(a, '.');
    const auto y = split(b, '.');
    std::vector<std::string> common;
    for (std::size_t i = 0; i < x.size() && i < y.size() && x[i] == y[i]; ++i) {
        common.push_back(x[i]);
    }
    return fmt::format("{}", join(common, "."));
}

// "Conv + Relu", "12 × Conv + 3 × Add": each type once, in order of their first op.
std::string type_text(const Graph& graph, const std::vector<OpId>& ops) {
    std::vector<std::pair<std::string, std::size_t>> types;
    for (const auto id : ops) {
        const auto& type = graph.op(id).type;
        const auto known = std::find_if(types.begin(), types.end(),
                                        [&](const auto& entry) { return entry.first == type; });
        if (known == types.end()) {
            types.emplace_back(type, 1);
        } else {
            ++known->second;
        }
    }
    std::vector<std::string> texts;
    for (const auto& [type, count] : types) {
        texts.push_back(count == 1 ? type : fmt::format("{} × {}", count, type));
    }
    return fmt::format("{}", join(texts, " + "));
}

// What a run op by op shows: the type of every tensor it came to.
class Seen {
public:
    Seen(const Model& model, const std::shared_ptr<Engine>& engine,
         const std::vector<NamedValue>& inputs, const ProfileOptions& options)
        : dialect_(model.dialect),
          graph_(model.graph),
          plan_(make_plan(model, {})),
          types_(model.graph.tensor_limit()) {
        SessionOptions session_options;
        session_options.cut = every_op();
        session_options.streaming = true;
        session_options.compile.optimize = CompileOptions::Optimize::none;
        session_options.compile.low_memory = true;
        session_options.compile.types_only = true;
        Session session(model, engine, session_options);
        for (const auto& input : inputs) {
            if (const auto id = graph_.find_tensor(input.name)) {
                types_[index(*id)] = type_of(input.value);
            }
        }
        const auto total = session.plan().segments.size();
        session.run_what_can(inputs, [&](const SegmentRun& run) {
            if (options.interrupted && options.interrupted()) {
                throw Error(Fault::interrupted, "interrupted");
            }
            if (options.progress) {
                options.progress("counting", run.number, total);
            }
            take(run);
        });
    }

    OpCount count(OpId id) const {
        if (const auto failed = failures_.find(id); failed != failures_.end()) {
            OpCount none;
            none.why = failed->second;
            return none;
        }
        return trocar::count(facts(id));
    }

    Traffic traffic(OpId id) const { return trocar::traffic(facts(id)); }

private:
    void take(const SegmentRun& run) {
        if (!run.failure.empty()) {
            for (const auto id : run.segment.ops) {
                failures_[id] = run.failure;
            }
            return;
        }
        for (std::size_t i = 0; i < run.outputs.size(); ++i) {
            types_[index(run.segment.outputs[i])] = type_of(run.outputs[i]);
        }
    }

    TensorFacts facts(TensorId id) const {
        TensorFacts facts;
        facts.present = id != TensorId::none;
        if (!facts.present) {
            return facts;
        }
        if (const auto* constant = plan_.constants[index(id)]) {
            facts.constant = constant;
            facts.dtype = constant->dtype();
            facts.shape = constant->shape();
        } else if (const auto& type = types_[index(id)]) {
            facts.dtype = type->dtype;
            facts.shape = type->shape();
        }
        return facts;
    }

    OpFacts facts(OpId id) const {
        OpFacts all;
        all.op = &graph_.op(id);
        all.dialect = dialect_;
        for (const auto input : all.op->inputs) {
            all.inputs.push_back(facts(input));
        }
        for (const auto output : all.op->outputs) {
            all.outputs.push_back(facts(output));
        }
        return all;
    }

    const std::string& dialect_;
    const Graph& graph_;
    const Plan plan_;
    std::vector<std::optional<Type>> types_;
    std::map<OpId, std::string> failures_;
};

void count_part(const Graph& graph, const Seen& seen, ProfilePart& part) {
    std::uint64_t macs = 0;
    std::uint64_t flops = 0;
    for (const auto id : part.ops) {
        const auto count = seen.count(id);
        if (count.counted == Counted::unknown) {
            part.uncounted = fmt::format("{}: {}", graph.op(id).type, count.why);
            return;
        }
        macs += count.macs;
        flops += count.flops();
    }
    part.macs = macs;
    part.flops = flops;
    // Of tables that are indexed only what is picked is read: the op alone tells.
    if (part.ops.size() == 1) {
        const auto traffic = seen.traffic(part.ops.front());
        if (traffic.read && traffic.written) {
            part.bytes = *traffic.read + *traffic.written;
        }
    }
}

}  // namespace

std::optional<std::uint64_t> bytes_of(const Type& type) {
    const auto shape = type.shape();
    if (type.kind != Type::Kind::tensor || !shape || bits(type.dtype) == 0) {
        return std::nullopt;
    }
    return byte_size(type.dtype, element_count(*shape));
}

void describe(const Graph& graph, std::vector<OpId> ops, ProfilePart& part) {
    part.type = type_text(graph, ops);
    bool first = true;
    for (const auto id : ops) {
        const auto& module = graph.op(id).origin.module;
        part.module = first ? module : common_module(part.module, module);
        first = false;
    }
    if (!ops.empty()) {
        const auto& op = graph.op(ops.front());
        part.name = op.name.empty() ? graph.describe(ops.front()) : op.name;
    }
    part.ops = std::move(ops);
}

void count_parts(const Model& model, const std::shared_ptr<Engine>& engine,
                 const std::vector<NamedValue>& inputs, const ProfileOptions& options,
                 Profile& to) {
    try {
        const Seen seen(model, engine, inputs, options);
        for (auto& part : to.parts) {
            if (part.inside != ProfilePart::none) {
                part.uncounted = "it stands in a subgraph";
            } else {
                count_part(model.graph, seen, part);
            }
        }
    } catch (const Error& e) {
        if (e.fault() == Fault::interrupted) {
            to.partial = true;
        } else {
            to.notes.push_back(fmt::format("MACs are unavailable: {}", e.what()));
        }
    }
}

}  // namespace trocar::profiling
