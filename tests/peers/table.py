#!/usr/bin/env python3
"""The ops of the reference engine, as ONNX's backend tests show them.

    tests/peers/table.py build/peers tests/peers/reference.txt --write docs/reference-engine.md
    tests/peers/table.py build/peers tests/peers/reference.txt --check docs/reference-engine.md

An op is listed when a case that holds it passes, with the versions of the op in such cases.
"""

import argparse
import collections
import json
import pathlib
import sys

import onnx

HEAD = """# The ops of the reference engine

`--engine reference` runs models on Trocar's own engine: plain loops in double precision, each op rounded once. This page is written by
`tests/peers/table.py` from the backend tests of onnx {onnx}: {passed} of {total} cases pass. An op stands here when a case that holds it
passes; *versions* are those of the op in such cases (the op set that brought them). `tests/peers/reference.txt` says why the others do
not pass.

| op | versions | cases passed | of |
|---|---|---:|---:|
"""


def nodes(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for body in [attribute.g, *attribute.graphs]:
                yield from nodes(body)


def version(op, opset):
    try:
        return onnx.defs.get_schema(op, opset, "").since_version
    except onnx.defs.SchemaError:
        return opset


def page(folder, listed):
    index = json.loads((folder / "index.json").read_text())
    failing = {line.split("\t")[0] for line in listed.read_text().splitlines() if line and not line.startswith("#")}
    total, passed, versions = collections.Counter(), collections.Counter(), collections.defaultdict(set)
    for row in index["cases"]:
        name = f"{row['kind']}/{row['name']}"
        model = onnx.load(folder / name / "model.onnx", load_external_data=False)
        opset = max((s.version for s in model.opset_import if s.domain in ("", "ai.onnx")), default=0)
        for op in {node.op_type for node in nodes(model.graph) if node.domain in ("", "ai.onnx")}:
            total[op] += 1
            if name not in failing:
                passed[op] += 1
                versions[op].add(version(op, opset))
    head = HEAD.format(onnx=index["onnx"], passed=len(index["cases"]) - len(failing), total=len(index["cases"]))
    rows = (f"| {op} | {', '.join(map(str, sorted(versions[op])))} | {passed[op]} | {total[op]} |\n" for op in sorted(passed))
    return head + "".join(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("listed", type=pathlib.Path)
    parser.add_argument("--write", type=pathlib.Path, metavar="PAGE")
    parser.add_argument("--check", type=pathlib.Path, metavar="PAGE")
    args = parser.parse_args()
    text = page(args.folder, args.listed)
    if args.write:
        args.write.write_text(text)
    if args.check and args.check.read_text() != text:
        sys.exit(f"{args.check} is out of date: write it anew with {sys.argv[0]} --write")


if __name__ == "__main__":
    main()
