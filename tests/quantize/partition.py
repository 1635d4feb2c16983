"""Partitions of drawn graphs: balance and number of parts against all there are, bits, secrets, open sizes."""

import json
import pathlib
import random
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from common import session, trocar


def draw(seed, count, folder):
    """Sums and functions of one input; returns what each op waits for and what it costs."""
    rng = random.Random(seed)
    nodes, waits = [], []
    for i in range(count):
        known = ["x"] + [f"v{k}" for k in range(i)]
        if i > 0 and rng.random() < 0.5:
            inputs, kind = rng.sample(known[-5:], 2), rng.choice(["Add", "Mul", "Sub"])
        else:
            inputs, kind = [rng.choice(known[-4:])], rng.choice(["Relu", "Neg", "Abs"])
        nodes.append(helper.make_node(kind, inputs, [f"v{i}"], name=f"n{i}"))
        waits.append({int(name[1:]) for name in inputs if name != "x"})
    read = {name for node in nodes for name in node.input}
    outputs = [f"v{i}" for i in range(count) if f"v{i}" not in read]
    costs = [rng.randint(1, 30) for _ in range(count)]
    save(folder / "m.onnx", nodes, ["x"], outputs, [])
    (folder / "costs.csv").write_text("".join(f"n{i},{cost}\n" for i, cost in enumerate(costs)))
    return waits, costs


def save(path, nodes, inputs, outputs, constants, shape=(1, 4)):
    info = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in names]
            for names in (inputs, outputs)]
    graph = helper.make_graph(nodes, "g", *info, [numpy_helper.from_array(a, n) for n, a in constants])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def best_balance(waits, costs, parts):
    """The smallest cost of the most expensive part, over all ways to part the graph."""
    count = len(costs)
    closed = [s for s in range(1 << count)
              if all(not s >> i & 1 or all(s >> k & 1 for k in waits[i]) for i in range(count))]
    cost = {s: sum(costs[i] for i in range(count) if s >> i & 1) for s in closed}
    best = {0: 0}
    for _ in range(parts):
        further = {}
        for s, most in best.items():
            for t in closed:
                if t & s == s and t != s:
                    further[t] = min(further.get(t, 1e18), max(most, cost[t] - cost[s]))
        best = further
    return best[(1 << count) - 1]


def fewest_parts(waits, on_npu, first):
    done, device, parts = set(), first, 0
    while len(done) < len(waits):
        before = len(done)
        while True:
            ready = {i for i in range(len(waits)) if i not in done and waits[i] <= done and on_npu[i] == device}
            if not ready:
                break
            done |= ready
        parts += len(done) > before
        device = not device
    return parts


def parts_of(folder):
    manifest = json.loads((folder / "parts" / "manifest.json").read_text())
    models = [onnx.load(folder / "parts" / part["files"][0]["file"]) for part in manifest["parts"]]
    place = {node.name: i for i, model in enumerate(models) for node in model.graph.node}
    return manifest, models, place


def partition(folder, *options):
    for file in (folder / "parts").glob("*"):
        file.unlink()
    if (folder / "parts").exists():
        (folder / "parts").rmdir()
    trocar("partition", folder / "m.onnx", folder / "parts", "-q", *options)
    return parts_of(folder)


def run_parts(models, values):
    for model in models:
        run = session(model.SerializeToString())
        wanted = {one.name: values[one.name] for one in run.get_inputs()}
        values.update(zip([one.name for one in run.get_outputs()], run.run(None, wanted)))
    return values


def check_balance(folder):
    for seed in range(12):
        parts = 2 + seed % 2
        waits, costs = draw(seed, 8, folder)
        manifest, models, place = partition(folder, "--parts", parts, "--cost", folder / "costs.csv")
        most = max(part["cost"] for part in manifest["parts"])
        assert most <= 1.051 * best_balance(waits, costs, parts), seed
        assert all(place[f"n{k}"] <= place[f"n{i}"] for i in range(8) for k in waits[i])
        x = np.random.default_rng(seed).normal(size=(1, 4)).astype(np.float32)
        whole, by_parts = session(folder / "m.onnx"), run_parts(models, {"x": x})
        for one, wanted in zip(whole.get_outputs(), whole.run(None, {"x": x})):
            assert np.array_equal(by_parts[one.name], wanted, equal_nan=True), seed


def check_devices(folder):
    for seed in range(8):
        waits, _ = draw(100 + seed, 12, folder)
        rng = random.Random(seed)
        on_npu = [i == 0 or rng.random() < 0.4 for i in range(12)]
        chosen = " | ".join(f"name:n{i}" for i in range(12) if on_npu[i])
        manifest, _, place = partition(folder, "--device", "npu=" + chosen, "--device", "cpu=all")
        assert all((manifest["parts"][place[f"n{i}"]]["device"] == "npu") == on_npu[i] for i in range(12))
        assert all(place[f"n{k}"] <= place[f"n{i}"] for i in range(12) for k in waits[i])
        assert len(manifest["parts"]) == min(fewest_parts(waits, on_npu, first) for first in (True, False)), seed


def check_secrets(folder):
    """Weights of a private op are in no public part, though a body reads them too."""
    weights = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)

    def body(name):
        return helper.make_graph([helper.make_node("MatMul", ["h", "w"], [name], name=name)], name, [],
                                 [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)])

    save(folder / "m.onnx", [
        helper.make_node("Relu", ["x"], ["h"], name="relu"),
        helper.make_node("ReduceSum", ["h"], ["s"], keepdims=0, name="sum"),
        helper.make_node("Greater", ["s", "zero"], ["when"], name="greater"),
        helper.make_node("If", ["when"], ["i"], name="if", then_branch=body("t"), else_branch=body("e")),
        helper.make_node("Neg", ["i"], ["j"], name="neg"),
        helper.make_node("MatMul", ["j", "w"], ["y"], name="secret"),
    ], ["x"], ["y"], [("w", weights), ("zero", np.float32(0))])
    manifest, models, place = partition(folder, "--private", "name:secret")
    assert place["if"] == place["secret"] or manifest["parts"][place["if"]]["device"] == "private"
    for part, model in zip(manifest["parts"], models):
        assert part["device"] == "private" or weights.tobytes() not in model.SerializeToString()


def check_open_sizes(folder):
    """Steps of convolutions leave 1 of sizes 1 and 2; a part takes others all the same."""
    rng = np.random.default_rng(1)
    nodes, at = [], "x"
    for i in range(3):
        nodes.append(helper.make_node("Conv", [at, f"w{i}"], [f"c{i}"], name=f"conv{i}", kernel_shape=[3, 3],
                                      pads=[1, 1, 1, 1], strides=[2, 2]))
        at = f"c{i}"
    shapes = [(4, 3, 3, 3), (4, 4, 3, 3), (4, 4, 3, 3)]
    save(folder / "m.onnx", nodes, ["x"], [at],
         [(f"w{i}", rng.normal(size=shape).astype(np.float32)) for i, shape in enumerate(shapes)], None)
    model = onnx.load(folder / "m.onnx")
    model.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, "h", "w"]))
    onnx.save(model, folder / "m.onnx")
    _, models, _ = partition(folder, "--parts", 3)
    x = rng.normal(size=(2, 3, 40, 56)).astype(np.float32)
    wanted = session(folder / "m.onnx").run(None, {"x": x})[0]
    assert np.array_equal(run_parts(models, {"x": x})[at], wanted)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        check_balance(folder)
        check_devices(folder)
        check_secrets(folder)
        check_open_sizes(folder)


if __name__ == "__main__":
    main()
