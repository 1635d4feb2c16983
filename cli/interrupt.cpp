#include "cli/interrupt.h"

#include <unistd.h>

#include <csignal>

namespace trocar::cli {

namespace {

volatile std::sig_atomic_t seen = 0;

extern "C" void on_interrupt(int) {
    if (seen != 0) {
        ::_exit(130);
    }
    seen = 1;
}

}  // namespace

void catch_signals() {
    struct sigaction action {};
    action.sa_handler = on_interrupt;
    action.sa_flags = SA_RESTART;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGINT, &action, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
}

bool interrupted() {
    return seen != 0;
}

}  // namespace trocar::cli
