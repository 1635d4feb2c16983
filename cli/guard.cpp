#include "cli/guard.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/fork_server.h"
#include "trocar/error.h"

namespace trocar::cli {

namespace {

constexpr std::size_t note_size = 4096;

volatile std::sig_atomic_t child_of_guard = 0;

extern "C" void pass_on(int signal) {
    ::kill(static_cast<pid_t>(child_of_guard), signal);
}

// The child is of this process's group: Ctrl-C reaches it without us.
void wait_quietly(pid_t child) {
    child_of_guard = child;
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGQUIT, SIG_IGN);
    for (const int signal : {SIGTERM, SIGHUP}) {
        std::signal(signal, pass_on);
    }
}

const char* name_of(int signal) {
    const auto* name = ::sigabbrev_np(signal);
    return name != nullptr ? name : "?";
}

}  // namespace

void start_fork_server() {
    try {
        ForkServer::start();
    } catch (const Error&) {
        // What needs a worker does without, and says so.
    }
}

void stop_fork_server() {
    ForkServer::stop();
}

Guard::~Guard() {
    if (note_ != nullptr) {
        ::munmap(note_, note_size);
    }
}

void Guard::enter() {
    auto* shared =
        ::mmap(nullptr, note_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        throw Error(Fault::internal, fmt::format("no memory to share: {}", std::strerror(errno)));
    }
    note_ = static_cast<char*>(shared);
    const auto parent = ::getpid();
    const auto child = ::fork();
    if (child < 0) {
        throw Error(Fault::internal,
                    fmt::format("a process could not be started: {}", std::strerror(errno)),
                    "run without isolation");
    }
    if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) {
            ::_exit(1);
        }
        return;
    }
    wait_quietly(child);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFSIGNALED(status)) {
        throw ChildEnded{WEXITSTATUS(status)};
    }
    const auto signal = WTERMSIG(status);
    if (signal == SIGINT) {
        throw ChildEnded{130};
    }
    const std::string what(note_, ::strnlen(note_, note_size));
    throw Error(Fault::engine,
                fmt::format("the process that ran the engine ended with SIG{}{}{}", name_of(signal),
                            what.empty() ? "" : " while ", what),
                signal == SIGKILL ? "it may have run out of memory" : "");
}

void Guard::doing(std::string_view what) {
    if (note_ == nullptr) {
        return;
    }
    const auto size = std::min(what.size(), note_size - 1);
    std::memcpy(note_, what.data(), size);
    note_[size] = '\0';
}

}  // namespace trocar::cli
