#!/usr/bin/env python3
"""One network in three ecosystems: the pitch detector of basic-pitch as SavedModel, TensorFlow Lite and ONNX.

    formats.py TROCAR MODELS

The three are run with the same sound: ONNX on ONNX Runtime, TensorFlow Lite on LiteRT and mapped, the SavedModel mapped
and converted. Outputs are compared, and every tensor whose name all three remember.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

TOLERANCE = 1e-3  # of outputs, which are probabilities: absolute
LAYERS = 100      # tensors, at least, that two models have under one name


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))}: {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")


def sound():
    """A chord with noise, as the network wants it: two seconds at 22,050 Hz."""
    t = np.arange(43844) / 22050
    tones = sum(np.sin(2 * np.pi * f * t) / (i + 2) for i, f in enumerate((261.63, 329.63, 392.0)))
    noise = ((np.arange(43844) * 7919 + 17) % 10007 / 10007 - 0.5) * 0.02
    return (0.5 * tones + noise).astype(np.float32).reshape(1, -1, 1)


def outputs(folder):
    """By the number of the result: ONNX and TensorFlow call it "StatefulPartitionedCall:1", files "…_1"."""
    found = {}
    for path in folder.glob("*.npy"):
        digits = [c for c in path.stem if c.isdigit()]
        found[digits[-1] if digits else "0"] = np.load(path)
    return found


def tensors(dump, fused=False):
    """By the op of TensorFlow that made them. Converters repeat its name, "a;a"; where they fused ops they join their names,
    in TensorFlow Lite that of the last op first."""
    found = {}
    for line in (dump / "index.jsonl").read_text().splitlines():
        record = json.loads(line)
        if "tensor" in record and "file" in record and record["file"].endswith(".npy"):
            names = record["tensor"].split(";")
            if fused or len(set(names)) == 1:
                found[names[0]] = dump / record["file"]  # the last of several ops made of one
    return found


def same_layout(a, b):
    if a.shape == b.shape:
        return b
    if a.ndim == 4 and b.ndim == 4:
        for order in ((0, 2, 3, 1), (0, 3, 1, 2)):
            if a.shape == tuple(b.shape[i] for i in order):
                return b.transpose(order)
    return None


def compare_layers(name, a, b, tolerance):
    """The largest difference of tensors of one name, relative to the largest element."""
    compared, worst = 0, (0.0, "")
    for key in a.keys() & b.keys():
        x, y = np.load(a[key]), np.load(b[key])
        y = same_layout(x, y)
        if y is None or not np.issubdtype(x.dtype, np.floating) or x.size == 0:
            continue
        compared += 1
        off = float(np.max(np.abs(x - y))) / max(float(np.max(np.abs(x))), 1e-30)
        worst = max(worst, (off, key))
    good = compared >= LAYERS and worst[0] <= tolerance
    print(f"{'ok  ' if good else 'FAIL'} {name}: {compared} tensors of one name, {worst[0]:.1e} apart at most ({worst[1]})")
    return good


def main():
    trocar, models = sys.argv[1], pathlib.Path(sys.argv[2])
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        np.save(scratch / "sound.npy", sound())
        given = ["--input", scratch / "sound.npy", "-q"]
        run(trocar, "convert", models / "nmp", scratch / "nmp.onnx", "-q")
        ways = {
            "onnx": [models / "nmp.onnx"],
            "tflite": [models / "nmp.tflite"],
            "tflite mapped": [models / "nmp.tflite", "--engine", "onnxruntime"],
            "saved model mapped": [models / "nmp"],
            "saved model op by op": [models / "nmp", "--cut", "all"],
            "saved model converted": [scratch / "nmp.onnx"],
        }
        results = {}
        for way, words in ways.items():
            folder = scratch / way.replace(" ", "_")
            run(trocar, "run", *words, *given, "-o", folder)
            results[way] = outputs(folder)
        reference = results["onnx"]
        for way, found in results.items():
            same = set(found) == set(reference) and all(found[k].shape == reference[k].shape for k in found)
            off = max(float(np.max(np.abs(found[k] - reference[k]))) for k in found) if same else np.inf
            good = off <= TOLERANCE
            print(f"{'ok  ' if good else 'FAIL'} {way}: {off:.1e} from ONNX at most")
            failed += not good
        dumps = {}
        for kind, model in (("onnx", models / "nmp.onnx"), ("tflite", models / "nmp.tflite"), ("tf", models / "nmp")):
            run(trocar, "dump", model, "--tensors", *given, "-o", scratch / f"{kind}.dump")
            dumps[kind] = tensors(scratch / f"{kind}.dump", kind == "tflite")
        # LiteRT adds up in another order, and a logarithm of nearly nothing makes much of that.
        failed += not compare_layers("saved model and onnx", dumps["tf"], dumps["onnx"], 1e-5)
        failed += not compare_layers("saved model and tflite", dumps["tf"], dumps["tflite"], 2e-2)
        failed += not compare_layers("tflite and onnx", dumps["tflite"], dumps["onnx"], 2e-2)
    sys.exit(1 if failed else 0)


main()
