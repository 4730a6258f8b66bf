"""A cache that drops its oldest tokens: as the model whose queries see a window of keys."""

import numpy as np
import onnx
import onnxruntime
import pytest

from arenite import Generator
from arenite.pipeline.generation import NoDecoderError, PromptError
from bench.zoo.llama import smollm
from support.decoders import decoder_file

WINDOW = 24
PROMPT = [1, 5, 7, 9, 11, 3, 2]


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    return decoder_file(tmp_path_factory.mktemp("decoder"))


@pytest.fixture(scope="module")
def windowed(decoder):
    """Return ONNX Runtime with the model in which a query sees the last `WINDOW` keys."""
    model = onnx.load(decoder)
    made = []
    for node in model.graph.node:
        made.append(node)
        if node.op_type == "LessOrEqual":
            (keys, queries), (seen,) = node.input, node.output
            node.output[0] = "before"
            made += [
                onnx.helper.make_node("Sub", [queries, "window"], ["first"]),
                onnx.helper.make_node("Greater", [keys, "first"], ["near"]),
                onnx.helper.make_node("And", ["before", "near"], [seen]),
            ]
    del model.graph.node[:]
    model.graph.node.extend(made)
    window = onnx.numpy_helper.from_array(np.array(WINDOW, np.int64), "window")
    model.graph.initializer.append(window)
    return onnxruntime.InferenceSession(model.SerializeToString())


def logits_of(session, tokens):
    """Return the logits of all tokens in one run, without a past."""
    feeds = {
        each.name: np.zeros([n if isinstance(n, int) else 0 for n in each.shape], np.float32)
        for each in session.get_inputs()
        if each.name.startswith("past")
    }
    feeds["input_ids"] = np.array([tokens])
    feeds["attention_mask"] = np.ones((1, len(tokens)), np.int64)
    feeds["position_ids"] = np.arange(len(tokens))[None]
    return session.run(["logits"], feeds)[0][0]


@pytest.mark.parametrize("chunk", [1, 16])
@pytest.mark.parametrize("prompt", [PROMPT, [*range(3, 40)]], ids=["short", "long"])
def test_two_hundred_tokens_are_those_of_a_window_without_a_cache(
    decoder, windowed, prompt, chunk
):
    with Generator(decoder, length=WINDOW, rotates=True, chunk=chunk) as generator:
        made = generator.generate(prompt, max_tokens=200)
        assert made.stopped == "max_tokens"
        assert generator.session.states.length == WINDOW
        expected = logits_of(windowed, prompt + made.tokens[:-1])
        assert made.tokens == list(expected[len(prompt) - 1 :].argmax(-1))
        last = generator._logits([*prompt, *made.tokens])[0]
        right = logits_of(windowed, prompt + made.tokens)[-1]
        np.testing.assert_allclose(last, right, rtol=0, atol=1e-5 * np.abs(right).max())


def test_other_prompts_begin_anew_once_tokens_were_dropped(decoder):
    with Generator(decoder, length=WINDOW, rotates=True) as generator:
        first = generator.generate(PROMPT, max_tokens=40)
        more = generator.generate(PROMPT + first.tokens, max_tokens=4)
        assert more.reused_tokens == len(PROMPT) + len(first.tokens) - 1
        again = generator.generate(PROMPT, max_tokens=40)
        assert (again.tokens, again.reused_tokens) == (first.tokens, 0)
    with Generator(decoder, length=WINDOW) as generator:
        assert generator.generate(PROMPT, max_tokens=40).stopped == "full"
        with pytest.raises(PromptError, match="30 tokens"):
            generator.generate([1] * 30)


def test_a_model_that_counts_places_by_its_cache_does_not_rotate(tmp_path):
    path = tmp_path / "fused.onnx"
    onnx.save(smollm(1, 32, 2, 1, 32, vocabulary=96, most=64, fused=True), path)
    with pytest.raises(NoDecoderError, match="no input is named 'position_ids'"):
        Generator(path, length=WINDOW, rotates=True)


def test_a_row_that_is_not_there_is_not_dropped(decoder):
    from arenite.runtime.errors import SizeRangeError

    with Generator(decoder, length=WINDOW) as generator:
        generator.generate(PROMPT, max_tokens=1)
        states = generator.session.states
        kept = {name: states[name].copy() for name in states}
        for row in (-1, len(PROMPT)):
            with pytest.raises(SizeRangeError, match=f"row {row} of all states cannot be dropped"):
                states.drop(row)
        states.drop(2)
        assert states.length == len(PROMPT) - 1
        for name, before in kept.items():
            np.testing.assert_array_equal(states[name], before[[0, 1, 6, 3, 4, 5]])
