"""Sparse constants, against scipy: what the engine computes with indices that a fault has changed.

The engine makes a dense tensor of a sparse constant. Of two values for one place the later stands (scipy's coo_array
would add them up, its dok_array keeps the later one, too), and a place outside is refused: the outcome is failed.
"""

import numpy
import onnx
import scipy.sparse
from onnx import numpy_helper

import reference
from bench import decision_of, info, make_model, node, rows
from reference import BY_ONNX, Fault, packed, unpacked


def constant(shape, values, indices):
    item = onnx.SparseTensorProto(dims=shape)
    item.values.CopyFrom(numpy_helper.from_array(numpy.array(values, numpy.float32), "w"))
    item.indices.CopyFrom(numpy_helper.from_array(numpy.array(indices, numpy.int64), "w_indices"))
    return item


def changed(proto, faults, part):
    """Its elements as the faults leave them."""
    type = BY_ONNX[proto.data_type]
    codes = unpacked(proto.raw_data, type.bits, int(numpy.prod(proto.dims)))
    for fault in faults:
        if fault.part == part:
            fault.apply(type, list(proto.dims), codes)
    return numpy.frombuffer(packed(codes, type.bits), numpy_helper.to_array(proto).dtype).reshape(tuple(proto.dims))


def places(indices, shape):
    """Of each value, as a column; places in row-major order are taken apart. ValueError where one lies outside."""
    if indices.ndim == 1:
        return numpy.stack(numpy.unravel_index(indices.astype(numpy.int64), shape))
    return indices.T.astype(numpy.int64)


def dense(item, faults):
    """As scipy has it. ValueError where a place lies outside. The second: whether values collide."""
    shape = tuple(item.dims)
    values, indices = changed(item.values, faults, "values"), changed(item.indices, faults, "indices")
    where = places(indices, shape)
    added = scipy.sparse.coo_array((values, tuple(where)), shape=shape)  # refuses places outside
    if len({tuple(place) for place in where.T}) == len(values):
        return added.toarray(), False
    # In one row: dok_array has no more than two dimensions.
    kept = scipy.sparse.dok_array((1, added.toarray().size), dtype=numpy.float32)
    for place, value in zip(numpy.ravel_multi_index(tuple(where), shape), values):
        kept[0, int(place)] = value
    return kept.toarray().reshape(shape), True


class Oracle:
    """Counts what it met, so that nothing is left untried without a word."""

    def __init__(self, bench, shape, values, indices):
        self.bench = bench
        self.item = constant(shape, values, indices)
        # A power of two for each row, and one product for each element: exact in any order.
        size = shape[0] if len(shape) == 2 else 1
        self.x = numpy.diag(2.0 ** numpy.arange(size)).astype(numpy.float32)[::-1].copy()
        work = node("MatMul", "x w", "m", "mm") if len(shape) == 2 else node("Mul", "x w", "m", "mul")
        self.model = make_model([work, node("Neg", "m", "y", "neg")], [info("x", "f32", self.x.shape)], [info("y", "f32", None)], [],
                                sparse=[self.item])
        self.met = {"outside": 0, "twice": 0, "moved": 0}

    def output(self, faults):
        w, collide = dense(self.item, faults)
        self.met["twice"] += collide
        with numpy.errstate(all="ignore"):
            return [-(self.x @ w if w.ndim == 2 else self.x * w)]

    def expected(self, faults):
        try:
            faulty = self.output(faults)
        except ValueError:
            self.met["outside"] += 1
            return {"outcome": "failed"}
        row = reference.judged(self.output([]), faulty, self.decision)
        self.met["moved"] += row["outcome"] != "masked"
        return row

    def check(self, name, view, *arguments):
        path = self.bench.fresh(".onnx")
        onnx.save(self.model, path)
        store = self.bench.store(path, *self.bench.inputs({"x": self.x}), "--view", view, *arguments)
        found = rows(store, "SELECT * FROM trials ORDER BY trial")
        self.decision = decision_of(store, ["y"])
        for row in found:
            faults = [Fault(text) for text in row["fault"].split(" + ")]
            self.bench.compare_row(row, self.expected(faults), f"{name}, {view}: {row['fault']}")
        again = self.bench.run("replay", store, "--fault", found[-1]["trial"])
        self.bench.check("As in the store" in again.stdout and again.returncode == 0, f"{name}: replay", again.stderr + again.stdout)

    def given(self, name, faults):
        listed = self.bench.fresh(".txt")
        listed.write_text("".join(fault + "\n" for fault in faults))
        self.check(name, "source", "--faults-from", listed)

    def drawn(self, name):
        self.check(name, "source", "--target", "constants", "--exhaustive")

    def deployed(self, name, faults):
        """As the engine writes it: places in row-major order, in the smallest integers that will do."""
        flat = numpy.ravel_multi_index(tuple(places(numpy_helper.to_array(self.item.indices), tuple(self.item.dims))), tuple(self.item.dims))
        self.item.indices.CopyFrom(numpy_helper.from_array(flat.astype(numpy.int8), "w_indices"))
        listed = self.bench.fresh(".txt")
        listed.write_text("".join(fault + "\n" for fault in faults))
        self.check(name, "deployed", "--faults-from", listed)


def effects(bits):
    return [f"flip {bit}" for bit in range(bits)] + ["set -1", "set 1", "set 5", "set 11", "set 12", "zero", "add 1", "stuck1 0-1", "stuck0 0-3"]


VALUES = [1.5, -2, 0.25, 3]
PLACES = {"flat": ([3, 4], [1, 4, 9, 11]), "pairs": ([3, 4], [[0, 1], [1, 1], [2, 1], [2, 3]]), "vector": ([6], [0, 2, 3, 5]),
          "columns": ([6], [[0], [2], [3], [5]]), "three": ([2, 3, 2], [[0, 0, 1], [0, 2, 0], [1, 0, 0], [1, 2, 1]]), "cube": ([2, 3, 2], [1, 4, 6, 11])}


def part_scipy(bench):
    """Every bit of every index and value, and indices that collide, are out of order or lie outside."""
    met = {"outside": 0, "twice": 0, "moved": 0}
    for name, (shape, indices) in PLACES.items():
        oracle = Oracle(bench, shape, VALUES, indices)
        each = [f"[#{place}]" for place in range(numpy.array(indices).size)]
        faults = [f"w.indices {at} {what}" for at in each for what in effects(64)]
        faults += [f"w.values {at} {what}" for at in each[:4] for what in effects(32)]
        faults += [f"w.indices {a} zero + w.indices {b} zero" for a in each for b in each if a < b]
        faults += [f"w.values [0] set 7 + w.indices {at} add 1" for at in each] + ["w.indices [*] zero", "w.indices [*] set 1"]
        oracle.given(name, faults)
        met = {key: met[key] + oracle.met[key] for key in met}
    for key, count in met.items():
        bench.check(count > 100, key, f"only {count} faults")


def part_scipy_drawn(bench):
    """The campaign finds values and indices by itself."""
    for name in ("flat", "pairs"):
        Oracle(bench, PLACES[name][0], VALUES, PLACES[name][1]).drawn(name)


def part_scipy_deployed(bench):
    for name, (shape, indices) in PLACES.items():
        each = [f"w.indices [{place}] {what}" for place in range(len(VALUES)) for what in effects(8)]
        each += [f"w.values [{place}] {what}" for place in range(len(VALUES)) for what in effects(32)]
        Oracle(bench, shape, VALUES, indices).deployed(name, each)
