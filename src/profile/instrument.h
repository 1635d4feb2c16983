#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trocar/profile.h"
#include "trocar/session.h"
#include "util/clock.h"

namespace trocar::profiling {

// A program with the values it takes, ready to be run again and again.
class Runner {
public:
    // `inputs` by name; those that are missing are optionals without value.
    Runner(std::unique_ptr<Program> program, const std::vector<NamedValue>& inputs);
    double run();  // the nanoseconds it took
    Program& program() { return *program_; }

private:
    std::unique_ptr<Program> program_;
    std::vector<Value> inputs_;
    std::vector<Value> outputs_;
};

// A way to see what the parts of a model take.
class Instrument {
public:
    virtual ~Instrument() = default;
    // One profiled run: the nanoseconds it took.
    virtual double run() = 0;
    // Fills parts, their times (the first run is the cold one) and their memory. Once.
    virtual void report(Profile& to) = 0;
};

// The engine's own ops, timed by the engine.
std::unique_ptr<Instrument> time_kernels(const Model& model, const std::shared_ptr<Engine>& engine,
                                         const std::vector<NamedValue>& inputs);
// Programs between cuts, timed from outside.
std::unique_ptr<Instrument> time_layers(const Model& model, const std::shared_ptr<Engine>& engine,
                                        const std::vector<NamedValue>& inputs, const Selector& cut);

// Name, type, module and ops of a part that computes these ops of a model.
void describe(const Graph& graph, std::vector<OpId> ops, ProfilePart& part);

// Puts MACs and FLOPs into the parts, from the shapes that a run op by op shows.
void count_parts(const Model& model, const std::shared_ptr<Engine>& engine,
                 const std::vector<NamedValue>& inputs, const ProfileOptions& options, Profile& to);

// Bytes of a tensor of this type; nothing where it has no fixed size.
std::optional<std::uint64_t> bytes_of(const Type& type);

// The memory of tensors while parts run one after the other.
class Memory {
public:
    void hold(std::uint64_t bytes) { live_ += bytes; }
    // A part writes tensors of this size, then frees others.
    void run(ProfilePart& part, std::size_t number, std::uint64_t written, std::uint64_t freed) {
        live_ += written;
        if (live_ > peak_) {
            peak_ = live_;
            peak_part_ = number;
        }
        part.allocated_bytes = written;
        part.freed_bytes = freed;
        part.live_bytes = live_;
        live_ -= std::min(live_, freed);
    }
    void report(Profile& to) const {
        to.peak_bytes = peak_;
        to.peak_part = peak_part_;
    }

private:
    std::uint64_t live_ = 0;
    std::uint64_t peak_ = 0;
    std::size_t peak_part_ = ProfilePart::none;
};

}  // namespace trocar::profiling
