#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "prune/weights.h"
#include "trocar/error.h"
#include "trocar/format.h"
#include "trocar/prune.h"
#include "trocar/report.h"
#include "util/elements.h"
#include "util/op_label.h"
#include "util/text.h"

namespace trocar {

namespace {

namespace fs = std::filesystem;

// The constant of a name; what writes it where that is the op Constant.
pruning::Place place_of(const Model& model, const Mask& mask) {
    const auto id = model.graph.find_tensor(mask.tensor);
    if (!id) {
        std::vector<std::string> names;
        for (const auto tensor : model.graph.tensors()) {
            names.push_back(model.graph.tensor(tensor).name);
        }
        throw Error(Fault::input, fmt::format("the model has no tensor '{}' to mask", mask.tensor),
                    did_you_mean(mask.tensor, names));
    }
    const auto place = pruning::constant_behind(model, *id);
    if (!place || place->tensor != *id) {
        throw Error(Fault::input, fmt::format("'{}' is no constant of the model that can be masked",
                                              mask.tensor));
    }
    const auto& value = value_at(model.graph, *place);
    if (value.shape() != mask.shape) {
        throw Error(Fault::input,
                    fmt::format("the mask of '{}' is {}, the constant is {}", mask.tensor,
                                shape_text(mask.shape), shape_text(value.shape())),
                    "was it made for another model?");
    }
    if (!is_numeric(value.dtype()) || bits(value.dtype()) % 8 != 0) {
        throw Error(Fault::unsupported, fmt::format("constants of {} such as '{}' cannot be masked",
                                                    name(value.dtype()), mask.tensor));
    }
    return *place;
}

// The tensor whose constant is read through ops that pass it on.
std::string root_of(const Graph& graph, TensorId id) {
    for (;;) {
        const auto& tensor = graph.tensor(id);
        if (tensor.constant || tensor.producer == OpId::none) {
            return tensor.name;
        }
        const auto& op = graph.op(tensor.producer);
        if (op.type != "Identity" || op.inputs.empty() || op.inputs[0] == TensorId::none) {
            return tensor.name;
        }
        id = op.inputs[0];
    }
}

class MaskTool : public Tool {
public:
    explicit MaskTool(std::vector<Mask> masks) : Tool("masks") {
        for (auto& mask : masks) {
            masks_[mask.tensor] = std::move(mask);
        }
        before(where([this](const Graph& graph, OpId op) { return reads_masked(graph, op); }),
               [this](Port& port) { apply(port); })
            .with_constants();
    }

    void report(Report& report) const override {
        std::uint64_t zeros = 0;
        std::uint64_t elements = 0;
        for (const auto& [tensor, mask] : masks_) {
            zeros += static_cast<std::uint64_t>(
                std::count(mask.kept.begin(), mask.kept.end(), std::uint8_t{0}));
            elements += mask.kept.size();
        }
        Section section{.key = "masks", .title = "Masks", .scalars = {}};
        section.scalars.push_back(
            {"constants", "Constants", std::uint64_t{masks_.size()}, Show::count, ""});
        section.scalars.push_back(
            {"masked", "Elements read as 0", zeros, Show::count, fmt::format("of {}", elements)});
        report.sections.push_back(std::move(section));
    }

private:
    bool reads_masked(const Graph& graph, OpId id) const {
        const auto& op = graph.op(id);
        return op.type != "Identity" &&
               std::any_of(op.inputs.begin(), op.inputs.end(), [&](TensorId input) {
                   return input != TensorId::none && masks_.contains(root_of(graph, input));
               });
    }

    void apply(Port& port) const {
        const auto& inputs = port.op().inputs;
        for (std::size_t slot = 0; slot < inputs.size(); ++slot) {
            const auto at = inputs[slot] == TensorId::none
                                ? masks_.end()
                                : masks_.find(root_of(port.graph(), inputs[slot]));
            if (at == masks_.end()) {
                continue;
            }
            const auto bytes = port.writable_input(slot).bytes();
            const auto& kept = at->second.kept;
            const auto width = bytes.size() / std::max<std::size_t>(kept.size(), 1);
            for (std::size_t i = 0; i < kept.size(); ++i) {
                if (kept[i] == 0) {
                    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(i * width), width,
                                std::byte{0});
                }
            }
        }
    }

    std::map<std::string, Mask> masks_;
};

}  // namespace

std::vector<Mask> load_masks(const fs::path& path) {
    std::vector<Mask> masks;
    for (const auto& [name, value] : load_values(path)) {
        if (!value.is_tensor() || (value.dtype() != DType::boolean && value.dtype() != DType::u8)) {
            throw Error(
                Fault::input,
                fmt::format("'{}' in '{}' is {}, no mask", name, path.string(), value_text(value)),
                "masks are arrays of truths, one for each element of a constant");
        }
        Mask mask{name, value.shape(), {}};
        const auto bytes = value.bytes();
        mask.kept.resize(bytes.size());
        std::transform(bytes.begin(), bytes.end(), mask.kept.begin(), [](std::byte b) {
            return static_cast<std::uint8_t>(b == std::byte{0} ? 0 : 1);
        });
        masks.push_back(std::move(mask));
    }
    if (masks.empty()) {
        throw Error(Fault::input, fmt::format("'{}' has no masks in it", path.string()));
    }
    return masks;
}

void save_masks(const std::vector<Mask>& masks, const fs::path& path) {
    std::vector<NamedValue> values;
    for (const auto& mask : masks) {
        values.push_back(
            {mask.tensor, Value::borrow(DType::boolean, mask.shape,
                                        std::as_bytes(std::span(mask.kept)), nullptr)});
    }
    save_values(values, path);
}

Pruned apply_masks(const Model& model, const std::vector<Mask>& masks) {
    Pruned result;
    result.model = clone(model);
    auto& graph = result.model.graph;
    for (const auto& mask : masks) {
        const auto place = place_of(model, mask);
        const auto& value = value_at(model.graph, place);
        PrunedWeight row;
        row.tensor = mask.tensor;
        const auto& uses = model.graph.tensor(place.tensor).uses;
        if (!uses.empty()) {
            row.op = uses[0].op;
            row.name = op_label(model.graph, row.op);
            row.type = model.graph.op(row.op).type;
        }
        row.before = row.after = mask.shape;
        row.nonzero_before = pruning::nonzero(value);
        auto made = pruning::masked(value, mask.kept);
        row.nonzero_after = pruning::nonzero(made);
        set_value(graph, place, std::move(made));
        result.weights.push_back(std::move(row));
    }
    result.masks = masks;
    return result;
}

std::unique_ptr<Tool> mask_tool(const Model& model, std::vector<Mask> masks) {
    for (const auto& mask : masks) {
        place_of(model, mask);
    }
    return std::make_unique<MaskTool>(std::move(masks));
}

}  // namespace trocar
