#include "trocar/selector.h"

#include <gtest/gtest.h>

#include "graph/test_graphs.h"
#include "trocar/error.h"

namespace trocar {
namespace {

using namespace testing;
using Names = std::vector<std::string>;

Graph layers() {
    auto graph = residual();
    const auto module = [&](const char* op, const char* path) {
        graph.op_from_file(*graph.find_op(op)).origin.module = path;
    };
    module("A", "layer1.0.relu");
    module("B", "layer1.0.scale");
    module("C", "layer1.1");
    module("Sum", "layer10.sum");
    return graph;
}

Names chosen(const Graph& graph, std::string_view text) {
    Names names;
    for (const auto id : select(graph, parse_selector(text))) {
        names.push_back(graph.op(id).name);
    }
    return names;
}

TEST(Selector, TermsChooseByWhatTheyName) {
    const auto graph = layers();
    EXPECT_EQ(chosen(graph, "Relu"), Names{"A"});
    EXPECT_EQ(chosen(graph, "type:M*"), Names{"B"});
    EXPECT_EQ(chosen(graph, "name:?"), (Names{"A", "B", "C"}));
    EXPECT_EQ(chosen(graph, "module:layer1"), (Names{"A", "B", "C"}));
    EXPECT_EQ(chosen(graph, "module:layer1.0"), (Names{"A", "B"}));
    EXPECT_EQ(chosen(graph, "index:1..2"), (Names{"B", "C"}));
    EXPECT_EQ(chosen(graph, "index:3"), Names{"Sum"});
    EXPECT_EQ(chosen(graph, "writes:y"), Names{"Sum"});
    EXPECT_EQ(chosen(graph, "reads:a"), (Names{"B", "Sum"}));
    EXPECT_EQ(chosen(graph, "dtype:f32").size(), 4u);
    EXPECT_EQ(chosen(graph, "all").size(), 4u);
    EXPECT_TRUE(chosen(graph, "none").empty());
}

TEST(Selector, CombinesWithTheUsualPrecedence) {
    const auto graph = layers();
    EXPECT_EQ(chosen(graph, "Relu, Mul"), (Names{"A", "B"}));
    EXPECT_EQ(chosen(graph, "Relu | Mul & module:layer1.1"), Names{"A"});
    EXPECT_EQ(chosen(graph, "(Relu | Mul) & !name:A"), Names{"B"});
    EXPECT_EQ(chosen(graph, "'Relu'"), Names{"A"});
}

TEST(Selector, TextReadsBack) {
    const auto graph = layers();
    const auto selector =
        (op("Relu") | named("it's, odd")) & !in_module("layer2.*") & at_index(0, 3);
    EXPECT_EQ(parse_selector(selector.text()).text(), selector.text());
    EXPECT_EQ(chosen(graph, selector.text()), Names{"A"});
}

TEST(Selector, FaultsNameThePlace) {
    for (const auto* text :
         {"", "Relu &", "(Relu", "index:x", "dtype:f33", "Relu)", "'open", "!"}) {
        try {
            parse_selector(text);
            ADD_FAILURE() << text;
        } catch (const Error& e) {
            EXPECT_EQ(e.fault(), Fault::usage);
            EXPECT_NE(std::string(e.what()).find("character"), std::string::npos);
        }
    }
    EXPECT_THROW(parse_selector(std::string(100000, '(')), Error);
}

TEST(Glob, StarAndQuestionMark) {
    EXPECT_TRUE(glob_match("a*c?e", "abbbcde"));
    EXPECT_FALSE(glob_match("a*c?e", "abbbce"));
    EXPECT_TRUE(glob_match("*", ""));
    // Linear in practice: no blow-up on many stars.
    EXPECT_FALSE(glob_match("*a*a*a*a*a*a*a*b", std::string(5000, 'a')));
}

}  // namespace
}  // namespace trocar
