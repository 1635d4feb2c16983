#pragma once

#include <string>
#include <vector>

#include "trocar/graph.h"

namespace trocar {

// Puts copies in the place of the subgraphs that attributes share with others.
void clone_subgraphs(std::vector<Attribute>& attributes);

// The working parts of Graph's edits: linking and unlinking without checks, and the checks without
// linking. Edits first check all, then link, so that a refused edit leaves no trace.
struct GraphEdit {
    Graph& g;

    // --- Order ---
    void link_between(OpId op, OpId before,
                      OpId after);  // `before` precedes it; either may be none
    void unlink(OpId op);
    std::uint64_t label(OpId op) const { return g.ops_[index(op)].label; }
    // Is `tensor` known when an op right after `at` runs (none: before the first op)?
    bool known_after(TensorId tensor, OpId at) const;

    // --- Uses ---
    void add_use(OpId op, std::uint32_t slot);
    void add_capture_use(OpId op, std::size_t at);
    void drop_use(OpId op, std::uint32_t slot);
    void drop_capture_use(OpId op, std::size_t at);
    void connect(OpId op);     // all inputs, captures and outputs
    void disconnect(OpId op);  // likewise

    // --- Checks: throw Error(usage) ---
    void need(TensorId tensor, const char* doing) const;
    void need(OpId op, const char* doing) const;
    // `taken_over`: outputs of this op count as free.
    void check_spec(const OpSpec& spec, const std::vector<TensorId>& captures, OpId at,
                    OpId taken_over) const;
    std::vector<TensorId> captures_of(const OpSpec& spec) const;
    // Would subgraphs that capture `old_name` accept `new_name`?
    void check_captured_name(OpId op, std::string_view old_name, std::string_view new_name) const;

    // --- Parts of edits ---
    OpId add(OpSpec spec, std::vector<TensorId> captures, OpId before, OpId after);
    TensorId new_tensor(std::string name, Type type);
    void set_name(TensorId tensor, std::string name);
    void redirect(const Use& use, TensorId from, TensorId to);
    void rename_captured(OpId op, std::string_view old_name, const std::string& new_name);
    void touch(OpId op);
    void touch() { g.source.edited = true; }
    // Makes `op` come after `producer`; throws Error(usage) when `producer` depends on `op`.
    void order_after(OpId op, OpId producer);

private:
    void drop_use_at(TensorId tensor, std::uint32_t at);
    void make_room_after(OpId at);
    void relabel_all();
    static void rename_in(Graph& graph, std::string_view old_name, const std::string& new_name);
};

}  // namespace trocar
