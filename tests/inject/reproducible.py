#!/usr/bin/env python3
"""reproducible.py TROCAR: one campaign gives the same rows in every process, in the view that is the default.

Engines may order and name what they make by addresses, which differ from process to process. On graphs with parallel changes of
layout: five processes, shards that are merged, and a campaign that is killed and resumed.
"""

import sys
import tempfile
from pathlib import Path

import numpy

import fuzz_models
from bench import everything
from fuzz import Case, Failure, first_difference


def check(trocar, folder, number, kind):
    case = Case(trocar, Path(folder), 7, number, kind, ["onnxruntime"])
    case.data = fuzz_models.samples(case.random, case.model, 3)
    case.arguments = ["--target", "weights,activations", "--faults", "120", "--per", "layer", "--seed", str(number)]
    case.write()
    whole = everything(case.same())
    wrong = []
    ways = [(f"process {i}", case.same) for i in range(2, 6)] + [("shards", case.shards), ("an interruption", case.interrupted)]
    for what, way in ways:
        try:
            other = everything(way())
        except Failure as failure:
            wrong.append(f"{kind} {number}, {what}: {failure}")
            continue
        wrong += [f"{kind} {number}, {what}: other rows in {table}: {first_difference(whole[table], other[table])}"
                  for table in whole if other[table] != whole[table]]
    tokens = [row["fault"] for row in whole["faults"] if "_token_" in row["fault"]]
    return wrong + [f"{kind} {number}: a name of the engine's own counting: {fault}" for fault in tokens[:1]]


def main():
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for number, kind in enumerate(["shuffle", "shuffle", "shuffle", "vision", "control", "decoder"]):
            wrong += check(sys.argv[1], folder, number, kind)
    for line in wrong:
        print(line)
    print(f"{len(wrong)} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    numpy.seterr(all="ignore")
    sys.exit(main())
