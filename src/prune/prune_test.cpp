#include "trocar/prune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "prune/weights.h"
#include "run/test_engines.h"
#include "trocar/error.h"
#include "trocar/random.h"
#include "trocar/session.h"
#include "util/elements.h"
#include "util/same_bits.h"
#include "util/test_folder.h"

namespace trocar {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> drawn(std::size_t count, std::uint64_t seed) {
    std::vector<float> all(count);
    for (std::size_t i = 0; i < count; ++i) {
        all[i] = 2 * unit_float(philox(seed, 0, i)[0]) - 1;
    }
    return all;
}

// A model that grows op by op, with weights that are drawn.
class Net {
public:
    Net() {
        model.dialect = "onnx";
        model.format = "onnx";
        model.opsets = {{"", 17}};
        model.ir_version = 8;
    }

    TensorId input(Shape shape) {
        return model.graph.add_input("x", Type::tensor(DType::f32, shape));
    }
    TensorId weights(const std::string& name, const Shape& shape) {
        return model.graph.add_constant(
            name, Constant::of(DType::f32, shape, drawn(element_count(shape), ++seed_)));
    }
    TensorId integers(const std::string& name, const std::vector<std::int64_t>& values) {
        return model.graph.add_constant(
            name, Constant::of(DType::i64, {static_cast<std::int64_t>(values.size())}, values));
    }
    std::vector<TensorId> several(const std::string& type, std::vector<TensorId> inputs,
                                  const std::vector<std::string>& outputs,
                                  std::vector<Attribute> attributes = {}) {
        OpSpec spec;
        spec.type = type;
        spec.name = outputs[0];
        spec.inputs = std::move(inputs);
        spec.attributes = std::move(attributes);
        for (const auto& name : outputs) {
            spec.outputs.push_back(model.graph.add_tensor(name, Type::tensor(DType::f32)));
        }
        const auto made = spec.outputs;
        model.graph.append(std::move(spec));
        return made;
    }
    TensorId op(const std::string& type, std::vector<TensorId> inputs, const std::string& output,
                std::vector<Attribute> attributes = {}) {
        return several(type, std::move(inputs), {output}, std::move(attributes))[0];
    }
    TensorId conv(TensorId x, std::int64_t in, std::int64_t out, const std::string& name,
                  std::int64_t group = 1) {
        return op(
            "Conv", {x, weights(name + ".w", {out, in / group, 3, 3}), weights(name + ".b", {out})},
            name,
            {{"group", group, {}, {}}, {"pads", std::vector<std::int64_t>{1, 1, 1, 1}, {}, {}}});
    }
    TensorId norm(TensorId x, std::int64_t channels, const std::string& name) {
        const Shape one{channels};
        const auto variance = model.graph.add_constant(
            name + ".v", Constant::of(DType::f32, one,
                                      std::vector<float>(static_cast<std::size_t>(channels), 1)));
        return op("BatchNormalization",
                  {x, weights(name + ".s", one), weights(name + ".t", one),
                   weights(name + ".m", one), variance},
                  name);
    }
    TensorId gemm(TensorId x, std::int64_t in, std::int64_t out, const std::string& name) {
        return op("Gemm", {x, weights(name + ".w", {out, in}), weights(name + ".b", {out})}, name,
                  {{"transB", std::int64_t{1}, {}, {}}});
    }

    Model model;

private:
    std::uint64_t seed_ = 0;
};

std::shared_ptr<Engine> engine() {
    return open_engine(testing::engine_options("reference"));
}

std::vector<NamedValue> inputs_of(const Model& model) {
    const auto& tensor = model.graph.tensor(model.graph.inputs()[0]);
    const auto shape = *tensor.type.shape();
    const auto numbers = drawn(element_count(shape), 77);
    return {{tensor.name, Value::copy(DType::f32, shape, std::as_bytes(std::span(numbers)))}};
}

Shapes shapes_in(const Model& model) {
    return shapes_of(observed_types(model, engine(), inputs_of(model)));
}

Pruned pruned_channels(const Model& model, PruneOptions options = {}) {
    options.method = PruneMethod::channels;
    return prune(model, options, shapes_in(model));
}

const Shape& shape_of(const Model& model, const std::string& tensor) {
    return model.graph.tensor(*model.graph.find_tensor(tensor)).constant->shape();
}

// What is left has the shapes that were foretold, and gives what the model gives with zeros in the
// place of what is gone.
void expect_consistent(const Model& model, const Pruned& pruned) {
    EXPECT_THAT(pruned.model.graph.verify(), ::testing::IsEmpty());
    const auto seen = shapes_in(pruned.model);
    for (const auto id : model.graph.tensors()) {
        if (pruned.model.graph.contains(id) && seen[index(id)]) {
            EXPECT_EQ(seen[index(id)], pruned.shapes[index(id)]) << model.graph.tensor(id).name;
        }
    }
    const auto zeroed = apply_masks(model, pruned.masks);
    const auto expected = Session(zeroed.model, engine()).run(inputs_of(model));
    const auto got = Session(pruned.model, engine()).run(inputs_of(model));
    ASSERT_EQ(expected.size(), got.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(expected[i].value.shape(), got[i].value.shape());
        const auto x = expected[i].value.as<float>();
        const auto y = got[i].value.as<float>();
        for (std::size_t k = 0; k < x.size(); ++k) {
            ASSERT_NEAR(x[k], y[k], 1e-4 * (1 + std::abs(x[k])));
        }
    }
}

std::string why(const Pruned& pruned, const std::string& op) {
    for (const auto& weight : pruned.weights) {
        if (weight.name == op) {
            return weight.why;
        }
    }
    return "no such op";
}

TEST(PruneElements, TheSmallestGoExactlyAsMany) {
    Net net;
    net.model.graph.set_outputs({net.gemm(net.input({1, 10}), 10, 7, "y")});
    PruneOptions options;
    options.sparsity = 0.3;
    const auto pruned = prune(net.model, options, {});
    ASSERT_EQ(pruned.weights.size(), 1U);
    EXPECT_EQ(pruned.weights[0].nonzero_after, 49U);
    const auto before =
        numbers_of(*net.model.graph.tensor(*net.model.graph.find_tensor("y.w")).constant);
    const auto after =
        numbers_of(*pruned.model.graph.tensor(*pruned.model.graph.find_tensor("y.w")).constant);
    double largest_gone = 0;
    double smallest_left = 9;
    for (std::size_t i = 0; i < before.size(); ++i) {
        if (after[i] == 0) {
            largest_gone = std::max(largest_gone, std::abs(before[i]));
        } else {
            EXPECT_EQ(after[i], before[i]);
            smallest_left = std::min(smallest_left, std::abs(after[i]));
        }
    }
    EXPECT_LE(largest_gone, smallest_left);
}

TEST(PruneElements, EqualOnesGoInOrder) {
    Net net;
    const auto x = net.input({1, 4});
    const auto w = net.model.graph.add_constant(
        "w", Constant::of(DType::f32, {4, 2}, std::vector<float>{1, -1, 1, 1, -1, 1, 1, 1}));
    net.model.graph.set_outputs({net.op("MatMul", {x, w}, "y")});
    const auto pruned = prune(net.model, {}, {});
    EXPECT_THAT(pruned.masks[0].kept, ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
}

TEST(PruneElements, OneRankingForAllOrOneForEach) {
    Net net;
    const auto x = net.input({1, 4});
    auto& graph = net.model.graph;
    const auto small =
        graph.add_constant("small", Constant::of(DType::f32, {4, 4}, std::vector<float>(16, 0.1F)));
    const auto large =
        graph.add_constant("large", Constant::of(DType::f32, {4, 4}, std::vector<float>(16, 5)));
    graph.set_outputs({net.op("MatMul", {net.op("MatMul", {x, small}, "a"), large}, "b")});
    PruneOptions options;
    EXPECT_EQ(prune(net.model, options, {}).weights[0].nonzero_after, 8U);
    options.global = true;
    const auto pruned = prune(net.model, options, {});
    EXPECT_EQ(pruned.weights[0].nonzero_after, 0U);
    EXPECT_EQ(pruned.weights[1].nonzero_after, 16U);
}

TEST(PruneElements, RandomIsTheSameForOneSeed) {
    Net net;
    net.model.graph.set_outputs({net.gemm(net.input({1, 64}), 64, 32, "y")});
    PruneOptions options;
    options.method = PruneMethod::random;
    options.seed = 5;
    const auto one = prune(net.model, options, {}).masks[0].kept;
    EXPECT_EQ(prune(net.model, options, {}).masks[0].kept, one);
    EXPECT_EQ(std::count(one.begin(), one.end(), 0), 1024);
    options.seed = 6;
    EXPECT_NE(prune(net.model, options, {}).masks[0].kept, one);
}

TEST(PruneElements, PatternsAlongTheAxisThatIsSummedOver) {
    Net net;
    const auto x = net.input({1, 8, 4, 4});
    net.model.graph.set_outputs({net.conv(net.conv(x, 8, 6, "a"), 6, 4, "b")});
    PruneOptions options;
    parse_prune_method("2:4", options);
    const auto pruned = prune(net.model, options, {});
    EXPECT_EQ(pruned.weights[0].nonzero_after * 2, pruned.weights[0].nonzero_before);
    EXPECT_THAT(pruned.weights[1].why, HasSubstr("has 6, no multiple of 4"));
    const auto& kept = pruned.masks[0].kept;  // 6x8x3x3
    for (std::size_t out = 0; out < 6; ++out) {
        for (std::size_t place = 0; place < 9; ++place) {
            for (std::size_t first = 0; first < 8; first += 4) {
                int stay = 0;
                for (std::size_t i = first; i < first + 4; ++i) {
                    stay += kept[(out * 8 + i) * 9 + place];
                }
                EXPECT_EQ(stay, 2);
            }
        }
    }
}

TEST(PruneElements, WhatMakesNoSenseIsRefused) {
    Net net;
    net.model.graph.set_outputs({net.gemm(net.input({1, 4}), 4, 4, "y")});
    PruneOptions options;
    options.sparsity = 1;
    EXPECT_THROW(prune(net.model, options, {}), Error);
    for (const auto* text : {"4:4", "0:4"}) {
        PruneOptions odd;
        parse_prune_method(text, odd);
        EXPECT_THROW(prune(net.model, odd, {}), Error) << text;
    }
    for (const auto* text : {"", "2:", ":4", "2:4x", "half"}) {
        PruneOptions odd;
        EXPECT_THROW(parse_prune_method(text, odd), Error) << text;
    }
    PruneOptions none;
    none.at = op("Relu") | op("Gemm");
    none.keep = op("Gemm");
    EXPECT_THROW(prune(net.model, none, {}), Error);
}

TEST(PruneChannels, AChainWithNormalisation) {
    Net net;
    auto x = net.op("Relu", {net.norm(net.conv(net.input({2, 3, 6, 6}), 3, 8, "a"), 8, "n")}, "r");
    x = net.op("GlobalAveragePool", {net.conv(x, 8, 6, "b")}, "p");
    net.model.graph.set_outputs({net.gemm(net.op("Flatten", {x}, "f"), 6, 5, "y")});
    const auto pruned = pruned_channels(net.model);
    expect_consistent(net.model, pruned);
    EXPECT_EQ(shape_of(pruned.model, "a.w"), (Shape{4, 3, 3, 3}));
    EXPECT_EQ(shape_of(pruned.model, "n.v"), (Shape{4}));
    EXPECT_EQ(shape_of(pruned.model, "b.w"), (Shape{3, 4, 3, 3}));
    EXPECT_EQ(shape_of(pruned.model, "y.w"), (Shape{5, 3}));
    EXPECT_THAT(why(pruned, "y"), HasSubstr("output of the model"));
    EXPECT_EQ(why(pruned, "a"), "");
    // The filters that stay are those with the largest sums of magnitudes.
    const auto before =
        numbers_of(*net.model.graph.tensor(*net.model.graph.find_tensor("a.w")).constant);
    std::vector<std::pair<double, std::int64_t>> sums;
    for (std::int64_t i = 0; i < 8; ++i) {
        double sum = 0;
        for (std::int64_t k = 0; k < 27; ++k) {
            sum += std::abs(before[static_cast<std::size_t>(i * 27 + k)]);
        }
        sums.emplace_back(sum, i);
    }
    std::sort(sums.begin(), sums.end());
    std::vector<std::int64_t> best;
    for (std::size_t i = 4; i < 8; ++i) {
        best.push_back(sums[i].second);
    }
    std::sort(best.begin(), best.end());
    EXPECT_EQ(pruned.kept.at("a")[0].places, best);
}

TEST(PruneChannels, FlattenedPlacesGoTogether) {
    Net net;
    const auto x = net.op("Flatten", {net.conv(net.input({1, 2, 4, 4}), 2, 6, "a")}, "f");
    const auto h = net.op("Relu", {net.gemm(x, 96, 10, "h")}, "r");
    net.model.graph.set_outputs({net.gemm(h, 10, 3, "y")});
    const auto pruned = pruned_channels(net.model);
    expect_consistent(net.model, pruned);
    EXPECT_EQ(shape_of(pruned.model, "h.w"), (Shape{5, 48}));
}

TEST(PruneChannels, AReshapeIsToldTheNewNumber) {
    Net net;
    const auto x = net.conv(net.input({2, 2, 4, 4}), 2, 6, "a");
    const auto shape = net.integers("shape", {-1, 96});
    const auto f = net.op("Reshape", {x, shape}, "f");
    net.model.graph.set_outputs({net.gemm(f, 96, 3, "y")});
    const auto pruned = pruned_channels(net.model);
    expect_consistent(net.model, pruned);
    EXPECT_EQ(shape_of(pruned.model, "y.w"), (Shape{3, 48}));
}

TEST(PruneChannels, AConstantInAnotherFormIsShortened) {
    Net net;
    const auto x = net.conv(net.input({1, 2, 4, 4}), 2, 6, "a");
    const auto shift = net.op(
        "Reshape", {net.weights("shift", {6}), net.integers("form", {1, 6, 1, 1})}, "formed");
    net.model.graph.set_outputs({net.conv(net.op("Add", {x, shift}, "s"), 6, 3, "y")});
    const auto pruned = pruned_channels(net.model);
    EXPECT_EQ(shape_of(pruned.model, "a.w"), (Shape{3, 2, 3, 3}));
    expect_consistent(net.model, pruned);
}

TEST(PruneChannels, ResidualBranchesAreOneGroup) {
    Net net;
    const auto stem = net.conv(net.input({1, 3, 5, 5}), 3, 8, "stem");
    const auto a = net.op("Relu", {net.conv(stem, 8, 4, "a")}, "ar");
    const auto sum = net.op("Add", {net.conv(a, 4, 8, "b"), stem}, "sum");
    net.model.graph.set_outputs({net.conv(sum, 8, 2, "y")});
    const auto pruned = pruned_channels(net.model);
    expect_consistent(net.model, pruned);
    EXPECT_EQ(pruned.kept.at("stem")[0].places, pruned.kept.at("b")[0].places);
    EXPECT_EQ(shape_of(pruned.model, "a.w"), (Shape{2, 4, 3, 3}));
    EXPECT_EQ(pruned.channels_before, 8U + 4U + 2U);
    EXPECT_EQ(pruned.channels_after, 4U + 2U + 2U);
    // A member of the group that is to be kept keeps all of it.
    PruneOptions options;
    options.keep = named("b");
    const auto held = pruned_channels(net.model, options);
    expect_consistent(net.model, held);
    EXPECT_FALSE(held.kept.contains("stem"));
    EXPECT_THAT(why(held, "stem"), HasSubstr("'b' is to be kept"));
}

TEST(PruneChannels, ConcatDepthwiseAndGroups) {
    Net net;
    const auto x = net.input({1, 4, 5, 5});
    const auto a = net.conv(x, 4, 6, "a");
    const auto b = net.conv(a, 6, 6, "depth", 6);
    const auto c = net.conv(x, 4, 8, "c");
    const auto d = net.conv(c, 8, 12, "grouped", 4);
    const auto all = net.op("Concat", {b, x, d}, "all", {{"axis", std::int64_t{1}, {}, {}}});
    net.model.graph.set_outputs({net.conv(all, 22, 2, "y")});
    const auto pruned = pruned_channels(net.model);
    expect_consistent(net.model, pruned);
    EXPECT_EQ(shape_of(pruned.model, "depth.w"), (Shape{3, 1, 3, 3}));
    const auto depth = *pruned.model.graph.find_op("depth");
    EXPECT_EQ(pruned.model.graph.op(depth).integer("group", 0), 3);
    // Of every one of the four groups as many go.
    EXPECT_EQ(shape_of(pruned.model, "c.w"), (Shape{4, 4, 3, 3}));
    EXPECT_EQ(shape_of(pruned.model, "grouped.w"), (Shape{8, 1, 3, 3}));
    EXPECT_EQ(shape_of(pruned.model, "y.w"), (Shape{2, 3 + 4 + 8, 3, 3}));
}

TEST(PruneChannels, SplitPartsAreToldTheirSizes) {
    Net net;
    const auto x = net.conv(net.input({1, 2, 4, 4}), 2, 8, "a");
    const auto parts = net.several("Split", {x, net.integers("sizes", {2, 6})}, {"s", "t"},
                                   {{"axis", std::int64_t{1}, {}, {}}});
    const auto both =
        net.op("Concat", {net.conv(parts[0], 2, 3, "b"), net.conv(parts[1], 6, 3, "c")}, "both",
               {{"axis", std::int64_t{1}, {}, {}}});
    net.model.graph.set_outputs({net.conv(both, 6, 2, "y")});
    for (const double share : {0.3, 0.5, 0.9}) {
        PruneOptions options;
        options.sparsity = share;
        const auto pruned = pruned_channels(net.model, options);
        expect_consistent(net.model, pruned);
    }
}

TEST(PruneChannels, HeadsOfAttentionGoWhole) {
    Net net;
    const auto x = net.input({1, 5, 8});
    const auto project = [&](const std::string& name) {
        const auto made = net.op("MatMul", {x, net.weights(name + ".w", {8, 12})}, name);
        const auto parted =
            net.op("Reshape", {made, net.integers(name + ".s", {0, 0, 4, 3})}, name + "4");
        return net.op("Transpose", {parted}, name + "t",
                      {{"perm", std::vector<std::int64_t>{0, 2, 1, 3}, {}, {}}});
    };
    const auto q = project("q");
    const auto k = net.op("Transpose", {project("k")}, "kt2",
                          {{"perm", std::vector<std::int64_t>{0, 1, 3, 2}, {}, {}}});
    const auto v = project("v");
    const auto scores = net.op("Softmax", {net.op("MatMul", {q, k}, "qk")}, "scores");
    const auto mixed = net.op("Transpose", {net.op("MatMul", {scores, v}, "av")}, "avt",
                              {{"perm", std::vector<std::int64_t>{0, 2, 1, 3}, {}, {}}});
    const auto joined = net.op("Reshape", {mixed, net.integers("join", {0, 0, -1})}, "joined");
    net.model.graph.set_outputs({net.op("MatMul", {joined, net.weights("o.w", {12, 8})}, "y")});
    const auto pruned = pruned_channels(net.model);
    expect_consistent(net.model, pruned);
    EXPECT_EQ(shape_of(pruned.model, "q.w"), (Shape{8, 6}));
    EXPECT_EQ(shape_of(pruned.model, "o.w"), (Shape{6, 8}));
}

TEST(PruneChannels, WhatIsNotKnownStays) {
    Net net;
    const auto a = net.conv(net.input({1, 2, 4, 4}), 2, 4, "a");
    const auto b = net.op("DepthToSpace", {a}, "d", {{"blocksize", std::int64_t{2}, {}, {}}});
    const auto c = net.conv(b, 1, 4, "c");
    const auto mean =
        net.op("ReduceMean", {c}, "m", {{"axes", std::vector<std::int64_t>{1}, {}, {}}});
    net.model.graph.set_outputs({mean});
    const auto pruned = pruned_channels(net.model);
    EXPECT_THAT(why(pruned, "a"), HasSubstr("'d' (DepthToSpace)"));
    EXPECT_THAT(why(pruned, "c"), HasSubstr("'m' works over it"));
    EXPECT_TRUE(pruned.masks.empty());
}

TEST(PruneChannels, SharedConstantsLoseWhatAllCanLose) {
    Net net;
    const auto x = net.input({1, 4});
    const auto a = net.gemm(x, 4, 4, "a");
    // The same weights once more: what goes of the columns goes of the model's input, too.
    const auto b = net.op("Gemm", {a, *net.model.graph.find_tensor("a.w")}, "b",
                          {{"transB", std::int64_t{1}, {}, {}}});
    net.model.graph.set_outputs({net.gemm(b, 4, 2, "y")});
    const auto pruned = pruned_channels(net.model);
    expect_consistent(net.model, pruned);
    EXPECT_EQ(shape_of(pruned.model, "a.w"), (Shape{4, 4}));
    EXPECT_THAT(why(pruned, "a"), HasSubstr("also read by"));
}

TEST(PruneChannels, GloballyAndInMultiples) {
    Net net;
    auto x = net.conv(net.input({1, 3, 5, 5}), 3, 16, "a");
    x = net.conv(x, 16, 24, "b");
    net.model.graph.set_outputs({net.conv(x, 24, 2, "y")});
    for (const auto rank : {ChannelRank::l1, ChannelRank::l2, ChannelRank::random}) {
        PruneOptions options;
        options.global = true;
        options.rank = rank;
        options.sparsity = 0.4;
        options.multiple = 4;
        const auto pruned = pruned_channels(net.model, options);
        expect_consistent(net.model, pruned);
        EXPECT_EQ(shape_of(pruned.model, "a.w")[0] % 4, 0);
        EXPECT_EQ(shape_of(pruned.model, "b.w")[0] % 4, 0);
    }
}

TEST(Masks, FromFilesAndAsAnInstrument) {
    Net net;
    const auto a = net.op("Relu", {net.conv(net.input({1, 4, 5, 5}), 4, 8, "a")}, "r");
    net.model.graph.set_outputs({net.conv(a, 8, 4, "y")});
    const auto pruned = prune(net.model, {}, {});
    const TestFolder folder;
    for (const auto* name : {"m.npz", "m.safetensors"}) {
        save_masks(pruned.masks, folder.path() / name);
        const auto masks = load_masks(folder.path() / name);
        const auto baked = apply_masks(net.model, masks);
        const auto expected = Session(pruned.model, engine()).run(inputs_of(net.model));
        EXPECT_TRUE(same_bits(expected, Session(baked.model, engine()).run(inputs_of(net.model))));
        const auto tool = mask_tool(net.model, masks);
        SessionOptions options;
        options.tools = {tool.get()};
        EXPECT_TRUE(
            same_bits(expected, Session(net.model, engine(), options).run(inputs_of(net.model))));
    }
    EXPECT_THROW(save_masks(pruned.masks, folder.path() / "m.txt"), Error);
    auto wrong = pruned.masks;
    wrong[0].tensor = "a.x";
    EXPECT_THROW(apply_masks(net.model, wrong), Error);
    wrong = pruned.masks;
    wrong[0].shape = {1};
    EXPECT_THROW(mask_tool(net.model, wrong), Error);
}

TEST(SparseStorage, WhereItIsSmaller) {
    Net net;
    net.model.graph.set_outputs({net.gemm(net.input({1, 32}), 32, 16, "y")});
    PruneOptions options;
    options.sparsity = 0.9;
    auto pruned = prune(net.model, options, {});
    const auto dense = pruned.model.graph.tensor(*pruned.model.graph.find_tensor("y.w")).constant;
    const auto stored = store_sparse(pruned.model);
    EXPECT_EQ(stored.constants, 1U);
    const auto& sparse =
        *pruned.model.graph.tensor(*pruned.model.graph.find_tensor("y.w")).constant;
    ASSERT_TRUE(sparse.is_sparse());
    EXPECT_EQ(numbers_of(sparse), numbers_of(*dense));
    auto half = prune(net.model, {}, {});
    EXPECT_EQ(store_sparse(half.model).constants, 0U);
}

}  // namespace
}  // namespace trocar
