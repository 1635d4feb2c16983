#include <fmt/format.h>

#include <algorithm>

#include "data/folder.h"
#include "data/source.h"
#include "trocar/error.h"
#include "trocar/format.h"
#include "util/elements.h"
#include "util/text.h"

namespace trocar::data {

namespace {

namespace fs = std::filesystem;

bool is_label_name(std::string_view name) {
    return name == "labels" || name == "label" || name == "y" || name == "targets";
}

class Arrays final : public Source {
public:
    Arrays() { noun = "sample"; }

    std::size_t size() const override {
        return static_cast<std::size_t>(inputs.front().value.shape().front());
    }
    RawSample read(std::size_t index) const override {
        std::vector<NamedValue> values;
        for (const auto& input : inputs) {
            auto shape = input.value.shape();
            shape.erase(shape.begin());
            values.push_back({input.name, Value::borrow(input.value.dtype(), shape,
                                                        row(input, index), input.value.body())});
        }
        return values;
    }
    std::optional<std::int64_t> label(std::size_t index) const override {
        return labels.empty() ? std::nullopt : std::optional(labels[index]);
    }
    std::string name(std::size_t index) const override { return fmt::format("sample {}", index); }
    void digest(std::size_t index, Sha256& hash) const override {
        for (const auto& input : inputs) {
            const auto header = fmt::format("{} {}\n", input.name, value_text(input.value));
            hash.add(std::as_bytes(std::span(header)));
            hash.add(row(input, index));
        }
    }

    std::vector<NamedValue> inputs;
    std::vector<std::int64_t> labels;

private:
    Bytes row(const NamedValue& input, std::size_t index) const {
        const auto bytes = input.value.bytes();
        const auto each = bytes.size() / size();
        return bytes.subspan(index * each, each);
    }
};

std::vector<NamedValue> read_folder(const fs::path& folder) {
    std::vector<NamedValue> values;
    for (const auto& file : listing(folder).files) {
        if (has_suffix(file, ".npy")) {
            values.push_back(
                {fs::path(file).stem().string(), load_values(folder / file).front().value});
        }
    }
    if (values.empty()) {
        throw Error(Fault::input, fmt::format("{} holds no .npy", quoted(folder)));
    }
    return values;
}

// One .npy has no names; labels may stand beside it as NAME_labels.npy.
std::vector<NamedValue> read_single(const fs::path& path, bool look_for_labels) {
    auto values = load_values(path);
    const auto beside =
        path.parent_path() / (path.stem().string() + "_labels" + path.extension().string());
    if (values.size() == 1 && look_for_labels && is_there(beside)) {
        values.push_back({"labels", load_values(beside).front().value});
    }
    return values;
}

std::vector<std::int64_t> labels_of(const Value& value, const std::string& where) {
    const auto shape = value.shape();
    const bool one_each = shape.size() == 1 || (shape.size() == 2 && shape[1] == 1);
    if (!value.is_tensor() || !is_integer(value.dtype()) || !one_each) {
        throw Error(Fault::input, fmt::format("{} has {} for labels", where, value_text(value)),
                    "labels are integers, one for each sample");
    }
    std::vector<double> numbers(value.element_count());
    decode(value.dtype(), value.bytes(), 0, numbers);
    std::vector<std::int64_t> labels;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        labels.push_back(
            parse_label(fmt::format("{:.0f}", numbers[i]), fmt::format("{}, sample {}", where, i)));
    }
    return labels;
}

// Parts the arrays into inputs and labels.
void distribute(Arrays& arrays, std::vector<NamedValue> values,
                const std::vector<std::string>& input_names,
                const std::vector<std::string>& required, const std::string& where) {
    std::vector<NamedValue> others;
    for (auto& value : values) {
        if (std::ranges::count(input_names, value.name) != 0) {
            arrays.inputs.push_back(std::move(value));
        } else if (is_label_name(value.name)) {
            arrays.labels = labels_of(value.value, fmt::format("{}, '{}'", where, value.name));
        } else {
            others.push_back(std::move(value));
        }
    }
    if (arrays.inputs.empty() && others.size() == 1 && required.size() == 1) {
        others.front().name = required.front();
        arrays.inputs = std::move(others);
        others.clear();
    }
    if (arrays.inputs.empty()) {
        std::vector<std::string> names;
        for (const auto& value : others) {
            names.push_back(value.name);
        }
        throw Error(Fault::input,
                    others.empty() ? fmt::format("{} holds no samples", where)
                                   : fmt::format("{} holds {}, none of which is an input of the "
                                                 "model",
                                                 where, join(names, ", ")),
                    fmt::format("name the arrays after the inputs: {}", join(input_names, ", ")));
    }
    for (const auto& name : required) {
        if (std::ranges::count(arrays.inputs, name, &NamedValue::name) == 0) {
            throw Error(Fault::input,
                        fmt::format("{} holds no array for the input '{}'", where, name),
                        "give one array for each input, with its name");
        }
    }
    for (const auto& value : others) {
        arrays.notes.push_back(
            fmt::format("the array '{}' is no input and is left out", value.name));
    }
}

void check_counts(const Arrays& arrays, const std::string& where) {
    for (const auto& input : arrays.inputs) {
        if (!input.value.is_tensor() || input.value.shape().empty() ||
            !is_numeric(input.value.dtype()) || bits(input.value.dtype()) % 8 != 0 ||
            input.value.element_count() == 0) {
            throw Error(Fault::input,
                        fmt::format("{}: '{}' is {}, and cannot be samples", where, input.name,
                                    value_text(input.value)),
                        "samples are numbers; the first dimension counts them");
        }
    }
    const auto count = arrays.inputs.front().value.shape().front();
    for (const auto& input : arrays.inputs) {
        if (input.value.shape().front() != count) {
            throw Error(Fault::input,
                        fmt::format("{}: '{}' has {} samples, but '{}' has {}", where,
                                    arrays.inputs.front().name, count, input.name,
                                    input.value.shape().front()),
                        "the first dimension of all arrays counts the samples");
        }
    }
    if (!arrays.labels.empty() && arrays.labels.size() != static_cast<std::size_t>(count)) {
        throw Error(Fault::input,
                    fmt::format("{}: there are {} labels for {} samples", where,
                                arrays.labels.size(), count),
                    "give one label for each sample");
    }
}

}  // namespace

std::unique_ptr<Source> open_arrays(const DataOptions& options,
                                    const std::vector<std::string>& input_names,
                                    const std::vector<std::string>& required) {
    auto arrays = std::make_unique<Arrays>();
    const auto where = quoted(options.path);
    auto values = is_folder(options.path) ? read_folder(options.path)
                                          : read_single(options.path, options.labels.empty());
    if (!options.labels.empty()) {
        std::erase_if(values, [](const NamedValue& value) { return is_label_name(value.name); });
        values.push_back({"labels", load_values(options.labels).front().value});
    }
    distribute(*arrays, std::move(values), input_names, required, where);
    check_counts(*arrays, where);
    return arrays;
}

}  // namespace trocar::data
