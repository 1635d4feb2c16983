#!/usr/bin/env python3
"""Makes the modules that the tests of the format torchscript read: tests/formats/torchscript/*.pt, and what torch computes
with them: NAME.npz has the inputs and outputs, in order.

Run by hand with a Python that has torch (made with torch 2.15.0); the files are kept in the repository, so that the tests need
no torch.
"""

import pathlib
import warnings
import zipfile
from typing import List, NamedTuple, Optional, Tuple

import numpy as np
import torch
from torch import nn

HERE = pathlib.Path(__file__).parent


class Residual(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after)
        self.conv2, self.norm2 = nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after)
        self.relu = nn.ReLU(inplace=True)
        self.down = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after)) if stride > 1 else None

    def forward(self, x):
        y = self.norm2(self.conv2(self.relu(self.norm1(self.conv1(x)))))
        if self.down is not None:
            x = self.down(x)
        y += x
        return self.relu(y)


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 4, 7, 2, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))
        self.layers = nn.Sequential(Residual(4, 4, 1), Residual(4, 8, 2))
        self.pool, self.head = nn.AdaptiveAvgPool2d(1), nn.Linear(8, 5)

    def forward(self, x):
        return self.head(torch.flatten(self.pool(self.layers(self.stem(x))), 1))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.lstm, self.head = nn.Embedding(12, 8), nn.LSTM(8, 6, 2, batch_first=True, bidirectional=True), nn.Linear(12, 3)

    def forward(self, tokens):
        y, (h, c) = self.lstm(self.embed(tokens))
        return self.head(y[:, -1]), h


class Block(nn.Module):
    def __init__(self, width=8, heads=2):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class Control(nn.Module):
    """If and loops that only a run decides, a list that a loop fills, a dictionary, an optional argument."""

    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Linear(4, 4), nn.Linear(4, 4)
        self.rounds = 3
        self.register_buffer("bias", torch.arange(4.0))

    def forward(self, x, n: int, gain: Optional[torch.Tensor] = None):
        if x.sum() > 0:
            x = self.one(x)
        else:
            x = self.other(x)
        i = 0
        while i < n:
            x = torch.tanh(self.one(x)) * 0.5 + i
            i += 1
        for j in range(self.rounds):
            x = x + j
        if gain is not None:
            x = x * gain
        rows: List[torch.Tensor] = []
        for j in range(x.size(0)):
            rows.append(x[j].relu())
        named = {"all": x}
        return torch.stack(rows) + self.bias, named["all"]


class Lists(nn.Module):
    """Lists of tensors and of numbers: put together, taken apart, asked for an item that only a run knows, and an error."""

    def forward(self, x, n: int):
        if n > 5:
            raise ValueError("there are too many")
        parts = [x, x * 2, x + n]
        picked = parts[n % len(parts)]
        first, second = x.split(2)
        rows: List[torch.Tensor] = []
        i = 0
        while i < len(parts) and i <= n:
            rows.append(parts[i] * float(i))
            i += 1
        sizes = [x.size(0), n, i]
        total = sizes[n % 3] + sizes[-1] // 2
        if len(rows) == 2:
            picked = picked - rows[-1]
        return picked + torch.stack(rows).sum(0), first - second, torch.cat(rows), torch.full([total, sizes[1]], 0.5)


class Pair(NamedTuple):
    left: torch.Tensor
    right: torch.Tensor


class State(nn.Module):
    """Attributes that change from call to call, a named tuple, a write in place that others see, weights that are tied."""

    def __init__(self):
        super().__init__()
        self.seen = torch.zeros(3)
        self.calls = 0
        self.first, self.second = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)
        self.second.weight = self.first.weight

    def split(self, x: torch.Tensor) -> Pair:
        return Pair(self.first(x), self.second(x) + 1)

    def forward(self, x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        pair = self.split(x)
        y = pair.left * 2
        z = y
        y.add_(pair.right)
        self.seen = self.seen + z.sum(0)
        self.calls += 1
        if self.calls > 1:
            z = z + self.seen
        return z, y


class Writes(nn.Module):
    """A write through a view."""

    def forward(self, x):
        y = x.clone()
        y[0] = 1.0
        return y * 2


class Ops(nn.Module):
    """Ops that no layer above has, each for an output of its own. The view tells the rank of all that follows."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 3, num_layers=2, bidirectional=True, batch_first=True)
        self.valid = nn.Conv2d(3, 4, 3, stride=2, padding="valid")
        self.same = nn.Conv1d(2, 2, 3, padding="same", dilation=2)
        self.instance = nn.InstanceNorm2d(3, affine=True)
        self.prelu = nn.PReLU(3)

    def forward(self, x):
        x = x.view(2, 3, 6, 4)
        rows = x.reshape(2, 18, 4)
        places = torch.tensor([2, 0])
        big = x > 0.5
        layers = [*self.gru(rows), self.valid(x), self.same(rows[:, :2]), self.instance(x), self.prelu(x), nn.functional.gelu(x)]
        parts = [x.unflatten(1, (1, 3)), x.flip(1, 3), x[places - 2], x[:, places], x[places - 2, places, places], rows.tril(), rows.triu(1),
                 nn.functional.pixel_shuffle(rows.view(1, 4, 6, 6), 2), torch.full_like(x, 3.0), x[big], torch.arange(x.size(2)) * 2.0]
        sums = [big.any(1).float(), big.all().float(), x.var(1), x.std((0, 2), unbiased=False), x.prod(2), x.logsumexp((1, 3)),
                torch.linalg.vector_norm(x, 2, 1), x.cumsum(1), *x.topk(2), *x.sort(1, descending=True), *x.min(2)]
        numbers = [2 - x, torch.log1p(x * x), torch.expm1(x), torch.fmod(x, 0.7), nn.functional.mish(x), nn.functional.selu(x),
                   nn.functional.celu(x, 1.5), nn.functional.logsigmoid(x), nn.functional.glu(x), torch.trunc(x * 3), torch.where(big, x, 0.5),
                   torch.einsum("bchw,bcvw->bhv", x, x), torch.baddbmm(rows @ rows.mT, rows, rows.mT, beta=0.5, alpha=2.0)]
        sizes = [nn.functional.interpolate(x, (7, 5), mode="bilinear"), nn.functional.interpolate(x, (7, 5), mode="bilinear", align_corners=True),
                 nn.functional.interpolate(x, (9, 8), mode="bicubic")]
        return [value if value.dtype == torch.float32 else value.float() for value in layers + parts + sums + numbers + sizes]


class Given(nn.Module):
    """What its inputs are shows only when it is given some: a rank, and an element type."""

    def forward(self, x, places):
        return x.transpose(0, 1)[places]


def flat(value):
    if isinstance(value, (tuple, list)):
        return [item for part in value for item in flat(part)]
    return [value.numpy()] if isinstance(value, torch.Tensor) else []


def keep(name, module, inputs):
    """Saves the module without what only a debugger reads, and what it computes."""
    path = HERE / f"{name}.pt"
    module.save(str(path))
    members = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            if not member.endswith(".debug_pkl"):
                members[member] = archive.read(member)
    with zipfile.ZipFile(path, "w") as archive:
        for member, data in members.items():
            archive.writestr(zipfile.ZipInfo(member), data)
    with torch.no_grad():
        outputs = flat(torch.jit.load(str(path))(*inputs))
    arrays = {f"in{i}": np.asarray(value) for i, value in enumerate(inputs)}
    np.savez(HERE / f"{name}.npz", **arrays, **{f"out{i}": value for i, value in enumerate(outputs)})
    print(name, path.stat().st_size, [value.shape for value in outputs])


def main():
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    examples = {"cnn": (Cnn(), (torch.randn(1, 3, 32, 32),)), "lstm": (Lstm(), (torch.randint(0, 12, (2, 5)),)),
                "block": (Block(), (torch.randn(2, 5, 8),))}
    for name, (module, inputs) in examples.items():
        module.eval()
        with torch.no_grad():
            for part in module.modules():
                if isinstance(part, nn.BatchNorm2d):
                    part.running_mean.normal_(0, 0.1)
                    part.running_var.uniform_(0.5, 1.5)
        keep(f"{name}_traced", torch.jit.trace(module, inputs), inputs)
        keep(f"{name}_scripted", torch.jit.script(module), inputs)
    keep("control", torch.jit.script(Control().eval()), (torch.randn(3, 4), 2))
    keep("state", torch.jit.script(State().eval()), (torch.randn(2, 3),))
    keep("writes", torch.jit.script(Writes().eval()), (torch.randn(2, 3),))
    keep("lists", torch.jit.script(Lists().eval()), (torch.randn(4, 3), 2))
    keep("ops", torch.jit.trace(Ops().eval(), (torch.randn(144),)), (torch.randn(144),))
    keep("given", torch.jit.trace(Given(), (torch.randn(2, 3), torch.tensor([2, 0, 1]))), (torch.randn(2, 3), torch.tensor([2, 0, 1, 1])))
    torch.save({"weight": torch.zeros(2)}, HERE / "dict.pt")


main()
