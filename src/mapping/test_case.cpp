#include "mapping/test_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "mapping/evaluate.h"
#include "mapping/match.h"
#include "trocar/error.h"
#include "trocar/random.h"
#include "util/elements.h"
#include "util/text.h"

namespace trocar::mapping {

namespace {

constexpr std::size_t most_cases = 256;
constexpr int count_of_rest = 2;  // tensors that stand for "xs..." where they are not told apart

std::size_t alternatives(const TestField& field) {
    return std::max<std::size_t>(
        1, std::max({field.values.size(), field.types.size(), field.tensors.size()}));
}

std::string shown(const TestField& field, std::size_t at, const RuleFile& file) {
    if (!field.types.empty()) {
        return field.types[at];
    }
    if (!field.values.empty()) {
        return fmt::format("{} {}", field.name, evaluate_plain(*field.values[at], file).shown());
    }
    const auto& one = field.tensors[at];
    return one.absent ? fmt::format("no {}", field.name)
                      : fmt::format("{} {}{}", field.name, one.dtype,
                                    one.shape ? evaluate_plain(*one.shape, file).shown() : "");
}

class TestModelMaker {
public:
    TestModelMaker(const RuleFile& file, const Rule& rule, const RuleTest& test,
                   const TestCase& which, std::uint64_t seed)
        : file_(file), rule_(rule), test_(test), which_(which), seed_(seed) {}

    TestModel make() {
        auto& model = made_.model;
        model.dialect = file_.from;
        if (file_.from == "onnx") {
            model.opsets = {{"", 21}};
            model.ir_version = 10;
        }
        model.graph.name = rule_.name;
        for (const auto& wanted : rule_.match) {
            op(wanted);
        }
        // What the rule calls "_" it does not make.
        std::vector<TensorId> wanted;
        for (const auto output : model.graph.op(model.graph.last()).outputs) {
            if (!unnamed_.contains(output)) {
                wanted.push_back(output);
            }
        }
        model.graph.set_outputs(wanted);
        return std::move(made_);
    }

private:
    Graph& graph() { return made_.model.graph; }
    const TestField* field(const std::string& name, std::size_t* pick = nullptr) const {
        for (std::size_t i = 0; i < test_.fields.size(); ++i) {
            if (test_.fields[i].name == name) {
                if (pick != nullptr) {
                    *pick = which_.picks[i];
                }
                return &test_.fields[i];
            }
        }
        return nullptr;
    }
    [[noreturn]] void fail(int line, const std::string& sentence) const {
        throw Error(Fault::input, fmt::format("{}:{}: {}", file_.file, line, sentence));
    }
    // Of the last op the test may say which of its types it is.
    std::string type_of(const MatchedOp& wanted) const {
        std::size_t pick = 0;
        const auto* given = &wanted == &rule_.match.back() ? field("", &pick) : nullptr;
        if (given == nullptr) {
            return wanted.types[0];
        }
        const auto& type = given->types[pick];
        if (std::find(wanted.types.begin(), wanted.types.end(), type) == wanted.types.end()) {
            fail(given->line, fmt::format("the rule does not match '{}'", type));
        }
        return type;
    }

    void op(const MatchedOp& wanted) {
        OpSpec spec;
        set_type(spec, type_of(wanted), file_.from);
        for (const auto& place : wanted.inputs) {
            if (place.rest) {
                rest(place, spec);
            } else {
                spec.inputs.push_back(one(place));
            }
        }
        while (!spec.inputs.empty() && spec.inputs.back() == TensorId::none) {
            spec.inputs.pop_back();
        }
        const auto dtype = spec.inputs.empty() || spec.inputs[0] == TensorId::none
                               ? DType::f32
                               : graph().tensor(spec.inputs[0]).type.dtype;
        for (const auto& place : wanted.outputs) {
            outputs(place, dtype, spec);
        }
        attributes(wanted, spec);
        spec.name = wanted.outputs[0].name;
        graph().append(std::move(spec));
    }
    TensorId one(const MatchedOp::Place& place) {
        if (const auto there = graph().find_tensor(place.name)) {
            return *there;
        }
        std::size_t pick = 0;
        const auto* given = field(place.name, &pick);
        if (given == nullptr && !place.optional) {
            fail(test_.line, fmt::format("the test does not say what '{}' is", place.name));
        }
        return given == nullptr || given->tensors[pick].absent
                   ? TensorId::none
                   : input(*given, given->tensors[pick], place.name);
    }
    // "xs" is two tensors of a kind; "xs_0", "xs_1"… are told one by one.
    void rest(const MatchedOp::Place& place, OpSpec& spec) {
        std::size_t pick = 0;
        if (const auto* given = field(place.name, &pick)) {
            for (int i = 0; i < count_of_rest && !given->tensors[pick].absent; ++i) {
                spec.inputs.push_back(
                    input(*given, given->tensors[pick], fmt::format("{}_{}", place.name, i)));
            }
            return;
        }
        for (int i = 0;; ++i) {
            const auto name = fmt::format("{}_{}", place.name, i);
            const auto* given = field(name, &pick);
            if (given == nullptr) {
                return;
            }
            spec.inputs.push_back(given->tensors[pick].absent
                                      ? TensorId::none
                                      : input(*given, given->tensors[pick], name));
        }
    }

    void outputs(const MatchedOp::Place& place, DType dtype, OpSpec& spec) {
        std::size_t pick = 0;
        const auto* given = field(place.name, &pick);
        std::size_t count = 1;
        if (given != nullptr) {
            dtype = parse(*given, given->tensors[pick]);
            if (place.rest && given->tensors[pick].shape) {
                const auto sizes = evaluate_plain(*given->tensors[pick].shape, file_);
                count = static_cast<std::size_t>(*sizes.items()->at(0).integer());
            }
        }
        for (std::size_t i = 0; i < count; ++i) {
            // Several may be "_".
            const auto name = count > 1           ? fmt::format("{}_{}", place.name, i)
                              : place.name == "_" ? std::string()
                                                  : place.name;
            // What an op of aten makes follows from what it reads; a run tells.
            const bool open = file_.from == "aten" && given == nullptr;
            const auto made = graph().add_tensor(name, open ? Type() : Type::tensor(dtype));
            if (given != nullptr) {
                quantize(*given, made);
            }
            if (place.name == "_") {
                unnamed_.insert(made);
            }
            spec.outputs.push_back(made);
        }
    }
    DType parse(const TestField& given, const TestTensor& tensor) const {
        const auto dtype = parse_dtype(tensor.dtype == "boolean" ? "bool" : tensor.dtype);
        if (!dtype) {
            fail(given.line, fmt::format("there is no element type '{}'", tensor.dtype));
        }
        return *dtype;
    }
    void quantize(const TestField& given, TensorId tensor) {
        if (!given.scale) {
            return;
        }
        Quantization how;
        const auto scale = evaluate_plain(*given.scale, file_);
        how.scales = {static_cast<float>(scale.number() != nullptr ? *scale.number() : 1.0)};
        const auto zero = given.zero_point ? evaluate_plain(*given.zero_point, file_) : RuleValue();
        how.zero_points = {zero.integer() != nullptr ? *zero.integer() : 0};
        graph().tensor_from_file(tensor).quantization =
            std::make_shared<const Quantization>(std::move(how));
    }

    TensorId input(const TestField& given, const TestTensor& tensor, const std::string& name) {
        const auto dtype = parse(given, tensor);
        Shape shape;
        if (tensor.shape) {
            const auto sizes = evaluate_plain(*tensor.shape, file_);
            for (const auto& size : *sizes.items()) {
                shape.push_back(*size.integer());
            }
        }
        Constant value;
        if (tensor.elements) {
            value = constant_of(evaluate_plain(*tensor.elements, file_), dtype);
            if (value.shape() != shape) {
                fail(given.line, fmt::format("'{}' has the shape {}, its elements {}", name,
                                             shape_text(shape), shape_text(value.shape())));
            }
        } else {
            value = drawn(dtype, shape);
        }
        TensorId made = TensorId::none;
        if (given.constant) {
            made = graph().add_constant(name, value);
        } else {
            made = graph().add_input(name, Type::tensor(dtype, shape));
            auto held = Value::tensor(dtype, shape);
            std::copy(value.bytes().begin(), value.bytes().end(), held.mutable_bytes().begin());
            made_.inputs.push_back({name, std::move(held)});
        }
        quantize(given, made);
        return made;
    }
    Constant drawn(DType dtype, const Shape& shape) {
        std::vector<double> numbers(element_count(shape));
        for (auto& number : numbers) {
            const auto bits = philox(seed_, 0, drawn_++)[0];
            const double unit = static_cast<double>(bits) / 4294967296.0;
            number = dtype == DType::boolean ? (unit < 0.5 ? 0 : 1)
                     : is_float(dtype)       ? 4 * unit - 2
                                       : std::floor(unit * 20) - (range(dtype).low < 0 ? 10 : 0);
        }
        return constant_of_numbers(dtype, shape, numbers);
    }

    void attributes(const MatchedOp& wanted, OpSpec& spec) const {
        const bool last = &wanted == &rule_.match.back();
        for (std::size_t i = 0; i < test_.fields.size(); ++i) {
            const auto& given = test_.fields[i];
            const auto at = given.name.find('@');
            if (at == std::string::npos) {
                continue;
            }
            const auto owner = given.name.substr(0, at);
            const bool ours =
                owner.empty() ? last
                              : std::any_of(wanted.outputs.begin(), wanted.outputs.end(),
                                            [&](const auto& place) { return place.name == owner; });
            const auto value = evaluate_plain(*given.values[which_.picks[i]], file_);
            if (ours && !value.is_none()) {
                spec.attributes.push_back({given.name.substr(at + 1), attribute_of(value), {}, {}});
            }
        }
    }

    const RuleFile& file_;
    const Rule& rule_;
    const RuleTest& test_;
    const TestCase& which_;
    std::uint64_t seed_;
    std::uint64_t drawn_ = 0;
    std::set<TensorId> unnamed_;
    TestModel made_;
};

}  // namespace

std::vector<TestCase> test_cases(const RuleFile& file, const RuleTest& test) {
    std::vector<TestCase> all{{}};
    for (const auto& field : test.fields) {
        std::vector<TestCase> more;
        const auto count = alternatives(field);
        for (const auto& one : all) {
            for (std::size_t i = 0; i < count && more.size() < most_cases; ++i) {
                auto next = one;
                next.picks.push_back(i);
                if (count > 1) {
                    next.text +=
                        fmt::format("{}{}", next.text.empty() ? "" : ", ", shown(field, i, file));
                }
                more.push_back(std::move(next));
            }
        }
        all = std::move(more);
    }
    return all;
}

TestModel test_model(const RuleFile& file, const Rule& rule, const RuleTest& test,
                     const TestCase& which, std::uint64_t seed) {
    return TestModelMaker(file, rule, test, which, seed).make();
}

}  // namespace trocar::mapping
