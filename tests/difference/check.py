#!/usr/bin/env python3
"""Random, special and adversarial tensors of every type, compared by the driver and by the definitions in oracle.py.

    check.py --driver build/release/tests/difference/difference_driver [--seed 1]
"""

import argparse
import json
import math
import pathlib
import subprocess
import tempfile
from fractions import Fraction

import numpy as np

import oracle

SHAPES = [(), (1,), (7,), (0,), (2, 0, 3), (3, 5), (40, 6), (2, 3, 4), (2, 5, 3, 7), (600,), (4, 1, 130), (1, 1300)]
TOLERANCES = [(0, 0), (1e-3, 0), (0, 0.5), (0.125, 0.25), (0.1, 1e-6), (1, 0), (1e-300, 5e-324)]


def specials(dtype):
    base = [0.0, -0.0, 1.0, -1.0, math.nan, math.inf, -math.inf, 3.0, 0.5]
    info = {"f32": 149, "f64": 1074, "f16": 24, "bf16": 133, "c64": 149, "c128": 1074}.get(dtype)
    if info:
        top = {"f32": 3.4028234663852886e38, "f64": 1.7976931348623157e308, "f16": 65504.0, "bf16": 3.3895313892515355e38,
               "c64": 3.4028234663852886e38, "c128": 1.7976931348623157e308}[dtype]
        base += [math.ldexp(1, -info), -math.ldexp(3, -info), math.ldexp(1, 4 - info), top, -top, top / 2]
    return base


def cast(dtype, array):
    with np.errstate(all="ignore"):
        if dtype in oracle.COMPLEX:
            return array.astype(oracle.COMPLEX[dtype][1])
        return array.astype(oracle.FLOATS[dtype])


def integer_pair(random, dtype, count, kind):
    kind = kind % 5
    if dtype == "bool":
        a = random.integers(0, 2, count)
        b = np.where(random.random(count) < 0.2, 1 - a, a)
        return a.astype(np.bool_), b.astype(np.bool_)
    bits = oracle.BITS.get(dtype) or 8 * np.dtype(oracle.INTEGERS[dtype]).itemsize
    low, high = (0, 2**bits - 1) if dtype[0] == "u" else (-2**(bits - 1), 2**(bits - 1) - 1)

    def draw():
        if kind == 0 or bits <= 8:
            return [low + int.from_bytes(random.bytes(8), "little") % (high - low + 1) for _ in range(count)]
        if kind == 1:  # around 2^53, where doubles end
            return [min(max(2**min(53, bits - 2) + int(x), low), high) for x in random.integers(-3, 4, count)]
        if kind == 2:
            return [(low, high, 0, 1)[int(x)] for x in random.integers(0, 4, count)]
        return [int(x) % (high + 1) for x in random.integers(0, 100, count)]

    a = draw()
    b = draw() if kind != 3 else [min(max(x + int(d), low), high) for x, d in zip(a, random.integers(-1, 2, count))]
    make = {"u64": np.uint64, "i64": np.int64}.get(dtype)
    if make:
        return np.array(a, dtype=make), np.array(b, dtype=make)
    return tuple(np.array(x, dtype=np.int64).astype(oracle.INTEGERS[dtype]) for x in (a, b))


def float_pair(random, dtype, count, kind):
    """Doubles; the type rounds them."""
    a = random.normal(size=count) * 2.0 ** random.integers(-3, 4)
    if kind == 0:
        return a, a + 1e-3 * random.normal(size=count)
    if kind == 1:  # zeros for all
        return a, np.zeros(count)
    if kind == 2:  # a constant factor: all corners on a line
        return a, a * 1.5
    if kind == 3:
        with np.errstate(all="ignore"):
            a = a * 10.0 ** random.uniform(-12, 12, count)
            return a, a * (1 + 1e-2 * random.normal(size=count))
    if kind == 4:
        list_ = specials(dtype)
        return random.choice(list_, count), random.choice(list_, count)
    if kind == 5:  # some NaN and infinities in a common tensor
        b = a + 0.01 * random.normal(size=count)
        for side in (a, b):
            side[random.random(count) < 0.02] = random.choice([math.nan, math.inf, -math.inf])
        return a, b
    if kind == 6:  # a is all zero
        return np.zeros(count), np.where(random.random(count) < 0.5, 0.0, a)
    if kind == 7:
        return a, a.copy()
    if kind == 8:  # denormals, and beyond all squares
        scale = {"f64": 1e-310, "c128": 1e-310, "f16": 1e-6}.get(dtype, 1e-40) if random.random() < 0.5 else \
                {"f64": 1e300, "c128": 1e300, "f16": 1e3}.get(dtype, 1e36)
        return a * scale, (a + 0.1 * random.normal(size=count)) * scale
    if kind == 9:  # a parabola: every point is a corner
        x = np.arange(1, count + 1) / 8
        return x, x + 0.25 + np.sqrt(x)
    # few values, many ties
    a = random.integers(-3, 4, count) / 2
    return a, a + random.integers(-1, 2, count) / 4


def pair(random, dtype, shape, kind):
    count = math.prod(shape)
    if dtype in oracle.INTEGERS:
        a, b = integer_pair(random, dtype, count, kind)
        return a.reshape(shape), b.reshape(shape)
    a, b = float_pair(random, dtype, count * (2 if dtype in oracle.COMPLEX else 1), kind)
    a, b = cast(dtype, a), cast(dtype, b)
    if dtype in oracle.COMPLEX:
        a, b = a.view(oracle.COMPLEX[dtype][0]), b.view(oracle.COMPLEX[dtype][0])
    return a.reshape(shape), b.reshape(shape)


def hull(points):
    """The corners, in exact arithmetic."""
    chain = []
    for x, off in sorted(points, key=lambda p: (p[0], -p[1])):
        if chain and off <= chain[-1][1]:
            continue
        if off == math.inf:
            return [(x, off)]
        point = (Fraction(x), Fraction(off))
        while len(chain) > 1:
            (x0, y0), (x1, y1) = chain[-2:]
            if (y1 - y0) * (point[0] - x0) > (point[1] - y0) * (x1 - x0):
                break
            chain.pop()
        chain.append(point)
    return [(float(x), float(y)) for x, y in chain]


def number(value):
    return {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}.get(value, value) if isinstance(value, str) else value


EXACT = ("count finite mismatches nan_mismatches infinity_mismatches worst top_k same_bits first_nan first_infinity max_ulp p99_ulp "
         "max_abs worst_a worst_b p50_abs p99_abs argmax_agreement top_overlap").split()
CLOSE = "mean_abs max_rel mean_rel mse rmse normalized_l2 sqnr_db psnr_db cosine".split()


def same(x, y):
    return x == y or (x is not None and y is not None and math.isnan(x) and math.isnan(y))


def close(key, x, y):
    if same(x, y):
        return True
    if not (math.isfinite(x) and math.isfinite(y)):
        return False
    slack = 1e-9 if key.endswith("_db") or key == "cosine" else 1e-300
    return abs(x - y) <= 1e-9 * abs(y) + slack


def next_below(x):
    return math.nextafter(x, 0.0)


class Checker:
    def __init__(self, driver, folder):
        self.driver, self.folder, self.cases, self.lines = driver, pathlib.Path(folder), [], []

    def add(self, what, dtype, a, b, rtol, atol, detail=True, top_k=5):
        stem = self.folder / str(len(self.cases))
        for side, array in (("a", a), ("b", b)):
            pathlib.Path(f"{stem}.{side}").write_bytes(oracle.stored(dtype, array))
        shape = "x".join(map(str, a.shape)) or "-"
        self.lines.append(f"{dtype} {shape} {stem}.a {stem}.b {rtol!r} {atol!r} {int(detail)} {top_k}")
        self.cases.append((what, dtype, a, b, rtol, atol, detail, top_k))

    def run(self):
        done = subprocess.run([self.driver], input="\n".join(self.lines) + "\n", capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr)
        answers = done.stdout.splitlines()
        assert len(answers) == len(self.cases)
        for case, answer in zip(self.cases, answers):
            self.compare(case, answer)

    def compare(self, case, answer):
        what, dtype, a, b, rtol, atol, detail, top_k = case
        *needed, text = answer.split(" ", 4)
        got = json.loads(text)
        wanted, points = oracle.difference(dtype, a, b, rtol, atol, detail, top_k)

        def wrong(key, x, y):
            raise SystemExit(f"{what} {dtype} {a.shape} rtol {rtol} atol {atol}: {key} is {x}, wanted {y}")

        for key in EXACT:
            if key == "max_abs" and wanted["finite"] and math.isnan(wanted[key]):
                continue  # a difference beyond all doubles
            x, y = number(got.get(key)), wanted.get(key)
            if not same(x, y):
                wrong(key, x, y)
        for key in CLOSE:
            x, y = number(got[key]), wanted[key]
            overflown = number(got["max_abs"]) == math.inf
            if not overflown and not close(key, x, y):
                wrong(key, x, y)
        if got["histogram"] != wanted["histogram"]:
            wrong("histogram", got["histogram"], wanted["histogram"])
        channel = {k: number(v) for k, v in got.get("worst_channel", {}).items()}
        other = wanted.get("worst_channel", {})
        if channel.keys() != other.keys() or not all(same(channel[k], other[k]) for k in channel):
            wrong("worst_channel", channel, other)
        self.corners(wrong, points, [tuple(map(number, c)) for c in got["corners"]], needed, rtol, atol, wanted)

    def corners(self, wrong, points, corners, needed, rtol, atol, wanted):
        exact = hull(points)
        tiny = any(p[1] < 1e-290 or 0 < p[0] < 1e-290 for p in points)
        if corners != exact and not (tiny and set(exact) <= set(corners) <= set(points)):
            wrong("corners", corners, exact)
        if not points and wanted["finite"] and wanted["max_abs"] != 0:
            return  # without detail
        factor, needed_atol, needed_rtol = map(float, needed[:3])
        if int(needed[3]) != (not any(oracle.exceeds(*p, rtol, atol) for p in points)):
            wrong("holds", needed[3], exact)

        # Those that can decide, by a proof that is not Trocar's; and some that cannot.
        points = exact + points[:: 1 + len(points) // 200]

        def all_fit(value, test):
            return value == math.inf or not any(test(p, Fraction(value)) for p in points)

        tests = {
            "needed_factor": (factor, lambda p, f: oracle.exceeds(*p, rtol, atol, f)),
            "needed_atol": (needed_atol, lambda p, t: oracle.exceeds(*p, rtol, t)),
            "needed_rtol": (needed_rtol, lambda p, t: oracle.exceeds(*p, t, atol)),
        }
        for key, (value, test) in tests.items():
            below = next_below(value) if value < math.inf else 1.7976931348623157e308
            if not all_fit(value, test) or (value > 0 and all_fit(below, test)):
                wrong(key, value, "another")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver", required=True)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    random = np.random.default_rng(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        checker = Checker(options.driver, folder)
        for dtype in [*oracle.FLOATS, *oracle.INTEGERS, *oracle.COMPLEX]:
            kinds = 5 if dtype in oracle.INTEGERS else 11
            for kind in range(kinds):
                for _ in range(3):
                    shape = SHAPES[random.integers(len(SHAPES))]
                    rtol, atol = TOLERANCES[random.integers(len(TOLERANCES))]
                    a, b = pair(random, dtype, shape, kind)
                    checker.add(f"kind {kind}", dtype, a, b, rtol, atol, detail=random.random() < 0.9,
                                top_k=int(random.choice([0, 1, 5])))
        for kind in (0, 2, 5, 10):  # rows that are longer than a block
            a, b = pair(random, "f32", (2, 3, 1_007), kind)
            checker.add(f"large, kind {kind}", "f32", a, b, 1e-3, 1e-4)
        checker.run()
        print(f"difference: {len(checker.cases)} pairs of tensors as defined")


if __name__ == "__main__":
    main()
