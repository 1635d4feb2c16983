#include "formats/executorch/memory_plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <queue>
#include <set>

namespace trocar::executorch {

namespace {

std::uint64_t aligned(std::uint64_t size) {
    return (size + tensor_alignment - 1) / tensor_alignment * tensor_alignment;
}

// Memory that grows at its end, with gaps in it.
class Gaps {
public:
    std::uint64_t take(std::uint64_t bytes) {
        const auto fits = by_size_.lower_bound({bytes, 0});
        if (fits != by_size_.end()) {
            const auto [size, offset] = *fits;
            drop(offset, size);
            if (size > bytes) {
                add(offset + bytes, size - bytes);
            }
            return offset;
        }
        // A gap at the end is a beginning.
        auto offset = size_;
        if (!by_offset_.empty()) {
            const auto last = std::prev(by_offset_.end());
            if (last->first + last->second == size_) {
                offset = last->first;
                drop(last->first, last->second);
            }
        }
        size_ = offset + bytes;
        return offset;
    }

    void give(std::uint64_t offset, std::uint64_t bytes) {
        auto after = by_offset_.upper_bound(offset);
        if (after != by_offset_.end() && after->first == offset + bytes) {
            const auto [at, size] = *after;
            drop(at, size);
            bytes += size;
        }
        after = by_offset_.upper_bound(offset);
        if (after != by_offset_.begin()) {
            const auto [at, size] = *std::prev(after);
            if (at + size == offset) {
                drop(at, size);
                offset = at;
                bytes += size;
            }
        }
        add(offset, bytes);
    }
    std::uint64_t size() const { return size_; }

private:
    void add(std::uint64_t offset, std::uint64_t bytes) {
        by_offset_.emplace(offset, bytes);
        by_size_.emplace(bytes, offset);
    }
    void drop(std::uint64_t offset, std::uint64_t bytes) {
        by_offset_.erase(offset);
        by_size_.erase({bytes, offset});
    }
    std::map<std::uint64_t, std::uint64_t> by_offset_;
    std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;
    std::uint64_t size_ = 0;
};

}  // namespace

MemoryPlan plan_memory(std::span<const Lifetime> tensors) {
    MemoryPlan plan;
    plan.offsets.resize(tensors.size());
    std::vector<std::size_t> order(tensors.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    // Of those that begin together the largest first.
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return tensors[a].first != tensors[b].first ? tensors[a].first < tensors[b].first
                                                    : tensors[a].bytes > tensors[b].bytes;
    });
    Gaps gaps;
    using End = std::pair<std::size_t, std::size_t>;  // last step, tensor
    std::priority_queue<End, std::vector<End>, std::greater<>> living;
    for (const auto one : order) {
        const auto bytes = aligned(tensors[one].bytes);
        if (bytes == 0) {
            continue;
        }
        while (!living.empty() && living.top().first < tensors[one].first) {
            const auto gone = living.top().second;
            living.pop();
            gaps.give(plan.offsets[gone], aligned(tensors[gone].bytes));
        }
        plan.offsets[one] = gaps.take(bytes);
        living.emplace(tensors[one].last, one);
    }
    plan.size = gaps.size();
    return plan;
}

}  // namespace trocar::executorch
