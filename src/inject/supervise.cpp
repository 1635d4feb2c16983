#include "inject/supervise.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "inject/wire.h"
#include "run/child.h"
#include "run/isolate_message.h"
#include "trocar/error.h"
#include "util/process.h"

namespace trocar::inject {

namespace {

// Which trials are under way, and since when: written by a child's workers, read by its parent,
// also after the child's death.
class Board {
public:
    Board(std::size_t workers, std::size_t lanes)
        : lanes_(std::max<std::size_t>(1, lanes)), slots_(std::max<std::size_t>(1, workers)) {
        auto* shared =
            ::mmap(nullptr, size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (shared == MAP_FAILED) {
            throw Error(Fault::engine, fmt::format("no memory to share: {}", std::strerror(errno)));
        }
        words_ = static_cast<Word*>(shared);
    }
    Board(const Board&) = delete;
    Board& operator=(const Board&) = delete;
    ~Board() { ::munmap(words_, size()); }

    void begin(std::size_t worker, std::span<const std::uint64_t> trials) {
        auto* slot = at(worker);
        for (std::size_t i = 0; i < trials.size() && i < lanes_; ++i) {
            slot[head + i].store(trials[i], std::memory_order_relaxed);
        }
        const auto now = Clocks::now();
        slot[1].store(std::bit_cast<std::uint64_t>(now.wall), std::memory_order_relaxed);
        slot[2].store(std::bit_cast<std::uint64_t>(now.busy), std::memory_order_relaxed);
        slot[0].store(trials.size(), std::memory_order_release);
    }
    void end(std::size_t worker) { at(worker)[0].store(0, std::memory_order_release); }

    // Has one of those under way been so for too long, by the child's clocks? `workers` of it share
    // the processor's time.
    bool is_over(const Clocks& now, int workers, const Patience& patience, double factor) const {
        for (std::size_t w = 0; w < slots_; ++w) {
            if (at(w)[0].load(std::memory_order_acquire) > 0) {
                auto taken =
                    now - Clocks{std::bit_cast<double>(at(w)[1].load(std::memory_order_relaxed)),
                                 std::bit_cast<double>(at(w)[2].load(std::memory_order_relaxed))};
                taken.busy /= std::max(1, workers);
                if (patience.is_over(taken, factor)) {
                    return true;
                }
            }
        }
        return false;
    }
    std::vector<std::uint64_t> under_way() const {
        std::vector<std::uint64_t> trials;
        for (std::size_t w = 0; w < slots_; ++w) {
            const auto count = at(w)[0].load(std::memory_order_acquire);
            for (std::size_t i = 0; i < count && i < lanes_; ++i) {
                trials.push_back(at(w)[head + i].load(std::memory_order_relaxed));
            }
        }
        return trials;
    }

private:
    using Word = std::atomic<std::uint64_t>;
    static_assert(Word::is_always_lock_free);
    static constexpr std::size_t head = 3;  // number of trials, clocks at their beginning
    std::size_t size() const { return slots_ * (head + lanes_) * sizeof(Word); }
    Word* at(std::size_t worker) const { return words_ + worker * (head + lanes_); }

    std::size_t lanes_;
    std::size_t slots_;
    Word* words_ = nullptr;
};

// What a child tells, in the detail of a message.
enum class Told : std::uint32_t { golden, results, audited, done };

// The child's side: tells its parent all that comes.
class Teller : public Sink {
public:
    Teller(int socket, Board& board) : socket_(socket), board_(board) {}

    void golden(const GoldenResult& golden) override {
        Message message;
        message.text = packed(golden);
        for (const auto& output : golden.outputs) {
            if (output.value.is_tensor()) {
                message.values.push_back(output);
            }
        }
        tell(Told::golden, std::move(message));
    }
    // Told now and then: what is lost with a crash is done again.
    void results(const std::vector<TrialResult>& results,
                 const std::vector<LayerEffect>& effects) override {
        results_.insert(results_.end(), results.begin(), results.end());
        effects_.insert(effects_.end(), effects.begin(), effects.end());
        constexpr std::size_t many = 4096;
        constexpr double often = 0.1;  // seconds
        if (results_.size() + effects_.size() >= many || Clocks::now().wall - told_ >= often) {
            tell_results();
        }
    }
    void audited(std::uint64_t trial, std::uint64_t input) override {
        Message message;
        message.text = packed(Share{0, input, {trial}});
        tell(Told::audited, std::move(message));
    }
    bool stop() override { return false; }  // the parent ends this process
    void begin(std::size_t worker, std::span<const std::uint64_t> trials) override {
        board_.begin(worker, trials);
    }
    void end(std::size_t worker) override { board_.end(worker); }

    void done(const Saved& saved) {
        tell_results();
        static_assert(std::is_trivially_copyable_v<Saved>);
        Message message;
        message.text.assign(reinterpret_cast<const char*>(&saved), sizeof saved);
        tell(Told::done, std::move(message));
    }
    void fail(Fault fault, const std::string& sentence, const std::string& hint) {
        Message message;
        message.kind = Message::Kind::failure;
        message.detail = static_cast<std::uint32_t>(fault);
        message.text = sentence;
        message.hint = hint;
        send(message);
    }

private:
    void tell_results() {
        Message message;
        message.text = packed(results_, effects_);
        results_.clear();
        effects_.clear();
        told_ = Clocks::now().wall;
        tell(Told::results, std::move(message));
    }
    void tell(Told what, Message message) {
        message.kind = Message::Kind::result;
        message.detail = static_cast<std::uint32_t>(what);
        send(message);
    }
    void send(const Message& message) {
        if (!send_message(socket_, message)) {
            ::_exit(0);  // the parent is gone
        }
    }
    int socket_;
    Board& board_;
    std::vector<TrialResult> results_;
    std::vector<LayerEffect> effects_;
    double told_ = 0;
};

// What this process prints is dropped, while the object is there.
class Silence {
public:
    Silence() {
        std::fflush(nullptr);
        const Descriptor nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
        for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
            kept_[stream] = Descriptor(::fcntl(stream, F_DUPFD_CLOEXEC, 3));
            ::dup2(nothing.get(), stream);
        }
    }
    Silence(const Silence&) = delete;
    Silence& operator=(const Silence&) = delete;
    ~Silence() {
        std::fflush(nullptr);
        for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
            if (kept_[stream].is_open()) {
                ::dup2(kept_[stream].get(), stream);
            }
        }
    }

private:
    Descriptor kept_[3];
};

// Does this child have the golden bits of its parent? Ends it if not.
void rehearse_here(Injector& injector, Board& board) {
    const Silence silence;
    constexpr std::uint64_t none = 0;
    board.begin(0, {&none, 1});
    if (!injector.rehearse()) {
        ::_exit(1);
    }
    board.end(0);
}

[[noreturn]] void serve(Injector& injector, int socket, Board& board) {
    Teller teller(socket, board);
    try {
        for (Message request; receive_message(socket, request);) {
            const auto share = unpacked_share(request.text);
            injector.forget_saved();
            if (share.trials.empty()) {
                rehearse_here(injector, board);
            } else {
                injector.work(share, teller);
            }
            teller.done(injector.saved());
        }
    } catch (const Error& e) {
        teller.fail(e.fault(), e.what(), e.hint());
    } catch (const std::exception& e) {
        teller.fail(Fault::internal, e.what(), "");
    }
    ::_exit(0);
}

}  // namespace

// A child that does shares of the work.
class Process {
public:
    // `quiet`: what it prints is dropped.
    Process(Injector& injector, bool quiet)
        : board_(static_cast<std::size_t>(std::max(1, injector.options().workers)),
                 injector.options().accelerate.batch) {
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
            std::optional<Silence> silence;
            if (quiet) {
                silence.emplace();
            }
            socket_.reset();
            serve(injector, other.get(), board_);
        }
    }
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;
    ~Process() { end({}); }

    int socket() const { return socket_.get(); }
    const Board& board() const { return board_; }
    Clocks clocks() const { return Clocks::now_of(child_); }
    // Its wait status; kills it after so long.
    int end(std::chrono::milliseconds patience) {
        if (child_ > 0) {
            status_ = end_child(child_, patience);
            child_ = -1;
        }
        return status_;
    }

private:
    Board board_;
    Descriptor socket_;
    pid_t child_ = -1;
    int status_ = 0;
};

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

void Supervisor::renew(std::unique_ptr<Process>& process, bool quiet) {
    if (!process) {
        process = std::make_unique<Process>(injector_, quiet);
    }
}

// Hands a share to a child and takes what it tells, to the end of either.
Supervisor::Ended Supervisor::listen(Process& process, const Share& share, Filter& filter) {
    Message request;
    request.kind = Message::Kind::run;
    request.text = packed(share);
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
            return {Ended::Kind::crash,
                    WIFSIGNALED(status) ? signal_name(WTERMSIG(status))
                                        : fmt::format("exit code {}", WEXITSTATUS(status)),
                    process.board().under_way()};
        }
        if (message.kind == Message::Kind::failure) {
            throw Error(std::min(static_cast<Fault>(message.detail), Fault::internal), message.text,
                        message.hint);
        }
        switch (static_cast<Told>(message.detail)) {
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
        renew(together_, false);
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
        renew(alone_, true);
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
        dangerous_.insert(trial);
        const bool crash = ended.kind == Ended::Kind::crash;
        filter.lose(trial, crash ? Outcome::crash : Outcome::hang,
                    crash ? ended.how : patience_.text());
    }
    alone_.reset();  // it holds the golden tensors of this input
    return true;
}

bool Supervisor::rehearse() {
    Nobody nobody;
    const Share nothing{0, 0, {}, true};
    Filter filter(nothing, nobody);
    renew(together_, false);
    try {
        if (listen(*together_, nothing, filter).kind == Ended::Kind::done) {
            saved_ = {};
            return true;
        }
    } catch (const Error&) {
        // It cannot be done in a child.
    }
    together_.reset();
    return false;
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
    const Share share{trial.number, input, {trial.number}, true};
    Filter filter(share, one);
    work_alone(share, filter, share.trials);
    return one.result;
}

}  // namespace trocar::inject
