#!/usr/bin/env python3
"""`trocar ops measure` killed at any moment: the database stays whole, finished operators stay finished, nothing of it goes on
running, and the same command ends what was begun. With Ctrl-C it says so and ends with 130."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def run(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)


def rows(trocar, db):
    done = run(trocar, "ops", "export", "--db", db, "--as", "jsonl")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def children_of(group):
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            after = entry.read_text().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue
        if int(after[2]) == group and after[0] != "Z":
            found.append(entry.parent.name)
    return found


def main():
    trocar, model = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder) / "ops.db"
        command = [str(word) for word in (trocar, "ops", "measure", model, "--shape", "batch=1", "--threads", 1, "--mode", "reuse",
                                          "--seconds", "0.6", "--half-width", "0.001", "--db", db, "-q")]
        finished = {}
        for after, what in ((0.3, signal.SIGKILL), (1.6, signal.SIGKILL), (2.5, signal.SIGKILL), (1.5, signal.SIGINT)):
            process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            time.sleep(after)
            alive = process.poll() is None
            os.kill(process.pid, what)
            process.communicate(timeout=60)
            if what == signal.SIGINT and alive:
                assert process.returncode == 130, process.returncode
            deadline = time.monotonic() + 20
            while children_of(process.pid) and time.monotonic() < deadline:
                time.sleep(0.05)
            assert not children_of(process.pid), "something of it goes on running"
            if not db.exists():
                continue
            checked = run(trocar, "ops", "verify", "--db", db)
            if "is empty" in checked.stderr:
                assert not finished
                continue
            assert checked.returncode == 0, checked.stdout + checked.stderr
            now = {(row["key"], row["run"]): row["ns"] for row in rows(trocar, db)}
            for key, ns in finished.items():
                assert now.get(key) == ns, f"{key}: {ns} became {now.get(key)}"
            finished = now
        last = run(*command)
        assert last.returncode == 0, last.stderr
        states = {row["state"] for row in rows(trocar, db)}
        assert states == {"measured"}, states
        listed = run(trocar, "ops", "verify", "--db", db, "--json")
        assert json.loads(listed.stdout)["sections"]["database"]["open"] == 0, listed.stdout
        print(f"{len(rows(trocar, db))} operators, {len(finished)} of them finished before the last run")


main()
