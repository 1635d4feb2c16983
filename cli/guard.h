#pragma once

#include <string_view>

namespace trocar::cli {

// Starts the process that makes workers, before there are threads. To be called first.
void start_fork_server();
void stop_fork_server();  // last

// The work goes on in a child process, and this one waits: an engine that crashes takes only the
// child with it. The child ends when this process does.
class Guard {
public:
    Guard() = default;
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    ~Guard();

    // Returns in the child. In the process that called it throws ChildEnded when the child has
    // ended, Error(engine) when it crashed. No other threads may run.
    void enter();
    // What is under way, for the message about a crash.
    void doing(std::string_view what);

private:
    char* note_ = nullptr;  // shared with the child
};

struct ChildEnded {
    int code;
};

}  // namespace trocar::cli
