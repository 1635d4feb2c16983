#include "base/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "trocar/error.h"

namespace trocar {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t words_kept = 4096;
constexpr int step_ms = 20;

std::string small_file(const std::string& path) {
    std::string text;
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return text;
    }
    char buffer[1024];
    const auto count = ::read(fd, buffer, sizeof buffer);
    ::close(fd);
    if (count > 0) {
        text.assign(buffer, static_cast<std::size_t>(count));
    }
    return text;
}

// What a process group takes.
struct Taken {
    std::uint64_t resident = 0;
    double cpu_seconds = 0;  // those of its processes that have ended and were waited for included
};

// Adds what a process takes where it is of this group.
void add(const char* process, pid_t group, Taken& taken) {
    const auto text = small_file(fmt::format("/proc/{}/stat", process));
    const auto name_end = text.rfind(')');  // the name may hold anything
    int parent = 0;
    int its_group = 0;
    unsigned long long ticks[4] = {};  // user, system; the same of children
    if (name_end == std::string::npos ||
        std::sscanf(text.c_str() + name_end + 1,
                    " %*c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu", &parent,
                    &its_group, &ticks[0], &ticks[1], &ticks[2], &ticks[3]) != 6 ||
        its_group != group) {
        return;
    }
    const auto each = static_cast<double>(::sysconf(_SC_CLK_TCK));
    taken.cpu_seconds += static_cast<double>(ticks[0] + ticks[1] + ticks[2] + ticks[3]) / each;
    taken.resident += resident_bytes(static_cast<pid_t>(std::atoi(process)));
}

Taken taken_by(pid_t group) {
    Taken taken;
    DIR* const all = ::opendir("/proc");
    if (all == nullptr) {
        taken.resident = resident_bytes(group);
        return taken;
    }
    while (const auto* entry = ::readdir(all)) {
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9') {
            add(entry->d_name, group, taken);
        }
    }
    ::closedir(all);
    return taken;
}

// In the child: only what may be done between fork and exec where other threads are.
[[noreturn]] void become(const char* command, pid_t parent, const ProcessStreams& streams) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) {
        ::_exit(127);
    }
    for (int signal = 1; signal < 32; ++signal) {
        ::signal(signal, SIG_DFL);
    }
    sigset_t none;
    sigemptyset(&none);
    ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
    // Out of the way of the three numbers that they are to have.
    constexpr int first_free = STDERR_FILENO + 1;
    const int in = ::fcntl(streams.in, F_DUPFD, first_free);
    const int out = ::fcntl(streams.out, F_DUPFD, first_free);
    const int err = ::fcntl(streams.err, F_DUPFD, first_free);
    ::dup2(in, STDIN_FILENO);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(err, STDERR_FILENO);
    ::close_range(first_free, ~0U, 0);
    ::execl("/bin/sh", "sh", "-c", command, static_cast<char*>(nullptr));
    ::_exit(127);
}

void read_words(int fd, std::string& words) {
    char buffer[4096];
    for (;;) {
        const auto count = ::read(fd, buffer, sizeof buffer);
        if (count <= 0) {
            return;
        }
        words.append(buffer, static_cast<std::size_t>(count));
        if (words.size() > 2 * words_kept) {
            words.erase(0, words.size() - words_kept);
        }
    }
}

}  // namespace

std::uint64_t resident_bytes(pid_t process) {
    const auto text = small_file(fmt::format("/proc/{}/statm", process));
    unsigned long long size = 0;
    unsigned long long resident = 0;
    if (std::sscanf(text.c_str(), "%llu %llu", &size, &resident) != 2) {
        return 0;
    }
    return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::string shell_word(const std::string& text) {
    std::string word = "'";
    for (const char c : text) {
        word += c == '\'' ? std::string("'\\''") : std::string(1, c);
    }
    return word + "'";
}

std::string signal_name(int signal) {
    const char* name = ::sigabbrev_np(signal);
    return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

Process::Process(pid_t child, Descriptor words)
    : child_(child), words_(std::move(words)), start_(Clock::now()) {}

Process::Process(Process&& other) noexcept
    : child_(std::exchange(other.child_, -1)),
      words_(std::move(other.words_)),
      start_(other.start_) {}

Process::~Process() {
    if (child_ > 0) {
        kill();
        end_child(child_, {});
    }
}

void Process::kill() {
    if (child_ > 0) {
        ::kill(-child_, SIGKILL);
    }
}

Process Process::shell(const std::string& command, const ProcessStreams& streams) {
    const auto refuse = [] {
        throw Error(Fault::engine,
                    fmt::format("no process can be started: {}", std::strerror(errno)));
    };
    int pipes[2];
    if (::pipe2(pipes, O_CLOEXEC) != 0) {
        refuse();
    }
    Descriptor words(pipes[0]);
    const Descriptor noise(pipes[1]);
    ::fcntl(words.get(), F_SETFL, O_NONBLOCK);
    const Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const ProcessStreams all{streams.in >= 0 ? streams.in : nothing.get(),
                             streams.out >= 0 ? streams.out : noise.get(),
                             streams.err >= 0 ? streams.err : noise.get()};
    const auto parent = ::getpid();
    const auto child = ::fork();
    if (child < 0) {
        refuse();
    }
    if (child == 0) {
        become(command.c_str(), parent, all);
    }
    ::setpgid(child, child);  // whoever comes first
    return {child, std::move(words)};
}

ProcessEnd Process::wait(const ProcessLimits& limits) {
    ProcessEnd end;
    const auto kill_all = [&](ProcessEnd::How how) {
        end.how = how;
        kill();
    };
    bool killed = false;
    int status = 0;
    for (int round = 0;; ++round) {
        pollfd source{words_.get(), POLLIN, 0};
        ::poll(&source, 1, round == 0 ? 1 : step_ms);
        if ((source.revents & POLLHUP) != 0 && (source.revents & POLLIN) == 0) {
            ::usleep(1000);  // its output is closed: only its end is waited for
        }
        read_words(words_.get(), end.last_words);
        const auto ended = ::waitpid(child_, &status, WNOHANG);
        if (ended == child_ || (ended < 0 && errno != EINTR)) {
            break;
        }
        if (killed) {
            continue;
        }
        const auto taken = limits.memory > 0 || limits.cpu_seconds > 0 || round % 8 == 0
                               ? taken_by(child_)
                               : Taken{};
        end.peak_resident = std::max(end.peak_resident, taken.resident);
        killed = true;
        if (limits.cancel && limits.cancel()) {
            kill_all(ProcessEnd::How::cancelled);
        } else if ((limits.time.count() > 0 && Clock::now() - start_ > limits.time) ||
                   (limits.cpu_seconds > 0 && taken.cpu_seconds > limits.cpu_seconds)) {
            kill_all(ProcessEnd::How::timed_out);
        } else if (limits.memory > 0 && taken.resident > limits.memory) {
            kill_all(ProcessEnd::How::over_memory);
        } else {
            killed = false;
        }
    }
    kill();  // what it left behind
    child_ = -1;
    read_words(words_.get(), end.last_words);
    end.seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    if (end.last_words.size() > words_kept) {
        end.last_words.erase(0, end.last_words.size() - words_kept);
    }
    if (!killed) {
        end.how = WIFSIGNALED(status) ? ProcessEnd::How::signalled : ProcessEnd::How::exited;
    }
    end.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    return end;
}

ProcessEnd run_command(const std::string& command, const ProcessLimits& limits) {
    return Process::shell(command).wait(limits);
}

int thread_count_of_process() {
    DIR* const all = ::opendir("/proc/self/task");
    if (all == nullptr) {
        return 1;
    }
    int count = 0;
    while (const auto* entry = ::readdir(all)) {
        count += entry->d_name[0] != '.' ? 1 : 0;
    }
    ::closedir(all);
    return count;
}

void settle_child(pid_t parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) {
        ::_exit(0);
    }
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM, SIGQUIT, SIGPIPE}) {
        ::signal(signal, SIG_DFL);
    }
    ::signal(SIGINT, SIG_IGN);  // Ctrl-C is the parent's to handle
    sigset_t none;
    sigemptyset(&none);
    ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
    // Runs before all that the parent registered, should the engine call exit.
    ::on_exit([](int status, void*) { ::_exit(status); }, nullptr);
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
}

int end_child(pid_t child, std::chrono::milliseconds patience) {
    constexpr std::chrono::seconds to_die{10};  // of SIGKILL; one that hangs in the kernel does not
    int status = 0;
    const auto ends_within = [&](std::chrono::milliseconds time) {
        const auto end = Clock::now() + time;
        for (;;) {
            const auto ended = ::waitpid(child, &status, WNOHANG);
            if (ended == child || (ended < 0 && errno != EINTR)) {
                return true;
            }
            if (Clock::now() >= end) {
                return false;
            }
            ::usleep(200);
        }
    };
    if (patience.count() <= 0 || !ends_within(patience)) {
        ::kill(child, SIGKILL);
        if (!ends_within(to_die)) {
            return SIGKILL;  // as a wait status
        }
    }
    return status;
}

}  // namespace trocar
