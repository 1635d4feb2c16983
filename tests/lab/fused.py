"""`trocar bisect` where cutting hides the error: an engine that is wrong only when it fuses ops.

    fused.py TROCAR
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx

import plant

trocar = pathlib.Path(sys.argv[1]).resolve()
runner = pathlib.Path(__file__).resolve().parent / "fusing.py"
command = f"{sys.executable} {runner} {{model}} {{inputs}} {{outputs}}"


def run(arguments, code, fuses):
    done = subprocess.run([*map(str, arguments)], capture_output=True, text=True,
                          env={**os.environ, "FUSES": fuses})
    assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
    return done.stdout


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    model = folder / "model.onnx"
    nodes, constants, _ = plant.chain(np.random.default_rng(1))
    nodes = nodes[:6]
    onnx.save(plant.model_of(
        nodes, constants,
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 4, 12, 12])],
        [onnx.helper.make_tensor_value_info(nodes[-1].output[0], onnx.TensorProto.FLOAT,
                                            [1, 8, 12, 12])]), model)
    # Two that are neighbours, and two with one between them, which is part of what is found.
    for fuses, expected in (("norm1,relu1", ["norm1", "relu1"]),
                            ("conv1,relu1", ["conv1", "norm1", "relu1"])):
        repro = folder / fuses
        answer = json.loads(run([trocar, "bisect", model, "--engine", "onnxruntime", "--command",
                                 command, "-o", repro, "--json"], 1, fuses))
        found = answer["sections"]["bisection"]
        assert found["whole"] == "FAIL", found
        assert found["found"] == "these ops introduce it when they are compiled together", found
        assert any("cutting the model changes the result" in note for note in answer["notes"])
        small = onnx.load(repro / "model.onnx")
        assert [node.name for node in small.graph.node] == expected, found
        assert len(found["ops"]) == len(expected), found
        # It fails without Trocar, and does not where the runner is right.
        script = [sys.executable, repro / "reproduce.py"]
        assert "they differ" in run(script, 1, fuses)
        assert "they agree" in run(script, 0, "")
print("errors of ops that are compiled together: found where they are")
