#pragma once

#include <vector>

#include "trocar/partition.h"

namespace trocar::partitioning {

// The ops that run, in an order in which inputs come first, and what they read of one another.
class Ops {
public:
    explicit Ops(const Model& model);

    const Model& model() const { return model_; }
    const Graph& graph() const { return model_.graph; }
    std::size_t size() const { return order_.size(); }
    OpId op(std::size_t place) const { return order_[place]; }
    // Places of the ops that read what the op at a place makes; each once.
    const std::vector<std::size_t>& readers(std::size_t place) const { return readers_[place]; }
    std::size_t waits(std::size_t place) const { return waits_[place]; }
    const Plan& plan() const { return plan_; }
    // Tensors that an op reads, constants left out, and those it writes.
    std::vector<TensorId> reads(std::size_t place) const;
    std::vector<const Constant*> constants(std::size_t place) const;

    // Bytes of constants, and of the tensors that are there at once while these ops (in order) run
    // one by one; what others read later stays to the end. Nothing where a size is not known.
    std::optional<std::uint64_t> needs(std::span<const std::size_t> places,
                                       const PartitionCosts& costs) const;

    // Parts of these ops, in this order.
    Partition finish(std::vector<std::vector<std::size_t>> parts,
                     const std::vector<std::string>& devices, const PartitionCosts& costs);

private:
    void connect(Partition& made) const;

    const Model& model_;
    Plan plan_;
    std::vector<OpId> order_;
    std::vector<std::size_t> place_;  // by OpId
    std::vector<std::vector<std::size_t>> readers_;
    std::vector<std::size_t> waits_;
};

inline constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

}  // namespace trocar::partitioning
