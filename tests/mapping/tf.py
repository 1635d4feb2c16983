#!/usr/bin/env python3
"""Ops of TensorFlow, mapped to ONNX: they give what TensorFlow gave.

    tf.py TROCAR

The graphs of tf_cases.py as they are, op by op, and converted, all on ONNX Runtime, compared with tf_expected.npz, which
tf_make.py made.
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import tf_cases

here = pathlib.Path(__file__).parent
TOLERANCE = 2e-6  # relative to the largest element


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))}: {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")


def difference(a, b):
    if a.shape != b.shape or a.dtype != b.dtype:
        return np.inf
    if a.size == 0:
        return 0.0
    if not np.issubdtype(a.dtype, np.floating):
        return 0.0 if np.array_equal(a, b) else np.inf
    scale = max(float(np.max(np.abs(a))), 1e-30)
    return float(np.max(np.abs(a.astype(np.float64) - b))) / scale


def main():
    trocar = sys.argv[1]
    cases = tf_cases.cases()
    expected = np.load(here / "tf_expected.npz")
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        (scratch / "all.pb").write_bytes(cases.graph())
        np.savez(scratch / "inputs.npz", **cases.inputs)
        given = ["--input", scratch / "inputs.npz", "-q"]
        run(trocar, "run", scratch / "all.pb", *given, "-o", scratch / "whole")
        run(trocar, "run", scratch / "all.pb", *given, "-o", scratch / "parts", "--cut", "all")
        run(trocar, "convert", scratch / "all.pb", scratch / "all.onnx", "-q")
        run(trocar, "run", scratch / "all.onnx", *given, "-o", scratch / "converted")
        for way in ("whole", "parts", "converted"):
            worst = 0.0
            for case in cases.outputs:
                found = np.load(scratch / way / f"{case}.npy")
                off = difference(expected[case], found)
                worst = max(worst, off)
                if not off <= TOLERANCE:
                    print(f"FAIL {way} {case}: {off:.2g}, {expected[case].dtype}{expected[case].shape} there, "
                          f"{found.dtype}{found.shape} here")
                    failed += 1
            print(f"{way}: {len(cases.outputs)} results, {worst:.1e} from those of {expected['made_by']} at most")
    sys.exit(1 if failed else 0)


main()
