#!/usr/bin/env python3
"""Trains the digit classifier that Trocar ships and writes digits.onnx, digits.npy and digits_labels.npy.

Plain numpy, forward and backward written out, so that nothing but numpy and onnx is needed. The data are
scikit-learn's 8x8 digits; models/README.md says where they come from and how to run this.

    models/train_digits.py digits.csv.gz --out models
"""

import argparse
import gzip
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HELD_OUT = 360
EPOCHS = 60
BATCH = 32
RATE = 2e-3


class Conv:
    """3x3 convolution, stride 1, one pixel of zeros around."""

    def __init__(self, rng, channels_in, channels_out):
        scale = np.sqrt(2 / (9 * channels_in))
        self.weight = rng.normal(0, scale, (channels_out, channels_in, 3, 3))
        self.bias = np.zeros(channels_out)

    def forward(self, x):
        n, c, h, w = x.shape
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = [padded[:, :, i : i + h, j : j + w] for i in range(3) for j in range(3)]
        self.columns = np.stack(windows, 2).reshape(n, c * 9, h * w)
        y = self.weight.reshape(len(self.bias), -1) @ self.columns
        return y.reshape(n, -1, h, w) + self.bias[:, None, None]

    def backward(self, dy):
        n, o, h, w = dy.shape
        flat = dy.reshape(n, o, h * w)
        self.d_weight = np.einsum("nop,ncp->oc", flat, self.columns, optimize=True).reshape(self.weight.shape)
        self.d_bias = flat.sum((0, 2))
        d_columns = (self.weight.reshape(o, -1).T @ flat).reshape(n, -1, 3, 3, h, w)
        d_padded = np.zeros((n, d_columns.shape[1], h + 2, w + 2))
        for i in range(3):
            for j in range(3):
                d_padded[:, :, i : i + h, j : j + w] += d_columns[:, :, i, j]
        return d_padded[:, :, 1:-1, 1:-1]


class Linear:
    def __init__(self, rng, inputs, outputs):
        self.weight = rng.normal(0, np.sqrt(1 / inputs), (outputs, inputs))
        self.bias = np.zeros(outputs)

    def forward(self, x):
        self.x = x
        return x @ self.weight.T + self.bias

    def backward(self, dy):
        self.d_weight = dy.T @ self.x
        self.d_bias = dy.sum(0)
        return dy @ self.weight


class Relu:
    def forward(self, x):
        self.open = x > 0
        return x * self.open

    def backward(self, dy):
        return dy * self.open


class MaxPool:
    """2x2, stride 2. Where a window has its largest value twice, both share the gradient."""

    def forward(self, x):
        n, c, h, w = x.shape
        windows = x.reshape(n, c, h // 2, 2, w // 2, 2)
        y = windows.max((3, 5), keepdims=True)
        won = windows == y
        self.share = won / won.sum((3, 5), keepdims=True)
        return y[:, :, :, 0, :, 0]

    def backward(self, dy):
        n, c, h, w = dy.shape
        return (self.share * dy[:, :, :, None, :, None]).reshape(n, c, h * 2, w * 2)


class Network:
    """stem -> residual block -> pool -> tail -> pool -> linear."""

    def __init__(self, rng):
        self.layers = {
            "stem.conv": Conv(rng, 1, 16),
            "block.conv1": Conv(rng, 16, 16),
            "block.conv2": Conv(rng, 16, 16),
            "tail.conv": Conv(rng, 16, 32),
            "classifier": Linear(rng, 128, 10),
        }
        self.relus = [Relu() for _ in range(4)]
        self.pools = [MaxPool(), MaxPool()]

    def forward(self, x):
        at, relu, pool = self.layers, self.relus, self.pools
        x = relu[0].forward(at["stem.conv"].forward(x))
        branch = relu[1].forward(at["block.conv1"].forward(x))
        x = relu[2].forward(at["block.conv2"].forward(branch) + x)
        x = relu[3].forward(at["tail.conv"].forward(pool[0].forward(x)))
        x = pool[1].forward(x)
        return at["classifier"].forward(x.reshape(len(x), -1))

    def backward(self, d_logits):
        at, relu, pool = self.layers, self.relus, self.pools
        d = at["classifier"].backward(d_logits).reshape(-1, 32, 2, 2)
        d = at["tail.conv"].backward(relu[3].backward(pool[1].backward(d)))
        d_sum = relu[2].backward(pool[0].backward(d))
        d_branch = at["block.conv1"].backward(relu[1].backward(at["block.conv2"].backward(d_sum)))
        at["stem.conv"].backward(relu[0].backward(d_sum + d_branch))

    def parameters(self):
        for name, layer in self.layers.items():
            yield f"{name}.weight", layer, "weight"
            yield f"{name}.bias", layer, "bias"


class Adam:
    def __init__(self, network):
        self.state = {name: [0.0, 0.0] for name, _, _ in network.parameters()}
        self.step = 0

    def update(self, network, rate):
        self.step += 1
        for name, layer, field in network.parameters():
            value, gradient = getattr(layer, field), getattr(layer, "d_" + field)
            if field == "weight":
                gradient = gradient + 1e-4 * value
            mean, square = self.state[name]
            mean = self.state[name][0] = 0.9 * mean + 0.1 * gradient
            square = self.state[name][1] = 0.999 * square + 0.001 * gradient**2
            mean = mean / (1 - 0.9**self.step)
            square = square / (1 - 0.999**self.step)
            setattr(layer, field, value - rate * mean / (np.sqrt(square) + 1e-8))


def read_digits(path):
    """Images in [0, 1] as [N,1,8,8], labels as [N]. A row of the file is 64 numbers 0..16 and the label."""
    with gzip.open(path) as file:
        rows = np.loadtxt(file, delimiter=",")
    return rows[:, :64].reshape(-1, 1, 8, 8) / 16, rows[:, 64].astype(np.int64)


def shifted(rng, images):
    """Each image moved by up to one pixel in a random direction."""
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    moves = rng.integers(0, 3, (len(images), 2))
    return np.stack([p[:, i : i + 8, j : j + 8] for p, (i, j) in zip(padded, moves)])


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
    return network


def export(network):
    """The network as ONNX, with the names an exporter of module trees gives."""
    nodes = []

    def add(kind, name, inputs, **attributes):
        output = f"{name}_output_0"
        nodes.append(helper.make_node(kind, inputs, [output], name=name, **attributes))
        return output

    def conv(module, x):
        name = "/" + module.replace(".", "/") + "/Conv"
        return add("Conv", name, [x, f"{module}.weight", f"{module}.bias"],
                   dilations=[1, 1], group=1, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1])

    def pool(name, x):
        return add("MaxPool", name, [x], kernel_shape=[2, 2], strides=[2, 2])

    x = add("Relu", "/stem/relu/Relu", [conv("stem.conv", "image")])
    branch = add("Relu", "/block/relu1/Relu", [conv("block.conv1", x)])
    x = add("Add", "/block/Add", [conv("block.conv2", branch), x])
    x = add("Relu", "/block/relu2/Relu", [x])
    x = add("Relu", "/tail/relu/Relu", [conv("tail.conv", pool("/pool1/MaxPool", x))])
    x = add("Flatten", "/Flatten", [pool("/pool2/MaxPool", x)], axis=1)
    nodes.append(helper.make_node("Gemm", [x, "classifier.weight", "classifier.bias"], ["logits"],
                                  name="/classifier/Gemm", alpha=1.0, beta=1.0, transB=1))
    initializers = [numpy_helper.from_array(getattr(layer, field).astype(np.float32), name)
                    for name, layer, field in network.parameters()]
    graph = helper.make_graph(
        nodes, "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 10])], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
                              producer_name="trocar models/train_digits.py")
    onnx.checker.check_model(model, full_check=True)
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", help="digits.csv.gz of scikit-learn")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--seed", type=int, default=7)
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
    (args.out / "digits.onnx").write_bytes(export(network).SerializeToString(deterministic=True))
    np.save(args.out / "digits.npy", images[held_out].astype(np.float32))
    np.save(args.out / "digits_labels.npy", labels[held_out])


if __name__ == "__main__":
    main()
