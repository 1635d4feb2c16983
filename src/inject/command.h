#pragma once

#include <filesystem>
#include <string>

#include "trocar/inject.h"

namespace trocar::inject {

// A process that is told something in a line, and answers in a line, as often as one likes. It ends
// with the object, and with the thread that made it.
class Conversation {
public:
    // Runs `command` in a shell; what it writes to standard error goes to `errors`.
    Conversation(const std::string& command, const std::filesystem::path& errors);
    Conversation(const Conversation&) = delete;
    Conversation& operator=(const Conversation&) = delete;
    ~Conversation();

    // Throws Error(input) when the process ends or gives no answer in time, with what it wrote last
    // to standard error as hint. `about` is for the message: "trial 3".
    std::string ask(const std::string& line, const std::string& about);

private:
    [[noreturn]] void fail(const std::string& how, const std::string& about);

    std::string command_;
    std::filesystem::path errors_;
    int socket_ = -1;
    pid_t child_ = -1;
    std::string rest_;  // read after the last answer
};

}  // namespace trocar::inject
