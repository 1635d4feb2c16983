#include <unistd.h>

#include <string>
#include <vector>

#include "cli/app.h"
#include "cli/interrupt.h"

int main(int argc, char** argv) {
    trocar::cli::catch_signals();
    const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
    trocar::cli::Stream out(STDOUT_FILENO);
    trocar::cli::Stream err(STDERR_FILENO);
    return trocar::cli::run(arguments, trocar::commands(), {out, err});
}
