#!/usr/bin/env python3
"""fuzz.py TROCAR [--seconds N] [--seed N] [--case N] [--kind NAME] [--engine NAME] [--keep FOLDER]: random campaigns.

Each case is a random model and a random campaign on it. Every run of every trial is audited by brute force; a second process
must give the same rows, with other workers and accelerations, in shards, or after an interruption. A case depends on the seed
and its number alone. What fails is made smaller, and the command line that shows it is printed.
"""

import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy
import onnx

import fuzz_models
from bench import everything, rows

AUDIT = "100%"
EFFECTS = ["bitflip", "bitflip", "bitflip", "stuck0", "stuck1", "set 3", "zero", "noise 0.5", "multiply -2", "random -1 1", "rate 0.002"]
ACCELERATIONS = ["prefix", "dead", "region", "channels", "screen", "twins", "batch"]
ENGINES = ["onnxruntime"] * 8 + ["reference", "openvino", "litert"]


class Failure(Exception):
    pass


class Case:
    """A model file, a data file and the arguments of a campaign."""

    def __init__(self, trocar, folder, seed, number, kind=None, engines=ENGINES):
        self.trocar, self.folder, self.number = trocar, folder, number
        self.random = numpy.random.default_rng([seed, number])
        kinds = list(fuzz_models.KINDS)
        drawn = kinds[int(self.random.integers(len(kinds)))]
        self.kind = kind or drawn
        self.model = fuzz_models.KINDS[self.kind](self.random)
        self.inputs = int(self.random.integers(1, 5))
        self.data = fuzz_models.samples(self.random, self.model, self.inputs)
        self.engine = engines[int(self.random.integers(len(engines)))]
        self.arguments = self.draw_campaign()
        self.count = 0

    def pick(self, *choices):
        return choices[int(self.random.integers(len(choices)))]

    def draw_campaign(self):
        effect = self.pick(*EFFECTS)
        targets = self.pick("weights", "weights", "activations", "reads", "inputs", "constants", "weights,activations", "weights,inputs,activations")
        if self.kind == "control":
            targets = targets.replace("constants", "weights")  # a trip count with another bit may be hours
        words = ["--target", targets, "--model", effect, "--faults", str(int(self.random.integers(5, 60))), "--seed", str(int(self.random.integers(1 << 30)))]
        together = int(self.random.integers(1, 5))
        if together > 1 and not effect.startswith("rate"):
            words += ["--together", str(together)]
        words += ["--view", self.pick("source", "deployed") if self.engine == "onnxruntime" else "source"]
        words += self.pick([], [], ["--all-readers"])
        words += self.pick([], [], ["--nan-everywhere"], ["--ranges", "observe"], ["--ranges", "clip"])
        words += self.pick([], [], ["--layers"])
        words += self.pick([], [], [], ["--inputs-per-fault", "2"])
        if not effect.startswith("rate"):
            words += self.pick([], [], [], ["--extent", "row"], ["--extent", "channel"], ["--extent", "tensor"])
            words += self.pick([], [], [], ["--per", "layer"], ["--per", "layer,bit"] if effect == "bitflip" else [])
        if effect == "bitflip":
            words += self.pick([], [], ["--bits", "exponent"], ["--burst", "2"])
        return words

    def fresh(self, suffix):
        self.count += 1
        return self.folder / f"{self.number}-{self.count}{suffix}"

    def write(self):
        self.model_path, self.data_path = self.fresh(".onnx"), self.fresh(".npy")
        onnx.save(self.model, self.model_path)
        numpy.save(self.data_path, self.data)

    def command(self, store, *more):
        return [self.trocar, "inject", str(self.model_path), "--data", str(self.data_path), *self.arguments, "--store", str(store), "-q",
                "--engine", self.engine, *more]

    def run(self, *more, store=None):
        store = store or self.fresh(".db")
        done = subprocess.run(self.command(store, *more), capture_output=True, text=True, timeout=300)
        return store, done

    def ways(self):
        """Other ways to the same rows."""
        without = [a for a in ACCELERATIONS if self.pick(True, False)]
        yield "other accelerations", lambda: self.same("--workers", "1", *sum((["--without", a] for a in without), []))
        yield self.pick(
            ("brute force", lambda: self.same("--brute-force")),
            ("no isolation", lambda: self.same("--no-isolate", "--workers", "2")),
            ("little memory", lambda: self.same("--memory", "1M")),
            ("shards", self.shards),
            ("an interruption", self.interrupted),
            ("a second process", lambda: self.same()))

    def same(self, *more):
        store, done = self.run(*more)
        if done.returncode:
            raise Failure(f"exit {done.returncode} with {' '.join(more)}: {done.stderr.strip()}")
        return store

    def shards(self):
        count = self.pick(2, 3)
        stores = [self.same("--shard", f"{i + 1}/{count}") for i in range(count)]
        merged = self.fresh(".db")
        done = subprocess.run([self.trocar, "inject", "merge", *map(str, stores), "--store", str(merged), "-q"], capture_output=True, text=True)
        if done.returncode:
            raise Failure(f"merge: exit {done.returncode}: {done.stderr.strip()}")
        return merged

    def interrupted(self):
        store = self.fresh(".db")
        process = subprocess.Popen(self.command(store), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        time.sleep(float(self.random.uniform(0.02, 0.4)))
        process.send_signal(self.pick(signal.SIGINT, signal.SIGKILL))
        process.communicate()
        if rows_of(store) is None:
            store.unlink(missing_ok=True)
            return self.same()
        _, done = self.run("--resume", store=store)
        if done.returncode:
            raise Failure(f"--resume: exit {done.returncode}: {done.stderr.strip()}")
        return store

    def runs_without_faults(self):
        """Can the engine run the model op by op? It need not know every op."""
        first = self.fresh(".npy")
        numpy.save(first, self.data[:1])
        words = [self.trocar, "run", self.model_path, "--input", first, "--engine", self.engine, "--cut", "all", "-q"]
        return subprocess.run(list(map(str, words)), capture_output=True).returncode == 0

    def replay(self, store, results):
        """A trial of each outcome, run again alone: what came of it is what the store says."""
        for trial in {row["outcome"]: row["trial"] for row in results}.values():
            done = subprocess.run([self.trocar, "inject", "replay", str(store), "--fault", str(trial), "--json"], capture_output=True, text=True)
            if done.returncode:
                raise Failure(f"replay of trial {trial}: exit {done.returncode}: {done.stderr.strip()}")
            sections = json.loads(done.stdout)["sections"]
            other = [name for name, section in sections.items() if name.startswith("input_") and section.get("same") is not True]
            if other:
                raise Failure(f"replay of trial {trial}: not as in the store: {sections[other[0]]}")

    def check(self):
        """Raises Failure. Returns the number of runs, or None where the campaign is refused for a reason that is the user's."""
        self.write()
        store, done = self.run("--audit", AUDIT)
        if done.returncode in (2, 3) or (done.returncode == 4 and not self.runs_without_faults()):
            return None
        if done.returncode:
            raise Failure(f"exit {done.returncode}: {done.stderr.strip()}")
        whole = everything(store)
        for what, way in self.ways():
            other = everything(way())
            for table in whole:
                if other[table] != whole[table]:
                    raise Failure(f"{what}: other rows in {table}: {first_difference(whole[table], other[table])}")
        self.replay(store, whole["results"])
        return len(whole["results"])


def rows_of(store):
    try:
        return rows(store, "SELECT count(*) FROM campaign")
    except Exception:
        return None


def first_difference(a, b):
    if len(a) != len(b):
        return f"{len(b)} instead of {len(a)}"
    for one, other in zip(a, b):
        if one != other:
            return ", ".join(f"{k}: {other[k]} instead of {one[k]}" for k in one if one[k] != other[k])[:600]


def shrink(case, message):
    """Fewer inputs, and the faults of the trial that differs, alone and then one by one, as long as it still fails."""
    marker = "; its faults: "
    if marker not in message:
        return None
    faults = message.split(marker, 1)[1].splitlines()[0].strip()
    best = None
    keep = [w for w in zip(case.arguments, case.arguments[1:] + [""]) if w[0] in ("--view", "--ranges")]
    extra = [word for pair in keep for word in pair] + [w for w in ("--nan-everywhere", "--layers") if w in case.arguments]

    def fails(parts, data):
        numpy.save(case.data_path, data)
        case.arguments = ["--fault", " + ".join(parts), *extra]
        _, done = case.run("--audit", AUDIT, "--workers", "1")
        return done.returncode == 70

    parts, data = faults.split(" + "), case.data
    if fails(parts, data):
        best = (parts, data)
    while best:
        parts, data = best
        smaller = [(parts[:i] + parts[i + 1:], data) for i in range(len(parts)) if len(parts) > 1]
        smaller += [(parts, numpy.delete(data, i, 0)) for i in range(len(data)) if len(data) > 1]
        for candidate in smaller:
            if fails(*candidate):
                best = candidate
                break
        else:
            fails(*best)
            break
    return best


def report(case, options, failure, keep):
    print(f"\ncase {case.number} ({case.kind}, {case.engine}, seed {options.seed}): {failure}", flush=True)
    again = f"{sys.argv[0]} {options.trocar} --seed {options.seed} --case {case.number}"
    for name in ("kind", "engine"):
        again += f" --{name} {getattr(options, name)}" if getattr(options, name) else ""
    print(f"  again: {again}")
    before = list(case.arguments)
    small = shrink(case, str(failure))
    if not small:
        case.arguments = before
        numpy.save(case.data_path, case.data)
    folder = Path(keep)
    folder.mkdir(parents=True, exist_ok=True)
    for path in (case.model_path, case.data_path):
        shutil.copy(path, folder / f"{options.seed}-{path.name}")
    case.model_path, case.data_path = (folder / f"{options.seed}-{p.name}" for p in (case.model_path, case.data_path))
    command = [word for word in case.command("STORE.db", "--audit", AUDIT)]
    print(f"  or: {shlex.join(command)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trocar")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--case", type=int)
    parser.add_argument("--kind", choices=fuzz_models.KINDS)
    parser.add_argument("--engine", help="only with this one")
    parser.add_argument("--keep", default="build/inject-fuzz", help="where the models of failures go")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = int.from_bytes(os.urandom(4), "little")
    known = subprocess.run([options.trocar, "engines"], capture_output=True, text=True).stdout
    engines = [options.engine] if options.engine else [e for e in ENGINES if e in known]
    print(f"fuzz: seed {options.seed}, {options.seconds:g} s", flush=True)
    began = time.monotonic()
    cases = failures = refused = runs = 0
    kinds = {}
    number = options.case or 0
    while options.case is not None or time.monotonic() - began < options.seconds:
        with tempfile.TemporaryDirectory() as folder:
            case = Case(options.trocar, Path(folder), options.seed, number, options.kind, engines)
            try:
                done = case.check()
                refused += done is None
                runs += done or 0
                kinds[case.kind] = kinds.get(case.kind, 0) + 1
            except (Failure, subprocess.TimeoutExpired) as failure:
                failures += 1
                report(case, options, failure, options.keep)
        cases += 1
        number += 1
        if options.case is not None:
            break
    print(f"fuzz: {cases} campaigns, {runs} runs with faults, {refused} refused, {failures} failures; {len(kinds)} kinds of models")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
