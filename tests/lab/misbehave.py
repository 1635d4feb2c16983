"""A runner that does what the environment says to layers whose model holds an op of a type.

    MISBEHAVE=Relu:crash  crash, hang, fail, garbage, shape, dtype, nothing, large, off, raw, and
                          with channels last: nhwc, raw_nhwc
"""
import os
import pathlib
import signal
import sys
import time

import numpy as np
import onnx
import onnxruntime as ort

model, inputs, outputs = map(pathlib.Path, sys.argv[1:4])
where, _, how = os.environ.get("MISBEHAVE", "").partition(":")
proto = onnx.load(model)
hit = any(node.op_type == where for node in proto.graph.node)
if hit and how == "crash":
    os.kill(os.getpid(), signal.SIGSEGV)
if hit and how == "hang":
    time.sleep(1000)
if hit and how == "fail":
    sys.exit("no such op on this device")
if hit and how == "large":
    ballast = np.ones(1 << 28)
    time.sleep(1000)
options = ort.SessionOptions()
options.log_severity_level = 3
session = ort.InferenceSession(proto.SerializeToString(), options,
                               providers=["CPUExecutionProvider"])
feed = {given.name: np.load(inputs / f"input_{i}.npy")
        for i, given in enumerate(session.get_inputs())}
for i, value in enumerate(session.run(None, feed)):
    path = outputs / f"output_{i}.npy"
    if hit and how == "nothing":
        continue
    if hit and how == "garbage":
        path.write_bytes(os.urandom(1000))
        continue
    if hit and how == "shape":
        value = value.reshape(-1)
    if hit and how == "dtype":
        value = value.astype(np.float64)
    if hit and how == "off":
        value = value * np.float32(1.001)
    if hit and how in ("nhwc", "raw_nhwc"):
        value = np.ascontiguousarray(value.transpose(0, 2, 3, 1))
    if hit and how in ("raw", "raw_nhwc"):
        value.tofile(outputs / f"output_{i}.bin")
        continue
    np.save(path, value)
