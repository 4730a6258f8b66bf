"""`arenite compress` on damaged files: one line each, and never a traceback."""

import json

import numpy as np
import onnx
import pytest

from support.damage import flipped
from support.tiny_onnx import parse, save, with_random_weights

NETWORK = """(float[n,3,8,8] x) => (y)
<float[24,3,3,3] a, float[24] s, float[24] t, float[24] u, float[24] v = {1,1,1,1,1,1,1,1,1,1,1,1,
1,1,1,1,1,1,1,1,1,1,1,1}, float[4,24,3,3] e, float[256,8] c>
{ p = Conv<pads=[1,1,1,1]>(x, a) q = BatchNormalization(p, s, t, u, v) r = Relu(q)
  d = Conv<pads=[1,1,1,1]>(r, e) w = Flatten(d) y = MatMul(w, c) }"""
COUNT = 40


@pytest.fixture
def model():
    made = with_random_weights(parse(NETWORK))
    last = made.graph.initializer[-1]
    made.graph.node.insert(0, onnx.helper.make_node("Constant", [], [last.name], value=last))
    del made.graph.initializer[-1]
    return made


@pytest.fixture
def told(run):
    """Run the command, which must succeed or refuse with one line; return whether it did."""

    def told(*arguments):
        code, _, err = run("compress", *arguments)
        assert code in (0, 1)
        assert err.count("\n") == code, err
        return code == 0

    return told


def test_a_model_with_bits_turned_is_compressed_or_refused(model, told, tmp_path):
    path = save(tmp_path, model)
    data, output = path.read_bytes(), tmp_path / "o.onnx"
    outcomes = set()
    for copy in flipped(data, COUNT, seed=0):
        path.write_bytes(copy)
        outcomes.add(told(path, "-o", output, "--dim", "n=1", "--channels", "50%"))
    assert outcomes == {True, False}


def _parts(model):
    """Return the parts of a model that are not weights, to be changed in place."""
    return [*model.graph.node, *model.graph.input, *model.graph.output]


@pytest.mark.parametrize("options", [(), ("--channels", "50%", "--dim", "n=1")])
def test_a_model_with_bits_of_its_structure_turned_is_refused(model, told, tmp_path, options):
    """Weights are most of a file: here only the bytes of nodes and types are turned."""
    path, output = tmp_path / "m.onnx", tmp_path / "o.onnx"
    num_read = 0
    for index, part in enumerate(_parts(model)):
        for copy in flipped(part.SerializeToString()[:200], 12, seed=index, most=2):
            changed = onnx.ModelProto()
            changed.CopyFrom(model)
            try:
                _parts(changed)[index].ParseFromString(copy)
            except Exception:  # protobuf's own; that is no model
                continue
            path.write_bytes(changed.SerializeToString())
            told(path, "-o", output, *options)
            num_read += 1
    assert num_read > 10


def test_a_model_with_external_data_and_bits_turned_is_refused(model, told, tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(model, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    for copy in flipped(path.read_bytes(), COUNT, seed=3, most=2):
        path.write_bytes(copy)
        told(path, "-o", tmp_path / "o.onnx")


def test_a_data_set_with_bits_turned_is_refused(model, told, tmp_path):
    path, data = save(tmp_path, model), tmp_path / "data.npz"
    inputs = np.random.default_rng(0).standard_normal((3, 3, 8, 8)).astype(np.float32)
    np.savez(data, x=inputs, labels=np.arange(3))
    for copy in flipped(data.read_bytes(), COUNT, seed=1):
        data.write_bytes(copy)
        told(path, "-o", tmp_path / "o.onnx", "--evaluate", data)


def test_a_scan_file_with_bits_turned_is_refused(model, told, tmp_path):
    path, scan = save(tmp_path, model), tmp_path / "scan.json"
    arguments = (path, "-o", tmp_path / "o.onnx", "--sensitivity", "0.3", "--scan", scan)
    assert told(*arguments)
    data = scan.read_bytes()
    layers = set(json.loads(data)["losses"])
    for copy in flipped(data, COUNT, seed=2, most=2):
        scan.write_bytes(copy)
        if told(*arguments):
            assert layers <= set(json.loads(scan.read_bytes())["losses"]) | {"a", "c", "e"}
