#!/usr/bin/env python3
"""A lab of ExecuTorch programs as its own Python makes them: each layer of an ONNX model as a torch module, exported, lowered and
written, with its inputs and outputs.

    executorch_lab.py MODEL.onnx FOLDER        needs torch, executorch, onnx

Knows the ops of ResNet-50, and nothing else. Each layer's outputs are those of the module, so they go into the next.
"""

import pathlib
import sys

import numpy as np
import onnx
import torch
from executorch.exir import to_edge
from torch import nn


class Apply(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def convolution(w, b, attrs):
    top, left, bottom, right = attrs.get("pads", [0, 0, 0, 0])
    if (top, left) != (bottom, right):
        raise SystemExit("a convolution is padded on one side only")
    made = nn.Conv2d(w.shape[1] * attrs.get("group", 1), w.shape[0], tuple(w.shape[2:]), tuple(attrs.get("strides", [1, 1])),
                     (top, left), tuple(attrs.get("dilations", [1, 1])), attrs.get("group", 1), b is not None)
    made.weight.data = w
    if b is not None:
        made.bias.data = b
    return made


def normalization(scale, bias, mean, variance, attrs):
    made = nn.BatchNorm2d(len(scale), attrs.get("epsilon", 1e-5))
    made.weight.data, made.bias.data, made.running_mean, made.running_var = scale, bias, mean, variance
    return made


def dense(w, b, attrs):
    w = w if attrs.get("transB") else w.T.contiguous()
    made = nn.Linear(w.shape[1], w.shape[0])
    made.weight.data, made.bias.data = w, b
    return made


def module(kind, constants, attrs):
    """A node as a module. `constants`: its inputs that are known, in their places, else None."""
    if kind == "Conv":
        return convolution(constants[1], constants[2] if len(constants) > 2 else None, attrs)
    if kind == "BatchNormalization":
        return normalization(*constants[1:5], attrs)
    if kind == "Gemm":
        return dense(constants[1], constants[2], attrs)
    simple = {"Relu": nn.ReLU, "GlobalAveragePool": lambda: nn.AdaptiveAvgPool2d(1), "Flatten": nn.Flatten,
              "Add": lambda: Apply(torch.add),
              "MaxPool": lambda: nn.MaxPool2d(tuple(attrs["kernel_shape"]), tuple(attrs["strides"]), tuple(attrs["pads"][:2]))}
    if kind not in simple:
        raise SystemExit(f"{kind} is not known here")
    return simple[kind]()


def main():
    model, folder = onnx.load(sys.argv[1]), pathlib.Path(sys.argv[2])
    folder.mkdir()
    known = {one.name: torch.from_numpy(onnx.numpy_helper.to_array(one).copy()) for one in model.graph.initializer}
    values = {"input": torch.from_numpy(np.random.default_rng(0).random((1, 3, 224, 224), dtype="float32"))}
    for number, node in enumerate(model.graph.node):
        attrs = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
        if node.op_type == "Identity" and node.input[0] in known:
            known[node.output[0]] = known[node.input[0]]
            continue
        layer = folder / f"{number:04}"
        layer.mkdir()
        made = module(node.op_type, [known.get(name) for name in node.input], attrs).eval()
        given = tuple(values[name] for name in node.input if name not in known)
        with torch.no_grad():
            result = made(*given)
            program = to_edge(torch.export.export(made, given)).to_executorch()
        (layer / "model.pte").write_bytes(program.buffer)
        for i, value in enumerate(given):
            np.save(layer / f"input_{i}.npy", value.numpy())
        np.save(layer / "output_0.npy", result.numpy())
        values[node.output[0]] = result


if __name__ == "__main__":
    main()
