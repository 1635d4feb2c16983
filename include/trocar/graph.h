#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "trocar/tensor.h"

#pragma GCC visibility push(default)
namespace trocar {

class Graph;
class Selector;

// Handles are indices into their Graph. They stay valid until the graph is destroyed, also while
// other ops and tensors come and go; a removed op's handle is never given out again.
enum class OpId : std::uint32_t { none = 0xffffffff };
enum class TensorId : std::uint32_t { none = 0xffffffff };

constexpr std::size_t index(OpId id) {
    return static_cast<std::size_t>(id);
}
constexpr std::size_t index(TensorId id) {
    return static_cast<std::size_t>(id);
}

// The bytes from which a format read this thing, for writing it back unchanged. `edited` is set by
// every edit; a format then writes the thing anew, keeping what it does not know from `bytes`.
struct Source {
    Bytes bytes;
    bool edited = false;
    bool intact() const { return !bytes.empty() && !edited; }
};

struct Property {
    std::string key;
    std::string value;
    bool operator==(const Property&) const = default;
};

// One attribute of an op. monostate: a kind this version does not know; the bytes are in `source`.
struct Attribute {
    using Value = std::variant<std::monostate, std::int64_t, float, std::string, Constant,
                               std::shared_ptr<Graph>, Type, std::vector<std::int64_t>,
                               std::vector<float>, std::vector<std::string>, std::vector<Constant>,
                               std::vector<std::shared_ptr<Graph>>, std::vector<Type>>;
    std::string name;
    Value value;
    std::string reference;  // inside a function body: the function's attribute this one stands for
    Source source;
};

// Where an op comes from in the program that made the model, where the file tells.
struct Origin {
    std::string module;  // dotted module path: "layer1.0.conv1"
    std::string source;  // "model.py:42" or a stack trace
};

// What an op is, apart from its place in a graph.
struct OpSpec {
    std::string type;         // "Conv"; an open set
    std::string domain = {};  // namespace of the type in its dialect; "" is the dialect's own
    std::string name = {};    // may be empty, need not be unique
    std::string overload = {};
    std::vector<TensorId> inputs = {};  // TensorId::none: an optional input left out
    std::vector<TensorId> outputs = {};
    std::vector<Attribute> attributes = {};
    std::vector<Property> metadata = {};
    std::string doc = {};
    Origin origin = {};
};

struct Op : OpSpec {
    // Tensors of this graph that the op's subgraphs read: implicit inputs. Kept by the graph.
    std::vector<TensorId> captures;
    Source source;

    const Attribute* attribute(std::string_view name) const;  // nullptr: not there
    // The attribute as an integer, or `otherwise` when it is absent or of another kind. Likewise
    // below.
    std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
    std::vector<std::int64_t> integers(std::string_view name) const;
    std::string text(std::string_view name, std::string_view otherwise) const;
    std::vector<std::shared_ptr<Graph>> subgraphs() const;
};

// One place where a tensor is read: input `slot` of `op`, or a capture by its subgraphs.
struct Use {
    static constexpr std::uint32_t captured = 0xffffffff;
    OpId op;
    std::uint32_t slot;
    bool operator==(const Use&) const = default;
};

// How the numbers of a tensor stand for reals: real = scale × (number - zero point).
struct Quantization {
    std::vector<float> scales;              // one for all, or one for each place along `axis`
    std::vector<std::int64_t> zero_points;  // as many; none: all 0
    int axis = 0;                           // where there are several
    std::vector<float> min, max;            // the range that was seen, where the file tells

    // Scales for blocks of elements, themselves tensors of the file.
    struct Blocks {
        Constant scales;
        Constant zero_points;                  // undefined: all 0
        std::int64_t size = 0;                 // elements along the blocked dimension
        std::vector<std::int64_t> shape = {};  // or of a block in every dimension
        std::vector<std::int64_t> axes = {};   // that have scales of their own
        bool by_axes = false;                  // `axes` is what the file states
    };
    std::optional<Blocks> blocks;
    // A scheme of somebody's own: bytes that this version only keeps.
    std::optional<Constant> custom;

    bool empty() const { return scales.empty() && !blocks && !custom; }
};
// "0.0039 × (q + 128)", "32 scales along axis 3, 0.0002 to 0.011"; "" where there is none.
std::string quantization_text(const Quantization& quantization);

struct Tensor {
    std::string name;
    Type type;
    std::shared_ptr<const Quantization> quantization;  // nullptr: the numbers are what they are
    std::optional<Constant> constant;                  // set for constants (initializers)
    OpId producer = OpId::none;  // none: an input, a constant, captured from outside
    std::uint32_t producer_slot = 0;
    std::vector<Use> uses;  // in no particular order
    bool is_input = false;  // of the graph; may also be constant: then the constant is its default
    bool is_output = false;
    bool is_captured = false;  // defined in the graph around this one, by the same name
    std::string doc;
    std::vector<Property> metadata;
    Source declaration;      // where its type was declared
    Source constant_source;  // where its constant was stored
};

// Something `verify` found wrong.
struct Problem {
    std::string where;  // "op 12 (Conv '/layer1/conv1')", "tensor 'x'"
    std::string what;
};

// The ops and tensors of a model, in the vocabulary ("dialect") of the ecosystem it came from.
// Ops are kept in an order in which each one comes after those whose outputs it reads. Every edit
// leaves the graph valid, or throws Error(usage) and leaves it as it was. Not safe for concurrent
// edits; any number of threads may read.
class Graph {
public:
    Graph();
    Graph(Graph&&) noexcept;
    Graph& operator=(Graph&&) noexcept;
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;
    ~Graph();

    // A deep copy: same handles, constants shared.
    Graph clone() const;

    std::string name;
    std::string doc;
    std::vector<Property> metadata;
    Source source;
    // For the format that read the graph: what else it must remember to write it back.
    std::shared_ptr<const void> image;

    // --- Walking -----------------------------------------------------------------------------

    class OpIterator {
    public:
        using value_type = OpId;
        using difference_type = std::ptrdiff_t;
        using iterator_category = std::forward_iterator_tag;
        using pointer = const OpId*;
        using reference = OpId;
        OpIterator() = default;
        OpIterator(const Graph* graph, OpId at) : graph_(graph), at_(at) {}
        OpId operator*() const { return at_; }
        OpIterator& operator++() {
            at_ = graph_->next(at_);
            return *this;
        }
        OpIterator operator++(int) {
            auto old = *this;
            ++*this;
            return old;
        }
        bool operator==(const OpIterator&) const = default;

    private:
        const Graph* graph_ = nullptr;
        OpId at_ = OpId::none;
    };
    struct OpRange {
        OpIterator first, last;
        OpIterator begin() const { return first; }
        OpIterator end() const { return last; }
    };

    OpRange ops() const { return {{this, first_}, {this, OpId::none}}; }
    std::size_t op_count() const { return op_count_; }
    std::vector<TensorId> tensors() const;  // live ones, by handle
    std::size_t tensor_count() const { return tensor_count_; }
    // One more than the largest handle ever given out: the size for tables indexed by handle.
    std::size_t op_limit() const { return ops_.size(); }
    std::size_t tensor_limit() const { return tensors_.size(); }

    bool contains(OpId op) const;
    bool contains(TensorId tensor) const;
    const Op& op(OpId id) const;  // throws Error(usage) on a handle that is not in the graph
    const Tensor& tensor(TensorId id) const;
    OpId first() const { return first_; }
    OpId last() const { return last_; }
    OpId next(OpId op) const;           // in order; none after the last
    OpId previous(OpId op) const;       // none before the first
    bool before(OpId a, OpId b) const;  // is `a` earlier in order? O(1)

    std::span<const TensorId> inputs() const { return inputs_; }
    std::span<const TensorId> outputs() const { return outputs_; }
    std::span<const TensorId> captured() const { return captured_; }  // read from outside

    std::optional<TensorId> find_tensor(std::string_view name) const;  // O(1)
    // The first op of that name in order. O(1) after the first call since an edit.
    std::optional<OpId> find_op(std::string_view name) const;

    // Ops whose outputs `op` reads (captures included), and ops that read its outputs; each once.
    std::vector<OpId> producers(OpId op) const;
    std::vector<OpId> consumers(OpId op) const;

    // "op 12 (Conv '/layer1/conv1')": how messages speak of an op. The number is its place in
    // order.
    std::string describe(OpId op) const;

    // --- Edits -------------------------------------------------------------------------------

    // A new tensor that nothing writes yet. The name must be free; an empty one makes a fresh name.
    TensorId add_tensor(std::string name, Type type);
    TensorId add_constant(std::string name, Constant value);
    TensorId add_input(std::string name, Type type);
    // The same name as a tensor of the graph around this one.
    TensorId add_capture(std::string name);
    std::string fresh_name(std::string_view stem) const;

    // Puts a new op last, right before `at`, or right after it. Its outputs must be tensors that
    // nothing writes; its inputs must be known by then (an op further down cannot be read).
    OpId append(OpSpec spec);
    OpId insert_before(OpId at, OpSpec spec);
    OpId insert_after(OpId at, OpSpec spec);

    // Puts a new op on a tensor: `spec` gets `tensor` as its first input and a new tensor as its
    // first output, which all readers of `tensor` (and the graph's outputs, under the same name)
    // then read.
    OpId insert_on(TensorId tensor, OpSpec spec);

    // Removes an op. Outputs that somebody reads must be replaced: by `replacements` (output →
    // tensor read instead), or, when it has one read output and one non-constant input, by that
    // input.
    void remove(OpId op, const std::vector<std::pair<TensorId, TensorId>>& replacements = {});

    // Puts a new op in the place of `op`; `spec.outputs` empty: it takes over all of its outputs.
    OpId replace(OpId op, OpSpec spec);

    // The same at every op that a selector chooses; they return how many these are. A new op goes
    // on the first output (insert_after), for all its readers, or on the first input
    // (insert_before), for that op alone; a replacement takes over the inputs, the outputs and the
    // name where `spec` has none. What one op refuses is thrown; those before it stay edited.
    std::size_t remove(const Selector& selector);
    std::size_t replace(const Selector& selector, const OpSpec& spec);
    std::size_t insert_after(const Selector& selector, const OpSpec& spec);
    std::size_t insert_before(const Selector& selector, const OpSpec& spec);

    // Makes `op` read `tensor` at `slot` (one past the last: a new input). Reorders where it must;
    // throws when that would make a cycle.
    void set_input(OpId op, std::size_t slot, TensorId tensor);
    void drop_trailing_input(OpId op);
    // Makes every reader of `from`, the graph's outputs included, read `to`.
    void replace_uses(TensorId from, TensorId to);

    void rename(TensorId tensor, std::string name);  // also inside subgraphs that capture it
    void rename(OpId op, std::string name);
    void set_type(TensorId tensor, Type type);
    void set_constant(TensorId tensor, Constant value);
    // nullptr: none.
    void set_quantization(TensorId tensor, std::shared_ptr<const Quantization> quantization);
    void set_attribute(OpId op, std::string name, Attribute::Value value);
    void remove_attribute(OpId op, std::string_view name);
    void set_metadata(OpId op, std::vector<Property> metadata);
    void set_inputs(std::vector<TensorId> inputs);
    void set_outputs(std::vector<TensorId> outputs);
    // Removes a tensor that nothing reads or writes and that is no output.
    void remove_tensor(TensorId tensor);
    // Removes ops whose outputs nobody reads, and tensors without readers and writers, but not the
    // graph's inputs. Returns the number of ops removed.
    std::size_t remove_unused();

    // A subgraph of an op, for editing. Captures are brought up to date by `update_captures`.
    void update_captures(OpId op);
    bool edited() const;  // this graph or a subgraph in it

    // Everything that is wrong with the graph; empty when it is valid.
    std::vector<Problem> verify() const;

    // --- For formats: building a graph as a file has it ---------------------------------------

    // Sets what only a reader knows, without counting it as an edit.
    Op& op_from_file(OpId op) { return ops_[index(op)].op; }
    Tensor& tensor_from_file(TensorId tensor) { return tensors_[index(tensor)].tensor; }
    void mark_read();  // ends the building: nothing so far was an edit

private:
    struct OpNode {
        Op op;
        OpId next = OpId::none;
        OpId previous = OpId::none;
        std::uint64_t label = 0;  // order: ascending along the list
        bool live = false;
        std::vector<std::uint32_t> use_at;          // of input i: its place in the tensor's uses
        std::vector<std::uint32_t> capture_use_at;  // likewise for captures
    };
    struct TensorNode {
        Tensor tensor;
        bool live = false;
    };
    struct StringHash {
        using is_transparent = void;
        std::size_t operator()(std::string_view s) const {
            return std::hash<std::string_view>{}(s);
        }
    };

    friend struct GraphEdit;  // src/graph/: the edits' working parts

    std::vector<OpNode> ops_;
    std::vector<TensorNode> tensors_;
    OpId first_ = OpId::none;
    OpId last_ = OpId::none;
    std::size_t op_count_ = 0;
    std::size_t tensor_count_ = 0;
    std::vector<TensorId> inputs_;
    std::vector<TensorId> outputs_;
    std::vector<TensorId> captured_;
    std::unordered_map<std::string, TensorId, StringHash, std::equal_to<>> by_name_;
    mutable std::unordered_map<std::string_view, OpId> op_by_name_;
    mutable bool op_names_stale_ = true;
};

}  // namespace trocar
#pragma GCC visibility pop
