#include "graph/op_meaning.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

namespace trocar {

namespace {

// A list stands for all its elements being that number.
struct Default {
    std::string_view attribute;
    std::variant<std::int64_t, float, std::string_view> value;
};
using Defaults = std::vector<Default>;

const std::map<std::string_view, Defaults>& defaults() {
    static const auto made = [] {
        std::map<std::string_view, Defaults> all;
        const auto add = [&](std::initializer_list<std::string_view> types, const Defaults& some) {
            for (const auto type : types) {
                all[type].insert(all[type].end(), some.begin(), some.end());
            }
        };
        add({"Conv", "ConvTranspose", "MaxPool", "AveragePool", "LpPool"},
            {{"strides", std::int64_t{1}},
             {"dilations", std::int64_t{1}},
             {"pads", std::int64_t{0}},
             {"auto_pad", std::string_view("NOTSET")}});
        add({"Conv", std::string_view("ConvTranspose")},
            {{"group", std::int64_t{1}}, {"output_padding", std::int64_t{0}}});
        add({"MaxPool", std::string_view("AveragePool")}, {{"ceil_mode", std::int64_t{0}},
                                                           {"storage_order", std::int64_t{0}},
                                                           {"count_include_pad", std::int64_t{0}}});
        add({"Gemm"}, {{"alpha", 1.0F},
                       {"beta", 1.0F},
                       {"transA", std::int64_t{0}},
                       {"transB", std::int64_t{0}}});
        add({"Flatten"}, {{"axis", std::int64_t{1}}});
        add({"Gather", "Split", "GatherElements"}, {{"axis", std::int64_t{0}}});
        add({"BatchNormalization"},
            {{"epsilon", 1e-5F}, {"momentum", 0.9F}, {"training_mode", std::int64_t{0}}});
        add({"InstanceNormalization"}, {{"epsilon", 1e-5F}});
        add({"LayerNormalization"},
            {{"axis", std::int64_t{-1}}, {"epsilon", 1e-5F}, {"stash_type", std::int64_t{1}}});
        add({"LeakyRelu"}, {{"alpha", 0.01F}});
        add({"Elu", std::string_view("Celu")}, {{"alpha", 1.0F}});
        add({"HardSigmoid"}, {{"alpha", 0.2F}, {"beta", 0.5F}});
        add({"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1",
             "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"},
            {{"keepdims", std::int64_t{1}}, {"noop_with_empty_axes", std::int64_t{0}}});
        add({"ArgMax", std::string_view("ArgMin")}, {{"axis", std::int64_t{0}},
                                                     {"keepdims", std::int64_t{1}},
                                                     {"select_last_index", std::int64_t{0}}});
        add({"TopK"}, {{"axis", std::int64_t{-1}},
                       {"largest", std::int64_t{1}},
                       {"sorted", std::int64_t{1}}});
        add({"Reshape"}, {{"allowzero", std::int64_t{0}}});
        add({"Cast"}, {{"saturate", std::int64_t{1}}});
        add({"QuantizeLinear", std::string_view("DequantizeLinear")},
            {{"axis", std::int64_t{1}},
             {"block_size", std::int64_t{0}},
             {"saturate", std::int64_t{1}}});
        add({"LSTM", "GRU", "RNN"},
            {{"direction", std::string_view("forward")}, {"layout", std::int64_t{0}}});
        add({"DepthToSpace"}, {{"mode", std::string_view("DCR")}});
        add({"CumSum"}, {{"exclusive", std::int64_t{0}}, {"reverse", std::int64_t{0}}});
        return all;
    }();
    return made;
}

struct IsDefault {
    const Attribute::Value& given;

    bool operator()(std::int64_t wanted) const {
        if (const auto* list = std::get_if<std::vector<std::int64_t>>(&given)) {
            return std::all_of(list->begin(), list->end(),
                               [&](std::int64_t one) { return one == wanted; });
        }
        const auto* one = std::get_if<std::int64_t>(&given);
        return one != nullptr && *one == wanted;
    }
    bool operator()(float wanted) const {
        const auto* one = std::get_if<float>(&given);
        return one != nullptr && *one == wanted;
    }
    bool operator()(std::string_view wanted) const {
        const auto* one = std::get_if<std::string>(&given);
        return one != nullptr && *one == wanted;
    }
};

}  // namespace

bool commutes(const Op& op) {
    static const std::set<std::string_view> types{
        "Add",        "AddV2",     "Mul",        "And",         "Or",
        "Xor",        "Equal",     "Max",        "Min",         "Sum",
        "Maximum",    "Minimum",   "ADD",        "MUL",         "MAXIMUM",
        "MINIMUM",    "EQUAL",     "NOT_EQUAL",  "LOGICAL_AND", "LOGICAL_OR",
        "BitwiseAnd", "BitwiseOr", "BitwiseXor", "LogicalAnd",  "LogicalOr"};
    return (op.domain.empty() || op.domain == "ai.onnx") && op.inputs.size() == 2 &&
           types.contains(op.type);
}

bool says_default(const Op& op, const Attribute& attribute) {
    if ((!op.domain.empty() && op.domain != "ai.onnx") || !attribute.reference.empty()) {
        return false;
    }
    const auto known = defaults().find(op.type);
    return known != defaults().end() &&
           std::any_of(known->second.begin(), known->second.end(), [&](const Default& one) {
               return one.attribute == attribute.name &&
                      std::visit(IsDefault{attribute.value}, one.value);
           });
}

}  // namespace trocar
