"""Makes the exported programs that the tests of the format pt2 read: tests/formats/pt2/*.pt2.

Run by hand with a Python that has torch (made with torch 2.15.0); the files are kept in the repository, so that the
tests need no torch. With --large FOLDER it writes nets of real size there, and what torch itself counts of each.
"""

import argparse
import json
import pathlib

import torch
from torch import nn
from torch.export import Dim, export, save


class Cnn(nn.Module):
    """Normalization, ops in place, lists as arguments and as results, weights in odd forms."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(8),
                                  nn.ReLU(inplace=True))
        self.left = nn.Conv2d(8, 4, 1).to(memory_format=torch.channels_last)
        self.right = nn.Conv2d(8, 4, 3, padding=1, groups=4)
        self.head = nn.Linear(8, 5)
        self.register_buffer("coded", torch.arange(-20, 20, dtype=torch.int8).reshape(5, 8))
        self.scale = nn.Parameter(torch.tensor(0.5))
        self.gain = nn.Parameter(torch.ones(5, dtype=torch.bfloat16))

    def forward(self, x):
        x = self.stem(x)
        x = torch.cat([self.left(x), self.right(x)], dim=1)
        first, second = torch.split(x, [3, 5], dim=1)
        x = torch.cat([second, first], 1).mean((2, 3))
        coded = nn.functional.linear(x, self.coded.to(torch.float32) * self.scale)
        return (self.head(x) + coded) * self.gain.float()


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    """A dynamic batch, and a table that is embedding and head."""

    def __init__(self, words=16, width=8, heads=2, blocks=2, length=6):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.place = nn.Parameter(torch.zeros(length, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(blocks))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        x = self.embed(tokens) + self.place
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.small, self.large = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda y: self.large(y).relu(), lambda y: self.small(y), (x,))


class State(nn.Module):
    """Writes to buffers and to an input."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.register_buffer("window", torch.ones(3), persistent=False)

    def forward(self, x, log):
        self.steps.add_(1)
        log.add_(x.sum())
        return self.norm(x * self.window) + self.steps


class Odd(nn.Module):
    """Views of one storage, strides, rare types, numbers that are none."""

    def __init__(self):
        super().__init__()
        whole = torch.arange(24, dtype=torch.float32).reshape(4, 6)
        self.register_buffer("whole", whole)
        self.register_buffer("part", whole[1:3])
        self.register_buffer("column", whole[:, 2])
        self.register_buffer("turned", whole.t())
        self.register_buffer("spread", torch.tensor([[7.0]]).expand(3, 2))
        self.register_buffer("tiny", torch.tensor([1.0, 2.0]).to(torch.float8_e4m3fn))
        self.register_buffer("turns", torch.tensor([1j, 2.0]))
        self.register_buffer("nothing", torch.zeros(0, 3))

    def forward(self, x, index):
        y = x @ self.whole + self.part.sum() + self.column.sum() + (x @ self.turned.t()) + self.spread.sum()
        y = y.masked_fill(y > 1e30, float("-inf")) + self.tiny.float().sum() + self.turns.abs().sum()
        y = torch.cat([y[:, index], self.nothing[:, :2].reshape(0, index.shape[0])])
        return y, None, 3, torch.full((2,), float(torch.finfo(torch.float64).max), dtype=torch.float64)


class Residual(nn.Module):
    def __init__(self, inner, outer, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outer)
        self.conv2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outer)
        self.relu = nn.ReLU(inplace=True)
        self.down = None
        if stride != 1 or inner != outer:
            self.down = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(y + (x if self.down is None else self.down(x)))


def resnet18():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    width = 64
    for outer, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers.append(nn.Sequential(Residual(width, outer, stride), Residual(outer, outer, 1)))
        width = outer
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


class Inverted(nn.Module):
    def __init__(self, inner, outer, stride, factor):
        super().__init__()
        middle = inner * factor
        layers = [] if factor == 1 else [nn.Conv2d(inner, middle, 1, bias=False), nn.BatchNorm2d(middle), nn.ReLU6()]
        layers += [nn.Conv2d(middle, middle, 3, stride, 1, groups=middle, bias=False), nn.BatchNorm2d(middle), nn.ReLU6(),
                   nn.Conv2d(middle, outer, 1, bias=False), nn.BatchNorm2d(outer)]
        self.conv = nn.Sequential(*layers)
        self.skips = stride == 1 and inner == outer

    def forward(self, x):
        return x + self.conv(x) if self.skips else self.conv(x)


def mobilenet_v2():
    layers = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6()]
    width = 32
    for factor, outer, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                         (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(count):
            layers.append(Inverted(width, outer, stride if i == 0 else 1, factor))
            width = outer
    layers += [nn.Conv2d(320, 1280, 1, bias=False), nn.BatchNorm2d(1280), nn.ReLU6(), nn.AdaptiveAvgPool2d(1),
               nn.Flatten(), nn.Dropout(0.2), nn.Linear(1280, 1000)]
    return nn.Sequential(*layers)


def macs_by_hooks(model, inputs):
    """Multiply-accumulates of convolutions and linear layers, and of attention, which has no module."""
    total = 0

    def count(module, _, output):
        nonlocal total
        if isinstance(module, nn.Conv2d):
            total += output.numel() * module.weight[0].numel()
        elif isinstance(module, nn.Linear):
            total += output.numel() * module.in_features
        elif isinstance(module, Block):
            batch, length, width = output.shape
            total += 2 * batch * length * length * width

    handles = [m.register_forward_hook(count) for m in model.modules()]
    model(*inputs)
    for handle in handles:
        handle.remove()
    return total


def write_large(folder):
    folder.mkdir(parents=True, exist_ok=True)
    facts = {}
    image = (torch.zeros(1, 3, 224, 224),)
    for name, model, inputs in (("resnet18", resnet18(), image), ("mobilenet_v2", mobilenet_v2(), image),
                                ("transformer", Transformer(1000, 256, 8, 6, 64), (torch.zeros(1, 64, dtype=torch.int64),))):
        model.eval()
        program = export(model, inputs)
        save(program, folder / f"{name}.pt2")
        facts[name] = {"parameters": sum(p.numel() for p in model.parameters()),
                       "buffers": sum(b.numel() for b in model.buffers()),
                       "ops": sum(n.op == "call_function" and "getitem" not in str(n.target)
                                  for n in program.graph.nodes),
                       "macs": macs_by_hooks(model, inputs)}
    (folder / "facts.json").write_text(json.dumps(facts, indent=1))
    print(json.dumps(facts, indent=1))


def write_small(folder):
    folder.mkdir(parents=True, exist_ok=True)
    batch = Dim("batch", min=2, max=64)
    image = torch.arange(2 * 3 * 8 * 8, dtype=torch.float32).reshape(2, 3, 8, 8) / 100
    programs = {
        "cnn": export(Cnn().eval(), (image,)),
        "transformer": export(Transformer().eval(), (torch.zeros(3, 6, dtype=torch.int64),),
                              dynamic_shapes={"tokens": {0: batch}}),
        "branches": export(Branches(), (torch.ones(2, 4),)),
        "state": export(State().train(), (torch.ones(4, 3), torch.zeros(()))).run_decompositions({}),
        "odd": export(Odd(), (torch.ones(2, 4), torch.tensor([0, 2]))),
    }
    here = str(pathlib.Path(__file__).resolve().parent)
    packages = str(pathlib.Path(torch.__file__).resolve().parent.parent)
    for name, program in programs.items():
        for graph in (m.graph for m in program.graph_module.modules() if isinstance(m, torch.fx.GraphModule)):
            for node in graph.nodes:
                node.meta.pop("from_node", None)  # a page for each op
                trace = node.meta.pop("stack_trace", "")
                if name == "cnn" and trace:
                    node.meta["stack_trace"] = trace.replace(here, "/home/me").replace(packages, "/usr/lib")
        save(program, folder / f"{name}.pt2")
        print(name, (folder / f"{name}.pt2").stat().st_size)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", type=pathlib.Path)
    options = parser.parse_args()
    torch.manual_seed(1)
    if options.large:
        write_large(options.large)
    else:
        write_small(pathlib.Path(__file__).parent)
