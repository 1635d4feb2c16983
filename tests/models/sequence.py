"""Models over sequences: a transformer encoder and recurrent networks."""

import numpy as np
from onnx import helper

from build import FLOAT, INT64, Builder, make_model, model, value

WIDTH, HEADS, INNER, VOCABULARY, LONGEST = 64, 4, 128, 100, 64


class Encoder(Builder):
    """Post-norm transformer layers with the shape arithmetic that exporters write for dynamic axes."""

    def linear(self, path, x, inputs, outputs):
        module = path.strip("/").replace("/", ".")
        weight = self.weight(f"{module}.weight", (inputs, outputs), np.sqrt(1 / inputs))
        bias = self.weight(f"{module}.bias", (outputs,), 0.02)
        x = self.add("MatMul", f"{path}/MatMul", [x, weight])
        return self.add("Add", f"{path}/Add", [bias, x])

    def norm(self, path, x):
        module = path.strip("/").replace("/", ".")
        scale = self.constant(f"{module}.weight", np.ones(WIDTH, np.float32))
        bias = self.constant(f"{module}.bias", np.zeros(WIDTH, np.float32))
        return self.add("LayerNormalization", f"{path}/LayerNormalization", [x, scale, bias], axis=-1, epsilon=1e-5)

    def scalar(self, name, number):
        return self.constant(name, np.array(number, np.float32))

    def axis_size(self, path, x, axis, number):
        suffix = f"_{number}" if number else ""
        shape = self.add("Shape", f"{path}/Shape{suffix}", [x])
        index = self.constant(f"{path}/axis{suffix}", np.array([axis], np.int64))
        return self.add("Gather", f"{path}/Gather{suffix}", [shape, index], axis=0)

    def heads(self, path, which, x, batch, length):
        """[batch, length, width] to [batch, heads, length, width / heads]."""
        split = self.constant(f"{path}/{which}/split", np.array([HEADS, WIDTH // HEADS], np.int64))
        shape = self.add("Concat", f"{path}/{which}/Concat", [batch, length, split], axis=0)
        x = self.add("Reshape", f"{path}/{which}/Reshape", [x, shape])
        return self.add("Transpose", f"{path}/{which}/Transpose", [x], perm=[0, 2, 1, 3])

    def attention(self, path, x, mask):
        batch = self.axis_size(path, x, 0, 0)
        length = self.axis_size(path, x, 1, 1)
        query, key, data = (self.heads(path, which, self.linear(f"{path}/{which}", x, WIDTH, WIDTH), batch, length)
                            for which in ("query", "key", "value"))
        key = self.add("Transpose", f"{path}/Transpose", [key], perm=[0, 1, 3, 2])
        scores = self.add("MatMul", f"{path}/MatMul", [query, key])
        root = self.scalar(f"{path}/root", np.sqrt(WIDTH // HEADS))
        scores = self.add("Div", f"{path}/Div", [scores, root])
        scores = self.add("Add", f"{path}/Add", [scores, mask])
        weights = self.add("Softmax", f"{path}/Softmax", [scores], axis=-1)
        x = self.add("MatMul", f"{path}/MatMul_1", [weights, data])
        x = self.add("Transpose", f"{path}/Transpose_1", [x], perm=[0, 2, 1, 3])
        width = self.constant(f"{path}/width", np.array([WIDTH], np.int64))
        shape = self.add("Concat", f"{path}/Concat", [batch, length, width], axis=0)
        x = self.add("Reshape", f"{path}/Reshape", [x, shape])
        return self.linear(f"{path}/out", x, WIDTH, WIDTH)

    def gelu(self, path, x):
        y = self.add("Div", f"{path}/Div", [x, self.scalar(f"{path}/root_two", np.sqrt(2))])
        y = self.add("Erf", f"{path}/Erf", [y])
        y = self.add("Add", f"{path}/Add", [y, self.scalar(f"{path}/one", 1)])
        y = self.add("Mul", f"{path}/Mul", [x, y])
        return self.add("Mul", f"{path}/Mul_1", [y, self.scalar(f"{path}/half", 0.5)])

    def layer(self, path, x, mask):
        y = self.attention(f"{path}/attention", x, mask)
        x = self.norm(f"{path}/norm1", self.add("Add", f"{path}/Add", [x, y]))
        y = self.gelu(f"{path}/gelu", self.linear(f"{path}/linear1", x, WIDTH, INNER))
        y = self.linear(f"{path}/linear2", y, INNER, WIDTH)
        return self.norm(f"{path}/norm2", self.add("Add", f"{path}/Add_1", [x, y]))


@model("transformer", "transformer encoder, 2 layers, dynamic batch and length, Gelu spelled with Erf",
       shapes={"batch": 2, "length": 7})
def transformer(_):
    net = Encoder("transformer")
    tokens = net.weight("embedding.weight", (VOCABULARY, WIDTH), 1.0)
    x = net.add("Gather", "/embedding/Gather", [tokens, "tokens"], axis=0)
    places = net.weight("position.weight", (LONGEST, WIDTH), 0.1)
    length = net.axis_size("/position", "tokens", 1, 0)
    zero = net.constant("/position/zero", np.array([0], np.int64))
    x_place = net.add("Slice", "/position/Slice", [places, zero, length, zero])
    x = net.add("Add", "/Add", [x, x_place])
    # 0 where a token counts, a large negative number where it does not: [batch, 1, 1, length].
    axes = net.constant("/mask/axes", np.array([1, 2], np.int64))
    mask = net.add("Unsqueeze", "/mask/Unsqueeze", ["attention_mask", axes])
    mask = net.add("Cast", "/mask/Cast", [mask], to=FLOAT)
    mask = net.add("Sub", "/mask/Sub", [net.scalar("/mask/one", 1), mask])
    mask = net.add("Mul", "/mask/Mul", [mask, net.scalar("/mask/large", -1e4)])
    for number in range(2):
        x = net.layer(f"/layers.{number}", x, mask)
    net.add("Identity", "/Identity", [x], "hidden")
    return make_model(net.graph(
        [value("tokens", INT64, ["batch", "length"]), value("attention_mask", INT64, ["batch", "length"])],
        [value("hidden", FLOAT, ["batch", "length", WIDTH])]))


@model("lstm", "two LSTM ops, the first bidirectional, with states in and out and an output left out",
       shapes={"time": 5, "batch": 2})
def lstm(_):
    net = Builder("lstm")
    size, features = 16, 8
    weights = [net.weight("lstm1.W", (2, 4 * size, features), 0.3), net.weight("lstm1.R", (2, 4 * size, size), 0.3),
               net.weight("lstm1.B", (2, 8 * size), 0.1)]
    net.nodes.append(helper.make_node("LSTM", ["x", *weights, "", "h0", "c0"], ["y1", "h1", ""], name="/lstm1/LSTM",
                                      hidden_size=size, direction="bidirectional"))
    net.add("Transpose", "/Transpose", ["y1"], "y1_t", perm=[0, 2, 1, 3])
    net.constant("shape", np.array([0, 0, 2 * size], np.int64))
    net.add("Reshape", "/Reshape", ["y1_t", "shape"], "x2")
    weights = [net.weight("lstm2.W", (1, 4 * size, 2 * size), 0.3), net.weight("lstm2.R", (1, 4 * size, size), 0.3)]
    net.nodes.append(helper.make_node("LSTM", ["x2", *weights], ["", "h2", "c2"], name="/lstm2/LSTM", hidden_size=size))
    state = ["batch", size]
    return make_model(net.graph(
        [value("x", FLOAT, ["time", "batch", features]), value("h0", FLOAT, [2, *state]), value("c0", FLOAT, [2, *state])],
        [value("h1", FLOAT, [2, *state]), value("h2", FLOAT, [1, *state]), value("c2", FLOAT, [1, *state])]))


@model("lstm_unrolled", "an LSTM cell written out for 32 steps: hundreds of tiny ops", shapes={"batch": 1})
def lstm_unrolled(_):
    net = Builder("lstm_unrolled")
    size, features, steps = 32, 16, 32
    w = net.weight("cell.W", (features, 4 * size), 0.3)
    r = net.weight("cell.R", (size, 4 * size), 0.2)
    b = net.weight("cell.B", (4 * size,), 0.1)
    hidden, cell = "h0", "c0"
    for step in range(steps):
        at = f"/step.{step}"
        pick = net.constant(f"{at}/index", np.array(step, np.int64))
        x = net.add("Gather", f"{at}/Gather", ["x", pick], axis=0)
        gates = net.add("Add", f"{at}/Add", [net.add("MatMul", f"{at}/MatMul", [x, w]),
                                             net.add("MatMul", f"{at}/MatMul_1", [hidden, r])])
        gates = net.add("Add", f"{at}/Add_1", [gates, b])
        parts = [f"{at}/Split_output_{i}" for i in range(4)]
        net.nodes.append(helper.make_node("Split", [gates], parts, name=f"{at}/Split", axis=1))
        entry, leave, forget = (net.add("Sigmoid", f"{at}/Sigmoid_{i}", [parts[i]]) for i in range(3))
        fresh = net.add("Mul", f"{at}/Mul", [entry, net.add("Tanh", f"{at}/Tanh", [parts[3]])])
        cell = net.add("Add", f"{at}/Add_2", [net.add("Mul", f"{at}/Mul_1", [forget, cell]), fresh])
        last = step == steps - 1
        hidden = net.add("Mul", f"{at}/Mul_2", [leave, net.add("Tanh", f"{at}/Tanh_1", [cell])], "h" if last else None)
    return make_model(net.graph(
        [value("x", FLOAT, [steps, "batch", features]), value("h0", FLOAT, ["batch", size]),
         value("c0", FLOAT, ["batch", size])], [value("h", FLOAT, ["batch", size])]))
