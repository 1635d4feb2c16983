#!/usr/bin/env python3
"""Faults per second of Trocar and of what people use today: the same model, the same input, random single-bit faults.

    bench/peers/compare.py build/release/trocar build/test-models/resnet50.onnx --python .deps/bench-peers/bin/python

Every experiment is a process of its own, one after the other, round after round; a number is the median of the
rounds. Of the peers only the runs with faults are counted, of Trocar the whole command: reading the model, compiling,
golden runs, trying which parts of ops have the bits of the whole, the report.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

HERE = pathlib.Path(__file__).resolve().parent
PEERS = {"neurons": {"PyTorchFI": ("pytorchfi_neurons.py", 15), "hook": ("hook_neurons.py", 10)},
         "weights": {"PyTorchFI": ("pytorchfi_weights.py", 15), "flip and undo": ("hook_weights.py", 10)}}
OURS = {"trocar": ("deployed", 1), "trocar, source view": ("source", 0.25)}  # the view, share of the faults


class Failed(Exception):
    pass


def lines_of(script):
    """Lines of an experiment: not empty, not a comment."""
    lines = [line.strip() for line in (HERE / script).read_text().splitlines()]
    return sum(1 for line in lines if line and not line.startswith(("#", '"""')))


def measure(command, environment=None):
    """What it printed, seconds, seconds of CPU, peak resident bytes."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        process = subprocess.Popen([str(word) for word in command], stdout=out, stderr=errors, stdin=subprocess.DEVNULL,
                                   env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            raise Failed((errors.read().decode(errors="replace").strip().splitlines() or ["failed"])[-1][:160])
        out.seek(0)
        return out.read().decode(), seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def run_ours(options, target, view, faults, threads, seed):
    command = (HERE / f"trocar_{target}.sh").read_text().split()
    command = [options.trocar, *command[1:2], options.folder / "model.onnx", "--input", options.folder / "input.npy",
               *command[command.index("--target"):command.index("--faults")]]
    command += ["--faults", faults, "--view", view, "--threads", threads, "--seed", seed, "-q"]
    _, seconds, busy, memory = measure(command)
    return {"rate": faults / seconds, "busy_rate": faults / busy, "memory": memory, "cores": busy / seconds}


def run_peer(options, script, threads):
    # No more threads than asked for, whoever asks for them.
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads))
    text, _, _, memory = measure([options.python, "-B", HERE / script, options.folder, options.peer_faults, threads], environment)
    said = json.loads(text.strip().splitlines()[-1])
    return {"rate": said["faults"] / said["seconds"], "busy_rate": said["faults"] / said["busy"], "memory": memory,
            "cores": said["busy"] / said["seconds"], "with": said["with"]}


def rounds(options, target, threads):
    """{name: [result of each round]}; one that fails has the reason instead."""
    got = {}
    for number in range(options.rounds):
        todo = {name: lambda view=view, share=share: run_ours(options, target, view, max(1, round(options.faults * share)), threads, number)
                for name, (view, share) in OURS.items()}
        todo |= {name: lambda script=script: run_peer(options, script, threads) for name, (script, _) in PEERS[target].items()}
        for name, run in todo.items():
            if isinstance(got.get(name), str):
                continue
            try:
                got.setdefault(name, []).append(run())
            except (Failed, OSError, ValueError) as error:
                got[name] = str(error)
            if sys.stderr.isatty():
                print(f"\r{target}, {threads} threads, round {number + 1}: {name:<30}", end="\r", file=sys.stderr, flush=True)
    return got


def middle(results, key):
    return statistics.median(result[key] for result in results)


def ratio(ours, theirs, key):
    """Of the same round each: what else the machine does hits both alike."""
    return statistics.median(a[key] / b[key] for a, b in zip(ours, theirs))


def verdict(row):
    """With one thread by the CPU's time; else by the clock, which says nothing where there were not as many cores."""
    if not row["wanted"] or "ratio" not in row:
        return ""
    if row["threads"] > 1 and min(row["cores"], row["our_cores"]) < 0.6 * row["threads"]:
        return "busy"
    return "met" if row["busy_ratio" if row["threads"] == 1 else "ratio"] >= row["wanted"] else "MISSED"


def table(target, threads, got):
    ours = got["trocar"]
    made = []
    for name, results in got.items():
        script, wanted = PEERS[target].get(name, (f"trocar_{target}.sh", None))
        row = {"target": target, "threads": threads, "name": name, "lines": lines_of(script), "wanted": wanted}
        if isinstance(results, str):
            row["unavailable"] = results
        else:
            row |= {key: middle(results, key) for key in ("rate", "busy_rate", "memory", "cores")}
            if not isinstance(ours, str) and name != "trocar":
                row |= {"ratio": ratio(ours, results, "rate"), "busy_ratio": ratio(ours, results, "busy_rate"),
                        "our_cores": middle(ours, "cores")}
        made.append(row)
    return made


def show_head():
    print(f"{'Faults in':<10} {'Threads':>7}  {'With':<22} {'faults/s':>9} {'per CPU-s':>10} {'cores':>6}  {'trocar is':>10} "
          f"{'by CPU':>8} {'target':>7}  {'':<6} {'peak MB':>8} {'lines':>6}", flush=True)


def show(rows):
    for row in rows:
        start = f"{row['target']:<10} {row['threads']:>7}  {row['name']:<22} "
        if "unavailable" in row:
            print(start + f"unavailable: {row['unavailable']}")
            continue
        wanted = f"{row['wanted']}x" if row["wanted"] else ""
        times = [f"{row[key]:.1f}x" if key in row else "" for key in ("ratio", "busy_ratio")]
        print(start + f"{row['rate']:>9.1f} {row['busy_rate']:>10.1f} {row['cores']:>6.2f}  {times[0]:>10} {times[1]:>8} {wanted:>7}  "
              f"{verdict(row):<6} {row['memory'] / 1e6:>8.0f} {row['lines']:>6}", flush=True)


def same_model(options):
    """The largest difference of the logits, as a share of the largest of them."""
    measure([options.python, "-B", HERE / "golden.py", options.folder, 0, 1])
    measure([options.trocar, "run", options.folder / "model.onnx", "--input", options.folder / "input.npy", "--output",
             options.folder / "out", "-q"])
    theirs, ours = numpy.load(options.folder / "torch.npy"), numpy.load(options.folder / "out" / "logits.npy")
    off = float(abs(ours - theirs).max() / abs(ours).max())
    if not off < 1e-3:
        sys.exit(f"compare.py: torch's ResNet-50 is another model: its outputs are off by {off:.2g}")
    return off


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trocar", type=pathlib.Path)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--python", required=True, help="of the environment that has the peers")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("build/bench-peers"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--faults", type=int, default=1000, help="of a campaign of Trocar's")
    parser.add_argument("--peer-faults", type=int, default=30, help="of a run of a peer: each takes as long as another")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    linked = options.folder / "model.onnx"
    linked.unlink(missing_ok=True)
    linked.symlink_to(options.model.resolve())
    numpy.save(options.folder / "input.npy", numpy.random.default_rng(0).uniform(-2, 2, (1, 3, 224, 224)).astype(numpy.float32))
    off = same_model(options)
    print(f"ResNet-50, batch 1, a random bit of a random element of a convolution's output or filters, f32; medians of {options.rounds} rounds, "
          f"interleaved.\nThe outputs without faults differ by {off:.1g} of the largest. `cores` is what a process got of the machine; "
          f"`by CPU` compares\nfaults per second of CPU, which other work on the machine disturbs less. With one thread the target is\nheld against that; with more "
          f"against the clock, unless the machine was busy.")
    show_head()
    rows = []
    for threads in map(int, options.threads.split(",")):
        for target in PEERS:
            rows += table(target, threads, rounds(options, target, threads))
            show([row for row in rows if (row["target"], row["threads"]) == (target, threads)])
    if options.json:
        options.json.write_text(json.dumps({"rounds": options.rounds, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
