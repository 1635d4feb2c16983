"""What the tests of this folder share: the command, sessions without fusion, the shipped models."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

MODELS = pathlib.Path(__file__).resolve().parents[2] / "models"
IMAGES = np.load(MODELS / "digits.npy")
LABELS = np.load(MODELS / "digits_labels.npy")
DATA = ["--data", str(MODELS / "digits.npy"), "--labels", str(MODELS / "digits_labels.npy")]


def trocar(*arguments, code=0):
    done = subprocess.run([os.path.abspath(sys.argv[1]), *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == code, f"{arguments}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def session(model):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model if isinstance(model, bytes) else str(model), options)


def constants(model):
    return {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}


def every_value(path, inputs):
    """All tensors of a model by name, the inputs among them."""
    model = onnx.load(path)
    known = {one.name for one in model.graph.output}
    for node in model.graph.node:
        model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in node.output
                                  if name and name not in known)
    run = session(model.SerializeToString())
    values = dict(zip([one.name for one in run.get_outputs()], run.run(None, inputs)))
    return values | inputs
