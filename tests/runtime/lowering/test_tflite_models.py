"""Whole TFLite models beside LiteRT, where the shared models are present."""

from collections import Counter

import numpy as np
import pytest

from arenite.pipeline.targets.compiling import lower
from arenite.planner.importers import load
from arenite.runtime import Session
from arenite.runtime.operators import Copy
from support.running import build
from support.shared_material import shared
from support.tflite_operator import Reference

INT8 = (
    "kws_ref_model", "micro_speech_quantized", "mobilenet_v1_0.5_160_quant",
    "pretrainedResnet_quant", "vww_96_int8",
)  # fmt: skip
NUM_RUNS = 3


def model(name):
    path = shared(f"models/tflite/{name}.tflite")
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    return path


def drawn(port, seed):
    generator = np.random.default_rng(seed)
    if port.dtype.kind == "f":
        return generator.standard_normal(port.shape).astype(port.dtype)
    limits = np.iinfo(port.dtype)
    return generator.integers(limits.min, limits.max + 1, port.shape).astype(port.dtype)


def runs(path, folder, reference, draw=drawn):
    """Yield our outputs and the reference's, run after run."""
    with Session(build(path, folder)) as session:
        assert set(session.backends()) == {"arenite"}
        for seed in range(NUM_RUNS):
            inputs = {port.name: draw(port, seed) for port in session.inputs}
            theirs = reference.run(list(inputs.values()))
            yield from zip(session.run(inputs).values(), theirs, strict=True)


@pytest.mark.parametrize("name", INT8)
def test_a_quantised_network_gives_what_litert_gives_on_the_same_kernels(name, tmp_path):
    path = model(name)
    for own, other in runs(path, tmp_path, Reference(path, with_xnnpack=True)):
        # Whose softmax it is decides the last quantum.
        assert np.abs(own.astype(int) - other.astype(int)).max() <= 1
        assert own.argmax() == other.argmax()


@pytest.mark.parametrize("name", ["mnist_lstm_float", "tr_kwt1"])
def test_a_network_of_numbers_gives_what_litert_gives(name, tmp_path):
    """Of an LSTM, and of a transformer whose products are of two activations."""
    path = model(name)
    for own, other in runs(path, tmp_path, Reference(path)):
        np.testing.assert_allclose(own, other, rtol=0, atol=1e-4)


def test_a_keyword_network_of_svdf_gives_what_litert_gives(tmp_path):
    path = model("keyword_scrambled")

    def spectrum(port, seed):
        return np.random.default_rng(seed).integers(0, 24_000, port.shape).astype(port.dtype)

    for own, other in runs(path, tmp_path, Reference(path), spectrum):
        np.testing.assert_array_equal(own, other)


def test_padding_before_convolutions_costs_no_step():
    steps = lower(load(model("ultraface_rfb320"), weights=True)).steps
    # Its four are the two concatenations and what moves the boxes.
    assert Counter(type(step.operator) for step in steps)[Copy] == 4


def test_padding_folded_into_convolutions_changes_nothing(tmp_path):
    path = model("ultraface_rfb320")
    for own, other in runs(path, tmp_path, Reference(path, with_xnnpack=True)):
        np.testing.assert_allclose(own, other, rtol=0, atol=1e-4 * np.abs(other).max())
