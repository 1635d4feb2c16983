#!/usr/bin/env python3
"""Ops of MXNet, mapped to ONNX: they give what their documentation says, computed with numpy in double precision.

    mxnet.py TROCAR

One symbol holds all cases, each a head. Run as it is, op by op, and converted, on ONNX Runtime.
"""

import itertools
import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np

from tf_cases import numbers

TOLERANCE = 2e-6  # relative to the largest element


# --- What ops do ------------------------------------------------------------------------------------


def windows(size, kernel, stride, pad, dilate=1, full=False):
    extent = (kernel - 1) * dilate + 1
    room = size + 2 * pad - extent
    count = (-(-room // stride) if full else room // stride) + 1
    return [[start + k * dilate for k in range(kernel)] for start in (i * stride - pad for i in range(count))]


def convolution(x, w, b, stride=(1, 1), pad=(0, 0), dilate=(1, 1), groups=1):
    rows = windows(x.shape[2], w.shape[2], stride[0], pad[0], dilate[0])
    columns = windows(x.shape[3], w.shape[3], stride[1], pad[1], dilate[1])
    y = np.zeros((x.shape[0], w.shape[0], len(rows), len(columns)))
    per_group = w.shape[0] // groups
    for o, (i, row), (j, column) in itertools.product(range(w.shape[0]), enumerate(rows), enumerate(columns)):
        first = o // per_group * w.shape[1]
        for a, r in enumerate(row):
            for c, s in enumerate(column):
                if 0 <= r < x.shape[2] and 0 <= s < x.shape[3]:
                    y[:, o, i, j] += x[:, first:first + w.shape[1], r, s] @ w[o, :, a, c]
    return y if b is None else y + b[:, None, None]


def deconvolution(x, w, stride, pad, adj):
    h = (x.shape[2] - 1) * stride[0] + w.shape[2] + adj[0] - 2 * pad[0]
    v = (x.shape[3] - 1) * stride[1] + w.shape[3] + adj[1] - 2 * pad[1]
    y = np.zeros((x.shape[0], w.shape[1], h, v))
    for i, j, a, c in itertools.product(*map(range, (x.shape[2], x.shape[3], w.shape[2], w.shape[3]))):
        r, s = i * stride[0] + a - pad[0], j * stride[1] + c - pad[1]
        if 0 <= r < h and 0 <= s < v:
            y[:, :, r, s] += x[:, :, i, j] @ w[:, :, a, c]
    return y


def pooling(x, kind, kernel, stride, pad, full=False, with_pad=True):
    rows = windows(x.shape[2], kernel[0], stride[0], pad[0], 1, full)
    columns = windows(x.shape[3], kernel[1], stride[1], pad[1], 1, full)
    y = np.zeros((*x.shape[:2], len(rows), len(columns)))
    for (i, row), (j, column) in itertools.product(enumerate(rows), enumerate(columns)):
        inside = x[:, :, [r for r in row if 0 <= r < x.shape[2]]][:, :, :, [c for c in column if 0 <= c < x.shape[3]]]
        if kind == "max":
            y[:, :, i, j] = inside.max((2, 3))
        else:
            padded = (sum(r < x.shape[2] + pad[0] for r in row) * sum(c < x.shape[3] + pad[1] for c in column))
            y[:, :, i, j] = inside.sum((2, 3)) / (padded if with_pad else inside.shape[2] * inside.shape[3])
    return y


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def lrn(x, size, alpha, beta, knorm):
    y = np.zeros(x.shape)
    for c in range(x.shape[1]):
        near = x[:, max(0, c - size // 2):c + size // 2 + 1]
        y[:, c] = x[:, c] / (knorm + alpha / size * (near ** 2).sum(1)) ** beta
    return y


def normalized(x, axes, eps):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


erf = np.vectorize(math.erf)

# --- Symbols ----------------------------------------------------------------------------------------


class Symbol:
    def __init__(self):
        self.nodes, self.heads, self.row_ptr = [], [], [0]
        self.inputs, self.arrays, self.expected = {}, {}, {}

    def node(self, op, name, inputs=(), results=1, **attrs):
        texts = {key: str(value) for key, value in attrs.items()}
        self.nodes.append({"op": op, "name": name, "attrs": texts, "inputs": [[i, 0, 0] for i in inputs]})
        self.row_ptr.append(self.row_ptr[-1] + results)
        return len(self.nodes) - 1

    def add(self, case, op, data, arrays, expected, results=1, aux=(), **attrs):
        """`data`: what is given; `arrays`: parameters; `expected`: the first result, or a list of all."""
        read = []
        for i, value in enumerate(data):
            name = f"{case}_x{i}"
            read.append(self.node("null", name, __shape__=tuple(value.shape), __dtype__=0))
            self.inputs[name] = value
        for i, value in enumerate(arrays):
            name = f"{case}_w{i}"
            read.append(self.node("null", name))
            self.arrays[("aux:" if i in aux else "arg:") + name] = value
        at = self.node(op, case, read, results, **attrs)
        for i, value in enumerate(expected if isinstance(expected, list) else [expected]):
            self.heads.append([at, i, 0])
            name = f"{case}_output{i if isinstance(expected, list) else ''}"
            self.expected[name] = np.asarray(value, np.float64)

    def text(self):
        return json.dumps({"nodes": self.nodes, "arg_nodes": [i for i, n in enumerate(self.nodes) if n["op"] == "null"],
                           "node_row_ptr": self.row_ptr, "heads": self.heads})

    def params(self):
        out = struct.pack("<QQQ", 0x112, 0, len(self.arrays))
        for value in self.arrays.values():
            out += struct.pack(f"<Iii{value.ndim}q", 0xF993FAC9, 0, value.ndim, *value.shape)
            out += struct.pack("<iii", 1, 0, 0) + value.astype("<f4").tobytes()
        out += struct.pack("<Q", len(self.arrays))
        for name in self.arrays:
            out += struct.pack("<Q", len(name)) + name.encode()
        return out


def layers(s):
    x, w, b = numbers(2, 4, 9, 8), numbers(6, 4, 3, 2, seed=1), numbers(6, seed=2)
    s.add("conv", "Convolution", [x], [w, b], convolution(x, w, b), kernel=(3, 2), num_filter=6)
    s.add("conv_all", "Convolution", [x], [w], convolution(x, w, None, (2, 1), (1, 2), (1, 3)), kernel=(3, 2), num_filter=6,
          stride=(2, 1), pad=(1, 2), dilate=(1, 3), no_bias=True)
    g = numbers(6, 2, 3, 3, seed=1)
    s.add("conv_groups", "Convolution", [x], [g, b], convolution(x, g, b, (1, 1), (1, 1), (1, 1), 2), kernel=(3, 3), num_filter=6,
          num_group=2, pad=(1, 1), layout="NCHW")
    d = numbers(4, 3, 3, 3, seed=3)
    s.add("deconv", "Deconvolution", [x], [d], deconvolution(x, d, (2, 2), (1, 1), (1, 0)), kernel=(3, 3), num_filter=3,
          stride=(2, 2), pad=(1, 1), adj=(1, 0), no_bias=True)
    f = numbers(5, 288, seed=4)
    s.add("dense", "FullyConnected", [x], [f, numbers(5, seed=5)], x.reshape(2, -1).astype(float) @ f.T + numbers(5, seed=5),
          num_hidden=5)
    t = numbers(2, 3, 7)
    s.add("dense_last", "FullyConnected", [t], [numbers(5, 7, seed=6)], t.astype(float) @ numbers(5, 7, seed=6).T, num_hidden=5,
          no_bias=True, flatten=False)
    gamma, beta, mean, var = (numbers(4, seed=i, low=0.3) for i in range(4))
    plain = (x.astype(float) - mean[:, None, None]) / np.sqrt(var[:, None, None] + 0.001)
    s.add("norm_fixed", "BatchNorm", [x], [gamma, beta, mean, var], plain + beta[:, None, None], 3, (2, 3))
    tight = (x.astype(float) - mean[:, None, None]) / np.sqrt(var[:, None, None] + 1e-5)
    s.add("norm", "BatchNorm", [x], [gamma, beta, mean, var], tight * gamma[:, None, None] + beta[:, None, None], 3, (2, 3),
          fix_gamma=False, eps=1e-05)
    s.add("instance", "InstanceNorm", [x], [gamma, beta],
          normalized(x.astype(float), (2, 3), 0.001) * gamma[:, None, None] + beta[:, None, None])
    s.add("layer", "LayerNorm", [t], [numbers(7, seed=1), numbers(7, seed=2)],
          normalized(t.astype(float), (2,), 1e-5) * numbers(7, seed=1) + numbers(7, seed=2))
    squares = x.astype(float) ** 2
    s.add("l2", "L2Normalization", [x], [], x / np.sqrt(squares.sum((1, 2, 3), keepdims=True) + 1e-10))
    s.add("l2_channel", "L2Normalization", [x], [], x / np.sqrt(squares.sum(1, keepdims=True) + 1e-10), mode="channel")
    s.add("l2_spatial", "L2Normalization", [x], [], x / np.sqrt(squares.sum((2, 3), keepdims=True) + 1e-10), mode="spatial")
    s.add("lrn", "LRN", [x], [], lrn(x.astype(float), 3, 0.1, 0.6, 1.5), nsize=3, alpha=0.1, beta=0.6, knorm=1.5)
    places = np.array([[0, 3], [2, 1]], np.float32)
    s.add("embedding", "Embedding", [places], [numbers(4, 5, seed=1)], numbers(4, 5, seed=1)[places.astype(int)], input_dim=4,
          output_dim=5)
    for kind in ("max", "avg"):
        for full in (False, True):
            s.add(f"pool_{kind}_{full}", "Pooling", [x], [], pooling(x.astype(float), kind, (3, 2), (2, 3), (1, 0), full),
                  kernel=(3, 2), stride=(2, 3), pad=(1, 0), pool_type=kind, pooling_convention="full" if full else "valid")
        s.add(f"pool_{kind}_not_global", "Pooling", [x], [], pooling(x.astype(float), kind, (3, 2), (2, 3), (1, 0), False),
              kernel=(3, 2), stride=(2, 3), pad=(1, 0), pool_type=kind, pooling_convention="valid", global_pool=False)
        s.add(f"pool_{kind}_global", "Pooling", [x], [], getattr(x.astype(float), {"avg": "mean"}.get(kind, kind))((2, 3), keepdims=True),
              kernel=(1, 1), pool_type=kind, global_pool=True)
    s.add("pool_inside", "Pooling", [x], [], pooling(x.astype(float), "avg", (2, 2), (2, 2), (1, 1), False, False), kernel=(2, 2),
          stride=(2, 2), pad=(1, 1), pool_type="avg", count_include_pad=False)
    s.add("up", "UpSampling", [x], [], x.repeat(2, 2).repeat(2, 3), scale=2, sample_type="nearest", num_args=1)


def activations(s):
    x = numbers(2, 4, 3, 5)
    d = x.astype(float)
    for kind, value in (("relu", np.maximum(d, 0)), ("sigmoid", 1 / (1 + np.exp(-d))), ("tanh", np.tanh(d)),
                        ("softrelu", np.log1p(np.exp(d))), ("softsign", d / (1 + np.abs(d)))):
        s.add(f"act_{kind}", "Activation", [x], [], value, act_type=kind)
    s.add("leaky", "LeakyReLU", [x], [], np.where(d > 0, d, 0.25 * d))
    s.add("leaky_slope", "LeakyReLU", [x], [], np.where(d > 0, d, 0.1 * d), act_type="leaky", slope=0.1)
    s.add("elu", "LeakyReLU", [x], [], np.where(d > 0, d, 0.3 * np.expm1(d)), act_type="elu", slope=0.3)
    gamma = numbers(4, seed=1)
    s.add("prelu", "LeakyReLU", [x], [gamma], np.where(d > 0, d, gamma[:, None, None] * d), act_type="prelu")
    s.add("gelu", "LeakyReLU", [x], [], d * 0.5 * (1 + erf(d / np.sqrt(2))), act_type="gelu")
    label = np.zeros(2, np.float32)
    s.add("softmax_output", "SoftmaxOutput", [x[:, :, 0, 0], label], [], softmax(d[:, :, 0, 0], 1))
    s.add("softmax_rows", "SoftmaxOutput", [x, label], [], softmax(d.reshape(2, -1), 1).reshape(x.shape))
    s.add("softmax_multi", "SoftmaxOutput", [x, label], [], softmax(d, 1), multi_output=True)
    s.add("softmax", "softmax", [x], [], softmax(d / 2, 1), axis=1, temperature=2.0)
    s.add("log_softmax", "log_softmax", [x], [], np.log(softmax(d, 3)))
    s.add("dropout", "Dropout", [x], [], d, p=0.5)
    s.add("logistic", "LogisticRegressionOutput", [x, x], [], 1 / (1 + np.exp(-d)))
    s.add("hard", "hard_sigmoid", [x], [], np.clip(0.2 * d + 0.5, 0, 1))


def elements(s):
    x, y = numbers(2, 3, 4), numbers(2, 3, 4, seed=3)
    row = numbers(1, 3, 1, seed=5, low=0.5)
    a, b, r = (v.astype(float) for v in (x, y, row))
    up = numbers(2, 3, low=0.2)
    u = up.astype(float)
    for op, value in (("relu", np.maximum(a, 0)), ("sigmoid", 1 / (1 + np.exp(-a))), ("tanh", np.tanh(a)), ("exp", np.exp(a)),
                      ("expm1", np.expm1(a)), ("square", a * a), ("abs", np.abs(a)), ("negative", -a), ("floor", np.floor(a)),
                      ("ceil", np.ceil(a)), ("sign", np.sign(a)), ("sin", np.sin(a)), ("cos", np.cos(a)), ("erf", erf(a)),
                      ("zeros_like", a * 0), ("ones_like", a * 0 + 1), ("identity", a), ("BlockGrad", a)):
        s.add(f"one_{op}", op, [x], [], value)
    for op, value in (("log", np.log(u)), ("log1p", np.log1p(u)), ("sqrt", np.sqrt(u)), ("rsqrt", 1 / np.sqrt(u)),
                      ("reciprocal", 1 / u)):
        s.add(f"one_{op}", op, [up], [], value)
    s.add("rint", "rint", [np.array([-2.5, -1.6, -0.5, 0.4, 0.5, 1.2, 1.5], np.float32)], [], np.array([-3, -2, -1, 0, 0, 1, 1.0]))
    s.add("clip", "clip", [x], [], np.clip(a, -0.5, 1), a_min=-0.5, a_max=1)
    for name, op, value in (("add", "elemwise_add", a + b), ("sub", "elemwise_sub", a - b), ("mul", "elemwise_mul", a * b),
                            ("div", "elemwise_div", a / b), ("max", "_maximum", np.maximum(a, b))):
        s.add(f"two_{name}", op, [x, y], [], value)
    for op, value in (("broadcast_add", a + r), ("broadcast_sub", a - r), ("broadcast_mul", a * r), ("broadcast_div", a / r),
                      ("broadcast_minimum", np.minimum(a, r)), ("broadcast_greater", a > r), ("broadcast_lesser_equal", a <= r),
                      ("broadcast_equal", a == r)):
        s.add(op, op, [x, row], [], value)
    s.add("sum_of", "add_n", [x, y, x], [], a + b + a, num_args=3)
    for op, value in (("_plus_scalar", a + 1.5), ("_minus_scalar", a - 1.5), ("_rminus_scalar", 1.5 - a), ("_mul_scalar", a * 1.5),
                      ("_div_scalar", a / 1.5), ("_rdiv_scalar", 1.5 / a), ("_maximum_scalar", np.maximum(a, 1.5)),
                      ("_greater_scalar", a > 1.5)):
        s.add(f"by{op}", op, [x], [], value, scalar=1.5)
    s.add("power", "_power_scalar", [up], [], u ** 2.5, scalar=2.5)
    s.add("where", "where", [(x > 0).astype(np.float32), x, y], [], np.where(a > 0, a, b))


def reductions(s):
    x = numbers(2, 3, 4, 5)
    d = x.astype(float)
    for op, f in (("mean", np.mean), ("sum", np.sum), ("max", np.max), ("min", np.min), ("prod", np.prod)):
        s.add(f"{op}_pair", op, [x], [], f(d, axis=(1, 2)), axis=(1, 2))
        s.add(f"{op}_keep", op, [x], [], f(d, axis=3, keepdims=True), axis=-1, keepdims=True)
    s.add("mean_whole", "mean", [x], [], np.mean(d))
    s.add("norm_two", "norm", [x], [], np.sqrt((d ** 2).sum(1)), axis=1)
    s.add("argmax", "argmax", [x], [], d.argmax(2), axis=2)
    a, b = numbers(3, 4), numbers(5, 4, seed=1)
    s.add("dot", "dot", [a, b], [], a.astype(float) @ b.T, transpose_b=True)
    s.add("batch_dot", "batch_dot", [numbers(2, 4, 3), numbers(2, 4, 5, seed=1)], [],
          numbers(2, 4, 3).astype(float).transpose(0, 2, 1) @ numbers(2, 4, 5, seed=1), transpose_a=True)


def places(s):
    x = numbers(2, 3, 4, 5)
    s.add("flatten", "Flatten", [x], [], x.reshape(2, -1))
    for name, shape, to in (("plain", (0, -1, 10), (2, 6, 10)), ("join", (0, -3, 0), (2, 12, 5)), ("both", (-3, -3), (6, 20)),
                            ("apart", (-4, 1, 2, -2), (1, 2, 3, 4, 5)), ("infer", (0, 0, -4, -1, 2, 0), (2, 3, 2, 2, 5))):
        s.add(f"reshape_{name}", "Reshape", [x], [], x.reshape(to), shape=shape)
    s.add("transpose", "transpose", [x], [], x.transpose(0, 2, 3, 1), axes=(0, 2, 3, 1))
    s.add("transpose_all", "transpose", [x], [], x.transpose())
    s.add("expand", "expand_dims", [x], [], x[:, None], axis=1)
    s.add("squeeze", "squeeze", [x[:, :1]], [], x[:, 0], axis=1)
    s.add("swap", "SwapAxis", [x], [], x.swapaxes(1, 3), dim1=1, dim2=3)
    s.add("concat", "Concat", [x, x], [], np.concatenate([x, x], 1), num_args=2)
    s.add("concat_last", "Concat", [x, x], [], np.concatenate([x, x], 3), num_args=2, dim=3)
    s.add("stack", "stack", [x, x], [], np.stack([x, x], 1), num_args=2, axis=1)
    s.add("split", "SliceChannel", [x], [], [x[:, 0], x[:, 1], x[:, 2]], 3, num_outputs=3, axis=1, squeeze_axis=True)
    s.add("slice_axis", "slice_axis", [x], [], x[:, :, 1:3], axis=2, begin=1, end=3)
    s.add("slice_open", "slice_axis", [x], [], x[:, :, :, -2:], axis=3, begin=-2, end=None)
    s.add("slice", "slice", [x], [], x[0:2, 1:3, 0:4:2], begin=(0, 1, 0), end=(2, 3, 4), step=(1, 1, 2))
    s.add("slice_like", "slice_like", [x, x[:, :, :2, :3]], [], x[:, :, :2, :3], axes=(2, 3))
    wide = ((0, 0), (0, 0), (1, 2), (2, 1))
    for mode in ("constant", "edge", "reflect"):
        extra = {"constant_values": 1.5} if mode == "constant" else {}
        s.add(f"pad_{mode}", "Pad", [x], [], np.pad(x, wide, mode, **extra), mode=mode, pad_width=(0, 0, 0, 0, 1, 2, 2, 1),
              constant_value=1.5)
    s.add("tile", "tile", [x], [], np.tile(x, (1, 2, 1, 3)), reps=(1, 2, 1, 3))
    s.add("broadcast_to", "broadcast_to", [x[:, :1]], [], np.broadcast_to(x[:, :1], (2, 6, 4, 5)), shape=(0, 6, 0, 5))
    s.add("take", "take", [numbers(4, 3), np.array([0, 7, 2, -1], np.float32)], [], numbers(4, 3)[[0, 3, 2, 0]])
    deep = numbers(1, 8, 2, 3)
    s.add("depth", "depth_to_space", [deep], [], deep.reshape(1, 2, 2, 2, 2, 3).transpose(0, 3, 4, 1, 5, 2).reshape(1, 2, 4, 6),
          block_size=2)


# --- The test ---------------------------------------------------------------------------------------


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))}: {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")


def main():
    trocar = sys.argv[1]
    s = Symbol()
    for part in (layers, activations, elements, reductions, places):
        part(s)
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        model = scratch / "all-symbol.json"
        model.write_text(s.text())
        (scratch / "all-0000.params").write_bytes(s.params())
        np.savez(scratch / "inputs.npz", **s.inputs)
        given = ["--input", scratch / "inputs.npz", "-q"]
        run(trocar, "run", model, *given, "-o", scratch / "whole")
        run(trocar, "run", model, *given, "-o", scratch / "parts", "--cut", "all")
        run(trocar, "convert", model, scratch / "all.onnx", "-q")
        # Nobody reads labels any more.
        unread = {f"{case}_x1" for case in ("softmax_output", "softmax_rows", "softmax_multi", "logistic")}
        np.savez(scratch / "read.npz", **{key: value for key, value in s.inputs.items() if key not in unread})
        run(trocar, "run", scratch / "all.onnx", "--input", scratch / "read.npz", "-q", "-o", scratch / "converted")
        for way in ("whole", "parts", "converted"):
            worst = 0.0
            for case, expected in s.expected.items():
                found = np.load(scratch / way / f"{case}.npy")
                off = np.inf
                if found.shape == expected.shape:
                    off = float(np.max(np.abs(found - expected))) / max(float(np.max(np.abs(expected))), 1e-30)
                worst = max(worst, off)
                if not off <= TOLERANCE:
                    print(f"FAIL {way} {case}: {off:.2g}, {expected.shape} there, {found.shape} here")
                    failed += 1
            print(f"{way}: {len(s.expected)} results, {worst:.1e} from numpy's at most")
    sys.exit(1 if failed else 0)


main()
