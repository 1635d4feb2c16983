"""Runs `trocar inject` and compares every row of its store with what reference.py computes."""

import re
import sqlite3
import subprocess
from pathlib import Path

import numpy
import onnx
import onnxruntime
from onnx import helper, numpy_helper

import reference
from reference import TYPES, Fault

COLUMNS = ("outcome", "golden_top", "faulty_top", "positions", "positions_changed", "sdc1", "sdc5", "sdc10", "sdc20", "max_abs", "mean_abs",
           "max_rel", "sqnr_db", "cosine")
SAME = {  # All that has to be the same for the same campaign, whatever was done to get it.
    "strata": "stratum", "faults": "trial", "results": "trial, input", "golden": "input",
    "golden_outputs": "input, place",
}
# Where the two say different things: part, faults, columns, and why. To be empty.
KNOWN = []


def info(name, type, shape):
    return helper.make_tensor_value_info(name, TYPES[type].onnx, shape)


def node(type, inputs, outputs, name, **attributes):
    return helper.make_node(type, inputs.split(), outputs.split(), name=name, **attributes)


def make_model(nodes, inputs, outputs, constants, between=(), sparse=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants, value_info=list(between),
                              sparse_initializer=list(sparse))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)


def network(random):
    """A small network with what real ones have: convolution, residual, pooling, normalisation."""
    def constant(name, *shape):
        return numpy_helper.from_array((random.normal(size=shape) / 2).astype(numpy.float32), name)

    nodes = [
        node("Conv", "x w1 b1", "c1", "conv1", pads=[1, 1, 1, 1]),
        node("BatchNormalization", "c1 g b m v", "n1", "norm"),
        node("Relu", "n1", "r1", "relu1"),
        node("Conv", "r1 w2", "c2", "conv2", pads=[1, 1, 1, 1], group=2),
        node("Add", "c2 r1", "a", "residual"),
        node("Relu", "a", "r2", "relu2"),
        node("MaxPool", "r2", "p", "pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", "p", "f", "flatten"),
        node("Gemm", "f w3 b3", "l", "fc", transB=1),
        node("Softmax", "l", "y", "softmax"),
    ]
    variance = numpy_helper.from_array(random.uniform(0.5, 2, 4).astype(numpy.float32), "v")
    constants = [constant("w1", 4, 2, 3, 3), constant("b1", 4), constant("g", 4), constant("b", 4), constant("m", 4), variance,
                 constant("w2", 4, 2, 3, 3), constant("w3", 8, 36), constant("b3", 8)]
    between = [info(n, "f32", None) for n in "c1 n1 r1 c2 a r2 p f l".split()]
    return make_model(nodes, [info("x", "f32", ["N", 2, 6, 6])], [info("y", "f32", ["N", 8])], constants, between)


def images(random, count):
    return [{"x": random.normal(size=(1, 2, 6, 6)).astype(numpy.float32)} for _ in range(count)]


class Bench:
    def __init__(self, trocar, folder):
        self.trocar = trocar
        self.folder = folder
        self.part = ""
        self.wrong = []
        self.known = set()
        self.compared = 0
        self.count = 0

    def fresh(self, suffix):
        self.count += 1
        return self.folder / f"{self.count}{suffix}"

    def check(self, true, title, message=""):
        self.compared += 1
        if not true:
            self.disagree(title, ["check"], message)

    def run(self, *arguments):
        """With the engine that the reference runs on, and no other version."""
        engine = ["--engine", f"onnxruntime:{Path(onnxruntime.__file__).parent}"] if arguments[0] != "merge" else []
        return subprocess.run([self.trocar, "inject", *map(str, arguments), *engine], capture_output=True, text=True)

    def inputs(self, feeds):
        arguments = []
        for name, array in feeds.items():
            path = self.fresh(".npy")
            numpy.save(path, array)
            arguments += ["-i", f"{name}={path}"]
        return arguments

    def data(self, samples, labels=None):
        path = self.fresh(".npz" if labels else ".npy")
        array = numpy.concatenate(samples)
        if labels:
            numpy.savez(path, x=array, labels=numpy.array(labels))
        else:
            numpy.save(path, array)
        return path

    def store(self, model, *arguments):
        """The store of a campaign; fails the test where there is none."""
        path = self.fresh(".db")
        done = self.run(model, "--view", "source", "--store", path, "--threads", 1, "-q", *arguments)
        if done.returncode:
            raise RuntimeError(f"{self.part}: exit {done.returncode} of {arguments}: {done.stderr}")
        return path

    def trials(self, model, runs, faults, name=""):
        """Injects the faults and compares all that is said of them; `runs` are feeds, one for each input."""
        path = self.fresh(".onnx")
        onnx.save(model, path)
        listed = self.fresh(".txt")
        listed.write_text("".join(fault + "\n" for fault in faults))
        if len(runs) == 1:
            data = self.inputs(runs[0])
        else:
            (key,) = runs[0]
            data = ["--data", self.data([run[key] for run in runs])]
        try:
            store = self.store(path, "--faults-from", listed, *data)
        except RuntimeError as error:
            self.disagree(name, ["exit"], str(error))
            return
        self.compare(store, model, runs, name, faults)

    def compare(self, store, model, runs, name="", faults=None):
        golden = [reference.run(model, run) for run in runs]
        seen = rows(store, "SELECT * FROM trials ORDER BY trial, input")
        decision = decision_of(store, [output.name for output in model.graph.output])
        if faults is not None:
            self.check(len(seen) == len(faults) * len(runs), f"{name}: {len(seen)} rows of {len(faults)} faults")
        for row in seen:
            text = row["fault"] if faults is None else faults[row["trial"]]
            run = row["input"]
            active = [f for f in map(Fault, text.split(" + ")) if f.active(run)]
            self.compare_row(row, self.expected(model, runs[run], active, golden[run], decision), f"{name} {text}".strip())

    def expected(self, model, feeds, faults, golden, decision):
        try:
            if any(f.part for f in faults):
                changed = reference.sparse_with_faults(model, faults)
            else:
                changed = reference.with_faults(model, feeds, faults)
            faulty = reference.run(changed, feeds)
        except Exception as error:  # ONNX Runtime has a class for each status.
            if "onnxruntime" not in type(error).__module__:
                raise
            return {"outcome": "failed"}
        return reference.judged(golden, faulty, decision)

    def compare_row(self, row, expected, title):
        self.compared += 1
        off = [c for c in COLUMNS if c in expected and not reference.close(expected[c], row[c])]
        if off:
            said = ", ".join(f"{c} {row[c]} instead of {expected[c]}" for c in off)
            self.disagree(title, off, f"input {row['input']} ({row['outcome']}): {said}")

    def disagree(self, title, columns, message):
        for place, (part, pattern, known, _) in enumerate(KNOWN):
            if part == self.part and re.fullmatch(pattern, title) and (known == "*" or set(columns) <= set(known.split())):
                self.known.add(place)
                return
        self.wrong.append(f"{self.part}: {title}: {message}")

    def refused(self, model, feeds, fault, words, codes=(2, 3)):
        """The fault is an error of the user, and the message says which."""
        path = self.fresh(".onnx")
        onnx.save(model, path)
        done = self.run(path, "--view", "source", "--fault", fault, "-q", *self.inputs(feeds))
        right = done.returncode in codes and any(w in done.stderr for w in words)
        self.check(right, fault, f"exit {done.returncode}, not of {codes}; no word of {words} in {done.stderr.strip()!r}")


def decision_of(store, outputs):
    """The decision of the store's campaign, as reference.judged takes it."""
    kind, *rest = rows(store, "SELECT decision FROM campaign")[0]["decision"].split(":")
    if kind == "none":
        return kind, None, None
    number = float(rest.pop(0)) if kind in ("topk", "error") else None
    axis = int(rest.pop()) if kind in ("scores", "topk") else None
    how = {"scores": axis, "equal": None, "topk": (int(number or 0), axis), "error": number}[kind]
    return kind, outputs.index(":".join(rest)), how


def rows(store, query):
    connection = sqlite3.connect(store)
    connection.row_factory = sqlite3.Row
    found = [dict(row) for row in connection.execute(query)]
    connection.close()
    return found


def everything(store):
    return {table: rows(store, f"SELECT * FROM {table} ORDER BY {order}") for table, order in SAME.items()}
