"""Legal models that readers and writers stumble over."""

import numpy as np
from onnx import helper

from build import FLOAT, Builder, constant, make_model, model, node, value


def small(nodes, name, inputs=None, outputs=None, constants=(), **rest):
    graph = helper.make_graph(nodes, name, inputs if inputs is not None else [value("x", FLOAT, ["n", 4])],
                              outputs if outputs is not None else [value("y", FLOAT, ["n", 4])], list(constants))
    return make_model(graph, **rest)


@model("dynamic", "shapes that depend on data: NonZero, GatherND, Expand, Resize by a computed size", shapes={"n": 3, "m": 4})
def dynamic(_):
    graph = helper.make_graph(
        [node("Abs", ["x"], ["a"], "abs"), node("NonZero", ["a"], ["where"], "nonzero"),
         node("Transpose", ["where"], ["pairs"], "transpose", perm=[1, 0]), node("GatherND", ["x", "pairs"], ["picked"], "gather"),
         node("Shape", ["picked"], ["count"], "shape"), node("Concat", ["two", "count"], ["target"], "concat", axis=0),
         node("Expand", ["picked", "target"], ["y"], "expand")],
        "dynamic", [value("x", FLOAT, ["n", "m"])], [value("y", FLOAT, [2, "k"])], [constant("two", [2], np.int64)])
    return make_model(graph)


@model("resize", "Resize with optional inputs left out in the middle, sizes given at run time", shapes={"n": 1})
def resize(_):
    graph = helper.make_graph([node("Resize", ["x", "", "", "sizes"], ["y"], "resize", mode="nearest"),
                               node("Clip", ["y", "", "six"], ["z"], "clip")], "resize",
                              [value("x", FLOAT, ["n", 1, 4, 4])], [value("z", FLOAT, ["n", 1, 8, 6])],
                              [constant("sizes", [1, 1, 8, 6], np.int64), constant("six", 6, np.float32)])
    return make_model(graph)


@model("custom_domain", "ops of a domain nobody knows, between ops that everybody knows", runs=False, shapes={"n": 1})
def custom_domain(_):
    twist = node("Twist", ["a"], ["b", "angle"], "twist", domain="com.example", turns=3, note="left", knots=[1.5, 2.5],
                 table=constant("", np.arange(6).reshape(2, 3), np.int32))
    return small([node("Relu", ["x"], ["a"], "before"), twist, node("Abs", ["b"], ["y"], "after")], "custom_domain",
                 domains=[("com.example", 4)])


@model("fragile", "an op that crashes on numbers above 1e30 and never ends on others above 1e10", runs=False, shapes={"n": 1})
def fragile(_):
    return small([node("Mul", ["x", "w"], ["a"], "scale"), node("Fragile", ["a"], ["b"], "fragile", domain="com.example"),
                  node("Add", ["b", "shift"], ["y"], "after")], "fragile",
                 constants=[constant("w", [1.0, 0.5, -2.0, 3.0], np.float32), constant("shift", [0.0, 0.25, 0.5, 0.75], np.float32)],
                 domains=[("com.example", 4)])


@model("microsoft_ops", "ops of ONNX Runtime's own domain", shapes={"n": 2})
def microsoft_ops(_):
    return small([node("Gelu", ["x"], ["g"], "gelu", domain="com.microsoft"),
                  node("FusedMatMul", ["g", "w"], ["y"], "matmul", domain="com.microsoft", alpha=0.5)],
                 "microsoft_ops", constants=[constant("w", np.eye(4), np.float32)], domains=[("com.microsoft", 1)])


@model("no_ops", "a graph without ops whose output is its input", shapes={"n": 2})
def no_ops(_):
    return small([], "no_ops", outputs=[value("x", FLOAT, ["n", 4])])


@model("empty_graph", "no ops, no inputs, no outputs", runs=False)
def empty_graph(_):
    return small([], "empty_graph", inputs=[], outputs=[])


@model("output_is_input", "one output is the input itself, another is computed", shapes={"n": 2})
def output_is_input(_):
    return small([node("Relu", ["x"], ["y"], "relu")], "output_is_input",
                 outputs=[value("x", FLOAT, ["n", 4]), value("y", FLOAT, ["n", 4])])


@model("output_is_constant", "one output is an initializer, one a Constant op, one is computed", shapes={"n": 2})
def output_is_constant(_):
    made = constant("", [1.0, 2.0], np.float32)
    return small([node("Constant", [], ["c"], "constant", value=made), node("Relu", ["x"], ["y"], "relu")],
                 "output_is_constant",
                 outputs=[value("w", FLOAT, [3]), value("c", FLOAT, [2]), value("y", FLOAT, ["n", 4])],
                 constants=[constant("w", [3, 4, 5], np.float32)])


@model("output_inside", "a tensor is both an output and read by other ops; others are read by nobody", shapes={"n": 2})
def output_inside(_):
    return small([node("Relu", ["x"], ["a"], "relu"), node("Exp", ["a"], ["y"], "exp"), node("Neg", ["a"], ["unread"], "neg"),
                  node("Dropout", ["a"], ["b", "mask"], "dropout")],
                 "output_inside", outputs=[value("a", FLOAT, ["n", 4]), value("y", FLOAT, ["n", 4])],
                 constants=[constant("spare", [1, 2], np.float32)])


@model("same_twice", "an op reads the same tensor twice and the graph's branches meet again", shapes={"n": 2})
def same_twice(_):
    return small([node("Mul", ["x", "x"], ["a"], "square"), node("Add", ["a", "x"], ["b"], "add"),
                  node("Concat", ["b", "a", "b"], ["c"], "concat", axis=1), node("Sub", ["c", "c"], ["y"], "sub")],
                 "same_twice", outputs=[value("y", FLOAT, ["n", 12])])


@model("initializers_as_inputs", "IR version 3: every initializer is also an input", shapes={"n": 2})
def initializers_as_inputs(_):
    weights = [constant("w", np.eye(4), np.float32), constant("b", np.ones(4), np.float32)]
    return small([node("Gemm", ["x", "w", "b"], ["y"], "gemm")], "initializers_as_inputs",
                 inputs=[value("x", FLOAT, ["n", 4]), value("w", FLOAT, [4, 4]), value("b", FLOAT, [4])],
                 constants=weights, ir=3, opset=9)


@model("shared_initializer", "one weight is read by three layers, another only by a copy of it", shapes={"n": 2})
def shared_initializer(_):
    weights = [constant("w", np.eye(4) * 0.5, np.float32), constant("b", np.arange(4), np.float32)]
    return small([node("MatMul", ["x", "w"], ["a"], "/l1/MatMul"), node("Identity", ["b"], ["b2"], "copy"),
                  node("Identity", ["b2"], ["b3"], "copy_of_copy"), node("Add", ["a", "b"], ["c"], "/l1/Add"),
                  node("MatMul", ["c", "w"], ["d"], "/l2/MatMul"), node("Add", ["d", "b3"], ["e"], "/l2/Add"),
                  node("MatMul", ["e", "w"], ["y"], "/l3/MatMul")], "shared_initializer", constants=weights)


@model("constant_chain", "constants computed from constants, some through ops that are not Identity", shapes={"n": 2})
def constant_chain(_):
    made = constant("", [1, 2, 3, 4], np.float32)
    return small([node("Constant", [], ["c"], "constant", value=made), node("Identity", ["c"], ["c1"], "identity"),
                  node("Reshape", ["c1", "shape"], ["row"], "reshape"), node("Add", ["row", "w"], ["sum"], "add_constants"),
                  node("Mul", ["x", "sum"], ["y"], "mul")], "constant_chain",
                 constants=[constant("shape", [1, 4], np.int64), constant("w", [[5, 6, 7, 8]], np.float32)])


@model("random_ops", "ops without inputs that give new numbers each time", shapes={"n": 2})
def random_ops(_):
    return small([node("RandomNormal", [], ["r"], "random", shape=[4], dtype=FLOAT, seed=1.0),
                  node("Add", ["x", "r"], ["y"], "add")], "random_ops")


@model("odd_names", "names with spaces, quotes, newlines, other scripts; ops without a name", shapes={"n": 2})
def odd_names(_):
    long = "deep/" * 200 + "tensor"
    return small([node("Relu", ["x y"], ["a\nb"], "a name"), node("Abs", ["a\nb"], ['"quoted",;=:*?'], "'"),
                  node("Exp", ['"quoted",;=:*?'], ["\u5f20\u91cf"]), node("Neg", ["\u5f20\u91cf"], [long]),
                  node("Tanh", [long], ["../out"], "/a//b/")],
                 "odd names", inputs=[value("x y", FLOAT, ["n", 4])], outputs=[value("../out", FLOAT, ["n", 4])])


@model("same_op_names", "two ops of one name, which ONNX allows and ONNX Runtime does not", runs=False, shapes={"n": 2})
def same_op_names(_):
    return small([node("Relu", ["x"], ["a"], "same"), node("Abs", ["a"], ["y"], "same")], "same_op_names")


@model("zero_sizes", "tensors of no elements and of rank 0")
def zero_sizes(_):
    return small([node("Concat", ["x", "none"], ["y"], "concat", axis=0), node("ReduceSum", ["y"], ["z"], "sum", keepdims=0)],
                 "zero_sizes", inputs=[value("x", FLOAT, [0, 4])],
                 outputs=[value("y", FLOAT, [0, 4]), value("z", FLOAT, [])],
                 constants=[constant("none", np.zeros((0, 4)), np.float32)])


@model("no_shapes", "inputs without a shape, outputs without a type", check="outputs have no type")
def no_shapes(_):
    graph = helper.make_graph([node("Relu", ["x"], ["y"], "relu")], "no_shapes", [value("x", FLOAT, None)], [])
    graph.output.add(name="y")
    return make_model(graph)


@model("dynamo", "what PyTorch's newer exporter adds: name scopes and stack traces in the metadata of ops", shapes={"n": 2})
def dynamo(_):
    def op(kind, inputs, output, name, scopes, line):
        made = node(kind, inputs, [output], name)
        classes = ["demo.Net"] + ["torch.nn.modules.container.Sequential"] * (len(scopes) - 2) + ["torch.nn.modules.linear.Linear"]
        for key, text in (
                ("namespace", "/".join(f"{s}: {c}" for s, c in zip(scopes, classes)) + f"/{name}: aten.{kind.lower()}.default"),
                ("pkg.torch.onnx.class_hierarchy", str(classes + [f"aten.{kind.lower()}.default"])),
                ("pkg.torch.onnx.fx_node", f"%{output} : [num_users=1] = call_function[target=torch.ops.aten.{kind.lower()}.default]"),
                ("pkg.torch.onnx.name_scopes", str(scopes + [name])),
                ("pkg.torch.onnx.stack_trace", f'File "/home/me/demo.py", line {line}, in forward\n    x = self.{scopes[-1]}(x)')):
            made.metadata_props.add(key=key, value=text)
        return made

    made = small([op("MatMul", ["x", "w"], "a", "node_linear", ["", "body", "body.0"], 12),
                  op("Relu", ["a"], "b", "node_relu", ["", "body", "body.1"], 12),
                  op("MatMul", ["b", "w"], "y", "node_linear_1", ["", "head"], 13)],
                 "main_graph", constants=[constant("w", np.eye(4), np.float32)], opset=18, ir=10)
    made.graph.metadata_props.add(key="pkg.torch.export.ExportedProgram.graph_signature", value="signature")
    made.graph.value_info.add(name="a").metadata_props.add(key="pkg.torch.onnx.original_node_name", value="linear")
    made.graph.value_info[0].type.CopyFrom(helper.make_tensor_type_proto(FLOAT, ["n", 4]))
    made.metadata_props.add(key="author", value="nobody")
    return made


@model("documented", "doc strings, metadata, model version and domain wherever the format has room for them", shapes={"n": 1})
def documented(_):
    made = small([helper.make_node("Relu", ["x"], ["y"], name="relu", doc_string="keeps what is positive")], "documented",
                 domain="org.example", model_version=42, doc_string="a model", producer_version="7")
    made.graph.doc_string = "a graph"
    made.graph.input[0].doc_string = "an input"
    made.metadata_props.add(key="key", value="value")
    return made


@model("training", "training information: an algorithm graph with update bindings", shapes={"n": 2})
def training(_):
    made = small([node("MatMul", ["x", "w"], ["y"], "matmul")], "training", constants=[constant("w", np.eye(4), np.float32)])
    info = made.training_info.add()
    info.algorithm.CopyFrom(helper.make_graph(
        [node("Mul", ["w", "rate"], ["step"], "scale"), node("Sub", ["w", "step"], ["w_new"], "update")], "algorithm", [],
        [value("w_new", FLOAT, [4, 4])], [constant("rate", 0.1, np.float32)]))
    info.update_binding.add(key="w", value="w_new")
    return made


def field(number, payload):
    """One length-delimited protobuf field."""
    def varint(n):
        out = b""
        while n > 127:
            out, n = out + bytes([n & 127 | 128]), n >> 7
        return out + bytes([n])
    return varint(number << 3 | 2) + varint(len(payload)) + payload


@model("unknown_fields", "fields that no version of the format defines, in model, graph, op, attribute and tensor", shapes={"n": 2})
def unknown_fields(_):
    unknown = field(3000, b"from the future") + bytes([0xC8, 0xBB, 0x01, 0x2A])  # and field 2999, varint 42
    attribute = field(1, b"alpha") + bytes([0x15]) + np.float32(0.25).tobytes() + bytes([0xA0, 0x01, 0x01]) + unknown
    op = field(1, b"x") + field(2, b"a") + field(3, b"leaky") + field(4, b"LeakyRelu") + field(5, attribute) + unknown
    add = node("Add", ["a", "w"], ["y"], "add").SerializeToString()
    tensor = constant("w", [1, 2, 3, 4], np.float32).SerializeToString() + unknown
    graph = (field(1, op) + unknown + field(1, add) + field(2, b"unknown_fields") + field(5, tensor)
             + field(11, value("x", FLOAT, ["n", 4]).SerializeToString() + unknown)
             + field(12, value("y", FLOAT, ["n", 4]).SerializeToString()))
    opset = helper.make_opsetid("", 17).SerializeToString() + unknown
    return bytes([0x08, 0x08]) + unknown + field(7, graph) + field(8, opset) + unknown


@model("split_graph", "the graph and an op are stored in two pieces, which protobuf readers join", shapes={"n": 2})
def split_graph(_):
    first = field(1, node("Relu", ["x"], ["a"], "relu").SerializeToString()) + field(2, b"wrong name")
    second = (field(1, node("Exp", ["a"], ["y"], "exp").SerializeToString()) + field(2, b"split_graph")
              + field(11, value("x", FLOAT, ["n", 4]).SerializeToString())
              + field(12, value("y", FLOAT, ["n", 4]).SerializeToString()))
    return field(7, first) + field(8, helper.make_opsetid("", 17).SerializeToString()) + bytes([0x08, 0x08]) + field(7, second)


@model("chain_10k", "10,000 ops in a row", shapes={"n": 2})
def chain_10k(_):
    return chain("chain_10k", 10_000)


def chain(name, count):
    net = Builder(name)
    x = "x"
    for number in range(count):
        kind = ("Relu", "Abs", "Tanh")[number % 3]
        x = net.add(kind, f"/blocks.{number // 100}/{number}/{kind}", [x], "y" if number == count - 1 else None)
    return make_model(net.graph([value("x", FLOAT, ["n", 4])], [value("y", FLOAT, ["n", 4])]))
