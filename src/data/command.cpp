#include "data/command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "trocar/error.h"
#include "trocar/format.h"
#include "util/files.h"
#include "util/scratch.h"
#include "util/text.h"

namespace trocar::data {

namespace {

namespace fs = std::filesystem;

// The files that a process reads and writes in the place of its standard streams.
class Streams {
public:
    Streams() { posix_spawn_file_actions_init(&actions_); }
    Streams(const Streams&) = delete;
    Streams& operator=(const Streams&) = delete;
    ~Streams() { posix_spawn_file_actions_destroy(&actions_); }

    void open(int number, const fs::path& path, int how) {
        posix_spawn_file_actions_addopen(&actions_, number, path.c_str(), how, 0600);
    }
    const posix_spawn_file_actions_t* actions() const { return &actions_; }

private:
    posix_spawn_file_actions_t actions_{};
};

// What a process that was waited for ended with; -1 for a signal.
int wait_for(pid_t child) {
    int status = 0;
    while (::waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            return -1;
        }
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// The last line that says something.
std::string last_line(const fs::path& path) {
    std::string last;
    for (const auto& line : split(read_file(path), '\n')) {
        if (!trim(line).empty()) {
            last = trim(line);
        }
    }
    return last;
}

}  // namespace

Value run_command(const std::string& command, const Value& value, std::string_view where) {
    const ScratchFolder scratch(fs::path(P_tmpdir));
    const auto input = save_value({"", value}, scratch.path(), "input", Sync::no);
    const auto output = scratch.path() / "output.npy";
    const auto errors = scratch.path() / "errors";
    Streams streams;
    streams.open(0, input, O_RDONLY);
    streams.open(1, output, O_WRONLY | O_CREAT | O_TRUNC);
    streams.open(2, errors, O_WRONLY | O_CREAT | O_TRUNC);
    std::string shell = "sh";
    std::string option = "-c";
    std::string text = command;
    const std::array<char*, 4> words{shell.data(), option.data(), text.data(), nullptr};
    pid_t child = 0;
    const int fault =
        ::posix_spawn(&child, "/bin/sh", streams.actions(), nullptr, words.data(), ::environ);
    if (fault != 0) {
        throw Error(Fault::input, fmt::format("the command '{}' cannot be started: {}", command,
                                              std::strerror(fault)));
    }
    if (const int code = wait_for(child); code != 0) {
        throw Error(Fault::input,
                    fmt::format("the command '{}' failed on {}{}", command, where,
                                code > 0 ? fmt::format(" with exit code {}", code) : ""),
                    last_line(errors));
    }
    try {
        return load_values(output).front().value;
    } catch (const Error& e) {
        throw Error(Fault::input,
                    fmt::format("what the command '{}' made of {} is no .npy array: {}", command,
                                where, e.what()),
                    "it reads .npy on standard input and writes .npy to standard output");
    }
}

}  // namespace trocar::data
