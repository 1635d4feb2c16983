#!/usr/bin/env python3
"""Makes the models that the tests and benchmarks use, the same bytes each time.

    tests/models/make.py build/test-models            all but the benchmarks' (a few seconds)
    tests/models/make.py build/test-models --bench    the large ones too
    tests/models/make.py build/test-models --try      and runs each on ONNX Runtime

What was made stands in FOLDER/index.json. Nothing is done when it was made by these same scripts. Needs the
packages `onnx` and `numpy`; scripts/setup puts them into .deps/python.
"""

import argparse
import fnmatch
import hashlib
import json
import os
import pathlib
import sys

import numpy as np
import onnx

import attempt
import build
import control  # noqa: F401  (fills the catalogue, as do those below)
import decisions  # noqa: F401
import encoding  # noqa: F401
import large  # noqa: F401
import odd  # noqa: F401
import sequence  # noqa: F401
import values  # noqa: F401
import vision  # noqa: F401


def fingerprint():
    """Changes whenever the scripts or the packages do."""
    digest = hashlib.sha256(f"{onnx.__version__} {np.__version__}".encode())
    for path in sorted(pathlib.Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def checked(entry, path):
    """Holds the entry to what it says of onnx.checker."""
    try:
        onnx.checker.check_model(str(path))
    except Exception as error:  # the checker has several kinds
        if not entry.check:
            raise SystemExit(f"make.py: onnx.checker refuses {entry.name}: {error}")
        return f"refused: {entry.check}"
    if entry.check:
        raise SystemExit(f"make.py: onnx.checker takes {entry.name}, which was to be refused: {entry.check}")
    return "passed"


def make(entry, folder):
    made = entry.make(folder)
    data = made if isinstance(made, bytes) else made.SerializeToString(deterministic=True)
    path = folder / f"{entry.name}.onnx"
    temporary = path.with_suffix(".onnx.part")
    temporary.write_bytes(data)
    os.replace(temporary, path)
    return {
        "name": entry.name,
        "file": path.name,
        "what": entry.what,
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "files": entry.files,
        "runs": entry.runs,
        "shapes": entry.shapes,
        "checker": checked(entry, path),
        "bench": entry.bench,
    }


def read_index(folder):
    try:
        return json.loads((folder / "index.json").read_text())
    except (OSError, ValueError):
        return {}


def whole(folder, row):
    """Are the files of an index row there?"""
    path = folder / row["file"]
    return path.exists() and path.stat().st_size == row["bytes"] and all((folder / f).exists() for f in row["files"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--bench", action="store_true", help="make the large models of the benchmarks too")
    parser.add_argument("--only", metavar="GLOB", default="*", help="make only models whose name matches")
    parser.add_argument("--try", dest="attempt", action="store_true", help="run each model on ONNX Runtime")
    args = parser.parse_args()

    args.folder.mkdir(parents=True, exist_ok=True)
    index = read_index(args.folder)
    mark = fingerprint()
    rows = {row["name"]: row for row in index.get("models", [])} if index.get("made_by") == mark else {}
    wanted = [e for e in build.CATALOGUE if fnmatch.fnmatch(e.name, args.only) and (args.bench or not e.bench)]
    made = 0
    for entry in wanted:
        if entry.name in rows and whole(args.folder, rows[entry.name]):
            continue
        rows[entry.name] = make(entry, args.folder)
        made += 1
    order = {entry.name: i for i, entry in enumerate(build.CATALOGUE)}
    index = {"made_by": mark, "onnx": onnx.__version__, "models": sorted(rows.values(), key=lambda r: order[r["name"]])}
    temporary = args.folder / "index.json.part"
    temporary.write_text(json.dumps(index, indent=1) + "\n")
    os.replace(temporary, args.folder / "index.json")
    print(f"{len(wanted)} models in {args.folder}, {made} made now")
    if args.attempt:
        sys.exit(attempt.run_all(args.folder, [rows[e.name] for e in wanted]))


if __name__ == "__main__":
    main()
