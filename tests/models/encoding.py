"""How weights are stored: packed and tiny types, typed fields, sparse and external data."""

import ml_dtypes
import numpy as np
from onnx import TensorProto, external_data_helper, helper, numpy_helper

from build import FLOAT, Builder, constant, make_model, model, node, random, value


def quantized(name, kind, low, high, opset, ir):
    """x + dequantized weights of a packed integer type, 5 columns so that a row does not end on a byte."""
    weights = random(1, name).integers(low, high, (3, 5), endpoint=True)
    graph = helper.make_graph(
        [node("DequantizeLinear", ["w", "scale", "zero"], ["dense"], "dequantize", axis=0),
         node("Add", ["x", "dense"], ["y"], "add")],
        name, [value("x", FLOAT, [3, 5])], [value("y", FLOAT, [3, 5])],
        [helper.make_tensor("w", kind, [3, 5], weights.flatten().tolist()), constant("scale", [0.5, 1, 2], np.float32),
         helper.make_tensor("zero", kind, [3], [low + 1, low + 1, low])])
    return make_model(graph, opset=opset, ir=ir)


@model("int4", "signed 4-bit weights behind DequantizeLinear")
def int4(_):
    return quantized("int4", TensorProto.INT4, -8, 7, 21, 10)


@model("uint4", "unsigned 4-bit weights behind DequantizeLinear")
def uint4(_):
    return quantized("uint4", TensorProto.UINT4, 0, 15, 21, 10)


@model("int2", "signed 2-bit weights behind DequantizeLinear")
def int2(_):
    return quantized("int2", TensorProto.INT2, -2, 1, 25, 13)


@model("uint2", "unsigned 2-bit weights behind DequantizeLinear")
def uint2(_):
    return quantized("uint2", TensorProto.UINT2, 0, 3, 25, 13)


@model("int4_blocked", "4-bit weights with a scale for every block of 16", shapes={"n": 2})
def int4_blocked(_):
    weights = random(1, "int4_blocked").integers(-8, 7, (32, 6), endpoint=True)
    graph = helper.make_graph(
        [node("DequantizeLinear", ["w", "scale"], ["dense"], "dequantize", axis=0, block_size=16),
         node("MatMul", ["x", "dense"], ["y"], "matmul")],
        "int4_blocked", [value("x", FLOAT, ["n", 32])], [value("y", FLOAT, ["n", 6])],
        [helper.make_tensor("w", TensorProto.INT4, [32, 6], weights.flatten().tolist()),
         constant("scale", np.linspace(0.1, 1.2, 12).reshape(2, 6), np.float32)])
    return make_model(graph, opset=21, ir=10)


def cast_from(name, kind, numpy_type, opset, ir):
    values = np.array([0.0, -0.0, 0.5, 1.0, 1.5, -2.0, 3.0], np.float32).astype(numpy_type)
    graph = helper.make_graph(
        [node("Cast", ["w"], ["wide"], "widen", to=FLOAT), node("Add", ["x", "wide"], ["y"], "add")],
        name, [value("x", FLOAT, [7])], [value("y", FLOAT, [7])], [numpy_helper.from_array(values, "w")])
    assert graph.initializer[0].data_type == kind
    return make_model(graph, opset=opset, ir=ir)


@model("bf16", "bfloat16 weights behind a Cast")
def bf16(_):
    return cast_from("bf16", TensorProto.BFLOAT16, ml_dtypes.bfloat16, 17, 8)


@model("f4e2m1", "4-bit floating-point weights behind a Cast", runs=False)
def f4e2m1(_):
    return cast_from("f4e2m1", TensorProto.FLOAT4E2M1, ml_dtypes.float4_e2m1fn, 23, 11)


@model("f8", "weights of the four 8-bit floating-point types behind Casts")
def f8(_):
    kinds = [("e4m3fn", ml_dtypes.float8_e4m3fn), ("e4m3fnuz", ml_dtypes.float8_e4m3fnuz),
             ("e5m2", ml_dtypes.float8_e5m2), ("e5m2fnuz", ml_dtypes.float8_e5m2fnuz)]
    nodes, weights, total = [], [], "x"
    for name, kind in kinds:
        values = random(1, name).standard_normal(6).astype(np.float32).astype(kind)
        weights.append(numpy_helper.from_array(values, f"w_{name}"))
        nodes += [node("Cast", [f"w_{name}"], [f"wide_{name}"], f"widen_{name}", to=FLOAT),
                  node("Add", [total, f"wide_{name}"], [f"sum_{name}"], f"add_{name}")]
        total = f"sum_{name}"
    nodes.append(node("Identity", [total], ["y"], "end"))
    return make_model(helper.make_graph(nodes, "f8", [value("x", FLOAT, [6])], [value("y", FLOAT, [6])], weights),
                      opset=19, ir=9)


@model("f8e8m0", "power-of-two scales: an 8-bit type that is all exponent, behind a Cast")
def f8e8m0(_):
    scales = np.array([0.25, 1, 2, 64], np.float32).astype(ml_dtypes.float8_e8m0fnu)
    graph = helper.make_graph(
        [node("Cast", ["s"], ["wide"], "widen", to=FLOAT), node("Mul", ["x", "wide"], ["y"], "mul")], "f8e8m0",
        [value("x", FLOAT, [4])], [value("y", FLOAT, [4])], [numpy_helper.from_array(scales, "s")])
    return make_model(graph, opset=24, ir=12)


@model("typed_fields", "a constant of every type, stored in the typed fields and once more as raw bytes", shapes={"n": 1})
def typed_fields(_):
    """Nothing computes with them but one: they are there to be read, shown and written back."""
    plain = ["FLOAT", "UINT8", "INT8", "UINT16", "INT16", "INT32", "INT64", "BOOL", "FLOAT16", "DOUBLE", "UINT32", "UINT64",
             "BFLOAT16"]
    constants = []
    for name in plain:
        kind = getattr(TensorProto, name)
        array = np.array([0, 1, 1, 0, 1], helper.tensor_dtype_to_np_dtype(kind))
        constants.append(helper.make_tensor(f"typed_{name}", kind, [5], array))
        constants.append(helper.make_tensor(f"raw_{name}", kind, [5], array.tobytes(), raw=True))
    constants.append(helper.make_tensor("typed_COMPLEX64", TensorProto.COMPLEX64, [2], [1 + 2j, 3 - 4j]))
    constants.append(helper.make_tensor("typed_COMPLEX128", TensorProto.COMPLEX128, [2], [1 + 2j, 3 - 4j]))
    constants.append(helper.make_tensor("typed_STRING", TensorProto.STRING, [3], [b"", b"a", b"\xff\x00b"]))
    constants.append(helper.make_tensor("empty", FLOAT, [0, 4], []))
    constants.append(helper.make_tensor("scalar", FLOAT, [], [1.5]))
    graph = helper.make_graph([node("Add", ["x", "scalar"], ["y"], "add")], "typed_fields",
                              [value("x", FLOAT, ["n"])], [value("y", FLOAT, ["n"])], constants)
    return make_model(graph)


@model("sparse", "sparse initializers, with linear indices and with one row of indices per value", shapes={"n": 2})
def sparse(_):
    dense = random(1, "sparse").standard_normal((8, 6)).astype(np.float32)
    dense[random(2, "sparse").random((8, 6)) < 0.75] = 0
    linear = np.flatnonzero(dense)
    values = constant("w1", dense.flatten()[linear])
    by_place = helper.make_sparse_tensor(values, constant("", linear.astype(np.int64)), [8, 6])
    pairs = np.argwhere(dense.T)
    values = constant("w2", dense.T[tuple(pairs.T)])
    by_pairs = helper.make_sparse_tensor(values, constant("", pairs.astype(np.int64)), [6, 8])
    graph = helper.make_graph(
        [node("MatMul", ["x", "w1"], ["h"], "first"), node("MatMul", ["h", "w2"], ["y"], "second")], "sparse",
        [value("x", FLOAT, ["n", 8])], [value("y", FLOAT, ["n", 8])], [], sparse_initializer=[by_place, by_pairs])
    return make_model(graph)


@model("external", "weights in one file beside the model, at offsets that are multiples of 4096", shapes={"n": 2},
       files=["external.bin"])
def external(folder):
    net = Builder("external")
    net.weight("w1", (16, 32), 0.2)
    net.weight("b1", (32,), 0.2)
    net.weight("w2", (32, 4), 0.2)
    net.constant("shape", np.array([-1, 4], np.int64))
    net.add("Gemm", "fc1", ["x", "w1", "b1"], "h")
    net.add("Relu", "relu", ["h"], "r")
    net.add("MatMul", "fc2", ["r", "w2"], "m")
    net.add("Reshape", "reshape", ["m", "shape"], "y")
    made = make_model(net.graph([value("x", FLOAT, ["n", 16])], [value("y", FLOAT, ["n", 4])]))
    with open(folder / "external.bin", "wb") as file:
        for tensor in made.graph.initializer[:3]:
            offset = -(-file.tell() // 4096) * 4096
            file.seek(offset)
            file.write(tensor.raw_data)
            external_data_helper.set_external_data(tensor, "external.bin", offset, len(tensor.raw_data))
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
    return made


@model("external_folder", "weights in several files of a folder below the model, without offset and length",
       files=["external_folder/w.bin", "external_folder/c.bin"])
def external_folder(folder):
    """One of them belongs to a Constant op."""
    (folder / "external_folder").mkdir(exist_ok=True)

    def outside(name, array):
        path = f"external_folder/{name}.bin"
        (folder / path).write_bytes(array.tobytes())
        made = TensorProto(name=name, data_type=FLOAT, dims=array.shape, data_location=TensorProto.EXTERNAL)
        made.external_data.add(key="location", value=path)
        return made

    w = outside("w", np.arange(12, dtype=np.float32).reshape(3, 4))
    c = outside("c", np.full(4, 0.5, np.float32))
    graph = helper.make_graph(
        [node("Constant", [], ["bias"], "bias", value=c), node("Gemm", ["x", "w", "bias"], ["y"], "gemm")],
        "external_folder", [value("x", FLOAT, [2, 3])], [value("y", FLOAT, [2, 4])], [w])
    return make_model(graph)


@model("quantized", "QuantizeLinear and DequantizeLinear around a convolution, with quantization annotations",
       shapes={"n": 1})
def quantized_conv(_):
    weights = random(1, "quantized").integers(-127, 127, (4, 3, 3, 3)).astype(np.int8)
    graph = helper.make_graph(
        [node("QuantizeLinear", ["x", "x_scale", "x_zero"], ["xq"], "quantize_x"),
         node("DequantizeLinear", ["xq", "x_scale", "x_zero"], ["xd"], "dequantize_x"),
         node("DequantizeLinear", ["w", "w_scale", "w_zero"], ["wd"], "dequantize_w", axis=0),
         node("Conv", ["xd", "wd"], ["y"], "conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1])],
        "quantized", [value("x", FLOAT, ["n", 3, 8, 8])], [value("y", FLOAT, ["n", 4, 8, 8])],
        [constant("x_scale", 0.02, np.float32), constant("x_zero", 128, np.uint8), constant("w", weights),
         constant("w_scale", [0.01, 0.02, 0.03, 0.04], np.float32), constant("w_zero", np.zeros(4), np.int8)])
    note = graph.quantization_annotation.add(tensor_name="xd")
    note.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="x_scale")
    note.quant_parameter_tensor_names.add(key="ZERO_POINT_TENSOR", value="x_zero")
    return make_model(graph)


@model("half", "an f16 network with Casts at its edges", shapes={"n": 2})
def half(_):
    weights = random(1, "half").standard_normal((8, 8)).astype(np.float16)
    graph = helper.make_graph(
        [node("Cast", ["x"], ["xh"], "narrow", to=TensorProto.FLOAT16), node("MatMul", ["xh", "w"], ["h"], "matmul"),
         node("Relu", ["h"], ["r"], "relu"), node("Cast", ["r"], ["y"], "widen", to=FLOAT)],
        "half", [value("x", FLOAT, ["n", 8])], [value("y", FLOAT, ["n", 8])], [constant("w", weights)])
    return make_model(graph)


@model("half_layers", "an f16 network of several layers, most of which engines compute in f32", shapes={"n": 2})
def half_layers(_):
    rng = random(1, "half_layers")
    half = lambda name, shape, size: constant(name, (rng.standard_normal(shape) * size).astype(np.float16))  # noqa: E731
    kind = TensorProto.FLOAT16
    graph = helper.make_graph(
        [node("Conv", ["x", "w1", "b1"], ["c1"], "conv1", kernel_shape=[3, 3], pads=[1, 1, 1, 1]), node("Sigmoid", ["c1"], ["s1"], "gate"),
         node("Mul", ["c1", "s1"], ["a1"], "swish"), node("Conv", ["a1", "w2"], ["c2"], "conv2", kernel_shape=[3, 3], strides=[2, 2]),
         node("Relu", ["c2"], ["r2"], "relu2"), node("GlobalAveragePool", ["r2"], ["g"], "pool"), node("Flatten", ["g"], ["f"], "flatten"),
         node("Gemm", ["f", "w3", "b3"], ["y"], "head")],
        "half_layers", [value("x", kind, ["n", 3, 9, 9])], [value("y", kind, ["n", 5])],
        [half("w1", (6, 3, 3, 3), 0.3), half("b1", 6, 0.3), half("w2", (8, 6, 3, 3), 0.2), half("w3", (8, 5), 0.5), half("b3", 5, 0.5)])
    return make_model(graph)
