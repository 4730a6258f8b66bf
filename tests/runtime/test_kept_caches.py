"""Caches kept as 16-bit floats: half the bytes, and logits near those of 32 bits."""

import json

import numpy as np
import onnx
import pytest

import arenite
from arenite import Generator
from arenite.pipeline.base import OptionsError, Reading
from arenite.pipeline.base.reading import lengths_of
from arenite.pipeline.targets.compiling import compile_model
from arenite.planner import DType, TensorKind
from arenite.planner.errors import UnsupportedModelError
from arenite.runtime import Session
from arenite.runtime.operators.attention import Attention
from arenite.runtime.rewrites import Caches
from bench.zoo.llama import smollm
from support.caches import CACHE, DIMS
from support.decoders import DIMS as DECODER_DIMS
from support.decoders import decoder_file
from support.edited_programs import apart, file_of
from support.running import PoisonedSession
from support.tiny_onnx import parse, save

STEPS = 200
LENGTH = 256
DIMS_OF_STEPS = {
    "sequence_length": "1..8", "past_sequence_length": f"0..{LENGTH}+",
    "total_sequence_length": "past_sequence_length+sequence_length",
}  # fmt: skip
TOKENS = np.random.default_rng(5).integers(0, 90, LENGTH)
WORST = 2e-3
"""Most that logits differ from those of a cache of 32 bits, of the largest of them: 11 bits of a
number are kept."""


def llama(folder, **options):
    path = folder / "llama.onnx"
    onnx.save(smollm(2, 64, 4, 2, 96, vocabulary=90, most=2 * LENGTH, **options), path)
    return path


MODELS = {
    "gpt": decoder_file,
    "llama": llama,
    "llama, fused": lambda folder: llama(folder, fused=True),
}


def feeds_of(session, begin, end):
    feeds = {
        "input_ids": TOKENS[None, begin:end],
        "attention_mask": np.ones((1, end), np.int64),
        "position_ids": np.arange(begin, end)[None],
    }
    return {port.name: feeds[port.name] for port in session.inputs}


def compiled(path, dims=DIMS_OF_STEPS, cache="fp16", **options):
    reading = Reading(*lengths_of(dims, None), cache=cache and Caches(cache), **options)
    return compile_model(path, reading)


@pytest.mark.parametrize("chunk", [1, 8])
@pytest.mark.parametrize("name", MODELS)
def test_two_hundred_tokens_are_near_those_of_32_bits(name, chunk, tmp_path):
    path = MODELS[name](tmp_path)
    exact, halved = (compiled(path, cache=each) for each in (None, "fp16"))
    states = [each for each in halved.program.tensors.values() if each.kind is TensorKind.STATE]
    assert states
    for state in states:
        assert state.dtype is DType.FLOAT16
        assert 2 * state.size == exact.program.tensors[state.name].size
    worst = 0.0
    with (
        Session.of_pieces([file_of(apart(exact))], "exact") as wide,
        PoisonedSession([file_of(apart(halved))], guard=True) as narrow,
    ):
        for begin in range(0, STEPS, chunk):
            feeds = feeds_of(wide, begin, begin + chunk)
            right = wide.run(feeds)["logits"]
            found = narrow.run(feeds)["logits"]
            worst = max(worst, np.abs(found - right).max() / np.abs(right).max())
    assert 0 < worst < WORST


@pytest.mark.parametrize("name", MODELS)
def test_the_arena_is_smaller_by_half_of_the_caches(name, tmp_path):
    path = MODELS[name](tmp_path)
    wide, narrow = (arenite.plan(path, dims=DIMS_OF_STEPS, cache=each) for each in (None, "fp16"))
    program = narrow.source.program
    saved = sum(each.size for each in program.tensors.values() if each.kind is TensorKind.STATE)
    assert wide.plan.height - narrow.plan.height == saved


def test_rows_are_rounded_once_and_attention_reads_them_where_they_lie(tmp_path):
    built = compiled(llama(tmp_path))
    tensors = built.program.tensors
    caches = {name for name, each in tensors.items() if each.kind is TensorKind.STATE}
    read = [step for step in built.program.steps if isinstance(step.operator, Attention)]
    assert {built.program.root(name)[0] for step in read for name in step.inputs[1:3]} == caches
    added = [step for step in built.program.steps if step.operator.label == "Convert"]
    written = {built.program.root(step.outputs[0])[0] for step in added}
    assert written >= caches
    with Session.of_pieces([file_of(apart(built))], "first") as session:
        session.run(feeds_of(session, 0, 4))
        halves = {name: np.array(rows) for name, rows in session.states.items()}
    with Session.of_pieces([file_of(apart(compiled(llama(tmp_path), cache=None)))], "x") as exact:
        exact.run(feeds_of(exact, 0, 4))
        for name in list(halves)[:2]:  # of the first layer, which has read no cache
            np.testing.assert_array_equal(halves[name], exact.states[name].astype(np.float16))


@pytest.mark.parametrize("name", MODELS)
def test_bands_and_activations_give_the_bits_of_the_whole(name, tmp_path):
    path = MODELS[name](tmp_path)
    dims = {**DIMS_OF_STEPS, "sequence_length": "1..32"}
    arenite.build(path, tmp_path / "whole.arena", dims=dims, cache="fp16", whole=True)
    whole_bytes = arenite.plan(path, dims=dims, cache="fp16").plan.height
    fitted = arenite.fit(path, int(whole_bytes * 0.97), dims=dims, cache="fp16")
    fitted.save(tmp_path / "bands.arena")
    with (
        Session(tmp_path / "whole.arena") as whole,
        Session(tmp_path / "bands.arena") as bands,
        Session(tmp_path / "whole.arena", threads=2) as threads,
    ):
        assert bands.arena_bytes < whole.arena_bytes
        for begin, end in ((0, 32), (32, 33), (33, 60)):
            feeds = feeds_of(whole, begin, end)
            right = whole.run(feeds)["logits"]
            np.testing.assert_array_equal(bands.run(feeds)["logits"], right)
            np.testing.assert_array_equal(threads.run(feeds)["logits"], right)


def test_with_results_of_16_bits_too_the_cache_is_read_as_it_is(tmp_path):
    path = llama(tmp_path)
    reading = {"dims": DIMS_OF_STEPS, "activations": "fp16"}
    with (
        arenite.Session(path, **reading) as wide,
        arenite.Session(path, **reading, cache="fp16") as narrow,
    ):
        assert narrow.arena_bytes < 0.6 * wide.arena_bytes
        for begin in range(0, 40, 8):
            feeds = feeds_of(wide, begin, begin + 8)
            right = wide.run(feeds)["logits"]
            found = narrow.run(feeds)["logits"]
            assert np.abs(found - right).max() < 1e-2 * np.abs(right).max()


def test_states_are_saved_truncated_and_dropped(tmp_path):
    path = decoder_file(tmp_path)
    with Generator(path, length=32, cache="fp16", rotates=True) as generator:
        made = generator.generate([1, 5, 7], max_tokens=80)
        assert len(made.tokens) == 80
        assert generator.session.states["past_key_values.0.key"].dtype == np.float16
    with arenite.Session(path, dims=DECODER_DIMS, cache="fp16") as session:
        first = session.run(feeds_of(session, 0, 4))["logits"].copy()
        assert {each.dtype for each in session.states.values()} == {np.dtype(np.float16)}
        session.states.save(tmp_path / "states")
        then = session.run(feeds_of(session, 4, 6))["logits"].copy()
        session.states.truncate(4)
        np.testing.assert_array_equal(session.run(feeds_of(session, 4, 6))["logits"], then)
        session.states.load(tmp_path / "states")
        np.testing.assert_array_equal(session.run(feeds_of(session, 4, 6))["logits"], then)
        session.reset()
        np.testing.assert_array_equal(session.run(feeds_of(session, 0, 4))["logits"], first)
    with (
        arenite.Session(path, dims=DECODER_DIMS) as other,
        pytest.raises(arenite.AreniteError, match="another program"),
    ):
        other.states.load(tmp_path / "states")


def test_a_plan_file_states_the_cache(tmp_path):
    path = decoder_file(tmp_path)
    planned = arenite.plan(path, dims=DECODER_DIMS, cache="fp16")
    planned.save(tmp_path / "plan.json")
    assert json.loads((tmp_path / "plan.json").read_text())["model"]["cache"] == "fp16"
    built = arenite.build(path, tmp_path / "made.arena", plan=tmp_path / "plan.json")
    assert built.plan.height == planned.plan.height
    with pytest.raises(OptionsError, match="--cache is for --target arenite"):
        arenite.plan(path, dims=DECODER_DIMS, cache="fp16", target="generic")


def test_what_cannot_be_kept_so_is_refused(tmp_path):
    path = save(tmp_path, parse(CACHE))
    with pytest.raises(UnsupportedModelError, match=r"'past': cannot be kept as 16.*no attention"):
        compiled(path, DIMS)
    with pytest.raises(UnsupportedModelError, match="has no cache of 32-bit floats"):
        compiled(path, {"s": 4, "p": 5})
