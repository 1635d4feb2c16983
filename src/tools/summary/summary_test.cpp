#include <gtest/gtest.h>

#include "tools/summary/attributes.h"
#include "tools/summary/dependence.h"
#include "tools/summary/parameters.h"
#include "tools/summary/rows.h"
#include "tools/summary/tree.h"

namespace trocar::summary {
namespace {

// A model that is put together op by op; every op writes one tensor of the shape that is given.
class Net {
public:
    Model model;

    TensorId input(const std::string& name, const Shape& shape) {
        return model.graph.add_input(name, Type::tensor(DType::f32, shape));
    }
    TensorId constant(const std::string& name, const Shape& shape, DType dtype = DType::f32) {
        std::vector<std::byte> bytes(byte_size(dtype, element_count(shape)), std::byte{1});
        return model.graph.add_constant(name, Constant::copy(dtype, shape, bytes));
    }
    TensorId op(const char* type, const std::string& module, std::vector<TensorId> inputs,
                const Shape& shape, std::vector<Attribute> attributes = {}) {
        TensorId out = model.graph.add_tensor("", Type::tensor(DType::f32, shape));
        OpSpec spec;
        spec.type = type;
        spec.name = module.empty() ? "" : "/" + module + "/" + type;
        spec.origin.module = module;
        spec.inputs = std::move(inputs);
        spec.outputs = {out};
        spec.attributes = std::move(attributes);
        model.graph.append(std::move(spec));
        return out;
    }
    void done(TensorId out) {
        model.graph.set_outputs({out});
        model.dialect = "onnx";
        scope_ = read_scope(model);
        settle(*scope_);
        inventory_ = take_inventory(*scope_);
        zeros_ = scan_all(inventory_.jobs, 1);
        rows_ = count_rows(*scope_, inventory_, zeros_, true);
    }
    const Inventory& inventory() const { return inventory_; }
    const Rows& rows() const { return rows_; }
    const Scope& scope() const { return *scope_; }

private:
    std::unique_ptr<Scope> scope_;
    Inventory inventory_;
    std::vector<Zeros> zeros_;
    Rows rows_;
};

Attribute attribute(const char* name, Attribute::Value value) {
    return {.name = name, .value = std::move(value), .reference = {}, .source = {}};
}

using Ints = std::vector<std::int64_t>;
using Labels = std::vector<std::string>;

Labels labels(const std::vector<Layer>& layers) {
    Labels all;
    for (const Layer& layer : layers) {
        all.push_back(std::string(static_cast<std::size_t>(layer.depth), ' ') + layer.label +
                      (layer.times > 1 ? " ×" + std::to_string(layer.times) : ""));
    }
    return all;
}

// --- Parameters
// -------------------------------------------------------------------------------------

TEST(Parameters, VectorsOfDifferentLayersCountEachAlthoughTheFileSharesThem) {
    Net net;
    TensorId x = net.input("x", {1, 4, 8, 8});
    TensorId zero = net.constant("zero", {4});
    TensorId one = net.constant("one", {4});
    for (const char* module : {"bn1", "bn2"}) {
        x = net.op("BatchNormalization", module, {x, one, zero, zero, one}, {1, 4, 8, 8});
    }
    net.done(x);
    EXPECT_EQ(net.inventory().parameters, 16U);  // scale and bias of two layers
    EXPECT_EQ(net.inventory().buffers, 16U);     // mean and variance
    EXPECT_EQ(net.inventory().stored, 8U);
}

TEST(Parameters, SharingThroughIdentityOpsIsSharing) {
    Net net;
    TensorId x = net.input("x", {1, 4, 8, 8});
    TensorId zero = net.constant("zero", {4});
    TensorId copy = net.op("Identity", "", {zero}, {4});
    TensorId first = net.constant("first", {4, 4, 1, 1});
    TensorId second = net.constant("second", {4, 4, 1, 1});
    x = net.op("Conv", "a", {x, first, zero}, {1, 4, 8, 8});
    x = net.op("Conv", "b", {x, second, copy}, {1, 4, 8, 8});
    net.done(x);
    EXPECT_EQ(net.inventory().parameters, 16U + 4 + 16 + 4);
    EXPECT_EQ(net.inventory().stored, 36U);
    EXPECT_EQ(net.rows().passing, 1U);
}

TEST(Parameters, TiedMatricesCountOnce) {
    Net net;
    TensorId ids = net.input("ids", {5});
    TensorId table = net.constant("table", {100, 8});
    TensorId x = net.op("Gather", "embedding", {table, ids}, {5, 8});
    x = net.op("Gemm", "head", {x, table}, {5, 100}, {attribute("transB", std::int64_t{1})});
    net.done(x);
    EXPECT_EQ(net.inventory().parameters, 800U);
    EXPECT_EQ(net.rows().rows[0].sums.parameters, 800U);
    EXPECT_EQ(net.rows().rows[1].sums.parameters, 0U);
    EXPECT_EQ(net.rows().rows[1].sums.shared_parameters, 800U);
}

TEST(Parameters, AModuleThatIsCalledTwiceHasItsParametersOnce) {
    Net net;
    TensorId x = net.input("x", {1, 4});
    TensorId matrix = net.constant("w", {4, 4});
    TensorId bias = net.constant("b", {4});
    for (int call = 0; call < 2; ++call) {
        x = net.op("Gemm", "cell", {x, matrix, bias}, {1, 4});
    }
    net.done(x);
    EXPECT_EQ(net.inventory().parameters, 20U);
}

TEST(Parameters, WithoutModulesTheMatrixTellsTheLayer) {
    Net net;
    TensorId x = net.input("x", {1, 4});
    TensorId first = net.constant("w1", {4, 4});
    TensorId second = net.constant("w2", {4, 4});
    TensorId bias = net.constant("b", {4});
    for (TensorId w : {first, second, first}) {
        x = net.op("Gemm", "", {x, w, bias}, {1, 4});
    }
    net.done(x);
    EXPECT_EQ(net.inventory().parameters, 2U * 20);
}

TEST(Parameters, QuantizedWeightsBelongToTheLayerThatReadsThem) {
    Net net;
    TensorId x = net.input("x", {1, 3, 8, 8});
    TensorId w = net.constant("w", {4, 3, 3, 3}, DType::i8);
    TensorId scale = net.constant("scale", {4});
    TensorId real = net.op("DequantizeLinear", "", {w, scale}, {4, 3, 3, 3});
    x = net.op("Conv", "conv", {x, real}, {1, 4, 6, 6});
    net.done(x);
    EXPECT_EQ(net.inventory().parameters, 108U);
    EXPECT_EQ(net.inventory().stored_bytes, 108U);
    EXPECT_EQ(net.inventory().constants, 4U);
    EXPECT_EQ(net.rows().rows[1].sums.parameters, 108U);
}

TEST(Parameters, UnreadConstantsAreReportedApart) {
    Net net;
    TensorId x = net.input("x", {4});
    net.constant("left over", {100});
    net.done(net.op("Relu", "", {x}, {4}));
    EXPECT_EQ(net.inventory().parameters, 0U);
    EXPECT_EQ(net.inventory().unread, 1U);
    EXPECT_EQ(net.inventory().unread_bytes, 400U);
}

// --- The tree
// -----------------------------------------------------------------------------------------

// Three equal blocks of conv and relu, and a head.
Net blocks() {
    Net net;
    TensorId x = net.input("x", {1, 4, 8, 8});
    for (int block = 0; block < 3; ++block) {
        std::string module = "layer1." + std::to_string(block);
        TensorId w = net.constant("w" + std::to_string(block), {4, 4, 1, 1});
        x = net.op("Conv", module + ".conv", {x, w}, {1, 4, 8, 8});
        x = net.op("Relu", module + ".relu", {x}, {1, 4, 8, 8});
    }
    net.done(net.op("GlobalAveragePool", "pool", {x}, {1, 4, 1, 1}));
    return net;
}

TEST(Tree, EqualBlocksBecomeOneRow) {
    Net net = blocks();
    auto layers = layer_tree(net.rows(), {});
    EXPECT_EQ(labels(layers),
              (Labels{"layer1", " layer1.[0-2] ×3", "  conv ×3", "  relu ×3", "pool"}));
    EXPECT_EQ(layers[0].sums.macs, 3U * 4 * 64 * 4);
    EXPECT_EQ(layers[1].sums.macs, layers[0].sums.macs);
    EXPECT_EQ(layers[2].sums.parameters, 48U);
}

TEST(Tree, ExpandingShowsEachOfThem) {
    Net net = blocks();
    EXPECT_EQ(labels(layer_tree(net.rows(), {.depth = 2, .collapse = false})),
              (Labels{"layer1", " layer1.0", " layer1.1", " layer1.2", "pool"}));
}

TEST(Tree, ADepthLimitClosesModules) {
    Net net = blocks();
    auto layers = layer_tree(net.rows(), {.depth = 1});
    EXPECT_EQ(labels(layers), (Labels{"layer1", "pool"}));
    EXPECT_EQ(layers[0].type, "Conv, Relu");
}

TEST(Tree, WithoutADepthTheTreeIsAsDeepAsFits) {
    Net net = blocks();
    EXPECT_EQ(layer_tree(net.rows(), {.fit = 4}).size(), 3U);
}

TEST(Tree, OddModulePathsAreHarmless) {
    Net net;
    TensorId x = net.input("x", {4});
    std::string deep = "a";
    for (int i = 0; i < 20'000; ++i) {
        deep += ".a";
    }
    for (const std::string& module :
         {std::string(), std::string("..."), std::string("a.b.a.b"), deep}) {
        x = net.op("Relu", module, {x}, {4});
    }
    net.done(x);
    Sums sums;
    for (const Layer& layer : layer_tree(net.rows(), {})) {
        if (layer.depth == 0) {
            sums.add(layer.sums);
        }
    }
    EXPECT_EQ(sums.ops, 4U);
    EXPECT_EQ(layer_list(net.rows()).size(), 4U);
}

// --- Attributes
// -----------------------------------------------------------------------------------------

std::string attributes_of(const char* type, std::vector<Attribute> attributes,
                          std::vector<TensorFacts> inputs = {}) {
    Op op;
    op.type = type;
    op.attributes = std::move(attributes);
    return attribute_text({.op = &op, .inputs = std::move(inputs), .outputs = {}});
}

TEST(Attributes, WindowsAreShort) {
    EXPECT_EQ(attributes_of(
                  "Conv", {attribute("kernel_shape", Ints{3, 3}), attribute("strides", Ints{2, 2}),
                           attribute("pads", Ints{1, 1, 1, 1}), attribute("dilations", Ints{1, 1}),
                           attribute("group", std::int64_t{32})}),
              "k3×3 s2 p1 g32");
    EXPECT_EQ(attributes_of(
                  "MaxPool",
                  {attribute("kernel_shape", Ints{3, 1}), attribute("strides", Ints{2, 1}),
                   attribute("pads", Ints{1, 0, 1, 0}), attribute("ceil_mode", std::int64_t{1})}),
              "k3×1 s2×1 p1×0 ceil_mode=1");
    EXPECT_EQ(attributes_of("Conv", {attribute("pads", Ints{0, 1, 2, 3}),
                                     attribute("kernel_shape", Ints{1, 1})}),
              "k1×1 p0,1,2,3");
}

TEST(Attributes, AKernelThatIsNotSaidIsInTheWeight) {
    EXPECT_EQ(attributes_of("Conv", {}, {{}, {DType::f32, Shape{8, 3, 5, 5}, nullptr, true}}),
              "k5×5");
}

TEST(Attributes, OthersAreKeyAndValueUnlessUsual) {
    EXPECT_EQ(attributes_of("Gemm", {attribute("alpha", 1.0F), attribute("beta", 1.0F),
                                     attribute("transB", std::int64_t{1})}),
              "transB=1");
    EXPECT_EQ(attributes_of("Softmax", {attribute("axis", std::int64_t{-1})}), "axis=-1");
    EXPECT_EQ(attributes_of(
                  "Any", {attribute("mode", std::string("linear")), attribute("axes", Ints{0, 2})}),
              "mode=linear axes=0,2");
}

// --- What shapes depend on
// ------------------------------------------------------------------------------

TEST(Dependence, OnlyValuesThatSteerAShapeMatter) {
    Net net;
    TensorId x = net.input("x", {2, 6});
    TensorId a = net.op("Relu", "", {x}, {2, 6});
    TensorId shape = net.op("Shape", "", {a}, {2});
    TensorId target = net.op("Neg", "", {shape}, {2});
    TensorId out = net.op("Reshape", "", {a, target}, {12});
    net.done(out);
    std::vector<const Constant*> constants(net.model.graph.tensor_limit());
    auto matter = values_that_matter(net.model.graph, constants);
    EXPECT_FALSE(matter[index(x)]);
    EXPECT_FALSE(matter[index(a)]);  // only its shape is asked for
    EXPECT_TRUE(matter[index(shape)]);
    EXPECT_TRUE(matter[index(target)]);
    EXPECT_FALSE(matter[index(out)]);
}

TEST(Dependence, UnknownOpsNeedAllThatComesBefore) {
    Net net;
    TensorId x = net.input("x", {2, 6});
    TensorId a = net.op("Relu", "", {x}, {2, 6});
    net.done(net.op("NonZero", "", {a}, {2, 3}));
    std::vector<const Constant*> constants(net.model.graph.tensor_limit());
    auto matter = values_that_matter(net.model.graph, constants);
    EXPECT_TRUE(matter[index(a)]);
    EXPECT_TRUE(matter[index(x)]);
    EXPECT_FALSE(shape_key(net.scope(), net.model.graph.last(), constants));
}

TEST(Dependence, EqualOpsHaveEqualKeys) {
    Net net = blocks();
    std::vector<const Constant*> constants(net.model.graph.tensor_limit());
    std::vector<std::string> keys;
    for (OpId id : net.model.graph.ops()) {
        keys.push_back(shape_key(net.scope(), id, constants).value());
    }
    EXPECT_EQ(keys[0], keys[2]);
    EXPECT_EQ(keys[1], keys[3]);
    EXPECT_NE(keys[0], keys[1]);
}

}  // namespace
}  // namespace trocar::summary
