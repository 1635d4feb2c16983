import collections
import random

import torch
from common import measured, model_and_input, outcome

model, x = model_and_input()
layers = [module for module in model.modules() if isinstance(module, torch.nn.Conv2d)]
sizes = []
hooks = [layer.register_forward_hook(lambda module, given, out: sizes.append(out.numel())) for layer in layers]
golden = model(x)
for hook in hooks:
    hook.remove()
counts = collections.Counter()
for _ in measured():
    place = random.choices(range(len(layers)), sizes)[0]
    element, mask = random.randrange(sizes[place]), 1 << random.randrange(32)

    def flip(module, given, out):
        out.view(-1).view(torch.int32)[element] ^= mask if mask < 1 << 31 else -mask

    hook = layers[place].register_forward_hook(flip)
    counts[outcome(golden, model(x))] += 1
    hook.remove()
