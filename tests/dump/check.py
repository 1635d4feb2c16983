#!/usr/bin/env python3
"""Dumps every op's output of real models and compares each tensor with ONNX Runtime's own.

    tests/dump/check.py --trocar build/release/trocar --models .deps/models

Every tensor that ONNX Runtime computes must be in the dump and the other way round. Bits must be equal, but in a model of
half precision, where the engine works in single precision and rounds only where a tensor leaves it: there tensors must
agree within what such roundings do.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx

import marked

# What roundings to 11 bits leave of a tensor of this small network: noise of at most a hundredth.
HALF_NOISE = 1e-2


def silero_inputs(random):
    return {"input": random.normal(0, 0.1, (1, 512)).astype("float32"),
            "state": random.normal(0, 0.1, (2, 1, 128)).astype("float32"), "sr": np.array(16000, "int64")}


def half_inputs(random):
    return {"input": random.normal(0, 0.1, (1, 512)).astype("float32"),
            "state": random.normal(0, 0.1, (2, 1, 128)).astype("float32")}


def text_inputs(random):
    return {"x": random.uniform(-1, 1, (2, 3, 48, 100)).astype("float32")}


def page_inputs(random):
    return {"x": random.uniform(-1, 1, (1, 3, 96, 160)).astype("float32")}


MODELS = {
    "silero_vad": (silero_inputs, True),  # If in If
    "silero_vad_half": (half_inputs, False),  # f16
    "ppocr_rec": (text_inputs, True),  # dynamic batch, height and width
    "ppocr_det": (page_inputs, True),
}


def dump(trocar, path, feeds, folder):
    """{name: array} of the dump, and its records."""
    np.savez(folder / "inputs.npz", **feeds)
    target = folder / "dump"
    subprocess.run([trocar, "dump", path, "--input", folder / "inputs.npz", "--tensors", "-q", "-o", target], check=True)
    records = [json.loads(line) for line in (target / "index.jsonl").read_text().splitlines()]
    records = [record for record in records if "tensor" in record]
    return {record["tensor"]: np.load(target / record["file"]) for record in records}, records


def same(ours, theirs, exact):
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return f"{ours.dtype} {ours.shape}, not {theirs.dtype} {theirs.shape}"
    if ours.tobytes() == theirs.tobytes():
        return None
    if exact or ours.dtype.kind != "f":
        return f"{np.count_nonzero(ours != theirs)} of {ours.size} numbers differ"
    a, b = ours.astype("float64"), theirs.astype("float64")
    noise = np.sqrt(((a - b) ** 2).mean()) / max(np.sqrt((b ** 2).mean()), 1e-3)
    return None if noise <= HALF_NOISE else f"noise {noise:.1e}"


def check(trocar, models, name):
    make, exact = MODELS[name]
    path = models / f"{name}.onnx"
    feeds = make(np.random.default_rng(1))
    faults = []
    with tempfile.TemporaryDirectory(prefix="trocar-dump-") as scratch:
        ours, records = dump(trocar, path, feeds, pathlib.Path(scratch))
        seen, equal = set(), 0
        for tensor, theirs in marked.tensors(onnx.load(path), feeds):
            seen.add(tensor)
            if tensor not in ours:
                faults.append(f"'{tensor}' is not in the dump")
                continue
            fault = same(ours[tensor], np.asarray(theirs), exact)
            equal += ours[tensor].tobytes() == np.asarray(theirs).tobytes()
            if fault:
                faults.append(f"'{tensor}': {fault}")
        faults += [f"'{tensor}' is in the dump only" for tensor in ours if tensor not in seen]
    inside = sum("scope" in record for record in records)
    print(f"{name}: {len(records)} tensors, {inside} of them in bodies; {equal} with ONNX Runtime's bits, "
          f"{len(faults)} faults")
    for fault in faults[:10]:
        print(f"  {fault}")
    return not faults and records


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trocar", type=pathlib.Path, required=True)
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("names", nargs="*", default=list(MODELS))
    args = parser.parse_args()
    good = [check(args.trocar.resolve(), args.models, name) for name in args.names]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
