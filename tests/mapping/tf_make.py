#!/usr/bin/env python3
"""Asks TensorFlow what the graphs of tf_cases.py give, and keeps that for the tests.

    tf_make.py            tf_expected.npz

Needs a Python that has TensorFlow (`pip install tensorflow-cpu`); the tests do not.
"""

import pathlib

import numpy as np
import tensorflow

import tf_cases

here = pathlib.Path(__file__).parent


def main():
    cases = tf_cases.cases()
    definition = tensorflow.compat.v1.GraphDef()
    definition.ParseFromString(cases.graph())
    with tensorflow.Graph().as_default() as graph:
        tensorflow.import_graph_def(definition, name="")
        with tensorflow.compat.v1.Session(graph=graph) as session:
            values = session.run([f"{name}:0" for name in cases.outputs],
                                 {f"{name}:0": value for name, value in cases.inputs.items()})
    np.savez_compressed(here / "tf_expected.npz", **dict(zip(cases.outputs, values)),
                        made_by=np.array(f"tensorflow {tensorflow.__version__}"))


main()
