#include "base/fork_server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include "base/process.h"
#include "trocar/error.h"

namespace trocar {

namespace {

using Clock = std::chrono::steady_clock;
constexpr int answer_ms = 10000;  // the server only forks and waits for nobody
constexpr std::size_t most_descriptors = 16;
constexpr std::chrono::seconds to_die{10};  // of SIGKILL

struct Request {
    enum class Kind : std::uint32_t { fork, wait } kind = Kind::fork;
    pid_t worker = 0;
    WorkerJob job = nullptr;  // the server has the same program at the same place
};
struct Answer {
    pid_t worker = 0;  // < 0: none could be made
    int error = 0;
    bool ended = false;
    int status = 0;
};

Error failed(int reason) {
    return {Fault::engine, fmt::format("no process can be started: {}", std::strerror(reason))};
}

// A request and the descriptors that come along.
bool send_request(int socket, const Request& request, std::span<const int> descriptors) {
    iovec bytes{const_cast<Request*>(&request), sizeof request};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(most_descriptors * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    if (!descriptors.empty()) {
        message.msg_control = control.data();
        message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
        auto* head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(descriptors.size_bytes());
        std::memcpy(CMSG_DATA(head), descriptors.data(), descriptors.size_bytes());
    }
    return ::sendmsg(socket, &message, MSG_NOSIGNAL) == sizeof request;
}

// False: nobody asks any more.
bool receive_request(int socket, Request& request, std::vector<Descriptor>& descriptors) {
    iovec bytes{&request, sizeof request};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(most_descriptors * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    ssize_t count = 0;
    do {
        count = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    } while (count < 0 && errno == EINTR);
    for (auto* head = CMSG_FIRSTHDR(&message); count > 0 && head != nullptr;
         head = CMSG_NXTHDR(&message, head)) {
        if (head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) {
            const auto number = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            std::vector<int> numbers(number);
            std::memcpy(numbers.data(), CMSG_DATA(head), number * sizeof(int));
            for (const int fd : numbers) {
                descriptors.emplace_back(fd);
            }
        }
    }
    return count == sizeof request;
}

Descriptor memory_with(std::string_view bytes) {
    Descriptor memory(::memfd_create("trocar-arguments", MFD_CLOEXEC));
    for (std::size_t done = 0; memory.is_open() && done < bytes.size();) {
        const auto count = ::write(memory.get(), bytes.data() + done, bytes.size() - done);
        if (count < 0 && errno != EINTR) {
            throw failed(errno);
        }
        done += count > 0 ? static_cast<std::size_t>(count) : 0;
    }
    if (!memory.is_open()) {
        throw failed(errno);
    }
    return memory;
}

std::string bytes_in(int memory) {
    struct stat about {};
    std::string bytes;
    if (::fstat(memory, &about) == 0) {
        bytes.resize(static_cast<std::size_t>(about.st_size));
    }
    for (std::size_t done = 0; done < bytes.size();) {
        const auto count =
            ::pread(memory, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
        if (count <= 0) {
            ::_exit(1);
        }
        done += static_cast<std::size_t>(count);
    }
    return bytes;
}

// The first two descriptors: the worker's end of its channel, its arguments.
[[noreturn]] void work(const Request& request, std::vector<Descriptor> descriptors, pid_t server) {
    settle_child(server);
    const auto arguments = bytes_in(descriptors.at(1).get());
    auto channel = std::move(descriptors[0]);
    descriptors.erase(descriptors.begin(), descriptors.begin() + 2);
    try {
        request.job(std::move(channel), arguments, std::move(descriptors));
    } catch (...) {
        ::_exit(1);  // a job tells of its failures on its channel
    }
    ::_exit(0);
}

[[noreturn]] void serve(Descriptor socket, pid_t parent, const sigset_t& before) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) {
        ::_exit(0);
    }
    // What ends a program is for the process that asks; this one ends with it.
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) {
        ::signal(signal, SIG_IGN);
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    const auto self = ::getpid();
    for (;;) {
        Request request;
        std::vector<Descriptor> descriptors;
        if (!receive_request(socket.get(), request, descriptors)) {
            ::_exit(0);
        }
        Answer answer;
        if (request.kind == Request::Kind::wait) {
            answer.worker = ::waitpid(request.worker, &answer.status, WNOHANG);
            answer.error = errno;
            answer.ended = answer.worker != 0;
        } else if (descriptors.size() >= 2) {
            answer.worker = ::fork();
            answer.error = errno;
            if (answer.worker == 0) {
                socket.reset();
                work(request, std::move(descriptors), self);
            }
        } else {
            answer.worker = -1;
            answer.error = EMFILE;  // they did not all fit
        }
        if (::send(socket.get(), &answer, sizeof answer, MSG_NOSIGNAL) != sizeof answer) {
            ::_exit(0);
        }
    }
}

// One question at a time. Never destroyed: workers may outlive static objects.
std::mutex& asking() {
    static auto& mutex = *new std::mutex;
    return mutex;
}
ForkServer* the_server = nullptr;

// Nothing: the server gives no answer.
std::optional<Answer> ask(int socket, const Request& request, std::span<const int> descriptors) {
    const std::lock_guard lock(asking());
    if (!send_request(socket, request, descriptors)) {
        return std::nullopt;
    }
    const auto end = Clock::now() + std::chrono::milliseconds(answer_ms);
    for (;;) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
        pollfd source{socket, POLLIN, 0};
        const int ready = ::poll(&source, 1, static_cast<int>(std::max<std::int64_t>(0, left)));
        if (ready < 0 && errno == EINTR && left > 0) {
            continue;
        }
        Answer answer;
        if (ready <= 0 || ::recv(socket, &answer, sizeof answer, 0) != sizeof answer) {
            ::shutdown(socket, SHUT_RDWR);  // what comes late would answer another question
            return std::nullopt;
        }
        return answer;
    }
}

}  // namespace

void ForkServer::start() {
    if (the_server != nullptr) {
        return;
    }
    if (const auto threads = thread_count_of_process(); threads != 1) {
        throw Error(Fault::usage,
                    fmt::format("the process that starts workers must be started before there are "
                                "threads, and there are {}",
                                threads),
                    "start it first");
    }
    int sockets[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
        throw failed(errno);
    }
    Descriptor mine(sockets[0]);
    Descriptor other(sockets[1]);
    const auto parent = ::getpid();
    // No signal comes to the child before it ignores them.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    const auto child = ::fork();
    const int reason = errno;
    if (child == 0) {
        mine.reset();
        serve(std::move(other), parent, before);
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (child < 0) {
        throw failed(reason);
    }
    the_server = new ForkServer(child, std::move(mine));
}

void ForkServer::stop() {
    if (the_server == nullptr) {
        return;
    }
    the_server->socket_.reset();
    end_child(the_server->id_, std::chrono::milliseconds(500));
    delete std::exchange(the_server, nullptr);
}

ForkServer* ForkServer::running() {
    return the_server;
}

Worker ForkServer::fork(WorkerJob job, std::string_view arguments, std::span<const int> more) {
    int sockets[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
        throw failed(errno);
    }
    Descriptor mine(sockets[0]);
    const Descriptor other(sockets[1]);
    const auto memory = memory_with(arguments);
    std::vector<int> all{other.get(), memory.get()};
    all.insert(all.end(), more.begin(), more.end());
    if (all.size() > most_descriptors) {
        throw failed(EMFILE);
    }
    const auto answer = ask(socket_.get(), {Request::Kind::fork, 0, job}, all);
    if (!answer) {
        throw Error(Fault::engine, "the process that starts workers gives no answer");
    }
    if (answer->worker < 0) {
        throw failed(answer->error);
    }
    return {answer->worker, std::move(mine)};
}

bool ForkServer::has_ended(pid_t worker, int& status) {
    const auto answer = ask(socket_.get(), {Request::Kind::wait, worker, nullptr}, {});
    if (!answer || answer->worker < 0) {
        status = SIGKILL;  // with the server, all workers are gone
        return true;
    }
    status = answer->status;
    return answer->ended;
}

Worker::Worker(Worker&& other) noexcept
    : id_(std::exchange(other.id_, -1)),
      channel_(std::move(other.channel_)),
      status_(other.status_) {}

Worker::~Worker() {
    end({});
}

int Worker::end(std::chrono::milliseconds patience) {
    if (id_ <= 0) {
        return status_;
    }
    auto* server = ForkServer::running();
    const auto ends_within = [&](std::chrono::milliseconds time) {
        for (const auto end = Clock::now() + time;;) {
            if (server == nullptr || server->has_ended(id_, status_)) {
                return true;
            }
            if (Clock::now() >= end) {
                return false;
            }
            ::usleep(1000);
        }
    };
    if (patience.count() <= 0 || !ends_within(patience)) {
        ::kill(id_, SIGKILL);
        if (!ends_within(to_die)) {
            status_ = SIGKILL;
        }
    }
    id_ = -1;
    channel_.reset();
    return status_;
}

}  // namespace trocar
