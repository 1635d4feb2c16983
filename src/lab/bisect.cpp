#include "trocar/bisect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lab/bodies.h"
#include "trocar/error.h"

namespace trocar {

namespace {

constexpr std::size_t deepest_search = 8;  // bodies in bodies

std::vector<NamedValue> named(const Graph& graph, const std::vector<TensorId>& ids,
                              std::span<const Value> values) {
    std::vector<NamedValue> all;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        all.push_back({graph.tensor(ids[i]).name, values[i]});
    }
    return all;
}

class Search {
public:
    Search(const Model& model, const Model* other, const SideOptions& reference,
           const SideOptions& second, const std::vector<NamedValue>& inputs,
           const BisectOptions& options)
        : chain_(model),
          other_(other),
          inputs_(inputs),
          options_(options),
          exact_(other != nullptr && reference.command.empty() && reference.text == second.text &&
                 !options.judging.rtol && !options.judging.atol) {
        Side::Build build;
        if (other != nullptr) {
            build = [this](const Part& part, std::span<const Value> values) {
                return matching_part(chain_, part, *other_, values);
            };
        }
        sides_.emplace_back(chain_, reference);
        sides_.emplace_back(chain_, second, build);
        for (const auto& side : sides_) {
            found_.sides.push_back(side.label());
        }
    }

    Bisection run() {
        if (chain_.size() == 0) {
            throw Error(Fault::input, "the model has no op that is run");
        }
        compare_whole();
        compare_layers();
        if (!found_.complete) {
            return std::move(found_);
        }
        const bool whole_differs =
            found_.whole.verdict == Verdict::fail || found_.whole.verdict == Verdict::warn;
        if (!found_.reference.empty()) {
            found_.found = Bisection::Found::layer;
            build_models(parts_[found_.culprit.number]);
            if (found_badness_ == 1) {
                for (auto& tensor : found_.difference.tensors) {
                    tensor.tolerance = {};
                }
                found_.notes.emplace_back(
                    "the difference is within the tolerance, but the same engine gives other bits");
            }
        } else if (whole_differs) {
            narrow();
        }
        return std::move(found_);
    }

    // The model in one piece on other inputs: what the reference gives, and how bad the other is.
    struct Whole {
        RunEnd end = RunEnd::done;  // of the reference
        std::vector<NamedValue> outputs;
        int badness = 0;
    };
    Whole run_whole(const std::vector<NamedValue>& inputs) {
        inputs_ = inputs;
        const auto part = chain_.part(0, chain_.size() - 1);
        const auto both = run_both(part, given(part));
        if (both.reference.end != RunEnd::done) {
            return {.end = both.reference.end, .outputs = {}, .badness = 0};
        }
        return {.end = RunEnd::done,
                .outputs = named(graph(), part.outputs, both.reference.outputs),
                .badness = badness(both.difference)};
    }
    bool runs_something() const { return chain_.size() > 0; }

private:
    const Graph& graph() const { return chain_.model().graph; }

    std::vector<Value> given(const Part& part) const {
        std::vector<Value> values;
        for (const auto id : part.inputs) {
            const auto& tensor = graph().tensor(id);
            Value value = tensor.constant ? Value::of(*tensor.constant) : Value();
            for (const auto& input : inputs_) {
                value = input.name == tensor.name ? fit_optional(input.value, tensor.type) : value;
            }
            values.push_back(value);
        }
        return values;
    }

    // A run of neighbours in one program on both sides, on the same values.
    struct Both {
        PartRun reference;
        PartRun second;
        LayerComparison difference;
    };
    Both run_both(const Part& part, const std::vector<Value>& values) {
        Both both;
        both.reference = sides_[0].run(part, values);
        if (both.reference.end != RunEnd::done) {
            both.difference.end = both.reference.end;
            both.difference.reason = fmt::format("the reference: {}", both.reference.reason);
            return both;
        }
        std::vector<Type> types;
        for (const auto& output : both.reference.outputs) {
            types.push_back(type_of(output));
        }
        both.second = sides_[1].run(part, values, types);
        if (both.second.end == RunEnd::done) {
            both.difference =
                compare_outputs(chain_, part, values, both.reference.outputs, both.second.outputs);
        }
        both.difference.end = both.second.end;
        both.difference.reason = both.second.reason;
        both.difference.side = 1;
        judge(both.difference, describe_layer(chain_, part, 0), options_.judging);
        return both;
    }

    void compare_whole() {
        if (options_.progress) {
            options_.progress("the whole model", 0, 1);
        }
        const auto part = chain_.part(0, chain_.size() - 1);
        found_.whole = run_both(part, given(part)).difference;
    }

    // FAIL before WARN; where nothing but the model is another one, even other bits count.
    int badness(const LayerComparison& result) const {
        if (result.verdict == Verdict::fail || result.verdict == Verdict::warn) {
            return result.verdict == Verdict::fail ? 3 : 2;
        }
        const bool other_bits = std::any_of(
            result.tensors.begin(), result.tensors.end(), [](const TensorComparison& tensor) {
                return tensor.difference && !tensor.difference->same_bits;
            });
        return exact_ && other_bits ? 1 : 0;
    }

    void compare_layers() {
        PartsOptions how;
        if (other_ != nullptr) {
            how.may_end = shared_places(chain_, *other_);
        }
        parts_ = make_parts(chain_, how);
        CompareOptions options;
        options.judging = options_.judging;
        options.progress = [&](std::size_t done, std::size_t total) {
            if (options_.progress && !options_.progress("layers", done, total)) {
                found_.complete = false;
            }
        };
        options.on_result = [&](const LayerComparison&) { return found_.complete; };
        options.on_values = [&](const LayerComparison& result, std::span<const Value> inputs,
                                std::span<const Value> reference, std::span<const Value> second) {
            const auto& part = parts_[result.layer];
            const auto how_bad = badness(result);
            if (how_bad == 0) {
                return;
            }
            if (how_bad == found_badness_) {
                found_.also.push_back(fmt::format("{} '{}'", part.type, part.name));
            }
            if (how_bad <= found_badness_) {
                return;
            }
            found_badness_ = how_bad;
            found_.also.clear();
            take(part, result, inputs, reference, second);
        };
        found_.layers = compare(chain_, parts_, sides_, {inputs_}, options);
        for (const auto& result : found_.layers.results) {
            if (!result.cumulative && result.end != RunEnd::done) {
                found_.notes.push_back(fmt::format("layer {} ({} '{}') could not be compared: {}",
                                                   result.layer, parts_[result.layer].type,
                                                   parts_[result.layer].name, result.reason));
            }
        }
    }

    void take(const Part& part, const LayerComparison& result, std::span<const Value> inputs,
              std::span<const Value> reference, std::span<const Value> second) {
        found_.difference = result;
        found_.culprit = describe_layer(chain_, part, result.layer);
        found_.inputs = named(graph(), part.inputs, inputs);
        found_.reference = named(graph(), part.outputs, reference);
        found_.other = named(graph(), part.outputs, second);
    }

    void build_models(const Part& part) {
        std::vector<Value> values;
        for (const auto& input : found_.inputs) {
            values.push_back(input.value);
        }
        found_.reference_model = chain_.extract(part, values);
        found_.other_model = other_ == nullptr ? clone(found_.reference_model)
                                               : matching_part(chain_, part, *other_, values);
    }

    const LayerComparison* last_cumulative() const {
        const LayerComparison* last = nullptr;
        for (const auto& result : found_.layers.results) {
            last = result.cumulative ? &result : last;
        }
        return last;
    }

    // The whole differs, and no layer does when it is run alone.
    void narrow() {
        const auto* arriving = last_cumulative();
        if (arriving != nullptr && arriving->verdict == Verdict::fail) {
            accumulate();
            return;
        }
        found_.notes.emplace_back(
            "cutting the model changes the result: op by op both sides agree, in one piece they "
            "do not; the search went on with ops compiled together");
        fused();
    }

    void accumulate() {
        found_.found = Bisection::Found::accumulated;
        const LayerComparison* first = nullptr;
        const LayerComparison* worst = nullptr;
        for (const auto& result : found_.layers.results) {
            if (result.cumulative && result.verdict == Verdict::fail && first == nullptr) {
                first = &result;
            }
            if (!result.cumulative && result.verdict != Verdict::incomparable &&
                (worst == nullptr || relative_error(result) > relative_error(*worst))) {
                worst = &result;
            }
        }
        const auto* shown = worst != nullptr ? worst : first;
        if (shown == nullptr) {
            return;
        }
        const auto& part = parts_[shown->layer];
        found_.culprit = describe_layer(chain_, part, shown->layer);
        found_.difference = *shown;
        if (first != nullptr) {
            found_.notes.push_back(fmt::format(
                "no layer is off by more than its tolerance alone; the error that arrives first "
                "is at layer {} ({} '{}'), and layer {} adds most",
                first->layer, parts_[first->layer].type, parts_[first->layer].name, shown->layer));
        }
        // The smallest thing that shows it is all up to there.
        const auto all =
            chain_.part(0, parts_[first != nullptr ? first->layer : shown->layer].last);
        keep_part(all, given(all));
    }

    void keep_part(const Part& part, const std::vector<Value>& values) {
        auto both = run_both(part, values);
        if (both.difference.end != RunEnd::done) {
            return;
        }
        take(part, both.difference, values, both.reference.outputs, both.second.outputs);
        build_models(part);
    }

    static bool differs(const LayerComparison& difference) {
        return difference.verdict == Verdict::fail || difference.verdict == Verdict::warn;
    }

    // The shortest run of layers that differs when it is compiled in one piece: first its end, then
    // its beginning.
    void fused() {
        std::size_t probes = 0;
        const auto tell = [&] {
            if (options_.progress && !options_.progress("layers compiled together", probes++, 0)) {
                found_.complete = false;
            }
            return found_.complete;
        };
        const auto from_to = [&](std::size_t first, std::size_t last) {
            return chain_.part(parts_[first].first, parts_[last].last);
        };
        const auto differs_between = [&](std::size_t first, std::size_t last) {
            const auto part = from_to(first, last);
            return differs(run_both(part, values_at(part)).difference);
        };
        std::size_t end = parts_.size() - 1;
        for (std::size_t low = 0; low < end && tell();) {
            const auto middle = low + (end - low) / 2;
            if (differs_between(0, middle)) {
                end = middle;
            } else {
                low = middle + 1;
            }
        }
        // The later it may begin, the smaller the part.
        std::size_t begin = 0;
        for (std::size_t high = end; begin < high && tell();) {
            const auto middle = begin + (high - begin + 1) / 2;
            if (differs_between(middle, end)) {
                begin = middle;
            } else {
                high = middle - 1;
            }
        }
        if (!found_.complete) {
            return;
        }
        const auto part = from_to(begin, end);
        keep_part(part, values_at(part));
        found_.found = Bisection::Found::fused;
    }

    // What the reference gives a part in a run of all before it in one piece.
    std::vector<Value> values_at(const Part& part) {
        if (part.first == 0) {
            return given(part);
        }
        const auto before = chain_.part(0, part.first - 1);
        const auto run = sides_[0].run(before, given(before));
        auto values = given(part);
        for (std::size_t i = 0; i < part.inputs.size(); ++i) {
            for (std::size_t k = 0; k < before.outputs.size() && k < run.outputs.size(); ++k) {
                if (before.outputs[k] == part.inputs[i]) {
                    values[i] = run.outputs[k];
                }
            }
        }
        return values;
    }

    Chain chain_;
    const Model* other_;
    std::vector<NamedValue> inputs_;
    const BisectOptions& options_;
    bool exact_;             // both sides are the same engine
    int found_badness_ = 0;  // of the culprit
    std::vector<Side> sides_;
    std::vector<Part> parts_;
    Bisection found_;
};

// What is inside of a culprit, with what that was given.
struct Inside {
    Model left;
    std::optional<Model> right;  // absent: the same
    std::vector<NamedValue> inputs;
    std::string where;
};

std::optional<Inside> taken_branch(const Bisection& found, bool same_model) {
    Inside inside;
    auto left = open_branch(found.reference_model, found.inputs, inside.where);
    auto right = open_branch(found.other_model, found.inputs, inside.where);
    if (!left || !right) {
        return std::nullopt;
    }
    inside.left = std::move(*left);
    if (!same_model) {
        inside.right = std::move(*right);
    }
    inside.inputs = found.inputs;
    return inside;
}

const Value* value_of(const std::vector<NamedValue>& values, const std::string& name) {
    const auto found = std::find_if(values.begin(), values.end(),
                                    [&](const NamedValue& value) { return value.name == name; });
    return found == values.end() ? nullptr : &found->value;
}

std::vector<Type> types_of(const std::vector<NamedValue>& values) {
    std::vector<Type> types;
    for (const auto& value : values) {
        types.push_back(type_of(value.value));
    }
    return types;
}

// The first iteration of a Loop or a Scan that differs when both sides are given what the reference
// has there.
std::optional<Inside> first_bad_iteration(Bisection& found, bool same_model,
                                          const SideOptions& reference, const SideOptions& second,
                                          const BisectOptions& options) {
    auto left = lab::open_iteration(found.reference_model);
    auto right = lab::open_iteration(found.other_model);
    auto all = left ? lab::Iterations::of(found.reference_model, found.inputs) : std::nullopt;
    if (!left || !right || !all) {
        return std::nullopt;
    }
    std::optional<Search> search;
    std::vector<Type> types;
    while (!all->done()) {
        if (options.progress && !options.progress("iterations", all->number(), 0)) {
            found.complete = false;
            return std::nullopt;
        }
        auto inputs = found.inputs;
        for (std::size_t i = 0; i < left->given.size(); ++i) {
            inputs.push_back({left->given[i], all->given()[i]});
        }
        if (!search || types != types_of(inputs)) {  // programs are made for types
            types = types_of(inputs);
            search.emplace(left->model, same_model ? nullptr : &right->model, reference, second,
                           inputs, options);
        }
        if (!search->runs_something()) {
            return std::nullopt;
        }
        const auto whole = search->run_whole(inputs);
        if (whole.badness > 0) {
            Inside inside{.left = std::move(left->model),
                          .right = {},
                          .inputs = std::move(inputs),
                          .where = fmt::format("body, iteration {}", all->number())};
            if (!same_model) {
                inside.right = std::move(right->model);
            }
            return inside;
        }
        std::vector<Value> made;
        for (const auto& output : left->made) {
            const auto* value = value_of(whole.outputs, output.name);
            value = value == nullptr ? value_of(inputs, output.name) : value;
            made.push_back(value == nullptr ? output.constant : *value);
        }
        if (whole.end != RunEnd::done) {
            break;
        }
        all->next(made);
    }
    found.notes.push_back(fmt::format("no iteration of {} '{}' differs alone{}", found.culprit.type,
                                      found.culprit.name,
                                      all->done() ? "" : ": the reference cannot run one"));
    return std::nullopt;
}

}  // namespace

Bisection bisect(const Model& model, const Model* other, const SideOptions& reference,
                 const SideOptions& second, const std::vector<NamedValue>& inputs,
                 const BisectOptions& options) {
    auto found = Search(model, other, reference, second, inputs, options).run();
    // A body is opened as long as the culprit is one, and what is in it shows the difference too.
    for (std::size_t depth = 0; depth < deepest_search && found.found == Bisection::Found::layer;
         ++depth) {
        const bool same_model = other == nullptr;
        auto inside = taken_branch(found, same_model);
        if (!inside) {
            inside = first_bad_iteration(found, same_model, reference, second, options);
        }
        if (!inside) {
            break;
        }
        auto inner = Search(inside->left, inside->right ? &*inside->right : nullptr, reference,
                            second, inside->inputs, options)
                         .run();
        inner.path = found.path;
        inner.path.push_back(
            fmt::format("{} '{}' {}", found.culprit.type, found.culprit.name, inside->where));
        if (inner.found == Bisection::Found::nothing) {
            found.notes.push_back(
                fmt::format("inside of {} no op differs alone", inner.path.back()));
            break;
        }
        inner.whole = found.whole;
        inner.layers = found.layers;
        inner.also.insert(inner.also.end(), found.also.begin(), found.also.end());
        inner.notes.insert(inner.notes.begin(), found.notes.begin(), found.notes.end());
        found = std::move(inner);
    }
    return found;
}

}  // namespace trocar
