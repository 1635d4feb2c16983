#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "run/isolate_message.h"
#include "trocar/engine.h"
#include "trocar/value.h"

namespace trocar {

// Work done in a child process: when it crashes there, that is an Error(engine) here. The child has
// the memory of this process as it was when the object was made, but none of its threads: an engine
// must be opened in the child, not before. It ends with the object, with this process, and with the
// thread that made the object. What it writes to stdout and stderr goes to the log. One thread at a
// time may use the object.
class Isolated {
public:
    using Work = std::function<std::vector<NamedValue>(const std::vector<NamedValue>&)>;
    struct Options {
        Log log;                               // lines from the child; may be empty
        std::chrono::milliseconds timeout{0};  // for one answer; 0: wait as long as it takes
        std::uint64_t memory_limit = 0;        // resident bytes, watched; 0: none
        std::string doing =
            "running the model";  // for messages: "the engine crashed (SIGSEGV) while …"
    };

    // Calls `prepare` in the child, with a log whose lines arrive in Options::log; what it returns
    // does the work. Throws what `prepare` threw, and Error(engine) when the child did not survive
    // it.
    Isolated(const std::function<Work(const Log&)>& prepare, Options options);
    Isolated(const Isolated&) = delete;
    Isolated& operator=(const Isolated&) = delete;
    ~Isolated();

    // Calls the work in the child. An Error there is thrown here: same fault, sentence and hint;
    // other exceptions arrive as Error(internal). Throws Error(engine) when the child crashed,
    // ended or took too long; from then on every call does.
    std::vector<NamedValue> run(const std::vector<NamedValue>& inputs);

    // What became of the child.
    enum class End { none, crashed, exited, silent, over_memory };
    End end() const { return end_; }
    bool alive() const { return child_ > 0; }
    pid_t child() const { return child_; }

private:
    Message answer();
    void read_noise();
    void log_noise();
    [[noreturn]] void fail(End end, const std::string& how);
    [[noreturn]] void fail_dead();
    int reap(std::chrono::milliseconds patience);

    Options options_;
    pid_t child_ = -1;
    Descriptor socket_;
    Descriptor noise_;        // the child's stdout and stderr
    std::string noise_line_;  // begun, not ended
    std::string failure_;     // why there is no child
    End end_ = End::none;
};

}  // namespace trocar
