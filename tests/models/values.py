"""Values that are not plain number tensors: strings, sequences, optionals and maps that cross ops."""

import numpy as np
from onnx import TensorProto, helper

from build import BOOL, FLOAT, INT64, constant, make_model, model, node, value

STRING = TensorProto.STRING


@model("strings", "string tensors as input, constant, attribute and between ops", shapes={"n": 3})
def strings(_):
    words = helper.make_tensor("words", STRING, [2], [b"seven", "h\u00e9llo \U0001f40e".encode()])
    graph = helper.make_graph(
        [node("StringNormalizer", ["text"], ["lower"], "lower", case_change_action="LOWER", is_case_sensitive=0, locale="C"),
         node("Concat", ["lower", "words"], ["all"], "join", axis=0),
         node("LabelEncoder", ["all"], ["codes"], "encode", domain="ai.onnx.ml", keys_strings=["seven", "eight"],
              values_int64s=[7, 8], default_int64=-1)],
        "strings", [value("text", STRING, ["n"])], [value("all", STRING, ["m"]), value("codes", INT64, ["m"])], [words])
    return make_model(graph, domains=[("ai.onnx.ml", 2)])


@model("sequence_ops", "a tensor is split into a sequence, mapped, picked from and joined again", shapes={"n": 6})
def sequence_ops(_):
    graph = helper.make_graph(
        [node("SplitToSequence", ["x", "two"], ["parts"], "split", axis=0),
         node("SequenceAt", ["parts", "one"], ["second"], "at"),
         node("Neg", ["second"], ["negated"], "neg"),
         node("SequenceInsert", ["parts", "negated"], ["more"], "insert"),
         node("SequenceLength", ["more"], ["count"], "length"),
         node("ConcatFromSequence", ["more"], ["y"], "join", axis=0)],
        "sequence_ops", [value("x", FLOAT, ["n", 3])], [value("y", FLOAT, ["m", 3]), value("count", INT64, [])],
        [constant("two", 2, np.int64), constant("one", 1, np.int64)])
    return make_model(graph)


@model("sequence_in_out", "a sequence is an input and an output of the graph")
def sequence_in_out(_):
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, None))
    graph = helper.make_graph(
        [node("SequenceAt", ["items", "zero"], ["first"], "at"), node("Relu", ["first"], ["relu"], "relu"),
         node("SequenceInsert", ["items", "relu", "zero"], ["more"], "insert")],
        "sequence_in_out", [helper.make_value_info("items", kind)], [helper.make_value_info("more", kind)],
        [constant("zero", 0, np.int64)])
    return make_model(graph)


@model("optional", "an optional is an input, is asked and opened")
def optional(_):
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(FLOAT, ["n", 3]))
    graph = helper.make_graph(
        [node("OptionalHasElement", ["maybe"], ["has"], "has"), node("OptionalGetElement", ["maybe"], ["x"], "open"),
         node("Abs", ["x"], ["y"], "abs")],
        "optional", [helper.make_value_info("maybe", kind)], [value("has", BOOL, []), value("y", FLOAT, ["n", 3])])
    return make_model(graph, opset=18)


@model("optional_inside", "an optional is made, crosses ops and is opened inside the graph", shapes={"n": 3})
def optional_inside(_):
    graph = helper.make_graph(
        [node("Exp", ["x"], ["e"], "exp"), node("Optional", ["e"], ["maybe"], "wrap"),
         node("Identity", ["maybe"], ["same"], "pass"), node("OptionalGetElement", ["same"], ["y"], "open")],
        "optional_inside", [value("x", FLOAT, ["n"])], [value("y", FLOAT, ["n"])])
    return make_model(graph, opset=18)


@model("map_out", "a classifier of ai.onnx.ml whose probabilities leave as a sequence of maps", shapes={"n": 2})
def map_out(_):
    element = helper.make_tensor_type_proto(FLOAT, None)
    kind = helper.make_sequence_type_proto(helper.make_map_type_proto(INT64, element))
    graph = helper.make_graph(
        [node("LinearClassifier", ["x"], ["label", "scores"], "classify", domain="ai.onnx.ml",
              coefficients=[0.5, -1.0, 0.25, -0.5, 1.0, -0.25], intercepts=[0.1, -0.1], classlabels_ints=[0, 1],
              multi_class=0, post_transform="SOFTMAX"),
         node("Normalizer", ["scores"], ["probabilities"], "normalize", domain="ai.onnx.ml", norm="L1"),
         node("ZipMap", ["probabilities"], ["maps"], "zip", domain="ai.onnx.ml", classlabels_int64s=[0, 1])],
        "map_out", [value("x", FLOAT, ["n", 3])], [value("label", INT64, ["n"]), helper.make_value_info("maps", kind)])
    return make_model(graph, domains=[("ai.onnx.ml", 1)])


@model("map_in", "a map from strings to numbers is an input", shapes={})
def map_in(_):
    kind = helper.make_map_type_proto(STRING, helper.make_tensor_type_proto(FLOAT, []))
    graph = helper.make_graph(
        [node("DictVectorizer", ["features"], ["row"], "vectorize", domain="ai.onnx.ml", string_vocabulary=["a", "b", "c"]),
         node("Relu", ["row"], ["y"], "relu")],
        "map_in", [helper.make_value_info("features", kind)], [value("y", FLOAT, ["n", 3])])
    return make_model(graph, domains=[("ai.onnx.ml", 1)])
