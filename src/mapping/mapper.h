#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "mapping/control.h"
#include "mapping/evaluate.h"
#include "mapping/match.h"
#include "mapping/rule_files.h"
#include "trocar/mapping.h"

namespace trocar::mapping {

// A rule of one of the files that are in use.
struct Choice {
    const RuleFile* file;
    const Rule* rule;
};

// What all mappers of a model share.
struct MapJob {
    MapJob(const Model& model, const RuleFiles& rules);
    const std::string& dialect;  // of the source
    const RuleFiles& files;
    std::map<std::string, std::vector<Choice>>
        choices;  // by the type of the op that a rule ends in
    Bodies bodies;
};

// Maps one graph: that of a model, or a body in it.
class Mapper {
public:
    // Into `target`; `outer` is the mapper of the graph around this one, for bodies.
    Mapper(const Graph& source, MapJob& job, Graph& target, Mapper* outer);

    void run();
    std::vector<MappedOp> take_notes() { return std::move(notes_); }

private:
    void map_ops();
    void find_needed();
    void claim();
    const std::vector<Choice>& of(OpId op) const;
    void map(OpId op);
    void carry(OpId op);
    void map_one(OpId op);
    bool apply_rule(const Choice& choice, const Match& match, std::string& why);
    void give(TensorId source, const RuleValue& value, const Rule& rule);
    void note(OpId op, MappedOp::State state, const std::string& rule, const std::string& why);
    void outputs();
    const std::string& target_name() const { return job_.files.back()->to; }
    // The name of a tensor of the source, or a fresh one where another has it.
    std::string free_name(const std::string& name) const;

    // --- Ops with bodies: map_bodies.cpp ---
    bool map_control(OpId op);
    std::string map_bodies(OpId op, const ControlOp& control);
    std::string map_choice(OpId op, const ControlOp& control);
    std::string map_counted(OpId op, const ControlOp& control);
    std::string map_repeated(OpId op, const ControlOp& control);
    TensorId around(const std::string& name);
    TensorId mapped_input(TensorId id);
    void take_operands(const ControlOp& control);
    void take_captured();
    void map_inside();
    std::vector<TensorId> mapped_outputs();
    TensorId answer();
    void close_body(OpId op, const std::vector<TensorId>& outputs);
    void inline_body(OpId op, const ControlOp& control, const Graph& body);
    bool knows(const std::string& name) const;
    std::string unused_around(OpId op, const std::string& stem) const;
    void append_control(OpId op, OpSpec spec, const std::vector<TensorId>& results);

    const Graph& source_;
    MapJob& job_;
    Graph& target_;
    Mapper* outer_;
    int depth_;
    Builder builder_;
    std::vector<MappedOp> notes_;
    std::set<OpId> needed_;
    std::map<OpId, OpId> claimed_;
    std::map<OpId, std::pair<Choice, Match>> taken_;
    std::set<TensorId> given_;
};

}  // namespace trocar::mapping
