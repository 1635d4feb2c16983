#include "trocar/prune.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "prune/weights.h"
#include "trocar/error.h"
#include "util/elements.h"
#include "util/op_label.h"

namespace trocar {

namespace {

using pruning::Weight;

void check(const Model& model, const PruneOptions& options) {
    if (!(options.sparsity >= 0 && options.sparsity < 1)) {
        throw Error(
            Fault::usage,
            fmt::format("{} is no share to prune: it is 0 at least and below 1", options.sparsity));
    }
    if (options.method == PruneMethod::pattern &&
        (options.pattern_kept < 1 || options.pattern_of <= options.pattern_kept)) {
        throw Error(Fault::usage,
                    fmt::format("{}:{} is no pattern: of M neighbours N stay, and N is less than M",
                                options.pattern_kept, options.pattern_of));
    }
    if (options.multiple < 1) {
        throw Error(Fault::usage, "channels stay in multiples of 1 at least");
    }
    if (options.method == PruneMethod::channels && model.dialect != "onnx") {
        throw Error(Fault::unsupported,
                    fmt::format("channels cannot be removed from models of the dialect '{}'",
                                model.dialect),
                    "`trocar convert` maps it to onnx; single elements can be pruned as it is");
    }
}

PrunedWeight row_of(const Model& model, const Weight& weight) {
    PrunedWeight row;
    row.op = weight.op;
    row.name = op_label(model.graph, weight.op);
    row.type = model.graph.op(weight.op).type;
    row.why = weight.why;
    if (weight.place.tensor != TensorId::none) {
        const auto& value = value_at(model.graph, weight.place);
        row.tensor = model.graph.tensor(weight.place.tensor).name;
        row.before = value.shape();
        row.after = value.shape();
        row.nonzero_before = is_numeric(value.dtype()) ? pruning::nonzero(value) : 0;
        row.nonzero_after = row.nonzero_before;
    }
    return row;
}

void prune_elements(const PruneOptions& options, std::vector<Weight>& weights, Pruned& result) {
    auto& graph = result.model.graph;
    auto masks = pruning::element_masks(graph, weights, options);
    for (std::size_t i = 0; i < weights.size(); ++i) {
        result.weights[i].why = weights[i].why;
        const auto& tensor = result.weights[i].tensor;
        const bool again = std::any_of(result.masks.begin(), result.masks.end(),
                                       [&](const Mask& mask) { return mask.tensor == tensor; });
        if (!masks[i].empty() && !again) {
            const auto value = value_at(graph, weights[i].place);
            set_value(graph, weights[i].place, pruning::masked(value, masks[i]));
            result.masks.push_back({tensor, value.shape(), std::move(masks[i])});
        }
    }
}

Pruned pruned(const Model& model, const PruneOptions& options, const Shapes& shapes) {
    Pruned result;
    auto weights = pruning::weights_of(model, options);
    if (weights.empty()) {
        throw Error(Fault::input, "none of the chosen ops has weights",
                    "`trocar summary` shows which ops have parameters");
    }
    std::transform(weights.begin(), weights.end(), std::back_inserter(result.weights),
                   [&](const Weight& weight) { return row_of(model, weight); });
    result.model = clone(model);
    result.shapes = shapes;
    if (options.method == PruneMethod::channels) {
        pruning::remove_channels(model, options, shapes, result);
    } else {
        prune_elements(options, weights, result);
    }
    for (std::size_t i = 0; i < weights.size(); ++i) {
        if (weights[i].place.tensor != TensorId::none) {
            const auto& value = value_at(result.model.graph, weights[i].place);
            result.weights[i].after = value.shape();
            result.weights[i].nonzero_after =
                is_numeric(value.dtype()) ? pruning::nonzero(value) : 0;
        }
    }
    return result;
}

}  // namespace

void parse_prune_method(const std::string& text, PruneOptions& options) {
    if (text == "magnitude" || text == "random" || text == "channels") {
        options.method = text == "magnitude" ? PruneMethod::magnitude
                         : text == "random"  ? PruneMethod::random
                                             : PruneMethod::channels;
        return;
    }
    const auto colon = text.find(':');
    const auto number = [&](std::size_t first, std::size_t end, std::int64_t& value) {
        const auto* last = text.data() + end;
        const auto [at, failure] = std::from_chars(text.data() + first, last, value);
        return failure == std::errc{} && at == last && first < end;
    };
    if (colon == std::string::npos || !number(0, colon, options.pattern_kept) ||
        !number(colon + 1, text.size(), options.pattern_of)) {
        throw Error(Fault::usage, fmt::format("'{}' is no way to prune", text),
                    "magnitude, random, channels, or a pattern such as 2:4");
    }
    options.method = PruneMethod::pattern;
}

Pruned prune(const Model& model, const PruneOptions& options, const Shapes& shapes) {
    check(model, options);
    if (options.method != PruneMethod::channels) {
        return pruned(model, options, shapes);
    }
    auto folded = clone(model);
    auto known = shapes;
    known.resize(std::max(known.size(), model.graph.tensor_limit()));
    const auto forms = pruning::fold_forms(folded, known);
    auto result = pruned(folded, options, known);
    // Masks are for the model as it was.
    for (const auto& form : forms) {
        for (auto& mask : result.masks) {
            if (mask.tensor == form.tensor) {
                mask.tensor = form.root;
                mask.shape = form.shape;
            }
        }
    }
    return result;
}

SparseStored store_sparse(Model& model) {
    if (model.dialect != "onnx") {
        throw Error(Fault::unsupported,
                    fmt::format("sparse constants are not written to models of the dialect '{}'",
                                model.dialect),
                    "leave --sparse-encoding out: the zeros are written as zeros");
    }
    constexpr std::int64_t sparse_version = 5;
    SparseStored stored;
    auto& graph = model.graph;
    for (const auto id : graph.tensors()) {
        const auto& tensor = graph.tensor(id);
        if (!tensor.constant || tensor.is_input || tensor.is_output || tensor.uses.empty() ||
            tensor.constant->is_sparse() || !is_float(tensor.constant->dtype()) ||
            bits(tensor.constant->dtype()) % 8 != 0 || tensor.constant->shape().empty() ||
            std::any_of(tensor.uses.begin(), tensor.uses.end(),
                        [](const Use& use) { return use.slot == Use::captured; })) {
            continue;
        }
        const auto constant = *tensor.constant;
        const auto left = pruning::nonzero(constant);
        const auto width = bits(constant.dtype()) / 8;
        const auto before = constant.element_count() * width;
        const auto after = left * (width + sizeof(std::int64_t));
        if (left == 0 || after >= before) {
            continue;
        }
        const auto numbers = numbers_of(constant);
        std::vector<std::int64_t> places;
        std::vector<std::byte> values;
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            if (numbers[i] != 0) {
                places.push_back(static_cast<std::int64_t>(i));
                const auto at = constant.bytes().subspan(i * width, width);
                values.insert(values.end(), at.begin(), at.end());
            }
        }
        const Shape count{static_cast<std::int64_t>(places.size())};
        graph.set_constant(
            id, Constant::sparse(constant.shape(), Constant::copy(constant.dtype(), count, values),
                                 Constant::of(DType::i64, count, places)));
        ++stored.constants;
        stored.bytes_before += before;
        stored.bytes_after += after;
    }
    if (stored.constants > 0) {
        model.ir_version = std::max(model.ir_version, sparse_version);
    }
    return stored;
}

}  // namespace trocar
