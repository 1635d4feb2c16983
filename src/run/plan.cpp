#include <algorithm>

#include "trocar/session.h"
#include "util/elements.h"

namespace trocar {

namespace {

bool is_standard(const Op& op, std::string_view type) {
    return op.type == type && (op.domain.empty() || op.domain == "ai.onnx");
}

template <class T>
Constant scalar(DType dtype, T value) {
    return Constant::of(dtype, {}, std::vector<T>{value});
}

template <class T>
Constant vector(DType dtype, const std::vector<T>& values) {
    return Constant::of(dtype, {static_cast<std::int64_t>(values.size())}, values);
}

// What a Constant op gives, kept in `made` where the attribute is not a constant already.
const Constant* value_of(const Op& op, std::deque<Constant>& made) {
    for (const auto& attribute : op.attributes) {
        if (!attribute.reference.empty()) {
            return nullptr;
        }
        const auto& value = attribute.value;
        if (const auto* constant = std::get_if<Constant>(&value)) {
            return constant;
        }
        if (const auto* number = std::get_if<float>(&value)) {
            return &made.emplace_back(scalar(DType::f32, *number));
        }
        if (const auto* integer = std::get_if<std::int64_t>(&value)) {
            return &made.emplace_back(scalar(DType::i64, *integer));
        }
        if (const auto* text = std::get_if<std::string>(&value)) {
            return &made.emplace_back(Constant::strings({}, {*text}));
        }
        if (const auto* numbers = std::get_if<std::vector<float>>(&value)) {
            return &made.emplace_back(vector(DType::f32, *numbers));
        }
        if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&value)) {
            return &made.emplace_back(vector(DType::i64, *integers));
        }
        if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
            return &made.emplace_back(
                Constant::strings({static_cast<std::int64_t>(texts->size())}, *texts));
        }
    }
    return nullptr;
}

Constant widened(const Constant& from) {
    return Constant::lazy(DType::f32, from.shape(), [from] {
        std::vector<double> numbers(from.element_count());
        decode(from.dtype(), from.bytes(), 0, numbers);
        std::vector<std::byte> bytes(byte_size(DType::f32, numbers.size()));
        encode(DType::f32, numbers, 0, bytes);
        return bytes;
    });
}

Constant plain(const Constant& from) {
    return Constant::lazy(from.dtype(), from.shape(), [from] {
        const auto bytes = from.bytes();
        return std::vector<std::byte>(bytes.begin(), bytes.end());
    });
}

// Models of TensorFlow Lite store weights in half precision, or sparse, and an op tells so. What it
// gives is known without a run, and kernels that want constants as weights get them.
const Constant* unpacked(const Op& op, const Constant* from, std::deque<Constant>& made) {
    if (from == nullptr || !op.domain.empty() || from->is_sparse()) {
        return nullptr;
    }
    if (op.type == "DEQUANTIZE" && from->dtype() == DType::f16) {
        return &made.emplace_back(widened(*from));
    }
    return op.type == "DENSIFY" && bits(from->dtype()) >= 8 ? &made.emplace_back(plain(*from))
                                                            : nullptr;
}

// An op is run in the earliest segment that its inputs allow: what does not depend on a cut is not
// parted by it. Segments 2k and 2k + 1 belong to the k-th op that is cut at: a cut after it leaves
// it in the first with what comes before, a cut around it puts it alone into the second. So no two
// of them share a segment. What is left empty is dropped.
class Planner {
public:
    Planner(const Model& model, const std::function<CutAt(OpId)>& cut)
        : graph_(model.graph), cut_at_(cut), model_(model) {}

    Plan make() {
        plan_.constants.assign(graph_.tensor_limit(), nullptr);
        for (const auto id : graph_.tensors()) {
            const auto& t = graph_.tensor(id);
            // From version 4 on, a constant that is an input too is a default the caller may
            // override.
            if (t.constant && (!t.is_input || model_.ir_version < 4)) {
                plan_.constants[index(id)] = &*t.constant;
            }
        }
        assign();
        connect();
        return std::move(plan_);
    }

private:
    const Constant* fold(const Op& op) {
        if (op.outputs.size() != 1) {
            return nullptr;
        }
        if (model_.dialect == "tflite" && op.inputs.size() == 1 && op.inputs[0] != TensorId::none) {
            return unpacked(op, plan_.constants[index(op.inputs[0])], plan_.made);
        }
        if (model_.dialect != "onnx") {
            return nullptr;
        }
        if (is_standard(op, "Constant")) {
            return value_of(op, plan_.made);
        }
        if (is_standard(op, "Identity") && op.inputs.size() == 1 &&
            op.inputs[0] != TensorId::none) {
            return plan_.constants[index(op.inputs[0])];
        }
        return nullptr;
    }

    void assign() {
        segment_.assign(graph_.op_limit(), no_segment);
        is_cut_.assign(graph_.op_limit(), false);
        always_.assign(graph_.op_limit(), false);
        std::size_t cuts = 0;
        for (const auto id : graph_.ops()) {
            const auto& op = graph_.op(id);
            const auto wanted = cut_at_ ? cut_at_(id) : CutAt{};
            always_[index(id)] = wanted.always;
            if (const auto* constant = wanted.always ? nullptr : fold(op)) {
                plan_.constants[index(op.outputs[0])] = constant;
                plan_.folded.push_back(id);
                continue;
            }
            std::size_t earliest = 0;
            for (const auto* list : {&op.inputs, &op.captures}) {
                for (const auto input : *list) {
                    if (input == TensorId::none || plan_.constants[index(input)] != nullptr) {
                        continue;
                    }
                    const auto producer = graph_.tensor(input).producer;
                    if (producer != OpId::none) {
                        const auto s = segment_[index(producer)];
                        earliest =
                            std::max(earliest, is_cut_[index(producer)] ? (s / 2 + 1) * 2 : s);
                    }
                }
            }
            if (wanted.after || wanted.around) {
                is_cut_[index(id)] = true;
                earliest = 2 * cuts++ + (wanted.around ? 1 : 0);
            }
            segment_[index(id)] = earliest;
            if (plan_.segments.size() <= earliest) {
                plan_.segments.resize(earliest + 1);
            }
            plan_.segments[earliest].ops.push_back(id);
        }
    }

    void connect() {
        std::vector<std::size_t> last_reader(graph_.tensor_limit(), no_segment);
        std::vector<std::size_t> seen(graph_.tensor_limit(), no_segment);
        for (std::size_t s = 0; s < plan_.segments.size(); ++s) {
            auto& segment = plan_.segments[s];
            for (const auto id : segment.ops) {
                const auto& op = graph_.op(id);
                for (const auto* list : {&op.inputs, &op.captures}) {
                    for (const auto input : *list) {
                        if (input == TensorId::none || plan_.constants[index(input)] != nullptr) {
                            continue;
                        }
                        const auto producer = graph_.tensor(input).producer;
                        if (producer != OpId::none && segment_[index(producer)] == s) {
                            continue;
                        }
                        last_reader[index(input)] = s;
                        if (seen[index(input)] != s) {
                            seen[index(input)] = s;
                            segment.inputs.push_back(input);
                        }
                    }
                }
            }
        }
        for (std::size_t s = 0; s < plan_.segments.size(); ++s) {
            give_outputs(plan_.segments[s], last_reader);
            for (const auto input : plan_.segments[s].inputs) {
                if (last_reader[index(input)] == s && !graph_.tensor(input).is_output) {
                    plan_.segments[s].dead.push_back(input);
                }
            }
        }
        std::erase_if(plan_.segments,
                      [](const Segment& segment) { return segment.outputs.empty(); });
    }

    void give_outputs(Segment& segment, const std::vector<std::size_t>& last_reader) {
        for (const auto id : segment.ops) {
            for (const auto output : graph_.op(id).outputs) {
                if (output == TensorId::none) {
                    continue;
                }
                const bool read =
                    last_reader[index(output)] != no_segment || graph_.tensor(output).is_output;
                if (read || always_[index(id)]) {
                    segment.outputs.push_back(output);
                }
                if (!read && always_[index(id)]) {
                    segment.dead.push_back(output);
                }
            }
        }
        if (!segment.outputs.empty()) {
            return;
        }
        // Nobody reads what this segment computes. It is run all the same when it was cut out, so
        // that it can be seen.
        for (const auto id : segment.ops) {
            if (is_cut_[index(id)]) {
                for (const auto output : graph_.op(id).outputs) {
                    if (output != TensorId::none) {
                        segment.outputs.push_back(output);
                        segment.dead.push_back(output);
                    }
                }
            }
        }
    }

    static constexpr std::size_t no_segment = static_cast<std::size_t>(-1);
    const Graph& graph_;
    const std::function<CutAt(OpId)>& cut_at_;
    const Model& model_;
    Plan plan_;
    std::vector<std::size_t> segment_;
    std::vector<bool> is_cut_;
    std::vector<bool> always_;
};

}  // namespace

Plan make_plan(const Model& model, const std::function<CutAt(OpId)>& cut) {
    return Planner(model, cut).make();
}

}  // namespace trocar
