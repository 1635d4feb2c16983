import collections
import math
import random

import torch
from common import measured, model_and_input, outcome
from pytorchfi.core import fault_injection

model, x = model_and_input()


class FlipBit(fault_injection):
    """PyTorchFI has values and 8-bit integers; a bit of a float is the user's own function."""

    def flip(self, module, given, out):
        if self.current_layer == self.corrupt_layer[0]:
            at = 0, self.corrupt_dim1[0], self.corrupt_dim2[0], self.corrupt_dim3[0]
            out.view(torch.int32)[at] ^= self.mask
        self.updateLayer()


injector = FlipBit(model, 1, input_shape=[3, 224, 224], layer_types=[torch.nn.Conv2d])
shapes = injector.get_output_size()
golden = model(x)
counts = collections.Counter()
for _ in measured():
    layer = random.choices(range(len(shapes)), [math.prod(shape) for shape in shapes])[0]
    channel, row, column = (random.randrange(size) for size in shapes[layer][1:])
    bit = random.randrange(32)
    injector.mask = 1 << bit if bit < 31 else -1 << 31
    faulty = injector.declare_neuron_fi(batch=[0], layer_num=[layer], dim1=[channel], dim2=[row], dim3=[column], function=injector.flip)
    counts[outcome(golden, faulty(x))] += 1
