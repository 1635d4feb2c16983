"""What becomes of a fault in front of many kinds of ops."""

import numpy
from onnx import helper, numpy_helper

from bench import info, make_model, node

# Ops that each may let a change die, spread or turn into something else: type, constants, attributes.
OPS = [
    ("MaxPool", "", dict(kernel_shape=[2, 2], strides=[2, 2])),
    ("MaxPool", "", dict(kernel_shape=[3, 3], pads=[1, 1, 1, 1])),
    ("MaxPool", "", dict(kernel_shape=[2, 2], dilations=[2, 2])),
    ("AveragePool", "", dict(kernel_shape=[3, 3], pads=[1, 1, 1, 1])),
    ("AveragePool", "", dict(kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)),
    ("LpPool", "", dict(kernel_shape=[2, 2])),
    *((type, "", {}) for type in """GlobalAveragePool GlobalMaxPool Relu LeakyRelu Elu Selu Sigmoid HardSigmoid HardSwish Tanh Erf Exp
        Gelu Mish Softplus Abs Reciprocal Floor Sign Round Softmax LogSoftmax ReduceMean ReduceMax Flatten""".split()),
    ("Softmax", "", dict(axis=1)),
    ("Transpose", "", dict(perm=[0, 2, 3, 1])),
    ("DepthToSpace", "", dict(blocksize=2)),
    ("SpaceToDepth", "", dict(blocksize=3)),
    ("LRN", "", dict(size=3)),
    ("Clip", "low high", {}),
    ("InstanceNormalization", "four five", {}),
    ("GroupNormalization", "four five", dict(num_groups=2)),
    ("LayerNormalization", "nine", {}),
    ("Conv", "weight", {}),
    ("Conv", "point", {}),
    ("Conv", "depth", dict(group=4, pads=[1, 1, 1, 1])),
    ("Conv", "weight", dict(strides=[2, 2], pads=[1, 0, 0, 1])),
    ("Conv", "weight", dict(dilations=[2, 2])),
    ("ConvTranspose", "weight", dict(strides=[2, 2])),
    ("Concat", "whole", dict(axis=1)),
    ("Pad", "pads", {}),
    ("Pad", "pads", dict(mode="reflect")),
    ("PRelu", "slope", {}),
    *((type, "whole", {}) for type in "Max Min Add Div".split()),
    ("Pow", "high", {}),
    ("MatMul", "matrix", {}),
    ("Resize", "~ scales", dict(mode="nearest")),
    ("Resize", "~ scales", dict(mode="linear")),
    ("Slice", "zeros sevens axes twos", {}),
    ("Tile", "repeats", {}),
    ("CumSum", "two", {}),
    ("TopK", "twos", {}),
    ("Gather", "picks", dict(axis=2)),
    ("Einsum", "", dict(equation="abcd->acb")),
]


def op_model(type, names, attributes, random):
    def floats(*shape):
        return random.normal(size=shape).astype(numpy.float32)

    constants = {
        "weight": floats(4, 4, 3, 3), "point": floats(4, 4, 1, 1), "depth": floats(4, 1, 3, 3), "four": floats(4), "five": floats(4),
        "nine": floats(9), "whole": floats(1, 4, 9, 9), "slope": floats(4, 1, 1), "matrix": floats(9, 7), "low": numpy.float32(-1),
        "high": numpy.float32(3), "pads": numpy.array([0, 0, 1, 2, 0, 0, 2, 1]), "scales": numpy.array([1, 1, 2, 2], numpy.float32),
        "zeros": numpy.array([0]), "sevens": numpy.array([7]), "axes": numpy.array([2]), "twos": numpy.array([2]), "two": numpy.array(2),
        "repeats": numpy.array([1, 1, 2, 1]), "picks": numpy.array([3, 0, 3, 8]),
    }
    inputs = ["" if name == "~" else name for name in names.split()]
    nodes = [node("Mul", "x k", "a", "before"),
             helper.make_node(type, ["a", *inputs], ["b", "which"] if type == "TopK" else ["b"], name="op", **attributes),
             node("Tanh", "b", "c", "after"), node("Flatten", "c", "y", "flatten")]
    kept = [numpy_helper.from_array(constants[name], name) for name in inputs if name]
    kept.append(numpy_helper.from_array(floats(1, 4, 1, 1), "k"))
    side = 8 if type == "DepthToSpace" else 9
    shape = [1, 4, side, side]
    model = make_model(nodes, [info("x", "f32", shape)], [info("y", "f32", None)], kept, [info("a", "f32", shape)])
    return model, {"x": floats(*shape)}


def part_ops(bench):
    random = numpy.random.default_rng(8)
    for type, names, attributes in OPS:
        model, feeds = op_model(type, names, attributes, random)
        faults = []
        for what in ("set nan", "set nan", "set inf", "set -inf", "set 3e38", "flip 30", "flip 31", "flip 22", "flip 0", "add 0.01", "zero"):
            faults.append(f"a [0,{random.integers(4)},{random.integers(8)},{random.integers(8)}] {what}")
        faults += ["a [0,0,0,0] set nan", "a [0,3,7,7] set 5", "a [0,1,3] set nan", "a [0,2] add 1", "a [0,1,2:4,3:6] set -4"]
        bench.trials(model, [feeds], faults, " ".join([type, *(f"{k}={v}" for k, v in attributes.items())]))
