"""Models that packages of a registry carry: split, run on OpenVINO, compared; nothing is lost.

    packages.py TROCAR FOLDER [MODEL.onnx...]

Of every layer there is a verdict, or a reason why not.
"""
import collections
import json
import pathlib
import subprocess
import sys
import tempfile
import time

trocar, models = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()

# How many layers there are, and the shape that the inputs are meant to have.
MODELS = {
    "magika.onnx": (95, "bytes=1,2048"),
    "ppocr_cls.onnx": (258, "x=1,3,48,192"),
    "silero_vad_half.onnx": (52, "sequence=576"),
}


def run(*arguments, codes=(0,)):
    done = subprocess.run([trocar, *map(str, arguments), "--json"], capture_output=True, text=True)
    assert done.returncode in codes, (arguments, done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout)


for name in sys.argv[3:] or MODELS:
    count, shape = MODELS[name]
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        lab = pathlib.Path(folder) / "lab"
        run("split", models / name, lab, "--tensors", "npy", "--unique", "--shape", shape)
        manifest = json.loads((lab / "manifest.json").read_text())
        assert manifest["complete"]
        layers = {layer["number"]: layer for layer in manifest["layers"]}
        # Layers that are alike are written once, and those they stand for are listed.
        total = sum(1 + len(layer.get("occurrences", [])) for layer in layers.values())
        assert total == count, (name, total)
        for layer in layers.values():
            about = lab / layer["folder"]
            assert (about / "error.txt").exists() == ("error" in layer), layer
        # One layer that fails is no failure of the others.
        run("lab", "run", lab, "--engine", "openvino", "--jobs", 2, codes=(0, 1))
        answer = run("compare", lab, "--all", codes=(0, 1))
        rows = answer["tables"]["layers"]
        assert sorted(row["layer"] for row in rows) == sorted(layers), name
        for row in rows:
            known = row["verdict"] in ("PASS", "WARN", "FAIL", "INCOMPARABLE")
            assert known and (row["verdict"] == "PASS" or row["reason"]), row
        verdicts = collections.Counter(row["verdict"] for row in rows)
        print(f"{name}: {total} layers, {len(layers)} written, {dict(verdicts)}, "
              f"{time.monotonic() - start:.1f} s")
        for row in rows:
            if row["verdict"] != "PASS":
                print(f"  {row['verdict']} {row['layer']} {row['type']} {row['name']}: {row['reason']}")
