import collections
import random

import torch
from common import measured, model_and_input, outcome

model, x = model_and_input()
weights = [module.weight for module in model.modules() if isinstance(module, torch.nn.Conv2d)]
sizes = [weight.numel() for weight in weights]
golden = model(x)
counts = collections.Counter()
for _ in measured():
    place = random.choices(range(len(weights)), sizes)[0]
    element, mask = random.randrange(sizes[place]), 1 << random.randrange(32)
    bits = weights[place].view(-1).view(torch.int32)
    bits[element] ^= mask if mask < 1 << 31 else -mask
    counts[outcome(golden, model(x))] += 1
    bits[element] ^= mask if mask < 1 << 31 else -mask
