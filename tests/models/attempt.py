"""Runs test models on ONNX Runtime, to hold the catalogue to what it says of each."""

import numpy as np

NUMPY = {
    "tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16,
    "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(int8)": np.int8, "tensor(uint8)": np.uint8,
    "tensor(bool)": np.bool_, "tensor(string)": np.str_,
}


def tensor(name, kind, shape):
    dtype = NUMPY[kind]
    rng = np.random.Generator(np.random.Philox(3))
    if dtype is np.str_:
        return np.full(shape, "Seven", dtype=object)
    if dtype is np.bool_:
        return np.ones(shape, dtype)
    if np.issubdtype(dtype, np.floating):
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(1, 4, shape).astype(dtype)


def feed(argument, shapes):
    kind = argument.type
    shape = [d if isinstance(d, int) else shapes.get(d, 1) for d in argument.shape or []]
    if kind.startswith("seq(tensor"):
        return [tensor(argument.name, kind[4:-1], [2, 3]) for _ in range(3)]
    if kind.startswith("optional(tensor"):
        return tensor(argument.name, kind[9:-1], [2, 3])
    if kind.startswith("map(string"):
        return {"a": 1.0, "c": 3.0}
    return tensor(argument.name, kind, shape)


def attempt(path, shapes):
    """Why ONNX Runtime does not run the model; empty when it does."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    try:
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        session.run(None, {a.name: feed(a, shapes) for a in session.get_inputs()})
    except Exception as error:  # ONNX Runtime has no common base for its errors
        return str(error).splitlines()[0] or type(error).__name__
    return ""


def run_all(folder, rows):
    """0 when each model runs or fails as its row says."""
    wrong = 0
    for row in rows:
        why = attempt(folder / row["file"], row["shapes"])
        agrees = row["runs"] == (not why)
        wrong += not agrees
        print(f"{'' if agrees else 'UNEXPECTED '}{row['name']}: {why or 'runs'}")
    print(f"{len(rows) - wrong} as stated, {wrong} not")
    return 1 if wrong else 0
