#!/usr/bin/env python3
"""Measures the operators of many models with `trocar ops`, and prints what they explain and predict.

    bench/ops.py build/release build/test-models [--db FILE] [--mode MODE…] [--seconds S] [--threads N]

Three tables: what of each model its operators explain (in the mode that the other models choose), how well models and
operators are predicted that were withheld, and how often the interval of an operator holds what a second run measures.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def light(name):
    import onnx
    return pathlib.Path(onnx.__file__).parent / "backend/test/data/light" / f"light_{name}.onnx"


def models(tests, packages):
    """Path, shapes, and whether it is one of the eight that have to be explained."""
    return [
        (tests / "resnet18.onnx", ["batch=1"], True),
        (tests / "resnet50.onnx", ["batch=1"], True),
        (tests / "mobilenet_v2.onnx", ["batch=1"], True),
        (tests / "transformer.onnx", ["batch=1", "length=64"], True),
        (packages / "magika.onnx", ["unk__214=1"], True),
        (packages / "nmp.onnx", ["unk__749=1"], True),
        (packages / "ppocr_cls.onnx", ["x=1,3,48,192"], True),
        (packages / "ppocr_det.onnx",
         ["p2o.DynamicDimension.0=1", "p2o.DynamicDimension.1=320", "p2o.DynamicDimension.2=320"], True),
        (packages / "ppocr_rec.onnx", ["x=1,3,48,320"], False),
        (light("squeezenet"), [], False),
        (light("shufflenet"), [], False),
        (light("inception_v1"), [], False),
        (light("inception_v2"), [], False),
        (light("densenet121"), [], False),
        (light("vgg19"), [], False),
        (ROOT / "models/digits.onnx", ["batch=1"], False),
    ]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("tests", type=pathlib.Path)
    parser.add_argument("--db", type=pathlib.Path)
    parser.add_argument("--mode", action="append", default=[])
    parser.add_argument("--seconds", default="")
    parser.add_argument("--threads", default="1")
    arguments = parser.parse_args()
    trocar = arguments.build / "trocar"
    scratch = tempfile.TemporaryDirectory()
    db = arguments.db or pathlib.Path(scratch.name) / "ops.db"
    packages = ROOT / ".deps/models"
    chosen = [one for one in models(arguments.tests, packages) if one[0].exists()]
    common = ["--db", db, "--threads", arguments.threads]

    def run(*words, allowed=(0,)):
        done = subprocess.run([str(word) for word in (trocar, "ops") + words], capture_output=True, text=True)
        if done.returncode not in allowed:
            sys.exit(f"{' '.join(map(str, words))}: {done.stderr}")
        return done.stdout

    how = [word for mode in arguments.mode for word in ("--mode", mode)]
    if arguments.seconds:
        how += ["--seconds", arguments.seconds]
    took = {}
    for path, shapes, _ in chosen:
        start = time.perf_counter()
        run("measure", path, *[w for shape in shapes for w in ("--shape", shape)], *common, *how, "-q")
        took[path.name] = time.perf_counter() - start
        print(f"{path.name:24} measured in {took[path.name]:.1f} s", flush=True)

    print(f"\n{'model':24} {'whole':>10} {'sum':>10} {'explained':>10}  mode")
    good = 0
    asked = 0
    for path, shapes, counts in chosen:
        answer = json.loads(run("explain", path, *[w for shape in shapes for w in ("--shape", shape)], *common, "--json",
                                allowed=(0, 1)))
        facts = answer["sections"]["explained"]
        ratio = facts["ratio"]
        others = ", ".join(f"{row['mode']} {100 * row['ratio']:.0f} %" for row in answer["tables"]["otherwise"])
        print(f"{path.name:24} {facts['whole_ns'] / 1e6:7.3f} ms {facts['measured_ns'] / 1e6:7.3f} ms {100 * ratio:8.1f} %"
              f"{'' if counts else ' *'}  {facts['mode']} ({others})")
        asked += counts
        good += counts and 0.9 <= ratio <= 1.1
    print(f"{good} of {asked} within 90 to 110 % (* not among those that are asked for)\n")

    print(run("evaluate", "--db", db))
    print(f"ResNet-50: {took.get('resnet50.onnx', 0):.1f} s for all its distinct operators")

    # A second run of one model: does the interval of the first hold its median?
    again = pathlib.Path(scratch.name) / "again.db"
    path, shapes, _ = chosen[0]
    held = []
    widths = []
    runs = []
    for database in (pathlib.Path(scratch.name) / "first.db", again):
        run("measure", path, *[w for shape in shapes for w in ("--shape", shape)], "--db", database, "--threads",
            arguments.threads, "--mode", "reuse", "-q")
        rows = map(json.loads, run("export", "--db", database, "--as", "jsonl").splitlines())
        runs.append({row["key"] or "whole": row for row in rows})
    for key, row in runs[0].items():
        other = runs[1][key]
        middle = row["ns"] + row["call_ns"]
        widths.append((row["high_ns"] - row["low_ns"]) / 2 / middle if middle else 0)
        held.append(row["low_ns"] <= other["ns"] <= row["high_ns"])
    print(f"{path.name}: half width of the 95 % interval, median {100 * sorted(widths)[len(widths) // 2]:.2f} %, largest "
          f"{100 * max(widths):.2f} %; it holds the median of a second run for {sum(held)} of {len(held)}")


main()
