#!/usr/bin/env python3
"""What ONNX Runtime alone makes of the exported backend tests: the yardstick for runs through Trocar.

    tests/peers/outcome.py build/peers --write tests/peers/onnxruntime-VERSION.txt    makes the list anew
    tests/peers/outcome.py build/peers --check tests/peers/onnxruntime-VERSION.txt    compares with the list

The list holds the cases that ONNX Runtime cannot run or gets wrong, with the reason: KIND/CASE <tab> REASON.
Cases run in child processes, so that one that crashes or hangs is a line and not the end.
"""

import argparse
import ctypes
import json
import multiprocessing
import os
import pathlib
import queue
import re
import sys
import time

import numpy as np
import onnx
from onnx import numpy_helper

SECONDS_PER_CASE = 120

# First match decides. The left side is looked for in what ONNX Runtime says.
REASONS = [
    (r"construct locale", "needs a locale that this machine lacks"),
    (r"is not a registered function/op", "no such op"),
    (r"Could not find an implementation", "no kernel for these types"),
    (r"NOT_IMPLEMENTED|not implemented|Not implemented", "no kernel for these types"),
    (r"opset \d+ is under development|only \*guarantees\* support|Unsupported model IR version", "opset or IR version too new"),
    (r"Type Error|Type parameter|tensor\(.*\) is invalid|Type of|unsupported type|Unexpected input data type", "types refused"),
    (r"INVALID_GRAPH|INVALID_ARGUMENT|ShapeInferenceError|TypeInferenceError|Failed to load model|failed:This is an invalid model",
     "model refused"),
    (r"Exception during initialization", "kernel refuses the attributes"),
    (r"while running", "fails while running"),
]


class Mismatch(Exception):
    pass


def load_value(path, declared):
    """The value in a file: an array, a list, None, or a TensorProto where numpy has no such type."""
    data = path.read_bytes()
    kind = declared.type.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind == "optional_type":
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def pack(array, bits):
    """Elements below 8 bits, the first in the low bits of the first byte."""
    per_byte = 8 // bits
    flat = array.reshape(-1).view(np.uint8) & ((1 << bits) - 1)
    flat = np.concatenate([flat, np.zeros(-len(flat) % per_byte, np.uint8)]).reshape(-1, per_byte)
    return np.bitwise_or.reduce(flat << (np.arange(per_byte, dtype=np.uint8) * bits), axis=1).astype(np.uint8)


def unpack(data, count, bits):
    shifts = np.arange(8 // bits, dtype=np.uint8) * bits
    return ((data[:, None] >> shifts) & ((1 << bits) - 1)).reshape(-1)[:count]


SUB_BYTE = {onnx.TensorProto.UINT4: 4, onnx.TensorProto.INT4: 4, onnx.TensorProto.FLOAT4E2M1: 4,
            onnx.TensorProto.UINT2: 2, onnx.TensorProto.INT2: 2}


def is_exotic(value):
    """Is it of a type that the Python binding does not take as it is?"""
    name = value.dtype.name if isinstance(value, np.ndarray) else ""
    return name.startswith(("bfloat16", "float8", "float4", "int4", "uint4", "int2", "uint2"))


def to_ort(value, element):
    """An OrtValue of any element type, its bytes written in place."""
    import onnxruntime

    bits = SUB_BYTE.get(element)
    made = onnxruntime.OrtValue.ortvalue_from_shape_and_type(list(value.shape), element, "cpu")
    data = pack(value, bits).tobytes() if bits else np.ascontiguousarray(value).tobytes()
    ctypes.memmove(made.data_ptr(), data, len(data))
    return made


def from_ort(value, element):
    shape = list(value.shape())
    count = int(np.prod(shape)) if shape else 1
    dtype = onnx.helper.tensor_dtype_to_np_dtype(element)
    bits = SUB_BYTE.get(element)
    size = -(-count * bits // 8) if bits else count * dtype.itemsize
    data = np.frombuffer(ctypes.string_at(value.data_ptr(), size), np.uint8)
    if not bits:
        return data.view(dtype).reshape(shape)
    codes = unpack(data, count, bits)
    if element == onnx.TensorProto.FLOAT4E2M1:
        return codes.view(dtype).reshape(shape)
    if element in (onnx.TensorProto.INT4, onnx.TensorProto.INT2):
        sign = 1 << (bits - 1)
        codes = (codes.astype(np.int8) ^ sign) - sign
    return codes.astype(dtype).reshape(shape)


def element_of(declared):
    return declared.type.tensor_type.elem_type if declared.type.WhichOneof("value") == "tensor_type" else 0


def run(session, model, feeds):
    """Outputs as arrays and lists; goes through OrtValues where the binding's own way lacks the type."""
    outputs = list(model.graph.output)
    plain = not any(is_exotic(v) for v in feeds.values()) and not any(
        is_exotic(np.zeros(0, onnx.helper.tensor_dtype_to_np_dtype(element_of(o)))) for o in outputs if element_of(o))
    if plain:
        return session.run(None, feeds)
    import onnxruntime

    declared = {i.name: i for i in model.graph.input}
    values = {}
    for name, value in feeds.items():
        if is_exotic(value):
            values[name] = to_ort(value, element_of(declared[name]))
        else:
            values[name] = onnxruntime.OrtValue.ortvalue_from_numpy(value)
    results = session.run_with_ort_values([o.name for o in outputs], values)
    return [from_ort(r, element_of(o)) if element_of(o) not in (0, onnx.TensorProto.STRING) else r.numpy()
            for r, o in zip(results, outputs)]


def compare(expected, actual, rtol, atol, where):
    """The suite's own rule. Raises Mismatch."""
    if isinstance(expected, (list, tuple)) or isinstance(actual, (list, tuple)):
        if not isinstance(actual, (list, tuple)) or len(expected) != len(actual):
            raise Mismatch(f"wrong length of {where}")
        for i, (e, a) in enumerate(zip(expected, actual)):
            compare(e, a, rtol, atol, f"{where}[{i}]")
        return
    if expected is None or actual is None:
        if expected is not actual:
            raise Mismatch(f"wrong presence of {where}")
        return
    expected, actual = np.asarray(expected), np.asarray(actual)
    if expected.shape != actual.shape:
        raise Mismatch("wrong shape")
    if expected.dtype.kind in "OUS":
        if not np.array_equal(expected.astype(str), actual.astype(str)):
            raise Mismatch("wrong result")
        return
    if expected.dtype != actual.dtype:
        raise Mismatch("wrong type")
    if is_exotic(expected):
        rtol = max(rtol, 2**-6) if expected.dtype.name == "bfloat16" else rtol
        expected, actual = expected.astype(np.float32), actual.astype(np.float32)
    if not np.allclose(actual, expected, rtol=rtol, atol=atol, equal_nan=True):
        raise Mismatch("wrong result")


def try_case(folder, row):
    """Empty, or why ONNX Runtime does not pass the case."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    model = onnx.load(folder / "model.onnx")
    try:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
        names = [i.name for i in session.get_inputs()]
        declared = {i.name: i for i in model.graph.input}
        for data in sorted(folder.glob("test_data_set_*")):
            order = names if len(names) == len(list(data.glob("input_*.pb"))) else list(declared)
            feeds = {name: load_value(data / f"input_{i}.pb", declared[name])
                     for i, name in enumerate(order) if (data / f"input_{i}.pb").exists()}
            actual = run(session, model, feeds)
            expected = [load_value(data / f"output_{i}.pb", o) for i, o in enumerate(model.graph.output)
                        if (data / f"output_{i}.pb").exists()]
            compare(expected, list(actual), row["rtol"], row["atol"], "outputs")
    except Mismatch as error:
        return str(error)
    except Exception as error:  # ONNX Runtime has no common base for its errors
        text = " ".join(str(error).split())
        for pattern, reason in REASONS:
            if re.search(pattern, text):
                return reason
        return f"failed: {type(error).__name__}: {text[:160]}"
    return ""


def worker(folder, tasks, answers):
    while (row := tasks.get()) is not None:
        answers.put(("start", os.getpid(), row["kind"] + "/" + row["name"]))
        answers.put(("done", os.getpid(), try_case(folder / row["kind"] / row["name"], row)))


class Pool:
    """Child processes, each with one case at a time; one that dies or hangs is replaced."""

    def __init__(self, folder, size):
        self.context = multiprocessing.get_context("spawn")
        self.folder, self.tasks = folder, self.context.Queue()
        self.members = [self.start() for _ in range(size)]

    def start(self):
        answers = self.context.Queue()
        process = self.context.Process(target=worker, args=(self.folder, self.tasks, answers), daemon=True)
        process.start()
        return {"process": process, "answers": answers, "case": None, "since": 0.0}

    def poll(self, outcomes):
        for number, member in enumerate(self.members):
            try:
                while True:
                    kind, _, text = member["answers"].get_nowait()
                    if kind == "start":
                        member.update(case=text, since=time.monotonic())
                    else:
                        outcomes[member["case"]] = text
                        member["case"] = None
            except queue.Empty:
                pass
            hung = member["case"] and time.monotonic() - member["since"] > SECONDS_PER_CASE
            if hung or not member["process"].is_alive():
                if member["case"]:
                    outcomes[member["case"]] = "hangs" if hung else "crashes"
                member["process"].kill()
                self.members[number] = self.start()

    def run(self, rows):
        outcomes = {}
        for row in rows:
            self.tasks.put(row)
        while len(outcomes) < len(rows):
            self.poll(outcomes)
            time.sleep(0.02)
        for member in self.members:
            member["process"].kill()
        return outcomes


def read_list(path):
    rows = (line.split("\t") for line in path.read_text().splitlines() if line and not line.startswith("#"))
    return {case: reason for case, reason in rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--write", type=pathlib.Path, metavar="LIST")
    parser.add_argument("--check", type=pathlib.Path, metavar="LIST")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()

    import onnxruntime

    cases = json.loads((args.folder / "index.json").read_text())["cases"]
    outcomes = Pool(args.folder, args.jobs).run(cases)
    failures = {case: why for case, why in sorted(outcomes.items()) if why}
    print(f"onnxruntime {onnxruntime.__version__}: {len(cases) - len(failures)} pass, {len(failures)} do not")
    for reason in sorted(set(failures.values())):
        print(f"  {sum(why == reason for why in failures.values()):5}  {reason}")
    if args.write:
        head = [f"# Backend tests of onnx {onnx.__version__} that ONNX Runtime {onnxruntime.__version__} alone does not pass,",
                "# on x86_64 and CPU. Written by tests/peers/outcome.py."]
        args.write.write_text("\n".join(head + [f"{case}\t{why}" for case, why in failures.items()]) + "\n")
    if args.check:
        known = read_list(args.check)
        # A locale may be there or not: that is the machine's affair.
        changed = sorted(c for c in set(known) ^ set(failures) if "locale" not in known.get(c, failures.get(c, "")))
        for case in changed:
            print(f"{case}: {'now passes' if case in known else failures[case]}")
        sys.exit(1 if changed else 0)


if __name__ == "__main__":
    main()
