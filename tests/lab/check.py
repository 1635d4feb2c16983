"""Labs from end to end: split, run by an outside command that misbehaves, compare, kill, resume.

    check.py TROCAR MODEL.onnx RUNNER.py
"""
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper

trocar, model, runner = (pathlib.Path(a).resolve() for a in sys.argv[1:4])
here = pathlib.Path(__file__).resolve().parent
python = sys.executable


def run(*arguments, code=0, env=None):
    done = subprocess.run([trocar, *map(str, arguments), "--json"], capture_output=True, text=True,
                          env={**os.environ, **(env or {})})
    assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout) if done.stdout else {}


def command(script):
    return f"{python} {script} {{model}} {{inputs}} {{outputs}}"


def layers(answer, key="layers"):
    return answer["tables"].get(key, [])


with tempfile.TemporaryDirectory() as folder:
    lab = pathlib.Path(folder) / "lab"
    run("split", model, lab, "--samples", 2, "--seed", 7)
    manifest = json.loads((lab / "manifest.json").read_text())
    assert manifest["complete"] and manifest["golden"]["seed"] == 7
    original = onnx.load(model)
    assert manifest["model"]["sha256"] == hashlib.sha256(model.read_bytes()).hexdigest()

    # Each layer is a model of its own, and an ONNX backend test; its data are those of the run.
    for layer in manifest["layers"]:
        path = lab / layer["folder"]
        about = json.loads((path / "manifest.json").read_text())
        assert hashlib.sha256((path / "model.onnx").read_bytes()).hexdigest() == about["model"]["sha256"]
        onnx.checker.check_model(str(path / "model.onnx"), full_check=True)
        session = ort.InferenceSession(path / "model.onnx", providers=["CPUExecutionProvider"])
        for number, sample in enumerate(about["samples"]):
            feed, got = {}, []
            for i, value in enumerate(sample["inputs"] + sample["outputs"]):
                arrays = {}
                for kind, file in value["files"].items():
                    data = (path / file).read_bytes()
                    assert hashlib.sha256(data).hexdigest() == value["sha256"][kind], file
                    if kind == "npy":
                        arrays[kind] = np.load(path / file)
                    elif kind == "pb":
                        tensor = onnx.TensorProto()
                        tensor.ParseFromString(data)
                        arrays[kind] = numpy_helper.to_array(tensor)
                    else:
                        side = json.loads((path / file).with_suffix(".json").read_text())
                        dtype = {"f32": np.float32, "i64": np.int64, "bool": np.bool_}[side["dtype"]]
                        arrays[kind] = np.frombuffer(data, dtype).reshape(side["shape"])
                assert set(arrays) == {"npy", "bin", "pb"}
                first = arrays["npy"]
                for other in arrays.values():
                    assert first.dtype == other.dtype and first.tobytes() == other.tobytes()
                if i < len(sample["inputs"]):
                    feed[value["name"]] = first
                else:
                    got.append(first)
            for a, b in zip(got, session.run(None, feed)):
                assert a.shape == b.shape and np.allclose(a, b, rtol=1e-4, atol=1e-5)

    # A runner from outside.
    run("lab", "run", lab, "--command", command(runner), "--name", "outside", "--jobs", 2)
    answer = run("compare", lab, "--all")
    assert all(row["verdict"] == "PASS" for row in layers(answer)), answer

    # One that misbehaves at one kind of op.
    lab = pathlib.Path(folder) / "small"
    run("split", model, lab, "--select", "index:0..2")
    manifest = json.loads((lab / "manifest.json").read_text())
    assert [layer["type"] for layer in manifest["layers"]] == ["Conv", "Relu", "Conv"]
    run("lab", "run", lab, "--command", command(runner), "--name", "outside")
    for how, end in (("crash", "crashed"), ("fail", "failed"), ("garbage", "bad output"),
                     ("shape", "bad output"), ("dtype", "bad output"), ("nothing", "bad output"),
                     ("hang", "hung"), ("large", "over memory")):
        answer = run("lab", "run", lab, "--command", command(here / "misbehave.py"), "--name", how,
                     "--jobs", 2, "--time-limit", 60 if how != "hang" else 12,
                     "--memory-limit", "1G", code=1, env={"MISBEHAVE": f"Relu:{how}"})
        bad = layers(answer)
        expected = sum(layer["type"] == "Relu" for layer in manifest["layers"])
        assert len(bad) == expected and all(row["end"] == end for row in bad), (how, bad)
    run("lab", "run", lab, "--command", command(here / "misbehave.py"), "--name", "off",
        env={"MISBEHAVE": "Relu:off"})
    run("lab", "run", lab, "--command", command(here / "misbehave.py"), "--name", "raw",
        env={"MISBEHAVE": "Relu:raw"})

    # Run by its own name, each result is judged alone.
    saved = pathlib.Path(folder) / "saved.json"
    answer = run("compare", lab, "--all", "--save", saved, code=1)
    for row in layers(answer):
        relu = row["type"] == "Relu"
        wanted = {"outside": "PASS", "raw": "PASS", "off": "FAIL" if relu else "PASS"}.get(
            row["side"], "INCOMPARABLE" if relu else "PASS")
        assert row["verdict"] == wanted, row
    again = run("compare", saved, "--all", "--rtol", 0.01, code=1)
    assert all(row["verdict"] != "FAIL" for row in layers(again))

    # Channels last: said to be so, whether the shape tells or only the order of raw elements.
    hint = "looks like a transposed layout (NHWC): matches after perm [0,2,3,1]"
    answer = run("lab", "run", lab, "--command", command(here / "misbehave.py"), "--name", "nhwc",
                 code=1, env={"MISBEHAVE": "Relu:nhwc"})
    assert [row["end"] for row in layers(answer)] == ["bad output"], answer
    assert hint in layers(answer)[0]["reason"], answer
    run("lab", "run", lab, "--command", command(here / "misbehave.py"), "--name", "raw_nhwc",
        env={"MISBEHAVE": "Relu:raw_nhwc"})
    answer = run("compare", lab, "--all", code=1)
    for side, verdict in (("nhwc", "INCOMPARABLE"), ("raw_nhwc", "FAIL")):
        [row] = [r for r in layers(answer) if r["side"] == side and r["type"] == "Relu"]
        assert row["verdict"] == verdict and hint in row["reason"], row
        assert all(r["verdict"] == "PASS" for r in layers(answer)
                   if r["side"] == side and r["type"] != "Relu")
    [tensor] = [r for r in layers(answer, "tensors") if r["side"] == "raw_nhwc" and r["layer"] == 1]
    assert tensor["layout"] == hint and tensor["reference_type"] == tensor["found_type"], tensor
    answer = run("compare", model, "--command", command(here / "misbehave.py"), "--by", "segment",
                 "--cut", "index:1", "--mode", "isolated", code=1, env={"MISBEHAVE": "Relu:nhwc"})
    assert hint in layers(answer)[0]["reason"], answer

    # Own chain: the error arrives at what comes after.
    run("lab", "run", lab, "--command", command(here / "misbehave.py"), "--name", "off",
        "--cumulative", env={"MISBEHAVE": "Relu:off"})
    answer = run("compare", lab, "--all", code=1)
    last = [row for row in layers(answer) if row["side"] == "off"][-1]
    assert last["error"] < 1e-6 < 1e-4 < last["cumulative_error"], last

    # A changed file is an outcome of its layer, not of the others.
    first = lab / manifest["layers"][0]["folder"]
    (first / "npy" / "0" / "input_0.npy").write_bytes(b"not what it was")
    answer = run("lab", "run", lab, "--command", command(runner), "--name", "changed", code=1)
    assert [row["layer"] for row in layers(answer)] == [0]
    (first / "model.onnx").unlink()
    answer = run("lab", "run", lab, "--engine", "onnxruntime", "--name", "gone", code=1)
    assert [row["layer"] for row in layers(answer)] == [0]
    (lab / manifest["layers"][1]["folder"] / "manifest.json").write_text("{")
    answer = run("lab", "run", lab, "--engine", "onnxruntime", "--name", "broken", code=1)
    assert [row["layer"] for row in layers(answer)] == [0, 1]

with tempfile.TemporaryDirectory() as folder:
    # Killed half-way, it goes on where it was, and leaves no process behind.
    lab = pathlib.Path(folder) / "lab"
    run("split", model, lab, "--select", "index:0..5")
    count = len(json.loads((lab / "manifest.json").read_text())["layers"])
    slow = f"sleep 0.4; {command(runner)}"
    arguments = [trocar, "lab", "run", lab, "--command", slow, "--name", "slow", "-q"]
    process = subprocess.Popen(arguments)
    while len(list(lab.glob("layers/*/results/slow/isolated/result.json"))) < 2:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    finished = len(list(lab.glob("layers/*/results/slow/isolated/result.json")))
    assert 2 <= finished < count
    answer = run("lab", "run", lab, "--command", command(runner), "--name", "slow")
    section = answer["sections"]["run"]
    assert section["done"] == count and str(finished) in section["done_note"], section

print("labs: as they should be")
