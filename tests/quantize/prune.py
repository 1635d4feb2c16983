"""Pruned models: which elements and channels go, and that what is left computes what it should."""

import pathlib
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper

from common import IMAGES, MODELS, constants, session, trocar


def weights_of(path):
    return [name for name, array in constants(onnx.load(path)).items() if name.endswith("weight") and array.ndim > 1]


def check_magnitude(path, folder):
    """Exactly the smallest go, of each layer or of all."""
    before, names = constants(onnx.load(path)), weights_of(path)
    for share in (0, 0.333, 0.5, 0.999):
        for scope in ("layer", "global"):
            trocar("prune", path, folder / "p.onnx", "--sparsity", share, "--scope", scope, "-q",
                   code=0)
            after = constants(onnx.load(folder / "p.onnx"))
            for group in [names] if scope == "global" else [[name] for name in names]:
                all_before = np.concatenate([np.abs(before[name]).ravel() for name in group])
                kept = np.concatenate([after[name].ravel() != 0 for name in group])
                count = int(np.floor(share * len(all_before) + 0.5))
                assert (~kept).sum() == count, (group, share)
                if 0 < count < len(kept):
                    assert all_before[~kept].max() <= all_before[kept].min(), (group, share)
            for name in before:
                stays = after[name] != 0
                assert np.array_equal(after[name][stays], before[name][stays])
                assert name in names or np.array_equal(after[name], before[name]), name


def check_pattern(path, folder):
    """Of every four neighbours along the input channels the two largest stay."""
    trocar("prune", path, folder / "p.onnx", "--method", "2:4", "-q")
    before, after = constants(onnx.load(path)), constants(onnx.load(folder / "p.onnx"))
    for name in weights_of(path):
        if before[name].shape[1] % 4:
            assert np.array_equal(before[name], after[name]), name
            continue
        rows = np.moveaxis(before[name], 1, -1).reshape(-1, 4)
        wanted = np.zeros_like(rows)
        largest = np.argsort(-np.abs(rows), axis=1, kind="stable")[:, :2]
        np.put_along_axis(wanted, largest, np.take_along_axis(rows, largest, 1), 1)
        assert np.array_equal(np.moveaxis(after[name], 1, -1).reshape(-1, 4), wanted), name


def check_channels(path, folder, *options):
    """The smaller model gives what the whole one gives with zeros in place of what went."""
    masks_file = folder / "m.npz"
    trocar("prune", path, folder / "p.onnx", "--method", "channels", "--masks", masks_file, "-q", *options)
    zeroed, masks = onnx.load(path), dict(np.load(masks_file))
    for one in zeroed.graph.initializer:
        if one.name in masks:
            array = numpy_helper.to_array(one) * masks[one.name]
            one.CopyFrom(numpy_helper.from_array(array.astype(np.float32), one.name))
    wanted = session(zeroed.SerializeToString()).run(None, {"image": IMAGES})[0]
    made = session(folder / "p.onnx").run(None, {"image": IMAGES})[0]
    np.testing.assert_allclose(made, wanted, rtol=1e-4, atol=1e-4)
    whole = session(path).run(None, {"image": IMAGES})[0]
    assert not np.allclose(wanted, whole, atol=1e-3)
    count = [sum(array.size for array in constants(onnx.load(one)).values()) for one in (path, folder / "p.onnx")]
    assert count[1] < 0.8 * count[0], count


def check_sparse(path, folder):
    """What is stored as places and numbers is what zeros say."""
    trocar("prune", path, folder / "s.onnx", "--sparsity", 0.9, "--sparse-encoding", "-q")
    trocar("prune", path, folder / "p.onnx", "--sparsity", 0.9, "-q")
    dense, sparse = constants(onnx.load(folder / "p.onnx")), onnx.load(folder / "s.onnx")
    onnx.checker.check_model(sparse)
    assert len(sparse.graph.sparse_initializer) > 3
    for one in sparse.graph.sparse_initializer:
        flat = np.zeros(int(np.prod(one.dims)), np.float32)
        flat[numpy_helper.to_array(one.indices)] = numpy_helper.to_array(one.values)
        assert np.array_equal(flat.reshape(one.dims), dense[one.values.name]), one.values.name


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for path in (MODELS / "digits.onnx", MODELS / "digits_mobile.onnx"):
            check_magnitude(path, folder)
            check_pattern(path, folder)
            check_channels(path, folder, "--sparsity", 0.5)
            check_channels(path, folder, "--sparsity", 0.4, "--scope", "global", "--rank", "l2")
        check_sparse(MODELS / "digits.onnx", folder)


if __name__ == "__main__":
    main()
