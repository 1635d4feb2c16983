#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "partition/order.h"
#include "trocar/error.h"
#include "trocar/random.h"

// Parts that are neighbours in the order of the graph.
namespace trocar {

namespace {

using partitioning::Ops;

constexpr double slack = 1.05;  // of the cost of the most expensive part, for cheaper cuts

using Order = std::vector<std::size_t>;  // places of ops, each behind those that it waits for

// The order of the graph, and others, drawn, in which branches lie in another way between.
std::vector<Order> orders_of(const Ops& ops) {
    constexpr std::size_t most = 64;
    constexpr std::size_t fewest = 4;
    constexpr std::size_t work = 20'000;  // ops to order in all
    std::vector<Order> all(1, Order(ops.size()));
    std::iota(all[0].begin(), all[0].end(), std::size_t{0});
    for (auto left = std::clamp(work / ops.size(), fewest, most); left > 1; --left) {
        Order order;
        std::vector<std::size_t> waits(ops.size());
        std::vector<std::size_t> ready;
        for (std::size_t i = 0; i < ops.size(); ++i) {
            waits[i] = ops.waits(i);
            if (waits[i] == 0) {
                ready.push_back(i);
            }
        }
        while (!ready.empty()) {
            const auto drawn = philox(left, 0, order.size())[0] % ready.size();
            std::swap(ready[drawn], ready.back());
            order.push_back(ready.back());
            ready.pop_back();
            for (const auto reader : ops.readers(order.back())) {
                if (--waits[reader] == 0) {
                    ready.push_back(reader);
                }
            }
        }
        if (order != all[0]) {
            all.push_back(std::move(order));
        }
    }
    return all;
}

// Bytes of the tensors that are written up to a place and read after it.
std::vector<double> crossing_bytes(const Ops& ops, const Order& order,
                                   const PartitionCosts& costs) {
    std::vector<double> starts(ops.size() + 1, 0);
    std::unordered_map<TensorId, std::size_t> last;
    std::unordered_map<TensorId, std::size_t> written;
    for (std::size_t i = 0; i < ops.size(); ++i) {
        for (const auto id : ops.reads(order[i])) {
            last[id] = i;
        }
        for (const auto id : ops.graph().op(ops.op(order[i])).outputs) {
            if (id != TensorId::none) {
                written[id] = i;
            }
        }
    }
    for (const auto& [id, at] : written) {
        const auto read = last.find(id);
        if (read != last.end() && read->second > at) {
            const auto bytes = costs.tensor ? costs.tensor(id) : std::nullopt;
            // Not known: at least some.
            const auto size = static_cast<double>(bytes.value_or(1)) + 1;
            starts[at] += size;
            starts[read->second] -= size;
        }
    }
    for (std::size_t i = 1; i < starts.size(); ++i) {
        starts[i] += starts[i - 1];
    }
    return starts;
}

std::size_t parts_needed(const std::vector<double>& costs, double limit) {
    std::size_t parts = 1;
    double sum = 0;
    for (const auto cost : costs) {
        if (sum + cost > limit) {
            ++parts;
            sum = 0;
        }
        sum += cost;
    }
    return parts;
}

// The smallest cost of the most expensive part, with at most so many.
double least_limit(const std::vector<double>& costs, std::size_t parts) {
    double low = 0;
    double high = 0;
    for (const auto cost : costs) {
        low = std::max(low, cost);
        high += cost;
    }
    for (int i = 0; i < 100 && low < high; ++i) {
        const auto middle = low + (high - low) / 2;
        if (parts_needed(costs, middle) <= parts) {
            high = middle;
        } else {
            if (low == middle) {
                break;
            }
            low = middle;
        }
    }
    return high;
}

// Last places of parts: exactly so many, none over the limit, with the fewest bytes across.
std::vector<std::size_t> cheapest_cuts(const std::vector<double>& costs,
                                       const std::vector<double>& crossing, std::size_t parts,
                                       double limit) {
    const auto count = costs.size();
    constexpr auto never = std::numeric_limits<double>::infinity();
    std::vector<double> sums(count + 1, 0);
    for (std::size_t i = 0; i < count; ++i) {
        sums[i + 1] = sums[i] + costs[i];
    }
    // best[i]: the first i ops are in k parts. The one before ends at some j with sums[i] - sums[j]
    // within the limit: a window that only moves on.
    std::vector<double> best(count + 1, never);
    best[0] = 0;
    std::vector<std::vector<std::uint32_t>> from(parts, std::vector<std::uint32_t>(count + 1, 0));
    for (std::size_t k = 0; k < parts; ++k) {
        std::vector<double> next(count + 1, never);
        std::deque<std::size_t> window;
        for (std::size_t i = 1; i <= count; ++i) {
            while (!window.empty() && best[window.back()] >= best[i - 1]) {
                window.pop_back();
            }
            window.push_back(i - 1);
            while (!window.empty() && sums[i] - sums[window.front()] > limit) {
                window.pop_front();
            }
            if (!window.empty() && best[window.front()] < never) {
                next[i] = best[window.front()] + (i < count ? crossing[i - 1] : 0);
                from[k][i] = static_cast<std::uint32_t>(window.front());
            }
        }
        best = std::move(next);
    }
    if (best[count] == never) {
        return {};
    }
    std::vector<std::size_t> ends(parts);
    auto at = count;
    for (std::size_t k = parts; k-- > 0;) {
        ends[k] = at;
        at = from[k][at];
    }
    return ends;
}

std::vector<std::vector<std::size_t>> runs(const std::vector<std::size_t>& ends,
                                           const Order& order) {
    std::vector<std::vector<std::size_t>> parts;
    std::size_t first = 0;
    for (const auto end : ends) {
        auto& part = parts.emplace_back();
        for (; first < end; ++first) {
            part.push_back(order[first]);
        }
    }
    return parts;
}

std::uint64_t needed(const Ops& ops, std::size_t first, std::size_t end,
                     const PartitionCosts& costs) {
    std::vector<std::size_t> places(end - first);
    std::iota(places.begin(), places.end(), first);
    const auto bytes = ops.needs(places, costs);
    if (!bytes) {
        throw Error(Fault::unsupported,
                    fmt::format("sizes of tensors around {} are not known",
                                ops.graph().describe(ops.op(first))),
                    "--shape gives sizes that the model leaves open");
    }
    return *bytes;
}

}  // namespace

Partition partition_by_cost(const Model& model, std::size_t parts, const PartitionCosts& costs) {
    Ops ops(model);
    if (parts < 1 || parts > ops.size()) {
        throw Error(Fault::usage,
                    fmt::format("{} parts cannot be made of {} ops", parts, ops.size()));
    }
    std::vector<double> each(ops.size());
    double sum = 0;
    for (std::size_t i = 0; i < ops.size(); ++i) {
        each[i] = costs.op(ops.op(i));
        sum += each[i];
    }
    if (sum == 0) {
        std::fill(each.begin(), each.end(), 1.0);
    }
    const auto orders = orders_of(ops);
    std::vector<std::vector<double>> ordered;
    auto limit = std::numeric_limits<double>::infinity();
    for (const auto& order : orders) {
        auto& row = ordered.emplace_back();
        std::transform(order.begin(), order.end(), std::back_inserter(row),
                       [&](std::size_t place) { return each[place]; });
        limit = std::min(limit, least_limit(row, parts));
    }
    auto fewest = std::numeric_limits<double>::infinity();
    std::vector<std::vector<std::size_t>> best;
    for (std::size_t i = 0; i < orders.size(); ++i) {
        const auto crossing = crossing_bytes(ops, orders[i], costs);
        const auto ends = cheapest_cuts(ordered[i], crossing, parts, limit * slack);
        double bytes = 0;
        for (std::size_t k = 0; k + 1 < ends.size(); ++k) {
            bytes += crossing[ends[k] - 1];
        }
        if (!ends.empty() && bytes < fewest) {
            fewest = bytes;
            best = runs(ends, orders[i]);
        }
    }
    if (best.empty()) {
        throw Error(Fault::internal, "no cuts were found");
    }
    return ops.finish(std::move(best), {}, costs);
}

Partition partition_by_bytes(const Model& model, std::uint64_t limit, const PartitionCosts& costs) {
    Ops ops(model);
    const auto needs = [&](std::size_t from, std::size_t end) {
        return needed(ops, from, end, costs);
    };
    std::vector<std::size_t> ends;
    std::size_t first = 0;
    while (first < ops.size()) {
        if (const auto alone = needs(first, first + 1); alone > limit) {
            throw Error(Fault::unsupported,
                        fmt::format("{} alone needs {} bytes, more than the limit of {}",
                                    model.graph.describe(ops.op(first)), alone, limit));
        }
        // Twice as far while it fits, then in between.
        std::size_t fits = 1;
        std::size_t step = 1;
        while (first + fits + step <= ops.size() && needs(first, first + fits + step) <= limit) {
            fits += step;
            step *= 2;
        }
        for (; step > 0; step /= 2) {
            if (first + fits + step <= ops.size() && needs(first, first + fits + step) <= limit) {
                fits += step;
            }
        }
        first += fits;
        ends.push_back(first);
    }
    Order order(ops.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    return ops.finish(runs(ends, order), {}, costs);
}

}  // namespace trocar
