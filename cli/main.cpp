#include <unistd.h>

#include <string>
#include <vector>

#include "cli/app.h"
#include "cli/guard.h"
#include "cli/interrupt.h"

int main(int argc, char** argv) {
    trocar::cli::start_fork_server();
    trocar::cli::catch_signals();
    const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
    trocar::cli::Stream out(STDOUT_FILENO);
    trocar::cli::Stream err(STDERR_FILENO);
    const int code = trocar::cli::run(arguments, trocar::commands(), {out, err});
    trocar::cli::stop_fork_server();
    return code;
}
