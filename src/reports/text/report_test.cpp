#include "trocar/report.h"

#include <gtest/gtest.h>

#include "util/display.h"
#include "util/text.h"

namespace trocar {
namespace {

std::string text(const Report& report, std::size_t width = 100, Style style = {}) {
    style.width = width;
    return find_report_format("text")->write(report, style);
}

Report with(Table table) {
    Report report;
    report.tables.push_back(std::move(table));
    return report;
}

std::size_t widest(const std::string& text) {
    std::size_t width = 0;
    for (const auto& line : split(text, '\n')) {
        width = std::max(width, display_width(line));
    }
    return width;
}

// A layer table as a tool would make it: a tree, texts, numbers, some of them optional.
Table layers() {
    Table table;
    table.key = "layers";
    table.title = "Layers";
    table.columns = {
        {.key = "name", .title = "Name", .tree = true},
        {.key = "type", .title = "Type"},
        {.key = "shape", .title = "Output shape"},
        {.key = "parameters", .title = "Parameters", .show = Show::count},
        {.key = "parameter_bytes", .title = "Param bytes", .show = Show::bytes, .optional = 2},
        {.key = "zeros", .title = "Zeros", .show = Show::percent, .optional = 3},
        {.key = "macs", .title = "MACs", .show = Show::compact, .optional = 1},
        {.key = "op", .title = "Op", .hidden = true},
    };
    const auto row = [&](int depth, const char* name, const char* type, std::int64_t parameters,
                         Cell macs, bool strong = false) {
        table.rows.push_back({{name, type, "f32[1,64,112,112]", parameters, 4 * parameters, 0.25,
                               std::move(macs), 7},
                              depth,
                              strong});
    };
    row(0, "resnet", "", 25557032, 4089184256);
    row(1, "conv1", "Conv", 9408, 118013952);
    row(1, "layer1", "", 215808, 680131584);
    row(2, "0", "Bottleneck", 75008, 236027904);
    row(2, "1", "Bottleneck", 70400, Cell::unavailable("no shape"));
    row(1, "fc", "Gemm", 2049000, 2048000);
    row(0, "Total", "", 25557032, 4089184256, true);
    return table;
}

TEST(TextReport, DrawsATreeWithAlignedNumbersAndATotal) {
    EXPECT_EQ(text(with(layers())), R"(Layers
                                                         Param
Name       Type        Output shape       Parameters     bytes   Zeros     MACs
───────────────────────────────────────────────────────────────────────────────
resnet                 f32[1,64,112,112]  25,557,032  97.5 MiB  25.0 %  4.089 G
├─ conv1   Conv        f32[1,64,112,112]       9,408  36.8 KiB  25.0 %  118.0 M
├─ layer1              f32[1,64,112,112]     215,808   843 KiB  25.0 %  680.1 M
│  ├─ 0    Bottleneck  f32[1,64,112,112]      75,008   293 KiB  25.0 %  236.0 M
│  └─ 1    Bottleneck  f32[1,64,112,112]      70,400   275 KiB  25.0 %       –¹
└─ fc      Gemm        f32[1,64,112,112]   2,049,000  7.82 MiB  25.0 %  2.048 M
───────────────────────────────────────────────────────────────────────────────
Total                  f32[1,64,112,112]  25,557,032  97.5 MiB  25.0 %  4.089 G
¹ no shape
)");
}

TEST(TextReport, FitsEveryWidthAndNamesWhatItLeavesOut) {
    for (std::size_t width = 60; width < 130; ++width) {
        EXPECT_LE(widest(text(with(layers()), width)), width);
    }
    EXPECT_EQ(text(with(layers()), 200).find("not shown"), std::string::npos);
    const auto narrow = text(with(layers()), 70);
    EXPECT_NE(narrow.find("not shown: Param bytes, Zeros; --json or a wider terminal has all"),
              std::string::npos)
        << narrow;
    EXPECT_EQ(text(with(layers()), 0), text(with(layers()), 1000));
}

TEST(TextReport, MissingValuesHaveTheirReasonsBelow) {
    const auto all = text(with(layers()));
    EXPECT_NE(all.find("–¹"), std::string::npos);
    EXPECT_NE(all.find("\n¹ no shape\n"), std::string::npos);
    // The column is not there: neither is its footnote.
    EXPECT_EQ(text(with(layers()), 60).find("no shape"), std::string::npos);
    auto many = layers();
    for (int i = 0; i < 9; ++i) {
        many.rows.push_back(many.rows[4]);
        many.rows.back().cells[6].reason = std::to_string(i);
    }
    EXPECT_NE(text(with(many)).find("– unavailable, for many reasons"), std::string::npos);
}

TEST(TextReport, LongNamesAreCutInTheMiddle) {
    auto table = layers();
    table.rows[1].cells[0] = "features.stage1.block2.branch3.with_a_very_long_name.conv1";
    const auto narrow = text(with(table), 72);
    EXPECT_LE(widest(narrow), 72u);
    EXPECT_NE(narrow.find("├─ features."), std::string::npos) << narrow;
    EXPECT_NE(narrow.find("…"), std::string::npos);
    EXPECT_NE(text(with(table), 200).find(".with_a_very_long_name.conv1"), std::string::npos);
}

TEST(TextReport, AsciiKeepsTheLayout) {
    const auto drawn = text(with(layers()));
    const auto plain = text(with(layers()), 100, {.ascii = true});
    EXPECT_TRUE(std::all_of(plain.begin(), plain.end(), [](char c) { return c > 0; })) << plain;
    EXPECT_EQ(split(plain, '\n').size(), split(drawn, '\n').size());
    EXPECT_NE(plain.find("|  |- 0"), std::string::npos) << plain;
    EXPECT_NE(plain.find("`- fc"), std::string::npos) << plain;
    EXPECT_NE(plain.find("[1] no shape"), std::string::npos) << plain;
}

TEST(TextReport, ColourChangesNothingButTheColour) {
    auto coloured = text(with(layers()), 100, {.colour = true});
    for (const std::string code : {"\x1b[1m", "\x1b[2m", "\x1b[0m"}) {
        EXPECT_NE(coloured.find(code), std::string::npos);
        for (auto at = coloured.find(code); at != std::string::npos; at = coloured.find(code)) {
            coloured.erase(at, code.size());
        }
    }
    EXPECT_EQ(coloured, text(with(layers())));
}

TEST(TextReport, SectionsLineUp) {
    Report report;
    report.context = {{"seed", "Seed", 7, Show::plain, ""}};
    report.sections = {
        {"model",
         "Model",
         {{"file", "File", "a.onnx", Show::plain, ""},
          {"inputs", "Inputs", std::vector<std::string>{"x f32[1]", "y f32[2]"}, Show::plain, ""}}},
        {"totals",
         "Totals",
         {{"parameters", "Parameters", 25557032, Show::count, "in 67 stored tensors"},
          {"energy", "Energy", Cell::unavailable("no counter here"), Show::plain, ""}}}};
    report.notes = {"A note."};
    EXPECT_EQ(text(report),
              "Model\n"
              "  File        a.onnx\n"
              "  Inputs      x f32[1]\n"
              "              y f32[2]\n"
              "\n"
              "Totals\n"
              "  Parameters  25,557,032  in 67 stored tensors\n"
              "  Energy      –¹\n"
              "¹ no counter here\n"
              "\n"
              "A note.\n");
    EXPECT_EQ(text(report, 100, {.verbosity = 1}).substr(0, 26), "Context\n  Seed        7\n\nM");
    report.order = {"totals"};
    EXPECT_EQ(text(report).substr(0, 7), "Totals\n");
    report.partial = true;
    EXPECT_NE(text(report).find("Interrupted"), std::string::npos);
}

TEST(TextReport, HostileNamesAndShapesDoNoHarm) {
    auto table = layers();
    table.rows[1].cells[0] = "\x1b[2J\n\xff卷积";
    table.rows[2].depth = 1000000;
    table.rows[3].depth = -5;
    table.rows[4].cells.resize(2);
    const auto out = text(with(table), 100);
    EXPECT_EQ(out.find('\x1b'), std::string::npos);
    EXPECT_LE(widest(out), 100u);
    EXPECT_EQ(text(with({.key = "t", .title = "T", .columns = {}, .rows = {}, .note = ""})),
              "T\nnone\n");
}

}  // namespace
}  // namespace trocar
