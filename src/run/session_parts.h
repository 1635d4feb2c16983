#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "run/instruments.h"
#include "run/isolate.h"
#include "trocar/error.h"
#include "trocar/session.h"

namespace trocar {

// A program and where its inputs and outputs stand in the graph.
struct Compiled {
    std::unique_ptr<Program> program;
    std::vector<TensorId> inputs;
    std::vector<TensorId> outputs;
};

struct Session::Parts {
    Parts(const Model& model, std::shared_ptr<Engine> runs_on, SessionOptions how)
        : given(model), engine(std::move(runs_on)), options(std::move(how)) {}

    const Model& given;
    std::shared_ptr<Engine> engine;
    SessionOptions options;
    std::unique_ptr<Instruments> instruments;  // nullptr: no tools
    Plan plan;
    bool whole = false;  // no cut: the engine is given the model as it is
    std::vector<Compiled> programs;
    std::vector<Instruments::AtCut*> cuts;  // by segment; empty: no tools
    std::unique_ptr<Isolated> isolated;

    // Of the run under way, by TensorId.
    std::vector<Value> values;
    std::vector<bool> known;
    std::vector<Value> in;
    std::vector<Value> out;

    const Model& model() const { return instruments ? instruments->model() : given; }
    const Graph& graph() const { return model().graph; }

    // --- session_compile.cpp ---
    void prepare(bool main_as_cuts = false);
    Compiled compile_whole() const;
    Compiled compile(const Segment& segment);

    // --- session_run.cpp ---
    std::vector<NamedValue> run(const std::vector<NamedValue>& inputs, const Observer& observer,
                                bool keep_going);

    // Errors of the engine say which ops they are about.
    template <class F>
    auto at(const Segment& segment, F&& work) {
        try {
            return work();
        } catch (const Error& e) {
            if (e.fault() != Fault::engine && e.fault() != Fault::unsupported) {
                throw;
            }
            throw Error(e.fault(), fmt::format("{}: {}", place(segment), e.what()), e.hint());
        }
    }

private:
    std::string place(const Segment& segment) const;
    Type input_type(TensorId id) const;
    CompileOptions compile_options() const;

    void set(TensorId id, Value value) {
        values[index(id)] = std::move(value);
        known[index(id)] = true;
    }
    void forget(TensorId id) {
        values[index(id)] = {};
        known[index(id)] = false;
    }
    void take_inputs(const std::vector<NamedValue>& inputs);
    std::uint64_t run_program(Compiled& compiled);
    void run_whole(const std::vector<NamedValue>& inputs, const Observer& observer);
    void run_segment(std::size_t number, const Observer& observer);
    std::uint64_t run_at_ports(const Segment& segment, Compiled& compiled, Instruments::AtCut& cut);
    void call_after(Instruments::AtCut& cut, OpId op);
    void take_outputs(const SitePort& port, OpId op);
    void give_inputs(SitePort& port, OpId op, const Instruments::AtCut& cut) const;
    void stop_if_asked() const;
    void after_segment(std::size_t number);
    std::string missing_input(const Segment& segment) const;
    void try_segment(std::size_t number, const Observer& observer);
    void run_segments(const Observer& observer, bool keep_going);
    std::vector<NamedValue> results();
};

}  // namespace trocar
