#include "trocar/partition.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "graph/test_graphs.h"
#include "run/test_engines.h"
#include "trocar/error.h"
#include "util/same_bits.h"
#include "util/test_folder.h"

namespace trocar {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::new_tensor;
using testing::spec;

Model model_of(Graph graph) {
    Model model;
    model.dialect = "onnx";
    model.format = "onnx";
    model.opsets = {{"", 17}};
    model.ir_version = 8;
    model.graph = std::move(graph);
    return model;
}

// a b a b… as names say: op i has the type of letter i of `types`.
Model chain_of(const std::string& types) {
    Graph graph;
    auto at = graph.add_input("x", Type::tensor(DType::f32, Shape{2}));
    for (std::size_t i = 0; i < types.size(); ++i) {
        const auto next =
            graph.add_tensor(fmt::format("t{}", i), Type::tensor(DType::f32, Shape{2}));
        graph.append(spec(types[i] == 'r' ? "Relu" : "Neg", {at}, {next}, fmt::format("op{}", i)));
        at = next;
    }
    graph.set_outputs({at});
    return model_of(std::move(graph));
}

std::vector<std::size_t> sizes(const Partition& partition) {
    std::vector<std::size_t> all;
    for (const auto& part : partition.parts) {
        all.push_back(part.ops.size());
    }
    return all;
}

// Every op is in one part, and reads from its own part or earlier ones alone.
void expect_acyclic(const Model& model, const Partition& partition) {
    std::map<OpId, std::size_t> part_of;
    for (std::size_t i = 0; i < partition.parts.size(); ++i) {
        for (const auto id : partition.parts[i].ops) {
            EXPECT_TRUE(part_of.emplace(id, i).second);
        }
    }
    for (const auto& [id, part] : part_of) {
        for (const auto producer : model.graph.producers(id)) {
            EXPECT_LE(part_of.at(producer), part);
        }
    }
    EXPECT_EQ(part_of.size(), model.graph.op_count());
}

PartitionCosts unit_costs() {
    return {[](OpId) { return 1.0; }, [](TensorId) { return std::optional<std::uint64_t>(8); }};
}

TEST(ByDevices, AsFewPartsAsCanBe) {
    const auto model = chain_of("rrnnr");
    const auto partition =
        partition_by_devices(model, {{"npu", op("Relu")}, {"cpu", every_op()}}, unit_costs());
    expect_acyclic(model, partition);
    EXPECT_THAT(sizes(partition), ElementsAre(2, 2, 1));
    EXPECT_EQ(partition.parts[0].device, "npu");
    EXPECT_EQ(partition.parts[1].device, "cpu");
    EXPECT_TRUE(partition.joined.empty());
}

TEST(ByDevices, BranchesOfADeviceAreGathered) {
    // Two branches, Relu → Neg each: all Relu first, then all Neg.
    Graph graph;
    const auto x = graph.add_input("x", Type::tensor(DType::f32, Shape{2}));
    std::vector<TensorId> ends;
    for (const auto* name : {"a", "b"}) {
        const auto middle = new_tensor(graph, fmt::format("{}1", name));
        const auto end = new_tensor(graph, fmt::format("{}2", name));
        graph.append(spec("Relu", {x}, {middle}, fmt::format("{}r", name)));
        graph.append(spec("Neg", {middle}, {end}, fmt::format("{}n", name)));
        ends.push_back(end);
    }
    graph.set_outputs(ends);
    const auto model = model_of(std::move(graph));
    const auto partition =
        partition_by_devices(model, {{"cpu", op("Neg")}, {"npu", op("Relu")}}, unit_costs());
    expect_acyclic(model, partition);
    EXPECT_THAT(sizes(partition), ElementsAre(2, 2));
    EXPECT_EQ(partition.parts[0].device, "npu");
}

TEST(ByDevices, WhatNobodyChoseGoesWithTheOthers) {
    const auto model = chain_of("rnr");
    const auto partition = partition_by_devices(model, {{"npu", op("Relu")}}, unit_costs());
    EXPECT_THAT(sizes(partition), ElementsAre(3));
    ASSERT_EQ(partition.joined.size(), 1U);
    EXPECT_EQ(model.graph.op(partition.joined[0].first).name, "op1");
}

TEST(ByCost, Balanced) {
    const auto model = chain_of("rrrrrrrrrr");
    const auto partition = partition_by_cost(model, 3, unit_costs());
    expect_acyclic(model, partition);
    auto all = sizes(partition);
    std::sort(all.begin(), all.end());
    EXPECT_THAT(all, ::testing::AnyOf(ElementsAre(3, 3, 4), ElementsAre(2, 4, 4)));
    EXPECT_THAT(sizes(partition_by_cost(model, 10, unit_costs())), ::testing::Each(1));
    EXPECT_THROW(partition_by_cost(model, 11, unit_costs()), Error);
    EXPECT_THROW(partition_by_cost(model, 0, unit_costs()), Error);
}

TEST(ByCost, CutWhereFewBytesCross) {
    const auto model = chain_of("rrrrrr");
    auto costs = unit_costs();
    // The cost of op 2 and op 3 is nothing: a cut may be at t1, t2 or t3.
    costs.op = [&](OpId id) { return index(id) == 2 || index(id) == 3 ? 0.0 : 1.0; };
    costs.tensor = [&](TensorId id) {
        return std::optional<std::uint64_t>(model.graph.tensor(id).name == "t2" ? 4 : 400);
    };
    const auto partition = partition_by_cost(model, 2, costs);
    EXPECT_THAT(sizes(partition), ElementsAre(3, 3));
    EXPECT_EQ(model.graph.tensor(partition.parts[1].inputs[0]).name, "t2");
}

// Four branches and their sum.
TEST(ByCost, BranchesMayLieInAnotherOrder) {
    Graph graph;
    const auto x = graph.add_input("x", Type::tensor(DType::f32, Shape{2}));
    std::vector<TensorId> ends;
    const std::map<std::string, double> cost{{"a", 7}, {"b", 6}, {"c", 3}, {"d", 4}};
    for (const auto* name : {"a", "b", "c", "d"}) {
        ends.push_back(
            graph.add_tensor(std::string("t") + name, Type::tensor(DType::f32, Shape{2})));
        graph.append(spec("Relu", {x}, {ends.back()}, name));
    }
    const auto y = graph.add_tensor("y", Type::tensor(DType::f32, Shape{2}));
    graph.append(spec("Sum", ends, {y}, "sum"));
    graph.set_outputs({y});
    const auto model = model_of(std::move(graph));
    auto costs = unit_costs();
    costs.op = [&](OpId id) {
        const auto at = cost.find(model.graph.op(id).name);
        return at == cost.end() ? 0 : at->second;
    };
    const auto partition = partition_by_cost(model, 2, costs);
    expect_acyclic(model, partition);
    // In the order of the graph: 7 and 13, or 13 and 7.
    EXPECT_EQ(partition.parts[0].cost, 10);
    EXPECT_EQ(partition.parts[1].cost, 10);
}

TEST(ByBytes, NoPartNeedsMore) {
    const auto model = chain_of("rrrr");
    // Every op has 8 bytes in and 8 out.
    const auto all = partition_by_bytes(model, 1000, unit_costs());
    EXPECT_THAT(sizes(all), ElementsAre(4));
    EXPECT_EQ(all.parts[0].peak_bytes, 16U);
    try {
        partition_by_bytes(model, 15, unit_costs());
        FAIL();
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("op 0 (Relu 'op0') alone needs 16 bytes"));
    }
}

TEST(ByBytes, ConstantsCount) {
    Graph graph;
    auto at = graph.add_input("x", Type::tensor(DType::f32, Shape{2, 2}));
    for (int i = 0; i < 4; ++i) {
        const auto w = graph.add_constant(
            fmt::format("w{}", i), Constant::of(DType::f32, {2, 2}, std::vector<float>(4, 1)));
        const auto next =
            graph.add_tensor(fmt::format("t{}", i), Type::tensor(DType::f32, Shape{2, 2}));
        graph.append(spec("MatMul", {at, w}, {next}, fmt::format("op{}", i)));
        at = next;
    }
    graph.set_outputs({at});
    const auto model = model_of(std::move(graph));
    auto costs = unit_costs();
    costs.tensor = [](TensorId) { return std::optional<std::uint64_t>(16); };
    const auto partition = partition_by_bytes(model, 64, costs);
    EXPECT_THAT(sizes(partition), ElementsAre(2, 2));
    for (const auto& part : partition.parts) {
        EXPECT_EQ(part.constant_bytes, 32U);
        EXPECT_EQ(part.peak_bytes, 64U);
    }
}

TEST(Private, WeightsStayWithTheirOps) {
    Graph graph;
    const auto x = graph.add_input("x", Type::tensor(DType::f32, Shape{2, 2}));
    const auto w =
        graph.add_constant("w", Constant::of(DType::f32, {2, 2}, std::vector<float>(4, 1)));
    const auto v =
        graph.add_constant("v", Constant::of(DType::f32, {2, 2}, std::vector<float>(4, 2)));
    const auto turned = new_tensor(graph, "turned");
    const auto a = new_tensor(graph, "a");
    const auto b = new_tensor(graph, "b");
    const auto c = new_tensor(graph, "c");
    const auto d = new_tensor(graph, "d");
    graph.append(spec("Transpose", {w}, {turned}, "turn"));
    graph.append(spec("Relu", {x}, {a}, "first"));
    graph.append(spec("MatMul", {a, turned}, {b}, "secret"));
    graph.append(spec("MatMul", {b, v}, {c}, "open"));
    graph.append(spec("Neg", {c}, {d}, "last"));
    graph.set_outputs({d});
    const auto model = model_of(std::move(graph));
    const auto partition = partition_private(model, named("secret"), unit_costs());
    expect_acyclic(model, partition);
    ASSERT_EQ(partition.parts.size(), 3U);
    EXPECT_EQ(partition.parts[1].device, "private");
    EXPECT_THAT(sizes(partition), ElementsAre(1, 2, 2));
    ASSERT_EQ(partition.joined.size(), 1U);
    EXPECT_EQ(model.graph.op(partition.joined[0].first).name, "turn");
    for (const std::size_t open : {0, 2}) {
        EXPECT_FALSE(part_model(model, partition, open).graph.find_tensor("w"));
    }
    EXPECT_THROW(partition_private(model, op("Conv"), unit_costs()), Error);
}

TEST(Private, WhoSharesWeightsStaysToo) {
    Graph graph;
    const auto x = graph.add_input("x", Type::tensor(DType::f32, Shape{2, 2}));
    const auto w =
        graph.add_constant("w", Constant::of(DType::f32, {2, 2}, std::vector<float>(4, 1)));
    const auto a = new_tensor(graph, "a");
    const auto b = new_tensor(graph, "b");
    const auto c = new_tensor(graph, "c");
    graph.append(spec("MatMul", {x, w}, {a}, "one"));
    graph.append(spec("Relu", {a}, {b}, "between"));
    graph.append(spec("MatMul", {b, w}, {c}, "two"));
    graph.set_outputs({c});
    const auto model = model_of(std::move(graph));
    const auto partition = partition_private(model, named("one"), unit_costs());
    EXPECT_THAT(sizes(partition), ElementsAre(1, 1, 1));
    ASSERT_EQ(partition.joined.size(), 1U);
    EXPECT_THAT(partition.joined[0].second, HasSubstr("weights of 'one' too"));
}

PartitionManifest small_manifest() {
    PartitionManifest manifest;
    manifest.model = "m.onnx";
    PartValue x;
    x.name = "x";
    x.type = Type::tensor(DType::f32);
    manifest.inputs = {x};
    manifest.outputs = {"y"};
    PartEntry first;
    first.device = "npu";
    first.files = {{"part_00.onnx", std::string(64, '0'), 12}};
    first.inputs = {"x"};
    first.outputs = {"h"};
    first.peak_bytes = 7;
    auto second = first;
    second.inputs = {"h"};
    second.outputs = {"y"};
    manifest.parts = {first, second};
    PartValue cut;
    cut.name = "h";
    cut.type = Type::tensor(DType::f32);
    cut.shape = Shape{1, 2};
    cut.bytes = 8;
    cut.from = 0;
    cut.to = {1};
    manifest.cuts = {cut};
    return manifest;
}

TEST(Private, BodiesThatReadTheSameWeightsStayToo) {
    const auto body = [](const char* name) {
        auto made = std::make_shared<Graph>();
        const auto w = made->add_capture("w");
        const auto x = made->add_capture("x");
        const auto y = made->add_tensor(name, Type::tensor(DType::f32));
        made->append(spec("MatMul", {x, w}, {y}, name));
        made->set_outputs({y});
        return made;
    };
    Graph graph;
    graph.add_input("x", Type::tensor(DType::f32, Shape{1, 2}));
    const auto when = graph.add_input("when", Type::tensor(DType::boolean, Shape{}));
    const auto w =
        graph.add_constant("w", Constant::of(DType::f32, {2, 2}, std::vector<float>{1, 2, 3, 4}));
    const auto chosen = new_tensor(graph, "chosen");
    auto branch = spec("If", {when}, {chosen}, "branch");
    branch.attributes = {{"then_branch", body("t"), {}, {}}, {"else_branch", body("e"), {}, {}}};
    const auto id = graph.append(std::move(branch));
    graph.update_captures(id);
    const auto y = new_tensor(graph, "y");
    graph.append(spec("MatMul", {chosen, w}, {y}, "secret"));
    graph.set_outputs({y});
    const auto model = model_of(std::move(graph));
    const auto partition = partition_private(model, named("secret"), unit_costs());
    ASSERT_EQ(partition.parts.size(), 1U);
    EXPECT_EQ(partition.parts[0].device, "private");
    ASSERT_EQ(partition.joined.size(), 1U);
    EXPECT_THAT(partition.joined[0].second, HasSubstr("weights of 'secret'"));
}

TEST(Manifest, ThereAndBack) {
    const auto manifest = small_manifest();
    const auto back = partition_from_json(partition_json(manifest), "manifest.json");
    EXPECT_EQ(partition_json(back), partition_json(back));
    EXPECT_EQ(back.parts.size(), 2U);
    EXPECT_EQ(back.parts[0].device, "npu");
    EXPECT_EQ(back.cuts[0].shape, (Shape{1, 2}));
    EXPECT_EQ(back.cuts[0].to, (std::vector<std::size_t>{1}));
}

TEST(Manifest, WhatContradictsItselfIsRefused) {
    const auto refused = [](PartitionManifest manifest) {
        try {
            partition_from_json(partition_json(manifest), "m");
        } catch (const Error& error) {
            return error.fault() == Fault::input;
        }
        return false;
    };
    auto manifest = small_manifest();
    std::swap(manifest.parts[0], manifest.parts[1]);
    EXPECT_TRUE(refused(manifest));
    manifest = small_manifest();
    manifest.outputs = {"z"};
    EXPECT_TRUE(refused(manifest));
    manifest = small_manifest();
    manifest.cuts[0].to = {9};
    EXPECT_TRUE(refused(manifest));
    manifest = small_manifest();
    manifest.parts[0].files.clear();
    EXPECT_TRUE(refused(manifest));
    for (const auto* text : {"", "{", "[]", "{}", R"({"schema":"trocar.partition/1","parts":3})"}) {
        EXPECT_THROW(partition_from_json(text, "m"), Error) << text;
    }
}

TEST(Manifest, FilesOutsideAreNotRead) {
    auto manifest = small_manifest();
    manifest.parts[0].files[0].file = "../part.onnx";
    EXPECT_THROW(check_parts("/tmp", manifest), Error);
    EXPECT_THROW(load_part("/tmp", manifest, 0), Error);
}

TEST(RunParts, GivesTheBitsOfTheWhole) {
    const auto model = model_of(testing::residual());
    const auto engine = open_engine(testing::engine_options("reference"));
    const std::vector<float> numbers{1, -2, 3};
    const std::vector<NamedValue> inputs{
        {"x", Value::copy(DType::f32, {3}, std::as_bytes(std::span(numbers)))}};
    const auto whole = Session(model, engine).run(inputs);
    for (std::size_t parts = 1; parts <= 4; ++parts) {
        const auto partition = partition_by_cost(model, parts, unit_costs());
        expect_acyclic(model, partition);
        PartitionManifest manifest;
        manifest.outputs = {"y"};
        for (const auto& part : partition.parts) {
            auto& entry = manifest.parts.emplace_back();
            for (const auto id : part.inputs) {
                entry.inputs.push_back(model.graph.tensor(id).name);
            }
        }
        PartsRunOptions options;
        options.engine = [&](const std::string&) { return engine; };
        const auto ran =
            run_parts([&](std::size_t part) { return part_model(model, partition, part); },
                      manifest, inputs, options);
        EXPECT_TRUE(same_bits(whole, ran.outputs));
    }
}

}  // namespace
}  // namespace trocar
