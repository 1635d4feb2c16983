#!/usr/bin/env python3
"""check.py EDIT_PROGRAM OBSERVE_PROGRAM DEPS: what examples/programs say and save, against ONNX and
ONNX Runtime alone.

The same edits are made with the onnx package; both files must give the same bits. What the
observing program prints is computed from edited models as well.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import onnx
import onnxruntime
from onnx import helper

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "models" / "digits.onnx"
DATA = ROOT / "models" / "digits.npy"


def run(model, images):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    data = model if isinstance(model, str) else model.SerializeToString()
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return session.run(None, {"image": images})[0]


def insert_tanh(model):
    nodes = []
    for node in model.graph.node:
        nodes.append(node)
        if node.op_type == "Conv":
            raw = node.output[0]
            node.output[0] = raw + "_raw"
            nodes.append(helper.make_node("Tanh", [raw + "_raw"], [raw]))
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def remove_block_relu(model):
    renamed = {}
    nodes = []
    for node in model.graph.node:
        for i, name in enumerate(node.input):
            node.input[i] = renamed.get(name, name)
        if node.op_type == "Relu" and "block" in node.name:
            renamed[node.output[0]] = node.input[0]
        else:
            nodes.append(node)
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def replace_relu(model):
    for node in model.graph.node:
        if node.op_type == "Relu":
            node.op_type = "Sigmoid"


def rewrite_before_pool(model):
    readers = {}
    for node in model.graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    written = {node.output[0]: node for node in model.graph.node}
    for node in model.graph.node:
        after = [reader.op_type for reader in readers.get(node.output[0], [])]
        before = written.get(node.input[0])
        if node.op_type == "Relu" and after == ["MaxPool"] and before.op_type == "Conv":
            node.op_type = "Softplus"


EDITS = {
    "inserted": insert_tanh,
    "removed": remove_block_relu,
    "replaced": replace_relu,
    "rewritten": rewrite_before_pool,
}


def check_edits(program, images):
    with tempfile.TemporaryDirectory() as folder:
        said = subprocess.run([program, MODEL, folder], check=True, capture_output=True, text=True)
        counts = dict(line.split() for line in said.stdout.splitlines())
        assert all(int(count) > 0 for count in counts.values()), counts
        for name, edit in EDITS.items():
            model = onnx.load(MODEL)
            plain = run(model, images)
            edit(model)
            path = str(Path(folder) / f"{name}.onnx")
            onnx.checker.check_model(path)
            ours = run(path, images)
            assert ours.tobytes() == run(model, images).tobytes(), name
            assert ours.tobytes() != plain.tobytes(), f"{name} changed nothing"


def check_observed(program, images, deps):
    said = subprocess.run([program, MODEL, DATA, deps], check=True, capture_output=True, text=True)
    values = {}
    for line in said.stdout.splitlines():
        words = line.rsplit(None, 1)
        if words[1].replace(".", "").isdigit():
            values[words[0]] = float(words[1])
    model = onnx.load(MODEL)
    logits = numpy.abs(run(model, images)).max()
    near = lambda a, b: abs(a - b) <= 1e-4 * max(1.0, abs(b))
    assert near(values["observed: largest logit"], logits), (values, logits)
    convs = [n.output[0] for n in model.graph.node if n.op_type == "Conv" and "block" in n.name]
    for name in convs:
        model.graph.output.append(helper.make_empty_tensor_value_info(name))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    most = max(numpy.abs(v).max() for v in session.run(convs, {"image": images}))
    assert near(values["largest output of a convolution in the block:"], most), (values, most)
    bias = next(n for n in model.graph.node if n.op_type == "Gemm").input[2]
    tensor = next(t for t in model.graph.initializer if t.name == bias)
    zeros = numpy.abs(onnx.numpy_helper.to_array(tensor)).max()
    assert near(values["with zeros before the classifier: largest logit"], zeros), values
    assert near(values["both: largest logit"], zeros), values


def main():
    images = numpy.load(DATA)
    check_edits(sys.argv[1], images)
    check_observed(sys.argv[2], images, sys.argv[3])
    print("the examples agree with ONNX Runtime alone")


if __name__ == "__main__":
    main()
