#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "prune/flow.h"
#include "trocar/error.h"
#include "trocar/random.h"
#include "util/elements.h"
#include "util/op_label.h"
#include "util/take_places.h"

namespace trocar::pruning {

namespace {

// The norm of each place along an axis.
std::vector<double> norms(const Constant& constant, std::size_t axis, ChannelRank rank) {
    const auto numbers = numbers_of(constant);
    const auto& shape = constant.shape();
    const auto inner = element_count(std::span(shape).subspan(axis + 1));
    const auto length = static_cast<std::size_t>(shape[axis]);
    std::vector<double> sums(length, 0);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const auto x = std::abs(numbers[i]);
        sums[i / inner % length] += rank == ChannelRank::l2 ? x * x : x;
    }
    if (rank == ChannelRank::l2) {
        std::transform(sums.begin(), sums.end(), sums.begin(),
                       [](double x) { return std::sqrt(x); });
    }
    return sums;
}

// Chooses the classes that go, by rank within those that were made together.
class Choice {
public:
    Choice(const Model& model, const PruneOptions& options, Flow& flow)
        : graph_(model.graph),
          options_(options),
          flow_(flow),
          removed_(flow.atom_count(), false),
          score_(flow.atom_count(), 0),
          together_(flow.atom_count()) {
        std::iota(together_.begin(), together_.end(), Atom{0});
        hold_back();
        rank();
        options.global ? choose_globally() : choose_locally();
        for (auto& [root, band] : bands_) {
            round(band);
        }
        leave_some();
        for (const auto& [root, band] : bands_) {
            before_ += band.classes.size();
            after_ +=
                static_cast<std::size_t>(std::count_if(band.classes.begin(), band.classes.end(),
                                                       [&](Atom one) { return !removed_[one]; }));
        }
    }

    bool removed(Atom atom) const { return removed_[flow_.find(atom)]; }
    std::vector<std::int64_t> kept(const Axis& list) const {
        std::vector<std::int64_t> places;
        for (std::size_t i = 0; i < list->size(); ++i) {
            if (!removed((*list)[i])) {
                places.push_back(static_cast<std::int64_t>(i));
            }
        }
        return places;
    }
    std::int64_t count(const Axis& list) const {
        return static_cast<std::int64_t>(kept(list).size());
    }
    std::size_t before() const { return before_; }
    std::size_t after() const { return after_; }

private:
    // Classes that one op makes, or several that are coupled.
    struct Band {
        std::vector<Atom> classes;  // in the order of the model
        std::size_t channels = 0;   // of the first op that makes them
    };

    // Channels of ops that were not chosen.
    void hold_back() {
        for (const auto& source : flow_.sources()) {
            const auto name = op_label(graph_, source.op);
            if (options_.keep(graph_, source.op)) {
                flow_.freeze(source.channels, fmt::format("'{}' is to be kept", name));
            } else if (source.own && options_.at && !(*options_.at)(graph_, source.op)) {
                flow_.freeze(source.channels, fmt::format("'{}' was not chosen", name));
            }
        }
    }

    Atom band_of(Atom one) {
        while (together_[one] != one) {
            together_[one] = together_[together_[one]];
            one = together_[one];
        }
        return one;
    }

    void rank() {
        for (const auto& source : flow_.sources()) {
            const auto& list = *source.channels;
            for (const auto atom : list) {
                const auto a = band_of(flow_.find(list[0]));
                const auto b = band_of(flow_.find(atom));
                if (source.own && a != b) {
                    together_[std::max(a, b)] = std::min(a, b);
                }
            }
            score(source);
        }
        std::set<Atom> seen;
        for (const auto& source : flow_.sources()) {
            for (const auto atom : *source.channels) {
                const auto one = flow_.find(atom);
                if (seen.insert(one).second) {
                    auto& band = bands_[band_of(one)];
                    band.classes.push_back(one);
                    band.channels = std::max(band.channels, source.channels->size());
                }
            }
        }
    }

    // Every op counts as much: norms are relative to their mean.
    void score(const Flow::Source& source) {
        const auto& list = *source.channels;
        std::vector<double> own;
        if (options_.rank == ChannelRank::random) {
            const auto name = op_label(graph_, source.op);
            const auto key = options_.seed ^ stable_hash(name.data(), name.size());
            for (std::size_t i = 0; i < list.size(); ++i) {
                const auto words = philox(key, 1, i);
                own.push_back(unit_double(words[0], words[1]));
            }
        } else {
            own = norms(value_at(graph_, source.weight), source.axis, options_.rank);
        }
        const auto sum = std::accumulate(own.begin(), own.end(), 0.0);
        const auto mean = sum > 0 ? sum / static_cast<double>(own.size()) : 1;
        for (std::size_t i = 0; i < list.size() && i < own.size(); ++i) {
            score_[flow_.find(list[i])] += own[i] / mean;
            ++counts_[flow_.find(list[i])];
        }
    }
    double score_of(Atom one) const {
        const auto at = counts_.find(one);
        return at == counts_.end() ? 0 : score_[one] / static_cast<double>(at->second);
    }
    bool may_go(Atom one) const { return flow_.why(one).empty(); }

    std::vector<Atom> ranked(const std::vector<Atom>& classes) const {
        std::vector<Atom> order;
        std::copy_if(classes.begin(), classes.end(), std::back_inserter(order),
                     [&](Atom one) { return may_go(one); });
        std::stable_sort(order.begin(), order.end(),
                         [&](Atom a, Atom b) { return score_of(a) < score_of(b); });
        return order;
    }
    static std::size_t share_of(double share, std::size_t count) {
        return static_cast<std::size_t>(std::floor(share * static_cast<double>(count) + 1e-9));
    }

    void choose_locally() {
        for (const auto& [root, band] : bands_) {
            const auto order = ranked(band.classes);
            const auto most =
                std::min(share_of(options_.sparsity, band.classes.size()), band.classes.size() - 1);
            for (std::size_t i = 0; i < std::min(most, order.size()); ++i) {
                removed_[order[i]] = true;
            }
        }
    }

    void choose_globally() {
        std::vector<Atom> all;
        std::map<Atom, std::size_t> left;
        for (const auto& [root, band] : bands_) {
            const auto order = ranked(band.classes);
            all.insert(all.end(), order.begin(), order.end());
            left[root] = band.classes.size();
        }
        auto most = share_of(options_.sparsity, all.size());
        for (const auto one : ranked(all)) {
            auto& rest = left[band_of(one)];
            if (most > 0 && rest > 1) {
                removed_[one] = true;
                --rest;
                --most;
            }
        }
    }

    // Puts the best back until as many stay as a multiple says.
    void round(const Band& band) {
        const auto multiple = static_cast<std::size_t>(options_.multiple);
        const auto width = band.channels / std::max<std::size_t>(band.classes.size(), 1);
        const auto order = ranked(band.classes);
        auto stay = static_cast<std::size_t>(std::count_if(
            band.classes.begin(), band.classes.end(), [&](Atom one) { return !removed_[one]; }));
        for (auto at = order.rbegin();
             at != order.rend() && stay * std::max<std::size_t>(width, 1) % multiple != 0; ++at) {
            if (removed_[*at]) {
                removed_[*at] = false;
                ++stay;
            }
        }
    }

    // No axis may become empty.
    void leave_some() {
        const auto look = [&](const Axis& list) {
            if (list == nullptr || list->empty()) {
                return;
            }
            auto best = flow_.find((*list)[0]);
            for (const auto atom : *list) {
                const auto one = flow_.find(atom);
                if (!removed_[one]) {
                    return;
                }
                best = score_of(one) > score_of(best) ? one : best;
            }
            removed_[best] = false;
        };
        for (const auto id : graph_.tensors()) {
            for (const auto& axis : flow_.axes(id)) {
                look(axis);
            }
        }
        for (const auto& [id, held] : flow_.constants()) {
            for (const auto& axis : held.axes) {
                look(axis);
            }
        }
    }

    const Graph& graph_;
    const PruneOptions& options_;
    Flow& flow_;
    std::vector<bool> removed_;           // by class
    std::vector<double> score_;           // likewise, summed
    std::map<Atom, std::size_t> counts_;  // likewise, of how many numbers
    std::vector<Atom> together_;
    std::map<Atom, Band> bands_;
    std::size_t before_ = 0;
    std::size_t after_ = 0;
};

// Makes the model that has only what stays.
class Removal {
public:
    Removal(const Model& before, const Flow& flow, const Choice& choice, Pruned& result)
        : before_(before),
          graph_(result.model.graph),
          flow_(flow),
          choice_(choice),
          result_(result) {}

    void run() {
        for (const auto& [id, held] : flow_.constants()) {
            shrink(held);
        }
        for (const auto& group : flow_.groups()) {
            if (changes(group.inputs)) {
                graph_.set_attribute(group.op, "group", choice_.count(group.inputs));
            }
        }
        entries();
        for (const auto& parting : flow_.partings()) {
            part(parting);
        }
        types();
    }

private:
    bool changes(const Axis& list) const {
        return list != nullptr && choice_.count(list) != static_cast<std::int64_t>(list->size());
    }

    void shrink(const Flow::Held& held) {
        auto value = value_at(before_.graph, held.place);
        if (std::none_of(held.axes.begin(), held.axes.end(),
                         [&](const Axis& axis) { return changes(axis); })) {
            return;
        }
        const auto whole = value.is_sparse() ? densify(value) : value;
        if (held.parameter) {
            mask(held, whole);
        }
        auto shape = whole.shape();
        std::vector<std::byte> bytes(whole.bytes().begin(), whole.bytes().end());
        for (std::size_t axis = 0; axis < held.axes.size(); ++axis) {
            if (changes(held.axes[axis])) {
                const auto places = choice_.kept(held.axes[axis]);
                bytes = take_places(bytes, whole.dtype(), shape, axis, places);
                shape[axis] = static_cast<std::int64_t>(places.size());
            }
        }
        set_value(graph_, held.place, Constant::copy(whole.dtype(), shape, bytes));
        set_shape(held.place.tensor, shape);
    }

    void mask(const Flow::Held& held, const Constant& whole) {
        Mask made;
        made.tensor = before_.graph.tensor(held.place.tensor).name;
        made.shape = whole.shape();
        made.kept.assign(whole.element_count(), 1);
        for (std::size_t axis = 0; axis < held.axes.size(); ++axis) {
            if (!changes(held.axes[axis])) {
                continue;
            }
            const auto inner = element_count(std::span(made.shape).subspan(axis + 1));
            const auto& list = *held.axes[axis];
            for (std::size_t i = 0; i < made.kept.size(); ++i) {
                if (choice_.removed(list[i / inner % list.size()])) {
                    made.kept[i] = 0;
                }
            }
        }
        result_.masks.push_back(std::move(made));
    }

    // Numbers of channels in constants of shapes: the op gets a constant of its own.
    void entries() {
        std::map<std::pair<OpId, std::size_t>, std::vector<std::int64_t>> changed;
        for (const auto& entry : flow_.entries()) {
            if (!changes(entry.channels)) {
                continue;
            }
            auto& numbers = changed[{entry.op, entry.slot}];
            if (numbers.empty()) {
                const auto read = before_.graph.op(entry.op).inputs[entry.slot];
                const auto place = constant_behind(before_, read);
                for (const auto x : numbers_of(value_at(before_.graph, *place))) {
                    numbers.push_back(static_cast<std::int64_t>(x));
                }
            }
            numbers[entry.at] = choice_.count(entry.channels);
        }
        for (const auto& [where, numbers] : changed) {
            const auto old = graph_.op(where.first).inputs[where.second];
            const auto made = graph_.add_constant(
                graph_.fresh_name(graph_.tensor(old).name + "/pruned"),
                Constant::of(DType::i64, {static_cast<std::int64_t>(numbers.size())}, numbers));
            graph_.set_input(where.first, where.second, made);
            drop(old);
        }
    }
    void drop(TensorId id) {
        const auto& tensor = graph_.tensor(id);
        if (tensor.uses.empty() && !tensor.is_output && !tensor.is_input &&
            tensor.producer == OpId::none) {
            graph_.remove_tensor(id);
        }
    }

    void part(const Flow::Parting& parting) {
        std::vector<std::int64_t> sizes;
        bool any = false;
        for (const auto& list : parting.channels) {
            sizes.push_back(choice_.count(list));
            any = any || changes(list);
        }
        if (!any) {
            return;
        }
        if (before_.opset() < 13) {
            graph_.set_attribute(parting.op, "split", sizes);
            return;
        }
        const auto made = graph_.add_constant(
            graph_.fresh_name(op_label(graph_, parting.op) + "/split"),
            Constant::of(DType::i64, {static_cast<std::int64_t>(sizes.size())}, sizes));
        graph_.set_input(parting.op, 1, made);
        if (graph_.op(parting.op).attribute("num_outputs") != nullptr) {
            graph_.remove_attribute(parting.op, "num_outputs");
        }
    }

    void types() {
        for (const auto id : before_.graph.tensors()) {
            const auto& axes = flow_.axes(id);
            for (std::size_t axis = 0; axis < axes.size(); ++axis) {
                if (!changes(axes[axis])) {
                    continue;
                }
                auto places = choice_.kept(axes[axis]);
                auto shape = *result_.shapes[index(id)];
                shape[axis] = static_cast<std::int64_t>(places.size());
                set_shape(id, shape);
                result_.kept[before_.graph.tensor(id).name].push_back({axis, std::move(places)});
            }
        }
    }

    void set_shape(TensorId id, const Shape& shape) {
        result_.shapes[index(id)] = shape;
        auto type = graph_.tensor(id).type;
        if (!type.dims || type.dims->size() != shape.size()) {
            return;
        }
        for (std::size_t axis = 0; axis < shape.size(); ++axis) {
            auto& dim = (*type.dims)[axis];
            dim.value = dim.value >= 0 ? shape[axis] : dim.value;
        }
        if (type != graph_.tensor(id).type) {
            graph_.set_type(id, std::move(type));
        }
    }

    const Model& before_;
    Graph& graph_;
    const Flow& flow_;
    const Choice& choice_;
    Pruned& result_;
};

}  // namespace

void remove_channels(const Model& before, const PruneOptions& options, const Shapes& shapes,
                     Pruned& result) {
    Flow flow(before, shapes);
    const Choice choice(before, options, flow);
    result.shapes = shapes;
    Removal(before, flow, choice, result).run();
    result.channels_before = choice.before();
    result.channels_after = choice.after();
    for (auto& weight : result.weights) {
        const auto source = std::find_if(flow.sources().begin(), flow.sources().end(),
                                         [&](const auto& one) { return one.op == weight.op; });
        if (source == flow.sources().end()) {
            weight.why = weight.why.empty() ? "its output channels are not known" : weight.why;
        } else if (choice.count(source->channels) ==
                   static_cast<std::int64_t>(source->channels->size())) {
            weight.why = flow.why((*source->channels)[0]);
            weight.why = weight.why.empty() ? "none of its channels had to go" : weight.why;
        }
    }
}

}  // namespace trocar::pruning
