#!/usr/bin/env python3
"""Makes fuzz/pt2_reader_seeds from the programs of tests/formats/pt2: the program, the list of weights, some elements."""

import json
import pathlib
import zipfile

here = pathlib.Path(__file__).parent
folder = here / "pt2_reader_seeds"
folder.mkdir(exist_ok=True)
for name in ("branches", "state", "odd"):
    archive = zipfile.ZipFile(here.parent / "tests/formats/pt2" / f"{name}.pt2")
    program = json.loads(archive.read(f"{name}/models/model.json"))
    for node in program["graph_module"]["graph"]["nodes"]:
        node["metadata"] = {k: v for k, v in node["metadata"].items() if k == "nn_module_stack"}
    program["graph_module"]["module_call_graph"] = []
    config = json.loads(archive.read(f"{name}/data/weights/model_weights_config.json"))
    for entry in config["config"].values():
        entry["path_name"] = "weight_0"
    text = "\0".join(json.dumps(part, separators=(",", ":")) for part in (program, config))
    (folder / name).write_bytes(text.encode() + b"\0" + bytes(range(256)))
