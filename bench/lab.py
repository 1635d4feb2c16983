#!/usr/bin/env python3
"""Measures `trocar split` and `trocar compare` against what people do today, interleaved, and prints a table.

    bench/lab.py build/release build/test-models [--runs 5]

Memory is the most that a command and all that it started had in RAM at a time, shared pages counted once.
"""

import argparse
import importlib.util
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

from commands import Unavailable, megabytes, row, seconds, show

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent

# The usual lab: all tensors as outputs of one run, each node cut out with onnx.utils, all saved.
SPLIT_WITH_ONNX = """
import pathlib, sys
import numpy as np, onnx, onnx.utils, onnxruntime
path, folder = sys.argv[1], pathlib.Path(sys.argv[2])
folder.mkdir()
model = onnx.load(path)
constants = {i.name for i in model.graph.initializer}
for node in model.graph.node:
    if node.op_type in ("Identity", "Constant") and all(name in constants for name in node.input):
        constants.update(node.output)
feeds = {"input": np.random.default_rng(0).random((1, 3, 224, 224), dtype="float32")}
marked = onnx.ModelProto()
marked.CopyFrom(model)
names = [name for node in model.graph.node for name in node.output if name and name not in constants]
given = {output.name for output in model.graph.output}
marked.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in given)
session = onnxruntime.InferenceSession(marked.SerializeToString(), providers=["CPUExecutionProvider"])
values = dict(zip(names, session.run(names, feeds)), **feeds)
inferred = onnx.shape_inference.infer_shapes(model)
extractor = onnx.utils.Extractor(inferred)
for number, node in enumerate(model.graph.node):
    if node.output[0] in constants:
        continue
    layer = folder / f"{number:04}"
    layer.mkdir()
    inputs = [name for name in node.input if name and name not in constants]
    onnx.save(extractor.extract_model(inputs, list(node.output)), layer / "model.onnx")
    for i, name in enumerate(inputs):
        np.save(layer / f"input_{i}.npy", values[name])
    for i, name in enumerate(node.output):
        np.save(layer / f"output_{i}.npy", values[name])
"""

# The same with the function that documentation and tutorials name, which reads the model for each layer.
SPLIT_WITH_EXTRACT_MODEL = SPLIT_WITH_ONNX.replace(
    'onnx.save(extractor.extract_model(inputs, list(node.output)), layer / "model.onnx")',
    'onnx.utils.extract_model(path, str(layer / "model.onnx"), inputs, list(node.output))')

COMPARE_WITH_ONNXRUNTIME = """
import sys
import numpy as np, onnx, onnxruntime
model = onnx.load(sys.argv[1])
names = [name for node in model.graph.node for name in node.output if name]
given = {output.name for output in model.graph.output}
model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in given)
feeds = {"input": np.random.default_rng(0).random((1, 3, 224, 224), dtype="float32")}
runs = []
for level in (onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL, onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    runs.append(session.run(names, feeds))
for name, a, b in zip(names, *runs):
    off = np.abs(a.astype("float64") - b)
    print(name, off.max(), off.mean(), np.median(off), np.quantile(off, 0.99), (off / (np.abs(a) + 1e-12)).max())
"""


def tree(root):
    """A process and all below it."""
    children = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found, todo = [], [root]
    while todo:
        found.append(todo.pop())
        todo.extend(children.get(found[-1], []))
    return found


def proportional(process):
    try:
        for line in open(f"/proc/{process}/smaps_rollup"):
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def measure(command, with_memory):
    """Seconds of a run; or, as looking costs time, the most memory that it had."""
    if isinstance(command, tuple):
        command, folder = command
        shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=errors,
                                   stdin=subprocess.DEVNULL)
        most = 0
        while with_memory and process.poll() is None:
            most = max(most, sum(map(proportional, tree(process.pid))))
            time.sleep(0.005)
        process.wait()
        took = time.perf_counter() - start
        if process.returncode not in (0, 1):
            errors.seek(0)
            last = errors.read().decode(errors="replace").strip().splitlines()[-1:]
            raise Unavailable(f"exit {process.returncode}: {''.join(last)[:120]}")
    return most if with_memory else took


def interleaved(commands, runs, with_memory=True):
    taken = {name: [] for name in commands}
    memory, failed = {}, {}
    # The first is not counted: it warms the file cache, and memory is looked at.
    for run in range(0 if with_memory else 1, runs + 1):
        for name, command in commands.items():
            if name in failed:
                continue
            print(f"run {run} of {runs}: {name}", file=sys.stderr, flush=True)
            try:
                result = measure(command, run == 0)
            except (Unavailable, OSError) as error:
                failed[name] = str(error)
                continue
            if run == 0:
                memory[name] = result
            else:
                taken[name].append(result)
    return {name: failed.get(name) or (statistics.median(taken[name]), memory.get(name)) for name in commands}


def rows(what, commands, runs, target, met, with_memory=True):
    got = interleaved(commands, runs, with_memory)
    ours = got.pop("trocar")
    for name, peer in got.items():
        if isinstance(ours, str) or isinstance(peer, str):
            yield row(what, "unavailable" if isinstance(ours, str) else seconds(ours[0]),
                      f"{name}: unavailable: {ours if isinstance(ours, str) else peer}", target, None)
            continue
        if not with_memory:
            yield row(what, seconds(ours[0]), f"{name} {seconds(peer[0])}: {peer[0] / ours[0]:.1f}x", target,
                      met(peer[0] / ours[0], None))
            continue
        yield row(what, f"{seconds(ours[0])}, {megabytes(ours[1])}",
                  f"{name} {seconds(peer[0])}, {megabytes(peer[1])}: {peer[0] / ours[0]:.1f}x, "
                  f"{peer[1] / ours[1]:.1f}x the memory", target, met(peer[0] / ours[0], peer[1] / ours[1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--torch", type=pathlib.Path, default=ROOT / ".deps/bench-peers/bin/python",
                        help="a Python that has torch, where there is one (scripts/setup bench-peers)")
    parser.add_argument("--quick", action="store_true", help="leave out what takes minutes")
    args = parser.parse_args()
    trocar, model = args.build / "trocar", (args.models / "resnet50.onnx").resolve()
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="trocar-bench-"))
    python = sys.executable
    try:
        split = {"trocar": ([trocar, "split", model, scratch / "ours", "--tensors", "npy", "-q"], scratch / "ours"),
                 "onnx.utils.Extractor once, numpy.save": ([python, "-c", SPLIT_WITH_ONNX, model, scratch / "theirs"],
                                            scratch / "theirs")}
        slow = {"trocar": split["trocar"],
                "onnx.utils.extract_model per layer": ([python, "-c", SPLIT_WITH_EXTRACT_MODEL, model,
                                                        scratch / "theirs"], scratch / "theirs")}
        if args.torch.exists():
            (scratch / "hooks").mkdir()
            (scratch / "hooks/model.onnx").symlink_to(model)
            numpy.save(scratch / "hooks/input.npy", numpy.random.default_rng(0).random((1, 3, 224, 224), dtype="float32"))
            slow["torch hooks, torch.onnx.export per layer"] = (
                [args.torch, "-B", HERE / "peers/hook_lab.py", scratch / "hooks", "0", "2"], scratch / "hooks/lab")
        sides = ["--engine", "onnxruntime", "--engine", "onnxruntime,optimize=none"]
        compare = {"trocar": [trocar, "compare", model, *sides, "--mode", "isolated", "-q"],
                   "two all-output runs, numpy": [python, "-c", COMPARE_WITH_ONNXRUNTIME, model]}
        if importlib.util.find_spec("polygraphy"):
            compare["polygraphy, mark all"] = [python, "-c", "from polygraphy.tools import main; main()", "run", model, "--onnxrt", "--onnxrt",
                                               "--onnx-outputs", "mark", "all", "--input-shapes",
                                               "input:[1,3,224,224]"]
        # Those that take minutes only run once. Each table is shown when it is there.
        if args.quick:
            del slow["onnx.utils.extract_model per layer"]
        show(rows("split ResNet-50 into all its layers", slow, 1, "10x faster", lambda t, _: t >= 10, with_memory=False))
        show(rows("split ResNet-50 into all its layers", split, args.runs, "10x faster", lambda t, _: t >= 10))
        show(rows("compare two sides over all ops of ResNet-50", compare, args.runs, "faster, a third of the memory",
                  lambda t, m: t > 1 and m >= 3))
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
