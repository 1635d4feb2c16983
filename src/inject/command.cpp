#include "inject/command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "inject/outputs.h"
#include "run/child.h"
#include "trocar/error.h"
#include "trocar/format.h"
#include "util/files.h"
#include "util/process.h"
#include "util/scratch.h"
#include "util/text.h"

namespace trocar::inject {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds patience{60};                  // for an answer
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

// In the child: only what may be done between fork and exec where other threads are.
[[noreturn]] void become(const char* command, int socket, int errors, pid_t parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) {
        ::_exit(127);
    }
    ::dup2(socket, STDIN_FILENO);
    ::dup2(socket, STDOUT_FILENO);
    if (errors >= 0) {
        ::dup2(errors, STDERR_FILENO);
    }
    ::signal(SIGINT, SIG_IGN);  // Ctrl-C is for the campaign; this ends with it
    ::signal(SIGPIPE, SIG_DFL);
    ::execl("/bin/sh", "sh", "-c", command, static_cast<char*>(nullptr));
    ::_exit(127);
}

}  // namespace

Conversation::Conversation(const std::string& command, const fs::path& errors)
    : command_(command), errors_(errors) {
    int sockets[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
        throw Error(Fault::input, fmt::format("the command '{}' cannot be started: {}", command,
                                              std::strerror(errno)));
    }
    const int log = ::open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const auto parent = ::getpid();
    child_ = ::fork();
    if (child_ == 0) {
        become(command_.c_str(), sockets[1], log, parent);
    }
    const auto reason = errno;
    ::close(sockets[1]);
    if (log >= 0) {
        ::close(log);
    }
    socket_ = sockets[0];
    if (child_ < 0) {
        throw Error(Fault::input, fmt::format("the command '{}' cannot be started: {}", command,
                                              std::strerror(reason)));
    }
}

Conversation::~Conversation() {
    ::shutdown(socket_, SHUT_WR);
    if (child_ > 0) {
        end_child(child_, std::chrono::milliseconds(500));
    }
    ::close(socket_);
}

void Conversation::fail(const std::string& how, const std::string& about) {
    throw Error(Fault::input,
                fmt::format("the command '{}' {}, asked about {}", command_, how, about),
                last_line(errors_));
}

std::string Conversation::ask(const std::string& line, const std::string& about) {
    const auto ended = [&] {
        const int status = end_child(child_, std::chrono::seconds(1));
        child_ = -1;
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
    const auto end = std::chrono::steady_clock::now() + patience;
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
            end - std::chrono::steady_clock::now());
        if (left.count() <= 0) {
            fail(fmt::format("gave no answer within {} s", patience.count()), about);
        }
        pollfd source{socket_, POLLIN, 0};
        if (::poll(&source, 1, static_cast<int>(left.count())) <= 0) {
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

using Json = nlohmann::json;

// Files of one process that is asked about outputs.
class Asked {
public:
    Asked(const std::string& line, std::shared_ptr<ScratchFolder> scratch, const char* wanted)
        : scratch_(std::move(scratch)),
          command_(line),
          wanted_(wanted),
          folder_(scratch_->path() / fmt::format("{}-{}", ::getpid(), number()++)) {
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
        Json request = {{"name", input.name}, {"label", nullptr}};
        if (input.label) {
            request["label"] = *input.label;
        }
        return request;
    }
    Json ask(const Json& request, const std::string& where) const {
        const auto line = request.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
        const auto answer = talk_->ask(line, where);
        auto json = Json::parse(answer, nullptr, false);
        if (json.is_discarded()) {
            refuse(answer);
        }
        return json;
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
    static std::atomic<int>& number() {
        static std::atomic<int> next = 0;
        return next;
    }
    std::shared_ptr<ScratchFolder> scratch_;
    std::string command_;
    const char* wanted_;  // of an answer
    fs::path folder_;
    std::unique_ptr<Conversation> talk_;
};

std::string where(const CampaignInput& input) {
    return input.name.empty() ? "an input" : fmt::format("input '{}'", input.name);
}

class MetricCommand {
public:
    MetricCommand(const std::string& command, std::shared_ptr<ScratchFolder> scratch)
        : asked_(command, std::move(scratch),
                 "a line with a number, or with an object of numbers by their names") {}
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
               : json.is_boolean() ? (json.get<bool>() ? 1 : 0)
                                   : json.get<double>();
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
    OutputCommand(const std::string& command, std::shared_ptr<ScratchFolder> scratch)
        : asked_(command, std::move(scratch),
                 R"(a line with an object: {"outputs": {"NAME": "FILE.npy"}})") {}
    std::vector<NamedValue> operator()(const std::vector<NamedValue>& outputs,
                                       const CampaignInput& input) const {
        auto request = asked_.about(input);
        request["outputs"] = asked_.files(outputs, "output");
        request["folder"] = asked_.folder().string();
        const auto answer = asked_.ask(request, where(input));
        if (!answer.is_object() || !answer.contains("outputs") || !answer["outputs"].is_object() ||
            answer["outputs"].empty()) {
            asked_.refuse(answer.dump());
        }
        std::vector<NamedValue> made;
        for (const auto& [name, file] : answer["outputs"].items()) {
            if (!file.is_string()) {
                asked_.refuse(answer.dump());
            }
            made.push_back({name, load_values(file.get<std::string>()).at(0).value});
        }
        return made;
    }

private:
    Asked asked_;
};

}  // namespace

}  // namespace trocar::inject

namespace trocar {

std::function<Metric()> metric_command(const std::string& command) {
    auto scratch = std::make_shared<ScratchFolder>(std::filesystem::path(P_tmpdir));
    return [command, scratch]() -> Metric {
        auto one = std::make_shared<inject::MetricCommand>(command, scratch);
        return [one](const auto& golden, const auto& faulty, const CampaignInput& input) {
            return (*one)(golden, faulty, input);
        };
    };
}

std::function<Postprocess()> postprocess_command(const std::string& command) {
    auto scratch = std::make_shared<ScratchFolder>(std::filesystem::path(P_tmpdir));
    return [command, scratch]() -> Postprocess {
        auto one = std::make_shared<inject::OutputCommand>(command, scratch);
        return [one](const auto& outputs, const CampaignInput& input) {
            return (*one)(outputs, input);
        };
    };
}

}  // namespace trocar
