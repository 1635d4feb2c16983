#pragma once

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/descriptor.h"
#include "inject/patience.h"
#include "trocar/error.h"

namespace trocar::inject {

// Which trials are under way, and since when: written by a child's workers, read by its parent,
// also after the child's death.
class Board {
public:
    // For so many workers, with so many trials each at the same time. `memory`: of another process,
    // which has one of this size.
    Board(std::size_t workers, std::size_t lanes, Descriptor memory = {})
        : lanes_(std::max<std::size_t>(1, lanes)),
          slots_(std::max<std::size_t>(1, workers)),
          memory_(memory.is_open() ? std::move(memory)
                                   : Descriptor(::memfd_create("trocar-board", MFD_CLOEXEC))) {
        void* shared = MAP_FAILED;
        if (memory_.is_open() && ::ftruncate(memory_.get(), static_cast<off_t>(size())) == 0) {
            shared = ::mmap(nullptr, size(), PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
        }
        if (shared == MAP_FAILED) {
            throw Error(Fault::engine, fmt::format("no memory to share: {}", std::strerror(errno)));
        }
        words_ = static_cast<Word*>(shared);
    }
    Board(const Board&) = delete;
    Board& operator=(const Board&) = delete;
    ~Board() { ::munmap(words_, size()); }

    int memory() const { return memory_.get(); }

    void begin(std::size_t worker, std::span<const std::uint64_t> trials) {
        auto* slot = at(worker);
        for (std::size_t i = 0; i < trials.size() && i < lanes_; ++i) {
            slot[head + i].store(trials[i], std::memory_order_relaxed);
        }
        const auto now = Clocks::now();
        slot[1].store(std::bit_cast<std::uint64_t>(now.wall), std::memory_order_relaxed);
        slot[2].store(std::bit_cast<std::uint64_t>(now.busy), std::memory_order_relaxed);
        slot[0].store(trials.size(), std::memory_order_release);
    }
    void end(std::size_t worker) { at(worker)[0].store(0, std::memory_order_release); }

    // Has one of those under way been so for too long, by the child's clocks? `workers` of it share
    // the processor's time.
    bool is_over(const Clocks& now, int workers, const Patience& patience, double factor) const {
        for (std::size_t w = 0; w < slots_; ++w) {
            if (at(w)[0].load(std::memory_order_acquire) > 0) {
                auto taken =
                    now - Clocks{std::bit_cast<double>(at(w)[1].load(std::memory_order_relaxed)),
                                 std::bit_cast<double>(at(w)[2].load(std::memory_order_relaxed))};
                taken.busy /= std::max(1, workers);
                if (patience.is_over(taken, factor)) {
                    return true;
                }
            }
        }
        return false;
    }
    std::vector<std::uint64_t> under_way() const {
        std::vector<std::uint64_t> trials;
        for (std::size_t w = 0; w < slots_; ++w) {
            const auto count = at(w)[0].load(std::memory_order_acquire);
            for (std::size_t i = 0; i < count && i < lanes_; ++i) {
                trials.push_back(at(w)[head + i].load(std::memory_order_relaxed));
            }
        }
        return trials;
    }

private:
    using Word = std::atomic<std::uint64_t>;
    static_assert(Word::is_always_lock_free);
    static constexpr std::size_t head = 3;  // number of trials, clocks at their beginning
    std::size_t size() const { return slots_ * (head + lanes_) * sizeof(Word); }
    Word* at(std::size_t worker) const { return words_ + worker * (head + lanes_); }

    std::size_t lanes_;
    std::size_t slots_;
    Descriptor memory_;
    Word* words_ = nullptr;
};

}  // namespace trocar::inject
