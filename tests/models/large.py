"""Large models for the benchmarks; made only when asked for."""

from onnx import TensorProto, external_data_helper, helper

from build import FLOAT, Builder, make_model, model, node, value
from odd import chain


@model("dense_100mb", "25 layers of 1024 x 1024 weights: 100 MB in one file", bench=True, shapes={"n": 1})
def dense_100mb(_):
    net = Builder("dense_100mb")
    x = "x"
    for number in range(25):
        weight = net.weight(f"fc{number}.weight", (1024, 1024), 1 / 32)
        x = net.add("MatMul", f"/fc{number}/MatMul", [x, weight], "y" if number == 24 else None)
    return make_model(net.graph([value("x", FLOAT, ["n", 1024])], [value("y", FLOAT, ["n", 1024])]))


@model("external_3gb", "96 layers of 32 MiB each, 3 GiB of weights in a file with holes beside the model", bench=True,
       shapes={"n": 1}, files=["external_3gb.bin"])
def external_3gb(folder):
    """All weights are zero, so the file takes no room on a file system that knows holes."""
    size = 2048 * 4096 * 4
    weights, nodes, x = [], [], "x"
    for number in range(96):
        # 2048 to 4096 and back, so that every layer has its own name and all have the same size.
        shape = (2048, 4096) if number % 2 == 0 else (4096, 2048)
        tensor = TensorProto(name=f"fc{number}.weight", data_type=FLOAT, dims=shape, raw_data=b"")
        external_data_helper.set_external_data(tensor, "external_3gb.bin", number * size, size)
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        weights.append(tensor)
        y = "y" if number == 95 else f"/fc{number}/MatMul_output_0"
        nodes.append(node("MatMul", [x, tensor.name], [y], f"/fc{number}/MatMul"))
        x = y
    with open(folder / "external_3gb.bin", "wb") as file:
        file.truncate(96 * size)
    return make_model(helper.make_graph(nodes, "external_3gb", [value("x", FLOAT, ["n", 2048])],
                                        [value("y", FLOAT, ["n", 2048])], weights))


@model("chain_1k", "1,000 ops in a row", bench=True, shapes={"n": 2})
def chain_1k(_):
    return chain("chain_1k", 1_000)


@model("chain_100k", "100,000 ops in a row", bench=True, shapes={"n": 2})
def chain_100k(_):
    return chain("chain_100k", 100_000)
