#!/usr/bin/env python3
"""oracle.py TROCAR [PART...]: what `trocar inject` says of faults, against numpy, scipy and ONNX Runtime alone.

Small models are made, faults injected, and every row of the store compared with what reference.py
computes from the text of the fault.
"""

import sys
import tempfile
import time
from pathlib import Path

import decisions
import drawn
import elements
import ops
import places
import sparse
from bench import KNOWN, Bench

PARTS = {name[5:]: function for module in (elements, places, ops, sparse, drawn, decisions) for name, function in vars(module).items()
         if name.startswith("part_")}



def main():
    trocar, *wanted = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(trocar, Path(folder))
        for name, part in PARTS.items():
            if wanted and name not in wanted:
                continue
            bench.part = name
            began = time.monotonic()
            before = bench.compared
            try:
                part(bench)
            except RuntimeError as error:
                bench.wrong.append(str(error))
            print(f"{name}: {bench.compared - before} comparisons, {time.monotonic() - began:.1f} s", flush=True)
    for place, (part, pattern, _, _) in enumerate(KNOWN):
        if place not in bench.known and (not wanted or part in wanted):
            bench.wrong.append(f"{part}: {pattern}: agrees now; take it out of KNOWN")
    for line in bench.wrong:
        print(line)
    print(f"{bench.compared} comparisons, {len(bench.wrong)} disagreements, {len(bench.known)} kinds of them known besides")
    return 1 if bench.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
