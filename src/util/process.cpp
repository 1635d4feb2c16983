#include "util/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

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

// The process group of a process; 0: it is gone.
pid_t group_of(const std::string& process) {
    const auto text = small_file("/proc/" + process + "/stat");
    const auto name_end = text.rfind(')');  // the name may hold anything
    int parent = 0;
    int group = 0;
    if (name_end == std::string::npos ||
        std::sscanf(text.c_str() + name_end + 1, " %*c %d %d", &parent, &group) != 2) {
        return 0;
    }
    return group;
}

std::uint64_t group_resident(pid_t group) {
    std::uint64_t sum = 0;
    DIR* const all = ::opendir("/proc");
    if (all == nullptr) {
        return resident_bytes(group);
    }
    while (const auto* entry = ::readdir(all)) {
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
            group_of(entry->d_name) == group) {
            sum += resident_bytes(static_cast<pid_t>(std::atoi(entry->d_name)));
        }
    }
    ::closedir(all);
    return sum;
}

[[noreturn]] void become(const std::string& command, pid_t parent, int noise) {
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
    const int nothing = ::open("/dev/null", O_RDONLY);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(noise, STDOUT_FILENO);
    ::dup2(noise, STDERR_FILENO);
    ::close_range(STDERR_FILENO + 1, ~0U, 0);
    ::execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
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

ProcessEnd run_command(const std::string& command, const ProcessLimits& limits) {
    const auto refuse = [](int why) {
        throw Error(Fault::engine,
                    fmt::format("no process can be started: {}", std::strerror(why)));
    };
    int pipes[2];
    if (::pipe2(pipes, O_CLOEXEC | O_NONBLOCK) != 0) {
        refuse(errno);
    }
    const auto parent = ::getpid();
    const auto child = ::fork();
    if (child < 0) {
        const int why = errno;
        ::close(pipes[0]);
        ::close(pipes[1]);
        refuse(why);
    }
    if (child == 0) {
        ::fcntl(pipes[1], F_SETFL, 0);
        become(command, parent, pipes[1]);
    }
    ::setpgid(child, child);
    ::close(pipes[1]);
    ProcessEnd end;
    const auto start = Clock::now();
    const auto kill_all = [&](ProcessEnd::How how) {
        end.how = how;
        ::kill(-child, SIGKILL);
    };
    bool killed = false;
    int status = 0;
    for (int round = 0;; ++round) {
        pollfd source{pipes[0], POLLIN, 0};
        ::poll(&source, 1, round == 0 ? 1 : step_ms);
        if ((source.revents & POLLHUP) != 0 && (source.revents & POLLIN) == 0) {
            ::usleep(1000);  // its output is closed: only its end is waited for
        }
        read_words(pipes[0], end.last_words);
        const auto ended = ::waitpid(child, &status, WNOHANG);
        if (ended == child || (ended < 0 && errno != EINTR)) {
            break;
        }
        if (killed) {
            continue;
        }
        const auto resident = limits.memory > 0 || round % 8 == 0 ? group_resident(child) : 0;
        end.peak_resident = std::max(end.peak_resident, resident);
        killed = true;
        if (limits.cancel && limits.cancel()) {
            kill_all(ProcessEnd::How::cancelled);
        } else if (limits.time.count() > 0 && Clock::now() - start > limits.time) {
            kill_all(ProcessEnd::How::timed_out);
        } else if (limits.memory > 0 && resident > limits.memory) {
            kill_all(ProcessEnd::How::over_memory);
        } else {
            killed = false;
        }
    }
    ::kill(-child, SIGKILL);  // what it left behind
    read_words(pipes[0], end.last_words);
    ::close(pipes[0]);
    end.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (end.last_words.size() > words_kept) {
        end.last_words.erase(0, end.last_words.size() - words_kept);
    }
    if (!killed) {
        end.how = WIFSIGNALED(status) ? ProcessEnd::How::signalled : ProcessEnd::How::exited;
    }
    end.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    return end;
}

}  // namespace trocar
