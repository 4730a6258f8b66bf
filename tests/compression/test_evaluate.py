"""What compression costs, and how much of each layer can go."""

import logging

import numpy as np
import onnx
import pytest

from arenite.compression.dataset import Dataset, DatasetError, random_dataset, read_dataset
from arenite.compression.errors import EvaluationError
from arenite.compression.evaluate import Judge, QuantiserError, quantised_by_onnxruntime
from arenite.compression.onnx_model import OnnxModel
from arenite.compression.pruning import scan
from support.tiny_onnx import parse, save, with_random_weights

FREE = "(float[batch,30] x) => (y) <float[30,40] a, float[40,6] b> { h = MatMul(x, a) r = Relu(h)"
FREE += " y = MatMul(r, b) }"


@pytest.fixture(params=["batch", "1", "4"])
def source(request, tmp_path):
    """A classifier of samples all at once, one by one, or four at a time."""
    model = parse(FREE.replace("batch", request.param).replace("40,6", "40,20"))
    return OnnxModel(save(tmp_path, with_random_weights(model)))


def dataset(labels=None):
    inputs = np.random.default_rng(0).standard_normal((8, 30)).astype(np.float32)
    return Dataset(None, {"x": inputs}, labels)


def test_the_original_is_as_good_as_itself(source):
    quality = Judge(source.original(), dataset()).judge(source.original())
    assert (quality.accuracy, quality.error, quality.agreement) == (None, 0, 1)


def test_accuracy_is_the_share_of_samples_that_are_right(source):
    judge = Judge(source.original(), dataset())
    classes = judge._classes
    labels = classes.copy()
    labels[:2] += 1
    quality = Judge(source.original(), dataset(labels)).judge(source.original())
    assert quality.accuracy == 6 / 8


def test_other_weights_are_apart_from_the_original(source):
    judge = Judge(source.original(), dataset())
    half = source.with_weights({"a": source.layers[0].weights * np.float32(0.5)})
    assert judge.judge(half).error == pytest.approx(0.5, rel=1e-4)
    assert judge.judge(half).agreement == 1
    negative = source.with_weights({"b": -source.layers[-1].weights})
    assert judge.judge(negative).error == pytest.approx(2, rel=1e-4)
    assert judge.judge(negative).agreement < 1


def test_random_samples_fit_every_input(source):
    made = random_dataset(source.original(), 3, seed=1)
    Judge(source.original(), made)
    again = random_dataset(source.original(), 3, seed=1)
    assert np.array_equal(made.inputs["x"], again.inputs["x"])


def test_a_data_set_is_read(tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, x=np.ones((3, 30), np.float32), labels=np.array([1, 2, 3]))
    found = read_dataset(path)
    assert found.num_samples == 3
    assert found.labels.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "arrays",
    [
        {},
        {"labels": np.ones(3)},
        {"x": np.float32(1)},
        {"x": np.ones((3, 2)), "z": np.ones((4, 2))},
        {"x": np.ones((3, 2)), "labels": np.ones(4)},
        {"x": np.zeros((0, 2))},
    ],
)
def test_arrays_that_are_no_samples_are_refused(arrays, tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, **arrays)
    with pytest.raises(DatasetError):
        read_dataset(path)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"text"])
def test_a_file_that_is_no_archive_is_refused(content, tmp_path):
    path = tmp_path / "data.npz"
    path.write_bytes(content)
    with pytest.raises(DatasetError):
        read_dataset(path)
    with pytest.raises(DatasetError, match="cannot be read"):
        read_dataset(tmp_path / "none.npz")


def test_a_data_set_that_does_not_fit_the_model_is_refused(source):
    for inputs in (
        {"z": np.ones((8, 30), np.float32)},
        {"x": np.ones((8, 31), np.float32)},
        {"x": np.ones((8, 30), np.int64)},
    ):
        with pytest.raises(DatasetError):
            Judge(source.original(), Dataset(None, inputs, None))


def test_an_input_of_integers_cannot_be_made_up():
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> m (int64[4] x) => (int64[4] y) { y = Abs(x) }'
    )
    with pytest.raises(DatasetError, match="is not float32"):
        random_dataset(model, 2, 0)


def test_a_layer_is_scanned_until_its_loss_is_too_much(source):
    losses = {1.0: 0.0, 0.5: 0.01, 0.2: 0.2, 0.1: 0.05}
    asked = []

    def loss(weights):
        ((name, array),) = weights.items()
        density = np.count_nonzero(array) / array.size
        asked.append((name, density))
        return losses[min(losses, key=lambda each: abs(each - density))]

    found = scan(source.layers, loss, (0.1, 0.5, 0.2))
    assert [each.layer for each in found] == ["a", "b"]
    assert list(found[0].losses) == [0.5, 0.2, 0.1]
    assert found[0].density_for(0.1) == 0.5
    assert found[0].density_for(0.001) == 1.0
    assert found[0].density_for(1) == 0.1
    assert len(asked) == 6


def test_an_interrupted_scan_keeps_the_layers_that_are_done(source):
    def loss(weights):
        if "b" in weights:
            raise KeyboardInterrupt
        return 0.0

    assert [each.layer for each in scan(source.layers, loss, (0.5,))] == ["a"]

    def never(_weights):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scan(source.layers, never, (0.5,))


def quantised(source):
    shapes = Judge(source.original(), dataset()).shapes
    return quantised_by_onnxruntime(source.original(), dataset(), shapes)


def test_what_the_other_quantiser_does_not_take_is_named(source, monkeypatch):
    quantization = pytest.importorskip("onnxruntime.quantization")

    def refuse(*_arguments, **_options):
        raise RuntimeError("no such luck\nand more")

    monkeypatch.setattr(quantization, "quantize_static", refuse)
    with pytest.raises(QuantiserError, match=r"rejects it: no such luck$"):
        quantised(source)


def test_what_the_other_quantiser_warns_of_is_held_back(source, monkeypatch):
    quantize = pytest.importorskip("onnxruntime.quantization").quantize_static

    def warn(*arguments, **options):
        np.float32(3e38) * np.ones(1, np.float32) * 2
        return quantize(*arguments, **options)

    monkeypatch.setattr("onnxruntime.quantization.quantize_static", warn)
    assert quantised(source).graph.node


def test_a_model_in_integers_is_close_and_smaller(source):
    model = quantised(source)
    assert "QuantizeLinear" in {node.op_type for node in model.graph.node}
    assert Judge(source.original(), dataset()).judge(model).error < 0.1


def test_quantising_leaves_the_level_of_the_root_logger_as_it_was(source, monkeypatch):
    root = logging.getLogger()
    monkeypatch.setattr(root, "level", logging.INFO)
    quantised(source)
    assert root.level == logging.INFO

    def fail(*_arguments, **_options):
        raise RuntimeError("no such luck")

    monkeypatch.setattr("onnxruntime.quantization.quantize_static", fail)
    with pytest.raises(QuantiserError):
        quantised(source)
    assert root.level == logging.INFO


def test_a_model_that_onnxruntime_refuses_is_told_in_its_words_alone(source, capfd):
    model = source.original()
    model.graph.node[0].op_type = "Unheard"
    with pytest.raises(EvaluationError, match="rejected by ONNX Runtime: ") as caught:
        Judge(model, dataset())
    assert "ONNXRuntimeError" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


def test_outputs_without_a_finite_number_cannot_be_compared():
    model = parse("(float[batch,3] x) => (y) <float[1] k = {0}> { z = Mul(x, k) y = Div(x, z) }")
    ones = Dataset(None, {"x": np.ones((2, 3), np.float32)}, None)
    with pytest.raises(EvaluationError, match="no finite number"):
        Judge(model, ones)


def test_a_model_whose_outputs_are_no_longer_finite_is_infinitely_apart(source):
    broken = source.with_weights({"a": np.full((30, 40), 3e38, np.float32)})
    assert Judge(source.original(), dataset()).judge(broken).error == np.inf


def test_where_the_original_is_not_finite_nothing_is_compared():
    model = parse(
        "(float[batch,3] x) => (y) <float[3] k = {0,1,2}> { l = Mul(x, k) y = Div(k, l) }"
    )
    ones = Dataset(None, {"x": np.ones((2, 3), np.float32)}, None)
    assert Judge(model, ones).judge(model).error == 0


def test_an_output_of_another_shape_is_wholly_another():
    text = "(float[batch] x) => (y) <float[1] k = {0.5}> { b = Greater(x, k) n = NonZero(b) "
    text += "y = Cast<to=1>(n) }"
    numbers = Dataset(None, {"x": np.arange(4, dtype=np.float32)}, None)
    found = Judge(parse(text), numbers).judge(parse(text.replace("0.5", "1.5")))
    assert (found.error, found.agreement) == (1, None)


def test_outputs_that_are_no_numbers_are_left_out():
    model = parse("(float[batch,3] x) => (y, s) { y = Relu(x) s = SequenceConstruct(x, x) }")
    ones = Dataset(None, {"x": np.ones((2, 3), np.float32)}, None)
    assert Judge(model, ones).judge(model).error == 0
