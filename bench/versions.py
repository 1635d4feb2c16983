#!/usr/bin/env python3
"""bench/versions.py OLD NEW [--runs N]: two builds of trocar side by side on the same commands.

The builds take turns, so that both see the same machine. Prints the median of the ratios of neighbors, new to old, of the time on
the wall and of the time of the processor.
"""

import argparse
import os
import resource
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODELS = ROOT / "build" / "test-models"

COMMANDS = {
    "start": "--version",
    "summary digits": f"summary {ROOT}/models/digits.onnx",
    "summary resnet50": f"summary {MODELS}/resnet50.onnx --shape batch=1",
    "convert resnet50": f"convert {MODELS}/resnet50.onnx OUT.onnx",
    "run resnet18": f"run {MODELS}/resnet18.onnx --fill random --shape batch=1 --repeat 5",
    "run resnet18, op by op": f"run {MODELS}/resnet18.onnx --fill random --shape batch=1 --cut all --repeat 5",
    "inject weights": f"inject {ROOT}/models/digits.onnx --data {ROOT}/models/digits.npy --limit 20 --faults 600 --target weights --seed 1 --workers 1",
    "inject activations": f"inject {ROOT}/models/digits.onnx --data {ROOT}/models/digits.npy --limit 20 --faults 600 --target activations --seed 1 --workers 1",
    "inject weights, source": f"inject {ROOT}/models/digits.onnx --data {ROOT}/models/digits.npy --limit 20 --faults 300 --target weights --seed 1 --workers 1 --view source",
    "inject mobilenet": f"inject {MODELS}/mobilenet_v2.onnx --fill random --shape batch=1 --faults 100 --target weights,activations --seed 1 --workers 1",
}


def measure(trocar, words):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([trocar, *words.split()], cwd=folder, capture_output=True, text=True, env=os.environ)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{trocar} {words}: exit {done.returncode}: {done.stderr.strip()}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--runs", type=int, default=9)
    options = parser.parse_args()
    print(f"{'command':24} {'old, wall':>10} {'new, wall':>10} {'ratio':>7} {'ratio of CPU time':>18}")
    for name, words in COMMANDS.items():
        rows = []
        for run in range(options.runs + 1):
            pair = [measure(trocar, words) for trocar in ((options.old, options.new) if run % 2 else (options.new, options.old))]
            old, new = pair if run % 2 else pair[::-1]
            if run > 0:
                rows.append((old[0], new[0], new[0] / old[0], new[1] / old[1]))
        old, new, wall, cpu = (statistics.median(column) for column in zip(*rows))
        print(f"{name:24} {old:8.3f} s {new:8.3f} s {wall:7.3f} {cpu:18.3f}", flush=True)


if __name__ == "__main__":
    main()
