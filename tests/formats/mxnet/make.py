#!/usr/bin/env python3
"""Makes the MXNet models that the tests read, as MXNet lays its files out, without MXNet.

    tests/formats/mxnet/make.py            net-symbol.json, net-0001.params, net-0003.params; loop.json, loop.params

Needs nothing but Python. The numbers are small and the same each time.
"""

import json
import pathlib
import struct

here = pathlib.Path(__file__).parent

FLAGS = {"f": 0, "d": 1, "e": 2, "B": 3, "i": 4, "b": 5, "q": 6, "?": 7}


def shape_text(shape):
    return struct.pack(f"<i{len(shape)}q", len(shape), *shape)


def elements(kind, count):
    return struct.pack(f"<{count}{kind}", *[bool(i % 2) if kind == "?" else i % 100 for i in range(count)])


def size(shape):
    total = 1
    for dim in shape:
        total *= dim
    return total


CPU = struct.pack("<ii", 1, 0)


def dense(shape, kind="f", magic=0xF993FAC9):
    return (struct.pack("<Ii", magic, 0) + shape_text(shape) + CPU + struct.pack("<i", FLAGS[kind]) +
            elements(kind, size(shape)))


def dense_v1(shape, kind="f"):
    return (struct.pack("<I", 0xF993FAC8) + shape_text(shape) + CPU + struct.pack("<i", FLAGS[kind]) +
            elements(kind, size(shape)))


def oldest(shape, kind="f"):
    return (struct.pack(f"<I{len(shape)}I", len(shape), *shape) + CPU + struct.pack("<i", FLAGS[kind]) +
            elements(kind, size(shape)))


def rows(shape, stored):
    """A row sparse array with these rows."""
    held = [len(stored), *shape[1:]]
    return (struct.pack("<Ii", 0xF993FAC9, 1) + shape_text(held) + shape_text(shape) + CPU + struct.pack("<i", 0) +
            struct.pack("<i", 6) + shape_text([len(stored)]) + elements("f", size(held)) +
            struct.pack(f"<{len(stored)}q", *stored))


def csr(shape, starts, columns):
    return (struct.pack("<Ii", 0xF993FAC9, 2) + shape_text([len(columns)]) + shape_text(shape) + CPU +
            struct.pack("<i", 0) + struct.pack("<i", 6) + shape_text([len(starts)]) + struct.pack("<i", 6) +
            shape_text([len(columns)]) + elements("f", len(columns)) + struct.pack(f"<{len(starts)}q", *starts) +
            struct.pack(f"<{len(columns)}q", *columns))


def nothing():
    return struct.pack("<Iii", 0xF993FAC9, 0, 0)


def arrays(named):
    out = struct.pack("<QQQ", 0x112, 0, len(named)) + b"".join(named.values()) + struct.pack("<Q", len(named))
    for name in named:
        out += struct.pack("<Q", len(name)) + name.encode()
    return out


def variable(name, **attrs):
    node = {"op": "null", "name": name, "inputs": []}
    return node | ({"attrs": attrs} if attrs else {})


def op(kind, name, inputs, outputs=1, **attrs):
    return {"op": kind, "name": name, "attrs": attrs, "inputs": [[i, o, 0] for i, o in inputs], "outputs": outputs}


def symbol(nodes, heads, **extra):
    rows_at = [0]
    for node in nodes:
        rows_at.append(rows_at[-1] + node.pop("outputs", 1))
    return {"nodes": nodes, "arg_nodes": [i for i, n in enumerate(nodes) if n["op"] == "null"],
            "node_row_ptr": rows_at, "heads": [[i, o, 0] for i, o in heads], **extra}


def net():
    return symbol([
        variable("data", __shape__="(0, 3, 8, 8)", __dtype__="0"),
        variable("conv0_weight", __shape__="(4, 3, 3, 3)", __lr_mult__="2.0"),
        variable("conv0_bias"),
        op("Convolution", "conv0", [(0, 0), (1, 0), (2, 0)], kernel="(3, 3)", num_filter="4", stride="(2, 2)",
           pad="(1, 1)", no_bias="False", workspace="1024"),
        variable("bn0_gamma"), variable("bn0_beta"), variable("bn0_moving_mean"), variable("bn0_moving_var"),
        op("BatchNorm", "bn0", [(3, 0), (4, 0), (5, 0), (6, 0), (7, 0)], 3, eps="1e-05", momentum="0.9",
           fix_gamma="False", use_global_stats="False"),
        op("Activation", "relu0", [(8, 0)], act_type="relu"),
        op("SliceChannel", "halves", [(9, 0)], 2, num_outputs="2", axis="1"),
        op("Concat", "concat0", [(10, 1), (10, 0)], num_args="2", dim="1"),
        op("Pooling", "pool0", [(11, 0)], kernel="(1L, 1L)", pool_type="avg", global_pool="True"),
        variable("fc_weight"), variable("fc_bias"),
        op("FullyConnected", "fc", [(12, 0), (13, 0), (14, 0)], num_hidden="5"),
        variable("softmax_label"),
        op("SoftmaxOutput", "softmax", [(15, 0), (16, 0)], grad_scale="0.5"),
    ], [(17, 0)], attrs={"mxnet_version": ["int", 10901], "framework": ["str", "ours"]})


def loop():
    body = symbol([variable("item"), variable("state"), op("elemwise_add", "sum", [(0, 0), (1, 0)])], [(2, 0), (2, 0)])
    node = op("_foreach", "loop", [(0, 0), (1, 0)], 2, num_args="3", num_outputs="2", num_out_data="1",
              in_state_locs="(1,)", in_data_locs="(0,)", remain_locs="()")
    node["subgraphs"] = [body]
    old = op("FullyConnected", "old", [(2, 0), (3, 0)], num_hidden="3", no_bias="True")
    old["param"] = old.pop("attrs")  # as MXNet wrote before 1.0
    return symbol([variable("data"), variable("start"), node, variable("old_weight"), old, variable("table"),
                   variable("graph"), variable("half"), variable("flags"), variable("plain"), variable("one"),
                   op("_Mystery", "all", [(i, 0) for i in range(5, 11)], odd="[[1, 2]]", empty="()", mixed="(1, 0.5)")],
                  [(4, 0), (2, 1), (11, 0)])


def main():
    (here / "net-symbol.json").write_text(json.dumps(net(), indent=2) + "\n")
    weights = {"arg:conv0_weight": dense([4, 3, 3, 3]), "arg:conv0_bias": dense([4]), "arg:bn0_gamma": dense([4]),
               "arg:bn0_beta": dense([4]), "aux:bn0_moving_mean": dense([4]), "aux:bn0_moving_var": dense([4]),
               "arg:fc_weight": dense([5, 4]), "arg:fc_bias": dense([5])}
    (here / "net-0003.params").write_bytes(arrays(weights))
    (here / "net-0001.params").write_bytes(arrays({"arg:fc_bias": dense([5], "d")}))
    (here / "loop.json").write_text(json.dumps(loop(), indent=2) + "\n")
    (here / "loop.params").write_bytes(arrays({
        "arg:start": dense([2], magic=0xF993FACA), "arg:old_weight": oldest([3, 2]), "arg:table": rows([6, 2], [1, 4]),
        "arg:graph": csr([3, 4], [0, 2, 2, 3], [0, 3, 1]), "arg:half": dense_v1([2, 2], "e"),
        "arg:flags": dense([3], "?"), "plain": dense([2], "q"), "arg:one": dense([], "f", 0xF993FACA),
        "arg:none": nothing(), "arg:extra": dense([1], "b")}))


if __name__ == "__main__":
    main()
