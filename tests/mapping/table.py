#!/usr/bin/env python3
"""The ops that rules map, as a page.

    tests/mapping/table.py TROCAR --write docs/mapping-ops.md
    tests/mapping/table.py TROCAR --check docs/mapping-ops.md
"""

import argparse
import json
import pathlib
import subprocess
import sys

HEAD = """# Ops by dialect

What the rules of this build map, written by `tests/mapping/table.py` from `trocar rules show`. A rule with several ops stands for all of
them together. *Tests* are run on engines of both dialects by `trocar rules check FROM TO`, where there are such engines; a rule without
tests says why. Ops with bodies (If, Loop, While, Case, cond) need no rule to become ONNX's If and Loop: [mapping](mapping.md).
"""


def ask(trocar, *words):
    done = subprocess.run([trocar, "rules", *words, "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["tables"]


def cell(text):
    return str(text).replace("|", "\\|")


def page(trocar):
    text = HEAD
    for pair in sorted(ask(trocar, "list")["mappings"], key=lambda row: (row["from"], row["to"])):
        rules = ask(trocar, "show", pair["from"], pair["to"])["rules"]
        text += f"\n## {pair['from']} to {pair['to']}\n\n{len(rules)} rules for {pair['ops']} types of ops.\n\n"
        text += "| ops | makes | tests |\n|---|---|---|\n"
        for rule in sorted(rules, key=lambda row: (row["ops"], row["rule"])):
            tests = rule["tests"] or rule["untested"] or "none"
            text += f"| {cell(rule['ops'])} | {cell(rule['makes']) or 'nothing new'} | {cell(tests)} |\n"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trocar")
    parser.add_argument("--write", type=pathlib.Path, metavar="PAGE")
    parser.add_argument("--check", type=pathlib.Path, metavar="PAGE")
    args = parser.parse_args()
    text = page(args.trocar)
    if args.write:
        args.write.write_text(text)
    if args.check and args.check.read_text() != text:
        sys.exit(f"{args.check} is out of date: write it anew with {sys.argv[0]} --write")


if __name__ == "__main__":
    main()
