"""One engine on two sides, with other settings: threads, and optimised or not.

    settings.py TROCAR MODEL.onnx
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

trocar, model = (pathlib.Path(a).resolve() for a in sys.argv[1:3])


def children(process):
    path = pathlib.Path(f"/proc/{process}/task/{process}/children")
    try:
        return [int(child) for child in path.read_text().split()]
    except OSError:
        return []


def threads(process):
    try:
        return len(os.listdir(f"/proc/{process}/task"))
    except OSError:
        return 0


def compare(engine, settings, watch=False):
    """The report, and the most threads that each side's process had."""
    sides = [a for setting in settings for a in ("--engine", f"{engine},{setting}")]
    # With several samples, programs are kept for the next one, and their threads with them.
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen([trocar, "compare", model, "--samples", "3", *sides, "--all",
                                    "--json"], stdout=out)
        most = {}
        while process.poll() is None:
            for child in children(process.pid) if watch else ():
                most[child] = max(most.get(child, 0), threads(child))
            time.sleep(0.005)
        out.seek(0)
        assert process.returncode == 0, (engine, settings, out.read())
        return json.load(out), most


for engine in ("onnxruntime", "openvino"):
    for settings in (("threads=1", "threads=2"), ("optimize=none", "optimize=default"),
                     ("threads=1,optimize=none", "threads=2")):
        answer, most = compare(engine, settings, watch=settings[0] == "threads=1")
        section = answer["sections"]["comparison"]
        assert section["reference"].endswith(f"({settings[0]})"), section
        assert section["side"].endswith(f"({settings[1]})"), section
        rows = answer["tables"]["layers"]
        assert len(rows) == 3 * 13 and all(row["verdict"] == "PASS" for row in rows), rows
        assert all(row["cumulative_verdict"] == "PASS" for row in rows), rows
        if most:  # a process for each side, and the settings reach the engine
            del most[min(most)]  # the first one only starts others
            assert len(most) == 2, most
            print(engine, "threads of the two sides' processes:", sorted(most.values()))
            # OpenVINO's pool starts as many as it likes, and lets fewer work.
            assert engine != "onnxruntime" or len(set(most.values())) == 2, most
print("settings: as they should be")
