#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "profile/instrument.h"
#include "trocar/deployed.h"
#include "trocar/error.h"

namespace trocar::profiling {

namespace {

class Kernels final : public Instrument {
public:
    Kernels(const Model& model, const std::shared_ptr<Engine>& engine,
            const std::vector<NamedValue>& inputs)
        : model_(model), inputs_(inputs), deployed_(deploy(model, *engine)) {
        auto& graph = deployed_.model.graph;
        // The engine tells times by name, and names may be missing.
        for (const auto id : graph.ops()) {
            names_.push_back(graph.op(id).name);
            by_name_[fmt::format("trocar.{}", ops_.size())] = ops_.size();
            ops_.push_back(id);
        }
        for (std::size_t i = 0; i < ops_.size(); ++i) {
            graph.rename(ops_[i], fmt::format("trocar.{}", i));
        }
        runner_ = std::make_unique<Runner>(
            engine->compile(deployed_.model,
                            {.optimize = CompileOptions::Optimize::none, .time_kernels = true}),
            inputs);
    }

    double run() override { return runner_->run(); }

    void report(Profile& to) override {
        const auto times = runner_->program().take_times();
        keep_timed_runs(times.runs.size(), to);
        to.resolution_ns = times.resolution_ns;
        to.folded = deployed_.folded;
        for (std::size_t i = 0; i < ops_.size(); ++i) {
            add_part(i, to);
        }
        types_.resize(deployed_.model.graph.tensor_limit());
        for (std::size_t run = 0; run <= to.wall_ns.size(); ++run) {
            take(times.runs[run], run, to);
        }
        finish(to);
        count_memory(to);
        put_in_order(to);
    }

private:
    // An engine may stop its clock when it has written much.
    static void keep_timed_runs(std::size_t timed, Profile& to) {
        const auto made = to.wall_ns.size() + 1;  // and the cold one
        if (timed >= made) {
            return;
        }
        if (timed < 2) {
            throw Error(Fault::engine, fmt::format("the engine timed {} of {} runs", timed, made),
                        "--view source measures layers from outside");
        }
        for (auto* list : {&to.wall_ns, &to.begin_ns, &to.plain_ns}) {
            list->resize(std::min(list->size(), timed - 1));
        }
        to.notes.push_back(
            fmt::format("the engine timed the first {} of {} runs only", timed, made));
    }

    void add_part(std::size_t number, Profile& to) const {
        auto& part = to.parts.emplace_back();
        const auto& op = deployed_.model.graph.op(ops_[number]);
        describe(model_.graph, deployed_.sources[index(ops_[number])], part);
        if (part.ops.empty()) {
            part.type = op.type;
            part.name = names_[number].empty() ? op.type : names_[number];
        }
        resize(part, to);
    }

    static void resize(ProfilePart& part, const Profile& to) {
        part.total_ns.resize(to.wall_ns.size());
        part.self_ns.resize(to.wall_ns.size());
        part.start_ns.resize(to.wall_ns.size());
    }

    // The part of an op in a subgraph: one for all of its calls.
    std::size_t inner_part(std::size_t outer, const std::string& name, Profile& to) {
        const auto [found, fresh] =
            inner_.try_emplace(fmt::format("{}/{}", outer, name), to.parts.size());
        if (fresh) {
            auto& part = to.parts.emplace_back();
            part.name = name;
            part.inside = outer;
            part.module = to.parts[outer].module;
            resize(part, to);
        }
        return found->second;
    }

    // Run 0 is the cold one.
    void take(const TimedRun& timed, std::size_t run, Profile& to) {
        std::vector<const KernelTime*> kernels;
        for (const auto& kernel : timed.kernels) {
            kernels.push_back(&kernel);
        }
        const auto known = [&](const KernelTime* k) { return by_name_.contains(k->op); };
        // What holds others begins before them and ends after; by this clock perhaps at once.
        std::stable_sort(kernels.begin(), kernels.end(), [&](const auto* a, const auto* b) {
            return std::tuple(a->start_ns, !known(a), -a->spent_ns) <
                   std::tuple(b->start_ns, !known(b), -b->spent_ns);
        });
        for (auto& part : to.parts) {
            part.calls = 0;
        }
        struct Open {
            std::size_t part;
            double end;
        };
        std::vector<Open> open;
        for (const auto* kernel : kernels) {
            const auto found = by_name_.find(kernel->op);
            while (!open.empty() &&
                   (found != by_name_.end() || kernel->start_ns >= open.back().end)) {
                open.pop_back();
            }
            if (found == by_name_.end() && open.empty()) {
                continue;
            }
            const auto number = found != by_name_.end()
                                    ? found->second
                                    : inner_part(open.back().part, kernel->op, to);
            add(to.parts[number], *kernel, timed.start_ns, run);
            open.push_back({number, kernel->start_ns + kernel->spent_ns});
            if (found != by_name_.end()) {
                see(ops_[number], *kernel);
            }
        }
    }

    static void add(ProfilePart& part, const KernelTime& kernel, double begin, std::size_t run) {
        if (run == 0) {
            part.cold_ns += kernel.spent_ns;
            return;
        }
        if (part.calls++ == 0) {
            part.start_ns[run - 1] = kernel.start_ns - begin;
        }
        part.total_ns[run - 1] += kernel.spent_ns;
    }

    void see(OpId id, const KernelTime& kernel) {
        // Outputs that are left out are not listed.
        auto outputs = deployed_.model.graph.op(id).outputs;
        std::erase(outputs, TensorId::none);
        if (kernel.outputs.size() == outputs.size()) {
            for (std::size_t i = 0; i < outputs.size(); ++i) {
                types_[index(outputs[i])] = kernel.outputs[i];
            }
        }
    }

    static void finish(Profile& to) {
        for (auto& part : to.parts) {
            part.self_ns = part.total_ns;
        }
        for (const auto& part : to.parts) {
            if (part.inside != ProfilePart::none) {
                auto& outer = to.parts[part.inside];
                for (std::size_t run = 0; run < to.wall_ns.size(); ++run) {
                    outer.self_ns[run] -= part.total_ns[run];
                }
            }
        }
    }

    std::optional<std::uint64_t> size(TensorId id) const {
        const auto& tensor = deployed_.model.graph.tensor(id);
        if (tensor.constant) {
            return tensor.constant->stored_bytes();
        }
        for (const auto& input : inputs_) {
            if (tensor.is_input && input.name == tensor.name) {
                return bytes_of(type_of(input.value));
            }
        }
        return bytes_of(types_[index(id)]);
    }

    // The order in which ops ran, first of all.
    std::vector<std::size_t> order(const Profile& to) const {
        std::vector<std::size_t> order(ops_.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return to.parts[a].start_ns.back() < to.parts[b].start_ns.back();
        });
        return order;
    }

    void count_memory(Profile& to) const {
        const auto& graph = deployed_.model.graph;
        const auto ran = order(to);
        std::vector<std::size_t> last(graph.tensor_limit(), ProfilePart::none);
        for (const auto number : ran) {
            const auto& op = graph.op(ops_[number]);
            for (const auto* list : {&op.inputs, &op.captures}) {
                for (const auto id : *list) {
                    if (id != TensorId::none) {
                        last[index(id)] = number;
                    }
                }
            }
        }
        Memory memory;
        for (const auto id : graph.inputs()) {
            memory.hold(graph.tensor(id).constant ? 0 : size(id).value_or(0));
        }
        bool all_known = true;
        for (std::size_t i = 0; i < ran.size(); ++i) {
            all_known = count_memory(ran[i], i, last, memory, to) && all_known;
        }
        if (all_known) {
            memory.report(to);
        } else {
            for (auto& part : to.parts) {
                part.allocated_bytes = part.freed_bytes = part.live_bytes = std::nullopt;
            }
            to.notes.emplace_back(
                "memory is unavailable: the engine does not tell the sizes of all tensors");
        }
    }

    bool count_memory(std::size_t number, std::size_t place, const std::vector<std::size_t>& last,
                      Memory& memory, Profile& to) const {
        const auto& graph = deployed_.model.graph;
        const auto& op = graph.op(ops_[number]);
        std::uint64_t read = 0;
        std::uint64_t written = 0;
        std::uint64_t freed = 0;
        bool known = true;
        std::vector<TensorId> counted;
        for (const auto* list : {&op.inputs, &op.captures, &op.outputs}) {
            const bool writes = list == &op.outputs;
            for (const auto id : *list) {
                if (id == TensorId::none ||
                    std::find(counted.begin(), counted.end(), id) != counted.end()) {
                    continue;
                }
                counted.push_back(id);
                const auto bytes = size(id);
                known = known && bytes.has_value();
                (writes ? written : read) += bytes.value_or(0);
                const auto& tensor = graph.tensor(id);
                const bool unread = writes && last[index(id)] == ProfilePart::none;
                if (!tensor.constant && !tensor.is_output &&
                    (unread || last[index(id)] == number)) {
                    freed += bytes.value_or(0);
                }
            }
        }
        auto& part = to.parts[number];
        if (known) {
            part.bytes = read + written;
        }
        memory.run(part, place, written, freed);
        return known;
    }

    // Parts as they ran, each followed by those inside it.
    void put_in_order(Profile& to) const {
        std::vector<std::vector<std::size_t>> inside(to.parts.size());
        for (std::size_t i = 0; i < to.parts.size(); ++i) {
            if (to.parts[i].inside != ProfilePart::none) {
                inside[to.parts[i].inside].push_back(i);
            }
        }
        std::vector<std::size_t> sequence;
        const auto visit = [&](const auto& self, std::size_t number) -> void {
            sequence.push_back(number);
            for (const auto inner : inside[number]) {
                self(self, inner);
            }
        };
        std::vector<std::size_t> place_of_top;
        for (const auto number : order(to)) {
            place_of_top.push_back(sequence.size());
            visit(visit, number);
        }
        std::vector<std::size_t> place(to.parts.size());
        for (std::size_t i = 0; i < sequence.size(); ++i) {
            place[sequence[i]] = i;
        }
        std::vector<ProfilePart> parts;
        for (const auto number : sequence) {
            parts.push_back(std::move(to.parts[number]));
            auto& outer = parts.back().inside;
            outer = outer == ProfilePart::none ? outer : place[outer];
        }
        to.parts = std::move(parts);
        if (to.peak_part != ProfilePart::none) {
            to.peak_part = place_of_top[to.peak_part];
        }
    }

    const Model& model_;
    const std::vector<NamedValue>& inputs_;
    Deployed deployed_;
    std::vector<OpId> ops_;           // by part
    std::vector<std::string> names_;  // by part: as the engine named it
    std::unordered_map<std::string, std::size_t> by_name_;
    std::unordered_map<std::string, std::size_t> inner_;
    std::vector<Type> types_;  // by TensorId of the deployed graph
    std::unique_ptr<Runner> runner_;
};

}  // namespace

std::unique_ptr<Instrument> time_kernels(const Model& model, const std::shared_ptr<Engine>& engine,
                                         const std::vector<NamedValue>& inputs) {
    const auto& can = engine->info().can;
    if (!can.deployed || !can.kernel_times) {
        throw Error(Fault::unsupported,
                    fmt::format("{} does not tell what it makes of a model and what its ops take",
                                engine->info().name),
                    "--view source measures layers from outside");
    }
    return std::make_unique<Kernels>(model, engine, inputs);
}

}  // namespace trocar::profiling
