#!/usr/bin/env python3
"""Writes the backend tests of the `onnx` package out as files, for a driver that does not speak Python.

    tests/peers/export.py build/peers

    build/peers/KIND/CASE/model.onnx
    build/peers/KIND/CASE/test_data_set_N/input_N.pb, output_N.pb    TensorProto, SequenceProto or OptionalProto
    build/peers/index.json                                           the cases, with their tolerances

KIND is node, simple, pytorch-operator, pytorch-converted or light. Nothing is done when the folder was
written by this same script and package.
"""

import argparse
import hashlib
import json
import pathlib
import shutil
import warnings

import numpy as np
import onnx
from onnx import numpy_helper

KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted", "light")


def fingerprint():
    text = f"{onnx.__version__} {np.__version__} ".encode() + pathlib.Path(__file__).read_bytes()
    return hashlib.sha256(text).hexdigest()


def encode(value, declared):
    """The bytes of a value, as the suite's own files have them."""
    kind = declared.type.WhichOneof("value")
    if isinstance(value, onnx.TensorProto):
        value = onnx.TensorProto.FromString(value.SerializeToString())
        value.name = declared.name
        return value.SerializeToString(deterministic=True)
    if kind == "sequence_type":
        made = numpy_helper.from_list(value, declared.name)
    elif kind == "optional_type":
        inner = declared.type.optional_type.elem_type.WhichOneof("value")
        types = {"sequence_type": onnx.OptionalProto.SEQUENCE, "tensor_type": onnx.OptionalProto.TENSOR}
        made = numpy_helper.from_optional(value, declared.name, types[inner] if value is not None else None)
    else:
        made = numpy_helper.from_array(np.asarray(value), declared.name)
    return made.SerializeToString(deterministic=True)


def write_sets(folder, model, data_sets):
    for number, (inputs, outputs) in enumerate(data_sets):
        into = folder / f"test_data_set_{number}"
        into.mkdir(parents=True)
        for stem, values, declared in (("input", inputs, model.graph.input), ("output", outputs, model.graph.output)):
            for i, value in enumerate(values):
                (into / f"{stem}_{i}.pb").write_bytes(encode(value, declared[i]))


def node_cases(folder):
    from onnx.backend.test.loader import load_model_tests

    np.random.seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the cases divide by zero on purpose
        cases = load_model_tests(kind="node")
    for case in sorted(cases, key=lambda c: c.name):
        into = folder / case.name
        into.mkdir(parents=True)
        (into / "model.onnx").write_bytes(case.model.SerializeToString(deterministic=True))
        write_sets(into, case.model, case.data_sets)
        yield case.name, case.rtol, case.atol


def stored_cases(kind, folder):
    """Cases that the package carries as files: copied."""
    from onnx.backend.test.loader import load_model_tests

    for case in sorted(load_model_tests(kind=kind), key=lambda c: c.name):
        shutil.copytree(case.model_dir, folder / case.name)
        yield case.name, case.rtol, case.atol


def light_cases(folder):
    """Well-known networks with weights made by ops; the suite feeds each input 0, 1/n, 2/n …"""
    from onnx.backend.test.loader import DATA_DIR, load_model_tests

    for case in sorted(load_model_tests(kind="real"), key=lambda c: c.name):
        path = pathlib.Path(DATA_DIR) / "light" / pathlib.Path(case.url).name
        if "/light/" not in case.url or not path.exists():
            continue
        into = folder / case.name
        into.mkdir(parents=True)
        shutil.copy(path, into / "model.onnx")
        model = onnx.load(path)
        constants = {i.name for i in model.graph.initializer}
        inputs = [i for i in model.graph.input if i.name not in constants]
        values = []
        for declared in inputs:
            shape = [d.dim_value if d.HasField("dim_value") else 1 for d in declared.type.tensor_type.shape.dim]
            count = int(np.prod(shape))
            values.append((np.arange(count).reshape(shape) / count).astype(np.float32))
        sets = into / "test_data_set_0"
        sets.mkdir()
        for i, (declared, value) in enumerate(zip(inputs, values)):
            (sets / f"input_{i}.pb").write_bytes(encode(value, declared))
        for i in range(len(model.graph.output)):
            shutil.copy(path.with_name(f"{path.stem}_output_{i}.pb"), sets / f"output_{i}.pb")
        yield case.name, case.rtol, case.atol


def export(folder):
    rows = []
    for kind in KINDS:
        into = folder / kind
        if kind == "node":
            cases = node_cases(into)
        elif kind == "light":
            cases = light_cases(into)
        else:
            cases = stored_cases(kind, into)
        rows += [{"kind": kind, "name": name, "rtol": rtol, "atol": atol} for name, rtol, atol in cases]
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder
    mark = fingerprint()
    try:
        index = json.loads((folder / "index.json").read_text())
    except (OSError, ValueError):
        index = {}
    if index.get("made_by") != mark:
        work = folder.with_name(folder.name + ".part")
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        index = {"made_by": mark, "onnx": onnx.__version__, "cases": export(work)}
        (work / "index.json").write_text(json.dumps(index, indent=1) + "\n")
        shutil.rmtree(folder, ignore_errors=True)
        work.rename(folder)
    counts = {kind: sum(row["kind"] == kind for row in index["cases"]) for kind in KINDS}
    print(f"{len(index['cases'])} cases in {folder}: " + ", ".join(f"{n} {kind}" for kind, n in counts.items()))


if __name__ == "__main__":
    main()
