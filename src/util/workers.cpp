#include "util/workers.h"

#include <unistd.h>

#include <atomic>
#include <mutex>
#include <thread>

namespace trocar {

namespace {

// Threads that sleep until there is work. Never destroyed: they may sleep when the process ends.
class Workers {
public:
    void run(int threads, std::size_t parts, const std::function<void(std::size_t)>& work) {
        for (; started_ < threads - 1; ++started_) {
            std::thread([this] { serve(); }).detach();
        }
        work_ = &work;
        parts_ = parts;
        next_ = 0;
        // Those that come too late find the door shut and sleep on.
        inside_ = open;
        ++round_;
        round_.notify_all();
        take_parts();
        inside_ -= open;
        while (inside_ != 0) {
            std::this_thread::yield();
        }
    }

private:
    static constexpr int open = 1 << 20;

    void take_parts() {
        for (auto part = next_++; part < parts_; part = next_++) {
            (*work_)(part);
        }
    }

    bool enter() {
        auto inside = inside_.load();
        while (inside >= open) {
            if (inside_.compare_exchange_weak(inside, inside + 1)) {
                return true;
            }
        }
        return false;
    }

    void serve() {
        for (unsigned seen = 0;;) {
            round_.wait(seen);
            seen = round_;
            if (enter()) {
                take_parts();
                --inside_;
            }
        }
    }

    int started_ = 0;
    const std::function<void(std::size_t)>* work_ = nullptr;
    std::size_t parts_ = 0;
    std::atomic<std::size_t> next_ = 0;
    std::atomic<unsigned> round_ = 0;
    std::atomic<int> inside_ = 0;  // workers at work, and `open` while they may come in
};

}  // namespace

void work_together(int threads, std::size_t parts, const std::function<void(std::size_t)>& work) {
    static std::mutex busy;
    static Workers* workers = nullptr;
    static pid_t owner = 0;
    const std::unique_lock lock(busy, std::try_to_lock);
    if (threads < 2 || parts < 2 || !lock) {
        for (std::size_t part = 0; part < parts; ++part) {
            work(part);
        }
        return;
    }
    if (owner != ::getpid()) {  // a child process has none of its parent's threads
        workers = new Workers;
        owner = ::getpid();
    }
    workers->run(threads, parts, work);
}

}  // namespace trocar
