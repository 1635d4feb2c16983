#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>

#include "trocar/error.h"
#include "trocar/inject.h"

namespace trocar::inject {

// There was no answer in time: for outputs of a run with faults that is what came of it.
class Overdue : public Error {
public:
    Overdue(Fault fault, const std::string& sentence, const std::string& hint, std::string how)
        : Error(fault, sentence, hint), how_(std::move(how)) {}
    const std::string& how() const { return how_; }  // for the record of the run

private:
    std::string how_;
};

// A process that is told something in a line, and answers in a line, as often as one likes. It ends
// with the object, and with the process that made it, however that ends; so do those that it
// started itself.
class Conversation {
public:
    // Runs `command` in a shell; what it writes to standard error goes to `errors`.
    Conversation(const std::string& command, const std::filesystem::path& errors);
    Conversation(const Conversation&) = delete;
    Conversation& operator=(const Conversation&) = delete;
    ~Conversation();

    // Throws Error(input) when the process ends, and Overdue when there is no answer after so many
    // seconds, with what it wrote last to standard error as hint. `about` is for the message:
    // "trial 3".
    std::string ask(const std::string& line, const std::string& about, double seconds);

private:
    [[noreturn]] void fail(const std::string& how, const std::string& about);

    std::string command_;
    std::filesystem::path errors_;
    // The wait status of the process; kills it and all that it started after so long.
    int end(std::chrono::milliseconds patience);

    int socket_ = -1;
    int alive_ = -1;    // closed: the warden ends
    pid_t child_ = -1;  // the warden
    std::string rest_;  // read after the last answer
};

}  // namespace trocar::inject
