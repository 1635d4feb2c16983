#include "run/child.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

namespace trocar {

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
    using Clock = std::chrono::steady_clock;
    int status = 0;
    pid_t ended = 0;
    for (const auto end = Clock::now() + patience; ended == 0 && Clock::now() < end;) {
        ended = ::waitpid(child, &status, WNOHANG);
        if (ended == 0) {
            ::usleep(200);
        }
    }
    if (ended == 0) {
        ::kill(child, SIGKILL);
        while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
    }
    return status;
}

}  // namespace trocar
