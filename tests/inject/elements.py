"""Every element type, in constants, activations and inputs."""

import numpy
from onnx import helper, numpy_helper

import reference
from bench import info, make_model, node
from reference import TYPES

ELEMENTS = ("[1,2]", "[#7]", "[#7,#0]", "[*]", "[0:3:2,1:4]", "[1]", "[:,::2]", "[2,1:]", "[0,0]", "[2,4]", "[#14]")


def codes_for(type, count, random):
    """Bits of finite numbers of moderate size."""
    if type.name == "bool":
        return [int(v) for v in random.integers(0, 2, count)]
    if type.floating:
        return [type.code(float(v)) for v in random.normal(0, 3, count)]
    size = min(type.bits, 40)
    return [int(v) & ((1 << type.bits) - 1) for v in random.integers(-(1 << size - 1) if type.signed else 0,
                                                                    1 << size - type.signed, count)]


def typed_faults(tensor, type, random):
    elements = iter(ELEMENTS * 40)
    bits = range(1) if type.name == "bool" else range(type.bits)
    if type.bits > 16:
        bits = [0, 1, *sorted(random.choice(range(2, type.bits - 3), 8, replace=False).tolist()), *range(type.bits - 3, type.bits)]
    for bit in bits:
        yield f"{tensor} {next(elements)} flip {bit}"
    for bit in bits[::2]:
        yield f"{tensor} {next(elements)} stuck0 {bit}"
        yield f"{tensor} {next(elements)} stuck1 {bit}"
    if len(bits) > 1:
        last = type.bits - 1
        for kind in ("flip", "stuck0", "stuck1"):
            yield f"{tensor} {next(elements)} {kind} 0-{last}"
            yield f"{tensor} {next(elements)} {kind} 0,{last}"
            yield f"{tensor} {next(elements)} {kind} 0,{last // 2}-{last - (last > 1)}"
    yield f"{tensor} {next(elements)} zero"
    for kind in ("set", "add", "multiply"):
        for number in ("1", "-2", "2.5", "0.3", "1e3", "-1e30", "3.5", "1.0000001"):
            yield f"{tensor} {next(elements)} {kind} {number}"


def wide(type):
    return "f64" if type.name in ("f64", "i32", "u32", "i64", "u64") else "f32"


def typed_model(type, codes, dequantize):
    out = wide(type)
    constants = [reference.constant("w", type, [3, 5], codes)]
    if dequantize:
        nodes = [node("DequantizeLinear", "w s", "c", "open")]
        constants.append(numpy_helper.from_array(numpy.float32(0.5), "s"))
        out = "f32"
    else:
        nodes = [node("Cast", "w", "c", "open", to=TYPES[out].onnx)]
    nodes.append(node("Mul", "c x", "y", "mul"))
    return make_model(nodes, [info("x", out, [1])], [info("y", out, [3, 5])], constants), {"x": numpy.ones(1, out.replace("f", "float"))}


def part_types(bench):
    random = numpy.random.default_rng(1)
    for type in TYPES.values():
        for dequantize in (False, True):
            if dequantize and type.name not in "i2 u2 i4 u4 i8 u8 i16 u16 f8e4m3fn f8e5m2 f8e4m3fnuz f8e5m2fnuz".split():
                continue
            model, feeds = typed_model(type, codes_for(type, 15, random), dequantize)
            bench.trials(model, [feeds], list(typed_faults("w", type, random)), type.name + (" dequantized" if dequantize else ""))


def part_whole_numbers(bench):
    """64-bit integers that no double holds."""
    for name in ("i64", "u64"):
        type = TYPES[name]
        codes = [2**53 + 1, 2**62 + 1, 5]
        model = make_model([node("Sub", "w x", "y", "sub")], [info("x", name, [3])], [info("y", name, [3])],
                           [reference.constant("w", type, [3], codes)])
        feeds = {"x": numpy.array([2**53, 2**62, 0], name.replace("i", "int").replace("u", "uint").replace("uintnt", "uint"))}
        faults = [f"w [{at}] {what}" for at in (0, 1, 2) for what in ("add 0", "add 1", "add 4", "multiply 1", "flip 0", "flip 1,2")]
        bench.trials(model, [feeds], faults, name)


def part_activations(bench):
    """Activations and inputs of every type that ONNX Runtime lets flow."""
    random = numpy.random.default_rng(5)
    for type in TYPES.values():
        if type.name in ("f32", "bool"):
            continue
        out = wide(type)
        nodes = [node("Cast", "x", "a", "close", to=type.onnx), node("Cast", "a", "c", "open", to=TYPES[out].onnx), node("Mul", "c k", "y", "mul")]
        one = numpy_helper.from_array(numpy.ones(1, out.replace("f", "float")), "k")
        model = make_model(nodes, [info("x", "f32", [3, 5])], [info("y", out, [3, 5])], [one], [info("a", type.name, [3, 5])])
        top = 100 if type.floating else min(2 ** (type.bits - type.signed) - 1, 10000)
        low = 0 if type.name[0] == "u" else -top
        numbers = random.uniform(low, top, (3, 5)) if type.floating else random.integers(low, top, (3, 5))
        faults = list(typed_faults("a", type, random))[::3] + [f"a>open {e} flip {type.bits - 1}" for e in ELEMENTS[:4]]
        bench.trials(model, [{"x": numbers.astype(numpy.float32)}], faults, type.name)
    for name in ("f64", "f16", "i8", "u8", "i16", "i32", "i64", "u64"):
        type = TYPES[name]
        array = numpy.array([type.number(c) for c in codes_for(type, 15, random)]).astype(helper.tensor_dtype_to_np_dtype(type.onnx))
        nodes = [node("Cast", "x", "c", "open", to=TYPES[wide(type)].onnx), node("Neg", "c", "y", "negate")]
        model = make_model(nodes, [info("x", name, [3, 5])], [info("y", wide(type), [3, 5])], [])
        bench.trials(model, [{"x": array.reshape(3, 5)}], list(typed_faults("x", type, random))[::3], f"input {name}")
    nodes = [node("Greater", "x k", "a", "greater"), node("Where", "a x k", "y", "where")]
    model = make_model(nodes, [info("x", "f32", [3, 5])], [info("y", "f32", [3, 5])],
                       [numpy_helper.from_array(numpy.zeros(1, numpy.float32), "k")], [info("a", "bool", [3, 5])])
    bench.trials(model, [{"x": random.normal(size=(3, 5)).astype(numpy.float32)}], list(typed_faults("a", TYPES["bool"], random)), "bool")
