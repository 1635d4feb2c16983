"""Loops and choices of TensorFlow 2, whose bodies are functions: cases for tf_cases.py.

Names in functions are those of tensors outside too, and of each other: what is mapped must keep them apart.
"""

import numpy as np

import make as tf

F32, I32, BOOL = ("type", tf.FLOAT), ("type", tf.INT32), ("type", tf.BOOL)
VARIANT = 21


def number(name, value):
    """A constant: real numbers are floats, whole ones integers."""
    array = np.array(value, np.float32 if isinstance(value, float) else np.int32)
    return tf.const(name, tf.FLOAT if isinstance(value, float) else tf.INT32, array.shape, array.tobytes())


def functions():
    """Bodies: what they are given, what they return, and their nodes."""
    yield tf.function("grow", ["x", "w"], {"y": "add:z:0", "more": "mul:product:0"}, [
        tf.node("mul", "MatMul", ["x", "w"], T=F32),
        number("one", 1.0),
        tf.node("add", "AddV2", ["mul:product:0", "one:output:0"], T=F32)])
    yield tf.function("shrink", ["x", "w"], {"y": "mul:z:0", "more": "x"}, [
        number("half", 0.5),
        tf.node("mul", "Mul", ["x", "half:output:0"], T=F32)])
    # A choice in a choice.
    yield tf.function("either", ["x", "w"], {"y": "inner:output:0", "more": "inner:output:1"}, [
        number("axes", [0, 1]),
        tf.node("sum", "Sum", ["x", "axes:output:0"], T=F32, Tidx=I32, keep_dims=False),
        number("zero", 0.0),
        tf.node("less", "Less", ["sum:output:0", "zero:output:0"], T=F32),
        tf.node("inner", "StatelessIf", ["less:z:0", "x", "w"], Tcond=BOOL, Tin=["f", "f"], Tout=["f", "f"],
                then_branch=("func", "grow"), else_branch=("func", "shrink"))])
    counted = {"i": tf.INT32, "n": tf.INT32, "next": tf.INT32, "last": tf.INT32}
    yield tf.function("below", ["i", "n", "x"], {"go": "less:z:0"}, [
        tf.node("less", "Less", ["i", "n"], T=I32)], counted)
    yield tf.function("step", ["i", "n", "x"], {"next": "add:z:0", "last": "n", "y": "mul:z:0"}, [
        number("one", 1),
        tf.node("add", "AddV2", ["i", "one:output:0"], T=I32),
        tf.node("real", "Cast", ["add:z:0"], SrcT=I32, DstT=F32),
        tf.node("mul", "Mul", ["x", "real:y:0"], T=F32)], counted)
    # The value gets longer in each round.
    yield tf.function("longer", ["i", "n", "x"], {"next": "add:z:0", "last": "keep:output:0", "y": "concat:output:0"}, [
        number("one", 1),
        number("axis", 0),
        tf.node("keep", "Identity", ["n"], T=I32),
        tf.node("add", "AddV2", ["i", "one:output:0"], T=I32),
        tf.node("neg", "Neg", ["x"], T=F32),
        tf.node("concat", "ConcatV2", ["x", "neg:y:0", "axis:output:0"], T=F32, N=2, Tidx=I32)], counted)
    # A loop whose rounds choose, and end by what they computed.
    yield tf.function("small", ["x", "w"], {"go": "less:z:0"}, [
        number("axes", [0, 1]),
        tf.node("max", "Max", ["x", "axes:output:0"], T=F32, Tidx=I32, keep_dims=False),
        number("limit", 50.0),
        tf.node("less", "Less", ["max:output:0", "limit:output:0"], T=F32)])
    yield tf.function("round", ["x", "w"], {"y": "add:z:0", "same": "w"}, [
        tf.node("choice", "StatelessIf", ["odd:z:0", "x", "w"], Tcond=BOOL, Tin=["f", "f"], Tout=["f", "f"],
                then_branch=("func", "grow"), else_branch=("func", "shrink")),
        number("axes", [0, 1]),
        tf.node("max", "Max", ["x", "axes:output:0"], T=F32, Tidx=I32, keep_dims=False),
        number("ten", 10.0),
        tf.node("odd", "Less", ["max:output:0", "ten:output:0"], T=F32),
        tf.node("abs", "Abs", ["choice:output:0"], T=F32),
        number("three", 3.0),
        tf.node("far", "AddV2", ["x", "abs:y:0"], T=F32),
        tf.node("add", "AddV2", ["far:z:0", "three:output:0"], T=F32)])


    # Lists of tensors: each round reads one element and writes another.
    lists = counted | {"source": VARIANT, "made": VARIANT, "kept": VARIANT, "more": VARIANT}
    yield tf.function("each_below", ["i", "n", "source", "made"], {"go": "less:z:0"}, [
        tf.node("less", "Less", ["i", "n"], T=I32)], lists)
    yield tf.function("each", ["i", "n", "source", "made"], {
        "next": "add:z:0", "last": "n", "kept": "source", "more": "set:output_handle:0"}, [
        number("one", 1),
        tf.const("row", tf.INT32, [1], np.array([4], np.int32).tobytes()),
        tf.node("add", "AddV2", ["i", "one:output:0"], T=I32),
        tf.node("get", "TensorListGetItem", ["source", "i", "row:output:0"], element_dtype=F32),
        tf.node("exp", "Exp", ["get:item:0"], T=F32),
        tf.node("set", "TensorListSetItem", ["made", "i", "exp:y:0"], element_dtype=F32)], lists)


def listed(cases, case, sizes, rounds):
    """Of a list of 5 elements some are set, by a loop over the rows of a tensor."""
    import tf_cases
    name = lambda part: f"{case}__{part}"
    x = tf_cases.numbers(5, 4)
    cases.inputs[name("x")] = x
    cases.nodes += [
        tf.node(name("x"), "Placeholder", dtype=F32, shape=("shape", tf.shape(*x.shape))),
        number(name("from"), 0), number(name("to"), rounds), number(name("count"), 5), number(name("row"), [4]),
        number(name("sizes"), sizes),
        tf.node(name("list"), "TensorListFromTensor", [name("x"), name("row")], element_dtype=F32, shape_type=I32),
        tf.node(name("new"), "TensorListReserve", [name("sizes"), name("count")], element_dtype=F32, shape_type=I32),
        tf.node(name("loop"), "StatelessWhile", [name(part) for part in ("from", "to", "list", "new")],
                T=[I32, I32, ("type", VARIANT), ("type", VARIANT)], cond=("func", "each_below"), body=("func", "each")),
        tf.node(name("stack"), "TensorListStack", [name("loop") + ":3", name("row")], element_dtype=F32, num_elements=-1),
        tf.node(name("0"), "Identity", [name("stack")], T=F32),
        tf.node(name("1"), "TensorListLength", [name("loop") + ":3"]),
        tf.node(name("last"), "TensorListPushBack", [name("list"), name("first")], element_dtype=F32),
        tf.node(name("pop"), "TensorListPopBack", [name("last"), name("row")], element_dtype=F32),
        number(name("zero"), 0),
        tf.node(name("first"), "GatherV2", [name("stack"), name("zero"), name("zero")], Tparams=F32, Tindices=I32, Taxis=I32),
        tf.node(name("2"), "Identity", [name("pop") + ":1"], T=F32),
        tf.node(name("3"), "TensorListStack", [name("pop"), name("row")], element_dtype=F32, num_elements=-1),
        tf.node(name("empty"), "EmptyTensorList", [name("row"), name("count")], element_dtype=F32, shape_type=I32),
        tf.node(name("one"), "TensorListPushBack", [name("empty"), name("first")], element_dtype=F32),
        tf.node(name("4"), "TensorListStack", [name("one"), name("row")], element_dtype=F32, num_elements=-1)]
    cases.outputs += [name(str(i)) for i in range(5)]


def add(cases):
    import tf_cases
    numbers, C = tf_cases.numbers, tf_cases.C
    cases.functions += list(functions())
    x, w = numbers(3, 3), C(numbers(3, 3, seed=5))
    both = dict(T=False, Tcond=BOOL, Tin=["f", "f"], Tout=["f", "f"], results=2, result0=F32, result1=F32)
    for name, truth in (("yes", np.array(True)), ("no", np.array(False)), ("known", C(np.array(True)))):
        cases.add(f"if_{name}", "StatelessIf", truth, x, w, then_branch=("func", "grow"), else_branch=("func", "shrink"), **both)
    for sign in (1, -1):
        cases.add(f"if_in_if_{sign}", "If", np.array(True), sign * np.abs(x), w, then_branch=("func", "either"),
                  else_branch=("func", "grow"), **both)
    # Of two results one is read.
    cases.add("if_some", "StatelessIf", np.array(False), x, w, then_branch=("func", "grow"), else_branch=("func", "shrink"),
              **both | dict(results=1))
    loop = dict(T=[I32, I32, F32], results=3, result0=I32, result1=I32, result2=F32)
    for rounds in (0, 1, 5):
        cases.add(f"while_{rounds}", "StatelessWhile", C(0), np.array(rounds, np.int32), x, cond=("func", "below"),
                  body=("func", "step"), **loop)
    cases.add("while_longer", "While", C(0), C(3), numbers(2, 2), cond=("func", "below"), body=("func", "longer"),
              output_shapes=[], **loop)
    cases.add("while_if", "StatelessWhile", x, w, cond=("func", "small"), body=("func", "round"), T=["f", "f"], results=2,
              result0=F32, result1=F32)
    for which in (0, 1, 2, 7, -1):
        cases.add(f"case_{which}", "StatelessCase", np.array(which, np.int32), x, w, T=False, Tin=["f", "f"], Tout=["f", "f"],
                  branches=[("func", "grow"), ("func", "shrink"), ("func", "either")], results=2, result0=F32, result1=F32)
    # Elements that no round sets are zeros.
    listed(cases, "list_all", [-1], 5)
    listed(cases, "list_some", [4], 3)
