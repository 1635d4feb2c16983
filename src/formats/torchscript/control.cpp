#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "formats/torchscript/interpreter.h"

// Ifs and loops. What the file settles is followed; what only a run decides becomes an op with
// bodies, whose results are the names, the values written to and the attributes that they change.
namespace trocar::torchscript {

namespace {

void assigned_names(const std::vector<Statement>& body, std::set<std::string>& names) {
    for (const auto& line : body) {
        for (const auto& target : line.targets) {
            if (target->kind == Expression::Kind::name) {
                names.insert(target->text);
            }
        }
        assigned_names(line.body, names);
        assigned_names(line.otherwise, names);
    }
}

bool same(const Value& a, const Value& b) {
    if (a.is_plain() && b.is_plain()) {
        return same_plain(a, b);
    }
    if (a.as<Runtime>() != nullptr && b.as<Runtime>() != nullptr) {
        return *a.as<Runtime>() == *b.as<Runtime>();
    }
    return (a.object() && a.object() == b.object()) ||
           (a.list() != nullptr && a.list() == b.list()) ||
           (a.dict() != nullptr && a.dict() == b.dict()) ||
           (a.as<FunctionRef>() != nullptr && b.as<FunctionRef>() != nullptr &&
            a.as<FunctionRef>()->function == b.as<FunctionRef>()->function) ||
           (a.as<Device>() != nullptr && b.as<Device>() != nullptr);
}

std::string joined_kind(const std::string& a, const std::string& b) {
    if (a == b) {
        return a;
    }
    const auto optional = [](const std::string& kind) {
        return kind.ends_with("?") ? kind : kind + "?";
    };
    if (a == "N" || a == "A?") {
        return optional(b);
    }
    if (b == "N" || b == "A?") {
        return optional(a);
    }
    if (a == b + "?" || b == a + "?") {
        return a.ends_with("?") ? a : b;
    }
    return (a == "n" || a == "i" || a == "f") && (b == "n" || b == "i" || b == "f") ? "n" : "A";
}

}  // namespace

// Does `work`, which makes bodies. Where a body changes a list from outside, that list becomes a
// value of the graph, and the work is done anew; `forget`: it has not made anything outside of
// bodies until then.
template <class Work>
void Interpreter::with_lists(Frame& frame, bool forget, Work&& work) {
    const auto names = frame.names;
    const auto world = world_;
    const auto mark = builder_.mark();
    const auto place = builder_.place();
    const auto text = place_;
    auto* const assigned = assigned_;
    auto& region = builder_.region();
    for (;;) {
        try {
            work();
            return;
        } catch (const NeedsRuntime& needs) {
            builder_.resume(region);
            if (forget) {
                builder_.forget(mark);
            }
            builder_.set_place(place);
            frame.names = names;
            world_ = world;
            assigned_ = assigned;
            place_ = text;
            if (needs.depth != region.depth) {
                throw;
            }
            const auto made = materialize(needs.what);
            if (auto* list = needs.what.list()) {
                list->runtime = made;
            } else if (auto* dict = needs.what.dict()) {
                dict->runtime = made;
            }
        }
    }
}

void Interpreter::changes(const World& before, const World& after, std::set<std::size_t>& versions,
                          std::set<Attributed>& attributes) const {
    for (const auto& [place, version] : after.versions) {
        const auto found = before.versions.find(place);
        if (builder_.entry({place}).depth <= builder_.depth() &&
            (found == before.versions.end() || !(found->second == version))) {
            versions.insert(place);
        }
    }
    for (const auto& [key, value] : after.attributes) {
        const auto found = before.attributes.find(key);
        if (found == before.attributes.end() || !same(found->second, value)) {
            attributes.insert(key);
        }
    }
}

void Interpreter::choose(const Statement& line, Frame& frame) {
    const auto condition = convert(settled(evaluate(*line.value, frame)), "b");
    if (const auto* truth = condition.as<bool>()) {
        if (execute(*truth ? line.body : line.otherwise, frame)) {
            refuse("a return stands inside of an if");
        }
        return;
    }
    const auto* runtime = condition.as<Runtime>();
    if (runtime == nullptr) {
        fail("a condition is no truth");
    }
    builder_.set_place({frame.module, place_, ""});
    with_lists(frame, true, [&] { branch(line, *runtime, frame); });
}

void Interpreter::branch(const Statement& line, Runtime condition, Frame& frame) {
    struct Side {
        Region region;
        std::map<std::string, Value> names;
        World world;
        std::set<std::string> assigned;
        std::vector<TensorId> outputs;
    };
    Side sides[2];
    spend((frame.names.size() + world_.versions.size() + world_.attributes.size()) / 4);
    const auto names = frame.names;
    const auto world = world_;
    const auto place = builder_.place();
    const auto text = place_;
    auto* const assigned = assigned_;
    for (std::size_t i = 0; i < 2; ++i) {
        auto& side = sides[i];
        frame.names = names;
        world_ = world;
        builder_.enter(side.region);
        assigned_ = &side.assigned;
        if (execute(i == 0 ? line.body : line.otherwise, frame)) {
            refuse("a return stands inside of an if");
        }
        side.names = std::move(frame.names);
        side.world = std::move(world_);
        builder_.leave();
    }
    frame.names = names;
    world_ = world;
    assigned_ = assigned;
    place_ = text;
    builder_.set_place(place);

    Draft draft;
    draft.spec.domain = "prim";
    draft.spec.type = "If";
    builder_.add_argument(draft, "cond", condition);
    const std::function<Value(const Value&, const Value&, const std::string&)> join =
        [&](const Value& first, const Value& second, const std::string& stem) -> Value {
        const Value* values[2] = {&first, &second};
        Value now[2];
        for (std::size_t i = 0; i < 2; ++i) {
            std::swap(world_, sides[i].world);
            now[i] = settled(*values[i]);
            std::swap(world_, sides[i].world);
        }
        if (same(now[0], now[1])) {
            return now[0];
        }
        const auto* a = now[0].tuple();
        const auto* b = now[1].tuple();
        if (a != nullptr && b != nullptr && a->items.size() == b->items.size()) {
            auto made = std::make_shared<TupleValue>();
            made->of = a->of;
            for (std::size_t i = 0; i < a->items.size(); ++i) {
                made->items.push_back(join(a->items[i], b->items[i], stem));
            }
            return made;
        }
        std::string kinds[2];
        for (std::size_t i = 0; i < 2; ++i) {
            builder_.resume(sides[i].region);
            std::swap(world_, sides[i].world);
            const auto made = materialize(now[i]);
            std::swap(world_, sides[i].world);
            kinds[i] = builder_.entry(made).kind;
            sides[i].outputs.push_back(builder_.resolve(made));
            builder_.leave();
        }
        return builder_.add_output(draft, joined_kind(kinds[0], kinds[1]), stem);
    };
    auto all = sides[0].assigned;
    all.insert(sides[1].assigned.begin(), sides[1].assigned.end());
    for (const auto& name : all) {
        const auto first = sides[0].names.find(name);
        const auto second = sides[1].names.find(name);
        if (first == sides[0].names.end() || second == sides[1].names.end()) {
            continue;  // of one side alone
        }
        frame.names[name] = join(first->second, second->second, name);
        if (assigned_ != nullptr) {
            assigned_->insert(name);
        }
    }
    std::set<std::size_t> versions;
    std::set<Attributed> attributes;
    for (const auto& side : sides) {
        changes(world, side.world, versions, attributes);
    }
    for (const auto version : versions) {
        const Value value = Runtime{version};
        if (const auto made = join(value, value, ""); made.as<Runtime>() != nullptr) {
            world_.versions[version] = *made.as<Runtime>();
        }
    }
    for (const auto& key : attributes) {
        Value values[2];
        bool known = true;
        for (std::size_t i = 0; i < 2; ++i) {
            const auto found = sides[i].world.attributes.find(key);
            if (found != sides[i].world.attributes.end()) {
                values[i] = found->second;
            } else if (const auto first = before_all(key)) {
                values[i] = *first;
            } else {
                known = false;  // an attribute that one side gives a new object
            }
        }
        if (known) {
            world_.attributes[key] = join(values[0], values[1], key.second);
        }
    }
    for (auto& side : sides) {
        side.region.graph.set_outputs(side.outputs);
    }
    const auto then = Builder::finished(sides[0].region);
    const auto otherwise = Builder::finished(sides[1].region);
    Builder::add_argument(draft, "then_branch", then);
    Builder::add_argument(draft, "else_branch", otherwise);
    builder_.append(std::move(draft));
}

// Something that a loop hands from one round to the next.
struct Interpreter::Carried {
    std::string name;                         // of a variable,
    std::optional<std::size_t> version = {};  // or a value that is written to,
    std::optional<Attributed> attribute = {};
};

void Interpreter::repeat(const Statement& line, Frame& frame) {
    Value count = INT64_MAX;
    Value condition = true;
    if (line.kind == Statement::Kind::count) {
        const auto& range = *line.value;
        if (range.kind != Expression::Kind::call || dotted(*range.children[0]) != "range" ||
            range.children.size() != 2 || line.targets[0]->kind != Expression::Kind::name) {
            refuse("a loop does not count up to one number");
        }
        count = settled(evaluate(*range.children[1], frame));
        if (const auto* rounds = count.as<std::int64_t>(); rounds != nullptr && *rounds <= 0) {
            return;
        }
    } else {
        condition = convert(settled(evaluate(*line.value, frame)), "b");
        if (const auto* truth = condition.as<bool>(); truth != nullptr && !*truth) {
            return;
        }
    }
    std::set<std::string> names;
    assigned_names(line.body, names);
    std::vector<Carried> carried;
    for (const auto& name : names) {
        if (frame.names.contains(name) &&
            (line.kind != Statement::Kind::count || name != line.targets[0]->text)) {
            carried.push_back({.name = name});
        }
    }
    builder_.set_place({frame.module, place_, ""});
    // What the body writes to besides its names is known only when it was gone through.
    with_lists(frame, false, [&] {
        while (!loop(line, count, condition, frame, carried)) {
            spend();
        }
    });
}

// The leaves of a structure as values of the graph, and the structure made again of others.
struct Interpreter::Leaves {
    Interpreter& self;
    std::vector<Runtime> found = {};

    // Adds the leaves of `value`, of which `like` has the structure.
    void add(const Value& value, const Value& like) {
        const auto now = self.settled(value);
        if (const auto* shape = like.tuple()) {
            const auto* tuple = now.tuple();
            if (tuple == nullptr || tuple->items.size() != shape->items.size()) {
                self.refuse("a loop changes the structure of a tuple");
            }
            for (std::size_t i = 0; i < shape->items.size(); ++i) {
                add(tuple->items[i], shape->items[i]);
            }
            return;
        }
        if (fixed(like)) {
            if (!same(now, like)) {
                self.refuse("a loop changes which module or function a name stands for");
            }
            return;
        }
        found.push_back(self.materialize(now));
    }
    static bool fixed(const Value& like) {
        return like.object() || like.as<FunctionRef>() != nullptr || like.as<ClassRef>() != nullptr;
    }
    template <class Next>
    static Value build(const Value& like, Next&& next) {
        if (const auto* shape = like.tuple()) {
            auto made = std::make_shared<TupleValue>();
            made->of = shape->of;
            for (const auto& item : shape->items) {
                made->items.push_back(build(item, next));
            }
            return made;
        }
        return fixed(like) ? like : Value(next());
    }
};

bool Interpreter::loop(const Statement& line, const Value& count, const Value& condition,
                       Frame& frame, std::vector<Carried>& carried) {
    spend((frame.names.size() + world_.versions.size() + world_.attributes.size()) / 4);
    const auto names = frame.names;
    const auto world = world_;
    const auto place = builder_.place();
    const auto text = place_;
    auto* const assigned = assigned_;
    const auto back = [&] {
        frame.names = names;
        world_ = world;
        assigned_ = assigned;
        place_ = text;
        builder_.set_place(place);
    };
    const auto value_of = [&](const Carried& one) -> Value {
        if (one.version) {
            return newest(Runtime{*one.version});
        }
        if (one.attribute) {
            const auto found = world_.attributes.find(*one.attribute);
            return found != world_.attributes.end() ? found->second
                                                    : before_all(*one.attribute).value_or(Value());
        }
        return frame.names.at(one.name);
    };
    const auto give = [&](const Carried& one, Value value) {
        if (one.version) {
            if (const auto* runtime = value.as<Runtime>()) {
                world_.versions[*one.version] = *runtime;
            }
        } else if (one.attribute) {
            world_.attributes[*one.attribute] = std::move(value);
        } else {
            frame.names[one.name] = std::move(value);
        }
    };

    Draft draft;
    draft.spec.domain = "prim";
    draft.spec.type = "Loop";
    std::vector<Value> shapes;
    Leaves first{*this};
    for (const auto& one : carried) {
        shapes.push_back(settled(value_of(one)));
        first.add(shapes.back(), shapes.back());
    }
    builder_.add_argument(draft, "max_trip_count", materialize(count));
    builder_.add_argument(draft, "cond", materialize(condition));
    for (std::size_t i = 0; i < first.found.size(); ++i) {
        builder_.add_argument(draft, fmt::format("carried[{}]", i), first.found[i]);
    }

    const auto mark = builder_.mark();
    Region body;
    builder_.enter(body);
    const auto prefix = place.module.empty() ? std::string() : place.module + "/";
    const auto round = builder_.add_input(
        body, prefix + (line.kind == Statement::Kind::count ? line.targets[0]->text : "round"),
        "i");
    std::vector<Runtime> inputs;
    for (const auto leaf : first.found) {
        const auto& entry = builder_.entry(leaf);
        inputs.push_back(builder_.add_input(body, entry.name, std::string(entry.kind)));
    }
    std::size_t next = 0;
    for (std::size_t i = 0; i < carried.size(); ++i) {
        give(carried[i], Leaves::build(shapes[i], [&] { return inputs[next++]; }));
    }
    if (line.kind == Statement::Kind::count) {
        frame.names[line.targets[0]->text] = round;
    }
    auto inside = world_;
    std::set<std::string> ignored;
    assigned_ = &ignored;
    if (execute(line.body, frame)) {
        refuse("a return stands inside of a loop");
    }
    const auto again = line.kind == Statement::Kind::count
                           ? Value(true)
                           : convert(settled(evaluate(*line.value, frame)), "b");
    Leaves last{*this};
    const auto goes_on = materialize(again);
    for (std::size_t i = 0; i < carried.size(); ++i) {
        last.add(value_of(carried[i]), shapes[i]);
    }
    std::set<std::size_t> versions;
    std::set<Attributed> attributes;
    builder_.leave();
    changes(inside, world_, versions, attributes);
    bool complete = true;
    const auto add_new = [&](auto&& is_it, Carried one) {
        if (std::none_of(carried.begin(), carried.end(), is_it)) {
            carried.push_back(std::move(one));
            complete = false;
        }
    };
    for (const auto version : versions) {
        add_new([&](const Carried& c) { return c.version == version; }, {"", version, {}});
    }
    for (const auto& key : attributes) {
        if (world.attributes.contains(key) || before_all(key)) {
            add_new([&](const Carried& c) { return c.attribute == key; }, {"", {}, key});
        }
    }
    if (!complete) {
        back();
        builder_.forget(mark);
        return false;
    }
    std::vector<TensorId> outputs;
    builder_.resume(body);
    outputs.push_back(builder_.resolve(goes_on));
    for (const auto leaf : last.found) {
        outputs.push_back(builder_.resolve(leaf));
    }
    builder_.leave();
    body.graph.set_outputs(outputs);
    back();
    std::vector<Runtime> results;
    for (std::size_t i = 0; i < last.found.size(); ++i) {
        const auto kind =
            joined_kind(builder_.entry(last.found[i]).kind, builder_.entry(first.found[i]).kind);
        results.push_back(
            builder_.add_output(draft, kind, i < carried.size() ? carried[i].name : ""));
    }
    Builder::add_argument(draft, "body", Builder::finished(body));
    builder_.append(std::move(draft));
    next = 0;
    for (std::size_t i = 0; i < carried.size(); ++i) {
        give(carried[i], Leaves::build(shapes[i], [&] { return results[next++]; }));
        if (!carried[i].name.empty() && assigned_ != nullptr) {
            assigned_->insert(carried[i].name);
        }
    }
    return true;
}

}  // namespace trocar::torchscript
