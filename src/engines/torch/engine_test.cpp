#include "trocar/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trocar/error.h"
#include "trocar/session.h"

namespace trocar {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Integers = std::vector<std::int64_t>;
using Texts = std::vector<std::string>;

EngineOptions torch() {
    EngineOptions options;
    options.name = "torch";
    options.threads = 1;
    return options;
}

bool is_here() {
    for (const auto* kind : engine_kinds()) {
        if (std::string(kind->name) == "torch") {
            return kind->find(torch()).at(0).available;
        }
    }
    return false;
}

template <class F>
std::string failure(F work) {
    try {
        work();
    } catch (const Error& error) {
        return error.what();
    }
    return "none";
}

TEST(TorchEngineAlone, SaysWhyItIsNotHere) {
    if (is_here()) {
        GTEST_SKIP() << "it is here";
    }
    EXPECT_THAT(failure([] { open_engine(torch()); }), HasSubstr("no bridge to PyTorch"));
}

class TorchEngine : public testing::Test {
protected:
    TorchEngine() { model_.dialect = "aten"; }
    void SetUp() override {
        if (!is_here()) {
            GTEST_SKIP() << "Trocar was built without torch";
        }
    }

    static Attribute attribute(const std::string& name, Attribute::Value value) {
        return {name, std::move(value), {}, {}};
    }
    TensorId op(const std::string& type, std::vector<TensorId> inputs, Texts arguments,
                std::vector<Attribute> attributes = {}) {
        OpSpec spec;
        spec.type = type.substr(0, type.find('.'));
        spec.overload = type.find('.') == std::string::npos ? "" : type.substr(type.find('.') + 1);
        spec.name = spec.type;
        spec.inputs = std::move(inputs);
        spec.outputs = {model_.graph.add_tensor("", {})};
        spec.attributes = std::move(attributes);
        spec.attributes.push_back(attribute("inputs", std::move(arguments)));
        const auto made = spec.outputs[0];
        model_.graph.append(std::move(spec));
        return made;
    }
    template <class T>
    TensorId constant(DType dtype, const Shape& shape, const std::vector<T>& elements) {
        return model_.graph.add_constant(model_.graph.fresh_name("c"),
                                         Constant::of(dtype, shape, elements));
    }
    Value run(TensorId output, const Value& x) {
        model_.graph.set_outputs({output});
        Session session(model_, open_engine(torch()));
        return session.run({{"x", x}}).at(0).value;
    }
    static Value floats(const std::vector<float>& all) {
        return Value::copy(DType::f32, {2, 2}, std::as_bytes(std::span(all)));
    }

    Model model_;
    TensorId x_ = model_.graph.add_input("x", Type::tensor(DType::f32, Shape{2, 2}));
};

TEST_F(TorchEngine, TakesArgumentsOfAllKinds) {
    const auto sum =
        op("add.Tensor", {x_, x_}, {"self", "other"}, {attribute("alpha", std::int64_t{3})});
    const auto turned = op("permute", {sum}, {"self"}, {attribute("dims", Integers{1, 0})});
    const auto cut = op("clamp", {turned}, {"self"}, {attribute("max", 9.5F)});
    const auto joined =
        op("cat", {cut, x_}, {"tensors[0]", "tensors[1]"}, {attribute("dim", std::int64_t{1})});
    const auto made =
        run(op("to.dtype", {joined}, {"self"}, {attribute("dtype", std::string("float64"))}),
            floats({1, 2, 3, 4}));
    EXPECT_EQ(made.dtype(), DType::f64);
    EXPECT_EQ(made.shape(), (Shape{2, 4}));
    EXPECT_THAT(made.as<double>(), ElementsAre(4, 9.5, 1, 2, 8, 9.5, 3, 4));
}

TEST_F(TorchEngine, SizesAreComputed) {
    const auto n = op("sym_size.int", {x_}, {"self"}, {attribute("dim", std::int64_t{0})});
    OpSpec twice;
    twice.type = "mul";
    twice.domain = "_operator";
    twice.inputs = {n};
    twice.outputs = {model_.graph.add_tensor("m", {})};
    twice.attributes = {attribute("inputs", Texts{"a"}), attribute("b", std::int64_t{2})};
    const auto m = twice.outputs[0];
    model_.graph.append(std::move(twice));
    const auto made =
        run(op("view", {x_, m}, {"self", "size[1]"}, {attribute("size", Texts{"1", "*"})}),
            floats({1, 2, 3, 4}));
    EXPECT_EQ(made.shape(), (Shape{1, 4}));
}

// Python's own functions of a size and a number that the file has, which is either operand.
TEST_F(TorchEngine, NumbersAreTakenInTheOrderOfTheOperands) {
    const auto n = op("sym_size.int", {x_}, {"self"}, {attribute("dim", std::int64_t{0})});
    const auto python = [&](const std::string& type, const char* computed, const char* told,
                            std::int64_t number) {
        OpSpec spec;
        spec.type = type;
        spec.domain = "_operator";
        spec.inputs = {n};
        spec.outputs = {model_.graph.add_tensor(model_.graph.fresh_name(type), {})};
        spec.attributes = {attribute("inputs", Texts{computed}), attribute(told, number)};
        const auto made = spec.outputs[0];
        model_.graph.append(std::move(spec));
        return made;
    };
    const auto x = floats({1, 2, 3, 4});
    EXPECT_THAT(run(python("sub", "a", "b", 5), x).as<std::int64_t>(), ElementsAre(-3));
    EXPECT_THAT(run(python("sub", "b", "a", 5), x).as<std::int64_t>(), ElementsAre(3));
    EXPECT_THAT(run(python("floordiv", "b", "a", -5), x).as<std::int64_t>(), ElementsAre(-3));
    EXPECT_THAT(run(python("mod", "a", "b", -5), x).as<std::int64_t>(), ElementsAre(-3));
    EXPECT_THAT(run(python("truediv", "b", "a", 5), x).as<double>(), ElementsAre(2.5));
    const auto less = run(python("lt", "a", "b", 5), x);
    EXPECT_EQ(less.dtype(), DType::boolean);
    EXPECT_THAT(less.as<bool>(), ElementsAre(true));
}

TEST_F(TorchEngine, WhatIsChangedInPlaceIsACopy) {
    const auto given = floats({-1, 2, -3, 4});
    const auto made = run(op("relu_", {x_}, {"self"}), given);
    EXPECT_THAT(made.as<float>(), ElementsAre(0, 2, 0, 4));
    EXPECT_THAT(given.as<float>(), ElementsAre(-1, 2, -3, 4));
}

TEST_F(TorchEngine, WithoutNamesInputsAreTheArgumentsOfTheSchemaInOrder) {
    const auto add = [&](const std::string& type, std::vector<TensorId> inputs,
                         std::vector<Attribute> attributes = {}) {
        OpSpec spec;
        spec.type = type;
        spec.overload = "default";
        spec.inputs = std::move(inputs);
        spec.outputs = {model_.graph.add_tensor("", {})};
        spec.attributes = std::move(attributes);
        const auto made = spec.outputs[0];
        model_.graph.append(std::move(spec));
        return made;
    };
    const auto joined = add("cat", {x_, x_}, {attribute("dim", std::int64_t{1})});
    const auto ones = constant(DType::f32, {2}, std::vector<float>{1, 2});
    const auto made = run(add("linear", {x_, x_, ones}), floats({1, 2, 3, 4}));
    EXPECT_THAT(made.as<float>(), ElementsAre(6, 13, 12, 27));
    EXPECT_EQ(run(joined, floats({1, 2, 3, 4})).shape(), (Shape{2, 4}));
}

TEST_F(TorchEngine, ANumberGivesWayToTheTensorBesideIt) {
    const auto whole = op("to.dtype", {x_}, {"self"}, {attribute("dtype", std::string("int64"))});
    const auto made =
        run(op("mul.Tensor", {whole}, {"self"}, {attribute("other", 0.5F)}), floats({1, 2, 3, 4}));
    EXPECT_EQ(made.dtype(), DType::f32);
    EXPECT_THAT(made.as<float>(), ElementsAre(0.5, 1, 1.5, 2));
}

// A body that makes `type` of its inputs and what it captures.
std::shared_ptr<Graph> body(const std::string& type, const std::vector<std::string>& inputs,
                            const std::vector<std::string>& captured, Texts arguments,
                            bool counts = false) {
    auto made = std::make_shared<Graph>();
    std::vector<TensorId> read;
    if (counts) {
        made->add_input("round", Type::tensor(DType::i64, Shape{}));
    }
    for (const auto& name : inputs) {
        read.push_back(made->add_input(name, Type()));
    }
    for (const auto& name : captured) {
        const auto there = made->find_tensor(name);
        read.push_back(there ? *there : made->add_capture(name));
    }
    OpSpec spec;
    spec.type = type;
    spec.overload = type == "relu" ? "default" : "Tensor";
    spec.inputs = read;
    spec.outputs = {made->add_tensor("made", {})};
    spec.attributes = {{"inputs", std::move(arguments), {}, {}}};
    const auto output = spec.outputs[0];
    made->append(std::move(spec));
    std::vector<TensorId> outputs{output};
    if (counts) {
        const std::vector<std::uint8_t> yes{1};
        outputs.insert(outputs.begin(),
                       made->add_constant("goes_on", Constant::of(DType::boolean, {}, yes)));
    }
    made->set_outputs(outputs);
    return made;
}

TEST_F(TorchEngine, GoesIntoTheBodyThatTheConditionChooses) {
    const auto sum = op("sum", {x_}, {"self"});
    const auto positive = op("gt.Scalar", {sum}, {"self"}, {attribute("other", std::int64_t{0})});
    OpSpec choice;
    choice.domain = "prim";
    choice.type = "If";
    choice.inputs = {positive};
    choice.outputs = {model_.graph.add_tensor("chosen", {})};
    choice.attributes = {attribute("inputs", Texts{"cond"}),
                         attribute("then_branch", body("relu", {}, {"x"}, {"self"})),
                         attribute("else_branch", body("add", {}, {"x", "x"}, {"self", "other"}))};
    const auto chosen = choice.outputs[0];
    model_.graph.append(std::move(choice));
    EXPECT_THAT(run(chosen, floats({1, 2, 3, -4})).as<float>(), ElementsAre(1, 2, 3, 0));
    EXPECT_THAT(run(chosen, floats({1, 2, 3, -8})).as<float>(), ElementsAre(2, 4, 6, -16));
}

TEST_F(TorchEngine, LoopsCarryWhatTheirBodyMakes) {
    const auto rounds = constant(DType::i64, {}, std::vector<std::int64_t>{3});
    const auto begin = constant(DType::boolean, {}, std::vector<std::uint8_t>{1});
    OpSpec loop;
    loop.domain = "prim";
    loop.type = "Loop";
    loop.inputs = {rounds, begin, x_};
    loop.outputs = {model_.graph.add_tensor("carried", {})};
    loop.attributes = {attribute("inputs", Texts{"max_trip_count", "cond", "carried[0]"}),
                       attribute("body", body("add", {"carried"}, {"x"}, {"self", "other"}, true))};
    const auto carried = loop.outputs[0];
    model_.graph.append(std::move(loop));
    EXPECT_THAT(run(carried, floats({1, 2, 3, -4})).as<float>(), ElementsAre(4, 8, 12, -16));
}

TEST_F(TorchEngine, NumbersAndListsOfTorchScriptAreComputed) {
    OpSpec list;
    list.domain = "prim";
    list.type = "ListConstruct";
    list.inputs = {op("size.int", {x_}, {"self"}, {attribute("dim", std::int64_t{0})}),
                   op("dim", {x_}, {"self"})};
    list.outputs = {model_.graph.add_tensor("list", Type::tensor(DType::i64, Shape{2}))};
    const auto made = list.outputs[0];
    model_.graph.append(std::move(list));
    const auto item = op("__getitem__.t", {made}, {"list"}, {attribute("idx", std::int64_t{-1})});
    const auto given = floats({1, 2, 3, 4});
    EXPECT_THAT(run(item, given).as<std::int64_t>(), ElementsAre(2));
    EXPECT_THAT(run(op("mul.int", {item}, {"a"}, {attribute("b", std::int64_t{-7})}), given)
                    .as<std::int64_t>(),
                ElementsAre(-14));
}

TEST_F(TorchEngine, SaysWhatItCannotDo) {
    const auto none = op("no_such_op", {x_}, {"self"});
    EXPECT_THAT(failure([&] {
                    run(none, floats({1, 2, 3, 4}));
                }),
                HasSubstr("PyTorch has no op aten::no_such_op"));
}

TEST_F(TorchEngine, ItsOwnErrorsAreSaidInOneLine) {
    const auto wrong = op("view", {x_}, {"self"}, {attribute("size", Integers{3})});
    const auto said = failure([&] { run(wrong, floats({1, 2, 3, 4})); });
    EXPECT_THAT(said, HasSubstr("PyTorch could not run view 'view': shape '[3]' is invalid"));
    EXPECT_EQ(said.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace trocar
