"""Arena, cache and resident weights within one budget."""

import numpy as np
import onnx
import pytest

import arenite
from arenite.pipeline.base import OneBudgetError
from arenite.runtime import Session
from arenite.runtime.operators import LoadWeights
from arenite.runtime.rewrites import NoRestError
from bench.zoo.decoders import language_model
from support.decoders import DIMS


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    path = tmp_path_factory.mktemp("decoder") / "decoder.onnx"
    onnx.save(language_model(2, 128, 2, vocabulary=256, most=64), path)
    return path


@pytest.fixture(scope="module")
def whole(decoder, tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "decoder.arena"
    arenite.build(decoder, path, dims=DIMS)
    return path


def logits(program):
    """Return the logits of some tokens, one by one, and of a few more in one run."""
    made = []
    with Session(program) as session:
        for tokens in ([3], [7], [1, 5, 2]):
            past = session.states.length
            places = np.arange(past, past + len(tokens))
            feeds = {
                "input_ids": np.array([tokens]), "position_ids": places[None],
                "attention_mask": np.ones((1, past + len(tokens)), np.int64),
            }  # fmt: skip
            made.append(session.run(feeds)["logits"].tobytes())
        return made, session.arena_bytes


@pytest.mark.parametrize("share", ["75%", "30%"])
def test_arena_and_weights_are_within_the_budget_and_outputs_the_same(
    decoder, whole, share, tmp_path
):
    fitted = arenite.fit(decoder, share, dims=DIMS, weights="rest")
    program = fitted.fit.program
    loaded = [
        program.constants[step.inputs[0]].nbytes
        for step in program.steps
        if isinstance(step.operator, LoadWeights)
    ]
    constants = sum(array.nbytes for array in program.constants.values())
    assert fitted.loaded_weights == sum(loaded) > 0
    assert fitted.resident_weights == constants - sum(loaded)
    assert fitted.total == fitted.height + fitted.resident_weights <= fitted.budget
    assert fitted.total > 0.9 * fitted.budget
    output = tmp_path / "fitted.arena"
    held = fitted.save(output)
    made, arena = logits(output)
    assert (made, arena) == (logits(whole)[0], fitted.height)
    inputs = {step.inputs[0] for step in program.steps if isinstance(step.operator, LoadWeights)}
    kept = {a.tobytes() for name, a in program.constants.items() if name not in inputs}
    assert held.weights_resident == sum(map(len, kept))  # the file has equal constants once


def test_a_budget_for_all_loads_nothing(decoder, whole):
    fitted = arenite.fit(decoder, "100%", dims=DIMS, weights="rest")
    assert (fitted.loaded_weights, fitted.total) == (0, fitted.budget)
    assert fitted.height == logits(whole)[1]


def test_budgets_out_of_reach_are_refused(decoder, tmp_path):
    with pytest.raises(OneBudgetError, match="raise --budget") as caught:
        arenite.fit(decoder, 1000, dims=DIMS, weights="rest")
    least = caught.value.least
    assert arenite.fit(decoder, least, dims=DIMS, weights="rest").total <= least
    with pytest.raises(NoRestError, match="is for `arenite fit`"):
        arenite.build(decoder, tmp_path / "decoder.arena", dims=DIMS, weights="rest")
