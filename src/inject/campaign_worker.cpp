#include "inject/campaign_worker.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>

#include "inject/wire.h"
#include "trocar/error.h"
#include "trocar/fault.h"

namespace trocar::inject {

std::vector<NamedValue> tensors_of(const std::vector<NamedValue>& values) {
    std::vector<NamedValue> tensors;
    for (const auto& value : values) {
        if (value.value.is_tensor()) {
            tensors.push_back(value);
        }
    }
    return tensors;
}

namespace {

// The child's side: tells its parent all that comes.
class Teller : public Sink {
public:
    Teller(int socket, Board& board) : socket_(socket), board_(board) {}

    void golden(const GoldenResult& golden) override {
        Message message;
        message.text = packed(golden);
        message.values = tensors_of(golden.outputs);
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

    void ready(Injector& injector) {
        Message message;
        message.text =
            packed(Share{injector.universe().population(), injector.universe().trials(), {}});
        message.values = tensors_of(injector.first_outputs());
        tell(Told::ready, std::move(message));
    }
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
void rehearse_here(Injector& injector, Board& board, bool all) {
    const Silence silence;
    constexpr std::uint64_t none = 0;
    board.begin(0, {&none, 1});
    if (!(all ? injector.rehearse_all() : injector.rehearse())) {
        ::_exit(1);
    }
    board.end(0);
}

// What a worker of the fork server is told.
struct Head {
    void (*make)(const std::string&, const CampaignTaker&);
    std::size_t workers;
    std::size_t lanes;
    bool quiet;
};

void work_for_server(Descriptor channel, const std::string& arguments,
                     std::vector<Descriptor> more) {
    Head head{};
    if (arguments.size() < sizeof head || more.empty()) {
        return;
    }
    std::memcpy(&head, arguments.data(), sizeof head);
    Board board(head.workers, head.lanes, std::move(more[0]));
    Teller teller(channel.get(), board);
    try {
        head.make(
            arguments.substr(sizeof head), [&](const Model& model, std::shared_ptr<Engine> engine,
                                               CampaignInputs inputs, CampaignOptions options) {
                options.isolate = false;
                options.workers = static_cast<int>(head.workers);
                Injector injector(model, std::move(engine), std::move(inputs), std::move(options));
                injector.find_ranges();
                teller.ready(injector);
                serve(injector, channel.get(), board, head.quiet);
            });
    } catch (const Error& e) {
        teller.fail(e.fault(), e.what(), e.hint());
    } catch (const std::exception& e) {
        teller.fail(Fault::internal, e.what(), "");
    }
}

}  // namespace

void serve(Injector& injector, int socket, Board& board, bool quiet) {
    std::optional<Silence> silence;
    if (quiet) {
        silence.emplace();
    }
    Teller teller(socket, board);
    try {
        for (Message request; receive_message(socket, request);) {
            const auto share = unpacked_share(request.text);
            if (!request.hint.empty()) {
                Trial given;
                given.number = share.trials.at(0);
                given.faults = parse_faults(request.hint);
                injector.give(given);
            }
            injector.forget_saved();
            if (share.trials.empty()) {
                rehearse_here(injector, board, share.plainly);
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

Worker start_worker(ForkServer& server, const Injector& injector, const Board& board, bool quiet) {
    const auto& options = injector.options();
    const Head head{options.recipe.make, static_cast<std::size_t>(std::max(1, options.workers)),
                    options.accelerate.batch, quiet};
    std::string arguments(reinterpret_cast<const char*>(&head), sizeof head);
    arguments += options.recipe.arguments;
    const int memory = board.memory();
    return server.fork(work_for_server, arguments, {&memory, 1});
}

}  // namespace trocar::inject
