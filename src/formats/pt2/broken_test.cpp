#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/pt2/reader.h"
#include "trocar/error.h"
#include "util/test_zip.h"

// Archives that are broken, too new, or hold what this version does not know.
namespace trocar::pt2 {
namespace {

using testing::HasSubstr;

const std::string f32 = R"("dtype":7,"requires_grad":false,"device":{"type":"cpu"},"layout":7)";

std::string meta(const std::string& sizes, const std::string& strides, int offset) {
    return fmt::format(R"({{{},"sizes":[{}],"strides":[{}],"storage_offset":{{"as_int":{}}}}})",
                       f32, sizes, strides, offset);
}

const std::string two = R"({"as_int":2})";
const std::string one = R"({"as_int":1})";

struct Parts {
    std::string version = R"({"major":8,"minor":99})";
    std::string argument = R"({"as_tensor":{"name":"p_w"}})";
    std::string target = "torch.ops.aten.add.Tensor";
    std::string payload = fmt::format(
        R"({{"path_name":"weight_0","is_param":true,"use_pickle":false,"tensor_meta":{}}})",
        meta(two, one, 0));
    std::string data = std::string(8, '\0');
    std::string more = R"("news":[1,2])";
    std::string archive_version = "0";
    std::string folder = "anything/";
};

std::string archive(const Parts& parts) {
    const auto tensor = meta(two, one, 0);
    const auto program = fmt::format(
        R"({{"graph_module":{{"graph":{{"inputs":[],"outputs":[{{"as_tensor":{{"name":"y"}}}}],
            "nodes":[{{"target":"{}","inputs":[{{"name":"self","arg":{{"as_tensor":{{"name":"x"}}}}}},
                {{"name":"other","arg":{}}}],"outputs":[{{"as_tensor":{{"name":"y"}}}}],"metadata":{{}}}}],
            "tensor_values":{{"x":{},"y":{}}},"sym_int_values":{{}},"sym_bool_values":{{}}}},
            "signature":{{"input_specs":[
                {{"parameter":{{"arg":{{"name":"p_w"}},"parameter_name":"w"}}}},
                {{"user_input":{{"arg":{{"as_tensor":{{"name":"x"}}}}}}}}],
              "output_specs":[{{"user_output":{{"arg":{{"as_tensor":{{"name":"y"}}}}}}}}]}},
            "module_call_graph":[]}},"opset_version":{{"aten":10}},"range_constraints":{{}},
            "schema_version":{},{}}})",
        parts.target, parts.argument, tensor, tensor, parts.version, parts.more);
    return TestZip()
        .add(parts.folder + "data/weights/weight_0", parts.data, 13)
        .add(parts.folder + "data/weights/model_weights_config.json",
             fmt::format(R"({{"config":{{"w":{}}}}})", parts.payload))
        .add(parts.folder + "models/model.json", program)
        .add(parts.folder + "archive_format", "pt2")
        .add(parts.folder + "archive_version", parts.archive_version)
        .bytes();
}

Model read(const std::string& bytes) {
    return read_pt2(std::as_bytes(std::span(bytes)), nullptr, "m.pt2");
}

std::string fault(const Parts& parts) {
    const auto bytes = archive(parts);
    try {
        const auto model = read(bytes);
        for (const auto id : model.graph.tensors()) {
            if (model.graph.tensor(id).constant) {
                model.graph.tensor(id).constant->bytes();
            }
        }
    } catch (const Error& e) {
        EXPECT_TRUE(e.fault() == Fault::input || e.fault() == Fault::unsupported);
        return e.what();
    }
    return "no error";
}

Parts with_payload(const std::string& tensor_meta, const std::string& data) {
    Parts parts;
    parts.payload = fmt::format(
        R"({{"path_name":"weight_0","is_param":true,"use_pickle":false,"tensor_meta":{}}})",
        tensor_meta);
    parts.data = data;
    return parts;
}

TEST(Pt2Broken, ASoundArchiveIsRead) {
    EXPECT_EQ(fault({}), "no error");
    Parts parts;
    parts.folder = "";
    EXPECT_EQ(fault(parts), "no error");
    const auto bytes = archive({});
    const auto model = read(bytes);
    EXPECT_EQ(model.metadata.back().key, "module_call_graph");
    bool kept = false;
    for (const auto& property : model.metadata) {
        kept = kept || (property.key == "news" && property.value == "[1,2]");
    }
    EXPECT_TRUE(kept);
}

TEST(Pt2Broken, WhatIsTooNewIsSaid) {
    Parts parts;
    parts.version = R"({"major":9,"minor":0})";
    EXPECT_THAT(fault(parts), HasSubstr("version 9 of torch's export schema"));
    parts = {};
    parts.archive_version = "1";
    EXPECT_THAT(fault(parts), HasSubstr("archive of version 1"));
    parts = {};
    parts.version = "{}";
    EXPECT_THAT(fault(parts), HasSubstr("does not say which version"));
}

TEST(Pt2Broken, OlderLayoutsAreRefusedWithAHint) {
    const auto bytes = TestZip().add("serialized_exported_program.json", "{}").bytes();
    try {
        read(bytes);
        FAIL();
    } catch (const Error& e) {
        EXPECT_EQ(e.fault(), Fault::unsupported);
        EXPECT_THAT(e.hint(), HasSubstr("torch.export.save"));
    }
    const auto compiled =
        TestZip().add("a/archive_format", "pt2").add("a/data/aotinductor/model/x.so", "").bytes();
    EXPECT_THROW(read(compiled), Error);
}

TEST(Pt2Broken, PicklesAreRefusedWhenTheyAreNeeded) {
    Parts parts;
    parts.payload = fmt::format(
        R"({{"path_name":"weight_0","is_param":true,"use_pickle":true,"tensor_meta":{}}})",
        meta(two, one, 0));
    EXPECT_THAT(fault(parts), HasSubstr("never executed"));
    read(archive(parts));
    parts.payload =
        R"({"path_name":"weight_0","is_param":false,"use_pickle":true,"tensor_meta":null})";
    EXPECT_THAT(fault(parts), HasSubstr("never executed"));
}

TEST(Pt2Broken, TensorsLieInsideTheirFiles) {
    const std::string eight(8, '\0');
    EXPECT_EQ(fault(with_payload(meta(two, one, 0), eight)), "no error");
    EXPECT_EQ(fault(with_payload(meta(two, R"({"as_int":0})", 1), eight)), "no error");
    EXPECT_THAT(fault(with_payload(meta(two, one, 1), eight)), HasSubstr("reach to 3"));
    EXPECT_THAT(fault(with_payload(meta(two, two, 0), eight)), HasSubstr("reach to 3"));
    EXPECT_THAT(fault(with_payload(meta(two, R"({"as_int":-1})", 1), eight)),
                HasSubstr("no number"));
    EXPECT_THAT(fault(with_payload(meta(two, R"({"as_int":9223372036854775807})", 1), eight)),
                HasSubstr("reach to"));
    EXPECT_THAT(
        fault(with_payload(meta(R"({"as_int":9223372036854775807})", R"({"as_int":0})", 0), eight)),
        HasSubstr("elements are made of"));
    EXPECT_THAT(fault(with_payload(meta(R"({"as_int":-2})", one, 0), eight)),
                HasSubstr("negative"));
    EXPECT_THAT(fault(with_payload(meta(two, one, 0), "")), HasSubstr("no elements"));
    EXPECT_THAT(fault(with_payload(R"({"dtype":"x","sizes":[]})", eight)), HasSubstr("dtype"));
}

TEST(Pt2Broken, ArgumentsOfUnknownKindsAreKept) {
    Parts parts;
    parts.argument = R"({"as_future":{"a":[1]}})";
    const auto bytes = archive(parts);
    const auto model = read(bytes);
    const auto& op = model.graph.op(model.graph.first());
    EXPECT_EQ(op.text("other", ""), R"(as_future {"a":[1]})");
    EXPECT_EQ(op.inputs.size(), 1u);
}

TEST(Pt2Broken, TargetsOfOtherNamespaces) {
    const auto spec = [](const char* target) {
        Parts parts;
        parts.target = target;
        const auto bytes = archive(parts);
        const auto model = read(bytes);
        const auto& op = model.graph.op(model.graph.first());
        return fmt::format("{}|{}|{}", op.domain, op.type, op.overload);
    };
    EXPECT_EQ(spec("torch.ops.aten.add.Tensor"), "|add|Tensor");
    EXPECT_EQ(spec("torch.ops.mylib.op.out"), "mylib|op|out");
    EXPECT_EQ(spec("torch.ops.higher_order.cond"), "higher_order|cond|");
    EXPECT_EQ(spec("_operator.mul"), "_operator|mul|");
    EXPECT_EQ(spec("#vendor:op"), "#vendor|op|");
    EXPECT_EQ(spec("name"), "python|name|");
    Parts parts;
    for (const char* target : {"", "torch.ops.", "torch.ops.aten", "torch.ops.aten.", "a."}) {
        parts.target = target;
        EXPECT_NE(fault(parts), "no error") << target;
    }
}

TEST(Pt2Broken, ValuesMustBeDefined) {
    Parts parts;
    parts.argument = R"({"as_tensor":{"name":"nobody"}})";
    EXPECT_THAT(fault(parts), HasSubstr("op 0 (torch.ops.aten.add.Tensor): it reads 'nobody'"));
    parts.argument = R"({"as_tensor":{"name":"y"}})";
    EXPECT_THAT(fault(parts), HasSubstr("which nothing before it defines"));
    parts.argument = "3";
    EXPECT_NE(fault(parts), "no error");
    parts.argument = R"({"as_tensor":{"name":"x"},"as_int":3})";
    EXPECT_THAT(fault(parts), HasSubstr("both"));
}

TEST(Pt2Broken, EveryCutIsAnError) {
    const auto whole = archive({});
    for (std::size_t size = 0; size < whole.size(); size += 7) {
        const auto cut = whole.substr(0, size);
        EXPECT_THROW(read(cut), Error) << size;
    }
}

}  // namespace
}  // namespace trocar::pt2
