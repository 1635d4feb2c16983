#!/usr/bin/env python3
"""Measures whole commands of Trocar against the tools people use today, interleaved, and prints a table.

    bench/commands.py build/release build/test-models [--runs 7] [--json FILE]

A row is the median of the runs, its spread, the most memory a run had in RAM, and the ratio to the peer's. What
cannot be measured is "unavailable", with the reason.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

READ_WITH_ONNX = """
import json, sys, time
import onnx
def grown():
    return int(next(l for l in open("/proc/self/status") if l.startswith("VmRSS")).split()[1])
before, seconds = grown(), []
for run in range(int(sys.argv[2])):
    start = time.perf_counter()
    model = onnx.load(sys.argv[1])
    seconds.append(time.perf_counter() - start)
    if run == 0:
        after = grown()
    del model
print(json.dumps({"seconds": seconds, "own_kb": after - before}))
"""

SUMMARY_WITH_ONNX_TOOL = """
import sys
import onnx_tool
onnx_tool.model_profile(sys.argv[1], {"input": __import__("numpy").zeros((1, 3, 224, 224), "float32")})
"""

SUMMARY_WITH_TORCHINFO = """
import torchvision, torchinfo
torchinfo.summary(torchvision.models.resnet50(), (1, 3, 224, 224), verbose=1)
"""


# What is written about everywhere: all tensors marked as outputs, then saved one by one.
DUMP_WITH_ONNXRUNTIME = """
import pathlib, sys
import numpy as np, onnx, onnxruntime
model = onnx.load(sys.argv[1])
folder = pathlib.Path(sys.argv[2])
folder.mkdir()
names = [name for node in model.graph.node for name in node.output if name]
given = {output.name for output in model.graph.output}
model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in given)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
feeds = {"input": np.random.default_rng(0).random((1, 3, 224, 224), dtype="float32")}
for number, array in enumerate(session.run(names, feeds)):
    np.save(folder / f"{number}.npy", array)
"""

DUMP_WITH_TORCH_HOOKS = """
import pathlib, sys
import numpy as np, torch, torchvision
folder = pathlib.Path(sys.argv[1])
folder.mkdir()
model = torchvision.models.resnet50().eval()
def save(name):
    return lambda module, inputs, output: np.save(folder / f"{name}.npy", output.numpy())
for name, module in model.named_modules():
    module.register_forward_hook(save(name or "model"))
with torch.no_grad():
    model(torch.rand(1, 3, 224, 224))
"""


class Unavailable(Exception):
    pass


def measure(command):
    """Seconds and peak resident bytes of one run of a command. A folder that it is to make goes first."""
    if isinstance(command, tuple):
        command, folder = command
        shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=errors,
                                   stdin=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        took = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            errors.seek(0)
            last = errors.read().decode(errors="replace").strip().splitlines()[-1:]
            raise Unavailable(f"exit {process.returncode}: {''.join(last)[:120]}")
    return took, usage.ru_maxrss * 1024


def ask(command):
    """What a command prints, as JSON."""
    run = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if run.returncode != 0:
        raise Unavailable((run.stderr.strip().splitlines() or ["failed"])[-1][:120])
    return json.loads(run.stdout)


def interleaved(commands, runs):
    """{name: (median seconds, spread, peak bytes)}; a command that fails has the reason instead."""
    taken = {name: [] for name in commands}
    failed = {}
    for run in range(runs + 1):  # the first is not counted: it warms the file cache
        for name, command in commands.items():
            if name in failed:
                continue
            try:
                result = measure(command)
            except (Unavailable, OSError) as error:
                failed[name] = str(error)
                continue
            if run > 0:
                taken[name].append(result)
    out = dict(failed)
    for name, results in taken.items():
        if name not in failed:
            seconds = [s for s, _ in results]
            out[name] = (statistics.median(seconds), max(seconds) - min(seconds), max(b for _, b in results))
    return out


def row(what, ours, against, target, met):
    return {"what": what, "trocar": ours, "against": against, "target": target, "met": met}


def seconds(value):
    return f"{value * 1000:.1f} ms" if value < 1 else f"{value:.2f} s"


def megabytes(value):
    return f"{value / 1e6:.0f} MB"


def summary_rows(trocar, models, runs):
    model = models / "resnet50.onnx"
    commands = {"trocar": [trocar, "summary", model, "--shape", "input=1x3x224x224"],
                "onnx-tool": [sys.executable, "-c", SUMMARY_WITH_ONNX_TOOL, model]}
    if importlib.util.find_spec("torchinfo") and importlib.util.find_spec("torchvision"):
        commands["torchinfo"] = [sys.executable, "-c", SUMMARY_WITH_TORCHINFO]
    got = interleaved(commands, runs)
    ours = got["trocar"]
    for name, factor in (("onnx-tool", 3), ("torchinfo", 20)):
        peer = got.get(name, "not installed")
        target = f"{factor}x faster" + (", half the memory" if name == "onnx-tool" else "")
        if isinstance(ours, str) or isinstance(peer, str):
            why = ours if isinstance(ours, str) else peer
            yield row("summary of ResNet-50", "unavailable" if isinstance(ours, str) else seconds(ours[0]), f"{name}: unavailable: {why}",
                      target, None)
            continue
        met = peer[0] >= factor * ours[0] and (name != "onnx-tool" or peer[2] >= 2 * ours[2])
        yield row("summary of ResNet-50", f"{seconds(ours[0])} ±{seconds(ours[1] / 2)}, {megabytes(ours[2])}",
                  f"{name} {seconds(peer[0])} ±{seconds(peer[1] / 2)}, {megabytes(peer[2])}: {peer[0] / ours[0]:.1f}x, "
                  f"{peer[2] / ours[2]:.1f}x the memory", target, met)


def dump_rows(trocar, models, runs, scratch):
    model = models / "resnet50.onnx"
    ours, theirs, hooks = (scratch / name for name in ("ours", "theirs", "hooks"))
    commands = {"trocar": ([trocar, "dump", model, "--fill", "random", "--shape", "batch=1", "--tensors", "-q", "-o", ours], ours),
                "ONNX Runtime, all outputs, numpy.save": ([sys.executable, "-c", DUMP_WITH_ONNXRUNTIME, model, theirs], theirs)}
    if importlib.util.find_spec("torch") and importlib.util.find_spec("torchvision"):
        commands["torch hooks, numpy.save"] = ([sys.executable, "-c", DUMP_WITH_TORCH_HOOKS, hooks], hooks)
    got = interleaved(commands, runs)
    what, target = "dump all tensors of ResNet-50 to .npy", "2x faster, a third of the memory"
    mine = got["trocar"]
    for name in ("ONNX Runtime, all outputs, numpy.save", "torch hooks, numpy.save"):
        peer = got.get(name, "not installed")
        if isinstance(mine, str) or isinstance(peer, str):
            yield row(what, "unavailable" if isinstance(mine, str) else seconds(mine[0]),
                      f"{name}: unavailable: {mine if isinstance(mine, str) else peer}", target, None)
            continue
        yield row(what, f"{seconds(mine[0])} ±{seconds(mine[1] / 2)}, {megabytes(mine[2])}",
                  f"{name} {seconds(peer[0])} ±{seconds(peer[1] / 2)}, {megabytes(peer[2])}: {peer[0] / mine[0]:.1f}x, "
                  f"{peer[2] / mine[2]:.1f}x the memory", target, peer[0] >= 2 * mine[0] and peer[2] >= 3 * mine[2])


def read_row(build, models, runs):
    model = models / "dense_100mb.onnx"
    target = "20x faster, grows < 10 MB"
    try:
        ours = ask([build / "bench" / "bench_read", model, runs])
        peer = ask([sys.executable, "-c", READ_WITH_ONNX, model, runs])
    except (Unavailable, OSError) as error:
        return row("read a 100 MB file", "unavailable", str(error), target, None)
    mine, theirs = statistics.median(ours["seconds"]), statistics.median(peer["seconds"])
    grown = (ours["own_kb"] + ours["file_kb"]) * 1024
    return row("read a 100 MB file", f"{mine * 1e3:.2f} ms, grows {grown / 1e6:.1f} MB",
               f"onnx.load {seconds(theirs)}, grows {megabytes(peer['own_kb'] * 1024)}: {theirs / mine:.0f}x", target,
               theirs >= 20 * mine and grown < 10e6)


def large_rows(trocar, models, scratch):
    model = models / "external_3gb.onnx"
    commands = {
        "summary --no-run of 3 GiB": [trocar, "summary", "--no-run", model],
        "extract one layer of 3 GiB": [trocar, "extract", model, scratch / "part.onnx", "--from", "/fc9/MatMul_output_0",
                                       "--to", "/fc10/MatMul_output_0"],
    }
    for what, command in commands.items():
        try:
            took, peak = measure(command)
            yield row(what, f"{seconds(took)}, {megabytes(peak)}", "", "< 300 MB in RAM", peak < 300e6)
        except (Unavailable, OSError) as error:
            yield row(what, "unavailable", str(error), "< 300 MB in RAM", None)


def show(rows):
    titles = {"what": "what", "trocar": "trocar", "against": "against", "target": "target", "met": "met"}
    marks = {True: "yes", False: "NO", None: "–"}
    lines = [titles] + [{**r, "met": marks[r["met"]]} for r in rows]
    widths = {key: max(len(line[key]) for line in lines) for key in titles}
    for line in lines:
        print("  ".join(line[key].ljust(widths[key]) for key in titles).rstrip(), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    trocar = args.build / "trocar"
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="trocar-bench-"))
    try:
        rows = [*summary_rows(trocar, args.models, args.runs), *dump_rows(trocar, args.models, args.runs, scratch),
                read_row(args.build, args.models, args.runs), *large_rows(trocar, args.models, scratch)]
    finally:
        shutil.rmtree(scratch)
    show(rows)
    if args.json:
        args.json.write_text(json.dumps({"runs": args.runs, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
