"""Models with a defect in one op, for searches that must find it."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def initializer(graph, name):
    return next(i for i in graph.initializer if i.name == name)


def constants(graph):
    """Initializers by name, also under the names that Identity ops give them."""
    found = {i.name: i for i in graph.initializer}
    for node in graph.node:
        if node.op_type == "Identity" and node.input[0] in found:
            found[node.output[0]] = found[node.input[0]]
    return found


def own_constant(graph, node, slot):
    """Gives an input of a node a constant that nobody else reads, and returns its value."""
    old = constants(graph)[node.input[slot]]
    value = numpy_helper.to_array(old).copy()
    new = numpy_helper.from_array(value, f"{node.input[slot]}.planted")
    graph.initializer.append(new)
    node.input[slot] = new.name
    return value


def set_constant(graph, node, slot, value):
    name = node.input[slot]
    initializer(graph, name).CopyFrom(numpy_helper.from_array(np.ascontiguousarray(value), name))


def attribute(node, name):
    return next((a for a in node.attribute if a.name == name), None)


def wrong_epsilon(graph, node):
    a = attribute(node, "epsilon")
    if a is None:
        node.attribute.append(helper.make_attribute("epsilon", 1e-3))
    else:
        a.f = 1e-3


def transposed_weight(graph, node):
    value = own_constant(graph, node, 1)
    if value.ndim == 4 and value.shape[2] == value.shape[3] and value.shape[2] > 1:
        value = value.swapaxes(2, 3)
    elif value.ndim == 2 and value.shape[0] == value.shape[1]:
        value = value.T
    else:
        value = value.reshape(value.shape[1], value.shape[0], *value.shape[2:]).swapaxes(0, 1)
    set_constant(graph, node, 1, value)


def bf16_weight(graph, node):
    value = own_constant(graph, node, 1)
    bits = value.view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32)
    set_constant(graph, node, 1, rounded.view(np.float32))


def shifted_pad(graph, node):
    a = attribute(node, "pads")
    pads = list(a.ints)
    half = len(pads) // 2
    pads[0] += 1
    pads[half] -= 1
    a.ints[:] = pads


def swapped_channels(graph, node):
    value = own_constant(graph, node, 1)
    value[[0, 1]] = value[[1, 0]]
    set_constant(graph, node, 1, value)


def one_weight(graph, node):
    value = own_constant(graph, node, 1)
    value.reshape(-1)[value.size // 2] *= 1.01
    set_constant(graph, node, 1, value)


def lower_limit(graph, node):
    own_constant(graph, node, 2)
    set_constant(graph, node, 2, np.float32(5))


DEFECTS = {
    "epsilon": (wrong_epsilon, lambda n: n.op_type == "BatchNormalization"),
    "transposed": (transposed_weight, lambda n: n.op_type == "Conv"),
    "bf16": (bf16_weight, lambda n: n.op_type == "Conv"),
    "pad": (shifted_pad, lambda n: n.op_type == "Conv" and attribute(n, "pads")
            and attribute(n, "pads").ints[0] > 0),
    "channels": (swapped_channels, lambda n: n.op_type == "Conv"),
    "one": (one_weight, lambda n: n.op_type == "Conv"),
    "limit": (lower_limit, lambda n: n.op_type == "Clip"),
}


def places(graph, kind):
    _, fits = DEFECTS[kind]
    return [i for i, n in enumerate(graph.node) if fits(n)]


def plant(model, kind, place, graph=None):
    """A copy with the defect; returns it and the name of the op, or of what it writes."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    target = graph(copy) if graph else copy.graph
    node = target.node[place]
    DEFECTS[kind][0](target, node)
    return copy, node.name or node.output[0]


def chain(rng):
    """Conv, BatchNormalization and Relu, six times."""
    nodes, constants_ = [], []
    add = lambda name, value: constants_.append(
        numpy_helper.from_array(value.astype(np.float32), name))
    before, channels = "x", 4
    for i in range(6):
        add(f"w{i}", rng.standard_normal((8, channels, 3, 3)) / np.sqrt(9 * channels / 2))
        for what, value in (("s", 1 + 0.1 * rng.standard_normal(8)),
                            ("b", 0.1 * rng.standard_normal(8)),
                            ("m", 0.1 * rng.standard_normal(8)),
                            ("v", 0.05 + rng.random(8))):
            add(f"{what}{i}", value)
        nodes.append(helper.make_node("Conv", [before, f"w{i}"], [f"c{i}"], f"conv{i}",
                                      pads=[1, 1, 1, 1], kernel_shape=[3, 3]))
        nodes.append(helper.make_node(
            "BatchNormalization", [f"c{i}", f"s{i}", f"b{i}", f"m{i}", f"v{i}"], [f"n{i}"],
            f"norm{i}", epsilon=1e-5))
        nodes.append(helper.make_node("Relu", [f"n{i}"], [f"r{i}"], f"relu{i}"))
        before, channels = f"r{i}", 8
    return nodes, constants_, before


def model_of(nodes, constants_, inputs, outputs):
    graph = helper.make_graph(nodes, "planted", inputs, outputs, constants_)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def make_chain(rng):
    nodes, constants_, last = chain(rng)
    return model_of(nodes, constants_,
                    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 12, 12])],
                    [helper.make_tensor_value_info(last, TensorProto.FLOAT, [1, 8, 12, 12])])


def make_if(rng):
    """The chain in the branch that is taken; another one in the other."""
    nodes, constants_, last = chain(rng)
    body = helper.make_graph(
        nodes, "taken", [], [helper.make_tensor_value_info(last, TensorProto.FLOAT, [1, 8, 12, 12])],
        constants_)
    other = helper.make_graph(
        [helper.make_node("Conv", ["x", "w_else"], ["else_out"], "conv_else", pads=[1, 1, 1, 1])],
        "not_taken", [], [helper.make_tensor_value_info("else_out", TensorProto.FLOAT, [1, 8, 12, 12])],
        [numpy_helper.from_array(rng.standard_normal((8, 4, 3, 3)).astype(np.float32), "w_else")])
    nodes = [
        helper.make_node("ReduceMax", ["x0"], ["greatest"], "greatest", keepdims=0),
        helper.make_node("Greater", ["greatest", "zero"], ["condition"], "is_positive"),
        helper.make_node("Relu", ["x0"], ["x"], "first"),
        helper.make_node("If", ["condition"], ["y"], "choice", then_branch=body,
                         else_branch=other),
        helper.make_node("Sigmoid", ["y"], ["z"], "last"),
    ]
    return model_of(nodes, [numpy_helper.from_array(np.float32(0), "zero")],
                    [helper.make_tensor_value_info("x0", TensorProto.FLOAT, [1, 4, 12, 12])],
                    [helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, 8, 12, 12])])


def branch(model):
    node = next(n for n in model.graph.node if n.op_type == "If")
    return attribute(node, "then_branch").g


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def make_loop(rng):
    """A Loop whose body is the chain, back to four channels; three times."""
    nodes, constants_, last = chain(rng)
    constants_.append(numpy_helper.from_array(
        (rng.standard_normal((4, 8, 3, 3)) / 6).astype(np.float32), "w_back"))
    nodes += [helper.make_node("Conv", [last, "w_back"], ["x_next"], "back", pads=[1, 1, 1, 1]),
              helper.make_node("Identity", ["again"], ["goes_on"], "same")]
    body = helper.make_graph(
        nodes, "body",
        [value("i", [], TensorProto.INT64), value("again", [], TensorProto.BOOL),
         value("x", [1, 4, 12, 12])],
        [value("goes_on", [], TensorProto.BOOL), value("x_next", [1, 4, 12, 12])], constants_)
    nodes = [helper.make_node("Relu", ["x0"], ["x1"], "first"),
             helper.make_node("Loop", ["three", "", "x1"], ["y"], "rounds", body=body),
             helper.make_node("Sigmoid", ["y"], ["z"], "last")]
    return model_of(nodes, [numpy_helper.from_array(np.int64(3), "three")],
                    [value("x0", [1, 4, 12, 12])], [value("z", [1, 4, 12, 12])])


def make_growing(rng):
    """A Loop that doubles and clips: a lower limit shows from the third iteration on."""
    body = helper.make_graph(
        [helper.make_node("Mul", ["s", "factor"], ["m"], "grow"),
         helper.make_node("Clip", ["m", "low", "high"], ["s_next"], "clip"),
         helper.make_node("Less", ["i", "enough"], ["goes_on"], "is_less")],
        "body",
        [value("i", [], TensorProto.INT64), value("again", [], TensorProto.BOOL), value("s", [64])],
        [value("goes_on", [], TensorProto.BOOL), value("s_next", [64]), value("m", [64])],
        [numpy_helper.from_array(np.float32(0), "low"),
         numpy_helper.from_array(np.float32(100), "high"),
         numpy_helper.from_array(np.int64(4), "enough")])
    nodes = [helper.make_node("Sign", ["positive"], ["one"], "sign"),
             helper.make_node("Add", ["one", "one"], ["factor"], "two"),
             helper.make_node("Loop", ["", "yes", "x0"], ["y", "all"], "rounds", body=body),
             helper.make_node("Sqrt", ["y"], ["z"], "last")]
    return model_of(nodes, [numpy_helper.from_array(np.bool_(True), "yes")],
                    [value("x0", [64]), value("positive", [1])],
                    [value("z", [64]), value("all", ["rounds", 64])])


def make_scan(rng):
    """A Scan along the second axis, backwards, that adds what it is given to twice its state."""
    body = helper.make_graph(
        [helper.make_node("Mul", ["s", "factor"], ["m"], "grow"),
         helper.make_node("Add", ["m", "part"], ["a"], "gather"),
         helper.make_node("Clip", ["a", "low", "high"], ["s_next"], "clip"),
         helper.make_node("Identity", ["s_next"], ["seen"], "show")],
        "body", [value("s", [64]), value("part", [64])],
        [value("s_next", [64]), value("seen", [64])],
        [numpy_helper.from_array(np.float32(0), "low"),
         numpy_helper.from_array(np.float32(100), "high"),
         numpy_helper.from_array(np.float32(2), "factor")])
    nodes = [helper.make_node("Relu", ["x0"], ["x1"], "first"),
             helper.make_node("Scan", ["zero", "x1"], ["y", "all"], "rounds", body=body,
                              num_scan_inputs=1, scan_input_axes=[1], scan_input_directions=[1]),
             helper.make_node("Sqrt", ["y"], ["z"], "last")]
    return model_of(nodes, [numpy_helper.from_array(np.zeros(64, np.float32), "zero")],
                    [value("x0", [64, 6])], [value("z", [64]), value("all", [6, 64])])


def body(model):
    node = next(n for n in model.graph.node if n.op_type in ("Loop", "Scan"))
    return attribute(node, "body").g
