#!/usr/bin/env python3
"""Modules of TorchScript, mapped to ONNX: they give what torch gave.

    torchscript.py TROCAR MODELS

Each .pt in tests/formats/torchscript whose outputs torch has computed (NAME.npz) is run on ONNX Runtime, as it is and converted, and on
PyTorch where Trocar was built with it.
MODELS is the folder with models of packages: silero_vad.jit is compared with silero_vad.onnx, weights and outputs.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

HERE = pathlib.Path(__file__).resolve().parent.parent / "formats/torchscript"
TOLERANCE = 2e-6  # relative to the largest element
OPEN = {"given": ["x", "places"]}  # inputs whose rank the file does not tell: they cannot be converted without one
REFUSED = {"writes": "through a view"}  # what cannot be mapped, and what is said then


def trocar(*words, wanted=0):
    done = subprocess.run([sys.argv[1], *map(str, words)], capture_output=True, text=True)
    if done.returncode != wanted:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr}")
    return done.stdout + done.stderr


def session(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def off(a, b):
    assert a.shape == b.shape, (a.shape, b.shape)
    return float(np.max(np.abs(a - b)) / max(np.max(np.abs(b)), 1e-30)) if a.size else 0.0


def has_torch():
    engines = json.loads(trocar("engines", "--json"))["tables"]["engines"]
    return any(one["name"] == "torch" and one["available"] for one in engines)


def example(path, scratch, engines):
    """The largest difference from torch, converted and as it is, on each engine."""
    expected = np.load(path.with_suffix(".npz"))
    outputs = [expected[f"out{i}"] for i in range(len(expected.files)) if f"out{i}" in expected.files]
    if path.stem in OPEN:
        words = []
        inputs = {name: expected[f"in{i}"] for i, name in enumerate(OPEN[path.stem])}
        for name, value in inputs.items():
            np.save(scratch / f"{name}.npy", value)
            words += ["-i", f"{name}={scratch / f'{name}.npy'}"]
        found = {}
        for engine in engines:
            trocar("run", path, *words, "-o", scratch / engine, "-q", "--engine", engine)
            (made,) = (scratch / engine).glob("*.npy")
            found[f"on {engine}"] = off(np.load(made), outputs[0])
        return found
    trocar("convert", path, scratch / "m.onnx")
    run = session(scratch / "m.onnx")
    inputs = {one.name: expected[f"in{i}"] for i, one in enumerate(run.get_inputs())}
    made = run.run(None, inputs)[:len(outputs)]
    words = []
    for name, value in inputs.items():
        np.save(scratch / f"{name}.npy", value)
        words += ["-i", f"{name}={scratch / f'{name}.npy'}"]
    names = [one.name for one in run.get_outputs()][:len(outputs)]
    found = {"converted": max(off(a, b) for a, b in zip(made, outputs))}
    for engine in engines:
        try:
            trocar("run", path, *words, "-o", scratch / engine, "-q", "--engine", engine)
        except RuntimeError as error:
            if engine != "torch" or "PyTorch has no op" not in str(error):
                raise
            print(f"     {path.name}: this PyTorch is older than it: {str(error).strip().splitlines()[-1]}")
            continue
        direct = [np.load(scratch / engine / f"{name.replace('/', '_')}.npy") for name in names]
        found[f"on {engine}"] = max(off(a, b) for a, b in zip(direct, outputs))
    return found


def silero(models, scratch):
    """Twelve steps with state, against the package's own ONNX."""
    trocar("convert", models / "silero_vad.jit", scratch / "s.onnx")
    ours, theirs = session(scratch / "s.onnx"), session(models / "silero_vad.onnx")
    names = [one.name for one in ours.get_outputs()]
    random = np.random.default_rng(0)
    worst = 0.0
    for rate, size in ((16000, 512), (8000, 256)):
        state, context, kept = np.zeros((2, 1, 128), np.float32), np.zeros((1, size // 8), np.float32), {}
        for _ in range(6):
            x = random.normal(0, 0.1, (1, size)).astype(np.float32)
            rate_value = np.array(rate, np.int64)
            made = dict(zip(names, ours.run(None, {"x": x, "sr": rate_value, **kept})))
            kept = {"_context": made["_15"], "_last_batch_size": made["batch_size"], "_last_sr": made["sr1"],
                    "_state": made["_state.4"]}
            whole = np.concatenate([context, x], 1)
            output, state = theirs.run(None, {"input": whole, "state": state, "sr": rate_value})
            context = whole[:, -(size // 8):]
            worst = max(worst, off(made["out"], output), off(made["_state.4"], state))
    return worst


def arrays(graph):
    """All arrays of floats in a graph and its bodies, also in another order of gates or axes, by their sorted elements."""
    found = [onnx.numpy_helper.to_array(one) for one in graph.initializer]
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                found += arrays(attribute.g)
            elif attribute.type == onnx.AttributeProto.TENSOR:
                found.append(onnx.numpy_helper.to_array(attribute.t))
    return [one for one in found if one.dtype == np.float32 and one.size > 1]


def silero_weights(models, scratch):
    """Every weight of the module is one of its ONNX: the same numbers."""
    ours = onnx.load(scratch / "s.onnx").graph
    theirs = {(one.size, one.dtype.str, np.sort(one.ravel()).tobytes()) for one in arrays(onnx.load(models / "silero_vad.onnx").graph)}
    weights = [one for one in ours.initializer if one.data_type == onnx.TensorProto.FLOAT and np.prod(one.dims) > 1]
    missing = []
    for one in weights:
        value = onnx.numpy_helper.to_array(one)
        key = (value.size, value.dtype.str, np.sort(value.ravel()).tobytes())
        if key not in theirs:
            missing.append(one.name)
    return len(weights), missing


def main():
    models = pathlib.Path(sys.argv[2])
    failed = 0
    engines = ["onnxruntime", *(["torch"] if has_torch() else [])]
    for path in sorted(HERE.glob("*.npz")):
        model = path.with_suffix(".pt")
        with tempfile.TemporaryDirectory() as name:
            scratch = pathlib.Path(name)
            try:
                if model.stem in REFUSED:
                    said = trocar("convert", model, scratch / "m.onnx", "--json", wanted=1)
                    good, text = REFUSED[model.stem] in said, "refused"
                else:
                    found = example(model, scratch, engines)
                    good = max(found.values()) < TOLERANCE
                    text = ", ".join(f"{worst:.1e} {how}" for how, worst in found.items())
            except (RuntimeError, AssertionError, OSError) as error:
                good, text = False, str(error)
            print(f"{'ok  ' if good else 'FAIL'} {model.name:20} {text}")
            failed += not good
    if (models / "silero_vad.jit").exists():
        with tempfile.TemporaryDirectory() as name:
            worst = silero(models, pathlib.Path(name))
            count, missing = silero_weights(models, pathlib.Path(name))
            good = worst < TOLERANCE and not missing
            print(f"{'ok  ' if good else 'FAIL'} silero_vad.jit       {worst:.1e} from silero_vad.onnx; {count} weights, "
                  f"{len(missing)} not in it {missing[:5]}")
            failed += not good
    sys.exit(1 if failed else 0)


main()
