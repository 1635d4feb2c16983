"""What the experiments share: the model, the input, the faults that are drawn, and the clock.

An experiment is a script `NAME.py FOLDER FAULTS THREADS`. FOLDER has model.onnx, a ResNet-50 whose initializers have
torchvision's names, and input.npy. What it prints is for compare.py.
"""

import json
import random
import sys
import time

import numpy
import onnx
import torch
from onnx import numpy_helper
from torch import nn

FOLDER, FAULTS, THREADS = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


class Bottleneck(nn.Module):
    def __init__(self, channels_in, width, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels_in, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or channels_in != 4 * width:
            self.downsample = nn.Sequential(nn.Conv2d(channels_in, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet50(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        self.relu, self.maxpool = nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        channels = 64
        for stage, blocks in enumerate((3, 4, 6, 3)):
            width, made = 64 << stage, []
            for block in range(blocks):
                made.append(Bottleneck(channels, width, 2 if stage and not block else 1))
                channels = 4 * width
            setattr(self, f"layer{stage + 1}", nn.Sequential(*made))
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(channels, 1000)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))


def model_and_input():
    """With the weights of the ONNX file; and gradients off, threads set, as every experiment wants it."""
    torch.set_grad_enabled(False)
    torch.set_num_threads(THREADS)
    random.seed(0)
    weights = {item.name: torch.from_numpy(numpy_helper.to_array(item).copy())
               for item in onnx.load(f"{FOLDER}/model.onnx").graph.initializer}
    model = ResNet50()
    state = model.state_dict()
    model.load_state_dict({name: weights.get(name, state[name]) for name in state})
    missing = [name for name in state if name not in weights and not name.endswith("num_batches_tracked")]
    assert not missing, f"the model has no {missing}"
    return model.eval(), torch.from_numpy(numpy.load(f"{FOLDER}/input.npy"))


def outcome(golden, faulty):
    if not torch.isfinite(faulty).all():
        return "due"
    if faulty.argmax() != golden.argmax():
        return "sdc"
    return "masked" if torch.equal(faulty, golden) else "benign"


def measured():
    """The numbers of the faults, and at the end the time they took; the first two runs are not counted."""
    for warm in range(2):
        yield -1
    wall, busy = time.perf_counter(), time.process_time()
    for number in range(FAULTS):
        yield number
    print(json.dumps({"faults": FAULTS, "seconds": time.perf_counter() - wall, "busy": time.process_time() - busy,
                      "with": f"torch {torch.__version__}"}))
