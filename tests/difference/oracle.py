"""What docs/difference.md defines, written down again with numpy and exact fractions: slow and plain."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np

FLOATS = {
    "f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
    "f8e4m3fn": ml_dtypes.float8_e4m3fn, "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "f8e5m2": ml_dtypes.float8_e5m2,
    "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz, "f8e8m0": ml_dtypes.float8_e8m0fnu, "f4e2m1": ml_dtypes.float4_e2m1fn,
    "f6e2m3": ml_dtypes.float6_e2m3fn, "f6e3m2": ml_dtypes.float6_e3m2fn,
}
INTEGERS = {
    "u8": np.uint8, "i8": np.int8, "u16": np.uint16, "i16": np.int16, "u32": np.uint32, "i32": np.int32, "u64": np.uint64,
    "i64": np.int64, "bool": np.bool_, "u4": ml_dtypes.uint4, "i4": ml_dtypes.int4, "u2": ml_dtypes.uint2, "i2": ml_dtypes.int2,
}
COMPLEX = {"c64": (np.complex64, np.float32), "c128": (np.complex128, np.float64)}
BITS = {"u4": 4, "i4": 4, "u2": 2, "i2": 2, "f4e2m1": 4, "f6e2m3": 6, "f6e3m2": 6}


def stored(dtype, array):
    """The bytes of an array, packed where the type is."""
    if dtype not in BITS:
        return array.tobytes()
    width = BITS[dtype]
    codes = array.reshape(-1).view(np.uint8).astype(np.uint8) & ((1 << width) - 1)
    bits = (codes[:, None] >> np.arange(width)) & 1
    return np.packbits(bits.reshape(-1), bitorder="little").tobytes()


def numbers(dtype, array):
    """Python integers or doubles; a complex element is two."""
    flat = array.reshape(-1)
    if dtype in COMPLEX:
        flat = flat.view(COMPLEX[dtype][1])
    if dtype in INTEGERS:
        return [int(x) for x in flat]
    return [float(x) for x in flat.astype(np.float64)]


def steps(dtype, array):
    """Places in the order of the type's numbers, both zeros at 0."""
    flat = array.reshape(-1)
    if dtype in COMPLEX:
        flat = flat.view(COMPLEX[dtype][1])
    width = BITS.get(dtype, 8 * flat.dtype.itemsize)
    codes = [int(c) & ((1 << width) - 1) for c in flat.view(f"u{flat.dtype.itemsize}")]
    if dtype == "f8e8m0":
        return codes
    sign = 1 << (width - 1)
    return [-(c - sign) if c & sign else c for c in codes]


def rank(sorted_numbers, percent):
    return sorted_numbers[-(-len(sorted_numbers) * percent // 100) - 1]


def exceeds(x, off, rtol, atol, factor=Fraction(1)):
    """In exact arithmetic."""
    if off == math.inf:
        return True
    rough = float(factor) * (float(atol) + float(rtol) * x)
    if 1e-200 < rough < 1e200 and not 1 - 1e-9 < off / rough < 1 + 1e-9:
        return off > rough
    return Fraction(off) > factor * (Fraction(atol) + Fraction(rtol) * Fraction(x))


def exact_sqrt(fraction):
    """The root of a fraction that may be far from all doubles."""
    if fraction == 0:
        return 0.0
    shift = (fraction.numerator.bit_length() - fraction.denominator.bit_length()) // 2
    scaled = fraction / Fraction(4) ** shift
    try:
        return math.ldexp(math.sqrt(scaled), shift)
    except OverflowError:
        return math.inf


def log10_of(fraction):
    if fraction == 0:
        return -math.inf
    shift = fraction.numerator.bit_length() - fraction.denominator.bit_length()
    return math.log10(fraction / Fraction(2) ** shift) + shift * math.log10(2)


def as_double(fraction):
    try:
        return float(fraction)
    except OverflowError:
        return math.inf


def exact_sum(left, right):
    """Of products: to a double where these are far from the ends of the range, else a fraction."""
    if all(x == 0 or 1e-70 < abs(x) < 1e70 for side in (left, right) for x in side):
        return Fraction(math.fsum(x * y for x, y in zip(left, right)))
    return sum(Fraction(x) * Fraction(y) for x, y in zip(left, right))


def sums(found, a, b, offs, floor):
    count = len(offs)
    squares = exact_sum(offs, offs)
    squares_a = exact_sum(a, a)
    squares_b = exact_sum(b, b)
    products = exact_sum(a, b)
    peak = max(abs(x) for x in a)
    relative = []
    for x, off in zip(a, offs):
        scale = max(float(abs(x)), floor)
        relative.append(0.0 if off == 0 else math.inf if scale == 0 else as_double(Fraction(off) / Fraction(scale)))
    found["max_abs"] = max(offs)
    found["mean_abs"] = as_double(exact_sum(offs, [1.0] * count) / count)
    found["max_rel"] = max(relative)
    found["mean_rel"] = math.fsum(relative) / count if math.inf not in relative else math.inf
    found["rmse"] = exact_sqrt(squares / count)
    found["mse"] = as_double(squares / count)
    if squares == 0:
        found["normalized_l2"], found["sqnr_db"], found["psnr_db"] = 0.0, math.inf, math.inf
    elif squares_a == 0:
        found["normalized_l2"], found["sqnr_db"], found["psnr_db"] = math.inf, -math.inf, -math.inf
    else:
        found["normalized_l2"] = exact_sqrt(squares / squares_a)
        found["sqnr_db"] = 10 * log10_of(squares_a / squares)
        found["psnr_db"] = 20 * log10_of(Fraction(peak)) - 10 * log10_of(squares / count)
    if squares_a > 0 and squares_b > 0:
        cosine = exact_sqrt(products * products / squares_a / squares_b)
        found["cosine"] = cosine if products >= 0 else -cosine


def channel(shape, per_element, state, total):
    """`state` has (off or None, is a mismatch) for each number."""
    axis = 1 if len(shape) >= 3 else len(shape) - 1
    inner = math.prod(shape[axis + 1:]) * per_element
    worst = None
    members = [[] for _ in range(shape[axis])]
    for i, one in enumerate(state):
        members[i // inner % shape[axis]].append(one)
    for index, own in enumerate(members):
        offs = [off for off, _ in own if off is not None]
        key = (sum(bad for _, bad in own), max(offs, default=-1.0))
        if worst is None or key > worst[0]:
            worst = key, index
    (bad, top), index = worst
    return {"axis": axis, "index": index, "max_abs": top if top >= 0 else math.nan, "share": bad / total if total else math.nan}


def rows(found, shape, a, b, top_k):
    length = shape[-1]
    count = len(a) // length
    k = min(top_k, length)
    agree = common = 0
    for row in range(count):
        order = []
        for side in (a, b):
            part = side[row * length:(row + 1) * length]
            order.append(sorted(range(length), key=lambda i: (part[i] != part[i], 0 if part[i] != part[i] else -part[i], i)))
        agree += order[0][0] == order[1][0]
        common += len(set(order[0][:k]) & set(order[1][:k]))
    found["top_k"] = k
    found["argmax_agreement"] = agree / count
    if k:
        found["top_overlap"] = common / (count * k)


def histogram(offs):
    bins = {}
    for off in offs:
        place = 0 if off == 0 else 96 if off == math.inf else min(max(math.frexp(off)[1] - 1 + 65, 1), 96)
        bins[place] = bins.get(place, 0) + 1
    return [[place, bins[place]] for place in sorted(bins)]


def difference(dtype, a_array, b_array, rtol, atol, detail, top_k):
    """All that the JSON has but the corners, and the points that these are of."""
    shape = a_array.shape
    per_element = 2 if dtype in COMPLEX else 1
    a, b = numbers(dtype, a_array), numbers(dtype, b_array)
    found = dict.fromkeys(("max_abs mean_abs max_rel mean_rel mse rmse normalized_l2 sqnr_db psnr_db cosine worst_a worst_b p50_abs "
                           "p99_abs argmax_agreement top_overlap").split(), math.nan)
    found.update(count=len(a), same_bits=stored(dtype, a_array) == stored(dtype, b_array), mismatches=0, nan_mismatches=0,
                 infinity_mismatches=0, worst=0, top_k=0, histogram=[])
    finite, state, odd = [], [], []
    for i, (x, y) in enumerate(zip(a, b)):
        if math.isfinite(x) and math.isfinite(y):
            off = float(abs(y - x)) if dtype in INTEGERS else abs(y - x)
            finite.append(i)
            state.append((off, exceeds(float(abs(x)), off, rtol, atol)))
            continue
        nan = math.isnan(x) != math.isnan(y)
        bad = nan or (not math.isnan(x) and x != y)
        state.append((None, bad))
        if bad:
            odd.append(i)
            found["nan_mismatches" if nan else "infinity_mismatches"] += 1
            found.setdefault("first_nan" if nan else "first_infinity", i // per_element)
    found["finite"] = len(finite)
    found["mismatches"] = sum(bad for _, bad in state)
    offs = [state[i][0] for i in finite]
    worst = odd[0] if odd else next((i for i in finite if state[i][0] == max(offs)), None)
    is_off = bool(odd) or (bool(offs) and max(offs) > 0)
    if is_off:
        found.update(worst=worst // per_element, worst_a=float(a[worst]), worst_b=float(b[worst]))
    all_a = [float(x) for x in a if math.isfinite(x)]
    floor = 1e-3 * exact_sqrt(exact_sum(all_a, all_a) / len(all_a)) if all_a else 0.0
    if finite and math.inf not in offs:
        sums(found, [float(a[i]) for i in finite], [float(b[i]) for i in finite], offs, floor)
    ulps = []
    if finite and (dtype in FLOATS or dtype in COMPLEX):
        x, y = steps(dtype, a_array), steps(dtype, b_array)
        ulps = sorted(abs(x[i] - y[i]) for i in finite)
        found["max_ulp"] = ulps[-1]
    points = [(float(abs(a[i])), state[i][0]) for i in finite if state[i][0] > 0]
    if not detail:
        return found, []
    if finite:
        found["p50_abs"], found["p99_abs"] = rank(sorted(offs), 50), rank(sorted(offs), 99)
        found["histogram"] = histogram(offs)
        if ulps:
            found["p99_ulp"] = rank(ulps, 99)
    if is_off and shape:
        found["worst_channel"] = channel(shape, per_element, state, found["mismatches"])
    if len(shape) > 0 and a and per_element == 1:
        rows(found, shape, a, b, top_k)
    return found, points
