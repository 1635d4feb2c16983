"""What a fault does to a model, with numpy, onnx and ONNX Runtime alone.

Written from the documentation of faults and of the store, not from the code under test: a fault is
read from its text, the bits of the tensor are changed here, and the changed tensor takes the place of
the old one in a copy of the model, which ONNX Runtime runs with its optimisations off.
"""

import itertools
import math
import re
from fractions import Fraction

import ml_dtypes
import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper

FLOATS = {
    "f32": (TensorProto.FLOAT, numpy.float32),
    "f64": (TensorProto.DOUBLE, numpy.float64),
    "f16": (TensorProto.FLOAT16, numpy.float16),
    "bf16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16),
    "f8e4m3fn": (TensorProto.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn),
    "f8e5m2": (TensorProto.FLOAT8E5M2, ml_dtypes.float8_e5m2),
    "f8e4m3fnuz": (TensorProto.FLOAT8E4M3FNUZ, ml_dtypes.float8_e4m3fnuz),
    "f8e5m2fnuz": (TensorProto.FLOAT8E5M2FNUZ, ml_dtypes.float8_e5m2fnuz),
}
INTEGERS = {
    "i2": (TensorProto.INT2, 2), "u2": (TensorProto.UINT2, 2),
    "i4": (TensorProto.INT4, 4), "u4": (TensorProto.UINT4, 4),
    "i8": (TensorProto.INT8, 8), "u8": (TensorProto.UINT8, 8),
    "i16": (TensorProto.INT16, 16), "u16": (TensorProto.UINT16, 16),
    "i32": (TensorProto.INT32, 32), "u32": (TensorProto.UINT32, 32),
    "i64": (TensorProto.INT64, 64), "u64": (TensorProto.UINT64, 64),
}


class Type:
    """An element type: its bits, and the numbers that they stand for."""

    def __init__(self, name):
        self.name = name
        self.floating = name in FLOATS
        if self.floating:
            self.onnx, self.numpy = FLOATS[name]
            self.bits = 8 * numpy.dtype(self.numpy).itemsize
        elif name == "bool":
            self.onnx, self.bits = TensorProto.BOOL, 8
        else:
            self.onnx, self.bits = INTEGERS[name]
        self.signed = name[0] == "i"
        self.table = None

    def number(self, code):
        if self.floating:
            raw = int(code).to_bytes(self.bits // 8, "little")
            return float(numpy.frombuffer(raw, self.numpy)[0])
        if self.signed and code >> (self.bits - 1):
            return int(code) - (1 << self.bits)
        return int(code)

    def code(self, number):
        """The bits of the nearest number of the type; ties go to the even one."""
        if self.floating:
            if self.bits >= 32:
                with numpy.errstate(over="ignore"):
                    raw = numpy.array(number, numpy.float64).astype(self.numpy).tobytes()
                return int.from_bytes(raw, "little")
            return self.nearest(number)
        low, high = (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1) if self.signed else (0, (1 << self.bits) - 1)
        if self.name == "bool":
            return int(number != 0)
        return min(max(round(number), low), high) & ((1 << self.bits) - 1)

    def nearest(self, number):
        # ml_dtypes may round twice (to f32 first), so the table of all numbers decides.
        if self.table is None:
            count = 1 << self.bits
            storage = numpy.uint8 if self.bits == 8 else numpy.uint16
            with numpy.errstate(invalid="ignore"):
                numbers = numpy.arange(count).astype(storage).view(self.numpy).astype(numpy.float64)
            codes = numpy.flatnonzero(numpy.isfinite(numbers) & ~numpy.signbit(numbers))
            order = numpy.argsort(numbers[codes], kind="stable")
            self.table = numbers[codes][order], codes[order]
            infinite = numpy.flatnonzero(numpy.isposinf(numbers))
            self.infinity = int(infinite[0]) if len(infinite) else None
        numbers, codes = self.table
        sign = 1 << (self.bits - 1) if math.copysign(1, number) < 0 else 0
        magnitude = abs(number)
        if magnitude > numbers[-1]:
            half = (numbers[-1] - numbers[-2]) / 2
            infinite = self.infinity is not None and magnitude >= numbers[-1] + half
            return sign | (self.infinity if infinite else int(codes[-1]))
        at = int(numpy.searchsorted(numbers, magnitude))
        if numbers[at] != magnitude:
            below, above = Fraction(magnitude) - Fraction(numbers[at - 1]), Fraction(numbers[at]) - Fraction(magnitude)
            if below < above or (below == above and codes[at] % 2):
                at -= 1
        if magnitude == 0 or codes[at] == 0:
            return 0 if self.name.endswith("uz") else sign
        return sign | int(codes[at])


TYPES = {name: Type(name) for name in [*FLOATS, *INTEGERS, "bool"]}
BY_ONNX = {type.onnx: type for type in TYPES.values()}


def unpacked(raw, bits, count):
    """Elements as integers: the first in the lowest bits of a byte, where a byte holds several."""
    if bits >= 8:
        return [int(v) for v in numpy.frombuffer(raw, f"<u{bits // 8}")[:count]]
    per = 8 // bits
    return [raw[i // per] >> (i % per * bits) & ((1 << bits) - 1) for i in range(count)]


def packed(codes, bits):
    if bits >= 8:
        return numpy.array(codes, f"<u{bits // 8}").tobytes()
    per = 8 // bits
    raw = bytearray(-(-len(codes) // per))
    for i, code in enumerate(codes):
        raw[i // per] |= code << (i % per * bits)
    return bytes(raw)


def constant(name, type, shape, codes):
    return TensorProto(name=name, data_type=type.onnx, dims=list(shape), raw_data=packed(codes, type.bits))


class Fault:
    NAME = r"('[^']*'|[^\s'>\[]+?)"
    TEXT = re.compile(rf"{NAME}(\.values|\.indices)?(?:>{NAME})?\s+\[([^\]]*)\]\s+(\w+)\s*(.*)$")

    def __init__(self, text):
        self.text = text
        tensor, part, reader, self.elements, self.kind, rest = self.TEXT.match(text.strip()).groups()
        self.tensor = tensor.strip("'")
        self.part = part[1:] if part else None
        self.reader = reader.strip("'") if reader else None
        self.duration = None
        if found := re.search(r"\s*(transient (\d+)|every (\d+)(?: from (\d+))?)$", rest):
            self.duration = (int(found[2]), None) if found[2] else (int(found[4] or 0), int(found[3]))
            rest = rest[:found.start()]
        if self.kind == "zero":
            self.kind, rest = "set", "0"
        if self.kind in ("flip", "stuck0", "stuck1"):
            self.mask = 0
            for part in rest.split(","):
                first, _, last = part.partition("-")
                for bit in range(int(first), int(last or first) + 1):
                    self.mask |= 1 << bit
        else:
            self.number = float(rest)

    def active(self, run):
        if self.duration is None:
            return True
        first, period = self.duration
        return run == first if period is None else run >= first and (run - first) % period == 0

    def places(self, shape):
        if self.elements == "*":
            return list(range(math.prod(shape)))
        if "#" in self.elements:
            return [int(v.strip().lstrip("#")) for v in self.elements.split(",")]
        keys = []
        for part in self.elements.split(","):
            fields = [int(v) if v.strip() else None for v in part.split(":")]
            keys.append(slice(*fields) if len(fields) > 1 else slice(fields[0], fields[0] + 1))
        return numpy.arange(math.prod(shape)).reshape(shape)[tuple(keys)].ravel().tolist()

    def apply(self, type, shape, codes):
        for place in self.places(shape):
            old = codes[place]
            if self.kind == "flip":
                new = old ^ self.mask
            elif self.kind == "stuck0":
                new = old & ~self.mask
            elif self.kind == "stuck1":
                new = old | self.mask
            elif self.kind == "set":
                new = type.code(self.number)
            elif type.floating:
                number = type.number(old)
                new = type.code(number + self.number if self.kind == "add" else number * self.number)
            else:
                # In double precision where that holds the integer, else exactly.
                real = float if abs(type.number(old)) <= 2**53 else Fraction
                number, other = real(type.number(old)), real(self.number)
                new = type.code(number + other if self.kind == "add" else number * other)
            codes[place] = new


def run(model, feeds):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def value_of(model, feeds, tensor):
    """Type, shape and bits of a constant, an input, or what an op gives."""
    for item in model.graph.initializer:
        if item.name == tensor:
            type = BY_ONNX[item.data_type]
            return type, list(item.dims), unpacked(item.raw_data, type.bits, math.prod(item.dims))
    if tensor in feeds:
        array = feeds[tensor]
        type = BY_ONNX[helper.np_dtype_to_tensor_dtype(array.dtype)]
        return type, list(array.shape), unpacked(array.tobytes(), type.bits, array.size)
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    del probe.graph.output[:]
    probe.graph.output.append(onnx.ValueInfoProto(name=tensor))
    # numpy has no type for these: as f32, which holds all their numbers.
    elem = next(i.type.tensor_type.elem_type for i in [*model.graph.value_info, *model.graph.output] if i.name == tensor)
    type = BY_ONNX[elem]
    if type.name in ("f32", "f64", "f16") or not type.floating and type.bits >= 8:
        array = run(probe, feeds)[0]
        return type, list(array.shape), unpacked(array.tobytes(), type.bits, array.size)
    probe.graph.node.append(helper.make_node("Cast", [tensor], [tensor + "~f32"], to=TensorProto.FLOAT))
    probe.graph.output[0].name = tensor + "~f32"
    array = run(probe, feeds)[0]
    return type, list(array.shape), [type.code(float(v)) for v in array.ravel()]


def bodies(node):
    return [attribute.g for attribute in node.attribute if attribute.HasField("g")]


def reads(node, tensor):
    """By itself, or in a body of its own."""
    return tensor in node.input or any(
        any(reads(inner, tensor) for inner in body.node) or any(output.name == tensor for output in body.output) for body in bodies(node))


def renamed(node, old, new):
    for i, name in enumerate(node.input):
        if name == old:
            node.input[i] = new
    for body in bodies(node):
        for inner in body.node:
            renamed(inner, old, new)


def with_faults(model, feeds, faults):
    """A copy of the model where constants that hold the faulty tensors stand in for them."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    graph = model.graph
    order = [i.name for i in graph.initializer] + [i.name for i in graph.input]
    order += [output for node in graph.node for output in node.output]
    for tensor in [name for name in order if any(f.tensor == name for f in faults)]:
        here = [f for f in faults if f.tensor == tensor]
        type, shape, codes = value_of(model, feeds, tensor)
        for place, node in enumerate(graph.node):
            seen = [f for f in here if f.reader in (None, node.name, f"#{place}")]
            if reads(node, tensor) and seen:
                own = list(codes)
                for fault in seen:
                    fault.apply(type, shape, own)
                graph.initializer.append(constant(f"{tensor}~{place}", type, shape, own))
                renamed(node, tensor, f"{tensor}~{place}")
        everywhere = [f for f in here if f.reader is None]
        for output in graph.output:
            if output.name == tensor and everywhere:
                for fault in everywhere:
                    fault.apply(type, shape, codes)
                graph.initializer.append(constant(f"{tensor}~all", type, shape, codes))
                graph.node.append(helper.make_node("Identity", [f"{tensor}~all"], [f"{tensor}~out"]))
                output.name = f"{tensor}~out"
    return model


def sparse_with_faults(model, faults):
    model = onnx.ModelProto.FromString(model.SerializeToString())
    for item in model.graph.sparse_initializer:
        for fault in faults:
            if fault.tensor == item.values.name:
                part = item.values if fault.part == "values" else item.indices
                type = BY_ONNX[part.data_type]
                codes = unpacked(part.raw_data, type.bits, math.prod(part.dims))
                fault.apply(type, list(part.dims), codes)
                part.raw_data = packed(codes, type.bits)
    return model


def judged(golden, faulty, decision=("scores", 0, -1)):
    """What the store says of an input, of what the model gives with and without the faults.

    A decision is its kind, the output, and the axis of scores, (K, axis) of topk, or the limit of an error.
    Where there are several positions, a change at any counts, and the first one's choices are kept. NaN
    among the scores leaves no choice. Differences are of all outputs, and of the numbers that are finite
    in both.
    """
    same = all(a.tobytes() == b.tobytes() for a, b in zip(golden, faulty))
    row = decided(golden, faulty, decision)
    a, b = joined(golden), joined(faulty)
    due = a.shape == b.shape and (~numpy.isfinite(b) & numpy.isfinite(a)).any()
    row["outcome"] = "due" if due else "sdc" if row["sdc1"] else "masked" if same else "benign"
    row.update(dict.fromkeys(("max_abs", "mean_abs", "max_rel", "sqnr_db", "cosine")))
    if a.shape == b.shape:
        both = numpy.isfinite(a) & numpy.isfinite(b)
        if both.any():
            row.update(distances(a[both], b[both]))
            ratios = [relative(joined([v]), joined([w])) for v, w in zip(golden, faulty)]
            row["max_rel"] = max((v for v in ratios if v is not None), default=None)
    if same:
        row["cosine"] = 1.0
    return row


def decided(golden, faulty, decision):
    row = dict.fromkeys(("sdc1", "sdc5", "sdc10", "sdc20", "golden_top", "faulty_top", "positions", "positions_changed"))
    kind, output, how = decision
    if kind == "none":
        return row
    before, after = golden[output], faulty[output]
    if kind in ("equal", "error"):
        if kind == "equal":
            row["golden_top"], row["faulty_top"] = (id_of(v.ravel()[:1].tolist()) for v in (before, after))
        flags = numpy.array([element_changes(a, b, how) for a, b in padded(before, after)])
    else:
        axis = how[1] if kind == "topk" else how
        before, after = (numpy.moveaxis(v, axis, -1).reshape(-1, v.shape[axis]).astype(numpy.float64) for v in (before, after))
        row["golden_top"], row["faulty_top"] = top(before[0]), top(after[0])
        if kind == "topk":
            flags = numpy.array([now is None or was not in numpy.argsort(-b, kind="stable")[:how[0]]
                                 for was, now, b in zip(map(top, before), map(top, after), after)])
        else:
            all_flags = numpy.array([changes(a, b) for a, b in zip(before, after)])
            row.update(zip(("sdc5", "sdc10", "sdc20"), (int(v) for v in all_flags.max(axis=0)[1:])))
            flags = all_flags[:, 0]
    row["positions"], row["positions_changed"] = (len(flags), int(flags.sum())) if len(flags) else (None, None)
    row["sdc1"] = int(flags.any() or golden[output].shape != faulty[output].shape)
    return row


def id_of(numbers):
    """The first number, where it may be that of a class."""
    limit = 2**63 if numbers and isinstance(numbers[0], int) else 2**53
    return int(numbers[0]) if numbers and 0 <= numbers[0] < limit and numbers[0] == int(numbers[0]) else None


def padded(before, after):
    """Elements with the same index; None where there is one in one of the two only. Shapes differ along the first axis."""
    return itertools.zip_longest(before.ravel().tolist(), after.ravel().tolist())


def element_changes(a, b, limit):
    if a is None or b is None or math.isnan(a) != math.isnan(b):
        return True
    return not (a == b or math.isnan(a) or abs(a - b) <= (limit or 0))


def top(scores):
    return None if numpy.isnan(scores).any() else int(numpy.argmax(scores))


def changes(before, after):
    """Another first choice; not among the first five; its score off by more than 10 % and 20 %."""
    was, now = top(before), top(after)
    best = numpy.argsort(-before, kind="stable")[:5]
    old, new = before[was], after[was]
    with numpy.errstate(all="ignore"):
        off = 0.0 if new == old else abs(new - old) / abs(old)
    return now != was, now is None or now not in best, not off <= 0.1, not off <= 0.2


def joined(arrays):
    with numpy.errstate(invalid="ignore"):  # of signalling NaN
        return numpy.concatenate([array.ravel().astype(numpy.float64) for array in arrays])


def relative(a, b):
    """The largest difference by |a|, or by a thousandth of the rms of a where that is more."""
    numbers = a[numpy.isfinite(a)]
    largest = abs(numbers).max(initial=0)
    both = numpy.isfinite(a) & numpy.isfinite(b)
    difference = abs(b[both] - a[both])
    if not len(difference):
        return None
    if not difference.any():
        return 0.0
    if not largest:
        return None
    rms = largest * math.sqrt(((numbers / largest) ** 2).mean())
    return float((difference / numpy.maximum(abs(a[both]), rms / 1000)).max())


def distances(a, b):
    difference = numpy.abs(b - a)
    row = {"max_abs": float(difference.max()), "mean_abs": float(difference.mean())}
    row["sqnr_db"] = decibels(a, difference)
    # Scaled, so that the squares of large numbers stay finite.
    u, v = a / (abs(a).max() or 1), b / (abs(b).max() or 1)
    if u.any() and v.any():
        row["cosine"] = float((u @ v) / math.sqrt(float(u @ u) * float(v @ v)))
    return row


def decibels(signal, noise):
    if not noise.any():
        return math.inf
    if not signal.any():
        return None
    scale, other = abs(signal).max(), noise.max()
    ratio = float(((signal / scale) ** 2).sum() / ((noise / other) ** 2).sum())
    return 10 * math.log10(ratio) + 20 * (math.log10(scale) - math.log10(other))


def close(expected, got):
    if expected is None or got is None or isinstance(expected, str):
        return expected == got
    return expected == got or math.isclose(expected, got, rel_tol=1e-9, abs_tol=1e-12)
