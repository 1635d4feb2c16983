"""Models whose outputs decide in different ways: tokens, a varying number of boxes, pixels, a number."""

import numpy as np

from build import FLOAT, INT64, Builder, make_model, model, value


@model("token_decoder", "embedding, two products, and ArgMax over six positions")
def token_decoder(_):
    net = Builder("token_decoder")
    x = net.add("Gather", "embed", [net.weight("embed.weight", (12, 8), 1.0), "tokens"], axis=0)
    x = net.add("MatMul", "mix", [x, net.weight("mix.weight", (8, 8), 0.5)])
    x = net.add("Tanh", "tanh", [x])
    x = net.add("MatMul", "head", [x, net.weight("head.weight", (8, 12), 0.7)])
    net.add("ArgMax", "choose", [x], "next", axis=-1, keepdims=0)
    return make_model(net.graph([value("tokens", INT64, [1, 6])], [value("next", INT64, [1, 6])]))


@model("box_detector", "sixteen boxes of three classes, of which NonMaxSuppression leaves some")
def box_detector(_):
    net = Builder("box_detector")
    x = net.add("Conv", "stem", ["image", net.weight("stem.weight", (8, 3, 4, 4), 0.2)], kernel_shape=[4, 4],
                strides=[4, 4])
    x = net.add("Relu", "relu", [x])
    x = net.add("Conv", "head", [x, net.weight("head.weight", (7, 8, 1, 1), 0.5)], kernel_shape=[1, 1])
    x = net.add("Reshape", "rows", [x, net.constant("rows.shape", np.array([1, 7, 16]))])
    corners = net.add("Slice", "corners", [x, net.constant("c.from", np.array([0])), net.constant("c.to", np.array([4])),
                                           net.constant("c.axis", np.array([1]))])
    scores = net.add("Slice", "scores", [x, net.constant("s.from", np.array([4])), net.constant("s.to", np.array([7])),
                                         net.constant("s.axis", np.array([1]))])
    corners = net.add("Transpose", "turn", [corners], perm=[0, 2, 1])
    scores = net.add("Sigmoid", "sigmoid", [scores])
    chosen = net.add("NonMaxSuppression", "nms",
                     [corners, scores, net.constant("most", np.array([6])), net.constant("iou", np.array([0.3], np.float32)),
                      net.constant("least", np.array([0.55], np.float32))])
    net.add("Gather", "label", [chosen, net.constant("label.column", np.array(1))], "labels", axis=1)
    which = net.add("Gather", "which", [chosen, net.constant("box.column", np.array(2))], axis=1)
    flat = net.add("Squeeze", "flat", [corners, net.constant("flat.axis", np.array([0]))])
    net.add("Gather", "pick", [flat, which], "boxes", axis=0)
    return make_model(net.graph([value("image", FLOAT, [1, 3, 16, 16])],
                                [value("boxes", FLOAT, ["n", 4]), value("labels", INT64, ["n"])]))


@model("pixel_classes", "five class scores for every pixel of an image")
def pixel_classes(_):
    net = Builder("pixel_classes")
    x = net.add("Conv", "first", ["image", net.weight("first.weight", (6, 3, 3, 3), 0.3)], kernel_shape=[3, 3],
                pads=[1, 1, 1, 1])
    x = net.add("Relu", "relu", [x])
    net.add("Conv", "last", [x, net.weight("last.weight", (5, 6, 1, 1), 0.5)], "out", kernel_shape=[1, 1])
    return make_model(net.graph([value("image", FLOAT, [1, 3, 8, 8])], [value("out", FLOAT, [1, 5, 8, 8])]))


@model("one_number", "a regression: two products and one number")
def one_number(_):
    net = Builder("one_number")
    x = net.add("MatMul", "first", ["x", net.weight("first.weight", (8, 6), 0.5)])
    x = net.add("Relu", "relu", [x])
    net.add("MatMul", "last", [x, net.weight("last.weight", (6, 1), 0.5)], "price")
    return make_model(net.graph([value("x", FLOAT, [1, 8])], [value("price", FLOAT, [1, 1])]))
