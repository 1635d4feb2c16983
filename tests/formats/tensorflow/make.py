#!/usr/bin/env python3
"""Makes the TensorFlow models that the tests read, field by field, without TensorFlow.

    tests/formats/tensorflow/make.py       frozen.pb, loop.pb, calls.pb, saved/, restored/

Needs nothing but Python. The numbers are small and the same each time.
"""

import pathlib
import struct

here = pathlib.Path(__file__).parent

FLOAT, INT32, STRING, INT64, BOOL, HALF, RESOURCE = 1, 3, 7, 9, 10, 19, 20


def varint(value):
    value &= (1 << 64) - 1
    out = b""
    while True:
        out += bytes([value & 0x7F | (0x80 if value > 0x7F else 0)])
        value >>= 7
        if not value:
            return out


def field(number, value):
    """A field: whole numbers as varints, floats as 4 bytes, all else with its length."""
    if isinstance(value, bool) or isinstance(value, int):
        return varint(number << 3) + varint(int(value))
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def entry(key, value):
    return field(1, key) + field(2, value)


def shape(*dims):
    return b"".join(field(2, field(1, dim)) for dim in dims)


def tensor(dtype, dims, content=b"", extra=b""):
    return field(1, dtype) + field(2, shape(*dims)) + (field(4, content) if content else b"") + extra


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


def item(value):
    """Of a list: "f" is the type of floats, pairs as for attributes."""
    if isinstance(value, tuple):
        return field(9, field(1, value[1])) if value[0] == "func" else field(6, value[1])
    return field(6, FLOAT) if value == "f" else field(3, value)


def attr(**values):
    """Attributes: type=…, shape=…, tensor=…, func=… as pairs (kind, value); others by their Python type."""
    kinds = {"type": 6, "shape": 7, "tensor": 8, "placeholder": 9}
    out = b""
    for key, value in values.items():
        if isinstance(value, tuple) and value[0] == "func":
            data = field(10, field(1, value[1]))
        elif isinstance(value, tuple):
            data = field(kinds[value[0]], value[1])
        elif isinstance(value, bool):
            data = field(5, value)
        elif isinstance(value, int):
            data = field(3, value)
        elif isinstance(value, float):
            data = field(4, value)
        elif isinstance(value, list):
            data = field(1, b"".join(item(i) for i in value))
        else:
            data = field(2, value)
        out += field(5, entry(key, data))
    return out


def node(name, op, inputs=(), **attrs):
    return field(1, name) + field(2, op) + b"".join(field(3, i) for i in inputs) + attr(**attrs)


def graph(nodes, functions=()):
    library = field(2, b"".join(field(1, f) for f in functions)) if functions else b""
    return b"".join(field(1, n) for n in nodes) + library + field(4, field(1, 1395))


def const(name, dtype, dims, content=b"", extra=b""):
    return node(name, "Const", dtype=("type", dtype), value=("tensor", tensor(dtype, dims, content, extra)))


def frozen():
    """Nodes that are not in order, constants in all forms, an op nobody knows, control inputs."""
    return graph([
        node("out", "Softmax", ["add"], T=("type", FLOAT)),
        node("add", "BiasAdd", ["mul", "bias", "^guard"], T=("type", FLOAT), data_format="NHWC"),
        node("x", "Placeholder", dtype=("type", FLOAT), shape=("shape", shape(-1, 4))),
        const("weight", FLOAT, [4, 3], floats(*range(12))),
        const("bias", FLOAT, [3], extra=field(5, 0.5)),  # one value for all
        node("mul", "MatMul", ["x", "weight"], T=("type", FLOAT), transpose_a=False, transpose_b=False),
        node("guard", "NoOp"),
        const("axis", INT32, [], extra=field(7, varint(1))),
        const("names", STRING, [2], extra=field(8, "a") + field(8, "b")),
        const("half", HALF, [2], extra=field(13, varint(0x3C00) + varint(0x4000))),
        node("parts", "Split", ["axis", "mul"], T=("type", FLOAT), num_split=3),
        node("odd", "Mystery", ["parts:2", "parts", "names", "half"], strides=[1, 2, 2, 1], rate=0.25, deep=True,
             label="text"),
    ])


def loop():
    """A loop as TensorFlow 1 writes it: NextIteration goes back to Merge."""
    return graph([
        node("x", "Placeholder", dtype=("type", FLOAT), shape=("shape", shape(2))),
        node("enter", "Enter", ["x"], frame_name="f"),
        node("merge", "Merge", ["enter", "next"]),
        node("go", "Less", ["merge", "merge"], T=("type", FLOAT)),
        node("switch", "Switch", ["merge", "go"]),
        node("step", "Identity", ["switch:1"]),
        node("next", "NextIteration", ["step"]),
        node("exit", "Exit", ["switch"]),
    ])


def argument(name, dtype):
    return field(1, name) + field(3, dtype)


def function(name, arguments, results, nodes, types={}):
    """`arguments`: names. `results`: names, and the values they return. `types` of those that are no floats."""
    kind = lambda a: types.get(a, BOOL if "go" in a else FLOAT)
    signature = (field(1, name) + b"".join(field(2, argument(a, kind(a))) for a in arguments) +
                 b"".join(field(3, argument(r, kind(r))) for r in results))
    return (field(1, signature) + b"".join(field(3, n) for n in nodes) +
            b"".join(field(4, entry(r, value)) for r, value in results.items()))


def calls():
    """Functions: one called twice, one in another, one that calls itself, a call that does not fit, a loop, a choice."""
    functions = [
        function("square", ["x"], {"y": "mul:z:0"}, [node("mul", "Mul", ["x", "x"], T=("type", FLOAT))]),
        function("outer", ["x"], {"y": "more:output:0", "unread": "far:y:0"}, [
            node("more", "PartitionedCall", ["x"], f=("func", "square")),
            node("far", "Exp", ["x"], T=("type", FLOAT))]),
        function("endless", ["x"], {"y": "again:output:0"}, [
            node("add", "AddV2", ["x", "x"], T=("type", FLOAT)),
            node("again", "PartitionedCall", ["add:z:0"], f=("func", "endless"))]),
        function("go_on", ["x"], {"go": "less:z:0"}, [
            const("limit", FLOAT, [], extra=field(5, 100.0)),
            node("less", "Less", ["x", "limit:output:0"], T=("type", FLOAT))]),
        function("step", ["x"], {"y": "inner:output:0"}, [
            node("inner", "PartitionedCall", ["x"], f=("func", "square"))]),
        function("keep", ["x"], {"y": "id:output:0"}, [node("id", "Identity", ["x"], T=("type", FLOAT))]),
    ]
    return graph([
        node("x", "Placeholder", dtype=("type", FLOAT), shape=("shape", shape())),
        node("layer/PartitionedCall", "PartitionedCall", ["x"], f=("func", "square"), Tout=["f"]),
        node("named", "PartitionedCall", ["layer/PartitionedCall"], f=("func", "outer")),
        node("odd", "PartitionedCall", ["named", "x"], f=("func", "square")),
        node("deep", "PartitionedCall", ["odd"], f=("func", "endless")),
        node("while", "StatelessWhile", ["deep"], cond=("func", "go_on"), body=("func", "step")),
        node("flag", "Placeholder", dtype=("type", BOOL), shape=("shape", shape())),
        node("if", "StatelessIf", ["flag", "while"], then_branch=("func", "keep"), else_branch=("func", "step")),
    ], functions)


def saved():
    signature = (field(1, "__inference_call_7") + field(2, argument("x", FLOAT)) + field(2, argument("w", RESOURCE)) +
                 field(2, argument("m", RESOURCE)) + field(3, argument("identity", FLOAT)))
    function = (field(1, signature) +
                field(3, node("read", "ReadVariableOp", ["w"], dtype=("type", FLOAT))) +
                field(3, node("mean", "ReadVariableOp", ["m"], dtype=("type", FLOAT))) +
                field(3, const("scale", FLOAT, [3], floats(1, 1, 1))) +
                field(3, node("mul", "MatMul", ["x", "read:value:0"], T=("type", FLOAT))) +
                field(3, node("norm", "FusedBatchNormV3", ["mul:product:0", "scale:output:0", "scale:output:0",
                                                           "mean:value:0", "mean:value:0"], T=("type", FLOAT))) +
                field(3, node("two", "TopKV2", ["norm:y:0", "k:output:0"])) +
                field(3, const("k", INT32, [], extra=field(7, varint(1)))) +
                field(3, node("out", "Identity", ["two:values:0", "^norm"], T=("type", FLOAT))) +
                field(4, entry("identity", "out:output:0")))
    nodes = [
        node("dense/kernel", "VarHandleOp", shared_name="dense/kernel", dtype=("type", FLOAT),
             shape=("shape", shape(4, 3))),
        node("mean", "VarHandleOp", shared_name="norm/mean", dtype=("type", FLOAT), shape=("shape", shape(3))),
        node("serving_default_x", "Placeholder", dtype=("type", FLOAT), shape=("shape", shape(-1, 4))),
        node("StatefulPartitionedCall", "StatefulPartitionedCall", ["serving_default_x", "dense/kernel", "mean"],
             f=("func", "__inference_call_7")),
        node("saver_filename", "Placeholder", dtype=("type", STRING)),
    ]
    info = field(4, "serve") + field(5, "2.15.0")
    port = lambda name, *dims: field(1, name) + field(2, FLOAT) + field(3, shape(*dims))
    serving = (field(1, entry("x", port("serving_default_x:0", -1, 4))) +
               field(2, entry("y", port("StatefulPartitionedCall:0", -1, 1))) + field(3, "tensorflow/serving/predict"))
    variable = lambda name, trainable: field(7, field(1, FLOAT) + (field(3, True) if trainable else b"") + field(6, name))
    objects = field(1, b"") + field(1, variable("dense/kernel", True)) + field(1, variable("norm/mean", False))
    meta = (field(1, info) + field(2, graph(nodes, [function])) +
            field(5, entry("__saved_model_init_op", b"")) + field(5, entry("serving_default", serving)) +
            field(7, objects))
    return field(1, 1) + field(2, meta)


def restored():
    """A variable that no object of the model is called after: what restores the model tells its value, as Keras 3 has it."""
    restore = function("__inference__traced_restore_9", ["file_prefix", "assignvariableop_w"], {"identity": "file_prefix"}, [
        const("RestoreV2/tensor_names", STRING, [2], extra=field(8, "save_counter/.ATTRIBUTES/VARIABLE_VALUE") +
              field(8, "layer/kernel/.ATTRIBUTES/VARIABLE_VALUE")),
        const("RestoreV2/shape_and_slices", STRING, [2], extra=field(8, "") + field(8, "")),
        node("RestoreV2", "RestoreV2", ["file_prefix", "RestoreV2/tensor_names:output:0", "RestoreV2/shape_and_slices:output:0"]),
        node("Identity", "Identity", ["RestoreV2:tensors:1"], T=("type", FLOAT)),
        node("AssignVariableOp", "AssignVariableOp", ["assignvariableop_w", "Identity:output:0"], dtype=("type", FLOAT)),
    ], {"file_prefix": STRING, "assignvariableop_w": RESOURCE, "identity": STRING})
    nodes = [
        node("w_1", "VarHandleOp", shared_name="w_1", dtype=("type", FLOAT), shape=("shape", shape(4, 3))),
        node("x", "Placeholder", dtype=("type", FLOAT), shape=("shape", shape(-1, 4))),
        node("read", "ReadVariableOp", ["w_1"], dtype=("type", FLOAT)),
        node("mul", "MatMul", ["x", "read"], T=("type", FLOAT)),
        node("saver_filename", "Placeholder", dtype=("type", STRING)),
        node("StatefulPartitionedCall_1", "StatefulPartitionedCall", ["saver_filename", "w_1"],
             f=("func", "__inference__traced_restore_9")),
    ]
    port = lambda name, *dims: field(1, name) + field(2, FLOAT) + field(3, shape(*dims))
    serving = field(1, entry("x", port("x:0", -1, 4))) + field(2, entry("y", port("mul:0", -1, 3)))
    meta = (field(1, field(4, "serve")) + field(2, graph(nodes, [restore])) +
            field(3, field(1, "saver_filename:0") + field(3, "StatefulPartitionedCall_1")) +
            field(5, entry("serving_default", serving)))
    return field(1, 1) + field(2, meta)


def block(entries):
    """Keys leave out what they share with the key before; a restart every four."""
    out, restarts, last = b"", [], b""
    for i, (key, value) in enumerate(entries):
        shared = 0
        if i % 4 == 0:
            restarts.append(len(out))
        else:
            while shared < min(len(last), len(key)) and last[shared] == key[shared]:
                shared += 1
        out += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        last = key
    return out + struct.pack(f"<{len(restarts) + 1}I", *restarts, len(restarts))


def snappy(data):
    """Packs nothing: literals of up to 60 bytes."""
    out = varint(len(data))
    for at in range(0, len(data), 60):
        piece = data[at:at + 60]
        out += bytes([(len(piece) - 1) << 2]) + piece
    return out


def table(entries):
    file, index = b"", []
    for number, part in enumerate((entries[:2], entries[2:])):
        data = block(part)
        packed = snappy(data) if number else data
        index.append((part[-1][0], varint(len(file)) + varint(len(packed))))
        file += packed + bytes([number]) + bytes(4)
    handles = b""
    for data in (block([]), block(index)):
        handles += varint(len(file)) + varint(len(data))
        file += data + bytes(5)
    return file + handles.ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57)


def write_variables(folder):
    folder.mkdir(parents=True, exist_ok=True)
    attribute = lambda full, key: field(2, field(1, "VARIABLE_VALUE") + (field(2, full) if full else b"") + field(3, key))
    objects = (field(1, b"") + field(1, attribute("dense/kernel", "layer/kernel/.ATTRIBUTES/VARIABLE_VALUE")) +
               field(1, attribute("", "mean/.ATTRIBUTES/VARIABLE_VALUE")))  # found by the number of the object
    data, entries = b"", {b"": field(1, 1)}
    for key, dtype, dims, content in (
            ("_CHECKPOINTABLE_OBJECT_GRAPH", STRING, [], varint(len(objects)) + bytes(4) + objects),
            ("layer/kernel/.ATTRIBUTES/VARIABLE_VALUE", FLOAT, [4, 3], floats(*range(12))),
            ("mean/.ATTRIBUTES/VARIABLE_VALUE", FLOAT, [3], floats(7, 8, 9)),
            ("save_counter/.ATTRIBUTES/VARIABLE_VALUE", INT64, [], struct.pack("<q", 1))):
        entries[key.encode()] = (field(1, dtype) + field(2, shape(*dims)) + field(4, len(data)) + field(5, len(content)))
        data += content
    (folder / "variables.index").write_bytes(table(sorted(entries.items())))
    (folder / "variables.data-00000-of-00001").write_bytes(data)


if __name__ == "__main__":
    (here / "frozen.pb").write_bytes(frozen())
    (here / "loop.pb").write_bytes(loop())
    (here / "calls.pb").write_bytes(calls())
    (here / "saved").mkdir(exist_ok=True)
    (here / "saved" / "saved_model.pb").write_bytes(saved())
    write_variables(here / "saved" / "variables")
    (here / "restored").mkdir(exist_ok=True)
    (here / "restored" / "saved_model.pb").write_bytes(restored())
    write_variables(here / "restored" / "variables")
