"""Small graphs of TensorFlow ops, without TensorFlow: what they are made of and what they read.

One GraphDef holds them all. Each case has placeholders NAME__x0, NAME__x1…, constants beside them, the op NAME, and its
results as NAME__0, NAME__1…
"""

import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "formats" / "tensorflow"))
import make as tf  # noqa: E402

import tf_control  # noqa: E402

TYPES = {"float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int64": 9, "bool": 10, "float16": 19}


def numbers(*shape, low=-2.0, high=2.0, seed=0):
    """The same numbers everywhere: no generator, only a long period."""
    count = int(np.prod(shape))
    unit = (np.arange(count, dtype=np.int64) * 7919 + seed * 104729 + 17) % 10007 / 10007.0
    return (low + (high - low) * unit).astype(np.float32).reshape(shape)


def whole(*shape, low=-9, high=10, seed=0, dtype=np.int32):
    return np.floor(numbers(*shape, low=low, high=high, seed=seed)).astype(dtype)


def truths(*shape, seed=0):
    return numbers(*shape, seed=seed) > 0


class C:
    """A constant of the graph."""

    def __init__(self, value, dtype=np.int32):
        self.value = np.array(value, dtype=None if isinstance(value, (np.ndarray, np.generic)) else dtype)


class Cases:
    def __init__(self):
        self.nodes = []
        self.functions = []
        self.inputs = {}
        self.outputs = []

    def add(self, case, op, *inputs, results=1, open_sizes=False, T=None, **attrs):
        """`T` False: the op has no such attribute; `open_sizes`: the graph does not say how long the first axes are."""
        read = []
        for i, value in enumerate(inputs):
            name = f"{case}__x{i}"
            read.append(name)
            array = value.value if isinstance(value, C) else value
            kind = TYPES[str(array.dtype)]
            if isinstance(value, C):
                self.nodes.append(tf.const(name, kind, array.shape, array.tobytes()))
            else:
                dims = [-1 if open_sizes and axis == 0 else size for axis, size in enumerate(array.shape)]
                self.nodes.append(tf.node(name, "Placeholder", dtype=("type", kind), shape=("shape", tf.shape(*dims))))
                self.inputs[name] = array
        if T is None:
            first = next((v for v in inputs if not isinstance(v, C)), inputs[0])
            T = TYPES[str((first.value if isinstance(first, C) else first).dtype)]
        if T is not False:
            attrs["T"] = T if isinstance(T, list) else ("type", T)
        told = {k: v for k, v in attrs.items() if not k.startswith("result")}
        self.nodes.append(tf.node(case, op, read, **told))
        for i in range(results):
            out = f"{case}__{i}"
            kind = attrs.get(f"result{i}")
            self.nodes.append(tf.node(out, "Identity", [f"{case}:{i}"], T=kind or self.result_type(op, i, attrs)))
            self.outputs.append(out)

    @staticmethod
    def result_type(op, i, attrs):
        if op in ("Equal", "Greater", "GreaterEqual", "Less", "LessEqual", "LogicalAnd", "LogicalNot", "LogicalOr", "NotEqual",
                  "All", "Any", "IsNan", "IsInf", "IsFinite"):
            return ("type", 10)
        if op in ("ResizeBilinear",):
            return ("type", 1)
        if op == "Rank" or (op == "TopKV2" and i == 1):
            return ("type", 3)
        if op == "Where":
            return ("type", 9)
        for name in ("DstT", "out_type", "output_type", "Tparams", "Tidx", "T"):
            if name in attrs:
                return attrs[name]
        raise ValueError(op)

    def graph(self):
        return tf.graph(self.nodes, self.functions)


I32, I64, F32, BOOL = ("type", 3), ("type", 9), ("type", 1), ("type", 10)


def convolutions(cases):
    for padding in ("SAME", "VALID"):
        for stride in (1, 2):
            cases.add(f"conv_{padding}_{stride}", "Conv2D", numbers(2, 9, 8, 3), C(numbers(3, 2, 3, 5, seed=1)),
                      strides=[1, stride, stride, 1], padding=padding, open_sizes=True)
            cases.add(f"depthwise_{padding}_{stride}", "DepthwiseConv2dNative", numbers(1, 7, 8, 3, seed=2),
                      C(numbers(3, 3, 3, 2, seed=3)), strides=[1, stride, stride, 1], padding=padding, open_sizes=True)
        cases.add(f"conv_dilated_{padding}", "Conv2D", numbers(1, 12, 11, 2), C(numbers(3, 3, 2, 4, seed=1)),
                  strides=[1, 1, 1, 1], dilations=[1, 2, 3, 1], padding=padding, open_sizes=True)
        cases.add(f"back_{padding}", "Conv2DBackpropInput", C([1, 9, 11, 3] if padding == "VALID" else [1, 8, 9, 3]),
                  C(numbers(3, 3, 3, 2, seed=1)), numbers(1, 4, 5, 2), strides=[1, 2, 2, 1], padding=padding, T=1)
        cases.add(f"back_wide_{padding}", "Conv2DBackpropInput", C([1, 12, 12, 1]), C(numbers(2, 2, 1, 2, seed=1)),
                  numbers(1, 4, 4, 2), strides=[1, 3, 3, 1], padding=padding, T=1)
        for op in ("MaxPool", "AvgPool"):
            cases.add(f"{op}_{padding}", op, numbers(1, 9, 8, 3), ksize=[1, 3, 2, 1], strides=[1, 2, 2, 1], padding=padding,
                      open_sizes=True)
    cases.add("back_computed", "Conv2DBackpropInput", np.array([1, 8, 10, 3], np.int32), C(numbers(3, 3, 3, 2, seed=1)),
              numbers(1, 4, 5, 2), strides=[1, 2, 2, 1], padding="SAME", T=1)
    cases.add("conv_explicit", "Conv2D", numbers(1, 5, 6, 2), C(numbers(3, 3, 2, 4, seed=1)), strides=[1, 1, 2, 1],
              padding="EXPLICIT", explicit_paddings=[0, 0, 1, 2, 0, 1, 0, 0])
    cases.add("conv_grouped", "Conv2D", numbers(1, 5, 6, 4), C(numbers(3, 3, 2, 6, seed=1)), strides=[1, 1, 1, 1],
              padding="SAME")
    cases.add("bias", "BiasAdd", numbers(2, 3, 4, 5), C(numbers(5, seed=1)), open_sizes=True)
    cases.add("bias_first", "BiasAdd", numbers(2, 5, 3, 4), C(numbers(5, seed=1)), data_format="NCHW")
    for version in ("", "V2", "V3"):
        extra = {"U": F32} if version else {}
        cases.add(f"norm{version}", f"FusedBatchNorm{version}", numbers(2, 3, 4, 5), C(numbers(5, seed=1)),
                  C(numbers(5, seed=2)), C(numbers(5, seed=3)), C(numbers(5, seed=4, low=0.5)), epsilon=0.001,
                  is_training=False, **extra)
    cases.add("lrn", "LRN", numbers(1, 3, 4, 7), depth_radius=2, bias=1.5, alpha=0.1, beta=0.6)


def products(cases):
    for a in (False, True):
        for b in (False, True):
            cases.add(f"matmul_{a}_{b}", "MatMul", numbers(*((4, 3) if a else (3, 4))),
                      C(numbers(*((5, 4) if b else (4, 5)), seed=1)), transpose_a=a, transpose_b=b)
            cases.add(f"batch_{a}_{b}", "BatchMatMulV2", numbers(2, *((4, 3) if a else (3, 4))),
                      numbers(1, *((5, 4) if b else (4, 5)), seed=1), adj_x=a, adj_y=b)
    cases.nodes.append(tf.node("einsum__x0", "Placeholder", dtype=F32, shape=("shape", tf.shape(2, 3, 4))))
    cases.inputs["einsum__x0"] = numbers(2, 3, 4)
    cases.nodes.append(tf.const("einsum__x1", 1, (4, 5), numbers(4, 5, seed=1).tobytes()))
    cases.nodes.append(tf.node("einsum", "Einsum", ["einsum__x0", "einsum__x1"], equation="bij,jk->bki", N=2, T=F32))
    cases.nodes.append(tf.node("einsum__0", "Identity", ["einsum"], T=F32))
    cases.outputs.append("einsum__0")


def elements(cases):
    for op in ("Abs", "Neg", "Exp", "Expm1", "Square", "Reciprocal", "Sin", "Cos", "Tan", "Atan", "Sinh", "Cosh", "Erf", "Floor",
               "Ceil", "Round", "Rint", "Sign", "Relu", "Elu", "Selu", "Sigmoid", "Tanh", "Softplus", "Softsign",
               "ZerosLike", "OnesLike", "Identity", "StopGradient", "IsNan", "IsFinite"):
        cases.add(f"one_{op}", op, numbers(3, 5, seed=3), open_sizes=True)
    for op in ("Log", "Log1p", "Sqrt", "Rsqrt"):
        cases.add(f"one_{op}", op, numbers(3, 5, low=0.1, high=3))
    for op in ("Asin", "Acos"):
        cases.add(f"one_{op}", op, numbers(3, 5, low=-0.9, high=0.9))
    cases.add("one_Relu6", "Relu6", numbers(3, 5, low=-3, high=9))
    cases.add("one_LeakyRelu", "LeakyRelu", numbers(3, 5), alpha=0.3)
    cases.add("one_LeakyRelu_usual", "LeakyRelu", numbers(3, 5))
    cases.add("one_LogicalNot", "LogicalNot", truths(3, 5), T=False)
    cases.add("cast_down", "Cast", numbers(3, 5, low=-5, high=5), T=False, SrcT=F32, DstT=I32)
    cases.add("cast_truth", "Cast", truths(3, 5), T=False, SrcT=BOOL, DstT=F32)
    for op in ("Add", "AddV2", "Sub", "Mul", "RealDiv", "Maximum", "Minimum", "SquaredDifference", "Less", "LessEqual", "Greater",
               "GreaterEqual", "FloorDiv", "FloorMod"):
        cases.add(f"two_{op}", op, numbers(2, 3, 4), numbers(3, 1, seed=5, low=0.5, high=3))
    for op in ("AddV2", "Mul", "FloorDiv", "FloorMod", "Maximum", "Equal", "NotEqual"):
        cases.add(f"two_whole_{op}", op, whole(4, 6), C(np.array([[3, -3, 2, -4, 5, 1]], np.int32)))
    cases.add("two_Pow", "Pow", numbers(3, 4, low=0.2, high=3), numbers(4, seed=1))
    cases.add("two_DivNoNan", "DivNoNan", numbers(2, 3), C(np.array([[0, 2, -1], [1, 0, 3]], np.float32)))
    for op in ("LogicalAnd", "LogicalOr"):
        cases.add(f"two_{op}", op, truths(3, 4), truths(3, 4, seed=9), T=False)
    cases.add("add_n", "AddN", numbers(2, 3), numbers(2, 3, seed=1), numbers(2, 3, seed=2), N=3)
    cases.add("select_v2", "SelectV2", truths(3, 1), numbers(2, 3, 4), numbers(4, seed=1), T=1)
    cases.add("select_rows", "Select", truths(3), numbers(3, 4), numbers(3, 4, seed=1), T=1)
    cases.add("clip", "ClipByValue", numbers(3, 4), C(np.float32(-0.5)), C(np.float32(0.75)))


def reductions(cases):
    for op in ("Mean", "Sum", "Max", "Min", "Prod", "EuclideanNorm"):
        for keep in (False, True):
            cases.add(f"{op}_{keep}", op, numbers(2, 3, 4, 5), C([1, 2]), keep_dims=keep, Tidx=I32, open_sizes=True, result0=F32)
    cases.add("mean_last", "Mean", numbers(2, 3, 4), C(-1), keep_dims=False, Tidx=I32, result0=F32)
    cases.add("mean_none", "Mean", numbers(2, 3, 4), C(np.zeros(0, np.int32)), keep_dims=False, Tidx=I32, result0=F32)
    cases.add("sum_computed", "Sum", numbers(2, 3, 4), np.array(1, np.int32), keep_dims=False, Tidx=I32, T=1, result0=F32)
    cases.add("all", "All", truths(3, 4), C([1]), T=False, keep_dims=False, Tidx=I32)
    cases.add("any", "Any", truths(3, 4), C([0]), T=False, keep_dims=True, Tidx=I32)
    cases.add("argmax", "ArgMax", numbers(3, 7), C(1), output_type=I64, Tidx=I32)
    cases.add("argmin", "ArgMin", numbers(3, 7), C(0), output_type=I32, Tidx=I32)
    cases.add("softmax", "Softmax", numbers(2, 3, 4))
    cases.add("log_softmax", "LogSoftmax", numbers(3, 4))
    for exclusive in (False, True):
        cases.add(f"cumsum_{exclusive}", "Cumsum", numbers(3, 4), C(1), exclusive=exclusive, reverse=not exclusive, Tidx=I32,
                  result0=F32)
    cases.add("top", "TopKV2", numbers(3, 7), C(3), results=2, sorted=True)


def places(cases):
    x = numbers(4, 5, 6)
    cases.add("reshape", "Reshape", x, C([2, -1, 3]), Tshape=I32, open_sizes=True)
    cases.add("reshape_computed", "Reshape", x, np.array([12, 10], np.int32), Tshape=I32)
    cases.add("squeeze", "Squeeze", numbers(1, 3, 1, 2), squeeze_dims=[0, 2])
    cases.add("squeeze_all", "Squeeze", numbers(1, 3, 1, 2))
    cases.add("expand", "ExpandDims", x, C(-2), Tdim=I32)
    cases.add("transpose", "Transpose", x, C([2, 0, 1]), Tperm=I32)
    cases.add("concat", "ConcatV2", x, numbers(4, 2, 6, seed=1), C(1), N=2, Tidx=I32, result0=F32)
    cases.add("concat_old", "Concat", C(-1), x, numbers(4, 5, 1, seed=1), N=2)
    cases.add("pad", "Pad", numbers(3, 4), C([[1, 2], [0, 3]]), Tpaddings=I32)
    cases.add("pad_computed", "Pad", numbers(3, 4), np.array([[1, 2], [0, 3]], np.int32), Tpaddings=I32)
    cases.add("pad_value", "PadV2", numbers(3, 4), C([[1, 2], [0, 3]]), C(np.float32(7.5)), Tpaddings=I32)
    cases.add("mirror", "MirrorPad", numbers(3, 4), C([[1, 2], [0, 3]]), mode="REFLECT", Tpaddings=I32)
    cases.add("mirror_edge", "MirrorPad", numbers(3, 4), C([[1, 1], [0, 1]]), mode="SYMMETRIC", Tpaddings=I32)
    cases.add("slice", "Slice", x, C([1, 0, 2]), C([2, -1, 3]), Index=I32)
    cases.add("slice_computed", "Slice", x, np.array([1, 0, 2], np.int32), np.array([2, -1, 3], np.int32), Index=I32)
    for name, begin, end, step, masks in (
            ("plain", [1, 0, -2], [3, 4, 6], [1, 2, 1], {}),
            ("masks", [1, 2, 3], [3, 3, 4], [1, 1, 2], {"begin_mask": 2, "end_mask": 5}),
            ("back", [0, 4], [4, 0], [1, -2], {"end_mask": 2}),
            ("single", [1, -1], [2, 0], [1, 1], {"shrink_axis_mask": 3}),
            ("fresh", [0, 1, 0], [0, 3, 0], [1, 1, 1], {"new_axis_mask": 1, "shrink_axis_mask": 4}),
            ("ellipsis", [0, 1], [0, 3], [1, 1], {"ellipsis_mask": 1}),
            ("all", [2, 0, 0, 1], [3, 0, 0, 5], [1, 1, 1, 2], {"shrink_axis_mask": 1, "ellipsis_mask": 2, "new_axis_mask": 4})):
        cases.add(f"strided_{name}", "StridedSlice", x, C(begin), C(end), C(step), Index=I32, open_sizes=True, **masks)
    cases.add("strided_computed", "StridedSlice", x, np.array([1, -1, 0], np.int32), np.array([3, 0, 5], np.int32), C([1, 1, 2]),
              Index=I32, begin_mask=4, end_mask=1, shrink_axis_mask=2)
    cases.add("split", "Split", C(1), numbers(2, 6), num_split=3, results=3)
    cases.add("split_some", "Split", C(0), numbers(6, 2), num_split=3, results=2)
    cases.add("split_sizes", "SplitV", numbers(2, 6), C([1, -1, 3]), C(1), num_split=3, Tlen=I32, results=3)
    for axis in (0, 1, -1):
        cases.add(f"pack_{axis}", "Pack", numbers(2, 3), numbers(2, 3, seed=1), N=2, axis=axis)
    cases.add("unpack", "Unpack", numbers(2, 3), num=3, axis=1, results=3)
    for axis in (0, 1):
        cases.add(f"gather_{axis}", "GatherV2", numbers(4, 5), C([[3, 0], [2, 1]]), C(axis), T=False, Tparams=F32, Tindices=I32,
                  Taxis=I32)
    cases.add("gather_nd", "GatherNd", numbers(4, 5), C([[3, 0], [1, 2]]), T=False, Tparams=F32, Tindices=I32)
    cases.add("scatter", "ScatterNd", C([[3], [1], [3]]), numbers(3, 2), C([5, 2]), Tindices=I32)
    cases.add("tile", "Tile", numbers(2, 3), C([2, 3]), Tmultiples=I32)
    cases.add("broadcast", "BroadcastTo", numbers(3, 1), C([2, 3, 4]), Tidx=I32, result0=F32)
    cases.add("fill", "Fill", C([2, 3]), np.array(2.5, np.float32), index_type=I32, T=1)
    cases.add("range", "Range", C(2), np.array(11, np.int32), C(3), T=False, Tidx=I32)
    cases.add("shape", "Shape", numbers(2, 3), out_type=I32)
    cases.add("shape_open", "Shape", numbers(2, 3), out_type=I64, open_sizes=True)
    cases.add("size", "Size", numbers(2, 3), out_type=I32)
    cases.add("rank", "Rank", numbers(2, 3))
    cases.add("reverse", "ReverseV2", x, C([1, 2]), Tidx=I32, result0=F32)
    cases.add("one_hot", "OneHot", whole(4, low=0, high=5), C(5), C(np.float32(2)), C(np.float32(-1)), T=1, TI=I32, axis=-1)
    cases.add("where", "Where", truths(3, 4), T=10)


def pictures(cases):
    x = numbers(2, 4, 5, 3)
    for align, half in ((False, False), (False, True), (True, False)):
        for op in ("ResizeBilinear", "ResizeNearestNeighbor"):
            for size in ((7, 9), (8, 10), (3, 2)):
                cases.add(f"{op}_{align}_{half}_{size[0]}", op, x, C(list(size)), align_corners=align, half_pixel_centers=half,
                          open_sizes=True)
    cases.add("depth_to_space", "DepthToSpace", numbers(1, 2, 3, 8), block_size=2)
    cases.add("space_to_depth", "SpaceToDepth", numbers(1, 4, 6, 2), block_size=2)
    cases.add("space_to_batch", "SpaceToBatchND", numbers(2, 5, 6, 3), C([2, 3]), C([[1, 0], [2, 1]]), Tblock_shape=I32,
              Tpaddings=I32)
    cases.add("batch_to_space", "BatchToSpaceND", numbers(12, 3, 3, 2), C([2, 3]), C([[1, 0], [2, 1]]), Tblock_shape=I32,
              Tcrops=I32)


def cases():
    made = Cases()
    for part in (convolutions, products, elements, reductions, places, pictures, tf_control.add):
        part(made)
    return made
