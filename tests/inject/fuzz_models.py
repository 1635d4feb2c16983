"""Random small models of many kinds, each with one input `x` whose first dimension is the batch."""

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOATS = {"f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16, "f64": TensorProto.DOUBLE, "bf16": TensorProto.BFLOAT16}


class Net:
    """A graph that grows op by op. Ops and constants are named after what they do."""

    def __init__(self, random, dtype="f32"):
        self.random = random
        self.dtype = dtype
        self.nodes, self.constants, self.sparse, self.outputs = [], [], [], []
        self.count = 0

    def pick(self, *choices):
        return choices[int(self.random.integers(len(choices)))]

    def weight(self, name, *shape, scale=None):
        scale = scale or 1 / max(1, numpy.prod(shape[1:])) ** 0.5
        array = (self.random.normal(size=shape) * scale).astype(numpy.float32)
        return self.constant(name, array, self.dtype)

    def constant(self, name, array, dtype=None):
        if dtype in FLOATS:
            if dtype == "bf16":
                bits = (numpy.asarray(array, numpy.float32).view(numpy.uint32) >> 16).astype(numpy.uint16)
                tensor = helper.make_tensor(name, TensorProto.BFLOAT16, array.shape, bits.tobytes(), raw=True)
            else:
                kind = {"f32": numpy.float32, "f16": numpy.float16, "f64": numpy.float64}[dtype]
                tensor = numpy_helper.from_array(numpy.asarray(array, kind), name)
        else:
            tensor = numpy_helper.from_array(numpy.asarray(array), name)
        self.constants.append(tensor)
        return name

    def op(self, type, inputs, outputs=1, **attributes):
        self.count += 1
        name = f"{type.lower()}{self.count}"
        names = [f"{name}_out"] if outputs == 1 else [f"{name}_out{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(type, inputs, names, name=name, **attributes))
        return names[0] if outputs == 1 else names

    def conv(self, x, inputs, outputs, kernel, dims=2, bias=True, **attributes):
        group = attributes.get("group", 1)
        self.count += 1
        name = f"c{self.count}"
        w = self.weight(f"{name}.weight", outputs, inputs // group, *[kernel] * dims)
        b = [self.weight(f"{name}.bias", outputs, scale=0.3)] if bias else []
        return self.op("Conv", [x, w, *b], kernel_shape=[kernel] * dims, **attributes)

    def linear(self, x, inputs, outputs):
        self.count += 1
        name = f"l{self.count}"
        if self.pick(True, False) and self.dtype != "bf16":
            w = self.weight(f"{name}.weight", outputs, inputs)
            # One number per column, a single one, or (as many rows as columns or not) one per row.
            b = self.weight(f"{name}.bias", *self.pick((outputs,), (1, outputs), (1,)), scale=0.3)
            return self.op("Gemm", [x, w, b], transB=1)
        w = self.weight(f"{name}.weight", inputs, outputs, scale=inputs**-0.5)
        y = self.op("MatMul", [x, w])
        return self.op("Add", [y, self.weight(f"{name}.bias", outputs, scale=0.3)]) if self.pick(True, False) else y

    def activation(self, x):
        return self.op(self.pick("Relu", "Sigmoid", "Tanh", "LeakyRelu", "Relu"), [x])

    def head(self, x, features, classes=None):
        """From [N, features] to scores."""
        classes = classes or int(self.random.integers(3, 40))
        y = self.linear(x, features, classes)
        if self.pick(True, False):
            y = self.op("Softmax", [y], axis=-1)
        self.outputs.append(y)

    def pooled_head(self, x, channels):
        self.head(self.op("Flatten", [self.op("GlobalAveragePool", [x])]), channels)

    def model(self, shape, dtype=None, bodies=()):
        info = helper.make_tensor_value_info("x", FLOATS.get(dtype or self.dtype, dtype), shape)
        outputs = [onnx.ValueInfoProto(name=name) for name in self.outputs]
        graph = helper.make_graph(self.nodes, "fuzz", [info], outputs, self.constants, sparse_initializer=self.sparse)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        # The types of outputs, as ONNX infers them.
        inferred = {v.name: v for v in onnx.shape_inference.infer_shapes(model).graph.value_info}
        inferred |= {v.name: v for v in onnx.shape_inference.infer_shapes(model).graph.output}
        for output in model.graph.output:
            known = inferred.get(output.name)
            if known is not None and known.type.WhichOneof("value"):
                output.CopyFrom(known)
            else:
                output.CopyFrom(helper.make_tensor_value_info(output.name, FLOATS[self.dtype], None))
        return model


def vision(random, dtype="f32", **_):
    net = Net(random, dtype)
    channels, size = net.pick(3, 4, 8), int(random.integers(5, 11))
    x, c, start = "x", channels, size
    for _ in range(int(random.integers(1, 4))):
        out = net.pick(4, 8, 16, 20, 24, 32)
        kernel = net.pick(1, 3)
        kind = net.pick("plain", "plain", "depthwise", "grouped", "dilated", "residual", "normal", "pool")
        if kind == "depthwise":
            y, out = net.conv(x, c, c, 3, group=c, pads=[1, 1, 1, 1]), c
        elif kind == "grouped" and c % 2 == 0:
            y = net.conv(x, c, out, kernel, group=2, pads=[kernel // 2] * 4, bias=net.pick(True, False))
        elif kind == "dilated":
            y = net.conv(x, c, out, 3, dilations=[2, 2], pads=[2, 2, 2, 2])
        elif kind == "residual":
            y, out = net.op("Add", [net.conv(x, c, c, kernel, pads=[kernel // 2] * 4), x]), c
        elif kind == "pool" and size > 4:
            y, out = net.op(net.pick("MaxPool", "AveragePool"), [x], kernel_shape=[2, 2], strides=[1, 1]), c
            size -= 1
        else:
            y = net.conv(x, c, out, kernel, pads=[kernel // 2] * 4, bias=net.pick(True, False))
        if kind == "normal":
            y = net.op("BatchNormalization", [y, net.weight(f"g{net.count}", out), net.weight(f"b{net.count}", out), net.weight(f"m{net.count}", out),
                                              net.constant(f"v{net.count}", random.uniform(0.5, 2, out).astype(numpy.float32), dtype)])
        x, c = net.activation(y), out
    if net.pick(True, False):
        net.pooled_head(x, c)
    else:
        net.head(net.op("Flatten", [x]), c * size * size)
    return net.model([1, channels, start, start])


def shuffle(random, **_):
    """Parallel branches that the engine moves in and out of its own layout."""
    net = Net(random)
    c, size = net.pick(16, 24, 32), 6
    x = net.activation(net.conv("x", 3, c, 3, pads=[1, 1, 1, 1]))
    for unit in range(int(random.integers(1, 4))):
        left, right = net.op("Split", [x], 2, axis=1, num_outputs=2)
        right = net.op("Relu", [net.conv(right, c // 2, c // 2, 1)])
        right = net.conv(right, c // 2, c // 2, 3, group=c // 2, pads=[1, 1, 1, 1])
        right = net.op("Relu", [net.conv(right, c // 2, c // 2, 1)])
        if net.pick(True, False):
            left = net.op("Relu", [net.conv(left, c // 2, c // 2, 1)])
        x = net.op("Concat", [left, right], axis=1)
        x = net.op("Reshape", [x, net.constant(f"s{unit}a", numpy.array([1, 2, c // 2, size, size]))])
        x = net.op("Transpose", [x], perm=[0, 2, 1, 3, 4])
        x = net.op("Reshape", [x, net.constant(f"s{unit}b", numpy.array([1, c, size, size]))])
    net.pooled_head(x, c)
    return net.model([1, 3, size, size])


def transposed(random, **_):
    net = Net(random)
    a, b = net.pick(4, 8), net.pick(4, 16)
    x = net.activation(net.conv("x", 3, a, 3, pads=[1, 1, 1, 1]))
    x = net.op("ConvTranspose", [x, net.weight("up.weight", a, b, 2, 2), net.weight("up.bias", b)], strides=[2, 2], kernel_shape=[2, 2])
    net.outputs.append(net.op("Softmax", [net.conv(x, b, 5, 1)], axis=1))
    return net.model([1, 3, 4, 4])


def conv1d(random, **_):
    net = Net(random)
    x, c = "x", 4
    for _ in range(int(random.integers(1, 4))):
        out = net.pick(4, 8, 16)
        x, c = net.activation(net.conv(x, c, out, 3, dims=1, pads=[1, 1], dilations=[1], group=net.pick(1, 1, 4))), out
    net.head(net.op("Flatten", [x]), c * 12)
    return net.model([1, 4, 12])


def conv3d(random, **_):
    net = Net(random)
    x = net.activation(net.conv("x", 2, 4, 3, dims=3, pads=[1] * 6))
    x = net.activation(net.conv(x, 4, 6, 2, dims=3, group=2))
    net.head(net.op("Flatten", [x]), 6 * 27)
    return net.model([1, 2, 4, 4, 4])


def recurrent(random, **_):
    net = Net(random)
    kind, gates = net.pick(("LSTM", 4), ("GRU", 3), ("RNN", 1))
    hidden, directions = net.pick(4, 8), net.pick(1, 2)
    x = net.op("Transpose", ["x"], perm=[1, 0, 2])
    w = net.weight("w", directions, gates * hidden, 5, scale=0.4)
    r = net.weight("r", directions, gates * hidden, hidden, scale=0.4)
    b = net.weight("b", directions, 2 * gates * hidden, scale=0.2)
    attributes = {"direction": "bidirectional"} if directions == 2 else {}
    if kind == "GRU":
        attributes["linear_before_reset"] = net.pick(0, 1)
    y = net.op(kind, [x, w, r, b], 2, hidden_size=hidden, **attributes)[1]
    y = net.op("Reshape", [net.op("Transpose", [y], perm=[1, 0, 2]), net.constant("flat", numpy.array([1, directions * hidden]))])
    net.head(net.activation(y), directions * hidden)
    return net.model([1, 6, 5])


def normalized(net, x, width):
    if net.pick(True, False):
        return net.op("LayerNormalization", [x, net.weight(f"ln{net.count}.g", width, scale=1), net.weight(f"ln{net.count}.b", width, scale=0.1)], axis=-1)
    mean = net.op("ReduceMean", [x, net.constant(f"axes{net.count}", numpy.array([-1]))])
    centered = net.op("Sub", [x, mean])
    variance = net.op("ReduceMean", [net.op("Mul", [centered, centered]), net.constant(f"axes{net.count}", numpy.array([-1]))])
    return net.op("Div", [centered, net.op("Sqrt", [net.op("Add", [variance, net.constant(f"eps{net.count}", numpy.float32(1e-5))])])])


def decoder(random, **_):
    """Tokens, an embedding that not all inputs use, attention, and a product at the end, perhaps with the embedding."""
    net = Net(random)
    words, width, length = 24, net.pick(8, 16), 5
    table = net.weight("emb.weight", words, width, scale=1)
    x = net.op("Gather", [table, "x"], axis=0)
    for layer in range(int(random.integers(1, 3))):
        y = normalized(net, x, width)
        q, k, v = (net.op("MatMul", [y, net.weight(f"{p}{layer}", width, width, scale=width**-0.5)]) for p in "qkv")
        scores = net.op("MatMul", [q, net.op("Transpose", [k], perm=[0, 2, 1])])
        scores = net.op("Mul", [scores, net.constant(f"scale{layer}", numpy.float32(width**-0.5))])
        x = net.op("Add", [x, net.op("MatMul", [net.op("Softmax", [scores], axis=-1), v])])
        y = net.op("MatMul", [normalized(net, x, width), net.weight(f"up{layer}", width, 2 * width, scale=width**-0.5)])
        x = net.op("Add", [x, net.op("MatMul", [net.op("Relu", [y]), net.weight(f"down{layer}", 2 * width, width, scale=(2 * width)**-0.5)])])
    if net.pick(True, False):
        logits = net.op("MatMul", [x, net.op("Transpose", [table], perm=[1, 0])])
    else:
        logits = net.op("MatMul", [x, net.weight("lm.weight", width, words, scale=width**-0.5)])
    net.outputs.append(net.op("ArgMax", [logits], axis=-1, keepdims=0) if net.pick(True, False) else logits)
    return net.model([1, length], TensorProto.INT64)


def shared(random, **_):
    """One matrix read by several ops."""
    net = Net(random)
    w = net.weight("w", 8, 8)
    x = net.op("Relu", [net.op("MatMul", ["x", w])])
    for _ in range(int(random.integers(1, 3))):
        x = net.op("Relu", [net.op("Gemm", [x, w, net.weight(f"b{net.count}", *net.pick((8,), (1, 8)))], transB=net.pick(0, 1))])
    net.head(net.op("Add", [x, net.op("MatMul", ["x", net.op("Identity", [w])])]), 8)
    return net.model([1, 8])


def tall(random, **_):
    """Products of several rows, with an addend for each row, each column, or all of them."""
    net = Net(random)
    rows = 16
    b = net.pick((rows, 1), (16,), (1, 16), (rows, 16), (1,))
    x = net.op("Reshape", ["x", net.constant("to_rows", numpy.array([rows, 6]))])
    x = net.activation(net.op("Gemm", [x, net.weight("w1", 6, 16, scale=0.4), net.weight("b1", *b)]))
    x = net.op("Reshape", [x, net.constant("to_row", numpy.array([1, rows * 16]))])
    net.head(x, rows * 16)
    return net.model([1, rows * 6])


def quantized(random, **_):
    net = Net(random)
    scale = lambda name, value: net.constant(name, numpy.float32(value))
    zero = lambda name, value=0, kind=numpy.uint8: net.constant(name, kind(value))
    a = net.pick(4, 8, 16)
    weight = net.constant("w1", random.integers(-100, 100, (a, 3, 3, 3)).astype(numpy.int8))
    if net.pick(True, False):
        x = net.op("QuantizeLinear", ["x", scale("sx", 0.03), zero("zx", 128)])
        x = net.op("QLinearConv", [x, "sx", "zx", weight, scale("sw", 0.01), zero("zw", 0, numpy.int8), scale("sy", 0.05), zero("zy", 100),
                                   net.constant("b1", random.integers(-500, 500, a).astype(numpy.int32))], pads=[1, 1, 1, 1])
        x = net.op("DequantizeLinear", [x, "sy", "zy"])
    else:
        x = net.op("DequantizeLinear", [net.op("QuantizeLinear", ["x", scale("sx", 0.03), zero("zx", 128)]), "sx", "zx"])
        w = net.op("DequantizeLinear", [weight, net.constant("sw", random.uniform(0.005, 0.02, a).astype(numpy.float32)),
                                        net.constant("zw", numpy.zeros(a, numpy.int8))], axis=0)
        x = net.op("Relu", [net.op("Conv", [x, w, net.weight("b1", a)], pads=[1, 1, 1, 1])])
        x = net.op("DequantizeLinear", [net.op("QuantizeLinear", [x, scale("sy", 0.05), zero("zy", 0)]), "sy", "zy"])
    net.pooled_head(x, a)
    return net.model([1, 3, 6, 6])


def body(net, name, nodes, inputs, outputs, constants):
    return helper.make_graph(nodes, name, inputs, outputs, constants)


def control(random, **_):
    """If and Loop, with constants in their bodies and what they capture."""
    net = Net(random)
    value = lambda name, shape=None, kind=TensorProto.FLOAT: helper.make_tensor_value_info(name, kind, shape)
    table = lambda name, *shape: numpy_helper.from_array((random.normal(size=shape) / 3).astype(numpy.float32), name)
    h = net.linear("x", 6, 6)
    if net.pick(True, False):
        c = net.op("Greater", [net.op("ReduceSum", [h], keepdims=0), net.constant("limit", numpy.float32(0))])
        yes = body(net, "yes", [helper.make_node("MatMul", [h, "yw"], ["ym"], name="yes_product"), helper.make_node("Relu", ["ym"], ["yr"], name="yes_relu")],
                   [], [value("yr")], [table("yw", 6, 6)])
        no = body(net, "no", [helper.make_node("Sub", [h, "nb"], ["nr"], name="no_sub")], [], [value("nr")], [table("nb", 6)])
        h = net.op("If", [c], then_branch=yes, else_branch=no)
    else:
        rounds = net.constant("rounds", numpy.int64(3))
        turn = body(net, "turn", [
            helper.make_node("MatMul", ["state", "lw"], ["lm"], name="turn_product"),
            helper.make_node("Tanh", ["lm"], ["lt"], name="turn_tanh"),
            helper.make_node("Add", ["lt", h], ["next"], name="turn_add"),
            helper.make_node("Identity", ["keep"], ["again"], name="turn_keep"),
        ], [value("i", [], TensorProto.INT64), value("keep", [], TensorProto.BOOL), value("state", [1, 6])],
            [value("again", [], TensorProto.BOOL), value("next", [1, 6])], [table("lw", 6, 6)])
        h = net.op("Loop", [rounds, net.constant("yes", numpy.bool_(True)), h], body=turn)
    net.head(h, 6)
    return net.model([1, 6])


def sparse(random, **_):
    net = Net(random)
    dense = random.normal(size=(6, 9)).astype(numpy.float32) * (random.uniform(size=(6, 9)) < 0.3)
    dense[0, 0] = 1
    at = numpy.flatnonzero(dense)
    values = numpy_helper.from_array(dense.ravel()[at], "ws")
    net.sparse.append(helper.make_sparse_tensor(values, numpy_helper.from_array(at.astype(numpy.int64), "ws_i"), [6, 9]))
    x = net.activation(net.op("MatMul", ["x", "ws"]))
    net.head(x, 9)
    return net.model([1, 6])


def detector(random, **_):
    """Boxes and scores through NonMaxSuppression: the number of outputs depends on values."""
    net = Net(random)
    boxes = net.op("Reshape", [net.op("Sigmoid", [net.linear("x", 8, 24)]), net.constant("to_boxes", numpy.array([1, 6, 4]))])
    scores = net.op("Reshape", [net.op("Sigmoid", [net.linear("x", 8, 12)]), net.constant("to_scores", numpy.array([1, 2, 6]))])
    chosen = net.op("NonMaxSuppression", [boxes, scores, net.constant("most", numpy.int64(3)), net.constant("overlap", numpy.float32(0.5)),
                                          net.constant("least", numpy.float32(0.4))])
    net.outputs += [chosen, scores] if net.pick(True, False) else [scores, chosen]
    return net.model([1, 8])


def einsum(random, **_):
    net = Net(random)
    x = net.op("Reshape", ["x", net.constant("heads", numpy.array([1, 3, 4, 2]))])
    x = net.op("Einsum", [x, net.weight("we", 4, 2, 5, scale=0.4)], equation="nshd,hdk->nsk")
    if net.pick(True, False):
        x = net.op("Einsum", [x, x], equation="nsk,ntk->nst")
        net.head(net.op("Reshape", [x, net.constant("flat", numpy.array([1, 9]))]), 9)
    else:
        net.head(net.op("Reshape", [x, net.constant("flat", numpy.array([1, 15]))]), 15)
    return net.model([1, 24])


def scalar(random, **_):
    net = Net(random)
    x = net.activation(net.linear("x", 6, 10))
    net.outputs.append(net.op(net.pick("ReduceMean", "ReduceMax", "ReduceSum"), [x], keepdims=0))
    return net.model([1, 6])


def several(random, **_):
    """Two outputs, and an op whose output is both read and an output."""
    net = Net(random)
    x = net.activation(net.linear("x", 6, 8))
    net.outputs.append(x)
    net.head(net.op("Max", [x, net.op("Neg", [x])]), 8)
    return net.model([1, 6])


KINDS = {
    "vision": vision, "shuffle": shuffle, "transposed": transposed, "conv1d": conv1d, "conv3d": conv3d, "recurrent": recurrent, "decoder": decoder,
    "shared": shared, "tall": tall, "quantized": quantized, "control": control, "sparse": sparse, "detector": detector, "einsum": einsum,
    "scalar": scalar, "several": several,
    "f16": lambda random, **_: vision(random, "f16"), "f64": lambda random, **_: doubles(random), "bf16": lambda random, **_: brains(random),
}


def doubles(random):
    net = Net(random, "f64")
    x = net.op("Relu", [net.op("MatMul", ["x", net.weight("w1", 6, 16, scale=0.4)])])
    y = net.op("Gemm", [x, net.weight("w2", 16, 7, scale=0.3), net.weight("b2", 7)])
    net.outputs.append(net.op("Softmax", [y]))
    return net.model([1, 6])


def brains(random):
    """bf16 is for storage here: no engine computes in it on every CPU."""
    net = Net(random, "bf16")
    w = net.op("Cast", [net.weight("w1", 6, 16, scale=0.4)], to=TensorProto.FLOAT)
    x = net.op("Relu", [net.op("MatMul", ["x", w])])
    x = net.op("Cast", [net.op("Cast", [x], to=TensorProto.BFLOAT16)], to=TensorProto.FLOAT)
    v = net.op("Cast", [net.weight("w2", 16, 5, scale=0.3)], to=TensorProto.FLOAT)
    net.outputs.append(net.op("MatMul", [x, v]))
    return net.model([1, 6], "f32")


def samples(random, model, count):
    """Inputs, one after the other along the first dimension."""
    type = model.graph.input[0].type.tensor_type
    shape = [d.dim_value for d in type.shape.dim]
    if type.elem_type == TensorProto.INT64:
        return random.integers(0, 24, (count, *shape[1:])).astype(numpy.int64)
    kind = {TensorProto.FLOAT16: numpy.float16, TensorProto.DOUBLE: numpy.float64}.get(type.elem_type, numpy.float32)
    return random.normal(size=(count, *shape[1:])).astype(kind)
