"""The loop of a decoder: its tokens are those of ONNX Runtime without a cache."""

import json
import sys

import numpy as np
import onnx
import onnxruntime
import pytest

import arenite
from arenite import Generated, Generator, Sampling
from arenite.pipeline.generation import NoDecoderError, PromptError
from arenite.pipeline.generation.text import TextStream
from arenite.planner.errors import MissingDependencyError
from support.decoders import add_tokenizer, decoder_file
from support.shared_material import shared
from support.tiny_onnx import parse, save

PROMPT = [1, 5, 7, 9, 11, 3, 2]


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    return decoder_file(tmp_path_factory.mktemp("decoder"))


def whole(path, tokens):
    """Return the logits of all tokens by ONNX Runtime in one run, without a past."""
    session = onnxruntime.InferenceSession(path)
    feeds = {
        "input_ids": np.array([tokens]),
        "attention_mask": np.ones((1, len(tokens)), np.int64),
        "position_ids": np.arange(len(tokens))[None],
    }
    feeds = {
        each.name: feeds[each.name].astype(np.int32 if "int32" in each.type else np.int64)
        for each in session.get_inputs()
        if each.name in feeds
    }
    for each in session.get_inputs():
        if each.name.startswith("past"):
            lengths = [n if isinstance(n, int) else 0 if "past" in n else 1 for n in each.shape]
            feeds[each.name] = np.zeros(lengths, np.float32)
    return session.run(["logits"], feeds)[0][0]


@pytest.mark.parametrize("chunk", [1, 3, 16])
def test_two_hundred_tokens_are_those_of_the_model_without_a_cache(decoder, chunk):
    with Generator(decoder, length=256, chunk=chunk) as generator:
        made = generator.generate(PROMPT, max_tokens=200)
        assert (made.stopped, made.prompt_tokens, made.text) == ("max_tokens", len(PROMPT), "")
        states = generator.session.states
        assert states.length == len(PROMPT) + 199
        expected = whole(decoder, PROMPT + made.tokens[:-1])
        assert made.tokens == list(expected[len(PROMPT) - 1 :].argmax(-1))
        last = generator._logits([*PROMPT, *made.tokens])[0]
    right = whole(decoder, PROMPT + made.tokens)[-1]
    np.testing.assert_allclose(last, right, rtol=0, atol=1e-5 * np.abs(right).max())


def test_a_program_file_runs_without_the_model(decoder, tmp_path):
    dims = {
        "sequence_length": "1..4", "past_sequence_length": "0..31+",
        "total_sequence_length": "past_sequence_length+sequence_length",
    }  # fmt: skip
    built = arenite.build(decoder, tmp_path / "decoder.arena", dims=dims)
    assert sum(each.kind == "state" for each in built.compiled.program.tensors.values()) == 4
    with Generator(tmp_path / "decoder.arena") as generator, Generator(decoder) as other:
        made = generator.generate(PROMPT, max_tokens=100)
        assert (made.stopped, len(made.tokens)) == ("full", 32 - len(PROMPT) + 1)
        assert other.generate(PROMPT, max_tokens=len(made.tokens)).tokens == made.tokens
        with pytest.raises(PromptError, match="40 tokens, and the model takes 32"):
            generator.generate([1] * 40)


def test_what_prompts_begin_with_alike_is_not_computed_again(decoder):
    with Generator(decoder) as generator:
        first = generator.generate(PROMPT, max_tokens=5)
        again = generator.generate(PROMPT, max_tokens=5)
        assert (again.tokens, again.reused_tokens) == (first.tokens, len(PROMPT) - 1)
        other = generator.generate([*PROMPT[:4], 8, 8], max_tokens=5)
        assert other.reused_tokens == 4
        generator.reset()
        fresh = generator.generate([*PROMPT[:4], 8, 8], max_tokens=5)
        assert (fresh.tokens, fresh.reused_tokens) == (other.tokens, 0)


def test_a_text_ends_at_tokens_or_when_the_caller_leaves(decoder, tmp_path):
    with Generator(decoder) as generator:
        made = generator.generate(PROMPT, max_tokens=9).tokens
        ended = generator.generate(PROMPT, max_tokens=9, stop_tokens=[made[4]])
        assert (ended.stopped, ended.tokens) == ("stop_token", made[: made.index(made[4]) + 1])
        assert generator.generate(PROMPT, max_tokens=0).tokens == []
        partial = Generated()
        pieces = generator.stream(PROMPT, max_tokens=9, result=partial)
        piece = [next(pieces) for _ in range(3)][-1]
        assert (piece.token, partial.tokens, partial.stopped) == (made[2], made[:3], "")
    copied = tmp_path / "decoder.onnx"
    copied.write_bytes(decoder.read_bytes())
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [made[4], 95]}))
    with Generator(copied) as generator:
        assert generator.generate(PROMPT, max_tokens=9).tokens == ended.tokens


def test_a_model_without_a_cache_computes_all_tokens_in_each_run(tmp_path):
    text = """(int64[1,n] input_ids) => (float[1,n,9] logits) <float[9,9] w>
    { e = Gather(w, input_ids) zero = Constant<value = int64 {1}>()
      s = CumSum(e, zero) logits = MatMul(s, w) }"""
    model = parse(text)
    weights = np.random.default_rng(2).standard_normal((9, 9)).astype(np.float32)
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(weights, "w"))
    path = save(tmp_path, model)
    with Generator(path, length=12) as generator:
        made = generator.generate([1, 2], max_tokens=20)
        assert (made.stopped, len(made.tokens)) == ("full", 11)
        assert made.tokens == list(whole(path, [1, 2, *made.tokens[:-1]])[1:].argmax(-1))


def test_prompts_and_models_that_do_not_fit_are_refused(decoder, tmp_path):
    with Generator(decoder, length=8) as generator:
        for prompt, reason in (
            ([], "no tokens"), ([96], "token 96 is not one of the model's 96"), ([-1], "token -1"),
            ("text", "needs a tokenizer"), ([1] * 9, "9 tokens"),
        ):  # fmt: skip
            with pytest.raises(PromptError, match=reason):
                generator.generate(prompt)
        with pytest.raises(PromptError, match="stop at need a tokenizer"):
            generator.generate([1], stop=["x"])
        with pytest.raises(ValueError, match="max_tokens is -1"):
            generator.generate([1], max_tokens=-1)
        generator.close()
    with pytest.raises(ValueError, match="length is 1"):
        Generator(decoder, length=1)
    path = save(tmp_path, parse("(float[2] x) => (y) { y = Neg(x) }"))
    with pytest.raises(NoDecoderError, match="no input of shape batch x tokens is named"):
        Generator(path)
    text = (
        "(int64[1,n] input_ids, float[2] gain) => (logits) {logits = Neg(input_ids) z = Neg(gain)}"
    )
    with pytest.raises(NoDecoderError, match="nobody gives 'gain'"):
        Generator(save(tmp_path, parse(text)))
    (tmp_path / "tokenizer.json").write_text("{")
    pytest.importorskip("tokenizers")
    with pytest.raises(PromptError, match="is no tokenizer"):
        Generator(path)


LOGITS = np.array([0.0, 3.0, 2.0, 1.0, -9.0])


def test_tokens_are_drawn_by_their_probabilities():
    random = np.random.default_rng(0)
    drawn = [Sampling(temperature=1.0).choose(LOGITS, random) for _ in range(4000)]
    likely = np.exp(LOGITS) / np.exp(LOGITS).sum()
    np.testing.assert_allclose(np.bincount(drawn, minlength=5) / 4000, likely, atol=0.03)
    assert {Sampling(1.0, top_k=2).choose(LOGITS, random) for _ in range(200)} == {1, 2}
    assert {Sampling(1.0, top_p=0.7).choose(LOGITS, random) for _ in range(200)} == {1, 2}
    assert {Sampling(1.0, top_p=0.1).choose(LOGITS, random) for _ in range(20)} == {1}
    assert {Sampling().choose(LOGITS, random)} == {1}


@pytest.mark.parametrize("wrong", [{"temperature": -1}, {"top_k": -1}, {"top_p": 0}, {"top_p": 2}])
def test_sampling_out_of_range_is_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Sampling(**wrong)


def test_the_same_seed_gives_the_same_text(decoder):
    with Generator(decoder) as generator:
        first, again, other = (
            generator.generate(PROMPT, max_tokens=20, sampling=Sampling(1.0, seed=seed)).tokens
            for seed in (1, 1, 2)
        )
    assert first == again != other


class Letters:
    """A tokenizer of UTF-8 bytes."""

    def encode(self, text):
        return list(text.encode())

    def decode(self, tokens):
        return bytes(tokens).decode(errors="replace")


def streamed(text, *stops):
    stream = TextStream(Letters(), stops)
    pieces = []
    for token in Letters().encode(text):
        pieces.append(stream.add(token))
        if stream.is_stopped:
            break
    return [*pieces, stream.rest()]


def test_text_appears_when_it_is_certain():
    assert streamed("aé!") == ["a", "", "é", "!", ""]
    assert streamed("a stop b", " stop")[:3] == ["a", "", ""]
    assert "".join(streamed("a stop b", " stop")) == "a"
    assert "".join(streamed("a sto b", " stop")) == "a sto b"
    assert "".join(streamed("a sto", " stop")) == "a sto"
    assert "".join(streamed("xyz", "yz", "y")) == "x"
    assert "".join(streamed("ab", "")) == "ab"


def test_text_goes_in_and_comes_out(tmp_path):
    path = decoder_file(tmp_path)
    add_tokenizer(path)
    with Generator(path) as generator:
        made = generator.generate("hello", max_tokens=12)
        assert made.text == "".join(chr(32 + token) for token in made.tokens)
        stop = made.text[5:7]
        stopped = generator.generate("hello", max_tokens=12, stop=[stop])
        assert (stopped.stopped, stopped.text) == ("stop", made.text[: made.text.find(stop)])


def test_without_the_library_the_extra_is_named(decoder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(MissingDependencyError, match="generate"):
        Generator(decoder, tokenizer=tmp_path / "tokenizer.json")


@pytest.mark.parametrize("name", ["lfm2-fp32_decoder", "gpt2-fp32_past"])
def test_an_exported_decoder_continues_as_in_onnx_runtime(name):
    path = shared(f"models/onnx/tr_genai_tiny-random-{name}.onnx")
    with Generator(path, length=64) as generator:
        made = generator.generate(PROMPT, max_tokens=20)
        last = generator._logits([*PROMPT, *made.tokens])[0]
    right = whole(path, PROMPT + made.tokens)[-1]
    np.testing.assert_allclose(last, right, rtol=0, atol=1e-5 * np.abs(right).max())
