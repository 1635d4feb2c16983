#include "run/isolate.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "base/process.h"
#include "trocar/error.h"

namespace trocar {

namespace {

using Clock = std::chrono::steady_clock;

Message failure_message(Fault fault, const std::string& sentence, const std::string& hint = {}) {
    Message message;
    message.kind = Message::Kind::failure;
    message.detail = static_cast<std::uint32_t>(fault);
    message.text = sentence;
    message.hint = hint;
    return message;
}

// Runs `work` and gives its message, or that of the exception it ended with.
template <class F>
Message guarded(const F& work) {
    try {
        return work();
    } catch (const Error& e) {
        return failure_message(e.fault(), e.what(), e.hint());
    } catch (const std::bad_alloc&) {
        return failure_message(Fault::engine, "the engine's process ran out of memory");
    } catch (const std::exception& e) {
        return failure_message(Fault::internal, e.what());
    } catch (...) {
        return failure_message(Fault::internal, "an unknown exception ended the work");
    }
}

// The child's side. Never returns: what the parent has registered to run at its end is not the
// child's.
class Child {
public:
    explicit Child(int socket) : socket_(socket) {}

    [[noreturn]] void serve(const std::function<Isolated::Work(const Log&)>& prepare) {
        const Log log = [this](LogLevel level, std::string_view text) {
            Message message;
            message.kind = Message::Kind::log;
            message.detail = static_cast<std::uint32_t>(level);
            message.text = text;
            send(message);
        };
        Isolated::Work work;
        const auto first = guarded([&] {
            work = prepare(log);
            return Message{};
        });
        send(first);
        if (first.kind == Message::Kind::failure) {
            ::_exit(0);
        }
        for (Message request; receive_message(socket_, request);) {
            send(guarded([&] {
                Message result;
                result.kind = Message::Kind::result;
                result.values = work(request.values);
                return result;
            }));
            request = {};
        }
        ::_exit(0);
    }

private:
    void send(const Message& message) {
        const std::lock_guard lock(mutex_);
        bool sent = false;
        try {
            sent = send_message(socket_, message);
        } catch (const Error& e) {
            sent = send_message(socket_, failure_message(e.fault(), e.what(), e.hint()));
        }
        if (!sent) {
            ::_exit(0);  // the parent is gone
        }
    }

    int socket_;
    std::mutex mutex_;  // log lines come from any thread of the engine
};

// Puts the child in order: it has no descriptors of its parent but the two given.
int take_streams(int socket, int noise) {
    // Above what is moved below, so that no number is overwritten before it is used.
    const int kept_socket = ::fcntl(socket, F_DUPFD, 16);
    const int kept_noise = ::fcntl(noise, F_DUPFD, 16);
    const int nothing = ::open("/dev/null", O_RDONLY);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(kept_noise, STDOUT_FILENO);
    ::dup2(kept_noise, STDERR_FILENO);
    constexpr int child_socket = 3;
    ::dup3(kept_socket, child_socket, O_CLOEXEC);
    ::close_range(child_socket + 1, ~0U, 0);
    return child_socket;
}

}  // namespace

Isolated::Isolated(const std::function<Work(const Log&)>& prepare, Options options)
    : options_(std::move(options)) {
    int sockets[2];
    int pipes[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
        throw Error(Fault::engine,
                    fmt::format("no process can be started: {}", std::strerror(errno)));
    }
    socket_ = Descriptor(sockets[0]);
    Descriptor child_socket(sockets[1]);
    if (::pipe2(pipes, O_CLOEXEC) != 0) {
        throw Error(Fault::engine,
                    fmt::format("no process can be started: {}", std::strerror(errno)));
    }
    noise_ = Descriptor(pipes[0]);
    Descriptor child_noise(pipes[1]);
    ::fcntl(noise_.get(), F_SETFL, O_NONBLOCK);
    if (options_.timeout.count() > 0) {  // also in the midst of a message
        const timeval limit{options_.timeout.count() / 1000,
                            options_.timeout.count() % 1000 * 1000};
        ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    }

    const auto parent = ::getpid();
    child_ = ::fork();
    if (child_ < 0) {
        throw Error(Fault::engine,
                    fmt::format("no process can be started: {}", std::strerror(errno)));
    }
    if (child_ == 0) {
        settle_child(parent);
        Child(take_streams(child_socket.get(), child_noise.get())).serve(prepare);
    }
    // Only the child may hold its ends: their closing tells of its death.
    child_socket.reset();
    child_noise.reset();
    try {
        (void)answer();
    } catch (...) {
        reap({});
        throw;
    }
}

Isolated::~Isolated() {
    reap({});
}

// The wait status of the child. There is no child after this.
int Isolated::reap(std::chrono::milliseconds patience) {
    if (child_ <= 0) {
        return 0;
    }
    const int status = end_child(child_, patience);
    child_ = -1;
    socket_.reset();
    read_noise();
    log_noise();
    noise_.reset();
    return status;
}

void Isolated::fail(End end, const std::string& how) {
    end_ = end;
    failure_ = fmt::format("{} while {}", how, options_.doing);
    throw Error(Fault::engine, failure_);
}

void Isolated::fail_dead() {
    const int status = reap(std::chrono::seconds(2));
    if (WIFSIGNALED(status)) {
        fail(End::crashed, fmt::format("the engine crashed ({})", signal_name(WTERMSIG(status))));
    }
    fail(End::exited,
         fmt::format("the engine's process ended (exit code {})", WEXITSTATUS(status)));
}

void Isolated::log_noise() {
    if (options_.log && !noise_line_.empty()) {
        options_.log(LogLevel::debug, noise_line_);
    }
    noise_line_.clear();
}

// What the child has written so far, line by line to the log.
void Isolated::read_noise() {
    if (!noise_.is_open()) {
        return;
    }
    char buffer[4096];
    constexpr std::size_t longest_line = 65536;
    for (;;) {
        const auto count = ::read(noise_.get(), buffer, sizeof buffer);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count == 0) {
            noise_.reset();
            break;
        }
        if (count < 0) {
            break;
        }
        for (const char c : std::string_view(buffer, static_cast<std::size_t>(count))) {
            if (c != '\n' && noise_line_.size() < longest_line) {
                noise_line_ += c;
            } else {
                log_noise();
            }
        }
    }
}

// The next message that is no log line. Throws the Error it carries.
Message Isolated::answer() {
    const auto start = Clock::now();
    for (;;) {
        int wait = -1;
        if (options_.timeout.count() > 0) {
            const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                options_.timeout - (Clock::now() - start));
            if (left.count() <= 0) {
                reap({});
                fail(End::silent,
                     fmt::format("the engine gave no answer within {:g} s",
                                 static_cast<double>(options_.timeout.count()) / 1000));
            }
            wait = static_cast<int>(std::min<std::int64_t>(left.count(), 1 << 30));
        }
        if (options_.memory_limit > 0) {
            constexpr int watch_ms = 20;
            wait = wait < 0 ? watch_ms : std::min(wait, watch_ms);
            if (resident_bytes(child_) > options_.memory_limit) {
                reap({});
                fail(End::over_memory, fmt::format("the engine's process took more than {} MiB",
                                                   options_.memory_limit >> 20));
            }
        }
        pollfd sources[2]{{socket_.get(), POLLIN, 0}, {noise_.get(), POLLIN, 0}};
        if (::poll(sources, 2, wait) <= 0) {
            continue;  // a signal, or the time is over
        }
        if (sources[1].revents != 0) {
            read_noise();
        }
        if (sources[0].revents == 0) {
            continue;
        }
        Message message;
        bool received = false;
        try {
            received = receive_message(socket_.get(), message);
        } catch (const Error& e) {
            reap({});
            failure_ = e.what();
            throw;
        }
        if (!received) {
            fail_dead();
        }
        if (message.kind == Message::Kind::failure) {
            throw Error(std::min(static_cast<Fault>(message.detail), Fault::internal), message.text,
                        message.hint);
        }
        if (message.kind != Message::Kind::log) {
            return message;
        }
        if (options_.log) {
            options_.log(std::min(static_cast<LogLevel>(message.detail), LogLevel::error),
                         message.text);
        }
    }
}

std::vector<NamedValue> Isolated::run(const std::vector<NamedValue>& inputs) {
    if (!alive()) {
        throw Error(Fault::engine, failure_);
    }
    Message request;
    request.kind = Message::Kind::run;
    request.values = inputs;
    if (!send_message(socket_.get(), request)) {
        fail_dead();
    }
    return answer().values;
}

}  // namespace trocar
