#include "trocar/liveness.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace trocar {
namespace {

void add(std::uint64_t& sum, std::uint64_t more) {
    if (__builtin_add_overflow(sum, more, &sum)) {
        sum = std::numeric_limits<std::int64_t>::max();
    }
}

}  // namespace

Liveness liveness(const Graph& graph,
                  const std::function<std::optional<std::uint64_t>(TensorId)>& bytes,
                  const std::function<std::uint64_t(OpId)>& inside) {
    Liveness result;
    std::vector<std::uint64_t> size(graph.tensor_limit());
    std::vector<std::uint32_t> readers(graph.tensor_limit());
    auto measure = [&](TensorId id) {
        std::optional<std::uint64_t> n = bytes(id);
        result.unknown += n ? 0 : 1;
        size[index(id)] = n.value_or(0);
        add(result.total_bytes, size[index(id)]);
        readers[index(id)] = static_cast<std::uint32_t>(graph.tensor(id).uses.size());
    };

    std::uint64_t live = 0;
    for (TensorId id : graph.inputs()) {
        if (!graph.tensor(id).constant) {
            measure(id);
            add(live, size[index(id)]);
        }
    }
    result.peak_bytes = live;
    auto release = [&](TensorId id) {
        if (!graph.tensor(id).is_output) {
            live -= std::min(live, size[index(id)]);
        }
    };
    for (OpId op_id : graph.ops()) {
        const Op& op = graph.op(op_id);
        for (TensorId id : op.outputs) {
            if (id != TensorId::none) {
                measure(id);
                add(live, size[index(id)]);
            }
        }
        std::uint64_t now = live;
        if (inside) {
            add(now, inside(op_id));
        }
        if (now > result.peak_bytes || result.peak == OpId::none) {
            result.peak_bytes = now;
            result.peak = op_id;
        }
        auto read = [&](TensorId id) {
            if (id != TensorId::none && readers[index(id)] > 0 && --readers[index(id)] == 0) {
                release(id);
            }
        };
        for (TensorId id : op.inputs) {
            read(id);
        }
        for (TensorId id : op.captures) {
            read(id);
        }
        for (TensorId id : op.outputs) {
            if (id != TensorId::none && graph.tensor(id).uses.empty()) {
                release(id);
            }
        }
    }
    return result;
}

}  // namespace trocar
