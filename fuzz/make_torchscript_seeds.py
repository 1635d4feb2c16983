#!/usr/bin/env python3
"""Makes fuzz/torchscript_reader_seeds from the modules of tests/formats/torchscript: code in one file, the pickle, some elements."""

import pathlib
import struct
import zipfile

here = pathlib.Path(__file__).parent
folder = here / "torchscript_reader_seeds"
folder.mkdir(exist_ok=True)
for name in ("control", "state", "writes"):
    archive = zipfile.ZipFile(here.parent / "tests/formats/torchscript" / f"{name}.pt")
    names = archive.namelist()
    code, pickle = b"", archive.read(f"{name}/data.pkl")
    for member in names:
        if member.endswith(".py"):
            # "code/__torch__/a/b.py" → "__torch__.a.b": all in one file, where that becomes "__torch__".
            module = member[len(name) + 6:-3].replace("/", ".")
            text = archive.read(member)
            code += text
            pickle = pickle.replace(module.encode() + b"\n", b"__torch__\n")
    modules = sorted((m[len(name) + 6:-3].replace("/", ".") for m in names if m.endswith(".py")), key=len, reverse=True)
    for module in modules:
        code = code.replace(module.encode() + b".", b"__torch__.")
    (folder / name).write_bytes(struct.pack(">HH", len(code), len(pickle)) + code + pickle + bytes(range(256)))
