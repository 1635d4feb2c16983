"""Plants defects and lets `trocar bisect` find them; the reproducer must show them without Trocar.

    find.py TROCAR MODELS [MODEL...]
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx

import plant

trocar, models = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
failures = []
tried = 0


def report(arguments):
    done = subprocess.run([trocar, *map(str, arguments), "--json"], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{arguments}: exit {done.returncode}: {done.stderr}")
    return done.returncode, json.loads(done.stdout)


def scalars(answer):
    return {k: v for section in answer["sections"].values() for k, v in section.items()}


def check(label, model, kind, place, graph=None, inside=None):
    global tried
    tried += 1
    planted, expected = plant.plant(model, kind, place, graph)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        onnx.save(model, folder / "a.onnx")
        onnx.save(planted, folder / "b.onnx")
        code, answer = report(["bisect", folder / "a.onnx", "--against", folder / "b.onnx",
                               "-o", folder / "repro"])
        found = scalars(answer).get("layer")
        where = scalars(answer).get("inside")
        if code != 1 or found != expected or (inside and where != inside):
            failures.append(f"{label}: {kind} in {expected}: found {found} in {where}, exit {code}; "
                            f"{answer['notes']}")
            return
        again = subprocess.run([sys.executable, folder / "repro" / "reproduce.py"],
                               capture_output=True, text=True)
        if again.returncode != 1 or "they differ" not in again.stdout:
            failures.append(f"{label}: {kind} in {expected}: the reproducer ended with "
                            f"{again.returncode}: {again.stdout}{again.stderr}")


rng = np.random.default_rng(1)
small = {
    "chain": (plant.make_chain(rng), None, None),
    "if": (plant.make_if(rng), plant.branch, "If 'choice' then_branch"),
    "loop": (plant.make_loop(rng), plant.body, "Loop 'rounds' body, iteration 0"),
    "growing": (plant.make_growing(rng), plant.body, "Loop 'rounds' body, iteration 2"),
    "scan": (plant.make_scan(rng), plant.body, "Scan 'rounds' body, iteration 2"),
}
for label, (model, graph, path) in small.items():
    inside = graph(model) if graph else model.graph
    for kind in plant.DEFECTS:
        where = plant.places(inside, kind)
        few = where[-1:] if label == "loop" else sorted({*where[:1], *where[-1:]})
        for place in (where if "--all" in sys.argv else few):
            check(label, model, kind, place, graph, path)
residual = onnx.load(models / "resnet18.onnx")
for kind in plant.DEFECTS:
    if where := plant.places(residual.graph, kind):
        check("residual", residual, kind, where[len(where) * 2 // 3])

# Nothing planted: nothing found.
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "a.onnx"
    onnx.save(small["chain"][0], path)
    code, answer = report(["bisect", path, "--against", path])
    if code != 0:
        failures.append("a model differs from itself")
for line in failures:
    print(line)
print(f"{tried} defects planted, {len(failures)} not found where they are")
sys.exit(1 if failures else 0)
