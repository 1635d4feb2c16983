#include "inject/command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>

#include "base/json.h"
#include "base/process.h"
#include "inject/outputs.h"
#include "run/isolate_message.h"
#include "trocar/error.h"
#include "trocar/format.h"
#include "util/files.h"
#include "util/scratch.h"
#include "util/text.h"

namespace trocar::inject {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t longest_answer = std::size_t{1} << 20;  // bytes

std::string last_line(const fs::path& path) {
    std::string last;
    std::error_code failure;
    if (!fs::exists(path, failure)) {
        return last;
    }
    for (const auto& line : split(read_file(path), '\n')) {
        if (!trim(line).empty()) {
            last = trim(line);
        }
    }
    return last;
}

// What a new process has of the one that starts it.
struct Ends {
    int socket;  // to be its standard input and output
    int errors;  // its standard error; -1: as it is
    int alive;   // ends when the process that started it has ended
};

// In a child: only what may be done between fork and exec where other threads are.
[[noreturn]] void become(const char* command, const Ends& ends) {
    ::dup2(ends.socket, STDIN_FILENO);
    ::dup2(ends.socket, STDOUT_FILENO);
    if (ends.errors >= 0) {
        ::dup2(ends.errors, STDERR_FILENO);
    }
    ::signal(SIGPIPE, SIG_DFL);
    ::execl("/bin/sh", "sh", "-c", command, static_cast<char*>(nullptr));
    ::_exit(127);
}

// Stands between the two: a shell does not always become the command, and what it started would
// outlive it. Ends as the command does; or kills all of its group, itself included.
[[noreturn]] void guard(const char* command, const Ends& ends) {
    ::setpgid(0, 0);
    ::signal(SIGINT, SIG_IGN);  // Ctrl-C is for the campaign; this ends with it
    const auto child = ::fork();
    if (child == 0) {
        become(command, ends);
    }
    // What it has open others would wait for.
    constexpr int kept = STDERR_FILENO + 1;
    ::dup2(ends.alive, kept);
    ::close_range(kept + 1, ~0U, 0);
    const auto seen = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
    for (;;) {
        pollfd sources[] = {{kept, POLLIN, 0}, {seen, POLLIN, 0}};
        constexpr int often = 20;  // milliseconds, where the kernel cannot tell of an end
        ::poll(sources, 2, seen >= 0 ? -1 : often);
        int status = 0;
        if (child < 0 || ::waitpid(child, &status, WNOHANG) == child) {
            ::_exit(child < 0             ? 127
                    : WIFSIGNALED(status) ? 128 + WTERMSIG(status)
                                          : WEXITSTATUS(status));
        }
        if (sources[0].revents != 0) {
            ::kill(0, SIGKILL);
        }
    }
}

}  // namespace

Conversation::Conversation(const std::string& command, const fs::path& errors)
    : command_(command), errors_(errors) {
    const auto refuse = [&](int reason) {
        throw Error(Fault::input, fmt::format("the command '{}' cannot be started: {}", command,
                                              std::strerror(reason)));
    };
    int sockets[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
        refuse(errno);
    }
    Descriptor mine(sockets[0]);
    const Descriptor other(sockets[1]);
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
        refuse(errno);
    }
    const Descriptor watched(ends[0]);
    Descriptor alive(ends[1]);
    const Descriptor log(::open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    child_ = ::fork();
    if (child_ == 0) {
        guard(command_.c_str(), {other.get(), log.get(), watched.get()});
    }
    if (child_ < 0) {
        refuse(errno);
    }
    ::setpgid(child_, child_);  // whoever comes first
    socket_ = mine.release();
    alive_ = alive.release();
}

Conversation::~Conversation() {
    ::shutdown(socket_, SHUT_WR);
    end(std::chrono::milliseconds(500));
    ::close(socket_);
    if (alive_ >= 0) {
        ::close(alive_);
    }
}

int Conversation::end(std::chrono::milliseconds patience) {
    int status = 0;
    if (child_ <= 0) {
        return status;
    }
    const auto until = std::chrono::steady_clock::now() + patience;
    pid_t ended = 0;
    while ((ended = ::waitpid(child_, &status, WNOHANG)) == 0 &&
           std::chrono::steady_clock::now() < until) {
        ::usleep(200);
    }
    if (ended == 0) {
        ::kill(-child_, SIGKILL);
        while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) {
        }
    }
    child_ = -1;
    return status;
}

void Conversation::fail(const std::string& how, const std::string& about) {
    throw Error(Fault::input,
                fmt::format("the command '{}' {}, asked about {}", command_, how, about),
                last_line(errors_));
}

std::string Conversation::ask(const std::string& line, const std::string& about, double seconds) {
    const auto ended = [&] {
        const int status = end(std::chrono::seconds(1));
        fail(WIFSIGNALED(status) ? fmt::format("died of {}", signal_name(WTERMSIG(status)))
                                 : fmt::format("ended with exit code {}", WEXITSTATUS(status)),
             about);
    };
    if (child_ < 0) {
        fail("has ended", about);
    }
    const auto text = line + '\n';
    for (std::size_t sent = 0; sent < text.size();) {
        const auto count = ::send(socket_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            ended();
        }
        sent += static_cast<std::size_t>(count);
    }
    const auto due = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    for (;;) {
        if (const auto at = rest_.find('\n'); at != std::string::npos) {
            auto answer = rest_.substr(0, at);
            rest_.erase(0, at + 1);
            return answer;
        }
        if (rest_.size() > longest_answer) {
            fail("answers without end", about);
        }
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            due - std::chrono::steady_clock::now());
        if (left.count() <= 0) {
            end({});
            throw Overdue(
                Fault::input,
                fmt::format("the command '{}' gave no answer within {:g} s, asked about {}",
                            command_, seconds, about),
                last_line(errors_), fmt::format("no answer of a command within {:g} s", seconds));
        }
        pollfd source{socket_, POLLIN, 0};
        constexpr std::int64_t longest = 60'000;  // milliseconds
        if (::poll(&source, 1,
                   static_cast<int>(std::min<std::int64_t>(left.count() + 1, longest))) <= 0) {
            continue;
        }
        char some[4096];
        const auto count = ::read(socket_, some, sizeof some);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            ended();
        }
        rest_.append(some, static_cast<std::size_t>(count));
    }
}

namespace {

// Seconds for an answer: as given, else so many times what the first one took, and a minute.
class AnswerLimit {
public:
    explicit AnswerLimit(double given) : given_(given) {}
    double seconds() const {
        return given_ > 0 ? given_ : std::max(60.0, 100 * first_.value_or(0));
    }
    void took(double seconds) { first_ = first_.value_or(seconds); }

private:
    double given_;
    std::optional<double> first_;
};

// Files of one process that is asked about outputs.
class Asked {
public:
    Asked(const std::string& line, std::shared_ptr<ScratchFolder> scratch, const char* wanted,
          double limit)
        : scratch_(std::move(scratch)),
          command_(line),
          wanted_(wanted),
          folder_(scratch_->path() / fmt::format("{}-{}", ::getpid(), number()++)),
          limit_(limit) {
        fs::create_directories(folder_);
        talk_ = std::make_unique<Conversation>(command_, folder_ / "errors");
    }
    const fs::path& folder() const { return folder_; }

    Json files(const std::vector<NamedValue>& values, const std::string& stem) const {
        Json named = Json::object();
        for (std::size_t i = 0; i < values.size(); ++i) {
            named[values[i].name] =
                save_value(values[i], folder_, fmt::format("{}_{}", stem, i), Sync::no).string();
        }
        return named;
    }
    Json about(const CampaignInput& input) const {
        auto request =
            Json::object(Json::Order::sorted, {{"name", input.name}, {"label", nullptr}});
        if (input.label) {
            request["label"] = *input.label;
        }
        return request;
    }
    Json ask(const Json& request, const std::string& where) {
        const auto answer = answer_to(request.dump(), where);
        auto json = Json::parse(answer);
        if (!json) {
            refuse(answer);
        }
        return *std::move(json);
    }
    [[noreturn]] void refuse(std::string answer) const {
        constexpr std::size_t enough = 80;
        if (answer.size() > enough) {
            answer = answer.substr(0, enough) + "…";
        }
        throw Error(
            Fault::input,
            fmt::format("the command '{}' answers what makes no sense: {}", command_, answer),
            wanted_);
    }

private:
    // One that gave no answer is not asked again: another process takes its place.
    std::string answer_to(const std::string& line, const std::string& where) {
        if (!talk_) {
            talk_ = std::make_unique<Conversation>(command_, folder_ / "errors");
        }
        const auto start = std::chrono::steady_clock::now();
        try {
            auto answer = talk_->ask(line, where, limit_.seconds());
            const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
            limit_.took(took.count());
            return answer;
        } catch (const Overdue&) {
            talk_.reset();
            throw;
        }
    }
    static std::atomic<int>& number() {
        static std::atomic<int> next = 0;
        return next;
    }
    std::shared_ptr<ScratchFolder> scratch_;
    std::string command_;
    const char* wanted_;  // of an answer
    fs::path folder_;
    AnswerLimit limit_;
    std::unique_ptr<Conversation> talk_;
};

std::string where(const CampaignInput& input) {
    return input.name.empty() ? "an input" : fmt::format("input '{}'", input.name);
}

class MetricCommand {
public:
    MetricCommand(const std::string& command, std::shared_ptr<ScratchFolder> scratch, double limit)
        : asked_(command, std::move(scratch),
                 "a line with a number, or with an object of numbers by their names", limit) {}
    Metrics operator()(const std::vector<NamedValue>& golden, const std::vector<NamedValue>& faulty,
                       const CampaignInput& input) {
        if (golden_.empty() || golden.empty() || !same_memory(golden, golden_)) {
            golden_ = golden;
            golden_files_ = asked_.files(golden, "golden");
            of_golden_.reset();
        }
        const bool same = same_bits(golden, faulty);
        if (same && of_golden_) {
            return *of_golden_;
        }
        auto request = asked_.about(input);
        request["golden"] = golden_files_;
        request["faulty"] = same ? golden_files_ : asked_.files(faulty, "faulty");
        auto metrics = read(asked_.ask(request, where(input)));
        if (same) {
            of_golden_ = metrics;
        }
        return metrics;
    }

private:
    // Is it the same run? Its values are kept, so that no other has their memory.
    static bool same_memory(const std::vector<NamedValue>& a, const std::vector<NamedValue>& b) {
        return a.size() == b.size() && a[0].value.is_tensor() && b[0].value.is_tensor() &&
               a[0].value.bytes().data() == b[0].value.bytes().data();
    }
    double number(const Json& json) const {
        if (!json.is_number() && !json.is_boolean() && !json.is_null()) {
            asked_.refuse(json.dump());
        }
        return json.is_null()      ? TrialResult::none
               : json.is_boolean() ? (json.boolean() ? 1 : 0)
                                   : json.number();
    }
    Metrics read(const Json& json) const {
        if (!json.is_object()) {
            return {{"", number(json)}};
        }
        Metrics all;  // in the order of their names
        for (const auto& [name, value] : json.items()) {
            if (name.empty()) {
                asked_.refuse(json.dump());
            }
            all.emplace_back(name, number(value));
        }
        return all;
    }
    Asked asked_;
    std::vector<NamedValue> golden_;
    Json golden_files_;
    std::optional<Metrics> of_golden_;
};

class OutputCommand {
public:
    OutputCommand(const std::string& command, std::shared_ptr<ScratchFolder> scratch, double limit)
        : asked_(command, std::move(scratch),
                 R"(a line with an object: {"outputs": {"NAME": "FILE.npy"}})", limit) {}
    std::vector<NamedValue> operator()(const std::vector<NamedValue>& outputs,
                                       const CampaignInput& input) {
        auto request = asked_.about(input);
        request["outputs"] = asked_.files(outputs, "output");
        request["folder"] = asked_.folder().string();
        const auto answer = asked_.ask(request, where(input));
        const auto* files = answer.find("outputs");
        if (files == nullptr || !files->is_object() || files->empty()) {
            asked_.refuse(answer.dump());
        }
        std::vector<NamedValue> made;
        for (const auto& [name, file] : files->items()) {
            if (!file.is_string()) {
                asked_.refuse(answer.dump());
            }
            made.push_back({name, load_values(file.string()).at(0).value});
        }
        return made;
    }

private:
    Asked asked_;
};

}  // namespace

}  // namespace trocar::inject

namespace trocar {

std::function<Metric()> metric_command(const std::string& command, double limit) {
    auto scratch = std::make_shared<ScratchFolder>(std::filesystem::path(P_tmpdir));
    return [command, scratch, limit]() -> Metric {
        auto one = std::make_shared<inject::MetricCommand>(command, scratch, limit);
        return [one](const auto& golden, const auto& faulty, const CampaignInput& input) {
            return (*one)(golden, faulty, input);
        };
    };
}

std::function<Postprocess()> postprocess_command(const std::string& command, double limit) {
    auto scratch = std::make_shared<ScratchFolder>(std::filesystem::path(P_tmpdir));
    return [command, scratch, limit]() -> Postprocess {
        auto one = std::make_shared<inject::OutputCommand>(command, scratch, limit);
        return [one](const auto& outputs, const CampaignInput& input) {
            return (*one)(outputs, input);
        };
    };
}

}  // namespace trocar
