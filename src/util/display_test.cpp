#include "util/display.h"

#include <gtest/gtest.h>

namespace trocar {
namespace {

using Lines = std::vector<std::string>;

TEST(Display, WidthCountsColumnsNotBytes) {
    EXPECT_EQ(display_width("conv1"), 5u);
    EXPECT_EQ(display_width("├─ é"), 4u);
    EXPECT_EQ(display_width("e\u0301"), 1u);
    EXPECT_EQ(display_width("卷积"), 4u);
    EXPECT_EQ(display_width("🚀"), 2u);
    EXPECT_EQ(display_width("\xff\xfe"), 2u);
}

TEST(Display, InvalidBytesAreReplaced) {
    EXPECT_EQ(valid_utf8("a\xff"), "a�");
    EXPECT_EQ(valid_utf8("\xc0\x80"), "��");            // overlong
    EXPECT_EQ(valid_utf8("\xed\xa0\x80"), "���");       // surrogate
    EXPECT_EQ(valid_utf8("\xf4\x90\x80\x80"), "����");  // beyond Unicode
    EXPECT_EQ(valid_utf8("\xe2\x82"), "��");            // cut short
    EXPECT_EQ(valid_utf8("€\n"), "€\n");
}

TEST(Display, ControlsCannotReachTheTerminal) {
    EXPECT_EQ(printable("a\tb\x1b]0;x\x07"), "a\\tb\\x1b]0;x\\x07");
    EXPECT_EQ(printable("\u202egnp.exe"), "\\u202egnp.exe");
    EXPECT_EQ(printable("\u0085"), "\\x85");
    EXPECT_EQ(printable("tränen"), "tränen");
}

TEST(Display, EllipsisKeepsBothEnds) {
    EXPECT_EQ(ellipsis("layer1.0.conv1", 20), "layer1.0.conv1");
    EXPECT_EQ(ellipsis("layer1.0.conv1", 9), "laye…onv1");
    EXPECT_EQ(ellipsis("layer1.0.conv1", 2), "l…");
    EXPECT_EQ(ellipsis("layer1.0.conv1", 1), "…");
    EXPECT_EQ(ellipsis("卷积卷积卷积", 6), "卷…积");
    for (std::size_t width = 1; width < 14; ++width) {
        EXPECT_LE(display_width(ellipsis("a卷b积c\u0301卷d积", width)), width);
    }
}

TEST(Display, WrapBreaksAtSpaces) {
    EXPECT_EQ(wrap("one two three", 7), (Lines{"one two", "three"}));
    EXPECT_EQ(wrap("onetwothree x", 4), (Lines{"onetwothree", "x"}));
    EXPECT_EQ(wrap("one two", 0), Lines{"one two"});
    EXPECT_EQ(wrap("", 10), Lines{""});
}

TEST(Display, PadFillsToTheWidth) {
    EXPECT_EQ(pad_left("é", 3), "  é");
    EXPECT_EQ(pad_right("卷", 3), "卷 ");
    EXPECT_EQ(pad_right("long", 2), "long");
}

}  // namespace
}  // namespace trocar
