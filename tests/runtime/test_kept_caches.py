"""Caches of 16 and 8 bits: fewer bytes, and logits near those of 32 bits."""

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
from arenite.planner.units import align_up
from arenite.runtime import Session
from arenite.runtime.operators.attention import Attention
from arenite.runtime.operators.moves import Move
from arenite.runtime.rewrites import Caches
from arenite.runtime.rewrites.kept_caches import _Rows
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
WORST = {"fp16": 2e-3, "int8": 3e-2}
"""Most that logits differ from those of a cache of 32 bits, of the largest of them: 11 bits of a
number are kept, or 8 of the largest of a block."""
DTYPES = {"fp16": DType.FLOAT16, "int8": DType.INT8}
KINDS = list(DTYPES)
ROW_BYTES = {"fp16": 32, "int8": 18}
"""Of a head of 16 elements, which take 64 bytes as 32-bit floats."""


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
@pytest.mark.parametrize("kind", KINDS)
def test_two_hundred_tokens_are_near_those_of_32_bits(kind, name, chunk, tmp_path):
    path = MODELS[name](tmp_path)
    exact, kept = (compiled(path, cache=each) for each in (None, kind))
    states = [each for each in kept.program.tensors.values() if each.kind is TensorKind.STATE]
    assert states
    for state in states:
        assert state.dtype is DTYPES[kind]
        assert 64 * state.size == ROW_BYTES[kind] * exact.program.tensors[state.name].size
    worst = 0.0
    with (
        Session.of_pieces([file_of(apart(exact))], "exact") as wide,
        PoisonedSession([file_of(apart(kept))], guard=True) as narrow,
    ):
        for begin in range(0, STEPS, chunk):
            feeds = feeds_of(wide, begin, begin + chunk)
            right = wide.run(feeds)["logits"]
            found = narrow.run(feeds)["logits"]
            worst = max(worst, np.abs(found - right).max() / np.abs(right).max())
    assert 0 < worst < WORST[kind]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_arena_is_smaller_by_what_caches_save(kind, name, tmp_path):
    path = MODELS[name](tmp_path)
    wide, narrow = (arenite.plan(path, dims=DIMS_OF_STEPS, cache=each) for each in (None, kind))

    def bytes_of_states(planned):
        tensors = planned.source.program.tensors.values()
        return sum(align_up(each.size, 64) for each in tensors if each.kind is TensorKind.STATE)

    saved = bytes_of_states(wide) - bytes_of_states(narrow)
    assert saved > 0
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
@pytest.mark.parametrize("kind", KINDS)
def test_bands_and_threads_give_the_bits_of_the_whole(kind, name, tmp_path):
    path = MODELS[name](tmp_path)
    dims = {**DIMS_OF_STEPS, "sequence_length": "1..32"}
    arenite.build(path, tmp_path / "whole.arena", dims=dims, cache=kind, whole=True)
    whole_bytes = arenite.plan(path, dims=dims, cache=kind).plan.height
    fitted = arenite.fit(path, int(whole_bytes * 0.97), dims=dims, cache=kind)
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


@pytest.mark.parametrize("kind", KINDS)
def test_with_results_of_16_bits_too_the_cache_is_read_as_it_is(kind, tmp_path):
    path = llama(tmp_path)
    reading = {"dims": DIMS_OF_STEPS, "activations": "fp16"}
    with (
        arenite.Session(path, **reading) as wide,
        arenite.Session(path, **reading, cache=kind) as narrow,
    ):
        assert narrow.arena_bytes < 0.6 * wide.arena_bytes
        for begin in range(0, 40, 8):
            feeds = feeds_of(wide, begin, begin + 8)
            right = wide.run(feeds)["logits"]
            found = narrow.run(feeds)["logits"]
            assert np.abs(found - right).max() < 5 * WORST[kind] * np.abs(right).max()


@pytest.mark.parametrize("kind", KINDS)
def test_states_are_saved_truncated_and_dropped(kind, tmp_path):
    path = decoder_file(tmp_path)
    dtype = np.dtype(DTYPES[kind].label)
    with Generator(path, length=32, cache=kind, rotates=True) as generator:
        made = generator.generate([1, 5, 7], max_tokens=80)
        assert len(made.tokens) == 80
        assert generator.session.states["past_key_values.0.key"].dtype == dtype
    with arenite.Session(path, dims=DECODER_DIMS, cache=kind) as session:
        first = session.run(feeds_of(session, 0, 4))["logits"].copy()
        assert {each.dtype for each in session.states.values()} == {dtype}
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


@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_file_states_the_cache(kind, tmp_path):
    path = decoder_file(tmp_path)
    planned = arenite.plan(path, dims=DECODER_DIMS, cache=kind)
    planned.save(tmp_path / "plan.json")
    assert json.loads((tmp_path / "plan.json").read_text())["model"]["cache"] == kind
    built = arenite.build(path, tmp_path / "made.arena", plan=tmp_path / "plan.json")
    assert built.plan.height == planned.plan.height
    with pytest.raises(OptionsError, match="--cache is for --target arenite"):
        arenite.plan(path, dims=DECODER_DIMS, cache=kind, target="generic")


@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_be_kept_so_is_refused(kind, tmp_path):
    path = save(tmp_path, parse(CACHE))
    refused = rf"'past': cannot be kept as {kind}.*no attention"
    with pytest.raises(UnsupportedModelError, match=refused):
        compiled(path, DIMS, kind)
    with pytest.raises(
        UnsupportedModelError, match=f"no cache of 32-bit floats to keep as {kind}"
    ):
        compiled(path, {"s": 4, "p": 5}, kind)


def test_heads_whose_elements_lie_apart_are_kept_as_16_bits_only():
    rows = _Rows("past", Caches.INT8, 16)
    moved = Move(shape=(2, 16), input_strides=(1, 2), output_strides=(16, 1))
    with pytest.raises(UnsupportedModelError, match=r"'past': .*do not follow.*--cache fp16"):
        rows.move(moved)
    assert _Rows("past", Caches.FP16, 16).move(moved) == moved
    whole = Move(
        shape=(1, 4, 32), input_start=16, input_strides=(7, 64, 1), output_start=32,
        output_strides=(9, 32, 1),
    )  # fmt: skip
    assert rows.move(whole) == Move(
        shape=(1, 4, 36), input_start=18, input_strides=(7, 72, 1), output_start=36,
        output_strides=(9, 36, 1),
    )  # fmt: skip
