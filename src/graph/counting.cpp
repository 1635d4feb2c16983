#include "trocar/counting.h"

#include <fmt/format.h>

#include <limits>
#include <unordered_map>

#include "graph/counting_rules.h"
#include "trocar/error.h"

namespace trocar {
namespace counting {
namespace {

constexpr std::string_view onnx_movement[] = {
    "BitCast",
    "Bernoulli",
    "Cast",
    "CastLike",
    "CenterCropPad",
    "Compress",
    "Concat",
    "ConcatFromSequence",
    "Constant",
    "ConstantOfShape",
    "DepthToSpace",
    "Dropout",
    "Expand",
    "EyeLike",
    "Flatten",
    "Gather",
    "GatherElements",
    "GatherND",
    "Identity",
    "ImageDecoder",
    "MaxUnpool",
    "NonZero",
    "OneHot",
    "Optional",
    "OptionalGetElement",
    "OptionalHasElement",
    "Pad",
    "Range",
    "RegexFullMatch",
    "Reshape",
    "ReverseSequence",
    "SequenceAt",
    "SequenceConstruct",
    "SequenceEmpty",
    "SequenceErase",
    "SequenceInsert",
    "SequenceLength",
    "Shape",
    "Size",
    "Slice",
    "SpaceToDepth",
    "Split",
    "SplitToSequence",
    "Squeeze",
    "StringConcat",
    "StringNormalizer",
    "StringSplit",
    "TensorScatter",
    "TfIdfVectorizer",
    "Tile",
    "Transpose",
    "Trilu",
    "Unsqueeze",
    "Where",
};
constexpr std::string_view microsoft_movement[] = {
    "CropAndResize", "ExpandDims",     "GatherND",  "Pad",   "QLinearConcat", "QLinearWhere",
    "RemovePadding", "RestorePadding", "Tokenizer", "Trilu", "Unique",
};
constexpr std::string_view ml_movement[] = {
    "ArrayFeatureExtractor", "CastMap",      "CategoryMapper", "DictVectorizer",
    "FeatureVectorizer",     "LabelEncoder", "OneHotEncoder",  "ZipMap",
};

constexpr Uncountable onnx_uncountable[] = {
    {"MaxRoiPool", "the work depends on the regions"},
    {"MelWeightMatrix", "there is no rule for making filter banks"},
    {"Multinomial", "drawing random numbers has no agreed count"},
    {"NonMaxSuppression", "the work depends on the boxes"},
    {"RandomNormal", "drawing random numbers has no agreed count"},
    {"RandomNormalLike", "drawing random numbers has no agreed count"},
    {"RandomUniform", "drawing random numbers has no agreed count"},
    {"RandomUniformLike", "drawing random numbers has no agreed count"},
    {"Unique", "the work depends on the values"},
};

// What count() knows of one op type.
struct Entry {
    Rule rule = nullptr;
    const ElementCost* cost = nullptr;
    bool moves = false;
    const char* why = nullptr;
};
using Table = std::unordered_map<std::string_view, Entry>;

// ONNX's rules stand in several files, by theme.
Table table_of(std::string_view domain) {
    Table table;
    for (auto rules : {contraction_rules(domain), attention_rules(domain), element_rules(domain)}) {
        for (const NamedRule& r : rules) {
            table[r.type].rule = r.rule;
        }
    }
    for (const ElementCost& c : element_costs(domain)) {
        table[c.type].cost = &c;
    }
    for (std::string_view type : movement_ops(domain)) {
        table[type].moves = true;
    }
    for (const Uncountable& u : uncountable_ops(domain)) {
        table[u.type].why = u.why;
    }
    return table;
}

Table table_of(const RuleSet& set) {
    Table table;
    for (const NamedRule& r : set.rules) {
        table[r.type].rule = r.rule;
    }
    for (const ElementCost& c : set.costs) {
        table[c.type].cost = &c;
    }
    for (std::string_view type : set.movement) {
        table[type].moves = true;
    }
    for (const Uncountable& u : set.uncountable) {
        table[u.type].why = u.why;
    }
    return table;
}

const Entry* find_in(const Table& table, std::string_view type) {
    auto found = table.find(type);
    return found == table.end() ? nullptr : &found->second;
}

const Entry* find_aten(const Op& op) {
    static const Table own = table_of(aten_rules(""));
    static const Table quantized = table_of(aten_rules("quantized_decomposed"));
    static const Table python = table_of(aten_rules("_operator"));
    if (op.domain == "quantized_decomposed") {
        return find_in(quantized, op.type.substr(0, op.type.find('.')));
    }
    if (op.domain == "_operator" || op.domain == "torch" || op.domain == "math") {
        return find_in(python, op.type);
    }
    if (!op.domain.empty()) {
        return nullptr;
    }
    const Entry* entry = find_in(own, op.type);
    if (entry == nullptr && op.type.ends_with('_')) {  // in place
        entry = find_in(own, std::string_view(op.type).substr(0, op.type.size() - 1));
    }
    return entry;
}

const Entry* find_entry(const OpFacts& facts) {
    const Op& op = *facts.op;
    if (facts.dialect == "aten") {
        return find_aten(op);
    }
    if (facts.dialect == "tflite") {
        static const Table tflite = table_of(tflite_rules());
        return op.domain.empty() ? find_in(tflite, op.type) : nullptr;
    }
    if (facts.dialect == "tf") {
        static const Table tf = table_of(tf_rules());
        return find_in(tf, op.type);
    }
    if (facts.dialect == "mxnet") {
        static const Table mxnet = table_of(mxnet_rules());
        return find_in(mxnet, op.type);
    }
    if (facts.dialect != "onnx") {
        return nullptr;
    }
    static const Table onnx = table_of("");
    static const Table microsoft = table_of("com.microsoft");
    static const Table ml = table_of("ai.onnx.ml");
    const Table* table = nullptr;
    if (op.domain.empty() || op.domain == "ai.onnx") {
        table = &onnx;
    } else if (op.domain == "com.microsoft") {
        table = &microsoft;
    } else if (op.domain == "ai.onnx.ml") {
        table = &ml;
    } else {
        return nullptr;
    }
    return find_in(*table, op.type);
}

Work apply(const Entry& entry, const OpFacts& facts) {
    if (entry.rule != nullptr) {
        return entry.rule(facts);
    }
    const Shape& of = entry.cost->of == ElementCost::Of::input ? input(facts, 0) : output(facts, 0);
    return {0, elements(of) * entry.cost->cost};
}

}  // namespace

Number::Number(std::int64_t value) : value_(value) {
    if (value < 0) {
        misfit("a dimension is negative");
    }
}

Number operator*(Number a, Number b) {
    std::int64_t result = 0;
    if (__builtin_mul_overflow(a.value_, b.value_, &result)) {
        misfit("the count does not fit 63 bits");
    }
    return result;
}

Number operator+(Number a, Number b) {
    std::int64_t result = 0;
    if (__builtin_add_overflow(a.value_, b.value_, &result)) {
        misfit("the count does not fit 63 bits");
    }
    return result;
}

void misfit(const char* sentence) {
    throw Error(Fault::input, sentence);
}

namespace {
const Shape& shape_at(const std::vector<TensorFacts>& tensors, std::size_t slot, const char* what) {
    if (slot >= tensors.size() || !tensors[slot].present) {
        throw Error(Fault::input, fmt::format("{} {} is missing", what, slot));
    }
    if (!tensors[slot].shape) {
        throw Error(Fault::input, fmt::format("the shape of {} {} is unknown", what, slot));
    }
    return *tensors[slot].shape;
}
}  // namespace

const Shape& input(const OpFacts& facts, std::size_t slot) {
    return shape_at(facts.inputs, slot, "input");
}
const Shape& output(const OpFacts& facts, std::size_t slot) {
    return shape_at(facts.outputs, slot, "output");
}
bool has_input(const OpFacts& facts, std::size_t slot) {
    return slot < facts.inputs.size() && facts.inputs[slot].present;
}

Number product(std::span<const std::int64_t> dims) {
    Number n = 1;
    for (std::int64_t d : dims) {
        n *= d;
    }
    return n;
}
Number elements(const Shape& shape) {
    return product(shape);
}

Number dim(const Shape& shape, std::size_t axis) {
    if (axis >= shape.size()) {
        misfit("an input or output has too few dimensions");
    }
    return shape[axis];
}
Number last(const Shape& shape) {
    return dim(shape, shape.size() - 1);
}

std::span<const std::string_view> movement_ops(std::string_view domain) {
    if (domain.empty()) {
        return onnx_movement;
    }
    return domain == "com.microsoft" ? std::span<const std::string_view>(microsoft_movement)
           : domain == "ai.onnx.ml"  ? std::span<const std::string_view>(ml_movement)
                                     : std::span<const std::string_view>();
}

std::span<const Uncountable> uncountable_ops(std::string_view domain) {
    return domain.empty() ? std::span<const Uncountable>(onnx_uncountable)
                          : std::span<const Uncountable>();
}

}  // namespace counting

std::uint64_t OpCount::flops() const {
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    std::uint64_t result = 0;
    if (__builtin_mul_overflow(macs, std::uint64_t{2}, &result) ||
        __builtin_add_overflow(result, other_flops, &result) || result > most) {
        return most;
    }
    return result;
}

OpCount count(const OpFacts& facts) {
    OpCount result;
    const Op& op = *facts.op;
    if (!op.subgraphs().empty()) {
        result.why = "its subgraphs are to be counted";
        return result;
    }
    const counting::Entry* entry = counting::find_entry(facts);
    if (entry == nullptr) {
        result.why =
            fmt::format("no rule for {}{}{}", op.domain, op.domain.empty() ? "" : ":", op.type);
        return result;
    }
    if (entry->moves) {
        result.counted = Counted::movement;
        return result;
    }
    if (entry->why != nullptr) {
        result.why = entry->why;
        return result;
    }
    try {
        counting::Work work = counting::apply(*entry, facts);
        result.macs = static_cast<std::uint64_t>(work.macs.value());
        result.other_flops = static_cast<std::uint64_t>(work.other.value());
        // Resize to the nearest neighbour, Scatter without a sum and the like only move data.
        bool idle = result.macs == 0 && result.other_flops == 0;
        bool writes = !facts.outputs.empty() && facts.outputs[0].shape &&
                      counting::elements(*facts.outputs[0].shape).value() > 0;
        result.counted = idle && writes ? Counted::movement : Counted::arithmetic;
    } catch (const Error& e) {
        result.why = e.what();
    }
    return result;
}

const char* counting_convention() {
    return "1 MAC is one multiply-accumulate of a convolution, matrix product, recurrent layer or "
           "attention (biases are not MACs, padding counts as data). FLOPs are 2 × MACs plus the "
           "other "
           "arithmetic, one per elementary operation and element, whatever the dtype";
}

}  // namespace trocar
