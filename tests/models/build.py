"""What the makers of test models share: a catalogue and a builder with seeded weights."""

import dataclasses
import hashlib
import typing

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT
INT64 = TensorProto.INT64
BOOL = TensorProto.BOOL


@dataclasses.dataclass
class Entry:
    """One model of the catalogue. `make(folder)` returns a ModelProto, or bytes that are written as they are."""

    name: str
    make: typing.Callable
    what: str
    runs: bool  # ONNX Runtime of the pinned version runs it
    check: str  # "" when onnx.checker takes it, else why it does not
    bench: bool
    shapes: dict  # dynamic dimensions for a trial run: symbol -> number
    files: list  # further files it needs beside it


CATALOGUE: list[Entry] = []


def model(name, what, *, runs=True, check="", bench=False, shapes=None, files=()):
    """Puts the decorated function into the catalogue as NAME.onnx."""

    def put(make):
        CATALOGUE.append(Entry(name, make, what, runs, check, bench, shapes or {}, list(files)))
        return make

    return put


def random(seed, name):
    """A generator of its own for every name, so that adding a tensor changes no other."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return np.random.Generator(np.random.Philox(int.from_bytes(digest[:8], "little")))


def value(name, dtype=FLOAT, shape=None):
    return helper.make_tensor_value_info(name, dtype, shape)


def constant(name, array, dtype=None):
    return numpy_helper.from_array(np.asarray(array, dtype), name)


def node(kind, inputs, outputs, name="", **attributes):
    return helper.make_node(kind, inputs, outputs, name=name, **attributes)


def make_model(graph, opset=17, ir=8, domains=(), **fields):
    imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid(d, v) for d, v in domains]
    fields.setdefault("producer_name", "trocar tests/models")
    return helper.make_model(graph, opset_imports=imports, ir_version=ir, **fields)


class Builder:
    """Builds a graph top down, naming outputs after nodes as exporters do."""

    def __init__(self, name, seed=1):
        self.name = name
        self.seed = seed
        self.nodes = []
        self.initializers = []

    def constant(self, name, array):
        self.initializers.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def weight(self, name, shape, scale):
        values = random(self.seed, name).standard_normal(shape, dtype=np.float32)
        return self.constant(name, values * np.float32(scale))

    def add(self, kind, name, inputs, output=None, **attributes):
        output = output or f"{name}_output_0"
        self.nodes.append(helper.make_node(kind, inputs, [output], name=name, **attributes))
        return output

    def graph(self, inputs, outputs):
        return helper.make_graph(self.nodes, self.name, inputs, outputs, self.initializers)
