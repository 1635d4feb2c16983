#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"

namespace trocar {

// What a worker does: a function without state of the program or library that the fork server is
// in. The channel is a socket to whoever asked for the worker, `more` are descriptors that came
// along. The worker ends when the function returns.
using WorkerJob = void (*)(Descriptor channel, const std::string& arguments,
                           std::vector<Descriptor> more);

// A process that the fork server made. It ends with the object, and with the process that started
// the server.
class Worker {
public:
    Worker(Worker&& other) noexcept;
    Worker& operator=(Worker&& other) = delete;
    ~Worker();

    pid_t id() const { return id_; }
    int channel() const { return channel_.get(); }
    // Waits for its end so long, then kills it. Returns its wait status; that of SIGKILL where the
    // server is gone.
    int end(std::chrono::milliseconds patience);

private:
    friend class ForkServer;
    Worker(pid_t id, Descriptor channel) : id_(id), channel_(std::move(channel)) {}

    pid_t id_;
    Descriptor channel_;
    int status_ = 0;
};

// A process that is forked before there is any other thread, stays with one thread for life, and
// forks workers: they have none of the threads, locks and engines of the process that asks, and
// start their own. It ends with the process that started it.
class ForkServer {
public:
    // To be called first in a program. Nothing where there is one already. Throws Error(usage)
    // where this process has other threads, Error(engine) where no process can be started.
    static void start();
    // Ends it; to be called last in a program. It ends by itself, too, but a moment later.
    static void stop();
    // nullptr: none was started.
    static ForkServer* running();

    // Any thread may ask. `more` is only lent. Throws Error(engine) where no process can be
    // started, or the server gives no answer.
    Worker fork(WorkerJob job, std::string_view arguments, std::span<const int> more = {});

    pid_t id() const { return id_; }

private:
    friend class Worker;
    ForkServer(pid_t id, Descriptor socket) : id_(id), socket_(std::move(socket)) {}
    bool has_ended(pid_t worker, int& status);

    pid_t id_;
    Descriptor socket_;
};

}  // namespace trocar
