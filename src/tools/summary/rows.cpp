#include "tools/summary/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "tools/summary/attributes.h"
#include "trocar/error.h"

namespace trocar::summary {
std::uint64_t mix(std::uint64_t hash, std::uint64_t more) {
    hash ^= more + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2);
    return hash * 0xff51afd7ed558ccd;
}

namespace {

constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

std::uint64_t plus(std::uint64_t a, std::uint64_t b) {
    return a > most - std::min(b, most) ? most : a + b;
}

std::uint64_t times(std::uint64_t a, std::uint64_t b) {
    std::uint64_t result = 0;
    return __builtin_mul_overflow(a, b, &result) || result > most ? most : result;
}

std::uint64_t mix_text(std::uint64_t hash, const std::string& text) {
    return mix(hash, std::hash<std::string>{}(text));
}

std::uint64_t structure_of(const OpRow& row, const OpFacts& facts) {
    std::uint64_t hash = mix_text(mix_text(17, row.type), row.attributes);
    for (const auto* list : {&facts.inputs, &facts.outputs}) {
        hash = mix(hash, list->size());
        for (const TensorFacts& t : *list) {
            hash = mix(hash, static_cast<std::uint64_t>(t.dtype));
            hash = mix(hash, t.present ? 1 : 0);
            if (t.shape) {
                for (std::int64_t d : *t.shape) {
                    hash = mix(hash, static_cast<std::uint64_t>(d));
                }
            }
        }
    }
    return hash;
}

// The last part of "/layer1/layer1.0/conv1/Conv"; the type for an op without a name.
std::string label_of(const Op& op) {
    std::size_t slash = op.name.find_last_of('/');
    std::string label = slash == std::string::npos ? op.name : op.name.substr(slash + 1);
    return label.empty() ? op.type : label;
}

class Counter {
public:
    Counter(Rows& result, const Inventory& inventory, const std::vector<Zeros>& zeros, bool ran)
        : result_(result), inventory_(inventory), zeros_(zeros), ran_(ran) {}

    // Where a graph's ops stand.
    struct Place {
        std::size_t inside = OpRow::none;
        std::string body;
        std::uint64_t times = 1;
        bool times_known = true;
        bool taken = true;
    };

    // Returns the sums over the graph's ops.
    Sums walk(const Scope& scope, const Place& place) {
        Sums sums;
        std::size_t number = 0;
        for (OpId id : scope.graph->ops()) {
            std::size_t at = number++;
            if (scope.passes_constant[index(id)]) {
                ++result_.passing;
                continue;
            }
            std::size_t row_number = result_.rows.size();
            result_.rows.push_back(make_row(scope, id, place, at));
            if (const auto* bodies = scope.bodies_of(id)) {
                enter(scope, id, *bodies, place, row_number);
            } else {
                tally(result_.rows[row_number]);
            }
            sums.add(result_.rows[row_number].sums);
        }
        return sums;
    }

private:
    OpRow make_row(const Scope& scope, OpId id, const Place& place, std::size_t at) {
        const Op& op = scope.graph->op(id);
        OpFacts facts = facts_of(scope, id);
        OpRow row;
        row.scope = &scope;
        row.op = id;
        row.place = at;
        row.inside = place.inside;
        row.body = place.body;
        row.times = place.times;
        row.times_known = place.times_known;
        row.taken = place.taken;
        row.label = label_of(op);
        row.type = op.domain.empty() || op.domain == "ai.onnx"
                       ? op.type
                       : fmt::format("{}:{}", op.domain, op.type);
        row.attributes = attribute_text(facts);
        row.structure = structure_of(row, facts);
        row.has_bodies = scope.bodies_of(id) != nullptr;
        row.sums.ops = 1;
        add_constants(row);
        if (!row.taken) {
            row.count.why = "in a branch that the run did not take";
            return row;
        }
        if (!row.has_bodies) {
            row.count = count(facts);
            if (row.count.counted == Counted::unknown) {
                explain(row);
                row.sums.uncounted = 1;
            }
            row.sums.macs = times(row.count.macs, row.times);
            row.sums.other_flops = times(row.count.other_flops, row.times);
            row.sums.effective_macs = effective(row);
        }
        Traffic moved = traffic(facts);
        row.output_bytes = moved.written;
        if (moved.read && moved.written && !row.has_bodies) {
            row.sums.read = times(*moved.read, row.times);
            row.sums.written = times(*moved.written, row.times);
        }
        row.sums.unsized = moved.read && moved.written ? 0 : 1;
        return row;
    }

    // A missing shape has a reason of its own: the op, or one before it, did not run.
    static void explain(OpRow& row) {
        auto failure = row.scope->failures.find(row.op);
        bool shape = row.count.why.starts_with("the shape of");
        if (shape && failure != row.scope->failures.end()) {
            row.count.why = failure->second.starts_with("not run:") ? "an op before it did not run"
                                                                    : failure->second;
        }
    }

    void add_constants(OpRow& row) {
        std::uint64_t most_weights = 0;
        for (const ConstantUse& use : inventory_.of(*row.scope, row.op)) {
            if (use.role == Role::buffer && use.counts) {
                row.sums.buffers += use.count;
            }
            if (!is_parameter(use.role)) {
                continue;
            }
            row.structure = mix(row.structure, use.count);
            if (use.counts) {
                row.sums.parameters += use.count;
                row.sums.parameter_bytes += use.bytes;
            } else {
                row.sums.shared_parameters += use.count;
            }
            if (use.role != Role::weight || use.scan >= zeros_.size()) {
                continue;
            }
            const Zeros& z = zeros_[use.scan];
            if (!z.unavailable.empty()) {
                row.no_zeros = z.unavailable;
                continue;
            }
            row.sums.weights += z.elements;
            row.sums.zeros += z.zeros;
            if (z.elements > most_weights) {
                most_weights = z.elements;
                row.pattern = z.pattern;
            }
        }
    }

    // A weight that is zero takes part in the same share of the MACs as any other.
    static std::uint64_t effective(const OpRow& row) {
        if (row.sums.weights == 0 || row.sums.zeros == 0) {
            return row.sums.macs;
        }
        double share =
            1 - static_cast<double>(row.sums.zeros) / static_cast<double>(row.sums.weights);
        return static_cast<std::uint64_t>(std::llround(static_cast<double>(row.sums.macs) * share));
    }

    void enter(const Scope& scope, OpId id, const std::vector<Body>& bodies, const Place& place,
               std::size_t row_number) {
        bool chooses = is_choice(scope, scope.graph->op(id));
        result_.some_branch_open = result_.some_branch_open || (chooses && !ran_);
        std::uint64_t structure = result_.rows[row_number].structure;
        for (const Body& body : bodies) {
            Place inner{.inside = row_number, .body = body.label};
            inner.taken = place.taken && body.taken;
            inner.times = times(place.times, body.times.value_or(1));
            inner.times_known = place.times_known && body.times.has_value();
            result_.some_per_iteration =
                result_.some_per_iteration || (inner.taken && !inner.times_known);
            std::size_t first = result_.rows.size();
            Sums sums = walk(*body.scope, inner);
            for (std::size_t i = first; i < result_.rows.size(); ++i) {
                structure = mix(structure, result_.rows[i].structure);
            }
            OpRow& row = result_.rows[row_number];
            std::uint64_t uncounted = row.sums.uncounted + sums.uncounted;
            row.sums.add(sums);
            row.sums.uncounted = uncounted;
        }
        OpRow& row = result_.rows[row_number];
        row.structure = structure;
        row.count.counted = row.sums.uncounted == 0 ? Counted::arithmetic : Counted::unknown;
        row.count.macs = row.sums.macs;
        row.count.other_flops = row.sums.other_flops;
        if (row.sums.uncounted > 0) {
            row.count.why = fmt::format("{} ops inside are not counted", row.sums.uncounted);
        }
    }

    void tally(const OpRow& row) {
        if (!row.taken) {
            ++result_.not_taken;
            result_.by_type[row.type].add(row.sums);
            return;
        }
        result_.by_type[row.type].add(row.sums);
        switch (row.count.counted) {
            case Counted::arithmetic:
                ++result_.arithmetic;
                break;
            case Counted::movement:
                ++result_.movement;
                break;
            case Counted::unknown: {
                auto key = row.type + "\n" + row.count.why;
                auto [found, fresh] = uncounted_.try_emplace(key, result_.uncounted.size());
                if (fresh) {
                    result_.uncounted.push_back(
                        {row.type, row.count.why, 0, row.scope->graph->op(row.op).name});
                }
                ++result_.uncounted[found->second].ops;
                break;
            }
        }
        if (row.sums.macs > 0) {
            OpFacts facts = facts_of(*row.scope, row.op);
            DType dtype = facts.inputs.empty() ? DType::undefined : facts.inputs[0].dtype;
            std::uint64_t& macs = result_.macs_by_dtype[name(dtype)];
            macs = plus(macs, row.sums.macs);
        }
    }

    Rows& result_;
    const Inventory& inventory_;
    const std::vector<Zeros>& zeros_;
    bool ran_;
    std::map<std::string, std::size_t> uncounted_;
};

}  // namespace

std::uint64_t Sums::flops() const {
    return plus(times(macs, 2), other_flops);
}

void Sums::add(const Sums& more, std::uint64_t n) {
    ops += more.ops * n;
    parameters = plus(parameters, times(more.parameters, n));
    parameter_bytes = plus(parameter_bytes, times(more.parameter_bytes, n));
    shared_parameters = plus(shared_parameters, times(more.shared_parameters, n));
    buffers = plus(buffers, times(more.buffers, n));
    weights = plus(weights, times(more.weights, n));
    zeros = plus(zeros, times(more.zeros, n));
    macs = plus(macs, times(more.macs, n));
    effective_macs = plus(effective_macs, times(more.effective_macs, n));
    other_flops = plus(other_flops, times(more.other_flops, n));
    read = plus(read, times(more.read, n));
    written = plus(written, times(more.written, n));
    uncounted += more.uncounted * n;
    unsized += more.unsized * n;
}

Rows count_rows(const Scope& scope, const Inventory& inventory, const std::vector<Zeros>& zeros,
                bool ran) {
    Rows result;
    result.total = Counter(result, inventory, zeros, ran).walk(scope, {});
    std::stable_sort(result.uncounted.begin(), result.uncounted.end(),
                     [](const Uncounted& a, const Uncounted& b) { return a.ops > b.ops; });
    return result;
}

std::vector<std::string> input_texts(const OpRow& row) {
    std::vector<std::string> texts;
    for (TensorId id : row.scope->graph->op(row.op).inputs) {
        texts.push_back(id == TensorId::none ? "none" : text_of(row.scope->fact(id)));
    }
    return texts;
}

std::vector<std::string> output_texts(const OpRow& row) {
    std::vector<std::string> texts;
    for (TensorId id : row.scope->graph->op(row.op).outputs) {
        if (id != TensorId::none) {
            texts.push_back(text_of(row.scope->fact(id)));
        }
    }
    return texts;
}

std::string shapes_from(const OpRow& row) {
    if (auto failed = row.scope->failures.find(row.op); failed != row.scope->failures.end()) {
        return "unavailable: " + failed->second;
    }
    Known known = Known::no;
    for (TensorId id : row.scope->graph->op(row.op).outputs) {
        known = id == TensorId::none ? known : std::max(known, row.scope->fact(id).known);
    }
    switch (known) {
        case Known::run:
            return "run";
        case Known::declared:
            return "declared";
        case Known::constant:
            return "constant";
        case Known::no:
            break;
    }
    return "unavailable: the file declares none";
}

}  // namespace trocar::summary
