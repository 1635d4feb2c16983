#include "trocar/data.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "data/fit.h"
#include "data/folder.h"
#include "data/kinds.h"
#include "data/source.h"
#include "trocar/error.h"
#include "util/sha256.h"
#include "util/text.h"

namespace trocar {

namespace {

using data::Source;
using data::Target;

bool is_required(const Tensor& tensor) {
    return !tensor.constant && tensor.type.kind != Type::Kind::optional;
}

// A source, the part of it that is wanted, and the model's inputs.
class FittedData final : public Dataset {
public:
    FittedData(std::unique_ptr<Source> source, const DataOptions& options,
               std::vector<Target> targets, std::size_t first, std::size_t count)
        : source_(std::move(source)),
          path_(options.path),
          preprocess_(options.preprocess),
          targets_(std::move(targets)),
          first_(first),
          count_(count) {
        check_labels(options.classes);
        const auto one = sample(0);
        if (one.inputs.size() == 1 && source_->noun == "picture") {
            picture_shape_ = one.inputs.front().value.shape();
        }
    }

    std::size_t size() const override { return count_; }
    Sample sample(std::size_t index) const override;
    std::optional<std::int64_t> label(std::size_t index) const override {
        return source_->label(place(index));
    }
    std::string name(std::size_t index) const override { return source_->name(place(index)); }
    bool labelled() const override { return classes_ > 0; }
    const std::vector<std::string>& class_names() const override { return source_->class_names; }
    std::string description() const override;
    const std::vector<std::string>& notes() const override { return source_->notes; }
    std::string hash() const override;

private:
    std::size_t place(std::size_t index) const {
        if (index >= count_) {
            throw Error(Fault::usage, fmt::format("there is no sample {} of {}", index, count_));
        }
        return first_ + index;
    }
    void check_labels(std::optional<std::int64_t> classes);

    std::unique_ptr<Source> source_;
    std::filesystem::path path_;
    Preprocess preprocess_;
    std::vector<Target> targets_;
    std::size_t first_;
    std::size_t count_;
    std::int64_t classes_ = 0;            // one more than the largest label; 0: no labels
    std::optional<Shape> picture_shape_;  // of the first; all others must have it
    mutable std::once_flag hashed_;
    mutable std::string hash_;
};

void FittedData::check_labels(std::optional<std::int64_t> classes) {
    const bool labels = label(0).has_value();
    for (std::size_t i = 0; i < count_; ++i) {
        const auto one = label(i);
        if (one.has_value() != labels) {
            throw Error(Fault::input,
                        fmt::format("'{}' has a label, but '{}' has none", name(labels ? 0 : i),
                                    name(labels ? i : 0)),
                        "give labels for all samples, or for none");
        }
        const auto known = static_cast<std::int64_t>(source_->class_names.size());
        const auto most = classes ? *classes : known > 0 ? known : INT64_MAX;
        if (one && *one >= most) {
            throw Error(Fault::input,
                        fmt::format("'{}' has the label {}, but there are {} classes, from 0",
                                    name(i), *one, most),
                        "are the labels those of this model?");
        }
        classes_ = one ? std::max(classes_, *one + 1) : 0;
    }
}

Sample FittedData::sample(std::size_t index) const {
    const auto at = place(index);
    Sample sample{.inputs = {}, .label = source_->label(at), .name = source_->name(at)};
    const auto where = fmt::format("'{}'", sample.name);
    const auto raw = source_->read(at);
    if (targets_.size() == 1) {
        const auto& target = targets_.front();
        sample.inputs.push_back({target.name, data::fitted(raw, target, preprocess_, where)});
        const auto shape = sample.inputs.front().value.shape();
        if (picture_shape_ && shape != *picture_shape_) {
            throw Error(Fault::input,
                        fmt::format("{} is {}, but '{}' is {}", where, shape_text(shape), name(0),
                                    shape_text(*picture_shape_)),
                        "make them alike: --prep resize=224x224");
        }
        return sample;
    }
    const auto& values = std::get<std::vector<NamedValue>>(raw);
    for (const auto& target : targets_) {
        const auto found = std::ranges::find(values, target.name, &NamedValue::name);
        sample.inputs.push_back(
            {target.name, data::fitted(found->value, target, preprocess_.batch_axis, where)});
    }
    return sample;
}

std::string FittedData::description() const {
    return fmt::format("{} of '{}', {}", counted(count_, source_->noun), path_.string(),
                       classes_ > 0 ? fmt::format("labels below {}", classes_) : "without labels");
}

std::string FittedData::hash() const {
    std::call_once(hashed_, [&] {
        Sha256 all;
        const auto add = [&](const std::string& text) { all.add(std::as_bytes(std::span(text))); };
        add(fmt::format("trocar.data/1\n{}\n", preprocess_text(preprocess_)));
        for (std::size_t i = 0; i < count_; ++i) {
            Sha256 one;
            source_->digest(first_ + i, one);
            add(fmt::format("{}\n{}\n{}\n", name(i), label(i).value_or(-1), one.hex()));
        }
        hash_ = all.hex();
    });
    return hash_;
}

struct ModelInputs {
    std::vector<Target> all;
    std::vector<std::string> names;
    std::vector<std::string> required;
};

ModelInputs inputs_of(const Graph& graph) {
    ModelInputs inputs;
    for (const auto id : graph.inputs()) {
        const auto& tensor = graph.tensor(id);
        inputs.all.push_back({tensor.name, tensor.type});
        inputs.names.push_back(tensor.name);
        if (is_required(tensor)) {
            inputs.required.push_back(tensor.name);
        }
    }
    return inputs;
}

std::unique_ptr<Source> open_source(const DataOptions& options, const std::string& kind,
                                    const ModelInputs& inputs) {
    if (kind == "images") {
        return data::open_images(options);
    }
    if (kind == "arrays") {
        return data::open_arrays(options, inputs.names, inputs.required);
    }
    if (kind == "idx") {
        return data::open_idx(options);
    }
    if (kind == "cifar10" || kind == "cifar100") {
        return data::open_cifar(options, kind == "cifar100");
    }
    if (kind == "events") {
        return data::open_events(options);
    }
    const std::vector<std::string> known{"images",  "arrays",   "idx",
                                         "cifar10", "cifar100", "events"};
    const auto near = did_you_mean(kind, known);
    throw Error(Fault::usage, fmt::format("there is no kind of data '{}'", kind),
                near.empty() ? "images, arrays, idx, cifar10, cifar100 or events" : near);
}

// The inputs that the samples give: those that arrays have, else the only one.
std::vector<Target> targets_of(const Source& source, const std::string& kind,
                               const ModelInputs& inputs) {
    if (kind != "arrays") {
        if (inputs.required.size() != 1) {
            throw Error(Fault::usage,
                        fmt::format("the model takes {}, but a sample of this data is one",
                                    counted(inputs.required.size(), "input")),
                        "give an .npz with an array for each input");
        }
        const auto found = std::ranges::find(inputs.all, inputs.required.front(), &Target::name);
        return {*found};
    }
    const auto first = std::get<std::vector<NamedValue>>(source.read(0));
    std::vector<Target> targets;
    for (const auto& target : inputs.all) {
        if (std::ranges::count(first, target.name, &NamedValue::name) != 0) {
            targets.push_back(target);
        }
    }
    return targets;
}

}  // namespace

std::unique_ptr<Dataset> open_data(const DataOptions& options, const Graph& graph) {
    const auto inputs = inputs_of(graph);
    if (!data::is_there(options.path)) {
        throw Error(Fault::input, fmt::format("{} does not exist", data::quoted(options.path)));
    }
    const auto kind = options.kind.empty() ? data::kind_of(options.path) : options.kind;
    auto source = open_source(options, kind, inputs);
    const auto where = data::quoted(options.path);
    if (source->size() == 0) {
        throw Error(Fault::input, fmt::format("{} holds no samples", where));
    }
    if (options.offset < 0 || static_cast<std::size_t>(options.offset) >= source->size() ||
        options.limit.value_or(1) < 1) {
        throw Error(Fault::usage,
                    fmt::format("offset {}{} leaves none of {}", options.offset,
                                options.limit ? fmt::format(" and limit {}", *options.limit) : "",
                                counted(source->size(), source->noun)));
    }
    auto targets = targets_of(*source, kind, inputs);
    if (targets.size() > 1 && data::changes_values(options.preprocess)) {
        throw Error(
            Fault::usage,
            fmt::format("preprocessing is for one input, and {} gives {}", where, targets.size()),
            "leave --prep out, and store the arrays as the model takes them");
    }
    const auto first = static_cast<std::size_t>(options.offset);
    auto count = source->size() - first;
    if (options.limit) {
        count = std::min(count, static_cast<std::size_t>(*options.limit));
    }
    return std::make_unique<FittedData>(std::move(source), options, std::move(targets), first,
                                        count);
}

}  // namespace trocar
