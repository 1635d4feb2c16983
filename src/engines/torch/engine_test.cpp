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

TEST_F(TorchEngine, WhatIsChangedInPlaceIsACopy) {
    const auto given = floats({-1, 2, -3, 4});
    const auto made = run(op("relu_", {x_}, {"self"}), given);
    EXPECT_THAT(made.as<float>(), ElementsAre(0, 2, 0, 4));
    EXPECT_THAT(given.as<float>(), ElementsAre(-1, 2, -3, 4));
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
