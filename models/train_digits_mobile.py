#!/usr/bin/env python3
"""Trains the second digit classifier, a small network in the manner of MobileNetV2, and writes digits_mobile.onnx.

Inverted residuals: a 1x1 convolution that widens, a depthwise 3x3 one, a 1x1 one that narrows without an activation,
each with a batch normalisation, and ReLU6 between. Plain numpy, with the parts of train_digits.py; it is trained on the
same images, so that digits.npy is new to it too.

    models/train_digits_mobile.py digits.csv.gz --out models
"""

import argparse
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from train_digits import BATCH, HELD_OUT, Adam, Linear, read_digits, shifted

EPOCHS = 80
RATE = 4e-3
STEM = 12
# Channels that come out, how often wider it is inside, stride.
BLOCKS = [(8, 1, 1), (16, 4, 2), (16, 4, 1), (24, 4, 2), (24, 4, 1)]
HEAD = 64
EPSILON = 1e-5


class Conv:
    """3x3 with a pixel of zeros around, or 1x1; without bias."""

    def __init__(self, rng, inputs, outputs, kernel):
        self.kernel, self.stride = kernel, 1
        scale = np.sqrt(2 / (kernel * kernel * inputs))
        self.weight = rng.normal(0, scale, (outputs, inputs, kernel, kernel))

    def forward(self, x):
        n, c, h, w = x.shape
        edge = self.kernel // 2
        padded = np.pad(x, ((0, 0), (0, 0), (edge, edge), (edge, edge)))
        windows = [padded[:, :, i : i + h, j : j + w] for i in range(self.kernel) for j in range(self.kernel)]
        self.columns = np.stack(windows, 2).reshape(n, -1, h * w)
        return (self.weight.reshape(len(self.weight), -1) @ self.columns).reshape(n, -1, h, w)

    def backward(self, dy):
        n, o, h, w = dy.shape
        flat = dy.reshape(n, o, h * w)
        self.d_weight = np.einsum("nop,ncp->oc", flat, self.columns, optimize=True).reshape(self.weight.shape)
        k, edge = self.kernel, self.kernel // 2
        d_columns = (self.weight.reshape(o, -1).T @ flat).reshape(n, -1, k, k, h, w)
        d_padded = np.zeros((n, d_columns.shape[1], h + 2 * edge, w + 2 * edge))
        for i in range(k):
            for j in range(k):
                d_padded[:, :, i : i + h, j : j + w] += d_columns[:, :, i, j]
        return d_padded[:, :, edge : edge + h, edge : edge + w]


class Depthwise:
    """3x3 on each channel alone, with a pixel of zeros around."""

    def __init__(self, rng, channels, stride):
        self.kernel, self.stride = 3, stride
        self.weight = rng.normal(0, np.sqrt(2 / 9), (channels, 1, 3, 3))

    def places(self, i, j):
        return (slice(None), slice(None), slice(i, i + self.size[0], self.stride), slice(j, j + self.size[1], self.stride))

    def forward(self, x):
        self.size = x.shape[2:]
        self.padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        return sum(self.padded[self.places(i, j)] * self.weight[:, 0, i, j, None, None]
                   for i in range(3) for j in range(3))

    def backward(self, dy):
        self.d_weight = np.zeros_like(self.weight)
        d_padded = np.zeros_like(self.padded)
        for i in range(3):
            for j in range(3):
                self.d_weight[:, 0, i, j] = (dy * self.padded[self.places(i, j)]).sum((0, 2, 3))
                d_padded[self.places(i, j)] += dy * self.weight[:, 0, i, j, None, None]
        return d_padded[:, :, 1:-1, 1:-1]


class Norm:
    """Batch normalisation; what it has seen in training it uses afterwards."""

    def __init__(self, channels):
        self.weight, self.bias = np.ones(channels), np.zeros(channels)
        self.running_mean, self.running_var = np.zeros(channels), np.ones(channels)
        self.training = True

    def forward(self, x):
        if self.training:
            mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
            count = x.size // x.shape[1]
            self.running_mean += 0.1 * (mean - self.running_mean)
            self.running_var += 0.1 * (var * count / (count - 1) - self.running_var)
        else:
            mean, var = self.running_mean, self.running_var
        self.factor = 1 / np.sqrt(var + EPSILON)
        self.normal = (x - mean[:, None, None]) * self.factor[:, None, None]
        return self.normal * self.weight[:, None, None] + self.bias[:, None, None]

    def backward(self, dy):
        self.d_weight = (dy * self.normal).sum((0, 2, 3))
        self.d_bias = dy.sum((0, 2, 3))
        each = dy.size // dy.shape[1]
        inside = dy - (self.d_bias[:, None, None] + self.normal * self.d_weight[:, None, None]) / each
        return inside * (self.weight * self.factor)[:, None, None]


class Relu6:
    def forward(self, x):
        self.open = (x > 0) & (x < 6)
        return np.clip(x, 0, 6)

    def backward(self, dy):
        return dy * self.open


class Block:
    """Layers one after the other, and what comes in added where it has the same shape."""

    def __init__(self, name, layers, residual):
        self.name, self.layers, self.residual = name, layers, residual

    def forward(self, x):
        y = x
        for _, layer in self.layers:
            y = layer.forward(y)
        return y + x if self.residual else y

    def backward(self, dy):
        d = dy
        for _, layer in reversed(self.layers):
            d = layer.backward(d)
        return d + dy if self.residual else d


def inverted_residual(rng, name, inputs, outputs, wider, stride):
    wide, layers = inputs * wider, []
    if wider != 1:
        layers += [("expand", Conv(rng, inputs, wide, 1)), ("expand_norm", Norm(wide)), ("expand_relu", Relu6())]
    layers += [("depthwise", Depthwise(rng, wide, stride)), ("depthwise_norm", Norm(wide)),
               ("depthwise_relu", Relu6()), ("project", Conv(rng, wide, outputs, 1)), ("project_norm", Norm(outputs))]
    return Block(name, layers, stride == 1 and inputs == outputs)


class Network:
    def __init__(self, rng):
        self.blocks = [Block("stem", [("conv", Conv(rng, 1, STEM, 3)), ("norm", Norm(STEM)), ("relu", Relu6())], False)]
        channels = STEM
        for i, (outputs, wider, stride) in enumerate(BLOCKS):
            self.blocks.append(inverted_residual(rng, f"blocks.{i}", channels, outputs, wider, stride))
            channels = outputs
        self.blocks.append(
            Block("head", [("conv", Conv(rng, channels, HEAD, 1)), ("norm", Norm(HEAD)), ("relu", Relu6())], False))
        self.classifier = Linear(rng, HEAD, 10)

    def forward(self, x):
        for block in self.blocks:
            x = block.forward(x)
        self.size = x.shape[2:]
        return self.classifier.forward(x.mean((2, 3)))

    def backward(self, d_logits):
        h, w = self.size
        d = np.broadcast_to(self.classifier.backward(d_logits)[:, :, None, None] / (h * w), (len(d_logits), HEAD, h, w))
        for block in reversed(self.blocks):
            d = block.backward(d)

    def named_layers(self):
        for block in self.blocks:
            for name, layer in block.layers:
                yield f"{block.name}.{name}", layer
        yield "classifier", self.classifier

    def parameters(self):
        for name, layer in self.named_layers():
            for field in ("weight", "bias"):
                if hasattr(layer, field):
                    yield f"{name}.{field}", layer, field

    def set_training(self, training):
        for _, layer in self.named_layers():
            if isinstance(layer, Norm):
                layer.training = training


def train(rng, images, labels):
    network = Network(rng)
    adam = Adam(network)
    for epoch in range(EPOCHS):
        order = rng.permutation(len(images))
        rate = RATE * 0.5 * (1 + np.cos(np.pi * epoch / EPOCHS))
        for start in range(0, len(order), BATCH):
            pick = order[start : start + BATCH]
            logits = network.forward(shifted(rng, images[pick]))
            odds = np.exp(logits - logits.max(1, keepdims=True))
            gradient = odds / odds.sum(1, keepdims=True)
            gradient[np.arange(len(pick)), labels[pick]] -= 1
            network.backward(gradient / len(pick))
            adam.update(network, rate)
    network.set_training(False)
    return network


class Exporter:
    """The network as ONNX, with the names an exporter of module trees gives."""

    def __init__(self):
        self.nodes, self.constants = [], []

    def add(self, kind, module, inputs, output=None, **attributes):
        name = "/" + module.replace(".", "/") + ("/" if module else "") + kind
        output = output or f"{name}_output_0"
        self.nodes.append(helper.make_node(kind, inputs, [output], name=name, **attributes))
        return output

    def constant(self, name, array):
        self.constants.append(numpy_helper.from_array(np.asarray(array, np.float32), name))
        return name

    def layer(self, module, layer, x):
        fields = [self.constant(f"{module}.{field}", getattr(layer, field))
                  for field in ("weight", "bias", "running_mean", "running_var") if hasattr(layer, field)]
        if isinstance(layer, Norm):
            return self.add("BatchNormalization", module, [x, *fields], epsilon=EPSILON)
        if isinstance(layer, Relu6):
            return self.add("Clip", module, [x, "zero", "six"])
        k = layer.kernel
        return self.add("Conv", module, [x, *fields], dilations=[1, 1], kernel_shape=[k, k], pads=[k // 2] * 4,
                        group=len(layer.weight) if isinstance(layer, Depthwise) else 1, strides=[layer.stride] * 2)

    def network(self, network):
        self.constant("zero", 0)
        self.constant("six", 6)
        x = "image"
        for block in network.blocks:
            y = x
            for name, layer in block.layers:
                y = self.layer(f"{block.name}.{name}", layer, y)
            x = self.add("Add", block.name, [y, x]) if block.residual else y
        x = self.add("GlobalAveragePool", "", [x])
        x = self.add("Flatten", "", [x], axis=1)
        weight = self.constant("classifier.weight", network.classifier.weight)
        bias = self.constant("classifier.bias", network.classifier.bias)
        self.add("Gemm", "classifier", [x, weight, bias], output="logits", alpha=1.0, beta=1.0, transB=1)
        graph = helper.make_graph(
            self.nodes, "digits_mobile",
            [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8])],
            [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 10])], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
                                  producer_name="trocar models/train_digits_mobile.py")
        onnx.checker.check_model(model, full_check=True)
        return model


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", help="digits.csv.gz of scikit-learn")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--seed", type=int, default=7, help="as train_digits.py had: the same images are held out")
    args = parser.parse_args()

    rng = np.random.Generator(np.random.Philox(args.seed))
    images, labels = read_digits(args.data)
    order = rng.permutation(len(images))
    held_out, rest = order[:HELD_OUT], order[HELD_OUT:]
    network = train(rng, images[rest], labels[rest])

    for name, pick in (("training", rest), ("held-out", held_out)):
        right = network.forward(images[pick]).argmax(1) == labels[pick]
        print(f"{name}: {right.sum()} of {len(pick)} right ({right.mean():.2%})")
    args.out.mkdir(parents=True, exist_ok=True)
    made = Exporter().network(network)
    (args.out / "digits_mobile.onnx").write_bytes(made.SerializeToString(deterministic=True))


if __name__ == "__main__":
    main()
