"""Small transformers of the zoo run on our kernels alone, and give what ONNX Runtime gives."""

from functools import partial

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")

import arenite  # noqa: E402
from arenite.pipeline.base.reading import Reading  # noqa: E402
from arenite.pipeline.targets.compiling import lower_model  # noqa: E402
from arenite.runtime.operators.attention import Attention, Rotary  # noqa: E402
from bench.zoo.encoders import bert, vit  # noqa: E402
from bench.zoo.llama import smollm  # noqa: E402
from bench.zoo.speech import moonshine_encoder, whisper_decoder, whisper_encoder  # noqa: E402

_BERT = partial(bert, 2, 32, 2, 24, vocabulary=90, most=32)
_VIT = partial(vit, 2, 24, 3, 48)
_SMOLLM = partial(smollm, 2, 64, 4, 2, 96, vocabulary=90, most=32)
SMALL = {  # builder, and numbers of attentions and rotations
    "bert": (_BERT, 2, 0),
    "bert, fused": (partial(_BERT, fused=True), 2, 0),
    "vit": (_VIT, 2, 0),
    "vit, fused": (partial(_VIT, fused=True), 2, 0),
    "smollm": (_SMOLLM, 2, 4),
    "smollm, fused": (partial(_SMOLLM, fused=True), 2, 4),
    "whisper's encoder": (partial(whisper_encoder, 2, 24, 3, 40), 2, 0),
    "whisper's decoder": (partial(whisper_decoder, 2, 24, 3, 20, vocabulary=90, most=32), 4, 0),
    "moonshine's encoder": (partial(moonshine_encoder, 2, 72, 2, 4000), 2, 4),
}


@pytest.mark.parametrize("name", SMALL)
def test_a_transformer_runs_on_our_kernels_and_gives_what_onnxruntime_gives(name, tmp_path):
    build, num_attentions, num_rotations = SMALL[name]
    path = tmp_path / "model.onnx"
    onnx.save(build(), path)
    stock = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    lengths = {"sequence_length": 3, "past_sequence_length": 5, "total_sequence_length": 8}
    feeds = _feeds(stock, lengths)
    free = {each for port in stock.get_inputs() for each in port.shape if isinstance(each, str)}
    dims = {name: lengths[name] for name in sorted(free)}
    with arenite.Session(path, dims=dims) as session:
        assert set(session.backends()) == {"arenite"}
        found = session.run(feeds)
    for port, expected in zip(stock.get_outputs(), stock.run(None, feeds), strict=True):
        off = np.abs(found[port.name] - expected).max() / np.abs(expected).max()
        assert off < 1e-5, port.name
    steps = lower_model(path, Reading(dims=dims)).program.steps
    assert sum(isinstance(step.operator, Attention) for step in steps) == num_attentions
    assert sum(isinstance(step.operator, Rotary) for step in steps) == num_rotations


def _feeds(stock, lengths):
    generator = np.random.default_rng(1)
    feeds = {}
    for port in stock.get_inputs():
        shape = [lengths.get(each, each) for each in port.shape]
        if port.type == "tensor(float)":
            feeds[port.name] = generator.standard_normal(shape, np.float32)
        elif port.name == "attention_mask":
            feeds[port.name] = (np.arange(shape[1]) < 20)[None].astype(np.int64)
        elif port.name == "position_ids":
            feeds[port.name] = lengths["past_sequence_length"] + np.arange(shape[1])[None]
        else:
            feeds[port.name] = generator.integers(0, 2 if "type" in port.name else 90, shape)
    return feeds
