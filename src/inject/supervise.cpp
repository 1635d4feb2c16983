#include "inject/supervise.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/process.h"
#include "inject/campaign_worker.h"
#include "inject/outputs.h"
#include "inject/wire.h"
#include "trocar/error.h"

namespace trocar::inject {

// A child that does shares of the work.
class CampaignChild {
public:
    // Forked from this process, with the engine that is here. `quiet`: what it prints is dropped.
    CampaignChild(Injector& injector, bool quiet) : board_(board_of(injector)) {
        int sockets[2];
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
            throw Error(Fault::engine,
                        fmt::format("no process can be started: {}", std::strerror(errno)));
        }
        socket_ = Descriptor(sockets[0]);
        Descriptor other(sockets[1]);
        const auto parent = ::getpid();
        child_ = ::fork();
        if (child_ < 0) {
            throw Error(Fault::engine,
                        fmt::format("no process can be started: {}", std::strerror(errno)));
        }
        if (child_ == 0) {
            settle_child(parent);
            socket_.reset();
            serve(injector, other.get(), board_, quiet);
        }
    }
    // Made by the fork server, with an engine of its own.
    CampaignChild(Injector& injector, bool quiet, ForkServer& server)
        : board_(board_of(injector)), worker_(start_worker(server, injector, board_, quiet)) {}
    CampaignChild(const CampaignChild&) = delete;
    CampaignChild& operator=(const CampaignChild&) = delete;
    ~CampaignChild() { end({}); }

    int socket() const { return worker_ ? worker_->channel() : socket_.get(); }
    const Board& board() const { return board_; }
    Clocks clocks() const { return Clocks::now_of(worker_ ? worker_->id() : child_); }
    // Its wait status; kills it after so long.
    int end(std::chrono::milliseconds patience) {
        if (worker_) {
            status_ = worker_->end(patience);
        } else if (child_ > 0) {
            status_ = end_child(child_, patience);
            child_ = -1;
        }
        return status_;
    }

private:
    static Board board_of(const Injector& injector) {
        return {static_cast<std::size_t>(std::max(1, injector.options().workers)),
                injector.options().accelerate.batch};
    }
    Board board_;
    Descriptor socket_;
    pid_t child_ = -1;
    std::optional<Worker> worker_;
    int status_ = 0;
};

namespace {

std::string ending(int status) {
    return WIFSIGNALED(status) ? signal_name(WTERMSIG(status))
                               : fmt::format("exit code {}", WEXITSTATUS(status));
}

[[noreturn]] void pass_on(const Message& failure) {
    throw Error(std::min(static_cast<Fault>(failure.detail), Fault::internal), failure.text,
                failure.hint);
}

// Waits until a worker has made the campaign, and sees that it is the one of this process. False:
// `stop` said so.
bool meet(CampaignChild& child, Injector& injector, const std::function<bool()>& stop) {
    constexpr std::chrono::minutes to_start{10};  // it loads the model, and runs it twice
    const auto end = std::chrono::steady_clock::now() + to_start;
    for (pollfd source{child.socket(), POLLIN, 0};;) {
        constexpr int often = 50;  // milliseconds
        if (::poll(&source, 1, often) > 0) {
            break;
        }
        if (stop && stop()) {
            return false;
        }
        if (std::chrono::steady_clock::now() > end) {
            throw Error(Fault::engine, fmt::format("the process that is to run the engine has not "
                                                   "been ready for {} minutes",
                                                   to_start.count()));
        }
    }
    Message message;
    if (!receive_message(child.socket(), message)) {
        throw Error(Fault::engine,
                    fmt::format("the process that is to run the engine ended ({}) before it was "
                                "ready",
                                ending(child.end(std::chrono::seconds(2)))));
    }
    if (message.kind == Message::Kind::failure) {
        pass_on(message);
    }
    const auto told = unpacked_share(message.text);
    if (static_cast<Told>(message.detail) != Told::ready ||
        told.group != injector.universe().population() ||
        told.input != injector.universe().trials() ||
        !same_bits(message.values, tensors_of(injector.first_outputs()))) {
        throw Error(Fault::engine,
                    "the engine does not give the same bits in a process of its own");
    }
    return true;
}

}  // namespace

// Passes on what a child tells, and remembers what it has told.
class Supervisor::Filter {
public:
    Filter(const Share& share, Sink& sink)
        : sink_(sink), trials_(share.trials), known_(trials_.size(), false) {}

    void golden(GoldenResult golden) {
        if (!golden_) {
            sink_.golden(golden);
            golden.outputs.clear();
            golden_ = std::move(golden);
        }
    }
    void results(const Results& some) {
        for (const auto& result : some.results) {
            know(result.trial);
        }
        sink_.results(some.results, some.effects);
    }
    void audited(std::uint64_t trial, std::uint64_t input) { sink_.audited(trial, input); }
    bool stop() { return sink_.stop(); }
    void lose(std::uint64_t trial, Outcome outcome, const std::string& how) {
        know(trial);
        sink_.results({lost(golden_.value(), trial, outcome, how)}, {});
    }

    // Is there no result of it yet?
    bool lacks(std::uint64_t trial) const {
        const auto at = place(trial);
        return at < trials_.size() && !known_[at];
    }
    std::vector<std::uint64_t> left() const {
        std::vector<std::uint64_t> some;
        for (std::size_t i = 0; i < trials_.size(); ++i) {
            if (!known_[i]) {
                some.push_back(trials_[i]);
            }
        }
        return some;
    }
    const std::optional<GoldenResult>& known() const { return golden_; }

private:
    std::size_t place(std::uint64_t trial) const {
        const auto at = std::lower_bound(trials_.begin(), trials_.end(), trial);
        return at != trials_.end() && *at == trial ? static_cast<std::size_t>(at - trials_.begin())
                                                   : trials_.size();
    }
    void know(std::uint64_t trial) {
        if (const auto at = place(trial); at < trials_.size()) {
            known_[at] = true;
        }
    }
    Sink& sink_;
    const std::vector<std::uint64_t>& trials_;  // of the share, ascending
    std::vector<bool> known_;                   // by place: there is a result
    std::optional<GoldenResult> golden_;
};

// How a share ended.
struct Supervisor::Ended {
    enum class Kind { done, stopped, crash, hang } kind = Kind::done;
    std::string how = {};  // "SIGSEGV"
    std::vector<std::uint64_t> under_way = {};
};

namespace {

class Nobody : public Sink {
public:
    void golden(const GoldenResult&) override {}
    void results(const std::vector<TrialResult>&, const std::vector<LayerEffect>&) override {}
    void audited(std::uint64_t, std::uint64_t) override {}
    bool stop() override { return false; }
};

// Trials that go side by side, in a child that has still to compile much, take longer; the limit
// itself is for the one that is run alone.
constexpr double patience_together = 3;

}  // namespace

Supervisor::Supervisor(Injector& injector)
    : injector_(injector), patience_(injector.options().time_limit, injector.golden_seconds()) {}
Supervisor::~Supervisor() = default;

// False: `stop` said so.
bool Supervisor::renew(std::unique_ptr<CampaignChild>& child, bool quiet,
                       const std::function<bool()>& stop) {
    if (child) {
        return true;
    }
    if (server_ == nullptr) {
        child = std::make_unique<CampaignChild>(injector_, quiet);
        return true;
    }
    child = std::make_unique<CampaignChild>(injector_, quiet, *server_);
    if (!meet(*child, injector_, stop)) {
        child.reset();
    }
    return child != nullptr;
}

// Hands a share to a child and takes what it tells, to the end of either.
Supervisor::Ended Supervisor::listen(CampaignChild& process, const Share& share, Filter& filter) {
    Message request;
    request.kind = Message::Kind::run;
    request.text = packed(share);
    if (server_ != nullptr && !share.trials.empty()) {
        request.hint = given_;
    }
    send_message(process.socket(), request);  // that nobody takes it is seen below
    // A rehearsal has no fault: what the user allows one is not meant for it.
    const auto patience =
        share.trials.empty() ? Patience(0, injector_.golden_seconds()) : patience_;
    const auto factor = share.plainly ? 1 : patience_together;
    const auto workers = share.plainly ? 1 : injector_.options().workers;
    for (;;) {
        if (filter.stop()) {
            return {Ended::Kind::stopped};
        }
        pollfd source{process.socket(), POLLIN, 0};
        constexpr int often = 50;  // milliseconds
        if (::poll(&source, 1, often) <= 0) {
            if (process.board().is_over(process.clocks(), workers, patience, factor)) {
                process.end({});
                return {Ended::Kind::hang, "", process.board().under_way()};
            }
            continue;
        }
        Message message;
        if (!receive_message(process.socket(), message)) {
            const int status = process.end(std::chrono::seconds(2));
            return {Ended::Kind::crash, ending(status), process.board().under_way()};
        }
        if (message.kind == Message::Kind::failure) {
            pass_on(message);
        }
        switch (static_cast<Told>(message.detail)) {
            case Told::ready:
                break;
            case Told::golden: {
                auto golden = unpacked_golden(message.text);
                golden.outputs = std::move(message.values);
                filter.golden(std::move(golden));
                break;
            }
            case Told::results:
                if (const auto some = unpacked_results(message.text); !some.results.empty()) {
                    filter.results(some);
                }
                break;
            case Told::audited: {
                const auto which = unpacked_share(message.text);
                filter.audited(which.trials.at(0), which.input);
                break;
            }
            case Told::done: {
                Saved saved;
                std::memcpy(&saved, message.text.data(),
                            std::min(sizeof saved, message.text.size()));
                saved_ += saved;
                return {};
            }
        }
    }
}

// False: stopped.
bool Supervisor::work_together(const Share& share, Filter& filter,
                               std::vector<std::uint64_t>& suspects) {
    auto some = share;
    for (;;) {
        some.trials.clear();
        for (const auto trial : filter.left()) {
            if (std::find(suspects.begin(), suspects.end(), trial) == suspects.end()) {
                some.trials.push_back(trial);
            }
        }
        if (some.trials.empty()) {
            return true;
        }
        if (!renew(together_, false, [&] { return filter.stop(); })) {
            return false;
        }
        const auto ended = listen(*together_, some, filter);
        if (ended.kind == Ended::Kind::done) {
            return true;
        }
        together_.reset();
        if (ended.kind == Ended::Kind::stopped) {
            return false;
        }
        const auto before = suspects.size();
        for (const auto trial : ended.under_way) {
            if (filter.lacks(trial)) {
                suspects.push_back(trial);
            }
        }
        if (suspects.size() == before && ended.kind == Ended::Kind::crash) {
            throw Error(Fault::engine,
                        fmt::format("the engine crashed ({}) on input {} where no fault was",
                                    ended.how, share.input),
                        "`trocar run --isolate` may tell more");
        }
    }
}

bool Supervisor::work_alone(const Share& share, Filter& filter,
                            const std::vector<std::uint64_t>& suspects) {
    for (const auto trial : suspects) {
        if (!renew(alone_, true, [&] { return filter.stop(); })) {
            return false;
        }
        const auto ended = listen(*alone_, Share{share.group, share.input, {trial}, true}, filter);
        if (ended.kind == Ended::Kind::done) {
            continue;
        }
        alone_.reset();
        if (ended.kind == Ended::Kind::stopped) {
            return false;
        }
        if (ended.under_way.empty() && ended.kind == Ended::Kind::crash) {
            throw Error(Fault::engine,
                        fmt::format("the engine crashed ({}) on input {} where no fault was",
                                    ended.how, share.input));
        }
        const bool crash = ended.kind == Ended::Kind::crash;
        if (!works_without_faults()) {
            throw Error(
                Fault::engine,
                fmt::format("the engine {} in a child process without a fault, too, so that "
                            "nothing can be said of faults",
                            crash ? "does not survive" : "does not end"),
                "--no-isolate runs it in this process");
        }
        dangerous_.insert(trial);
        filter.lose(trial, crash ? Outcome::crash : Outcome::hang,
                    crash ? ended.how : patience_.text());
    }
    if (server_ == nullptr) {
        alone_.reset();  // it holds the golden tensors of this input, and another one is soon made
    }
    return true;
}

// Does a child like those that trials run alone in survive the run of every op, compiled there?
// Once is enough: all children are made alike.
bool Supervisor::works_without_faults() {
    if (!proven_) {
        std::unique_ptr<CampaignChild> child;
        renew(child, true, {});
        proven_ = runs_golden(*child, true);
    }
    return proven_;
}

bool Supervisor::runs_golden(CampaignChild& child, bool all) {
    Nobody nobody;
    const Share nothing{0, 0, {}, all};
    Filter filter(nothing, nobody);
    const auto saved = saved_;
    const auto ended = listen(child, nothing, filter);
    saved_ = saved;
    return ended.kind == Ended::Kind::done;
}

bool Supervisor::rehearse() {
    const auto can = [&] {
        try {
            renew(together_, false, {});
            if (runs_golden(*together_, false)) {
                return true;
            }
        } catch (const Error& e) {
            why_not_ = e.what();
        }
        together_.reset();
        return false;
    };
    if (can()) {
        return true;
    }
    // Not in a process that was forked after the engine was started.
    if (ForkServer::running() == nullptr || injector_.options().recipe.make == nullptr) {
        return false;
    }
    server_ = ForkServer::running();
    return can();
}

bool Supervisor::work(const Share& share, Sink& sink) {
    Filter filter(share, sink);
    std::vector<std::uint64_t> suspects;
    for (const auto trial : share.trials) {
        if (dangerous_.contains(trial)) {
            suspects.push_back(trial);
        }
    }
    if (!work_together(share, filter, suspects)) {
        return false;
    }
    const bool left_out = filter.known() && filter.known()->left_out;
    return left_out || work_alone(share, filter, suspects);
}

TrialResult Supervisor::replay(const Trial& trial, std::uint64_t input,
                               std::vector<LayerEffect>& effects) {
    // Takes the one result there is.
    class One : public Nobody {
    public:
        explicit One(std::vector<LayerEffect>& effects) : effects_(effects) {}
        void results(const std::vector<TrialResult>& results,
                     const std::vector<LayerEffect>& effects) override {
            result = results.at(0);
            effects_ = effects;
        }
        TrialResult result;

    private:
        std::vector<LayerEffect>& effects_;
    };
    One one(effects);
    injector_.give(trial);
    given_ = text(trial.faults);
    const Share share{trial.number, input, {trial.number}, true};
    Filter filter(share, one);
    work_alone(share, filter, share.trials);
    return one.result;
}

}  // namespace trocar::inject
