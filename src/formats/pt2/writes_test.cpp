#include "formats/pt2/writes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trocar::pt2 {
namespace {

using testing::ElementsAre;

// Each op reads the names beside it; the program gives those of the last list.
Json program(const std::vector<std::vector<std::string>>& reads,
             const std::vector<std::string>& outputs) {
    const auto arguments = [](const std::vector<std::string>& names) {
        auto list = Json::array();
        for (const auto& name : names) {
            Json argument;
            argument["arg"]["as_tensor"]["name"] = name;
            list.push_back(std::move(argument));
        }
        return list;
    };
    Json graph;
    graph["nodes"] = Json::array();
    graph["outputs"] = arguments(outputs);
    for (const auto& names : reads) {
        Json node;
        node["inputs"] = arguments(names);
        graph["nodes"].push_back(std::move(node));
    }
    return graph;
}

constexpr auto x = TensorId{0};
constexpr auto view = TensorId{1};
constexpr auto made = TensorId{2};

struct Written {
    TensorId shared;
    std::vector<std::string> renamed;
};

// Op 0 makes a view "v" of "x", op 1 writes to one of them.
Written write_to(TensorId target, const std::vector<std::string>& later) {
    const auto graph = program({{"x"}, {target == x ? "x" : "v"}, later}, {"y"});
    Writes writes(graph);
    writes.name(x, "x");
    writes.name(view, "v");
    writes.view(view, x);
    writes.name(made, "y");
    Written written;
    written.shared = writes.write(1, target, made, written.renamed);
    return written;
}

TEST(Pt2Writes, WhoReadsTheOldNameReadsWhatWasWritten) {
    const auto written = write_to(x, {"x"});
    EXPECT_EQ(written.shared, TensorId::none);
    EXPECT_THAT(written.renamed, ElementsAre("x"));
}

TEST(Pt2Writes, AWriteThroughAViewIsSeenWhereTheRestIsReadLater) {
    EXPECT_EQ(write_to(view, {"x"}).shared, x);
    EXPECT_EQ(write_to(view, {"v"}).shared, TensorId::none);
}

TEST(Pt2Writes, AWriteIsSeenThroughAViewThatWasTakenBefore) {
    EXPECT_EQ(write_to(x, {"v"}).shared, x);
    EXPECT_EQ(write_to(x, {"y"}).shared, TensorId::none);
}

TEST(Pt2Writes, WhatTheProgramGivesIsReadLater) {
    const auto graph = program({{"x"}, {"v"}}, {"x"});
    Writes writes(graph);
    writes.name(x, "x");
    writes.name(view, "v");
    writes.view(view, x);
    std::vector<std::string> renamed;
    EXPECT_EQ(writes.write(1, view, made, renamed), x);
}

TEST(Pt2Writes, InPlaceOpsEndWithOneUnderscore) {
    EXPECT_TRUE(Writes::in_place({.type = "relu_"}));
    EXPECT_FALSE(Writes::in_place({.type = "relu"}));
    EXPECT_FALSE(Writes::in_place({.type = "__and__"}));
    EXPECT_FALSE(Writes::in_place({.type = "relu_", .domain = "mine"}));
}

}  // namespace
}  // namespace trocar::pt2
