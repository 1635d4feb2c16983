import collections
import math
import random

import torch
from common import measured, model_and_input, outcome
from pytorchfi.core import fault_injection

model, x = model_and_input()
injector = fault_injection(model, 1, input_shape=[3, 224, 224], layer_types=[torch.nn.Conv2d])
shapes = [injector.get_weights_size(layer) for layer in range(injector.get_total_layers())]
golden = model(x)
counts = collections.Counter()
for _ in measured():
    layer = random.choices(range(len(shapes)), [math.prod(shape) for shape in shapes])[0]
    kernel, channel, row, column = (random.randrange(size) for size in shapes[layer])
    bit = random.randrange(32)

    def flip(weight, at):
        return (weight[at].view(torch.int32) ^ (1 << bit if bit < 31 else -1 << 31)).view(torch.float32)

    faulty = injector.declare_weight_fi(layer_num=[layer], k=[kernel], dim1=[channel], dim2=[row], dim3=[column], function=flip)
    counts[outcome(golden, faulty(x))] += 1
