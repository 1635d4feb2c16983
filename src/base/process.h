#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "base/descriptor.h"

namespace trocar {

struct ProcessLimits {
    std::chrono::milliseconds time{0};  // on the wall; 0: none
    std::uint64_t memory = 0;           // resident bytes of the command and all it started; 0: none
    double cpu_seconds = 0;             // of the same; 0: none
    std::function<bool()> cancel = {};  // asked now and then: end it
};

struct ProcessEnd {
    enum class How { exited, signalled, timed_out, over_memory, cancelled } how = How::exited;
    int code = 0;  // of the exit, or the signal
    double seconds = 0;
    std::uint64_t peak_resident = 0;  // as far as it was seen
    std::string last_words;           // the end of what it wrote to stdout and stderr
};

// What a command has as its streams. What is not given: nothing to read, and a pipe from which the
// end of what it wrote is kept.
struct ProcessStreams {
    int in = -1;
    int out = -1;
    int err = -1;
};

// A shell command in a process group of its own, which is killed whole: with the object, with this
// process, and with the thread that started it. Other threads may run: only what may be done then
// is done between fork and exec.
class Process {
public:
    // Throws Error(engine) when no process can be started. The streams are only lent.
    static Process shell(const std::string& command, const ProcessStreams& streams = {});
    Process(Process&& other) noexcept;
    Process& operator=(Process&& other) = delete;
    ~Process();

    // To its end, or to the first limit, which kills it. To be called once.
    ProcessEnd wait(const ProcessLimits& limits);
    void kill();  // all of the group; `wait` returns soon
    pid_t id() const { return child_; }

private:
    Process(pid_t child, Descriptor words);

    pid_t child_;
    Descriptor words_;
    std::chrono::steady_clock::time_point start_;
};

// `Process::shell` and `wait`.
ProcessEnd run_command(const std::string& command, const ProcessLimits& limits);

// Bytes that a process has in memory; 0: it is gone.
std::uint64_t resident_bytes(pid_t process);

// The threads of this process, this one included.
int thread_count_of_process();

// A word for the shell: 'it'\''s'.
std::string shell_word(const std::string& text);

// "SIGSEGV".
std::string signal_name(int signal);

// For processes that are forked from this one and do a part of its work.

// To be called first in the child: it dies with its parent (by SIGKILL), leaves Ctrl-C to it, has
// none of its signal handlers and exit functions, and leaves no core file.
void settle_child(pid_t parent);

// Waits for a child so long, then kills it. Returns its wait status.
int end_child(pid_t child, std::chrono::milliseconds patience);

}  // namespace trocar
