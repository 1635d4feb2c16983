#!/usr/bin/env python3
"""Operators with joules, end to end, on a machine whose counters are made up: a powercap tree whose package takes 10 W,
and 20 J more for every second that a core is busy. What is asked: joules per call are there, labelled, add up to what the
tree was given, survive the counter's wrap, and are unavailable with a reason when the tree goes away."""
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

WRAP_UJ = 2_000_000_000
FIRST_UJ = WRAP_UJ - 40_000_000  # it begins anew while operators are measured


def busy_seconds():
    user, nice, system, _idle, _iowait, irq, softirq, *_ = (
        int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


class Tree:
    """class/powercap with one package, written as the kernel shows it."""

    def __init__(self, root):
        self.zone = Path(root) / "class/powercap/intel-rapl:0"
        self.zone.mkdir(parents=True)
        (self.zone / "name").write_text("package-0\n")
        (self.zone / "max_energy_range_uj").write_text(f"{WRAP_UJ}\n")
        self.began = time.monotonic()
        self.busy = busy_seconds()
        self.stop = threading.Event()
        self.write()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def joules(self):
        return 10 * (time.monotonic() - self.began) + 20 * (busy_seconds() - self.busy)

    def write(self):
        new = self.zone / "new"
        new.write_text(f"{(FIRST_UJ + int(self.joules() * 1e6)) % WRAP_UJ}\n")
        new.rename(self.zone / "energy_uj")

    def run(self):
        while not self.stop.wait(0.001):
            self.write()


def run(*words, check=True):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if check and done.returncode not in (0, 1):
        sys.exit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done


def rows(trocar, db):
    return [json.loads(line) for line in run(trocar, "ops", "export", "--db", db, "--as", "jsonl").stdout.splitlines()]


def main():
    trocar, model = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(folder)
        common = [model, "--shape", "batch=1", "--threads", 1, "--mode", "reuse", "--seconds", "0.05"]
        db = Path(folder) / "ops.db"
        run(trocar, "ops", "measure", *common, "--db", db, "--energy", f"powercap:{folder}/class/powercap")
        found = rows(trocar, db)
        assert len(found) > 5, found
        assert FIRST_UJ + tree.joules() * 1e6 > WRAP_UJ, "the counter has not wrapped"
        known = 0
        for row in found:
            assert row["state"] == "measured", row
            if row["energy_label"] == "unavailable":
                assert row["energy_why"], row
                assert row["gross_j"] is None and row["net_j"] is None, row
                continue
            known += 1
            assert row["energy_label"] == "measured" and row["energy_source"] == "powercap", row
            assert 9 < row["watts"] < 10 + 20 * os.cpu_count() + 5, row
            assert row["gross_j"] > row["net_j"], row
            assert abs(row["gross_j"] - row["idle_j"] - row["net_j"]) < 1e-9 + 1e-6 * row["gross_j"], row
            assert row["energy_pm_j"] > 0, row
        assert known >= len(found) / 2, f"only {known} of {len(found)} have joules: {found[0]['energy_why']}"
        print(f"{known} of {len(found)} operators have joules, "
              f"{min(r['watts'] for r in found if r['watts']):.1f} to "
              f"{max(r['watts'] for r in found if r['watts']):.1f} W")

        # Without a counter everything else works, and says why.
        tree.stop.set()
        tree.thread.join()
        other = Path(folder) / "none.db"
        run(trocar, "ops", "measure", *common, "--db", other, "--energy", "none")
        for row in rows(trocar, other):
            assert row["state"] == "measured" and row["ns"] >= 0, row
            assert row["energy_label"] == "unavailable" and row["energy_why"] and row["net_j"] is None, row
        # A counter that stands still is no energy of 0.
        still = Path(folder) / "still.db"
        run(trocar, "ops", "measure", *common, "--db", still, "--energy", f"powercap:{folder}/class/powercap", check=False)
        if still.exists():
            for row in rows(trocar, still):
                assert row["net_j"] != 0 or row["energy_label"] == "unavailable", row
        missing = run(trocar, "ops", "measure", *common, "--db", Path(folder) / "x.db", "--energy", "powercap:/nowhere",
                      check=False)
        assert missing.returncode not in (0, 1, 70) and "hint" in missing.stderr, missing.stderr
        print("without one they say why")


main()
