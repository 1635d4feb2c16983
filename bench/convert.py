#!/usr/bin/env python3
"""Measures reading and converting models of other ecosystems against their own Python tools, interleaved.

    bench/convert.py build/release build/test-models [--runs 3] [--tensorflow PYTHON] [--torch PYTHON]

PYTHON is an interpreter that has tf2onnx and onnx2tf, or torch and executorch: those that `scripts/setup bench-convert` makes,
unless others are named. Loading these packages is not counted where models are read; where a command converts a file or writes
a lab, the whole command is.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np

from commands import Unavailable, ask, measure, row, seconds, show

READ_TFLITE = """
import json, sys, time
from ai_edge_litert.interpreter import Interpreter
taken = []
for _ in range(int(sys.argv[2])):
    start = time.perf_counter()
    Interpreter(model_path=sys.argv[1]).get_tensor_details()
    taken.append(time.perf_counter() - start)
print(json.dumps({"seconds": taken}))
"""
# As the tables of the file, with all options, as Trocar has them.
READ_TFLITE_TABLES = """
import json, sys, time
from tensorflow.lite.tools import flatbuffer_utils
taken = []
for _ in range(int(sys.argv[2])):
    start = time.perf_counter()
    flatbuffer_utils.read_model(sys.argv[1])
    taken.append(time.perf_counter() - start)
print(json.dumps({"seconds": taken}))
"""
READ_PT2 = """
import json, sys, time
import torch
taken = []
for _ in range(int(sys.argv[2])):
    start = time.perf_counter()
    torch.export.load(sys.argv[1])
    taken.append(time.perf_counter() - start)
print(json.dumps({"seconds": taken}))
"""

# With the runtime, which maps the file and makes the method ready; and as the tables of the file.
READ_PTE = """
import json, sys, time
from executorch.runtime import Runtime
runtime = Runtime.get()
taken = []
for _ in range(int(sys.argv[2])):
    start = time.perf_counter()
    runtime.load_program(sys.argv[1]).load_method("forward")
    taken.append(time.perf_counter() - start)
print(json.dumps({"seconds": taken}))
"""
READ_PTE_TABLES = """
import json, sys, time
from executorch.exir._serialize._program import deserialize_pte_binary
taken = []
for _ in range(int(sys.argv[2])):
    start = time.perf_counter()
    deserialize_pte_binary(open(sys.argv[1], "rb").read())
    taken.append(time.perf_counter() - start)
print(json.dumps({"seconds": taken}))
"""
# onnx2tf runs what it made with pictures that it gets from the network, unless they are here.
PICTURES = "calibration_image_sample_data_20x128x128x3_float32.npy"
TARGET = "10x faster"
LAB_SECONDS = 61.0  # of the same steps in Python, 126 layers of ResNet-50 from torch on 2 idle cores


def read_row(what, reader, path, theirs, peer):
    """Ours is read before and after theirs, so that both see the machine as it is."""
    try:
        before = ask([reader, path, 20])["seconds"]
        other = statistics.median(ask(theirs)["seconds"])
        mine = statistics.median(before + ask([reader, path, 20])["seconds"])
    except (Unavailable, OSError) as error:
        return row(what, "unavailable", f"{peer}: {error}", TARGET, None)
    return row(what, f"{mine * 1e3:.2f} ms", f"{peer} {seconds(other)}: {other / mine:.0f}x", TARGET, other >= 10 * mine)


def command_row(what, ours, theirs, peer, runs, stated=None):
    """Whole commands in turn. `stated`: seconds that the peer took elsewhere, for when it is not here."""
    mine, other = [], []
    try:
        mine.append(measure(ours)[0])
    except (Unavailable, OSError) as error:
        return row(what, "unavailable", f"trocar: {error}", TARGET, None)
    try:
        for _ in range(runs):
            other.append(measure(theirs)[0])
            mine.append(measure(ours)[0])
    except (Unavailable, OSError) as error:
        took = statistics.median(mine)
        if stated is None:
            return row(what, seconds(took), f"{peer}: unavailable: {error}", TARGET, None)
        return row(what, seconds(took), f"{peer}: unavailable; {seconds(stated)} elsewhere: {stated / took:.0f}x", TARGET, None)
    took, theirs_took = statistics.median(mine), statistics.median(other)
    return row(what, seconds(took), f"{peer} {seconds(theirs_took)}: {theirs_took / took:.0f}x", TARGET, theirs_took >= 10 * took)


def read_rows(args, model, scratch):
    trocar, reader = args.build / "trocar", args.build / "bench" / "bench_read"
    tflite, pte = scratch / "resnet50.tflite", scratch / "resnet50.pte"
    for made in (tflite, pte):
        subprocess.run([trocar, "convert", model, made, "--shape", "batch=1", "-q"], check=True, stdout=subprocess.DEVNULL)
    yield read_row("read ResNet-50, .tflite", reader, tflite, [sys.executable, "-c", READ_TFLITE, tflite, 20],
                   "ai_edge_litert.Interpreter")
    yield read_row("read ResNet-50, .tflite", reader, tflite, [args.tensorflow, "-c", READ_TFLITE_TABLES, tflite, 5],
                   "tensorflow.lite flatbuffer_utils")
    make = pathlib.Path(__file__).resolve().parent.parent / "tests/formats/pt2/make.py"
    try:
        measure([args.torch, make, "--large", scratch / "pt2"])
        for name in ("resnet18", "mobilenet_v2"):
            path = scratch / "pt2" / f"{name}.pt2"
            yield read_row(f"read {name}.pt2", reader, path, [args.torch, "-c", READ_PT2, path, 5], "torch.export.load")
    except (Unavailable, OSError) as error:
        yield row("read .pt2", "unavailable", f"torch: {error}", TARGET, None)
    yield read_row("read ResNet-50, .pte", reader, pte, [args.torch, "-c", READ_PTE, pte, 20], "executorch.runtime, ready to run")
    yield read_row("read ResNet-50, .pte", reader, pte, [args.torch, "-c", READ_PTE_TABLES, pte, 5],
                   "executorch deserialize_pte_binary")


def convert_rows(args, model, scratch):
    trocar, tflite = args.build / "trocar", scratch / "resnet50.tflite"
    np.save(scratch / PICTURES, np.random.default_rng(0).random((20, 128, 128, 3), dtype="float32"))
    yield command_row("convert ResNet-50, onnx to tflite", [trocar, "convert", model, scratch / "a.tflite", "--shape", "batch=1", "-q"],
                      [args.tensorflow, "-m", "onnx2tf", "-i", model, "-o", scratch / "theirs", "-b", "1", "-n"], "onnx2tf", args.runs)
    yield command_row("convert ResNet-50, tflite to onnx", [trocar, "convert", tflite, scratch / "a.onnx", "-q"],
                      [args.tensorflow, "-m", "tf2onnx.convert", "--tflite", tflite, "--output", scratch / "theirs.onnx"], "tf2onnx",
                      args.runs)
    ours, theirs = scratch / "lab", scratch / "their_lab"
    script = pathlib.Path(__file__).resolve().parent / "executorch_lab.py"
    yield command_row("ExecuTorch lab of ResNet-50, 175 layers",
                      ([trocar, "split", model, ours, "--to", "executorch", "--fill", "random", "--shape", "batch=1", "-q"], ours),
                      ([args.torch, script, model, theirs], theirs), "torch.export, to_executorch", 1, LAB_SECONDS)


def main():
    deps = pathlib.Path(os.environ.get("TROCAR_DEPS", pathlib.Path(__file__).resolve().parent.parent / ".deps"))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--tensorflow", default=deps / "bench-tensorflow/bin/python")
    parser.add_argument("--torch", default=deps / "bench-peers/bin/python")
    args = parser.parse_args()
    args.build = args.build.resolve()
    model = args.models.resolve() / "resnet50.onnx"
    with tempfile.TemporaryDirectory(prefix="trocar-bench-") as folder:
        os.chdir(folder)
        scratch = pathlib.Path(folder)
        show([*read_rows(args, model, scratch), *convert_rows(args, model, scratch)])
        os.chdir("/")


if __name__ == "__main__":
    main()
