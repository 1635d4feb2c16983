#include "quantize/opset.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "trocar/error.h"
#include "util/op_label.h"

namespace trocar::quantizing {

namespace {

constexpr std::int64_t oldest = 7;
constexpr std::int64_t newest = 21;
// Before this version of the file format, constants had to be inputs as well.
constexpr std::int64_t first_with_constants = 4;

// The versions of the file format that know an operator set.
std::int64_t ir_version_for(std::int64_t opset) {
    return opset >= 21 ? 10 : opset >= 19 ? 9 : opset >= 15 ? 8 : opset >= 13 ? 7 : 6;
}

// One graph, from one version to another.
class Raiser {
public:
    Raiser(Graph& graph, std::int64_t from, std::int64_t to)
        : graph_(graph), from_(from), to_(to) {}

    void run() {
        const auto range = graph_.ops();
        for (const auto id : std::vector<OpId>(range.begin(), range.end())) {
            const auto& op = graph_.op(id);
            if (!op.domain.empty() && op.domain != "ai.onnx") {
                continue;
            }
            bodies(id);
            const auto rule = rules().find(op.type);
            if (rule != rules().end()) {
                (this->*rule->second)(id);
            }
        }
    }

private:
    using Rule = void (Raiser::*)(OpId);

    static const std::map<std::string_view, Rule>& rules() {
        static const std::map<std::string_view, Rule> all{
            {"ReduceMean", &Raiser::reduce},
            {"ReduceMax", &Raiser::reduce},
            {"ReduceMin", &Raiser::reduce},
            {"ReduceProd", &Raiser::reduce},
            {"ReduceL1", &Raiser::reduce},
            {"ReduceL2", &Raiser::reduce},
            {"ReduceLogSum", &Raiser::reduce},
            {"ReduceLogSumExp", &Raiser::reduce},
            {"ReduceSumSquare", &Raiser::reduce},
            {"ReduceSum", &Raiser::axes},
            {"Squeeze", &Raiser::axes},
            {"Unsqueeze", &Raiser::axes},
            {"Split", &Raiser::split},
            {"Clip", &Raiser::clip},
            {"Pad", &Raiser::pad},
            {"Slice", &Raiser::slice},
            {"Dropout", &Raiser::dropout},
            {"BatchNormalization", &Raiser::batch_norm},
            {"Softmax", &Raiser::softmax},
            {"LogSoftmax", &Raiser::softmax},
            {"Hardmax", &Raiser::softmax},
            {"RoiAlign", &Raiser::roi_align},
            {"GridSample", &Raiser::grid_sample},
            {"Scatter", &Raiser::scatter},
            {"Upsample", &Raiser::refuse_before_13},
            {"Resize", &Raiser::resize},
            {"TopK", &Raiser::top_k},
            {"Scan", &Raiser::scan},
            {"DFT", &Raiser::dft},
            {"GroupNormalization", &Raiser::group_norm},
        };
        return all;
    }

    bool crosses(std::int64_t version) const { return from_ < version && version <= to_; }
    [[noreturn]] void refuse(OpId id) const {
        throw Error(
            Fault::unsupported,
            fmt::format("the model is of opset {}, this wants {}, and '{}' ({}) has another "
                        "meaning there",
                        from_, to_, op_label(graph_, id), graph_.op(id).type),
            "export the model again with a newer opset");
    }
    void refuse_if(OpId id, bool changed) const {
        if (changed) {
            refuse(id);
        }
    }

    void bodies(OpId id) {
        for (const auto& attribute : std::vector<Attribute>(graph_.op(id).attributes)) {
            const auto* body = std::get_if<std::shared_ptr<Graph>>(&attribute.value);
            if (body != nullptr && *body != nullptr) {
                auto other = std::make_shared<Graph>((*body)->clone());
                Raiser(*other, from_, to_).run();
                if (other->edited()) {
                    graph_.set_attribute(id, attribute.name, std::move(other));
                }
            }
        }
    }

    // What was an attribute is input `slot` now.
    void integers_to_input(OpId id, const char* name, std::size_t slot) {
        if (graph_.op(id).attribute(name) != nullptr) {
            const auto numbers = graph_.op(id).integers(name);
            set(id, slot,
                Constant::of(DType::i64, {static_cast<std::int64_t>(numbers.size())}, numbers),
                name);
        }
    }
    void number_to_input(OpId id, const char* name, std::size_t slot) {
        const auto* attribute = graph_.op(id).attribute(name);
        if (attribute != nullptr && std::holds_alternative<float>(attribute->value)) {
            const auto dtype = graph_.tensor(graph_.op(id).inputs[0]).type.dtype;
            refuse_if(id, dtype != DType::f32 && dtype != DType::undefined);
            set(id, slot,
                Constant::of(DType::f32, {}, std::vector<float>{std::get<float>(attribute->value)}),
                name);
        }
    }
    void set(OpId id, std::size_t slot, Constant value, const char* name) {
        while (graph_.op(id).inputs.size() < slot) {
            graph_.set_input(id, graph_.op(id).inputs.size(), TensorId::none);
        }
        const auto stem = op_label(graph_, id) + "/" + name;
        graph_.set_input(id, slot, graph_.add_constant(graph_.fresh_name(stem), std::move(value)));
        graph_.remove_attribute(id, name);
    }
    void drop(OpId id, const char* name) {
        if (graph_.op(id).attribute(name) != nullptr) {
            graph_.remove_attribute(id, name);
        }
    }

    void reduce(OpId id) {
        if (crosses(18)) {
            integers_to_input(id, "axes", 1);
        }
    }
    void axes(OpId id) {
        if (crosses(13)) {
            integers_to_input(id, "axes", 1);
        }
    }
    void split(OpId id) {
        if (crosses(13)) {
            integers_to_input(id, "split", 1);
        }
        if (crosses(18) && graph_.op(id).inputs.size() < 2) {
            graph_.set_attribute(id, "num_outputs",
                                 static_cast<std::int64_t>(graph_.op(id).outputs.size()));
        }
    }
    void clip(OpId id) {
        if (crosses(11)) {
            number_to_input(id, "min", 1);
            number_to_input(id, "max", 2);
        }
    }
    void pad(OpId id) {
        if (crosses(11)) {
            integers_to_input(id, "pads", 1);
            number_to_input(id, "value", 2);
        }
    }
    void slice(OpId id) {
        if (crosses(10)) {
            integers_to_input(id, "starts", 1);
            integers_to_input(id, "ends", 2);
            integers_to_input(id, "axes", 3);
        }
    }
    void dropout(OpId id) {
        if (crosses(12)) {
            drop(id, "ratio");
        }
    }
    void batch_norm(OpId id) {
        refuse_if(id, crosses(14) && graph_.op(id).outputs.size() > 1);
        refuse_if(id, crosses(9) && graph_.op(id).integer("spatial", 1) == 0);
        drop(id, "spatial");
    }
    // All axes from the one that is named on were one: as they are where it is the last, else made
    // one and parted again.
    void softmax(OpId id) {
        if (!crosses(13)) {
            return;
        }
        const auto axis = graph_.op(id).integer("axis", 1);
        const auto in = graph_.op(id).inputs[0];
        const auto& before = graph_.tensor(in).type.dims;
        const auto& dims = before ? before : graph_.tensor(graph_.op(id).outputs[0]).type.dims;
        const auto rank = dims ? static_cast<std::int64_t>(dims->size()) : std::int64_t{0};
        if (axis == -1 || (dims && (axis < 0 ? axis + rank : axis) == rank - 1)) {
            graph_.set_attribute(id, "axis", std::int64_t{-1});
            return;
        }
        const auto shape = put(id, "Shape", {in}, {});
        const auto flat = put(id, "Flatten", {in}, {{"axis", axis, {}, {}}});
        const auto type = graph_.op(id).type;
        const auto odds = put(id, type, {flat}, {{"axis", std::int64_t{-1}, {}, {}}});
        OpSpec parted;
        parted.type = "Reshape";
        parted.name = graph_.op(id).name;
        parted.inputs = {odds, shape};
        parted.origin = graph_.op(id).origin;
        graph_.replace(id, std::move(parted));
    }
    TensorId put(OpId before, const std::string& type, std::vector<TensorId> inputs,
                 std::vector<Attribute> attributes) {
        OpSpec spec;
        spec.type = type;
        spec.name = op_label(graph_, before) + "/" + type;
        spec.inputs = std::move(inputs);
        spec.attributes = std::move(attributes);
        spec.origin = graph_.op(before).origin;
        spec.outputs = {graph_.add_tensor(graph_.fresh_name(spec.name), {})};
        const auto made = spec.outputs[0];
        graph_.insert_before(before, std::move(spec));
        return made;
    }
    void roi_align(OpId id) {
        if (crosses(16)) {
            graph_.set_attribute(id, "coordinate_transformation_mode",
                                 std::string("output_half_pixel"));
        }
    }
    void grid_sample(OpId id) {
        if (crosses(20)) {
            const auto mode = graph_.op(id).text("mode", "bilinear");
            graph_.set_attribute(id, "mode",
                                 std::string(mode == "bilinear"  ? "linear"
                                             : mode == "bicubic" ? "cubic"
                                                                 : mode));
        }
    }
    void scatter(OpId id) {
        if (crosses(11)) {
            OpSpec spec = static_cast<const OpSpec&>(graph_.op(id));
            spec.type = "ScatterElements";
            spec.outputs.clear();
            graph_.replace(id, std::move(spec));
        }
    }
    void refuse_before_13(OpId id) { refuse(id); }
    void resize(OpId id) { refuse_if(id, crosses(11)); }
    void top_k(OpId id) { refuse_if(id, crosses(10)); }
    void scan(OpId id) { refuse_if(id, crosses(9)); }
    void dft(OpId id) { refuse_if(id, crosses(20)); }
    void group_norm(OpId id) { refuse_if(id, crosses(21)); }

    Graph& graph_;
    std::int64_t from_;
    std::int64_t to_;
};

}  // namespace

void raise_opset(Model& model, std::int64_t to) {
    const auto from = model.opset();
    if (from >= to) {
        return;
    }
    if (from < oldest || to > newest || !model.functions.empty()) {
        throw Error(Fault::unsupported,
                    fmt::format("the model is of opset {}; this wants {} or newer", from, to),
                    "export it again with a newer opset");
    }
    if (model.ir_version < first_with_constants) {
        auto& graph = model.graph;
        std::vector<TensorId> inputs(graph.inputs().begin(), graph.inputs().end());
        std::erase_if(inputs, [&](TensorId id) { return graph.tensor(id).constant.has_value(); });
        graph.set_inputs(std::move(inputs));
    }
    Raiser(model.graph, from, to).run();
    for (auto& set : model.opsets) {
        if (set.domain.empty() || set.domain == "ai.onnx") {
            set.version = to;
        }
    }
    model.ir_version = std::max(model.ir_version, ir_version_for(to));
}

}  // namespace trocar::quantizing
