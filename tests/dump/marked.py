"""What ONNX Runtime itself computes for the tensors inside a model: each is marked as an output, with optimisation off.

Tensors in the body of an If cannot be marked. The body that a run takes is therefore put in the place of the If, by the
condition that ONNX Runtime computes; the ops and their order stay what they are.
"""

import onnx
import onnxruntime

CHUNK = 100  # outputs marked at a time: all of a large model would be kept in memory at once


def run(model, feeds, names):
    """{name: array} of the tensors, each marked as an output."""
    marked = onnx.ModelProto()
    marked.CopyFrom(model)
    given = {output.name for output in marked.graph.output}
    marked.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in given)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(marked.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip(names, session.run(list(names), feeds)))


def without_ifs(model, feeds):
    """The model with the branches that are taken in the place of its Ifs."""
    flat = onnx.ModelProto()
    flat.CopyFrom(model)
    while True:
        graph = flat.graph
        at = next((i for i, node in enumerate(graph.node) if node.op_type == "If"), None)
        if at is None:
            return flat
        node = graph.node[at]
        taken = bool(run(flat, feeds, [node.input[0]])[node.input[0]].all())
        branch = next(a.g for a in node.attribute if a.name == ("then_branch" if taken else "else_branch"))
        body = list(branch.node)
        body += [onnx.helper.make_node("Identity", [inner.name], [outer])
                 for inner, outer in zip(branch.output, node.output)]
        nodes = list(graph.node[:at]) + body + list(graph.node[at + 1:])
        initializers = list(branch.initializer)
        del graph.node[:]
        graph.node.extend(nodes)
        graph.initializer.extend(initializers)


def tensors(model, feeds):
    """(name, array) of every tensor that an op of the model writes in this run."""
    flat = without_ifs(model, feeds)
    names = [name for node in flat.graph.node for name in node.output if name]
    for first in range(0, len(names), CHUNK):
        yield from run(flat, feeds, names[first:first + CHUNK]).items()
