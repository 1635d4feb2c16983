#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>

#include "inject/program_cache.h"
#include "inject/test_campaigns.h"
#include "trocar/error.h"
#include "trocar/inject.h"
#include "trocar/inputs.h"

namespace trocar {
namespace {

using testing::engine;

using ::testing::HasSubstr;

Constant drawn(const Shape& shape, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<float> numbers(element_count(shape));
    for (auto& number : numbers) {
        number = static_cast<float>(random() % 2001) / 1000.0F - 1.0F;
    }
    return Constant::copy(DType::f32, shape, std::as_bytes(std::span(numbers)));
}

Model blank_model() {
    Model model;
    model.format = model.dialect = "onnx";
    model.ir_version = 8;
    model.opsets = {{"", 17}};
    return model;
}

// Inputs of numbers from -2 to 2. `model` must outlive them.
CampaignInputs drawn_inputs(const Model& model, std::uint64_t count) {
    return {count, [&model](std::uint64_t i) {
                InputSpec spec;
                spec.fill = "random(-2,2)";
                spec.seed = i;
                return CampaignInput{make_inputs(model, spec).values, std::nullopt, ""};
            }};
}

// tokens → embedding → Relu → product with a matrix (and an addend) → scores.
Model decoder(const Shape& addend) {
    auto model = blank_model();
    auto& g = model.graph;
    g.name = "decoder";
    const auto tokens = g.add_input("tokens", Type::tensor(DType::i64, Shape{4}));
    const auto table = g.add_constant("table", drawn({12, 8}, 1));
    const auto matrix = g.add_constant("matrix", drawn({8, 40}, 2));
    const auto row = g.add_tensor("row", Type::tensor(DType::f32));
    const auto relu = g.add_tensor("relu", Type::tensor(DType::f32));
    const auto scores = g.add_tensor("scores", Type::tensor(DType::f32));
    g.append({.type = "Gather", .name = "emb", .inputs = {table, tokens}, .outputs = {row}});
    g.append({.type = "Relu", .name = "relu", .inputs = {row}, .outputs = {relu}});
    std::vector<TensorId> read = {relu, matrix};
    if (!addend.empty()) {
        read.push_back(g.add_constant("addend", drawn(addend, 3)));
    }
    g.append({.type = addend.empty() ? "MatMul" : "Gemm",
              .name = "lm",
              .inputs = read,
              .outputs = {scores}});
    g.set_outputs({scores});
    return model;
}

// Input i holds tokens i, i + 1, i + 2, i + 3: some inputs use a row of the table, others do not.
CampaignInputs tokens(std::uint64_t count) {
    return {count, [](std::uint64_t i) {
                std::vector<std::int64_t> numbers;
                for (std::int64_t k = 0; k < 4; ++k) {
                    numbers.push_back((static_cast<std::int64_t>(i) + k) % 12);
                }
                return CampaignInput{
                    {{"tokens", Value::copy(DType::i64, {4}, std::as_bytes(std::span(numbers)))}},
                    std::nullopt,
                    ""};
            }};
}

class Rows : public CampaignObserver {
public:
    void results(const std::vector<TrialResult>& some, const std::vector<LayerEffect>&) override {
        for (const auto& result : some) {
            found.emplace(std::pair(result.trial, result.input), result);
        }
    }
    bool is_done(std::uint64_t, std::uint64_t) override { return false; }
    void progress(std::uint64_t, std::uint64_t) override {}
    std::map<std::pair<std::uint64_t, std::uint64_t>, TrialResult> found;
};

CampaignOptions listed(std::initializer_list<const char*> faults) {
    CampaignOptions options;
    options.view = View::source;
    for (const auto* text : faults) {
        options.sampling.list.push_back(parse_faults(text));
    }
    options.audit = 1;
    return options;
}

// Throws where an audit differs.
auto run(const Model& model, const CampaignInputs& inputs, const CampaignOptions& options) {
    Rows rows;
    Campaign(model, engine(), inputs, options).run(rows);
    return rows.found;
}

// The product is clean for inputs that do not use row 11, and dirty for the others: its program
// with some columns must not be taken for the one with all of them, nor the other way around.
TEST(SeveralFaults, InATableAndInAProductAreExactOnEveryInput) {
    for (const auto& addend : {Shape{}, Shape{40}, Shape{1, 40}}) {
        for (const std::size_t batch : {1, 32}) {
            auto options = listed({"table>emb [11,2] set 2 + matrix>lm [5,12] flip 20",
                                   "table>emb [3,2] set 2 + matrix>lm [5,13] flip 20",
                                   "matrix>lm [5,12] flip 20 + matrix>lm [6,12] flip 9"});
            options.accelerate.batch = batch;
            run(decoder(addend), tokens(12), options);
        }
    }
}

// One lane that changes matrix and addend, and two lanes that change one of them each.
TEST(SeveralFaults, OfOneTrialAreNotThoseOfTwo) {
    auto options = listed({"matrix>lm [5,12] flip 20 + addend>lm [12] flip 29",
                           "matrix>lm [5,12] flip 20", "addend>lm [12] flip 29",
                           "matrix>lm [5,12] flip 20 + addend>lm [12] flip 29 + row [0,0] flip 3"});
    for (const std::size_t batch : {1, 2, 3, 32}) {
        options.accelerate.batch = batch;
        run(decoder({40}), tokens(5), options);
    }
}

// As many rows as columns: an addend of one number for each row is no column.
TEST(SeveralFaults, AnAddendOfEachRowIsNotOneOfEachColumn) {
    auto model = decoder({});
    auto& g = model.graph;
    const auto square = g.add_constant("square", drawn({40, 4}, 5));
    const auto addend = g.add_constant("of_rows", drawn({4, 1}, 6));
    const auto out = g.add_tensor("out", Type::tensor(DType::f32));
    g.append({.type = "Gemm",
              .name = "last",
              .inputs = {*g.find_tensor("scores"), square, addend},
              .outputs = {out}});
    g.set_outputs({out});
    run(model, tokens(3),
        listed({"of_rows>last [2,0] flip 30", "square>last [1,2] flip 30",
                "square>last [1,2] flip 30 + of_rows>last [2,0] flip 22"}));
}

// Two faults in an input are looked at together, as brute force does: the second may take back
// what the first did, or clip it.
TEST(SeveralFaults, InAnInputAreLookedAtOnce) {
    auto model = blank_model();
    auto& g = model.graph;
    const auto x = g.add_input("x", Type::tensor(DType::f32, Shape{1, 8}));
    const auto y = g.add_tensor("y", Type::tensor(DType::f32));
    g.append({.type = "Neg", .name = "neg", .inputs = {x}, .outputs = {y}});
    g.set_outputs({y});
    const auto inputs = drawn_inputs(model, 3);
    for (const auto ranges : {Ranges::off, Ranges::observe, Ranges::clip}) {
        auto options =
            listed({"x [0,3] set inf + x [0,3] set 0.5", "x [0,3] set inf + x [0,4] add 1",
                    "x [0,3] flip 30 + x [0,3] flip 30"});
        options.monitoring.nan_everywhere = true;
        options.monitoring.ranges = ranges;
        options.monitoring.layers = true;
        const auto rows = run(model, inputs, options);
        EXPECT_NE(Outcome::due, rows.at({0, 0}).outcome);
        EXPECT_EQ(Outcome::due, rows.at({1, 0}).outcome);
        EXPECT_EQ(Outcome::masked, rows.at({2, 0}).outcome);
    }
}

// Shapes may differ from input to input; what was seen of parts with one says nothing of another.
TEST(SeveralFaults, AreExactWhereShapesChangeFromInputToInput) {
    auto model = blank_model();
    auto& g = model.graph;
    auto type = Type::tensor(DType::f32, Shape{1, 16});
    (*type.dims)[0] = {-1, "rows"};
    const auto x = g.add_input("x", type);
    const auto w = g.add_constant("w", drawn({16, 32}, 8));
    const auto a = g.add_tensor("a", Type::tensor(DType::f32));
    const auto y = g.add_tensor("y", Type::tensor(DType::f32));
    g.append({.type = "Relu", .name = "relu", .inputs = {x}, .outputs = {a}});
    g.append({.type = "MatMul", .name = "product", .inputs = {a, w}, .outputs = {y}});
    g.set_outputs({y});
    const CampaignInputs inputs{
        6, [&](std::uint64_t i) {
            InputSpec spec;
            spec.fill = "random(-2,2)";
            spec.seed = i;
            spec.shapes = {"rows=" + std::to_string(15 - i % 3 * 7)};
            return CampaignInput{make_inputs(model, spec).values, std::nullopt, ""};
        }};
    run(model, inputs,
        listed({"w>product [3,7] flip 22 + x [0,2] flip 21", "w>product [3,7] flip 22",
                "a [0,5] flip 30 + w>product [5,31] flip 12",
                // Not there in inputs of 8 and of 1 row.
                "a [14,5] flip 30", "a [14] set 7", "a [0] set 7 + a [14] set 7",
                "a [*] rate 0.05 0-31 key 3"}));
}

// The first fault may leave a tensor with fewer elements than the second one names.
TEST(SeveralFaults, DoNotWriteWhereAFaultLeftNoElements) {
    auto model = blank_model();
    auto& g = model.graph;
    const auto x = g.add_input("x", Type::tensor(DType::f32, Shape{1, 60}));
    const auto a = g.add_tensor("a", Type::tensor(DType::f32));
    const auto found = g.add_tensor("found", Type::tensor(DType::i64));
    const auto y = g.add_tensor("y", Type::tensor(DType::i64));
    g.append({.type = "Relu", .name = "relu", .inputs = {x}, .outputs = {a}});
    g.append({.type = "NonZero", .name = "nonzero", .inputs = {a}, .outputs = {found}});
    g.append({.type = "Neg", .name = "neg", .inputs = {found}, .outputs = {y}});
    g.set_outputs({y});
    const CampaignInputs inputs{
        4, [&](std::uint64_t i) {
            InputSpec spec;
            spec.fill = i % 2 == 0 ? "random(0.5,2)" : "random(-2,2)";
            spec.seed = i;
            return CampaignInput{make_inputs(model, spec).values, std::nullopt, ""};
        }};
    run(model, inputs,
        listed({"a [*] set 0 + found [1,59] set 7", "a [0,0:50] set 0 + found [1,59] set 7",
                "found [1,59] set 7", "a [0,0:50] set 0 + found [1,3] set 7",
                "a [0,0:50] set 0 + found>neg [1] set 7",
                "a [0,7] set 0 + found [*] rate 0.1 0-15 key 5"}));
}

// Lanes that go through an op as one batch lie beside one another, and a sum depends on where
// memory begins.
TEST(SeveralFaults, AreExactWhereLanesAreSummedAfterABatch) {
    auto model = blank_model();
    auto& g = model.graph;
    const auto x = g.add_input("x", Type::tensor(DType::f32, Shape{1, 77}));
    const auto a = g.add_tensor("a", Type::tensor(DType::f32));
    const auto y = g.add_tensor("y", Type::tensor(DType::f32));
    g.append({.type = "LeakyRelu", .name = "relu", .inputs = {x}, .outputs = {a}});
    g.append({.type = "ReduceSum", .name = "sum", .inputs = {a}, .outputs = {y}});
    g.set_outputs({y});
    const auto inputs = drawn_inputs(model, 2);
    CampaignOptions options = listed({});
    for (int key = 0; key < 64; ++key) {
        options.sampling.list.push_back(parse_faults("x [*] noise 0.5 key " + std::to_string(key)));
    }
    run(model, inputs, options);
}

TEST(Audits, SayWhereBitsDiffer) {
    // An effect that is another one each time it is applied: the audit must differ.
    auto options = listed({"row [1,2] custom drift"});
    float next = 1;
    options.monitoring.effects["drift"] = [&](DType, std::span<std::byte> tensor, std::size_t place,
                                              std::uint64_t) {
        next += 1;
        std::memcpy(tensor.data() + place * sizeof next, &next, sizeof next);
    };
    try {
        run(decoder({}), tokens(1), options);
        FAIL() << "no difference was found";
    } catch (const Error& e) {
        EXPECT_EQ(Fault::internal, e.fault());
        EXPECT_THAT(e.what(), HasSubstr("output 'scores': "));
        EXPECT_THAT(e.what(), HasSubstr("of 160 elements differ, first at [1,"));
        EXPECT_THAT(e.what(), HasSubstr("row [1,2] custom drift"));
    }
}

TEST(ProgramSpecs, AreTheSameOnlyIfAllIs) {
    using inject::ProgramSpec;
    const ProgramSpec one{.step = 3, .lanes = {{{TensorId{1}, {{4, 5}}}}}};
    auto other = one;
    EXPECT_EQ(one, other);
    other.form = ProgramSpec::Form::columns;
    EXPECT_NE(one, other);
    other = one;
    other.width = 16;
    EXPECT_NE(one, other);
    const ProgramSpec together{.step = 3,
                               .lanes = {{{TensorId{1}, {{4, 5}}}, {TensorId{2}, {{6, 7}}}}}};
    const ProgramSpec apart{.step = 3,
                            .lanes = {{{TensorId{1}, {{4, 5}}}}, {{TensorId{2}, {{6, 7}}}}}};
    EXPECT_NE(together, apart);
}

}  // namespace
}  // namespace trocar
