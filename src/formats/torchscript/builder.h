#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/torchscript/schema.h"
#include "formats/torchscript/value.h"
#include "trocar/graph.h"

namespace trocar::torchscript {

// A graph that is being made: the model's, or the body of an If or a Loop in it.
struct Region {
    Graph graph;
    Region* outer = nullptr;
    int depth = 0;
    std::unordered_map<std::size_t, TensorId> tensors;  // by place in the Builder's table
};

// An op while its arguments are gathered.
struct Draft {
    OpSpec spec;
    std::vector<std::string> slots;
};

// Makes ops, and keeps what values of the graph are called. Names are unique over all graphs, so
// that bodies can capture.
class Builder {
public:
    Builder() { region_ = &root_; }

    struct Entry {
        std::string name;
        std::string kind;
        int depth = 0;
        std::optional<Runtime> base;  // it is a view of
    };
    const Entry& entry(Runtime value) const { return entries_[value.place]; }
    std::size_t count() const { return entries_.size(); }

    Region& region() { return *region_; }
    Region& root() { return root_; }
    int depth() const { return region_->depth; }
    // Enters a new body; back to `outer` with leave.
    void enter(Region& inside);
    void leave() { region_ = region_->outer; }
    void resume(Region& region) { region_ = &region; }
    // The finished graph of a body, without constants and captures that nothing reads.
    static std::shared_ptr<Graph> finished(Region& region);
    static void tidy(Graph& graph);

    // Where ops come from, and what their results are called.
    struct Place {
        std::string module;
        std::string source;
        std::string stem;  // of names: the variable that is assigned
    };
    void set_place(Place place) { place_ = std::move(place); }
    const Place& place() const { return place_; }

    TensorId resolve(Runtime value) { return resolve(*region_, value); }
    Runtime add_input(Region& region, const std::string& name, const std::string& kind);
    Runtime add_constant(const std::string& name, Constant value, const std::string& kind);
    // A constant of the graph that is at work.
    Runtime add_local_constant(Constant value, const std::string& kind);
    Runtime add_output(Draft& draft, const std::string& kind, const std::string& stem = {});
    OpId append(Draft draft);
    void set_rank(Runtime value, std::size_t rank);  // where it is not known
    void set_base(Runtime view, Runtime base) { entries_[view.place].base = base; }

    static void add_argument(Draft& draft, const std::string& name, Attribute::Value value);
    void add_argument(Draft& draft, const std::string& name, Runtime value);

    // A free name; one that is kept outlasts what is thrown away.
    std::string unused(std::string_view stem, bool kept = false);
    // Names since a mark are free again: what was made since is thrown away.
    std::size_t mark() const { return journal_.size(); }
    void forget(std::size_t mark);
    std::size_t ops() const { return ops_; }

private:
    TensorId resolve(Region& region, Runtime value);
    Runtime add_entry(Region& region, std::string name, const std::string& kind, TensorId id);

    Region root_;
    Region* region_;
    Place place_;
    std::vector<Entry> entries_;
    std::set<std::string, std::less<>> names_;
    std::map<std::string, std::size_t, std::less<>> next_;
    std::vector<std::string> journal_;
    std::size_t ops_ = 0;
};

// The declared type of a value of this kind.
Type type_of_kind(const std::string& kind);

}  // namespace trocar::torchscript
