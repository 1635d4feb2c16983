#include "util/dim_expression.h"

#include <gtest/gtest.h>

namespace trocar {
namespace {

std::optional<std::int64_t> with_n_7(std::string_view text) {
    return evaluate(text, [](std::string_view symbol) {
        return symbol == "n" ? std::optional<std::int64_t>(7) : std::nullopt;
    });
}

TEST(DimExpression, ArithmeticIsThatOfPython) {
    EXPECT_EQ(with_n_7("n"), 7);
    EXPECT_EQ(with_n_7("4*n + 1"), 29);
    EXPECT_EQ(with_n_7("(n - 1)//2 + 1"), 4);
    EXPECT_EQ(with_n_7("-n // 2"), -4);
    EXPECT_EQ(with_n_7("-n % 4"), 1);
    EXPECT_EQ(with_n_7("2**3*n"), 56);
    EXPECT_EQ(with_n_7("floor(n/2)"), 3);
    EXPECT_EQ(with_n_7("n/2*4"), 14);
    EXPECT_EQ(with_n_7("max(1, n, 3) + min(n, 2)"), 9);
}

TEST(DimExpression, WhatIsNoWholeNumberHasNoValue) {
    for (const char* text :
         {"", "n/2", "m", "n +", "(n", "n)", "n n", "floor n", "9223372036854775808", "n/0", "n//0",
          "n**n**n**n", "max()", "2**-1"}) {
        EXPECT_FALSE(with_n_7(text)) << text;
    }
    EXPECT_FALSE(with_n_7(std::string(100'000, '(')));
    EXPECT_FALSE(with_n_7(std::string(100'000, '-') + "n"));
}

}  // namespace
}  // namespace trocar
