#include "trocar/session.h"

#include "run/session_parts.h"
#include "trocar/error.h"

namespace trocar {

Session::Session(const Model& model, std::shared_ptr<Engine> engine, SessionOptions options)
    : parts_(std::make_unique<Parts>(model, std::move(engine), std::move(options))) {
    if (parts_->options.isolate) {
        throw Error(Fault::usage, "a session on an engine that is open already cannot be isolated",
                    "give the session EngineOptions instead");
    }
    parts_->prepare();
    if (!parts_->whole || parts_->options.streaming) {
        return;
    }
    try {
        parts_->programs.front() = parts_->compile_whole();
    } catch (const Error& e) {
        // A tap may stand where the engine does not take one, for types that no file declares.
        if (e.fault() != Fault::engine || ports().taps == 0 ||
            parts_->options.lowering != Lowering::automatic) {
            throw;
        }
        parts_->prepare(true);
    }
}

Session::Session(const Model& model, const EngineOptions& engine, SessionOptions options) {
    if (options.isolate && !options.tools.empty()) {
        throw Error(Fault::usage, "tools cannot reach into an isolated session",
                    "isolate the whole process instead");
    }
    if (!options.isolate) {
        *this = Session(model, open_engine(engine), std::move(options));
        return;
    }
    parts_ = std::make_unique<Parts>(model, nullptr, options);
    parts_->prepare();
    options.isolate = false;
    const auto prepare = [&](const Log& log) -> Isolated::Work {
        auto inside = engine;
        inside.log = log;
        auto session = std::make_shared<Session>(model, open_engine(inside), options);
        return [session](const std::vector<NamedValue>& inputs) { return session->run(inputs); };
    };
    parts_->isolated = std::make_unique<Isolated>(
        prepare, Isolated::Options{.log = engine.log, .timeout = {}, .doing = "running the model"});
}

Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

const Model& Session::model() const {
    return parts_->model();
}

Ports Session::ports() const {
    return parts_->instruments ? parts_->instruments->ports() : Ports{};
}

const Plan& Session::plan() const {
    return parts_->plan;
}

std::vector<TensorId> Session::required_inputs() const {
    std::vector<TensorId> required;
    for (const auto id : parts_->graph().inputs()) {
        if (!parts_->graph().tensor(id).constant) {
            required.push_back(id);
        }
    }
    return required;
}

std::vector<NamedValue> Session::run(const std::vector<NamedValue>& inputs,
                                     const Observer& observer) {
    if (parts_->isolated) {
        return parts_->isolated->run(inputs);
    }
    return parts_->run(inputs, observer, false);
}

std::vector<NamedValue> Session::run_what_can(const std::vector<NamedValue>& inputs,
                                              const Observer& observer) {
    if (parts_->isolated) {
        throw Error(Fault::usage, "an isolated session cannot run what it can");
    }
    return parts_->run(inputs, observer, true);
}

Footprint Session::footprint() const {
    Footprint total;
    std::uint64_t sum = 0;
    for (const auto& compiled : parts_->programs) {
        if (!compiled.program) {
            continue;
        }
        const auto one = compiled.program->footprint();
        if (!one.constant_bytes_copied) {
            return one;
        }
        sum += *one.constant_bytes_copied;
    }
    total.constant_bytes_copied = sum;
    return total;
}

}  // namespace trocar
