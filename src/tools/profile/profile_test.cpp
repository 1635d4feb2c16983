#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "tools/profile/compare.h"
#include "tools/profile/cut.h"
#include "tools/profile/files.h"
#include "tools/profile/present.h"
#include "trocar/error.h"
#include "util/files.h"
#include "util/test_folder.h"

namespace trocar::profiles {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

ProfilePart part(const std::string& name, const std::string& module, double ns, double start) {
    ProfilePart made;
    made.name = name;
    made.type = name.substr(name.rfind('/') + 1);
    made.module = module;
    made.total_ns = made.self_ns = std::vector<double>(8, ns);
    made.start_ns = std::vector<double>(8, start);
    made.flops = 1000;
    made.bytes = 10;
    return made;
}

// Two blocks of two ops and a head: 1, 2, 3, 4 and 10 µs of 25.
Profile five_parts() {
    Profile profile;
    profile.wall_ns = std::vector<double>(8, 25000);
    profile.plain_ns = std::vector<double>(8, 20000);
    for (int run = 0; run < 8; ++run) {
        profile.begin_ns.push_back(run * 50000.0);
    }
    profile.parts = {part("/a/0/conv/Conv", "a.0", 1000, 100), part("/a/0/Add", "a.0", 2000, 1200),
                     part("/a/1/conv/Conv", "a.1", 3000, 3300), part("/a/1/Add", "a.1", 4000, 6400),
                     part("/head/Gemm", "head", 10000, 11000)};
    return profile;
}

std::vector<std::string> labels(const std::vector<Row>& rows) {
    std::vector<std::string> result;
    for (const auto& row : rows) {
        result.push_back(std::string(static_cast<std::size_t>(row.depth), '>') + row.label);
    }
    return result;
}

TEST(ProfileRows, ModulesHoldTheSumsOfTheirParts) {
    const auto rows = tree_rows(five_parts(), 3, 0);
    EXPECT_THAT(labels(rows),
                ElementsAre("a", ">0", ">>Conv", ">>Add", ">1", ">>Conv", ">>Add", "head.Gemm"));
    EXPECT_EQ(10000, rows[0].total.typical);
    EXPECT_EQ(0, rows[0].self.typical);
    EXPECT_EQ(7000, rows[4].total.median);
    EXPECT_EQ(4000U, rows[0].flops);
    EXPECT_THAT(labels(tree_rows(five_parts(), 0, 4)), ElementsAre("a", ">0", ">1", "head.Gemm"));
}

TEST(ProfileRows, RunsBeforeTheSteadyStateAreLeftOut) {
    auto profile = five_parts();
    profile.parts[0].total_ns[0] = 1e9;
    profile.steady = 1;
    EXPECT_EQ(1000, part_rows(profile)[0].total.p99);
}

TEST(ProfileFiles, FoldedStacksAddUpToTheRun) {
    const auto text = folded_stacks(five_parts());
    EXPECT_THAT(text, HasSubstr("a;0;Conv 1000\n"));
    EXPECT_THAT(text, HasSubstr("unattributed 5000\n"));
}

TEST(ProfileFiles, SpeedscopeWeighsEveryStack) {
    const auto file = Json::parse_or_throw(speedscope(five_parts(), "x"));
    EXPECT_EQ(file.at("profiles").at(0).at("endValue"), 25000);
    EXPECT_EQ(file.at("profiles").at(0).at("samples").size(), 6);
    EXPECT_EQ(file.at("shared").at("frames").at(0).at("name"), "a");
}

TEST(ProfileFiles, TraceNestsPartsInModulesInRuns) {
    const auto file = Json::parse_or_throw(chrome_trace(five_parts(), "x"));
    double module_end = 0;
    double run_begin = -1;
    for (const auto& event : file.at("traceEvents")) {
        if (event.at("name") == "run 1") {
            run_begin = event.at("ts").number();
        }
        if (event.at("name") == "a" && run_begin < 0) {
            module_end = event.at("ts").number() + event.at("dur").number();
        }
    }
    EXPECT_EQ(50, run_begin);
    EXPECT_DOUBLE_EQ(10.4, module_end);
}

TEST(ProfileFiles, PlotHasABarForEachPart) {
    const auto profile = five_parts();
    const auto svg = plot(profile, tree_rows(profile, 0, 90), "a < b", "c");
    EXPECT_THAT(svg, HasSubstr("a &lt; b"));
    EXPECT_THAT(svg, HasSubstr(">a.0.Conv<"));
    EXPECT_THAT(svg, HasSubstr(">unattributed<"));
}

TEST(Roofline, TheLongerOfTheTwoBindsAPart) {
    Row row;
    row.total.typical = 1000;  // 1 µs
    row.flops = 1000;
    row.bytes = 10;
    const Peaks peaks{.flops = 2e9, .bytes = 1e9, .threads = 1};
    const auto roof = roof_of(row, peaks);
    EXPECT_EQ("compute", roof.bound);
    EXPECT_DOUBLE_EQ(0.5, *roof.headroom);
    EXPECT_DOUBLE_EQ(1e9, *roof.flops);
    row.bytes = 900;
    EXPECT_EQ("memory", roof_of(row, peaks).bound);
    row.total.typical = 1e6;
    EXPECT_EQ("overhead", roof_of(row, peaks).bound);
    row.bytes.reset();
    EXPECT_EQ("", roof_of(row, peaks).bound);
}

TEST(ProfileDoubts, SeeWhatCannotBe) {
    auto profile = five_parts();
    const Model model;
    Findings findings{model, profile, Peaks{.flops = 1e6, .bytes = 1e9, .threads = 1}, "", 1e6, 1};
    auto all = doubts(findings);
    ASSERT_GE(all.size(), 3U);
    EXPECT_THAT(all[0], HasSubstr("profiling makes a run 1.25× as long"));
    EXPECT_THAT(all[1], HasSubstr("the machine is busy"));
    EXPECT_THAT(all[2], HasSubstr("above the measured peak"));
    profile.wall_ns.assign(8, 19000);
    EXPECT_THAT(doubts(findings)[0], HasSubstr("1.00 µs more than the whole"));
}

// The file that --json writes, as far as it is read again.
std::string written(const Profile& profile, const char* view) {
    Json file;
    file["tool"] = "profile";
    auto& rows = file["tables"]["samples"];
    const auto add = [&](const std::string& name, const std::vector<double>& by_run) {
        rows.push_back(Json::object(Json::Order::sorted,
                                    {{"name", name},
                                     {"view", view},
                                     {"samples_ns", sample_texts(by_run, profile.steady)}}));
    };
    add("whole run", profile.wall_ns);
    for (const auto& p : profile.parts) {
        add(p.name, p.total_ns);
    }
    return file.dump();
}

TEST(ProfileCompare, TellsChangeFromChance) {
    const TestFolder folder;
    auto before = five_parts();
    for (std::size_t run = 0; run < 8; ++run) {
        before.parts[1].total_ns[run] += static_cast<double>(run);
    }
    write_file(folder / "before.json", written(before, "deployed"));
    auto now = five_parts();
    for (std::size_t run = 0; run < 8; ++run) {
        now.parts[1].total_ns[run] += 500 + static_cast<double>(run);
    }
    const auto table = compare(now, folder / "before.json");
    ASSERT_THAT(table.rows, SizeIs(6));
    EXPECT_EQ("whole run", std::get<std::string>(table.rows[0].cells[0].value));
    EXPECT_EQ("/a/0/Add", std::get<std::string>(table.rows[1].cells[0].value));
    EXPECT_EQ("slower", std::get<std::string>(table.rows[1].cells[6].value));
    EXPECT_EQ("same", std::get<std::string>(table.rows[2].cells[6].value));
}

TEST(ProfileCompare, RefusesWhatIsNoProfile) {
    const TestFolder folder;
    write_file(folder / "x.json", "[]");
    EXPECT_THROW(compare(five_parts(), folder / "x.json"), Error);
    write_file(folder / "source.json", written(five_parts(), "source"));
    EXPECT_THROW(compare(five_parts(), folder / "source.json"), Error);
    EXPECT_THROW(compare(five_parts(), folder / "absent.json"), Error);
}

// Ops of the modules a.0, a.0, a.1, b, in a chain.
Model chain() {
    Model model;
    model.dialect = "onnx";
    auto& graph = model.graph;
    auto at = graph.add_input("x", Type::tensor(DType::f32));
    for (const char* module : {"a.0", "a.0", "a.1", "b"}) {
        const auto next = graph.add_tensor("", Type::tensor(DType::f32));
        OpSpec spec{.type = "Relu", .inputs = {at}, .outputs = {next}};
        spec.origin.module = module;
        graph.append(std::move(spec));
        at = next;
    }
    graph.set_outputs({at});
    return model;
}

TEST(ProfileCut, ModulesEndWhereOthersBegin) {
    const auto model = chain();
    const auto ends = [&](int levels) {
        std::vector<std::size_t> places;
        for (const auto id : select(model.graph, find_cut(model, "", levels, false))) {
            places.push_back(index(id));
        }
        return places;
    };
    EXPECT_THAT(ends(1), ElementsAre(2));
    EXPECT_THAT(ends(2), ElementsAre(1, 2));
    EXPECT_THAT(ends(0), SizeIs(4));
}

TEST(ProfileCut, UnmatchedSelectorsAreErrorsWithNearMatches) {
    const auto model = chain();
    try {
        find_cut(model, "Relo", 0, false);
        FAIL();
    } catch (const Error& e) {
        EXPECT_EQ(Fault::usage, e.fault());
        EXPECT_THAT(e.hint(), HasSubstr("did you mean 'Relu'?"));
    }
    EXPECT_THAT(select(model.graph, find_cut(model, "Relo", 0, true)), SizeIs(0));
}

}  // namespace
}  // namespace trocar::profiles
