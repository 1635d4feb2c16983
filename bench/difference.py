"""The metrics of docs/difference.md as one would write them with numpy: difference.py A B LENGTH...

A and B are raw f32. For every line on the standard input they are computed once, and the seconds printed.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import sys
import time

import numpy as np

RTOL, ATOL, TOP = 1e-5, 1e-6, 5


def steps(x):
    codes = x.view(np.int32)
    return np.where(codes < 0, np.int32(-2**31) - codes, codes).astype(np.int64)


def corners(x, off):
    """Of the largest in each sixteenth of an octave; the hull of these, without those that lie between."""
    bins = x.view(np.int32) >> 19
    top = np.zeros(4096, np.float64)
    np.maximum.at(top, bins, off)
    chosen = np.flatnonzero(off >= top[bins])
    chosen = chosen[np.argsort(x[chosen])]
    chain = []
    for point in zip(x[chosen].tolist(), off[chosen].tolist()):
        if chain and point[1] <= chain[-1][1]:
            continue
        while len(chain) > 1 and (chain[-1][1] - chain[-2][1]) * (point[0] - chain[-2][0]) <= \
                (point[1] - chain[-2][1]) * (chain[-1][0] - chain[-2][0]):
            chain.pop()
        chain.append(point)
    return chain


def metrics(a, b):
    same_bits = a.tobytes() == b.tobytes()
    finite = np.isfinite(a) & np.isfinite(b)
    all_finite = finite.all()
    nan = np.isnan(a) != np.isnan(b)
    odd = ~finite & ~nan & (a != b)
    x, y = (a.ravel(), b.ravel()) if all_finite else (a[finite], b[finite])
    wide_a, wide_b = x.astype(np.float64), y.astype(np.float64)
    off = np.abs(wide_b - wide_a)
    size = np.abs(wide_a)
    squares, squares_a, squares_b = off @ off, wide_a @ wide_a, wide_b @ wide_b
    rmse = np.sqrt(squares / off.size)
    rel = off / np.maximum(size, 1e-3 * np.sqrt(squares_a / off.size))
    bad = off > ATOL + RTOL * size
    ulps = np.abs(steps(y) - steps(x))
    worst = off.argmax()
    p50, p99 = np.partition(off, [(off.size - 1) // 2, -(-off.size * 99 // 100) - 1])[
        [(off.size - 1) // 2, -(-off.size * 99 // 100) - 1]]
    p99_ulp = np.partition(ulps, -(-off.size * 99 // 100) - 1)[-(-off.size * 99 // 100) - 1]
    histogram = np.bincount(np.clip(np.frexp(off)[1] + 64, 1, 96), minlength=97)
    axis = 1 if a.ndim >= 3 else a.ndim - 1
    others = tuple(i for i in range(a.ndim) if i != axis)
    channel_bad = bad.reshape(a.shape).sum(axis=others)
    channel_max = off.reshape(a.shape).max(axis=others)
    channel = np.lexsort((channel_max, channel_bad))[-1]
    rows_a, rows_b = a.reshape(-1, a.shape[-1]), b.reshape(-1, a.shape[-1])
    agreement = (rows_a.argmax(axis=1) == rows_b.argmax(axis=1)).mean()
    top_a = np.argpartition(rows_a, -TOP, axis=1)[:, -TOP:]
    top_b = np.argpartition(rows_b, -TOP, axis=1)[:, -TOP:]
    overlap = (top_a[:, :, None] == top_b[:, None, :]).sum() / top_a.size
    return (same_bits, nan.sum(), odd.sum(), off.max(), off.mean(), p50, p99, rel.max(), rel.mean(), ulps.max(), p99_ulp,
            squares / off.size, rmse, np.sqrt(squares / squares_a), 10 * np.log10(squares_a / squares),
            20 * np.log10(size.max() / rmse), wide_a @ wide_b / np.sqrt(squares_a * squares_b), bad.sum(), worst, histogram, channel,
            channel_max[channel], channel_bad[channel], agreement, overlap, corners(np.abs(x), off))


def main():
    shape = [int(length) for length in sys.argv[3:]]
    a, b = (np.fromfile(path, np.float32).reshape(shape) for path in sys.argv[1:3])
    for _ in sys.stdin:
        start = time.perf_counter()
        metrics(a, b)
        print(time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    main()
