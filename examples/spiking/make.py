#!/usr/bin/env python3
"""make.py FOLDER: a spiking network and gestures for it to tell apart, the same each time.

    FOLDER/gestures/        recordings of a made-up event camera (AEDAT 3.1, as DVS128 Gesture has them), with labels
    FOLDER/spiking.onnx     the network, each of its time steps a module: step0, step1, …
    FOLDER/loop.onnx        the same network with its time steps in the body of a Loop
    FOLDER/campaign.yaml    the campaign that stands beside this script

A gesture is a bar that moves right, left, down or up. Its front makes `on` events, its back `off` events. The network is
a convolution whose filters look for fronts and backs, leaky integrate-and-fire neurons, and a linear layer that is
fitted to the spikes of other gestures by least squares.
"""

import pathlib
import shutil
import struct
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CLASSES = ("right", "left", "down", "up")
STEPS, SENSOR, DOWNSCALE = 8, 128, 8
SIZE = SENSOR // DOWNSCALE
LENGTH = 400_000  # microseconds of a gesture
DECAY, THRESHOLD = np.float32(0.5), np.float32(1)


def gesture(random, kind):
    """Events as an array of (microseconds, x, y, on), in the order of time."""
    speed, width = random.uniform(0.7, 1.1) * SENSOR / LENGTH, random.integers(10, 18)
    start, low, high = random.uniform(-8, 8), random.integers(0, 30), random.integers(98, 128)
    time = np.sort(random.integers(0, LENGTH, 3000))
    on = random.integers(0, 2, time.size)
    along = (start + speed * time + width * on).astype(int)
    across = random.integers(low, high, time.size)
    noise = random.random(time.size) < 0.1
    along[noise] = random.integers(0, SENSOR, noise.sum())
    if kind in (1, 3):
        along = SENSOR - 1 - along
    x, y = (along, across) if kind < 2 else (across, along)
    seen = (along >= 0) & (along < SENSOR)
    return np.stack([time, x, y, on], axis=1)[seen]


def recording(path, gestures):
    """Writes gestures one after the other, and which they are; classes are counted from 1."""
    events, lines = [], ["class,startTime_usec,endTime_usec"]
    for number, (kind, some) in enumerate(gestures):
        begin = 1000 + number * LENGTH
        events.append(some + [begin, 0, 0, 0])
        lines.append(f"{kind + 1},{begin},{begin + LENGTH}")
    time, x, y, on = np.concatenate(events).T
    words = np.stack([x << 17 | y << 2 | on << 1 | 1, time], axis=1).astype("<u4")
    packets = b"".join(struct.pack("<hhiiiiii", 1, 1, 8, 4, 0, len(some), len(some), len(some)) + some.tobytes()
                       for some in np.array_split(words, 10))
    path.write_bytes(b"#!AER-DAT3.1\r\n#Format: RAW\r\n#Source 1: DVS128\r\n#!END-HEADER\r\n" + packets)
    path.with_name(path.stem + "_labels.csv").write_text("\n".join(lines) + "\n")


def binned(events):
    """What `steps=8 downscale=8 values=binary` makes of a gesture."""
    time, x, y, on = events.T
    out = np.zeros((STEPS, 2, SIZE, SIZE), np.float32)
    out[time * STEPS // LENGTH, on, y // DOWNSCALE, x // DOWNSCALE] = 1
    return out


def filters():
    """Eight filters of 3 by 3: the front at one side, the back at the other, strong and weak."""
    out = np.zeros((8, 2, 3, 3), np.float32)
    for number, (row, column) in enumerate(((slice(None), 2), (slice(None), 0), (2, slice(None)), (0, slice(None)))):
        out[number, 1, row, column] = 0.3
        out[number, 0, row, column] = -0.2
        out[number, 0, 1, 1] = 0.3
        out[number + 4] = out[number] * 0.5
    return out


def spikes(images, weight):
    """Of the convolution's neurons over all steps, counted, for the linear layer to be fitted to."""
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))[:, :, ::2, ::2]
    current = np.einsum("tchwij,ocij->tohw", windows, weight)
    potential, count = np.zeros_like(current[0]), np.zeros_like(current[0])
    for now in current:
        potential = potential * DECAY + now
        fired = potential >= THRESHOLD
        count += fired
        potential[fired] = 0
    return count.ravel()


def fitted(random, weight, each=60):
    """Weights from spikes to classes: least squares with a penalty."""
    kinds = np.repeat(np.arange(len(CLASSES)), each)
    seen = np.array([spikes(binned(gesture(random, kind)), weight) for kind in kinds], np.float64)
    wanted = np.eye(len(CLASSES))[kinds] - 1 / len(CLASSES)
    return np.linalg.solve(seen.T @ seen + 5 * np.eye(seen.shape[1]), seen.T @ wanted).astype(np.float32)


def step(path, image, potential, score):
    """The ops of a time step, and the names of the potential and the score after it."""
    def node(type, inputs, where, output, **attributes):
        return helper.make_node(type, inputs, [f"{path}/{output}"], name=f"{path}/{where}/{type}", **attributes)

    return [
        node("Conv", [image, "conv.weight"], "conv", "current", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
        node("Mul", [potential, "decay"], "leak", "leaked"),
        node("Add", [f"{path}/leaked", f"{path}/current"], "integrate", "potential"),
        node("GreaterOrEqual", [f"{path}/potential", "threshold"], "fire", "fired"),
        node("Cast", [f"{path}/fired"], "fire", "spikes", to=TensorProto.FLOAT),
        node("Where", [f"{path}/fired", "zero", f"{path}/potential"], "reset", "after"),
        node("Flatten", [f"{path}/spikes"], "fc", "flat"),
        node("MatMul", [f"{path}/flat", "fc.weight"], "fc", "added"),
        node("Add", [score, f"{path}/added"], "sum", "score"),
    ], f"{path}/after", f"{path}/score"


def constants(weight, linear):
    arrays = {"conv.weight": weight, "fc.weight": linear, "decay": DECAY, "threshold": THRESHOLD, "zero": np.float32(0),
              "rest": np.zeros((1, 8, SIZE // 2, SIZE // 2), np.float32), "nothing": np.zeros((1, len(CLASSES)), np.float32)}
    return [numpy_helper.from_array(np.asarray(array), name) for name, array in arrays.items()]


def saved(path, nodes, held):
    graph = helper.make_graph(nodes, "spiking", [helper.make_tensor_value_info("events", TensorProto.FLOAT, [STEPS, 1, 2, SIZE, SIZE])],
                              [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, len(CLASSES)])], held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def unrolled():
    nodes, potential, score = [], "rest", "nothing"
    for number in range(STEPS):
        path = f"/step{number}"
        nodes.append(helper.make_node("Constant", [], [f"{path}/number"], name=f"{path}/Constant", value_int=number))
        nodes.append(helper.make_node("Gather", ["events", f"{path}/number"], [f"{path}/image"], name=f"{path}/Gather", axis=0))
        more, potential, score = step(path, f"{path}/image", potential, score)
        nodes += more
    return [*nodes, helper.make_node("Identity", [score], ["scores"], name="/Identity")]


def looped():
    inside, potential, score = step("/body", "/body/image", "v", "s")
    held = [helper.make_tensor_value_info(name, type, shape) for name, type, shape in
            (("i", TensorProto.INT64, []), ("more", TensorProto.BOOL, []), ("v", TensorProto.FLOAT, None), ("s", TensorProto.FLOAT, None))]
    results = [helper.make_tensor_value_info(name, type, None) for name, type in
               (("on", TensorProto.BOOL), (potential, TensorProto.FLOAT), (score, TensorProto.FLOAT))]
    body = helper.make_graph([helper.make_node("Identity", ["more"], ["on"], name="/body/Identity"),
                              helper.make_node("Gather", ["events", "i"], ["/body/image"], name="/body/Gather", axis=0), *inside],
                             "body", held, results)
    return [helper.make_node("Loop", ["steps", "", "rest", "nothing"], ["last", "scores"], name="/Loop", body=body)]


def main():
    folder = pathlib.Path(sys.argv[1])
    (folder / "gestures").mkdir(parents=True, exist_ok=True)
    weight = filters()
    held = constants(weight, fitted(np.random.default_rng(1), weight))
    saved(folder / "spiking.onnx", unrolled(), held)
    saved(folder / "loop.onnx", looped(), [*held, numpy_helper.from_array(np.array(STEPS), "steps")])
    shutil.copy(pathlib.Path(__file__).with_name("campaign.yaml"), folder)
    random = np.random.default_rng(2)
    for number in range(3):
        kinds = random.permutation(np.repeat(np.arange(len(CLASSES)), 2))
        recording(folder / "gestures" / f"user{number + 1:02}.aedat", [(kind, gesture(random, kind)) for kind in kinds])


if __name__ == "__main__":
    main()
