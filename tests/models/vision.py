"""The image classifiers everybody measures with, in torchvision's structure and its exporter's names.

Weights are seeded random numbers; parameters and multiply-accumulates are those of the originals.
"""

import numpy as np
from onnx import helper, numpy_helper

from build import FLOAT, Builder, make_model, model, random, value


class Vision(Builder):
    def __init__(self, name, default_norm=False):
        super().__init__(name)
        self.default_norm = default_norm  # batch norms as a fresh module has them: ones and zeros

    def conv(self, path, parameter, x, channels_in, channels_out, kernel, stride=1, groups=1):
        scale = np.sqrt(2 / (channels_in // groups * kernel * kernel))
        weight = self.weight(f"{parameter}.weight", (channels_out, channels_in // groups, kernel, kernel), scale)
        pad = kernel // 2
        return self.add("Conv", f"{path}/Conv", [x, weight], dilations=[1, 1], group=groups,
                        kernel_shape=[kernel, kernel], pads=[pad] * 4, strides=[stride, stride])

    def norm(self, path, parameter, x, channels, gain=1.0):
        names = [f"{parameter}.{field}" for field in ("weight", "bias", "running_mean", "running_var")]
        if self.default_norm:
            arrays = [np.ones(channels), np.zeros(channels), np.zeros(channels), np.ones(channels)]
        else:
            draw = random(self.seed, parameter).standard_normal((4, channels))
            arrays = [gain + 0.1 * gain * draw[0], 0.1 * draw[1], 0.1 * draw[2], 1 + 0.1 * np.abs(draw[3])]
        for name, array in zip(names, arrays):
            self.constant(name, array.astype(np.float32))
        return self.add("BatchNormalization", f"{path}/BatchNormalization", [x, *names], epsilon=1e-5, momentum=0.9,
                        training_mode=0)

    def classifier(self, path, parameter, x, features):
        x = self.add("Flatten", "/Flatten", [x], axis=1)
        weight = self.weight(f"{parameter}.weight", (1000, features), np.sqrt(1 / features))
        bias = self.weight(f"{parameter}.bias", (1000,), 0.01)
        self.add("Gemm", f"{path}/Gemm", [x, weight, bias], "logits", alpha=1.0, beta=1.0, transB=1)

    def finish(self):
        return make_model(self.graph([value("input", FLOAT, ["batch", 3, 224, 224])],
                                     [value("logits", FLOAT, ["batch", 1000])]))


def resnet(name, blocks, bottleneck, default_norm=False):
    net = Vision(name, default_norm)
    expansion = 4 if bottleneck else 1

    def unit(path, parameter, x, number, channels_in, channels_out, kernel, stride, gain=1.0):
        x = net.conv(f"{path}/conv{number}", f"{parameter}.conv{number}", x, channels_in, channels_out, kernel, stride)
        return net.norm(f"{path}/bn{number}", f"{parameter}.bn{number}", x, channels_out, gain)

    x = net.conv("/conv1", "conv1", "input", 3, 64, 7, 2)
    x = net.norm("/bn1", "bn1", x, 64)
    x = net.add("Relu", "/relu/Relu", [x])
    x = net.add("MaxPool", "/maxpool/MaxPool", [x], ceil_mode=0, dilations=[1, 1], kernel_shape=[3, 3],
                pads=[1, 1, 1, 1], strides=[2, 2])
    channels = 64
    for stage, count in enumerate(blocks, 1):
        width = 64 << (stage - 1)
        for block in range(count):
            path, parameter = f"/layer{stage}/layer{stage}.{block}", f"layer{stage}.{block}"
            stride = 2 if stage > 1 and block == 0 else 1
            out = width * expansion
            # (kernel, channels, stride) of the block's convolutions
            plan = [(1, width, 1), (3, width, stride), (1, out, 1)] if bottleneck else [(3, width, stride), (3, out, 1)]
            y, y_channels = x, channels
            for number, (kernel, plan_out, plan_stride) in enumerate(plan, 1):
                last = number == len(plan)
                y = unit(path, parameter, y, number, y_channels, plan_out, kernel, plan_stride, 0.3 if last else 1.0)
                y_channels = plan_out
                if not last:
                    suffix = "" if number == 1 else f"_{number - 1}"
                    y = net.add("Relu", f"{path}/relu{suffix}/Relu", [y])
            if stride != 1 or channels != out:
                x = net.conv(f"{path}/downsample/downsample.0", f"{parameter}.downsample.0", x, channels, out, 1, stride)
                x = net.norm(f"{path}/downsample/downsample.1", f"{parameter}.downsample.1", x, out)
            x = net.add("Add", f"{path}/Add", [y, x])
            x = net.add("Relu", f"{path}/relu_{len(plan) - 1}/Relu", [x])
            channels = out
    x = net.add("GlobalAveragePool", "/avgpool/GlobalAveragePool", [x])
    net.classifier("/fc", "fc", x, channels)
    return net.finish()


@model("resnet18", "ResNet-18: 11,689,512 parameters, 1,814,073,344 MACs in convolutions and classifier",
       shapes={"batch": 1})
def resnet18(_):
    return resnet("resnet18", [2, 2, 2, 2], bottleneck=False)


@model("resnet50", "ResNet-50: 25,557,032 parameters, 4,089,184,256 MACs in convolutions and classifier",
       shapes={"batch": 1})
def resnet50(_):
    return resnet("resnet50", [3, 4, 6, 3], bottleneck=True)


@model("resnet50_shared", "ResNet-50 as exporters write it: 67 initializers behind 267 uses, 200 Identity nodes",
       shapes={"batch": 1})
def resnet50_shared(_):
    """Equal initializers are kept once; the other names become Identity nodes on the one that is kept."""
    whole = resnet("resnet50", [3, 4, 6, 3], bottleneck=True, default_norm=True)
    kept, identities, first = [], [], {}
    for initializer in whole.graph.initializer:
        key = (tuple(initializer.dims), initializer.raw_data)
        if key in first:
            identities.append(helper.make_node("Identity", [first[key]], [initializer.name],
                                               name=f"Identity_{len(identities)}"))
        else:
            first[key] = initializer.name
            kept.append(initializer)
    assert (len(kept), len(identities)) == (67, 200)
    nodes = identities + list(whole.graph.node)
    return make_model(helper.make_graph(nodes, "resnet50", whole.graph.input, whole.graph.output, kept))


# Of each stage: expansion, channels, blocks, stride of the first block.
MOBILENET_V2 = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]


@model("mobilenet_v2", "MobileNetV2: 3,504,872 parameters, 300,774,272 MACs in convolutions and classifier",
       shapes={"batch": 1})
def mobilenet_v2(_):
    net = Vision("mobilenet_v2")

    def clip(path, x):
        bounds = []
        for suffix, bound in (("Constant", 0.0), ("Constant_1", 6.0)):
            bounds.append(net.add("Constant", f"{path}/{suffix}", [],
                                  value=numpy_helper.from_array(np.array(bound, np.float32))))
        return net.add("Clip", f"{path}/Clip", [x, *bounds])

    # The unit's modules are numbered below its own: features.0.0, or conv.1.0 in a block.
    def conv_norm_clip(path, parameter, x, channels_in, channels_out, kernel, stride, groups=1):
        leaf = path.rsplit("/", 1)[-1]
        x = net.conv(f"{path}/{leaf}.0", f"{parameter}.0", x, channels_in, channels_out, kernel, stride, groups)
        x = net.norm(f"{path}/{leaf}.1", f"{parameter}.1", x, channels_out)
        return clip(f"{path}/{leaf}.2", x)

    x = conv_norm_clip("/features/features.0", "features.0", "input", 3, 32, 3, 2)
    channels, number = 32, 0
    for expansion, channels_out, blocks, first_stride in MOBILENET_V2:
        for block in range(blocks):
            number += 1
            stride = first_stride if block == 0 else 1
            path, parameter = f"/features/features.{number}", f"features.{number}.conv"
            y, hidden, part = x, channels * expansion, 0
            if expansion != 1:
                y = conv_norm_clip(f"{path}/conv/conv.0", f"{parameter}.0", y, channels, hidden, 1, 1)
                part = 1
            y = conv_norm_clip(f"{path}/conv/conv.{part}", f"{parameter}.{part}", y, hidden, hidden, 3, stride, hidden)
            y = net.conv(f"{path}/conv/conv.{part + 1}", f"{parameter}.{part + 1}", y, hidden, channels_out, 1)
            y = net.norm(f"{path}/conv/conv.{part + 2}", f"{parameter}.{part + 2}", y, channels_out)
            if stride == 1 and channels == channels_out:
                y = net.add("Add", f"{path}/Add", [x, y])
            x, channels = y, channels_out
    x = conv_norm_clip("/features/features.18", "features.18", x, 320, 1280, 1, 1)
    x = net.add("GlobalAveragePool", "/GlobalAveragePool", [x])
    net.classifier("/classifier/classifier.1", "classifier.1", x, 1280)
    return net.finish()
