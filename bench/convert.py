#!/usr/bin/env python3
"""Measures reading and converting models of other ecosystems against their own Python tools, interleaved.

    bench/convert.py build/release build/test-models [--runs 3] [--tf2onnx PYTHON] [--onnx2tf PYTHON] [--torch PYTHON]

PYTHON is an interpreter that has that package. Loading these packages is not counted where
models are read; where a command converts a file, the whole command is.
"""

import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile

from commands import Unavailable, ask, row, seconds, show
from lab import interleaved

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


def read_row(what, ours, theirs, peer):
    target = "10x faster"
    try:
        mine, other = (statistics.median(ask(command)["seconds"]) for command in (ours, theirs))
    except (Unavailable, OSError) as error:
        return row(what, "unavailable", f"{peer}: {error}", target, None)
    return row(what, f"{mine * 1e3:.2f} ms", f"{peer} {seconds(other)}: {other / mine:.0f}x", target, other >= 10 * mine)


def convert_row(what, ours, theirs, made, peer, runs):
    target = "10x faster"
    first = subprocess.run([str(word) for word in theirs], capture_output=True, text=True)
    if first.returncode != 0 or not made.exists():
        last = (first.stdout + first.stderr).strip().splitlines()[-1:]
        return row(what, "unavailable", f"{peer}: {''.join(last)[:120]}", target, None)
    got = interleaved({"trocar": ours, peer: theirs}, runs)
    wrong = [value for value in got.values() if isinstance(value, str)]
    if wrong:
        return row(what, "unavailable", f"{peer}: {wrong[0]}", target, None)
    mine, other = got["trocar"][0], got[peer][0]
    return row(what, seconds(mine), f"{peer} {seconds(other)}: {other / mine:.0f}x", target, other >= 10 * mine)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--tf2onnx", default=sys.executable)
    parser.add_argument("--onnx2tf", default=sys.executable)
    parser.add_argument("--torch", default=sys.executable)
    args = parser.parse_args()
    trocar, model = args.build / "trocar", args.models / "resnet50.onnx"
    reader = args.build / "bench" / "bench_read"
    make = pathlib.Path(__file__).resolve().parent.parent / "tests/formats/pt2/make.py"
    everything = []
    with tempfile.TemporaryDirectory(prefix="trocar-bench-") as folder:
        scratch = pathlib.Path(folder)
        tflite = scratch / "resnet50.tflite"
        subprocess.run([trocar, "convert", model, tflite, "--shape", "batch=1", "-q"], check=True, stdout=subprocess.DEVNULL)
        everything.append(read_row("read ResNet-50, .tflite", [reader, tflite, 20], [sys.executable, "-c", READ_TFLITE, tflite, 20],
                                   "ai_edge_litert.Interpreter"))
        made = subprocess.run([args.torch, make, "--large", scratch / "pt2"], capture_output=True, text=True)
        for name in ("resnet18", "mobilenet_v2") if made.returncode == 0 else ():
            path = scratch / "pt2" / f"{name}.pt2"
            everything.append(read_row(f"read {name}.pt2", [reader, path, 20], [args.torch, "-c", READ_PT2, path, 5],
                                       "torch.export.load"))
        if made.returncode != 0:
            everything.append(row("read .pt2", "unavailable", made.stderr.strip()[-80:], "10x faster", None))
        everything.append(convert_row(
            "convert ResNet-50, onnx to tflite", [trocar, "convert", model, scratch / "a.tflite", "--shape", "batch=1", "-q"],
            [args.onnx2tf, "-m", "onnx2tf", "-i", model, "-o", scratch / "theirs", "-b", "1", "-n"],
            scratch / "theirs" / "resnet50_float32.tflite", "onnx2tf", args.runs))
        everything.append(convert_row(
            "convert ResNet-50, tflite to onnx", [trocar, "convert", tflite, scratch / "a.onnx", "-q"],
            [args.tf2onnx, "-m", "tf2onnx.convert", "--tflite", tflite, "--output", scratch / "theirs.onnx"],
            scratch / "theirs.onnx", "tf2onnx", args.runs))
    show(everything)


if __name__ == "__main__":
    main()
