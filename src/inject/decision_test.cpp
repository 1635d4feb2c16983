#include "inject/decision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "trocar/error.h"

namespace trocar::inject {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class T>
NamedValue tensor(const std::string& name, DType dtype, Shape shape, std::vector<T> numbers) {
    return {name, Value::copy(dtype, std::move(shape), std::as_bytes(std::span(numbers)))};
}
NamedValue floats(const std::string& name, Shape shape, std::vector<float> numbers) {
    return tensor(name, DType::f32, std::move(shape), std::move(numbers));
}
NamedValue ids(const std::string& name, Shape shape, std::vector<std::int64_t> numbers) {
    return tensor(name, DType::i64, std::move(shape), std::move(numbers));
}
// Of any numbers: only the shape matters.
NamedValue filled(const std::string& name, Shape shape) {
    std::vector<float> numbers(element_count(shape));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        numbers[i] = static_cast<float>(i % 7) - 3;
    }
    return floats(name, std::move(shape), std::move(numbers));
}

using Values = std::vector<NamedValue>;

const Values image{filled("image", {1, 3, 8, 8})};

TrialResult compared(const std::string& decision, const NamedValue& golden,
                     const NamedValue& faulty) {
    const auto rule = bound(parse_decision(decision), {golden}, image);
    const auto decided = choices(rule, {golden});
    TrialResult result;
    result.golden_top = decided.top;
    compare(rule, decided, {golden}, {faulty}, result);
    return result;
}

std::string refusal(const std::string& decision, const Values& outputs) {
    try {
        bound(parse_decision(decision), outputs, image);
        return "no error";
    } catch (const Error& e) {
        EXPECT_EQ(e.fault(), Fault::usage);
        EXPECT_NE(e.hint(), "");
        return std::string(e.what()) + " | " + e.hint();
    }
}

std::string automatic(const Values& outputs, const Values& inputs = image) {
    return text(chosen(bound({}, outputs, inputs)).decision);
}

// --- Their text

TEST(Decisions, ReadBack) {
    for (const char* text : {"auto", "none", "scores", "scores:logits", "scores:logits:1",
                             "scores:a:b:-1", "scores::1", "equal", "equal:a:0", "topk:5",
                             "topk:5:logits", "error:0.001", "error:0:depth"}) {
        EXPECT_EQ(trocar::text(parse_decision(text)), text);
    }
    EXPECT_EQ(trocar::text(parse_decision("error:1e-3")), "error:0.001");
    EXPECT_EQ(trocar::text(parse_decision("topk:05:y")), "topk:5:y");
}

TEST(Decisions, ThatMakeNoSenseAreRefused) {
    const auto refused = [](const char* text) {
        try {
            parse_decision(text);
            return std::string("no error");
        } catch (const Error& e) {
            return std::string(e.what()) + " | " + e.hint();
        }
    };
    EXPECT_THAT(refused("score"), HasSubstr("invalid decision 'score' | did you mean 'scores'?"));
    EXPECT_THAT(refused(""), HasSubstr("invalid decision '' | use scores[:OUTPUT[:AXIS]]"));
    EXPECT_THAT(refused("topk"), HasSubstr("K is a number of classes, at least 1"));
    EXPECT_THAT(refused("topk:0"), HasSubstr("K is a number of classes, at least 1"));
    EXPECT_THAT(refused("topk:logits"), HasSubstr("K is a number"));
    EXPECT_THAT(refused("error"), HasSubstr("LIMIT is a number, at least 0"));
    EXPECT_THAT(refused("error:-1"), HasSubstr("LIMIT is a number, at least 0"));
    EXPECT_THAT(refused("error:nan"), HasSubstr("LIMIT is a number, at least 0"));
    EXPECT_THAT(refused("none:logits"), HasSubstr("'none' takes nothing more"));
}

// --- What an output is taken for

TEST(AutomaticDecisions, TakeClassScores) {
    EXPECT_EQ(automatic({filled("y", {1, 10})}), "scores:y:1");
    EXPECT_EQ(automatic({filled("y", {4, 10})}, {filled("x", {4, 32})}), "scores:y:1");
    EXPECT_EQ(automatic({filled("y", {1, 1000, 1, 1})}), "scores:y:1");
    EXPECT_EQ(automatic({filled("y", {1, 1, 1, 1000})}), "scores:y:3");
    EXPECT_EQ(automatic({filled("logits", {1, 6, 50})}), "scores:logits:2");
    EXPECT_EQ(automatic({filled("StatefulPartitionedCall:0", {1, 10})}),
              "scores:StatefulPartitionedCall:0:1");
    EXPECT_EQ(automatic({floats("485", {2, 3}, {0.25, 0.5, 0.25, 0.125, 0.75, 0.125})}),
              "scores:485:1");
    EXPECT_EQ(automatic({floats("p", {4}, {0.25, 0.5, 0.25, 0})}), "scores:p:0");
    EXPECT_EQ(automatic({tensor<std::uint8_t>("y", DType::u8, {1, 4}, {1, 2, 3, 4})}),
              "scores:y:1");
    EXPECT_EQ(automatic({filled("logits_per_image", {1, 3})}), "scores:logits_per_image:1");
}

TEST(AutomaticDecisions, TakeMapsOfClasses) {
    EXPECT_EQ(automatic({filled("out", {1, 5, 8, 8})}), "scores:out:1");
    EXPECT_EQ(automatic({filled("out", {1, 8, 8, 5})}, {filled("x", {1, 8, 8, 3})}),
              "scores:out:3");
    EXPECT_EQ(automatic({filled("seg_logits", {1, 3, 4, 4})}), "scores:seg_logits:1");
    // An image for an image, and a map of features.
    EXPECT_EQ(automatic({filled("out", {1, 3, 8, 8})}), "none");
    EXPECT_EQ(automatic({filled("out", {1, 3, 16, 16})}), "none");
    EXPECT_EQ(automatic({filled("out", {1, 64, 4, 4})}), "none");
    EXPECT_EQ(automatic({filled("features", {1, 5, 8, 8})}), "none");
}

TEST(AutomaticDecisions, TakeIntegersAsTheyAre) {
    EXPECT_EQ(automatic({ids("next", {1, 6}, {1, 2, 3, 4, 5, 6})}), "equal:next");
    EXPECT_EQ(automatic({ids("none", {0}, {})}), "equal:none");
    EXPECT_EQ(automatic({tensor<std::uint8_t>("yes", DType::boolean, {1}, {1})}), "equal:yes");
    EXPECT_EQ(automatic({tensor<std::uint8_t>("map", DType::u8, {1, 2, 2}, {0, 1, 2, 1})}),
              "equal:map");
    // Integers are surer than rows of numbers without a telling name.
    EXPECT_EQ(automatic({filled("y", {1, 10}), ids("id", {1}, {3})}), "equal:id");
    EXPECT_EQ(automatic({filled("logits", {1, 10}), ids("id", {1}, {3})}), "scores:logits:1");
    // A number of things says less than the things.
    EXPECT_EQ(automatic({ids("num_dets", {1}, {2}), ids("det_labels", {2}, {0, 1})}),
              "equal:det_labels");
    EXPECT_EQ(automatic({ids("num_dets", {1}, {2})}), "equal:num_dets");
}

TEST(AutomaticDecisions, TakeOfDetectorsOnlyIntegers) {
    EXPECT_EQ(automatic({filled("boxes", {7, 4}), ids("labels", {7}, {0, 0, 1, 1, 2, 2, 2}),
                         filled("scores", {7})}),
              "equal:labels");
    EXPECT_EQ(automatic({filled("812", {7, 4}), filled("scores", {7})}), "none");
    EXPECT_EQ(automatic({filled("pred_logits", {1, 100, 92}), filled("pred_boxes", {1, 100, 4})}),
              "none");
    EXPECT_EQ(automatic({filled("detection_scores", {1, 100})}), "none");
    EXPECT_EQ(automatic({filled("output0", {1, 84, 8400})}), "none");
    EXPECT_EQ(automatic({filled("dets", {5, 6})}), "none");
    EXPECT_EQ(automatic({filled("y", {5, 6})}), "none");
}

TEST(AutomaticDecisions, TakeNothingElse) {
    EXPECT_EQ(automatic({filled("price", {1, 1})}), "none");
    EXPECT_EQ(automatic({filled("price", {})}), "none");
    EXPECT_EQ(automatic({filled("prices", {4, 1})}, {filled("x", {4, 8})}), "none");
    EXPECT_EQ(automatic({filled("prices", {4})}, {filled("x", {4, 8})}), "none");
    EXPECT_EQ(automatic({filled("sentence_embedding", {1, 384})}), "none");
    EXPECT_EQ(automatic({filled("last_hidden_state", {1, 6, 32})}), "none");
    EXPECT_EQ(automatic({filled("y", {1, 6, 32})}), "none");
    EXPECT_EQ(automatic({}), "none");
    EXPECT_EQ(automatic({{"label", Value::strings({1}, {"cat"})}}), "none");
    EXPECT_EQ(automatic({filled("y", {1, 6, 32}), filled("z", {1, 3})}), "scores:z:1");
    EXPECT_THAT(chosen(bound({}, {filled("price", {1, 1})}, image)).meaning,
                HasSubstr("none, for no output shows class scores or integers (--decision"));
    EXPECT_EQ(chosen(bound({}, {filled("y", {1, 10})}, image)).meaning,
              "scores of 'y' along axis 1 (chosen automatically; --decision changes it)");
}

// --- Outputs by name and index

TEST(Decisions, NameTheirOutput) {
    const Values outputs{filled("a", {1, 3}), filled("b:0", {2, 4, 5}), ids("7", {2}, {1, 2})};
    const auto found = [&](const std::string& decision) {
        return text(chosen(bound(parse_decision(decision), outputs, image)).decision);
    };
    EXPECT_EQ(found("scores:a"), "scores:a:1");
    EXPECT_EQ(found("scores:1"), "scores:b:0:2");
    EXPECT_EQ(found("scores:b:0"), "scores:b:0:2");
    EXPECT_EQ(found("scores:b:0:1"), "scores:b:0:1");
    EXPECT_EQ(found("scores:1:-3"), "scores:b:0:0");
    EXPECT_EQ(found("scores::1"), "scores:a:1");
    EXPECT_EQ(found("equal"), "equal:7");
    EXPECT_EQ(found("equal:7"), "equal:7");  // a name before a place
    EXPECT_EQ(found("equal:2"), "equal:7");
    EXPECT_EQ(found("error:0.5"), "error:0.5:a");
    EXPECT_EQ(found("topk:2"), "topk:2:a:1");
    EXPECT_EQ(found("topk:2:b:0"), "topk:2:b:0:2");
}

TEST(Decisions, OnOutputsThatDoNotFitAreRefused) {
    const Values outputs{
        filled("logits", {1, 3}), filled("price", {1, 1}), {"words", Value::strings({1}, {"cat"})}};
    EXPECT_EQ(refusal("scores:logit", outputs),
              "there is no output 'logit' to decide by | did you mean 'logits'? the outputs are "
              "'logits', 'price', 'words'; or use an index");
    EXPECT_THAT(refusal("equal:3", outputs), HasSubstr("there is no output '3'"));
    EXPECT_EQ(refusal("scores:logits:2", outputs),
              "axis 2 is out of range for output 'logits', which is f32 1x3 | use -2 to 1");
    EXPECT_THAT(refusal("scores:logits:-3", outputs), HasSubstr("axis -3 is out of range"));
    EXPECT_THAT(refusal("scores:logits:last", outputs), HasSubstr("'last' is not an axis"));
    EXPECT_THAT(refusal("scores:logits:0", outputs),
                HasSubstr("output 'logits' has 1 element along axis 0: scores need at least 2"));
    EXPECT_THAT(refusal("scores:price", outputs), HasSubstr("scores need at least 2"));
    EXPECT_THAT(refusal("topk:3:logits", outputs), HasSubstr("topk:3 never changes"));
    EXPECT_THAT(refusal("equal:words", outputs), HasSubstr("decisions are taken from tensors"));
    EXPECT_THAT(refusal("scores", {filled("price", {1, 1})}), HasSubstr("no output fits"));
}

// --- Scores

TEST(Scores, AreComparedAtEveryPosition) {
    // Two positions, three classes: 1 and 0 first; then 1 and 2.
    const auto golden = floats("y", {2, 3}, {1, 4, 2, 9, 5, 8});
    const auto r = compared("scores", golden, floats("y", {2, 3}, {1, 4, 3, 9, 5, 10}));
    EXPECT_EQ(r.golden_top, 1);
    EXPECT_EQ(r.faulty_top, 1);
    EXPECT_EQ(r.positions, 2u);
    EXPECT_EQ(r.changed, 1u);
    EXPECT_TRUE(r.sdc1);
    EXPECT_FALSE(r.sdc5);  // there are three classes
    EXPECT_FALSE(r.sdc10);
    const auto same = compared("scores", golden, floats("y", {2, 3}, {3, 4, 3, 9, 8, 8.5}));
    EXPECT_EQ(same.changed, 0u);
    EXPECT_FALSE(same.sdc1);
    // The score of the second first choice: 9 to 7.5 is 16.7 %.
    const auto less = compared("scores", golden, floats("y", {2, 3}, {1, 4, 2, 7.5, 5, 7}));
    EXPECT_FALSE(less.sdc1);
    EXPECT_TRUE(less.sdc10);
    EXPECT_FALSE(less.sdc20);
}

TEST(Scores, LieAlongTheirAxis) {
    // [1, 3, 1, 2]: pixels (1, 9, 3) and (6, 2, 5) have classes 1 and 0.
    const auto golden = floats("y", {1, 3, 1, 2}, {1, 6, 9, 2, 3, 5});
    const auto rule = bound(parse_decision("scores:y:1"), {golden}, image);
    EXPECT_THAT(choices(rule, {golden}).tops, ElementsAre(1, 0));
    // The second pixel becomes (6, 2, 7).
    const auto r = compared("scores:y:1", golden, floats("y", {1, 3, 1, 2}, {1, 6, 9, 2, 3, 7}));
    EXPECT_EQ(r.positions, 2u);
    EXPECT_EQ(r.changed, 1u);
    // Along the last axis there are three positions: (1,6), (9,2), (3,5); none changes.
    const auto last =
        compared("scores:y:-1", golden, floats("y", {1, 3, 1, 2}, {1, 6, 9, 2, 3, 7}));
    EXPECT_EQ(last.positions, 3u);
    EXPECT_EQ(last.changed, 0u);
}

TEST(Scores, OfWhichTheFirstOfEqualsIsChosen) {
    const auto golden = floats("y", {1, 3}, {5, 5, 1});
    EXPECT_EQ(compared("scores", golden, floats("y", {1, 3}, {4, 5, 1})).faulty_top, 1);
    EXPECT_FALSE(compared("scores", golden, floats("y", {1, 3}, {5, 5, 5})).sdc1);
    EXPECT_EQ(compared("scores", floats("y", {1, 2}, {0.f, -0.f}), floats("y", {1, 2}, {-0.f, 0.f}))
                  .changed,
              0u);
}

TEST(Scores, WithNaNChooseNothing) {
    const auto golden = floats("y", {2, 2}, {1, 2, 3, 0});
    const auto r = compared("scores", golden, floats("y", {2, 2}, {NAN, 2, 3, 0}));
    EXPECT_EQ(r.faulty_top, -1);
    EXPECT_EQ(r.changed, 1u);
    EXPECT_TRUE(r.sdc1 && r.sdc5 && !r.sdc10);
    const auto undecided = floats("y", {2, 2}, {NAN, 2, 3, 0});
    EXPECT_FALSE(compared("scores", undecided, undecided).sdc1);
    EXPECT_FALSE(compared("scores", undecided, undecided).sdc10);
    EXPECT_TRUE(compared("scores", undecided, golden).sdc1);
    const float inf = std::numeric_limits<float>::infinity();
    EXPECT_EQ(compared("scores", golden, floats("y", {2, 2}, {1, 2, -inf, 0})).changed, 1u);
}

TEST(Scores, FifthAndSixth) {
    const auto golden = floats("y", {1, 7}, {7, 6, 5, 4, 3, 2, 1});
    const auto fifth = compared("scores", golden, floats("y", {1, 7}, {7, 6, 5, 4, 8, 2, 1}));
    EXPECT_TRUE(fifth.sdc1 && !fifth.sdc5);
    const auto sixth = compared("scores", golden, floats("y", {1, 7}, {7, 6, 5, 4, 3, 8, 1}));
    EXPECT_TRUE(sixth.sdc1 && sixth.sdc5);
}

TEST(Scores, OfAnotherShapeAreAnotherDecision) {
    const auto golden = floats("y", {2, 2}, {1, 2, 3, 0});
    // A row more: two are as they were, one is new.
    const auto more = compared("scores", golden, floats("y", {3, 2}, {1, 2, 3, 0, 1, 0}));
    EXPECT_EQ(more.positions, 3u);
    EXPECT_EQ(more.changed, 1u);
    EXPECT_TRUE(more.sdc1);
    const auto fewer = compared("scores", golden, floats("y", {1, 2}, {2, 1}));
    EXPECT_EQ(fewer.positions, 2u);
    EXPECT_EQ(fewer.changed, 2u);
    // Another number of classes, and none at all.
    const auto classes = compared("scores", golden, floats("y", {2, 3}, {1, 2, 0, 3, 0, 0}));
    EXPECT_EQ(classes.changed, 2u);
    const auto empty = compared("scores", golden, floats("y", {0, 2}, {}));
    EXPECT_EQ(empty.positions, 2u);
    EXPECT_EQ(empty.changed, 2u);
    EXPECT_EQ(empty.faulty_top, -1);
    const auto rank = compared("scores", golden, floats("y", {4}, {1, 2, 3, 0}));
    EXPECT_EQ(rank.changed, 2u);
    const auto nothing = floats("y", {0, 2}, {});
    EXPECT_FALSE(compared("scores:0", nothing, nothing).sdc1);
    EXPECT_EQ(compared("scores:0", nothing, nothing).positions, 0u);
}

// --- Equality

TEST(Equality, CountsElements) {
    const auto golden = ids("next", {1, 5}, {3, 1, 4, 1, 5});
    const auto r = compared("equal", golden, ids("next", {1, 5}, {3, 1, 4, 2, 6}));
    EXPECT_EQ(r.golden_top, 3);
    EXPECT_EQ(r.faulty_top, 3);
    EXPECT_EQ(r.positions, 5u);
    EXPECT_EQ(r.changed, 2u);
    EXPECT_TRUE(r.sdc1);
    EXPECT_FALSE(r.sdc5 || r.sdc10 || r.sdc20);
    EXPECT_FALSE(compared("equal", golden, golden).sdc1);
}

TEST(Equality, OfIntegersIsExact) {
    const std::int64_t large = std::int64_t{1} << 60;
    EXPECT_EQ(compared("equal", ids("y", {1}, {large}), ids("y", {1}, {large + 1})).changed, 1u);
    // No class has such a number.
    EXPECT_EQ(compared("equal", ids("y", {1}, {-100}), ids("y", {1}, {-100})).golden_top, -1);
    EXPECT_EQ(compared("equal", ids("y", {}, {4}), ids("y", {}, {5})).positions, 1u);
    const auto mask = tensor<std::uint8_t>("y", DType::boolean, {3}, {1, 0, 1});
    const auto other = tensor<std::uint8_t>("y", DType::boolean, {3}, {1, 1, 1});
    EXPECT_EQ(compared("equal", mask, other).changed, 1u);
}

TEST(Equality, OfANumberOfThingsThatVaries) {
    const auto golden = ids("labels", {3}, {7, 8, 9});
    // One is gone: what came after it has moved.
    const auto fewer = compared("equal", golden, ids("labels", {2}, {7, 9}));
    EXPECT_EQ(fewer.positions, 3u);
    EXPECT_EQ(fewer.changed, 2u);
    const auto more = compared("equal", golden, ids("labels", {5}, {7, 8, 9, 1, 1}));
    EXPECT_EQ(more.positions, 5u);
    EXPECT_EQ(more.changed, 2u);
    const auto none = compared("equal", golden, ids("labels", {0}, {}));
    EXPECT_EQ(none.positions, 3u);
    EXPECT_EQ(none.changed, 3u);
    EXPECT_EQ(none.faulty_top, -1);
    // Nothing was found, and nothing is.
    EXPECT_FALSE(compared("equal", ids("l", {0}, {}), ids("l", {0}, {})).sdc1);
    EXPECT_TRUE(compared("equal", ids("l", {0}, {}), ids("l", {1}, {4})).sdc1);
    EXPECT_TRUE(compared("equal", ids("l", {0, 3}, {}), ids("l", {0, 2}, {})).sdc1);
    // Rows of three: the second axis is the one that differs.
    const auto wide =
        compared("equal", ids("l", {2, 3}, {1, 2, 3, 4, 5, 6}), ids("l", {2, 2}, {1, 2, 4, 9}));
    EXPECT_EQ(wide.positions, 6u);
    EXPECT_EQ(wide.changed, 3u);
    // Two axes differ: nothing is matched.
    const auto both = compared("equal", ids("l", {2, 2}, {1, 2, 3, 4}), ids("l", {1, 1}, {1}));
    EXPECT_EQ(both.changed, 4u);
}

TEST(Equality, OfFloatsIsOfNumbers) {
    const auto golden = floats("y", {4}, {0.f, 1, NAN, 2});
    const auto r = compared("equal", golden, floats("y", {4}, {-0.f, 1, NAN, 2.0000002f}));
    EXPECT_EQ(r.changed, 1u);
    EXPECT_EQ(compared("equal", golden, floats("y", {4}, {0, NAN, 3, 2})).changed, 2u);
}

// --- The first K

TEST(TopK, HoldsWhileTheGoldenChoiceIsAmongThem) {
    const auto golden = floats("y", {1, 4}, {1, 9, 3, 4});
    const auto second = floats("y", {1, 4}, {10, 9, 3, 4});
    const auto third = floats("y", {1, 4}, {10, 9, 11, 4});
    const auto fourth = floats("y", {1, 4}, {10, 9, 11, 12});
    EXPECT_TRUE(compared("topk:1", golden, second).sdc1);
    EXPECT_FALSE(compared("topk:2", golden, second).sdc1);
    EXPECT_TRUE(compared("topk:2", golden, third).sdc1);
    EXPECT_FALSE(compared("topk:3", golden, third).sdc1);
    EXPECT_TRUE(compared("topk:3", golden, fourth).sdc1);
    EXPECT_EQ(compared("topk:3", golden, fourth).faulty_top, 3);
    EXPECT_FALSE(compared("topk:3", golden, fourth).sdc5);
    // Among equals the earlier ones come first.
    EXPECT_TRUE(compared("topk:1", golden, floats("y", {1, 4}, {9, 9, 3, 4})).sdc1);
    EXPECT_FALSE(compared("topk:1", golden, floats("y", {1, 4}, {1, 9, 9, 9})).sdc1);
    EXPECT_TRUE(compared("topk:2", golden, floats("y", {1, 4}, {1, 9, 3, NAN})).sdc1);
}

TEST(TopK, CountsPositions) {
    const auto golden = floats("y", {3, 3}, {3, 2, 1, 1, 2, 3, 1, 3, 2});
    // The golden choices 0, 2, 1 come second, third and first.
    const auto faulty = floats("y", {3, 3}, {3, 4, 1, 5, 4, 3, 1, 3, 2});
    EXPECT_EQ(compared("topk:1", golden, faulty).changed, 2u);
    EXPECT_EQ(compared("topk:2", golden, faulty).changed, 1u);
    EXPECT_EQ(compared("scores", golden, faulty).changed, 2u);
}

// --- Errors

TEST(Errors, CountElementsOffByMoreThanTheLimit) {
    const auto golden = floats("y", {2, 2}, {1, 2, 3, 4});
    const auto faulty = floats("y", {2, 2}, {1.5, 2, 2.25, 4.5});
    EXPECT_EQ(compared("error:0.5", golden, faulty).changed, 1u);
    EXPECT_EQ(compared("error:0.25", golden, faulty).changed, 3u);
    EXPECT_FALSE(compared("error:0.75", golden, faulty).sdc1);
    EXPECT_EQ(compared("error:0", golden, faulty).positions, 4u);
    EXPECT_EQ(compared("error:0.5", golden, faulty).faulty_top, -1);
    const float inf = std::numeric_limits<float>::infinity();
    EXPECT_EQ(compared("error:1e30", golden, floats("y", {2, 2}, {NAN, 2, inf, 4})).changed, 2u);
    const auto odd = floats("y", {2}, {NAN, inf});
    EXPECT_FALSE(compared("error:0", odd, odd).sdc1);
    EXPECT_EQ(compared("error:1", odd, floats("y", {2}, {1, -inf})).changed, 2u);
    EXPECT_EQ(compared("error:9", floats("y", {}, {1}), floats("y", {}, {11})).changed, 1u);
    EXPECT_EQ(compared("error:1", golden, floats("y", {2, 1}, {1, 3})).changed, 2u);
    const std::int64_t least = std::numeric_limits<std::int64_t>::min();
    EXPECT_EQ(compared("error:1", ids("y", {2}, {least, 5}), ids("y", {2}, {least + 1, 7})).changed,
              1u);
}

TEST(Decisions, OfNoneChangeNothing) {
    const auto r = compared("none", floats("y", {1, 2}, {1, 2}), floats("y", {1, 2}, {2, 1}));
    EXPECT_FALSE(r.sdc1);
    EXPECT_EQ(r.positions, 0u);
    EXPECT_EQ(r.golden_top, -1);
}

}  // namespace
}  // namespace trocar::inject
