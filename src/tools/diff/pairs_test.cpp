#include "tools/diff/pairs.h"

#include <gtest/gtest.h>

#include <cmath>

namespace trocar::diff {
namespace {

DumpRecord record(const std::string& tensor, const std::string& hash, double mean = 1) {
    DumpRecord made;
    made.tensor = tensor;
    made.kind = "tensor";
    made.dtype = DType::f32;
    made.shape = {2};
    made.hash = hash;
    Statistics s;
    s.count = 2;
    s.min = s.max = s.max_abs = s.mean = s.rms = mean;
    s.std = 0;
    made.statistics = s;
    return made;
}

Dump dump_of(std::vector<DumpRecord> records) {
    Dump dump;
    dump.hash_kind = "xxh64";
    dump.records = std::move(records);
    dump.end = "complete";
    return dump;
}

Pair compared(const DumpRecord& a, const DumpRecord& b, const Tolerance& tolerance = {}) {
    const auto left = dump_of({a});
    const auto right = dump_of({b});
    auto matched = match(left, right);
    EXPECT_EQ(matched.pairs.size(), 1u);
    compare(matched.pairs[0], left, right, tolerance);
    auto pair = matched.pairs[0];
    pair.a = pair.b = nullptr;
    return pair;
}

TEST(Match, GoesByNameSetAndRound) {
    auto first = record("x", "1");
    auto second = record("x", "2");
    second.iterations = {1};
    auto other_set = record("x", "3");
    other_set.set = 1;
    const auto a = dump_of({first, second, other_set, record("only a", "4")});
    const auto b = dump_of({other_set, record("only b", "5"), second, first});
    const auto matched = match(a, b);
    ASSERT_EQ(matched.pairs.size(), 3u);
    for (const auto& pair : matched.pairs) {
        EXPECT_EQ(pair.a->hash, pair.b->hash);
    }
    ASSERT_EQ(matched.missing.size(), 1u);
    EXPECT_EQ(matched.missing[0]->tensor, "only a");
    ASSERT_EQ(matched.extra.size(), 1u);
    EXPECT_EQ(matched.extra[0]->tensor, "only b");
}

TEST(Match, CountsWhatOccursAgain) {
    const auto a = dump_of({record("x", "1"), record("x", "2")});
    const auto b = dump_of({record("x", "1"), record("x", "2"), record("x", "3")});
    const auto matched = match(a, b);
    ASSERT_EQ(matched.pairs.size(), 2u);
    EXPECT_EQ(matched.pairs[1].b->hash, "2");
    ASSERT_EQ(matched.extra.size(), 1u);
    EXPECT_EQ(matched.extra[0]->hash, "3");
}

TEST(Compare, SameHashIsSameBits) {
    const auto pair = compared(record("x", "1"), record("x", "1"));
    EXPECT_EQ(pair.outcome, Pair::Outcome::same_bits);
    EXPECT_EQ(pair.by, "hash");
}

TEST(Compare, WithoutTensorsByHashAndStatistics) {
    EXPECT_EQ(compared(record("x", "1"), record("x", "2")).outcome, Pair::Outcome::differs);
    const auto close = compared(record("x", "1", 1), record("x", "2", 1.01), {.atol = 0.1});
    EXPECT_EQ(close.outcome, Pair::Outcome::within);
    EXPECT_EQ(close.by, "statistics");
    const auto far = compared(record("x", "1", 1), record("x", "2", 2), {.atol = 0.1});
    EXPECT_EQ(far.outcome, Pair::Outcome::differs);
    auto bad = record("x", "2");
    bad.statistics->nans = 1;
    EXPECT_EQ(compared(record("x", "1"), bad, {.atol = 99}).outcome, Pair::Outcome::differs);
}

TEST(Compare, TypesAndShapesFirst) {
    auto half = record("x", "1");
    half.dtype = DType::f16;
    EXPECT_EQ(compared(record("x", "1"), half).outcome, Pair::Outcome::other_type);
    auto longer = record("x", "1");
    longer.shape = {3};
    const auto pair = compared(record("x", "1"), longer);
    EXPECT_EQ(pair.outcome, Pair::Outcome::other_shape);
    EXPECT_FALSE(pair.agrees());
    EXPECT_GT(badness(pair), badness(compared(record("x", "1"), record("x", "2"))));
}

TEST(Compare, NothingToGoByIsNoDifference) {
    auto a = record("x", "");
    a.kind = "sequence";
    a.statistics.reset();
    EXPECT_TRUE(compared(a, a).agrees());
    EXPECT_EQ(compared(a, a).outcome, Pair::Outcome::incomparable);
}

}  // namespace
}  // namespace trocar::diff
