"""Makes the programs that the tests of the format executorch read: tests/formats/executorch/*.pte, net.pt2 and net_*.npy.

Run by hand with a Python that has torch 2.15.0 and executorch 1.5.1; the files are kept in the repository, so that the tests
need neither.
"""

import pathlib

import numpy as np
import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import ExecutorchBackendConfig, to_edge, to_edge_transform_and_lower
from torch import nn
from torch.export import Dim, export, save

here = pathlib.Path(__file__).parent


class Net(nn.Module):
    """Convolution, normalization, pooling, a number as an operand, lists as arguments and as results."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.fc = nn.Linear(64, 5)
        self.scale = nn.LayerNorm(5)

    def forward(self, x):
        y = torch.relu(self.norm(self.conv(x)))
        y = nn.functional.max_pool2d(y, 2) + 1.5
        first, second = torch.split(y, 2, dim=1)
        y = torch.cat([second, first], 1).flatten(1)
        return torch.softmax(self.scale(self.fc(y)), -1)


class Branches(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda a: a + 1, lambda a: a * 2, (x,))


class Counter(nn.Module):
    """Keeps a number from run to run."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        self.count.add_(1)
        return x + self.count


def told(program):
    """Without the folders of the machine that this runs on."""
    for node in program.graph.nodes:
        if "stack_trace" in node.meta:
            node.meta["stack_trace"] = f'  File "/home/me/net.py", line 42, in forward\n    {node.name}'
    return program


def write(name, program):
    (here / name).write_bytes(program.buffer)


torch.manual_seed(0)
net = Net().eval()
x = torch.randn(2, 3, 8, 8)
save(told(export(net, (x,))), here / "net.pt2")
write("net.pte", to_edge(told(export(net, (x,)))).to_executorch(ExecutorchBackendConfig(emit_stacktrace=True)))
np.save(here / "net_x.npy", x.numpy())
np.save(here / "net_y.npy", net(x).detach().numpy())
write("open.pte", to_edge(export(net, (x,), dynamic_shapes=({0: Dim("batch", min=1, max=4)},))).to_executorch())
write("delegate.pte", to_edge_transform_and_lower(export(net, (x,)), partitioner=[XnnpackPartitioner()]).to_executorch())
small = torch.ones(2, 3)
write("branches.pte", to_edge(export(Branches(), (small,))).to_executorch())
write("state.pte", to_edge(export(Counter(), (small,))).to_executorch())
