"""Where faults can be: constants, activations, inputs, one reader or all, sparse parts; and where not."""

import numpy
import onnx
from onnx import helper, numpy_helper

import reference
from bench import images, info, make_model, network, node
from reference import TYPES, Fault


def part_readers(bench):
    """A shared constant, an activation with several readers that is an output too, odd names."""
    random = numpy.random.default_rng(2)
    weight = random.normal(size=(3, 4)).astype(numpy.float32)
    other = random.normal(size=(4, 4)).astype(numpy.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "shared/weight:0"], ["m"], name="first"),
        helper.make_node("MatMul", ["x2", "shared/weight:0"], ["n n"], name="second op"),
        node("Relu", "m", "r", "relu"),
        helper.make_node("Add", ["m", "n n"], ["s"], name="/block/Add"),
        node("Mul", "s s", "q", "square"),
        node("MatMul", "q o", "t", ""),
        node("Sub", "t r", "y", "sub"),
    ]
    model = make_model(nodes, [info("x", "f32", [2, 3]), info("x2", "f32", [2, 3])],
                       [info("y", "f32", [2, 4]), info("m", "f32", [2, 4])],
                       [numpy_helper.from_array(weight, "shared/weight:0"), numpy_helper.from_array(other, "o")],
                       [info(name, "f32", [2, 4]) for name in ("m", "n n", "r", "s", "q", "t")])
    feeds = {name: random.normal(size=(2, 3)).astype(numpy.float32) for name in ("x", "x2")}
    w = "'shared/weight:0'"
    places = [w, f"{w}>first", f"{w}>'second op'", f"{w}>#1", "o", "o>#5", "x", "x>first", "x2", "x2>#1", "m", "m>relu",
              "m>'/block/Add'", "m>#2", "'n n'", "'n n'>'/block/Add'", "s", "s>square", "q", "q>#5", "t", "t>sub", "r", "r>sub", "y"]
    effects = ["[0] flip 30", "[0,1] flip 31", "[*] zero", "[1,2] flip 22,24", "[:,::2] multiply -1.5", "[#3] stuck1 23-30",
               "[#0,#2] stuck0 0-22", "[0] add 0.125", "[1,:2] set 3"]
    single = [f"{place} {effect}" for place in places for effect in effects]
    faults = list(single)
    for _ in range(60):
        chosen = random.choice(len(single), 2 + int(random.integers(2)), replace=False)
        named = [single[i] for i in chosen]
        if len({Fault(f).tensor for f in named}) == len(named):
            faults.append(" + ".join(named))
    faults += [f"{w} [0,1] set 3 + {w} [0,2] set 5", f"{w}>first [0,1] set 3 + {w}>'second op' [0,1] set 5",
               "m [0,1] flip 31 + m>relu [0,2] flip 31", "m [0,1] add 1 + m [0,1] multiply 2"]
    bench.trials(model, [feeds], faults)


def part_network(bench):
    random = numpy.random.default_rng(3)
    model = network(random)
    shapes = {"x": (1, 2, 6, 6), "c1": (1, 4, 6, 6), "n1": (1, 4, 6, 6), "r1": (1, 4, 6, 6), "c2": (1, 4, 6, 6), "a": (1, 4, 6, 6),
              "r2": (1, 4, 6, 6), "p": (1, 4, 3, 3), "f": (1, 36), "l": (1, 8), "y": (1, 8), "r1>conv2": (1, 4, 6, 6),
              "r1>residual": (1, 4, 6, 6)}
    shapes.update({item.name: tuple(item.dims) for item in model.graph.initializer})
    faults = []
    for tensor, shape in shapes.items():
        for what in ("flip 31", "flip 30", "flip 23", "flip 3", "zero", "set 2", "multiply -3", "add 0.5", "stuck1 29-30"):
            index = [int(random.integers(size)) for size in shape]
            faults.append(f"{tensor} [{','.join(map(str, index))}] {what}")
        faults.append(f"{tensor} [*] multiply 1.5")
        if len(shape) > 1:
            faults.append(f"{tensor} [:,{index[1]}] zero")
    bench.trials(model, images(random, 1), faults)


def part_durations(bench):
    """Which of several inputs see a fault."""
    random = numpy.random.default_rng(4)
    model = network(random)
    faults = [f"{where} {when}".strip() for where in ("w1 [0,0,1,1] set 4", "c2 [0,1,2,3] set 9", "x [0,0,0,0] flip 30", "r1>conv2 [0,2] zero")
              for when in ("", "transient 0", "transient 3", "transient 9", "every 2", "every 2 from 1", "every 3 from 2", "every 1 from 4")]
    faults += ["w1 [0,0,1,1] set 4 transient 1 + c2 [0,1,2,3] set 9 every 2", "l [0,1] set 50 transient 2 + l [0,2] set 60 transient 4"]
    bench.trials(model, images(random, 6), faults)


def part_sparse(bench):
    """Constants stored as values and where they stand: places that collide or lie outside."""
    random = numpy.random.default_rng(6)
    for name, indices in (("flat", [1, 4, 9, 11]), ("pairs", [[0, 1], [1, 1], [2, 1], [2, 3]])):
        item = onnx.SparseTensorProto(dims=[3, 4])
        item.values.CopyFrom(numpy_helper.from_array(random.normal(size=4).astype(numpy.float32), "w"))
        item.indices.CopyFrom(numpy_helper.from_array(numpy.array(indices, numpy.int64), "w_indices"))
        model = make_model([node("MatMul", "x w", "m", "mm"), node("Relu", "m", "y", "relu")], [info("x", "f32", [2, 3])],
                           [info("y", "f32", [2, 4])], [], sparse=[item])
        faults = [f"w.values {e} {what}" for e in ("[0]", "[*]", "[1:3]", "[#3]") for what in ("flip 31", "flip 23", "zero", "set 2.5", "stuck1 30")]
        spots = ("[0]", "[3]") if name == "flat" else ("[0,1]", "[3,1]", "[3,0]", "[2]")
        faults += [f"w.indices {e} {what}" for e in spots for what in
                   ("flip 0", "flip 1", "flip 2", "flip 10", "flip 63", "set 1", "set 3", "set 4", "set -1", "set 11", "set 12", "zero", "add 1")]
        faults += ["w.values [0] set 1 + w.indices [*] add 0", "w.values>mm [0] set 7"]
        bench.trials(model, [{"x": random.normal(size=(2, 3)).astype(numpy.float32)}], faults, name)
        feeds = {"x": numpy.ones((2, 3), numpy.float32)}
        bench.refused(model, feeds, "w.values [4] zero", ["outside"])
        bench.refused(model, feeds, "w.indices [9] zero", ["outside"])
        bench.refused(model, feeds, "w.values [0] flip 32", ["bit 32"])
        bench.refused(model, feeds, "w.indices [0] flip 64", ["64"])
        bench.refused(model, feeds, "w [0,1] zero", ["sparse"])


def part_zeros(bench):
    """First choices whose score is 0, and outputs of nothing but 0."""
    model = make_model([node("Neg", "x", "y", "negate")], [info("x", "f32", [2, 3])], [info("y", "f32", [2, 3])], [])
    faults = [f"y {where}" for where in ("[0,1] set -5", "[0,1] flip 0", "[1,2] flip 31", "[0,0] set 1", "[0,0] flip 31", "[1] set -1", "[*] set nan")]
    for name, numbers in (("some", [[0, 1, 2], [3, 4, 5]]), ("all", [[0, 0, 0], [0, 0, 0]])):
        bench.trials(model, [{"x": numpy.array(numbers, numpy.float32)}], faults, name)


def part_errors(bench):
    random = numpy.random.default_rng(7)
    model = network(random)
    feeds = images(random, 1)[0]
    for fault in ("w1 [4,0,0,0]", "w1 [0,0,0,3]", "w1 [#72]", "w1 [0,0,0,0,0]", "w1 [0:5]", "w1 [2:2]", "c1 [0,0,6,0]", "c1 [1]", "c1 [#144]",
                  "x [0,2]", "r1>conv2 [0,4]", "b1 [0,0]"):
        bench.refused(model, feeds, fault + " zero", ["outside"])
    for fault in ("w1 [0] flip 32", "c1 [0] stuck0 3,40", "x [0] stuck1 30-33", "r1>conv2 [0] flip 63"):
        bench.refused(model, feeds, fault, ["there is no bit"])
    for fault, word in (("w9 [0] zero", "w9"), ("w1>nothing [0] zero", "nothing"), ("w1>#77 [0] zero", "#77"), ("w1>conv2 [0] zero", "reads"),
                        ("c1>relu2 [0] zero", "reads"), ("c1>conv1 [0] zero", "reads"), ("w1.values [0] zero", "sparse"), ("w1 [0] flip", "bits"),
                        ("w1 [0] melt 3", "expected"), ("w1 zero", "expected"), ("w1 [0] set", "number"), ("w1 [0] set a", "number"),
                        ("w1 [0] zero + ", "expected"), ("w1 [0] flip 3 sometimes", "expected"), ("w1 [-1] zero", "expected"),
                        ("w1 [0] zero transient", "expected"), ("w1 [0] zero every 0", "every"), ("w1 [::0] zero", "step")):
        bench.refused(model, feeds, fault, [word, "outside"] if word == "step" else [word])
    odd = make_model([node("Cast", "w", "c", "open", to=1), node("Add", "c x", "y", "add")], [info("x", "f32", [1])], [info("y", "f32", [3])],
                     [reference.constant("w", TYPES["i4"], [3], [1, 2, 3])])
    bench.refused(odd, {"x": numpy.ones(1, numpy.float32)}, "w [0] flip 4", ["there is no bit 4"])
    bench.refused(odd, {"x": numpy.ones(1, numpy.float32)}, "w [3] flip 0", ["outside"])
    path, empty = bench.fresh(".onnx"), bench.fresh(".txt")
    onnx.save(model, path)
    empty.write_text("\n")
    done = bench.run(path, "--view", "source", "--faults-from", empty, "-q", *bench.inputs(feeds))
    bench.check(done.returncode in (2, 3), f"a file without faults: exit {done.returncode}")


def part_graphs(bench):
    """Constants and readers in less usual places."""
    random = numpy.random.default_rng(11)

    def floats(name, *shape):
        return numpy_helper.from_array(random.normal(size=shape).astype(numpy.float32), name)

    def body(name, type):
        return helper.make_graph([node(type, "a w", name, "in_" + name)], name, [], [info(name, "f32", None)])

    x, y = info("x", "f32", [2, 3]), info("y", "f32", None)
    feeds = {"x": random.normal(size=(2, 3)).astype(numpy.float32)}
    what = ("flip 31", "flip 30", "set 2.5", "zero", "multiply -2")

    def faults(*places):
        return [f"{place} {effect}" for place in places for effect in what]

    scalar = make_model([node("Mul", "x s", "a", "mul"), node("ReduceSum", "a", "y", "sum", keepdims=0)], [x], [y], [floats("s")],
                        [info("a", "f32", [2, 3])])
    bench.trials(scalar, [feeds], faults("s [*]", "s [#0]", "a [1,2]", "a [#0,#5]", "x [1:,1]", "y [*]"), "scalar")
    attribute = helper.make_node("Constant", [], ["w"], name="held", value=floats("", 3, 4))
    inside = make_model([attribute, node("MatMul", "x w", "a", "mm"), node("Abs", "a", "y", "abs")], [x], [y], [],
                        [info("w", "f32", [3, 4]), info("a", "f32", [2, 4])])
    bench.trials(inside, [feeds], faults("w [0,1]", "w>mm [2]", "w [*]"), "Constant")
    chain = make_model([node("Identity", "w", "v", "same"), node("MatMul", "x v", "a", "mm"), node("MatMul", "x w", "b", "nn"),
                        node("Add", "a b", "y", "add")],
                       [x], [y], [floats("w", 3, 4)], [info(n, "f32", [3, 4]) for n in "v"])
    bench.trials(chain, [feeds], faults("w [0,1]", "w>nn [2]", "v [1]", "v>mm [#7]", "w>nn [1,1] set 3 + v [1,2]"), "Identity")
    twice = make_model([node("MatMul", "w w", "q", "square"), node("MatMul", "x q", "y", "mm")], [x], [y, info("w", "f32", [3, 3])],
                       [floats("w", 3, 3)],
                       [info("q", "f32", [3, 3])])
    bench.trials(twice, [feeds], faults("w [0,1]", "w>square [2]", "q [1]", "q>mm [#7]"), "read twice")
    given = make_model([node("MatMul", "x w", "y", "mm")], [x, info("w", "f32", [3, 4])], [y], [floats("w", 3, 4)])
    bench.trials(given, [feeds], faults("w [0,1]", "w>mm [2]", "w [*]"), "default of an input")
    flag = numpy_helper.from_array(numpy.array(True), "flag")
    choice = helper.make_node("If", ["flag"], ["b"], name="if", then_branch=body("t", "MatMul"), else_branch=body("e", "MatMul"))
    branch = make_model([node("Relu", "x", "a", "relu"), choice,
                         node("MatMul", "x w", "c", "mm"), node("Sub", "b c", "y", "sub")], [x], [y], [flag, floats("w", 3, 4)],
                        [info("a", "f32", [2, 3]), info("b", "f32", [2, 4])])
    bench.trials(branch, [feeds], faults("w [0,1]", "w>mm [2]", "w>if [1]", "a [0]", "a>if [#3]", "b [*]", "b>sub [1,1]"), "If")
    dead = make_model([node("MatMul", "x w", "y", "mm"), node("Abs", "x", "unused", "abs")], [x], [y], [floats("w", 3, 4)],
                      [info("unused", "f32", [2, 3])])
    bench.trials(dead, [feeds], faults("unused [0,1]", "x>abs [0]", "x [0,0]"), "dead")
