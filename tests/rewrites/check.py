#!/usr/bin/env python3
"""check.py prune|partition|diff TROCAR MODELS DEPS: what these tools make, against ONNX and ONNX
Runtime alone.

Pruned models pass ONNX's checker with strict shape inference. Elements are chosen again with NumPy;
a model without some channels must give what the model gives in which NumPy zeroed them. Parts are
run by ONNX Runtime from the manifest and must give the bits of the whole. Models whose every name
was changed must not differ, and a change that is made here must be the one that is told.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import onnx
import onnxruntime
from onnx import numpy_helper

ROOT = Path(__file__).resolve().parents[2]


class Bench:
    def __init__(self, trocar, models, deps, folder):
        self.trocar = trocar
        self.models = Path(models)
        self.folder = Path(folder)
        self.environment = {**os.environ, "TROCAR_DEPS": deps}

    def path(self, name):
        return ROOT / "models/digits.onnx" if name == "digits" else self.models / f"{name}.onnx"

    def run(self, *arguments, code=0):
        done = subprocess.run([self.trocar, *map(str, arguments)], cwd=self.folder, env=self.environment,
                              capture_output=True, text=True, check=False)
        assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
        return done.stdout


def engine(model):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    data = str(model) if isinstance(model, (str, Path)) else model.SerializeToString()
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def inputs_for(session):
    random = numpy.random.default_rng(3)
    values = {}
    for one in session.get_inputs():
        shape = [d if isinstance(d, int) else 3 for d in one.shape]
        values[one.name] = (random.integers(0, 20, shape) if "int" in one.type
                            else random.random(shape).astype(numpy.float32))
    return values


def weights_of(model):
    return {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}


def check(path):
    model = onnx.load(path)
    onnx.checker.check_model(str(path), full_check=True)
    onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    return model


def prune_elements(bench, name):
    source = onnx.load(bench.path(name))
    before = weights_of(source)
    report = json.loads(bench.run("prune", bench.path(name), "half.onnx", "--sparsity", "0.4", "--json"))
    after = weights_of(check(bench.folder / "half.onnx"))
    rows = report["tables"]["weights"]
    assert len(rows) > 3
    for row in rows:
        old, new = before[row["tensor"]], after[row["tensor"]]
        gone = (new == 0) & (old != 0)
        assert (new == 0).sum() == round(0.4 * old.size), row
        assert numpy.array_equal(new[~gone], old[~gone])
        assert numpy.abs(old[new == 0]).max() <= numpy.abs(old[new != 0]).min()
        assert row["nonzero_after"] == (new != 0).sum()
    bench.run("prune", bench.path(name), "all.onnx", "--sparsity", "0.4", "--scope", "global")
    after = weights_of(check(bench.folder / "all.onnx"))
    names = [row["tensor"] for row in rows]
    old = numpy.concatenate([before[one].ravel() for one in names])
    new = numpy.concatenate([after[one].ravel() for one in names])
    assert (new == 0).sum() == round(0.4 * old.size)
    assert numpy.abs(old[new == 0]).max() <= numpy.abs(old[new != 0]).min()
    bench.run("prune", bench.path(name), "pattern.onnx", "--method", "2:4", "--at", "Conv | MatMul | Gemm")
    after = weights_of(check(bench.folder / "pattern.onnx"))
    for node in source.graph.node:
        if node.op_type not in ("Conv", "Gemm", "MatMul") or node.input[1] not in after:
            continue
        weight = after[node.input[1]]
        if node.op_type == "MatMul":
            weight = numpy.swapaxes(weight, 0, 1)
        elif node.op_type == "Gemm" and not any(a.name == "transB" and a.i for a in node.attribute):
            weight = weight.T
        if weight.shape[1] % 4 == 0:
            left = (weight != 0).reshape(weight.shape[0], -1, 4, *weight.shape[2:]).sum(axis=2)
            assert left.max() <= 2
    bench.run("prune", bench.path(name), "dense.onnx", "--sparsity", "0.9")
    bench.run("prune", bench.path(name), "sparse.onnx", "--sparsity", "0.9", "--sparse-encoding")
    onnx.checker.check_model(str(bench.folder / "sparse.onnx"))
    assert onnx.load(bench.folder / "sparse.onnx").graph.sparse_initializer
    assert (bench.folder / "sparse.onnx").stat().st_size < (bench.folder / "dense.onnx").stat().st_size / 1.5
    dense, sparse = engine(bench.folder / "dense.onnx"), engine(bench.folder / "sparse.onnx")
    values = inputs_for(dense)
    assert all(map(numpy.array_equal, dense.run(None, values), sparse.run(None, values)))


def prune_channels(bench, name, least, *options):
    report = json.loads(bench.run("prune", bench.path(name), "small.onnx", "--masks", "m.npz", "--method",
                                  "channels", "--json", *options))
    small = check(bench.folder / "small.onnx")
    zeroed = onnx.load(bench.path(name))
    masks = numpy.load(bench.folder / "m.npz")
    for one in zeroed.graph.initializer:
        if one.name in masks:
            array = numpy_helper.to_array(one) * masks[one.name]
            one.CopyFrom(numpy_helper.from_array(array.astype(array.dtype), one.name))
    for node in zeroed.graph.node:
        if node.op_type == "Constant" and node.output[0] in masks:
            array = numpy_helper.to_array(node.attribute[0].t) * masks[node.output[0]]
            node.attribute[0].t.CopyFrom(numpy_helper.from_array(array))
    first, second = engine(zeroed), engine(small)
    values = inputs_for(first)
    for x, y in zip(first.run(None, values), second.run(None, values), strict=True):
        assert x.shape == y.shape
        scale = max(numpy.abs(x).max(), 1e-3)
        assert numpy.abs(x - y).max() <= 1e-3 * scale, (name, numpy.abs(x - y).max(), scale)
    part = report["sections"]["pruned"]
    share = part["macs_after"] / part["macs_before"]
    assert share <= least, (name, share)
    print(name, options, f"MACs {share:.1%}, parameters {part['parameters_after'] / part['parameters_before']:.1%}")


def prune(bench):
    for name in ("digits", "transformer", "mobilenet_v2"):
        prune_elements(bench, name)
    prune_channels(bench, "digits", 0.4)
    prune_channels(bench, "digits", 0.8, "--scope", "global", "--rank", "l2", "--sparsity", "0.3")
    prune_channels(bench, "transformer", 0.9)
    prune_channels(bench, "resnet18", 0.4)
    prune_channels(bench, "resnet50", 0.4, "--multiple", "8")
    prune_channels(bench, "mobilenet_v2", 0.5)
    prune_channels(bench, "mobilenet_v2", 0.8, "--scope", "global", "--sparsity", "0.3", "--rank", "random")


def run_parts(bench, folder, values):
    manifest = json.loads((bench.folder / folder / "manifest.json").read_text())
    known = dict(values)
    for part in manifest["parts"]:
        path = bench.folder / folder / part["files"][0]["file"]
        onnx.checker.check_model(str(path))
        session = engine(path)
        assert [one.name for one in session.get_outputs()] == part["outputs"]
        got = session.run(None, {name: known[name] for name in part["inputs"]})
        known.update(zip(part["outputs"], got, strict=True))
    return [known[name] for name in manifest["outputs"]], manifest


def partition(bench):
    ways = {"parts": ["--parts", "3"], "bytes": ["--max-bytes", "40M"], "private": ["--private", "index:5..9"],
            "device": ["--device", "npu=Conv | Relu | Clip | MatMul", "--device", "cpu=all"]}
    for name in ("digits", "transformer", "resnet18", "mobilenet_v2", "resnet50"):
        whole = engine(bench.path(name))
        values = inputs_for(whole)
        expected = whole.run(None, values)
        for way, options in ways.items():
            folder = f"{name}-{way}"
            bench.run("partition", bench.path(name), folder, *options)
            got, manifest = run_parts(bench, folder, values)
            assert all(map(numpy.array_equal, expected, got)), (name, way)
            if way == "parts":
                costs = [part["cost"] for part in manifest["parts"]]
                assert len(costs) == 3 and max(costs) <= 1.8 * sum(costs) / 3, (name, costs)
            if way == "bytes":
                assert all(part["peak_bytes"] <= 40 << 20 for part in manifest["parts"])
            print(folder, [part["ops"] for part in manifest["parts"]][:12])
    assert not [one for one in bench.folder.iterdir() if one.name.startswith(".")]


def renamed(model):
    names = {one.name for one in [*model.graph.input, *model.graph.output]}
    fresh = {}

    def other(name):
        return name if not name or name in names else fresh.setdefault(name, f"t{len(fresh)}")

    def walk(graph, top):
        for node in graph.node:
            node.name = f"n{len(fresh)}" if top else node.name
            node.input[:] = [other(one) for one in node.input]
            node.output[:] = [other(one) for one in node.output]
        for one in [*graph.initializer, *graph.value_info]:
            one.name = other(one.name)

    walk(model.graph, True)
    return model


def diff(bench):
    for name in ("digits", "transformer", "resnet50", "mobilenet_v2"):
        onnx.save(renamed(onnx.load(bench.path(name))), bench.folder / "renamed.onnx")
        report = json.loads(bench.run("diff", bench.path(name), "renamed.onnx", "--json", "--ignore", "metadata"))
        told = report["sections"]["comparison"]
        count = len(onnx.load(bench.path(name)).graph.node)
        assert told["matched"] == count == told["renamed_ops"], (name, told)
        # One activation less, its reader reads what it read.
        model = renamed(onnx.load(bench.path(name)))
        place, node = [(i, n) for i, n in enumerate(model.graph.node)
                       if n.op_type in ("Relu", "Clip", "Softmax", "Gelu")][-2]
        for reader in model.graph.node:
            reader.input[:] = [node.input[0] if one == node.output[0] else one for one in reader.input]
        del model.graph.node[place]
        onnx.save(model, bench.folder / "less.onnx")
        report = json.loads(bench.run("diff", bench.path(name), "less.onnx", "--json", "--ignore", "metadata",
                                      code=1))
        told = report["sections"]["comparison"]
        assert (told["removed"], told["added"], told["constants"]) == (1, 0, 0), (name, told)
        assert report["tables"]["removed"][0]["type"] == node.op_type
        # One weight a little larger.
        model = renamed(onnx.load(bench.path(name)))
        one = max(model.graph.initializer, key=lambda w: numpy_helper.to_array(w).size)
        array = numpy_helper.to_array(one).copy()
        array.flat[7] += 0.5
        one.CopyFrom(numpy_helper.from_array(array, one.name))
        onnx.save(model, bench.folder / "other.onnx")
        report = json.loads(bench.run("diff", bench.path(name), "other.onnx", "--json", "--ignore", "metadata",
                                      code=1))
        row, = report["tables"]["weights"]
        assert row["changed"] == 1 and abs(row["max_abs"] - 0.5) < 1e-6, row
        assert report["sections"]["comparison"]["matched"] == count


def main():
    what, trocar, models, deps = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        {"prune": prune, "partition": partition, "diff": diff}[what](Bench(trocar, models, deps, folder))


main()
