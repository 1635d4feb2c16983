"""A lab as people make it by hand: a hook on every module that has none below, its input and output saved, and the module
exported to ONNX. `hook_lab.py FOLDER 0 THREADS`, into FOLDER/lab. What is no module (an addition) is not in it.
"""

import pathlib
import sys
import warnings

import numpy
import torch

from common import FOLDER, model_and_input

warnings.simplefilter("ignore")
model, given = model_and_input()
lab = pathlib.Path(FOLDER) / "lab"
lab.mkdir()
calls = []


def hook(module, inputs, output):
    calls.append((module, [one.clone() for one in inputs], output.clone()))


for module in model.modules():
    if not list(module.children()):
        if isinstance(module, torch.nn.ReLU):
            module.inplace = False
        module.register_forward_hook(hook)
model(given)
for number, (module, inputs, output) in enumerate(list(calls)):
    layer = lab / f"{number:04}"
    layer.mkdir()
    module._forward_hooks.clear()
    torch.onnx.export(module, tuple(inputs), str(layer / "model.onnx"), dynamo=False)
    for i, value in enumerate(inputs):
        numpy.save(layer / f"input_{i}.npy", value.numpy())
    numpy.save(layer / "output_0.npy", output.numpy())
print(len(calls), "layers", file=sys.stderr)
