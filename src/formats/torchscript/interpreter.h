#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "formats/torchscript/builder.h"
#include "formats/torchscript/pickle.h"
#include "formats/torchscript/schema.h"
#include "formats/torchscript/syntax.h"
#include "formats/torchscript/value.h"
#include "trocar/error.h"
#include "trocar/graph.h"

namespace trocar::torchscript {

constexpr int deepest = 2'000;  // expressions, statements and values in one another

// A number for each level of something, as long as it lives.
class Level {
public:
    explicit Level(int& level) : level_(level) { ++level_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    ~Level() { --level_; }

private:
    int& level_;
};

// What an archive holds.
struct Contents {
    std::string where;  // names the file in messages
    const Code& code;
    const Pickle& data;
    const Pickle* constants = nullptr;
    // The constant that a tensor of one of the pickles is; `folder` is where its storage lies.
    std::function<StridedConstant(const PickledTensor&, const std::string& folder,
                                  const std::string& name)>
        load;
};

// Reads the code of a module's method by following it, without running it: calls of other methods
// are gone into, what the file settles is worked out, and all else becomes ops of a graph. Ifs and
// loops that only a run decides become prim::If and prim::Loop with bodies.
// docs/formats/torchscript.md has the whole convention.
class Interpreter {
public:
    explicit Interpreter(const Contents& contents);

    // The graph of `method`.
    Graph read(const std::string& method);

private:
    struct Frame {
        const Function* function = nullptr;
        std::map<std::string, Value> names;
        std::string module;
    };
    using Attributed = std::pair<std::size_t, std::string>;  // an object's number, an attribute
    // What code can change besides its own names.
    struct World {
        std::map<std::size_t, Runtime> versions;  // of a value that was written to: the newest
        std::map<Attributed, Value> attributes;
    };
    // A list must become a value of the graph before the region that is at work can change it.
    struct NeedsRuntime {
        Value what;
        int depth = 0;
    };

    [[noreturn]] void fail(const std::string& what, Fault fault = Fault::input) const;
    [[noreturn]] void refuse(const std::string& what) const;
    void spend(std::size_t steps = 1);

    // --- interpreter.cpp: statements, expressions and calls.
    std::optional<Value> execute(const std::vector<Statement>& body, Frame& frame);
    void assign(const Statement& line, Frame& frame);
    void assign_to(const Expression& target, Value value, Frame& frame);
    std::vector<Value> take_apart(const Value& value, std::size_t count);
    Value evaluate(const Expression& e, Frame& frame);
    Value of_kind(const Expression& e, Frame& frame);
    Value named(const std::string& path);
    Value attribute(const Expression& e, Frame& frame);
    Value indexed(const Expression& e, Frame& frame);
    Value sliced(const Expression& e, Frame& frame);
    Value call(const Expression& e, Frame& frame, std::size_t parts);
    Value call_word(const std::string& word, const Expression& e, Frame& frame);
    Value call_value(const Value& callee, const Expression& e, Frame& frame);
    struct Arguments {
        std::vector<Value> values;
        std::vector<std::string> names;  // of the last ones
    };
    Arguments arguments(const Expression& e, Frame& frame);
    Value call_function(const Function& function, const Value* self, Arguments given,
                        const std::string& module);
    Value element(const Value& of, const Value& at);

    // --- control.cpp: what a run decides.
    template <class Work>
    void with_lists(Frame& frame, bool forget, Work&& work);
    void choose(const Statement& line, Frame& frame);
    void branch(const Statement& line, Runtime condition, Frame& frame);
    void repeat(const Statement& line, Frame& frame);
    struct Carried;
    bool loop(const Statement& line, const Value& count, const Value& condition, Frame& frame,
              std::vector<Carried>& carried);
    struct Leaves;
    void changes(const World& before, const World& after, std::set<std::size_t>& versions,
                 std::set<Attributed>& attributes) const;

    // --- ops.cpp: calls that become ops.
    Value call_op(const std::string& space, const std::string& name, Arguments given,
                  std::size_t parts);
    std::optional<Value> worked_out(const std::string& op, const Arguments& given);
    std::optional<Value> change_list(const std::string& op, const Arguments& given);
    struct Bound {
        const Schema* schema = nullptr;
        std::vector<const Value*> values;  // nullptr: left out
    };
    std::optional<Bound> bind(const Schema& schema, const Arguments& given, bool lenient) const;
    bool matches(const std::string& kind, const Value& value, bool lenient) const;
    Value emit(const std::string& space, const std::string& name, const Bound& bound,
               std::size_t parts);
    Value emit_unknown(const std::string& space, const std::string& name, const Arguments& given,
                       std::size_t parts);
    Value results(Draft& draft, const std::vector<std::string>& kinds, std::size_t parts);
    void add_value(Draft& draft, const std::string& name, const std::string& kind,
                   const Value& value);
    void add_list(Draft& draft, const std::string& name, const std::string& kind,
                  const ListValue& list);
    Runtime materialize(const Value& value);
    Runtime construct(const std::string& type, const std::vector<Value>& items,
                      const std::string& kind);
    std::string kind_of(const Value& value) const;
    Value settled(const Value& value) const;  // newest version, lists that became values
    Runtime newest(Runtime value) const;
    Value convert(const Value& value, const std::string& kind);  // bool(x), int(x), float(x)

    // --- modules.cpp: objects and what they hold.
    void find_changed_attributes(const std::string& method);
    void add_parameters(const std::shared_ptr<ObjectValue>& object, int depth);
    Value object_of(const Pickled& pickled, const std::string& path);
    Value of_pickle(const Pickled& pickled, const std::string& path, int depth);
    Runtime tensor_of(const Pickled& pickled, const std::string& folder, const std::string& name,
                      const char* kind);
    void note_name(Runtime tensor, const std::string& name);  // another one
    Value attribute_of(const std::shared_ptr<ObjectValue>& object, const std::string& name);
    Value first_value(const std::shared_ptr<ObjectValue>& object, const std::string& name);
    // What an attribute is before any code changes it; nothing for objects that the code makes.
    std::optional<Value> before_all(const Attributed& key);
    Value constant(std::size_t number);
    bool is_changed(const ObjectValue& object, const std::string& name) const;
    Value input_with(const std::string& name, const Value& standard);
    void add_inputs(const Function& function, Frame& frame);
    Value input(const std::string& name, const Expression* type, int depth);
    void add_outputs(const Value& result);
    void flatten(const Value& value, const std::string& name, std::vector<TensorId>& outputs,
                 int depth);

    const Contents& contents_;
    Builder builder_;
    World world_;
    std::set<std::string>* assigned_ = nullptr;
    std::size_t steps_ = 0;
    int calls_ = 0;
    int depth_ = 0;  // of expressions
    std::string place_;

    std::map<const Pickled*, std::shared_ptr<ObjectValue>> objects_;
    std::vector<std::shared_ptr<ObjectValue>> by_number_;
    std::map<const Pickled*, Runtime> tensors_;
    std::map<std::string, Runtime> by_identity_;
    std::map<Attributed, Value> first_values_;
    std::set<std::pair<std::string, std::string>> changed_;  // class, attribute
    std::set<std::string> changed_anywhere_;
    std::map<std::size_t, Value> numbers_;  // that tensors were made of
};

std::string joined_name(const std::string& path, const std::string& name);  // "encoder.0"
// The result of an op on values that the file settles; nothing where it is not known here.
std::optional<Value> fold(const std::string& op, const std::vector<Value>& values);

}  // namespace trocar::torchscript
