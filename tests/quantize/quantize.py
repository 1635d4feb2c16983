"""Quantised models: scales and codes against numpy, accuracy on ONNX Runtime and on LiteRT's own interpreter."""

import pathlib
import tempfile

import ml_dtypes
import numpy as np
import onnx
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from onnx import numpy_helper

from common import DATA, IMAGES, LABELS, MODELS, constants, every_value, session, trocar

SAMPLES = 100


def attribute(node, name, otherwise):
    return next((onnx.helper.get_attribute_value(one) for one in node.attribute if one.name == name), otherwise)


def accuracy(logits):
    return float((logits.reshape(len(LABELS), -1).argmax(1) == LABELS).mean())


def codes(numbers, scale, zero):
    return np.clip(np.rint(numbers / scale) + zero, -128, 127)


def check_ranges(path, folder):
    """Scales and zero points of min-max are those of what was seen; mse is nearly the best cut there is."""
    values = every_value(path, {"image": IMAGES[:SAMPLES]})
    for method in ("min-max", "mse"):
        trocar("quantize", path, folder / "q.onnx", *DATA, "--range", method, "--samples", SAMPLES, "-q")
        made = onnx.load(folder / "q.onnx")
        onnx.checker.check_model(made, full_check=True)
        known = constants(made)
        for node in made.graph.node:
            if node.op_type != "QuantizeLinear":
                continue
            seen = values[node.input[0]].astype(np.float64)
            low, high = min(seen.min(), 0), max(seen.max(), 0)
            scale, zero = float(known[node.input[1]]), int(known[node.input[2]])
            if method == "min-max":
                np.testing.assert_allclose(scale, (high - low) / 255, rtol=1e-4, err_msg=node.name)
                assert zero == np.clip(np.rint(-128 - low / scale), -128, 127), node.name
                continue

            def error(scale, zero):
                return ((codes(seen, scale, zero) - zero) * scale - seen).__pow__(2).mean()

            best = min(error((high - low) * part / 255, np.rint(-128 - low * part / ((high - low) * part / 255)))
                       for part in np.linspace(0.3, 1, 71))
            assert error(scale, zero) <= 1.06 * best + 1e-12, node.name


def check_weights(path, folder):
    """Weights alone: every code is the nearest, scales are those of channels or blocks."""
    before = constants(onnx.load(path))
    for scheme in ("weights-int8", "weights-int4", "weights-f16", "weights-bf16"):
        trocar("quantize", path, folder / "w.onnx", "--scheme", scheme, "-q")
        made = onnx.load(folder / "w.onnx")
        onnx.checker.check_model(made, full_check=True)
        session(folder / "w.onnx")
        stored = {one.name: one for one in made.graph.initializer}
        checked = 0
        for node in made.graph.node:
            name = node.input[0].rsplit("/", 1)[0] if node.input else ""
            if node.op_type not in ("DequantizeLinear", "Cast") or name not in before:
                continue
            checked += 1
            weights = before[name]
            numbers = np.asarray(numpy_helper.to_array(stored[node.input[0]]))
            if node.op_type == "Cast":
                narrow = weights.astype(np.float16 if scheme == "weights-f16" else ml_dtypes.bfloat16)
                assert np.array_equal(numbers.view(np.uint16), narrow.view(np.uint16)), name
                continue
            scales = numpy_helper.to_array(stored[node.input[1]])
            axis, block = attribute(node, "axis", 1), attribute(node, "block_size", 0)
            largest = 7 if scheme == "weights-int4" else 127
            if block:
                wanted = np.stack([np.abs(weights.take(range(i, min(i + block, weights.shape[axis])), axis)).max(axis)
                                   for i in range(0, weights.shape[axis], block)], axis) / largest
                spread = scales.repeat(block, axis).take(range(weights.shape[axis]), axis)
            else:
                others = tuple(i for i in range(weights.ndim) if i != axis)
                wanted = np.abs(weights).max(others) / largest
                spread = np.expand_dims(scales, others)
            np.testing.assert_allclose(scales, wanted, rtol=1e-5, err_msg=name)
            off = numbers.astype(np.float64) * spread - weights
            assert (np.abs(off) <= 0.5001 * spread).all(), name
        assert checked > 0, scheme


def run_litert(path, resolver):
    interpreter = Interpreter(str(path), num_threads=1, experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    given, made = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    outputs = []
    for image in IMAGES:
        interpreter.set_tensor(given["index"], image.reshape(given["shape"]))
        interpreter.invoke()
        outputs.append(interpreter.get_tensor(made["index"]).ravel())
    return interpreter, np.stack(outputs)


def check_litert(path, layers):
    """Ops on 8-bit integers from the first to the last, with a scale for each channel of weights."""
    interpreter, plain = run_litert(path, OpResolverType.BUILTIN_REF)
    tensors = {one["index"]: one for one in interpreter.get_tensor_details()}
    found = 0
    for op in interpreter._get_ops_details():
        inputs = [tensors[i] for i in op["inputs"] if i >= 0]
        if op["op_name"] in ("QUANTIZE", "DEQUANTIZE"):
            continue
        assert inputs[0]["dtype"] == np.int8 and tensors[op["outputs"][0]]["dtype"] == np.int8, op
        if op["op_name"] in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"):
            found += 1
            weights, bias = inputs[1], inputs[2]
            channels = weights["shape"][-1 if op["op_name"] == "DEPTHWISE_CONV_2D" else 0]
            assert weights["dtype"] == np.int8 and len(weights["quantization_parameters"]["scales"]) == channels
            assert bias["dtype"] == np.int32
    assert found == layers, (found, layers)
    _, fast = run_litert(path, OpResolverType.AUTO)
    return plain, fast


def check_accuracy(name, layers, folder):
    path = MODELS / name
    before = accuracy(session(path).run(None, {"image": IMAGES})[0])
    told = trocar("quantize", path, folder / "q.onnx", "--to", folder / "q.tflite", *DATA)
    quantised = session(folder / "q.onnx").run(None, {"image": IMAGES})[0]
    step = float(np.abs(quantised).max()) / 128
    for numbers in check_litert(folder / "q.tflite", layers):
        # Kernels round at other places: a few steps of the output.
        assert np.abs(numbers - quantised).max() < 6 * step
        assert accuracy(numbers) >= before - 0.01, accuracy(numbers)
    after = accuracy(quantised)
    assert after >= before - 0.01
    assert f"Accuracy before        {100 * before:.1f} %" in told, told
    print(f"{name}: {100 * before:.1f} % before, {100 * after:.1f} % on ONNX Runtime, "
          f"{100 * accuracy(numbers):.1f} % on LiteRT")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        check_accuracy("digits.onnx", 5, folder)
        check_accuracy("digits_mobile.onnx", 17, folder)
        check_ranges(MODELS / "digits.onnx", folder)
        check_ranges(MODELS / "digits_mobile.onnx", folder)
        check_weights(MODELS / "digits.onnx", folder)


if __name__ == "__main__":
    main()
