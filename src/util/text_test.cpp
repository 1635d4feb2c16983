#include "util/text.h"

#include <gtest/gtest.h>

namespace trocar {
namespace {

using Names = std::vector<std::string>;

TEST(Closest, FindsOneEdit) {
    const Names tools{"convert", "extract", "run", "summary"};
    EXPECT_EQ(closest("sumary", tools), "summary");
    EXPECT_EQ(closest("exctract", tools), "extract");
    EXPECT_EQ(closest("rnu", tools), "run");
}

TEST(Closest, SaysNothingWhenNothingIsNear) {
    const Names tools{"convert", "extract", "run", "summary"};
    EXPECT_EQ(closest("benchmark", tools), std::nullopt);
    EXPECT_EQ(closest("", tools), std::nullopt);
    EXPECT_EQ(closest("a", Names{"b"}), std::nullopt);
    EXPECT_EQ(closest("x", Names{}), std::nullopt);
}

TEST(Closest, CaseCountsLessThanAnotherLetter) {
    EXPECT_EQ(closest("conv", Names{"conw", "Conv"}), "Conv");
    EXPECT_EQ(closest("x", Names{"y", "X"}), "X");
}

TEST(Closest, TheEarliestOfEquallyNearWins) {
    EXPECT_EQ(closest("input9", Names{"input1", "input2"}), "input1");
}

TEST(Closest, APartOfANameFindsTheShortestName) {
    const Names names{"model/embedding/weights", "model/embedding", "output"};
    EXPECT_EQ(closest("embedding", names), "model/embedding");
    EXPECT_EQ(closest("input", Names{"input.1"}), "input.1");
}

TEST(Closest, LongNamesAreNotComparedLetterByLetter) {
    const std::string long_name(100'000, 'x');
    EXPECT_EQ(closest(long_name + "y", Names{long_name}), std::nullopt);
}

TEST(Text, SplitKeepsEmptyParts) {
    EXPECT_EQ(split("a,b", ','), (Names{"a", "b"}));
    EXPECT_EQ(split(",a,", ','), (Names{"", "a", ""}));
    EXPECT_EQ(split("", ','), (Names{""}));
}

TEST(Text, FieldsOfCsvAreQuotedWhereTheyMustBe) {
    EXPECT_EQ(csv_field("a b"), "a b");
    EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
    EXPECT_EQ(csv_field("say \"a\"\n"), "\"say \"\"a\"\"\n\"");
    EXPECT_EQ(csv_field(" a"), "\" a\"");
    EXPECT_EQ(csv_field(""), "");
}

TEST(Text, TrimAndCounted) {
    EXPECT_EQ(trim("  a b\t"), "a b");
    EXPECT_EQ(trim(" "), "");
    EXPECT_EQ(counted(1, "op"), "1 op");
    EXPECT_EQ(counted(0, "op"), "0 ops");
}

}  // namespace
}  // namespace trocar
