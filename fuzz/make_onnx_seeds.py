#!/usr/bin/env python3
"""Writes the seeds of the ONNX fuzz target: small models that between them use all of the format.

Needs the `onnx` package. Usage: make_onnx_seeds.py FOLDER
"""
import pathlib
import sys

import onnx
from onnx import TensorProto as T
from onnx import helper as h

FLOAT = T.FLOAT


def model(graph, **options):
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 20)], ir_version=10, **options)


def info(name, shape=(2,), dtype=FLOAT):
    return h.make_tensor_value_info(name, dtype, shape)


def chain():
    """Two ops, an initializer in each form of storage, metadata, value_info."""
    raw = onnx.helper.make_tensor("w", FLOAT, [2], b"\0\0\x80?\0\0\0@", raw=True)
    ints = h.make_tensor("shape", T.INT64, [1], [-1])
    half = h.make_tensor("half", T.FLOAT16, [2], [1.0, 2.0])
    small = h.make_tensor("small", T.INT4, [3], [1, -2, 3])
    text = h.make_tensor("text", T.STRING, [2], [b"a", b"bc"])
    reals = h.make_tensor("reals", FLOAT, [2], [1.0, 2.0])
    nodes = [
        h.make_node("Add", ["x", "w"], ["a"], name="/layer1/layer1.0/add/Add"),
        h.make_node("Reshape", ["a", "shape"], ["y"], allowzero=0, doc_string="to a row"),
    ]
    graph = h.make_graph(nodes, "chain", [info("x", ("n",)), info("w")], [info("y", None)],
                         [raw, ints, half, small, text, reals], value_info=[info("a")])
    h.set_model_props(result := model(graph, producer_name="seed"), {"key": "value"})
    return result


def subgraphs():
    """An If inside a Loop, each reading tensors of the graphs around it."""
    inner = h.make_graph([h.make_node("Add", ["x", "carried"], ["t"])], "then", [], [info("t")])
    other = h.make_graph([h.make_node("Identity", ["x"], ["e"])], "else", [], [info("e")])
    body = h.make_graph(
        [h.make_node("If", ["go"], ["next"], then_branch=inner, else_branch=other),
         h.make_node("Identity", ["go"], ["again"])],
        "body", [info("i", (), T.INT64), info("go", (), T.BOOL), info("carried")],
        [info("again", (), T.BOOL), info("next")])
    return model(h.make_graph([h.make_node("Loop", ["n", "", "x"], ["y"], body=body)], "loop",
                              [info("n", (), T.INT64), info("x")], [info("y")]))


def functions():
    """A function with an attribute of its own, called from the graph."""
    node = h.make_node("LeakyRelu", ["a"], ["b"])
    node.attribute.append(
        h.make_attribute_ref("alpha", onnx.AttributeProto.FLOAT, ref_attr_name="slope"))
    leaky = h.make_function("own", "Leaky", ["a"], ["b"], [node], [h.make_opsetid("", 20)],
                            ["slope"])
    graph = h.make_graph([h.make_node("Leaky", ["x"], ["y"], domain="own", slope=0.1)], "calls",
                         [info("x")], [info("y")])
    return h.make_model(graph, functions=[leaky], ir_version=10,
                        opset_imports=[h.make_opsetid("", 20), h.make_opsetid("own", 1)])


def oddities():
    """Sparse initializer, all kinds of attributes, sequence and optional types, ops out of order."""
    values = h.make_tensor("s", FLOAT, [1], [3.0])
    sparse = h.make_sparse_tensor(values, h.make_tensor("i", T.INT64, [1], [1]), [2])
    node = h.make_node("Odd", ["b", ""], ["y", ""], domain="odd", i=1, f=2.0, s="three",
                       ints=[1, 2], floats=[1.0], strings=["a", "b"],
                       t=h.make_tensor("", FLOAT, [], [1.0]),
                       tp=h.make_tensor_type_proto(FLOAT, ["n"]))
    graph = h.make_graph([node, h.make_node("Add", ["x", "s"], ["b"])], "odd", [
        info("x"),
        h.make_tensor_sequence_value_info("q", FLOAT, [1]),
        h.make_value_info("o", h.make_optional_type_proto(h.make_tensor_type_proto(FLOAT, [1]))),
    ], [info("y")], sparse_initializer=[sparse])
    note = graph.quantization_annotation.add(tensor_name="b")
    note.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="s")
    result = model(graph)
    result.training_info.add().algorithm.name = "step"
    return result


def values():
    """Files of values."""
    tensor = h.make_tensor("x", FLOAT, [2], [1.0, 2.0])
    yield "tensor", tensor
    yield "sequence", h.make_sequence("q", onnx.SequenceProto.TENSOR, [tensor])
    yield "map", h.make_map("m", T.INT64, [1],
                            h.make_sequence("", onnx.SequenceProto.TENSOR, [tensor]))


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for make in (chain, subgraphs, functions, oddities):
        (folder / make.__name__).write_bytes(make().SerializeToString())
    for name, value in values():
        (folder / name).write_bytes(value.SerializeToString())


main()
