#!/usr/bin/env python3
"""Measures what the project promises about speed and prints it as a table.

    bench/run.py [--quick] [--only WORD] [--json FILE]

Every figure is a ratio against a named baseline, taken interleaved in one run, with medians. `make bench` builds what
is needed and calls this.
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

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEPS = pathlib.Path(os.environ.get("TROCAR_DEPS", ROOT / ".deps"))
BUILD = ROOT / "build" / "release"
MODELS = ROOT / "build" / "test-models"
BENCH = ROOT / "build" / "bench" / "trocar_bench"


def library():
    found = sorted(DEPS.glob("onnxruntime-*/onnxruntime/capi/libonnxruntime.so.*"))
    if not found:
        sys.exit("bench: no ONNX Runtime in the dependency folder; run scripts/setup bench")
    return max(found, key=lambda p: tuple(int(n) for n in p.name.split(".so.")[1].split(".")))


def measured(command, **options):
    """Seconds and peak resident bytes of a command; fails when it does."""
    start = time.perf_counter()
    process = subprocess.Popen([str(c) for c in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **options)
    message = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    spent = time.perf_counter() - start
    if status != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: {message.decode(errors='replace').strip()[-400:]}")
    return spent, usage.ru_maxrss * 1024


def bench(*arguments):
    done = subprocess.run([str(BENCH), *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)


def interleaved(commands, rounds):
    """Medians of seconds and of peak memory for each command, run in turn."""
    samples = [[] for _ in commands]
    for round_number in range(-1, rounds):
        for which, command in enumerate(commands):
            result = measured(command)
            if round_number >= 0:
                samples[which].append(result)
    return [(statistics.median(s for s, _ in rows), statistics.median(m for _, m in rows)) for rows in samples]


class Table:
    def __init__(self):
        self.rows = []

    def add(self, what, against, measured_text, target, met):
        self.rows.append({"what": what, "against": against, "measured": measured_text, "target": target, "met": met})
        print(f"  {'met   ' if met else 'MISSED'}  {what}: {measured_text} ({target})", flush=True)

    def text(self):
        heads = ("what", "against", "measured", "target", "met")
        rows = [[r["what"], r["against"], r["measured"], r["target"], "yes" if r["met"] else "NO"] for r in self.rows]
        widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(5)]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in [heads, *rows]]
        lines.insert(1, "  ".join("-" * w for w in widths))
        return "\n".join(lines)


def runs(table, quick):
    for name in ("resnet50.onnx", "mobilenetv2.onnx"):
        for threads in (1, 2):
            r = bench("run", MODELS / name, library(), threads, 15 if quick else 60)
            table.add(f"no cut, {name}, {threads} thread(s)", f"ONNX Runtime directly ({r['direct'] * 1e3:.2f} ms)",
                      f"{r['whole_ratio']:.3f}x", "<= 1.02x", r["whole_ratio"] <= 1.02)
            table.add(f"cut at every op ({r['programs']} programs), {name}, {threads} thread(s)",
                      f"ONNX Runtime whole, optimisations off ({r['direct_unoptimised'] * 1e3:.2f} ms)",
                      f"{r['cut_ratio']:.3f}x", "<= 1.15x", r["cut_ratio"] <= 1.15)
    for path in (MODELS / "lstm.onnx", DEPS / "models" / "silero_vad.onnx", DEPS / "models" / "silero_vad_op18_ifless.onnx"):
        if not path.exists():
            print(f"  skipped: {path} is not there")
            continue
        r = bench("run", path, library(), 1, 100 if quick else 400)
        per_cut = (r["cut"] - r["direct_unoptimised"]) / max(1, r["programs"]) * 1e6
        table.add(f"cut at every op ({r['programs']} programs), {path.name}",
                  f"ONNX Runtime whole, optimisations off ({r['direct_unoptimised'] * 1e6:.0f} us)",
                  f"{per_cut:.2f} us per cut", "<= 4 us", per_cut <= 4)


def reading(table, quick):
    path = MODELS / "resnet50.onnx"
    python = DEPS / "python" / "bin" / "python"
    code = ("import sys, time, onnx; start = time.perf_counter(); m = onnx.load(sys.argv[1]); "
            "print(time.perf_counter() - start)")
    ours, theirs, growth = [], [], []
    for _ in range(3 if quick else 9):
        r = bench("read", path)
        ours.append(r["seconds"])
        growth.append(r["resident_growth"])
        done = subprocess.run([python, "-c", code, path], capture_output=True, text=True, check=True)
        theirs.append(float(done.stdout))
    ratio = statistics.median(theirs) / statistics.median(ours)
    table.add(f"read {path.name} ({path.stat().st_size / 1e6:.0f} MB) into a Graph",
              f"onnx.load ({statistics.median(theirs) * 1e3:.0f} ms)",
              f"{ratio:.0f}x faster ({statistics.median(ours) * 1e3:.2f} ms)", ">= 20x", ratio >= 20)
    grown = statistics.median(growth)
    table.add("resident memory growth of that", "-", f"{grown / 1e6:.1f} MB", "< 10 MB", grown < 10e6)


def summaries(table, quick):
    path = MODELS / "resnet50.onnx"
    python = DEPS / "bench-python" / "bin" / "python"
    trocar = [BUILD / "trocar", "summary", path, "-q"]
    code = "import sys, onnx_tool; onnx_tool.model_profile(sys.argv[1], save_profile='/dev/null')"
    if not python.exists():
        print("  skipped: onnx-tool is not there; run scripts/setup bench")
        return
    (ours, our_memory), (theirs, their_memory) = interleaved([trocar, [python, "-c", code, path]], 3 if quick else 9)
    table.add("summary of ResNet-50, whole command", f"onnx-tool ({theirs:.2f} s)",
              f"{theirs / ours:.1f}x faster ({ours:.3f} s)", ">= 3x", theirs / ours >= 3)
    table.add("peak memory of that", f"onnx-tool ({their_memory / 1e6:.0f} MB)",
              f"{our_memory / their_memory:.2f}x ({our_memory / 1e6:.0f} MB)", "<= 0.5x", our_memory <= their_memory / 2)


def large(table, quick):
    del quick
    with tempfile.TemporaryDirectory(prefix="trocar-bench-") as scratch:
        folder = pathlib.Path(scratch)
        maker = ROOT / "tests" / "models" / "large.py"
        subprocess.run([DEPS / "python" / "bin" / "python", maker, folder], check=True, stdout=subprocess.DEVNULL)
        model = next(folder.rglob("*.onnx"))
        for what, command in (
            ("summary --no-run", [BUILD / "trocar", "summary", model, "--no-run", "-q"]),
            ("extract", [BUILD / "trocar", "extract", model, folder / "part.onnx", "--to", last_tensor(model), "-q"]),
        ):
            spent, memory = measured(command)
            table.add(f"{what} of a 3 GB model with external data", "-", f"{memory / 1e6:.0f} MB ({spent:.2f} s)",
                      "< 300 MB", memory < 300e6)


def last_tensor(model):
    done = subprocess.run([BUILD / "trocar", "summary", model, "--no-run", "--no-weights", "--json"], capture_output=True,
                          text=True, check=True)
    rows = json.loads(done.stdout)["tables"]["ops"]
    return rows[len(rows) // 2]["output_names"][0]


def graph(table, quick):
    del quick
    r = bench("graph")
    ratio = max(r.values()) / min(r.values())
    text = ", ".join(f"{float(v) * 1e6:.2f}" for v in r.values())
    table.add("graph work per op at 1,000, 10,000 and 100,000 ops", "itself", f"{ratio:.2f}x ({text} us)", "flat within 2x",
              ratio <= 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--only", default="", help="run, read, summary, large or graph")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    table = Table()
    for word, part in (("run", runs), ("read", reading), ("summary", summaries), ("large", large), ("graph", graph)):
        if args.only in ("", word):
            print(f"{word} …", flush=True)
            part(table, args.quick)
    print("\n" + table.text())
    if args.json:
        args.json.write_text(json.dumps(table.rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
