#!/usr/bin/env python3
"""A runner for `trocar lab run --command`: runs one layer with ONNX Runtime's Python package.

    trocar split model.onnx lab
    trocar lab run lab --command 'python3 examples/lab/runner.py {model} {inputs} {outputs}'
    trocar compare lab

A runner is given the model, a folder with input_0.npy, input_1.npy… (and the same as raw elements
in input_0.bin, described by input_0.json), and a folder to write output_0.npy… or output_0.bin to.
Any language will do; a code other than 0 says that the layer could not be run.
"""
import pathlib
import sys

import numpy as np
import onnxruntime as ort


def main():
    model, inputs, outputs = map(pathlib.Path, sys.argv[1:4])
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feed = {}
    for i, given in enumerate(session.get_inputs()):
        feed[given.name] = np.load(inputs / f"input_{i}.npy")
    for i, value in enumerate(session.run(None, feed)):
        np.save(outputs / f"output_{i}.npy", value)


if __name__ == "__main__":
    main()
