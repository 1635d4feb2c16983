#!/usr/bin/env python3
"""Writes src/formats/torchscript/schemas.txt: what arguments the ops of TorchScript take, as torch itself says.

Run by hand with a Python that has torch (made with torch 2.15.0). The head of the file describes its lines.
"""

import pathlib
import re

import torch

HEAD = """\
# Arguments of the ops that TorchScript calls, in the order in which torch tries the overloads of an op.
# Written by tests/formats/torchscript/schemas.py with torch {version}.
# A line: the op, then for each overload its name, its arguments and what it returns. An argument: name:kind, then '=' where it
# may be left out, '!' where it is written to, '&' where a result is a view of it; '*' before those that are given by name only.
# Kinds: T tensor, i int, f float, b bool, n number, s text, c complex, d element type, D device, L layout, M memory format,
# G generator, E value of an enumeration, t u anything of one kind, A anything; [] a list, ? or None, <K V> a dictionary.
"""
KINDS = {"Tensor": "T", "int": "i", "SymInt": "i", "float": "f", "bool": "b", "Scalar": "n", "number": "n", "str": "s",
         "complex": "c", "ScalarType": "d", "Device": "D", "Layout": "L", "MemoryFormat": "M", "Generator": "G", "t": "t",
         "Any": "A", "AnyEnumType": "E", "tVal": "u", "NoneType": "N", "Stream": "A", "QScheme": "i"}
UNWANTED = re.compile(r"backward|^_foreach|^_fused|cudnn|_cslt|^_nested|^_sparse|_jagged|miopen|^_test|^_mps|mkldnn|xnnpack|"
                      r"^_thnn|^_cuda|^_scaled|^_flash|^_efficient|^_padded|_copy$|^_amp|^_mkldnn|^_validate|^_assert_s|"
                      r"^_use_c|^_fw_|^_fake_q|^_segment|^_transformer|^_triton|^_spdiags|^_spsolve|^sym_|^_dyn_|^_sobol|"
                      r"^_dirichlet|^_resize|^_batch_norm_with|^_conj_p|^_cholesky|^_linalg|^_local_scalar|^MKLDNN|_mtia$")


def kind(text):
    text = re.sub(r"\([a-z](?:!| -> \*|\|[a-z])?\)|\(\*\)|\([a-z]\|[a-z]\)", "", text).strip()
    if text.endswith("?"):
        return kind(text[:-1]) + "?"
    if match := re.fullmatch(r"(.*)\[(\d*)\]", text):
        return f"{kind(match[1])}[{match[2]}]"
    if match := re.fullmatch(r"Dict\((\w+), (\w+)\)", text):
        return f"<{kind(match[1])} {kind(match[2])}>"
    return KINDS.get(text, "A")


def split(text):
    """At commas outside of brackets and quotes."""
    parts, depth, quoted, at = [], 0, False, 0
    for i, c in enumerate(text):
        quoted ^= c == '"'
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0 and not quoted:
            parts.append(text[at:i].strip())
            at = i + 1
    return [part for part in [*parts, text[at:].strip()] if part]


def overload(schema):
    match = re.fullmatch(r"(\w+)::([\w]+)(?:\.(\w+))?\((.*)\) -> (.*)", schema)
    if not match or "..." in schema:
        return None
    namespace, name, label, arguments, returned = match.groups()
    made = []
    views = set(re.findall(r"\(([a-z])\)", returned)) | set(re.findall(r"\|([a-z])\)", returned))
    for one in split(arguments):
        if one == "*":
            made.append("*")
            continue
        left = one.split("=", 1)[0]
        words = left.rsplit(" ", 1)
        marks = "=" if "=" in one else ""
        if "!" in left:
            marks += "!"
        elif (alias := re.search(r"\(([a-z])\)", words[0])) and alias[1] in views:
            marks += "&"
        made.append(f"{words[1]}:{kind(words[0])}{marks}")
    results = split(returned[1:-1]) if returned.startswith("(") else [returned]
    results = [kind(re.sub(r" \w+$", "", result)) for result in results]
    return namespace, name, f"{label or 'default'}({' '.join(made)}){','.join(results)}"


def main():
    ops = {}
    for schema in map(str, torch._C._jit_get_all_schemas()):
        read = overload(schema)
        if read is None or read[0] not in ("aten", "prim", "quantized") or UNWANTED.search(read[1]):
            continue
        namespace, name, text = read
        label = text.split("(")[0]
        if re.search(r"(^|_)(out|max|min)\d?($|_)", label) and "!" in text or "Dimname" in schema or "dimname" in schema or label.startswith("names"):
            continue
        ops.setdefault(f"{namespace}::{name}", []).append(text)
    lines = [f"{name} {' | '.join(overloads)}\n" for name, overloads in sorted(ops.items())]
    path = pathlib.Path(__file__).resolve().parents[3] / "src/formats/torchscript/schemas.txt"
    path.write_text(HEAD.format(version=torch.__version__.split("+")[0]) + "".join(lines))
    print(f"{path}: {len(lines)} ops, {path.stat().st_size} bytes")


main()
