#!/usr/bin/env python3
"""Models that packages carry, as TensorFlow Lite: mapped to ONNX, they give what they gave before.

    models.py TROCAR MODELS

Each .tflite in the folder MODELS is run on LiteRT, converted and run on ONNX Runtime, with the same inputs. Of those that
cannot be converted, `convert` names the ops and says why.
"""

import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

TOLERANCE = 2e-4  # relative to the largest element
SMALL = 1e-3  # and to this where all are smaller: a probability of 3e-7 is none
# Its mask amplifies what engines round: LiteRT and ONNX Runtime are as far from sums in double precision (5e-4 and 9e-4) as
# from each other.
TOLERANCES = {"pose_landmark_full.tflite": 2e-3}
SHAPES = {"nmp.tflite": "serving_default_input_2:0=1,43844,1"}
# Ops that nobody but mediapipe has; LiteRT cannot run them either.
CUSTOM = {
    "face_landmark_with_attention.tflite": {"custom.Landmarks2TransformMatrix", "custom.TransformTensorBilinear",
                                            "custom.TransformLandmarks"},
    "selfie_segmentation.tflite": {"custom.Convolution2DTransposeBias"},
    "selfie_segmentation_landscape.tflite": {"custom.Convolution2DTransposeBias"},
}


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr}")
    return done.stdout


def outputs(folder):
    return {path.name: np.load(path) for path in sorted(folder.glob("*.npy"))}


def largest_difference(a, b):
    return max(float(np.max(np.abs(x - y)) / max(np.max(np.abs(x)), SMALL)) if x.size else 0.0
               for x, y in zip(a.values(), b.values()))


def explained(trocar, model, custom, scratch):
    """What `convert` says of a model that it cannot convert: the ops that no rule maps, and those behind them."""
    done = subprocess.run([trocar, "convert", model, scratch / "never.onnx", "--json"], capture_output=True, text=True)
    rows = json.loads(done.stdout)["tables"]["coverage"]
    impossible = [row for row in rows if row["state"] == "impossible"]
    causes = {row["type"]: row["why"] for row in impossible if row["type"].startswith("custom.")}
    if done.returncode != 1 or set(causes) != custom:
        raise RuntimeError(f"convert gave {done.returncode}: {causes}")
    for row in impossible:
        wanted = ("a custom op", "reads what cannot be mapped") if row["type"] in custom else ("reads what cannot be mapped",)
        if not any(text in row["why"] for text in wanted):
            raise RuntimeError(f"{row['type']}: {row['why']}")
    mapped = sum(row["count"] for row in rows if row["state"] == "mapped")
    return f"{mapped} of {sum(row['count'] for row in rows)} ops mapped; no rule for {', '.join(sorted(causes))}"


def compared(trocar, model, scratch):
    """How far the converted model, and the model as it is on another engine, are from LiteRT."""
    fill = ["--fill", "random", "-q"] + (["--shape", SHAPES[model.name]] if model.name in SHAPES else [])
    run(trocar, "convert", model, scratch / "m.onnx")
    run(trocar, "run", model, *fill, "-o", scratch / "a", "--engine", "litert")
    run(trocar, "run", scratch / "m.onnx", *fill, "-o", scratch / "b")
    run(trocar, "run", model, *fill, "-o", scratch / "c", "--engine", "onnxruntime")
    before, after, direct = (outputs(scratch / part) for part in "abc")
    if list(before) != list(after) or list(before) != list(direct):
        raise RuntimeError(f"outputs {list(before)} became {list(after)} and {list(direct)}")
    off = largest_difference(before, after)
    again = largest_difference(before, direct)
    if not max(off, again) < TOLERANCES.get(model.name, TOLERANCE):
        raise RuntimeError(f"{off:.1e} converted, {again:.1e} as it is")
    return f"{off:.1e} converted, {again:.1e} as it is"


def main():
    trocar, models = sys.argv[1], pathlib.Path(sys.argv[2])
    failed, seen = 0, {}
    for model in sorted(models.glob("*.tflite")) + sorted(models.glob("*/*.tflite")):
        name = str(model.relative_to(models))
        first = seen.setdefault(hashlib.sha256(model.read_bytes()).digest(), name)
        if first != name:
            print(f"ok   {name:50} the same bytes as {first}")
            continue
        try:
            with tempfile.TemporaryDirectory() as scratch:
                folder = pathlib.Path(scratch)
                said = (explained(trocar, model, CUSTOM[model.name], folder) if model.name in CUSTOM
                        else compared(trocar, model, folder))
            print(f"ok   {name:50} {said}")
        except RuntimeError as error:
            print(f"FAIL {name}: {error}")
            failed += 1
    sys.exit(1 if failed else 0)


main()
