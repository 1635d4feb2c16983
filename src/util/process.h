#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace trocar {

struct ProcessLimits {
    std::chrono::milliseconds time{0};  // 0: none
    std::uint64_t memory = 0;           // resident bytes of the command and all it started; 0: none
    std::function<bool()> cancel = {};  // asked now and then: end it
};

struct ProcessEnd {
    enum class How { exited, signalled, timed_out, over_memory, cancelled } how = How::exited;
    int code = 0;  // of the exit, or the signal
    double seconds = 0;
    std::uint64_t peak_resident = 0;  // as far as it was seen
    std::string last_words;           // the end of what it wrote to stdout and stderr
};

// Runs a shell command to its end, in a process group of its own that is killed whole. Throws
// Error(engine) when no process can be started.
ProcessEnd run_command(const std::string& command, const ProcessLimits& limits);

// Bytes that a process has in memory; 0: it is gone.
std::uint64_t resident_bytes(pid_t process);

// A word for the shell: 'it'\''s'.
std::string shell_word(const std::string& text);

// "SIGSEGV".
std::string signal_name(int signal);

}  // namespace trocar
