#!/usr/bin/env python3
"""Models that packages carry, as TensorFlow Lite: mapped to ONNX, they give what they gave before.

    models.py TROCAR MODELS

Each .tflite in the folder MODELS is run on LiteRT, converted and run on ONNX Runtime, with the same inputs.
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np

TOLERANCE = 2e-4  # relative to the largest element
SHAPES = {"nmp.tflite": "serving_default_input_2:0=1,43844,1"}


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr}")
    return done.stdout


def outputs(folder):
    return {path.name: np.load(path) for path in sorted(folder.glob("*.npy"))}


def largest_difference(a, b):
    return max(float(np.max(np.abs(x - y)) / max(np.max(np.abs(x)), 1e-30)) if x.size else 0.0
               for x, y in zip(a.values(), b.values()))


def main():
    trocar, models = sys.argv[1], pathlib.Path(sys.argv[2])
    failed = 0
    for model in sorted(models.glob("*.tflite")):
        with tempfile.TemporaryDirectory() as name:
            scratch = pathlib.Path(name)
            fill = ["--fill", "random", "-q"] + (["--shape", SHAPES[model.name]] if model.name in SHAPES else [])
            try:
                run(trocar, "convert", model, scratch / "m.onnx")
                run(trocar, "run", model, *fill, "-o", scratch / "a")
                run(trocar, "run", scratch / "m.onnx", *fill, "-o", scratch / "b")
                run(trocar, "run", model, *fill, "-o", scratch / "c", "--engine", "onnxruntime")
                before, after, direct = (outputs(scratch / part) for part in "abc")
                if list(before) != list(after) or list(before) != list(direct):
                    raise RuntimeError(f"outputs {list(before)} became {list(after)} and {list(direct)}")
                off = largest_difference(before, after)
                again = largest_difference(before, direct)
                good = off < TOLERANCE and again < TOLERANCE
                print(f"{'ok  ' if good else 'FAIL'} {model.name:28} {off:.1e} converted, {again:.1e} as it is")
                failed += not good
            except RuntimeError as error:
                print(f"FAIL {model.name}: {error}")
                failed += 1
    sys.exit(1 if failed else 0)


main()
