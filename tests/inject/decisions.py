"""What counts as SDC, by every kind of decision: tokens, boxes in varying number, pixels, a number."""

import numpy
import onnx
from onnx import numpy_helper

from bench import info, make_model, node, rows


def constants(random, **shapes):
    return [numpy_helper.from_array(random.normal(size=shape).astype(numpy.float32), name) for name, shape in shapes.items()]


def decoder(random):
    """Six tokens: ids and, as a second output, the scores that they are chosen by."""
    nodes = [node("Gather", "emb t", "e", "gather"), node("MatMul", "e w1", "m", "mix"), node("Tanh", "m", "h", "tanh"),
             node("MatMul", "h w2", "rows", "head"), node("ArgMax", "rows", "ids", "choose", axis=-1, keepdims=0)]
    return make_model(nodes, [info("t", "i64", [1, 6])], [info("ids", "i64", [1, 6]), info("rows", "f32", [1, 6, 9])],
                      constants(random, emb=(9, 5), w1=(5, 5), w2=(5, 9)), [info(n, "f32", None) for n in "emh"])


def detector(random):
    """Boxes of a grid that non-maximum suppression leaves: as many rows as there are."""
    limits = [numpy_helper.from_array(numpy.array(v, t), n) for n, v, t in
              (("most", [5], numpy.int64), ("iou", [0.3], numpy.float32), ("least", [0.2], numpy.float32))]
    nodes = [node("MatMul", "x wb", "b", "boxes"), node("MatMul", "wc x", "c", "classes"),
             node("NonMaxSuppression", "b c most iou least", "found", "nms")]
    return make_model(nodes, [info("x", "f32", [1, 8, 8])], [info("found", "i64", ["n", 3])],
                      constants(random, wb=(8, 4), wc=(1, 3, 8)) + limits, [info(n, "f32", None) for n in "bc"])


def pixels(random):
    nodes = [node("Conv", "x w1", "c", "conv", pads=[1, 1, 1, 1]), node("Relu", "c", "r", "relu"), node("Conv", "r w2", "out", "last")]
    return make_model(nodes, [info("x", "f32", [1, 2, 5, 4])], [info("out", "f32", [1, 6, 5, 4])],
                      constants(random, w1=(4, 2, 3, 3), w2=(6, 4, 1, 1)), [info(n, "f32", None) for n in "cr"])


def number(random):
    nodes = [node("MatMul", "x w1", "a", "first"), node("Relu", "a", "r", "relu"), node("MatMul", "r w2", "y", "last")]
    return make_model(nodes, [info("x", "f32", [1, 4])], [info("y", "f32", [1, 1])], constants(random, w1=(4, 6), w2=(6, 1)),
                      [info(n, "f32", None) for n in "ar"])


def part_decisions(bench):
    random = numpy.random.default_rng(16)
    made = {
        decoder: ({"t": random.integers(0, 9, (1, 6))},
                  {"": "equal:ids", "scores:rows": "scores:rows:2", "topk:2:rows": "topk:2:rows:2", "error:0.1:rows": "error:0.1:rows",
                   "equal:1": "equal:rows", "scores:rows:1": "scores:rows:1", "none": "none"}),
        detector: ({"x": random.normal(size=(1, 8, 8)).astype(numpy.float32)}, {"": "equal:found", "error:1": "error:1:found"}),
        pixels: ({"x": random.normal(size=(1, 2, 5, 4)).astype(numpy.float32)},
                 {"": "scores:out:1", "scores:out:-1": "scores:out:3", "topk:5": "topk:5:out:1", "error:0.5": "error:0.5:out"}),
        number: ({"x": random.normal(size=(1, 4)).astype(numpy.float32)},
                 {"": "none", "error:0.01": "error:0.01:y", "equal": "equal:y"}),
    }
    for make, (feeds, decisions) in made.items():
        model = make(random)
        path = bench.fresh(".onnx")
        onnx.save(model, path)
        for given, used in decisions.items():
            option = ["--decision", given] if given else []
            store = bench.store(path, *bench.inputs(feeds), "--target", "weights,activations", "--faults", 150, *option)
            title = f"{make.__name__} {given}"
            found = rows(store, "SELECT decision FROM campaign")[0]["decision"]
            bench.check(found == used, title, f"decision {found}, not {used}")
            bench.compare(store, model, [feeds], title)
            sdc = rows(store, "SELECT count(*) AS n FROM results WHERE outcome = 'sdc'")[0]["n"]
            bench.check((sdc > 0) == (used != "none"), title, f"{sdc} results are SDC")
            if make is detector and not given:
                counts = rows(store, "SELECT count(DISTINCT positions) AS n FROM results WHERE positions > 0")[0]["n"]
                bench.check(counts > 1, title, "the number of boxes never varies")
