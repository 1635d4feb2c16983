#include "tools/summary/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

namespace trocar::summary {
namespace {

// A constant at the end of a chain of ops that pass it on.
struct Found {
    const Constant* constant = nullptr;
    OpId dequantize = OpId::none;  // the DequantizeLinear op on the way
    bool transposed = false;       // two dimensions were exchanged
    bool reshaped = false;         // axes have no meaning any more
};

Found trace(const Scope& scope, TensorId at) {
    Found found;
    for (int steps = 0; steps < 64; ++steps) {
        if (at == TensorId::none) {
            return {};
        }
        if (const Constant* c = scope.fact(at).constant) {
            found.constant = c;
            return found;
        }
        const Tensor& t = scope.graph->tensor(at);
        if (t.producer == OpId::none) {
            return {};
        }
        const Op& op = scope.graph->op(t.producer);
        const Passing passes = passing(op, scope.dialect);
        if (passes == Passing::no || op.inputs.empty()) {
            return {};
        }
        if (passes == Passing::dequantized) {
            found.dequantize = t.producer;
        }
        found.transposed = found.transposed != (passes == Passing::transposed);
        found.reshaped = found.reshaped || passes == Passing::reshaped;
        at = op.inputs[0];
    }
    return {};
}

class Taker {
public:
    explicit Taker(Inventory& inventory) : inventory_(inventory) {}

    void walk(const Scope& scope) {
        for (OpId id : scope.graph->ops()) {
            if (!scope.passes_constant[index(id)]) {
                take(scope, id);
            }
            if (const auto* bodies = scope.bodies_of(id)) {
                for (const Body& body : *bodies) {
                    walk(*body.scope);
                }
            }
        }
        for (TensorId id : scope.graph->tensors()) {
            const Tensor& t = scope.graph->tensor(id);
            if (t.constant && t.uses.empty() && !t.is_output) {
                ++inventory_.unread;
                inventory_.unread_bytes += t.constant->stored_bytes();
            }
        }
    }

private:
    void take(const Scope& scope, OpId id) {
        const Op& op = scope.graph->op(id);
        if (op.outputs.empty() || (scope.dialect == "tf" && scope.bodies_of(id))) {
            return;  // it only checks what others read, or passes it on to a function
        }
        std::vector<ConstantUse> uses;
        std::vector<Found> founds;
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            Found found = trace(scope, op.inputs[slot]);
            if (found.constant == nullptr) {
                continue;
            }
            if (slot == 0 && passing(op, scope.dialect) != Passing::no &&
                !feeds_output(scope, op)) {
                continue;  // belongs to whoever reads the result
            }
            const Fact& seen = scope.fact(op.inputs[slot]);
            DType dtype = found.dequantize != OpId::none && seen.dtype == DType::undefined
                              ? DType::f32
                              : seen.dtype;
            ConstantUse use{.constant = found.constant, .slot = slot};
            const auto declared = scope.role_of(*found.constant);
            use.role =
                declared.value_or(role(op, slot, dtype, found.constant->shape(), scope.dialect));
            use.declared = declared.has_value();
            use.count = parameter_count(op, slot, *found.constant);
            use.bytes = found.constant->stored_bytes();
            uses.push_back(use);
            founds.push_back(found);
        }
        if (uses.empty()) {
            return;
        }
        std::string layer = layer_of(scope, id, uses);
        for (std::size_t i = 0; i < uses.size(); ++i) {
            enter(scope, op, layer, uses[i], founds[i]);
        }
        inventory_.uses[&scope].emplace(id, std::move(uses));
    }

    static bool feeds_output(const Scope& scope, const Op& op) {
        return op.outputs.size() == 1 && op.outputs[0] != TensorId::none &&
               scope.graph->tensor(op.outputs[0]).is_output;
    }

    static std::string layer_of(const Scope& scope, OpId id, const std::vector<ConstantUse>& uses) {
        const Op& op = scope.graph->op(id);
        if (!op.origin.module.empty()) {
            return op.origin.module;
        }
        for (const ConstantUse& use : uses) {
            if (use.role == Role::weight) {
                return fmt::format("/{}", static_cast<const void*>(use.constant));
            }
        }
        return fmt::format("/{} {}", static_cast<const void*>(&scope), index(id));
    }

    void enter(const Scope& scope, const Op& op, const std::string& layer, ConstantUse& use,
               const Found& found) {
        bool first = stored_.insert(use.constant).second;
        inventory_.read_bytes += first ? use.bytes : 0;
        if (use.role == Role::weight || use.declared) {
            use.counts = weights_.insert(use.constant).second;
        } else {
            std::string place = fmt::format("{}\n{} {}", layer, op.type, use.slot);
            use.counts = !weights_.contains(use.constant) &&
                         vectors_.insert({use.constant, std::move(place)}).second;
        }
        if (is_parameter(use.role)) {
            auto [job, fresh] = jobs_.try_emplace(use.constant, inventory_.jobs.size());
            if (fresh) {
                inventory_.jobs.push_back(make_job(scope, op, use, found));
                inventory_.stored += use.count;
                inventory_.stored_bytes += use.bytes;
                ++inventory_.stored_tensors;
                auto& [count, bytes] = inventory_.by_dtype[use.constant->dtype()];
                count += use.count;
                bytes += use.bytes;
            }
            use.scan = job->second;
            if (use.counts) {
                inventory_.parameters += use.count;
                inventory_.parameter_bytes += use.bytes;
            }
        } else if (use.role == Role::buffer) {
            if (use.counts) {
                inventory_.buffers += use.count;
                inventory_.buffer_bytes += use.bytes;
            }
        } else if (first) {
            inventory_.constants += use.count;
            inventory_.constant_bytes += use.bytes;
        }
    }

    // The one number that a zero point holds, of whatever type; nullopt when it holds several.
    static std::optional<std::uint64_t> single_code(const Constant& zero) {
        if (zero.is_sparse() || zero.is_string()) {
            return std::nullopt;
        }
        Bytes bytes = zero.bytes();
        std::size_t width = std::max<std::size_t>(bits(zero.dtype()) / 8, 1);
        if (bytes.size() < width || width > 8 || bits(zero.dtype()) < 8) {
            bool blank = std::all_of(bytes.begin(), bytes.end(),
                                     [](std::byte b) { return b == std::byte{0}; });
            return blank ? std::optional<std::uint64_t>(0) : std::nullopt;
        }
        for (std::size_t at = width; at + width <= bytes.size(); at += width) {
            if (std::memcmp(bytes.data(), bytes.data() + at, width) != 0) {
                return std::nullopt;
            }
        }
        std::uint64_t code = 0;
        std::memcpy(&code, bytes.data(), width);
        return code;
    }

    static ScanJob make_job(const Scope& scope, const Op& op, const ConstantUse& use,
                            const Found& found) {
        ScanJob job;
        job.constant = use.constant;
        std::size_t rank = use.constant->shape().size();
        if (!found.reshaped && (!found.transposed || rank == 2)) {
            job.axes = weight_axes(op, use.slot, rank, scope.dialect);
            if (job.axes && found.transposed) {
                std::swap(job.axes->output, job.axes->reduced);
            }
        }
        const Op* quantizer = &op;
        std::size_t zero_slot = 0;
        if (found.dequantize != OpId::none) {
            quantizer = &scope.graph->op(found.dequantize);
            zero_slot = 2;
        } else if ((op.type == "QLinearConv" || op.type == "QLinearMatMul") && use.slot == 3) {
            zero_slot = 5;
        } else if ((op.type == "MatMulInteger" || op.type == "ConvInteger") && use.slot == 1) {
            zero_slot = 3;
        } else if (op.type == "MatMulNBits" && use.slot == 1) {
            zero_slot = 3;
            std::int64_t width = op.integer("bits", 4);
            job.as = width == 4 ? DType::u4 : width == 2 ? DType::u2 : DType::u8;
            job.zero_code = std::uint64_t{1} << (std::clamp<std::int64_t>(width, 1, 8) - 1);
        }
        if (zero_slot != 0 && zero_slot < quantizer->inputs.size() &&
            quantizer->inputs[zero_slot] != TensorId::none) {
            const Constant* zero = scope.fact(quantizer->inputs[zero_slot]).constant;
            auto code = zero ? single_code(*zero) : std::nullopt;
            if (code && job.as == DType::undefined) {
                job.zero_code = *code;
            } else {
                job.skip = "the zero point differs within the weight";
            }
        }
        return job;
    }

    Inventory& inventory_;
    std::set<const Constant*> stored_;
    std::unordered_map<const Constant*, std::size_t> jobs_;
    std::set<const Constant*> weights_;
    std::set<std::pair<const Constant*, std::string>> vectors_;
};

}  // namespace

const std::vector<ConstantUse>& Inventory::of(const Scope& scope, OpId op) const {
    static const std::vector<ConstantUse> none;
    auto graph = uses.find(&scope);
    if (graph == uses.end()) {
        return none;
    }
    auto found = graph->second.find(op);
    return found == graph->second.end() ? none : found->second;
}

Inventory take_inventory(const Scope& scope) {
    Inventory inventory;
    Taker(inventory).walk(scope);
    return inventory;
}

}  // namespace trocar::summary
