"""Subgraphs and functions: If, Loop, Scan, captures across levels, functions with attribute references."""

import numpy as np
from onnx import AttributeProto, helper

from build import BOOL, FLOAT, INT64, constant, make_model, model, node, value


@model("if", "If with branches that capture the input and a constant of the main graph", shapes={"n": 4})
def if_(_):
    then = helper.make_graph([node("Add", ["x", "shift"], ["then_out"], "then_add")], "then", [],
                             [value("then_out", FLOAT, ["n"])])
    other = helper.make_graph([node("Neg", ["x"], ["neg"], "else_neg"), node("Mul", ["neg", "gain"], ["else_out"], "else_mul")],
                              "else", [], [value("else_out", FLOAT, ["n"])],
                              [constant("gain", [2.0], np.float32)])
    graph = helper.make_graph(
        [node("If", ["flag"], ["y"], "choose", then_branch=then, else_branch=other), node("Relu", ["y"], ["z"], "after")],
        "if", [value("flag", BOOL, []), value("x", FLOAT, ["n"])], [value("z", FLOAT, ["n"])],
        [constant("shift", [10.0], np.float32)])
    return make_model(graph)


@model("loop", "Loop with a carried value, a scan output and a condition computed inside", shapes={"n": 3})
def loop(_):
    body = helper.make_graph(
        [node("Add", ["sum_in", "x"], ["sum_out"], "add"), node("ReduceSum", ["sum_out"], ["size"], "size", keepdims=0),
         node("Less", ["size", "limit"], ["go_on"], "test"), node("Identity", ["sum_out"], ["each"], "each")],
        "body", [value("i", INT64, []), value("go_in", BOOL, []), value("sum_in", FLOAT, ["n"])],
        [value("go_on", BOOL, []), value("sum_out", FLOAT, ["n"]), value("each", FLOAT, ["n"])])
    graph = helper.make_graph(
        [node("Sub", ["x", "x"], ["zero"], "zero"), node("Loop", ["count", "", "zero"], ["total", "steps"], "loop", body=body)],
        "loop", [value("count", INT64, []), value("x", FLOAT, ["n"])],
        [value("total", FLOAT, ["n"]), value("steps", FLOAT, ["k", "n"])], [constant("limit", 100.0, np.float32)])
    return make_model(graph)


@model("trips", "Loop with constants: how often it runs, and what its body multiplies and adds", shapes={"n": 3})
def trips(_):
    body = helper.make_graph(
        [node("Identity", ["go_in"], ["go_on"], "go"), node("Mul", ["state_in", "gain"], ["scaled"], "scale"),
         node("Add", ["scaled", "shift"], ["state_out"], "shift")],
        "body", [value("i", INT64, []), value("go_in", BOOL, []), value("state_in", FLOAT, ["n"])],
        [value("go_on", BOOL, []), value("state_out", FLOAT, ["n"])], [constant("gain", [0.5], np.float32)])
    graph = helper.make_graph(
        [node("Abs", ["x"], ["a"], "before"), node("Loop", ["count", "", "a"], ["y"], "loop", body=body),
         node("Relu", ["y"], ["z"], "after")],
        "trips", [value("x", FLOAT, ["n"])], [value("z", FLOAT, ["n"])],
        [constant("count", 3, np.int64), constant("shift", [0.125], np.float32)])
    return make_model(graph)


@model("scan", "Scan: running sums over the first axis", shapes={"time": 6})
def scan(_):
    body = helper.make_graph(
        [node("Add", ["state_in", "item"], ["state_out"], "add"), node("Mul", ["state_out", "scale"], ["row"], "mul")],
        "body", [value("state_in", FLOAT, [4]), value("item", FLOAT, [4])],
        [value("state_out", FLOAT, [4]), value("row", FLOAT, [4])])
    graph = helper.make_graph(
        [node("Scan", ["start", "items"], ["end", "rows"], "scan", body=body, num_scan_inputs=1)], "scan",
        [value("items", FLOAT, ["time", 4])], [value("end", FLOAT, [4]), value("rows", FLOAT, ["time", 4])],
        [constant("start", np.zeros(4), np.float32), constant("scale", 0.5, np.float32)])
    return make_model(graph)


@model("nested", "If inside Loop inside If; the innermost body reads tensors of both graphs around it", shapes={"n": 3})
def nested(_):
    positive = helper.make_graph([node("Add", ["doubled", "sum_in"], ["a"], "inner_add")], "positive", [],
                                 [value("a", FLOAT, ["n"])])
    negative = helper.make_graph([node("Sub", ["sum_in", "bias"], ["b"], "inner_sub")], "negative", [],
                                 [value("b", FLOAT, ["n"])])
    body = helper.make_graph(
        [node("If", ["flag"], ["sum_out"], "inner_if", then_branch=positive, else_branch=negative),
         node("Identity", ["go_in"], ["go_out"], "go")],
        "body", [value("i", INT64, []), value("go_in", BOOL, []), value("sum_in", FLOAT, ["n"])],
        [value("go_out", BOOL, []), value("sum_out", FLOAT, ["n"])])
    then = helper.make_graph([node("Loop", ["three", "", "x"], ["looped"], "loop", body=body)], "then", [],
                             [value("looped", FLOAT, ["n"])], [constant("three", 3, np.int64)])
    other = helper.make_graph([node("Identity", ["x"], ["same"], "same")], "else", [], [value("same", FLOAT, ["n"])])
    graph = helper.make_graph(
        [node("Add", ["x", "x"], ["doubled"], "double"),
         node("If", ["flag"], ["y"], "outer_if", then_branch=then, else_branch=other)],
        "nested", [value("flag", BOOL, []), value("x", FLOAT, ["n"])], [value("y", FLOAT, ["n"])],
        [constant("bias", [1.0], np.float32)])
    return make_model(graph)


@model("if_constant", "If whose condition is a constant and whose branches only hold constants")
def if_constant(_):
    def branch(name, number):
        return helper.make_graph([node("Constant", [], [name], value_float=number)], name, [], [value(name, FLOAT, [])])

    graph = helper.make_graph(
        [node("If", ["yes"], ["c"], "choose", then_branch=branch("one", 1.0), else_branch=branch("two", 2.0)),
         node("Add", ["x", "c"], ["y"], "add")],
        "if_constant", [value("x", FLOAT, [2])], [value("y", FLOAT, [2])], [constant("yes", True, np.bool_)])
    return make_model(graph)


@model("same_names", "both branches of an If use the same inner names; a Loop body does so again", shapes={"n": 2})
def same_names(_):
    def branch(kind):
        return helper.make_graph([node(kind, ["x"], ["t"], "op"), node("Relu", ["t"], ["out"], "relu")], "branch", [],
                                 [value("out", FLOAT, ["n"])])

    graph = helper.make_graph(
        [node("If", ["flag"], ["u"], "if1", then_branch=branch("Abs"), else_branch=branch("Neg")),
         node("If", ["flag"], ["v"], "if2", then_branch=branch("Exp"), else_branch=branch("Neg")),
         node("Add", ["u", "v"], ["y"], "add")],
        "same_names", [value("flag", BOOL, []), value("x", FLOAT, ["n"])], [value("y", FLOAT, ["n"])])
    return make_model(graph)


def reference(kind, name, attribute, of):
    """An attribute that stands for the function's attribute `of`."""
    made = AttributeProto(name=attribute, ref_attr_name=of, type=kind)
    name.attribute.append(made)
    return name


@model("functions", "functions that call functions, with attribute references, defaults and a subgraph", shapes={"n": 4})
def functions(_):
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("trocar.test", 1)]
    leaky = reference(AttributeProto.FLOAT, node("LeakyRelu", ["x"], ["y"], "leaky"), "alpha", "slope")
    soften = helper.make_function("trocar.test", "Soften", ["x"], ["y"], [leaky], imports[:1], attributes=["slope"])
    call = reference(AttributeProto.FLOAT, node("Soften", ["x"], ["s"], "soften", domain="trocar.test"), "slope", "slope")
    scale = reference(AttributeProto.FLOAT, node("Constant", [], ["gain"], "gain"), "value_float", "gain")
    twice = helper.make_function(
        "trocar.test", "Twice", ["x"], ["y"], [call, scale, node("Mul", ["s", "gain"], ["y"], "mul")], imports,
        attributes=["slope"], attribute_protos=[helper.make_attribute("gain", 2.0)])
    then = helper.make_graph([node("Neg", ["x"], ["t"], "neg")], "then", [], [value("t", FLOAT, None)])
    other = helper.make_graph([node("Abs", ["x"], ["e"], "abs")], "else", [], [value("e", FLOAT, None)])
    pick = helper.make_function("trocar.test", "Pick", ["flag", "x"], ["y"],
                                [node("If", ["flag"], ["y"], "if", then_branch=then, else_branch=other)], imports[:1], [])
    graph = helper.make_graph(
        [node("Twice", ["x"], ["a"], "first", domain="trocar.test", slope=0.1),
         node("Twice", ["a"], ["b"], "second", domain="trocar.test", slope=0.2, gain=3.0),
         node("Pick", ["flag", "b"], ["y"], "third", domain="trocar.test")],
        "functions", [value("flag", BOOL, []), value("x", FLOAT, ["n"])], [value("y", FLOAT, ["n"])])
    return make_model(graph, domains=[("trocar.test", 1)], functions=[soften, twice, pick])
