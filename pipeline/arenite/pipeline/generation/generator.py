"""The loop of a decoder: tokens in, logits out, a token chosen, again."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arenite.pipeline.base.reading import StatedDims
from arenite.pipeline.generation.errors import NoDecoderError, PromptError
from arenite.pipeline.generation.lengths import MASKS, POSITIONS, TOKENS, decoder_dims
from arenite.pipeline.generation.sampling import Sampling
from arenite.pipeline.generation.text import FileTokenizer, TextStream, Tokenizer
from arenite.pipeline.session import Session
from arenite.runtime import Closing, SessionPort

MIN_LENGTH = 2
"""A token of the prompt and one that follows."""

Stopped: TypeAlias = Literal["", "max_tokens", "stop_token", "stop", "full"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A token and the text that is certain with it.

    Attributes:
        token: The token; None for text that was left at the end.
        text: New text, "" without a tokenizer or while a character is not complete.
    """

    token: int | None
    text: str


@dataclass(slots=True)
class Generated:
    """What a generator made, while it makes it and after.

    Attributes:
        prompt_tokens: Tokens of the prompt.
        reused_tokens: Those at its front that the cache had already.
        tokens: Tokens made, the one that stopped it among them.
        text: Their text, "" without a tokenizer.
        stopped: Why it ended: `max_tokens`, `stop_token`, `stop` for a text, or `full` where the
            model takes no more tokens; "" if it was interrupted.
        prompt_s: Seconds of the runs over the prompt, which give the first token.
        decode_s: Seconds of the runs after that, each of one token.
    """

    prompt_tokens: int = 0
    reused_tokens: int = 0
    tokens: list[int] = field(default_factory=list)
    text: str = ""
    stopped: Stopped = ""
    prompt_s: float = 0.0
    decode_s: float = 0.0

    @property
    def prompt_tokens_per_s(self) -> float:
        """Tokens of the prompt a second, without those that the cache had."""
        return _rate(self.prompt_tokens - self.reused_tokens, self.prompt_s)

    @property
    def tokens_per_s(self) -> float:
        """Tokens made a second, after the first; 0 if there is one at most."""
        return _rate(len(self.tokens) - 1, self.decode_s)


def _rate(count: int, seconds: float) -> float:
    return count / seconds if count > 0 and seconds > 0 else 0.0


class Generator(Closing):
    """A decoder that continues a prompt, token by token.

    The cache of keys and values is a state of the session, planned in its arena: a run copies none
    of it. What prompts have in common at the front is not computed again. A model without a cache
    computes all tokens in each run.

    Args:
        model: An ONNX decoder, or the program that it was built into. Inputs have the usual names:
            `input_ids`, `attention_mask`, `position_ids`; a cache has `past` in its names.
        tokenizer: A `tokenizer.json`; by default that beside the model, if there is one. Without
            one prompts are tokens.
        length: Most tokens of a text, prompt and all, of an ONNX model; a program has its own.
        rotates: Whether a text may be longer: each token then sees that many, itself and the last
            ones before it. The cache drops its oldest token for each that it adds; positions go
            on.
        chunk: Most tokens of a run over the prompt, of an ONNX model: more are quicker and take
            a larger arena.
        cache: Type that the cache of an ONNX model is stored as: `fp16`, `int8` or `fp32`.
        dims: Values of free dimensions, in the place of those that the names suggest.
        inputs: Arrays for other inputs, by name, such as `encoder_hidden_states`; they are fed
            in each run.
        threads: Number of threads that run kernels.

    Raises:
        NoDecoderError: The model has no input of tokens, or inputs that nobody gives; or it
            rotates and has no cache, or no input for the place of a token.
        ModelError: The model cannot be read or run.
        ProgramError: The program cannot be read.
        MissingDependencyError: A package that reads the model or the tokenizer is absent.
    """

    def __init__(
        self,
        model: Path | str,
        *,
        tokenizer: Path | str | None = None,
        length: int = 1024,
        rotates: bool = False,
        chunk: int = 16,
        cache: str | None = None,
        dims: StatedDims | None = None,
        inputs: Mapping[str, NDArray[Any]] | None = None,
        threads: int = 1,
    ) -> None:
        if length < MIN_LENGTH or chunk < 1:
            raise ValueError(
                f"length is {length}, chunk {chunk}; give at least {MIN_LENGTH} and 1"
            )
        model = Path(model)
        beside = model.with_name("tokenizer.json")
        path = Path(tokenizer) if tokenizer is not None else beside if beside.is_file() else None
        self.tokenizer: Tokenizer | None = None if path is None else FileTokenizer(path)
        self._end_tokens = _end_tokens(model)
        stated = (
            decoder_dims(model, length, chunk, dims or {}) if model.suffix == ".onnx" else dims
        )
        self.session = Session(model, dims=stated, cache=cache, threads=threads)
        self._others = dict(inputs or {})
        self._name = model.name
        self._ports = _Ports(self.session, model.name, self._others)
        self._held: list[int] = []  # tokens that the cache was given
        self._dropped = 0  # those at the front that it has no more
        self._rotates = rotates
        if rotates:
            self._ports.check_rotation(model.name)

    def generate(
        self,
        prompt: str | Sequence[int],
        *,
        max_tokens: int = 128,
        sampling: Sampling | None = None,
        stop: Sequence[str] = (),
        stop_tokens: Sequence[int] | None = None,
    ) -> Generated:
        """Continue a prompt and return all that was made. Arguments and errors are `stream`'s."""
        result = Generated()
        for _ in self.stream(
            prompt, max_tokens=max_tokens, sampling=sampling, stop=stop, stop_tokens=stop_tokens,
            result=result,
        ):  # fmt: skip
            pass
        return result

    def stream(
        self,
        prompt: str | Sequence[int],
        *,
        max_tokens: int = 128,
        sampling: Sampling | None = None,
        stop: Sequence[str] = (),
        stop_tokens: Sequence[int] | None = None,
        result: Generated | None = None,
    ) -> Iterator[Piece]:
        """Continue a prompt and yield each token as it is chosen.

        Args:
            prompt: Text, or tokens.
            max_tokens: Most tokens to make.
            sampling: How tokens are chosen; by default the most likely one.
            stop: Texts that end the text and are no part of it.
            stop_tokens: Tokens that end it; by default `eos_token_id` of the file
                `generation_config.json` or `config.json` beside the model, if there is one.
            result: Filled in on the way: it has all that was made, if this is interrupted.

        Raises:
            PromptError: There is no tokenizer for a text, or the prompt has no tokens, tokens that
                the model does not have, or more than it takes.
            ValueError: `max_tokens` is below 0.
        """
        if max_tokens < 0:
            raise ValueError(f"max_tokens is {max_tokens}; give a number from 0")
        result = Generated() if result is None else result
        sampling = sampling or Sampling()
        ends = self._end_tokens if stop_tokens is None else frozenset(stop_tokens)
        tokens = self._tokens_of(prompt)
        stream = None if self.tokenizer is None else TextStream(self.tokenizer, stop)
        if stop and stream is None:
            raise PromptError(f"{self._name}: texts to stop at need a tokenizer")
        random = np.random.default_rng(sampling.seed)
        result.prompt_tokens = len(tokens)
        while True:
            begun = time.perf_counter()
            if len(tokens) > self._ports.most and not self._rotates:
                result.stopped = "full"
                break
            logits, reused = self._logits(tokens)
            spent = time.perf_counter() - begun
            if not result.tokens:
                result.reused_tokens, result.prompt_s = reused, spent
            else:
                result.decode_s += spent
            if len(result.tokens) >= max_tokens:
                result.stopped = "max_tokens"
                break
            token = sampling.choose(logits, random)
            tokens.append(token)
            result.tokens.append(token)
            if token in ends:
                result.stopped = "stop_token"
                break
            text = "" if stream is None else stream.add(token)
            result.text += text
            if stream is not None and stream.is_stopped:
                result.stopped = "stop"
            elif len(result.tokens) == max_tokens:
                result.stopped = "max_tokens"
            yield Piece(token, text)
            if result.stopped:
                break
        rest = "" if stream is None else stream.rest()
        if rest:
            result.text += rest
            yield Piece(None, rest)

    def reset(self) -> None:
        """Forget all tokens: the cache is empty."""
        self.session.states.reset()
        self._held, self._dropped = [], 0

    def close(self) -> None:
        """Release the memory. Closing twice is harmless."""
        self.session.close()

    def _tokens_of(self, prompt: str | Sequence[int]) -> list[int]:
        if isinstance(prompt, str):
            if self.tokenizer is None:
                raise PromptError(
                    f"{self._name}: a text needs a tokenizer: give a tokenizer.json, or tokens"
                )
            prompt = self.tokenizer.encode(prompt)
        tokens = [int(each) for each in prompt]
        if not tokens:
            raise PromptError("the prompt has no tokens; give at least one")
        vocabulary = self._ports.vocabulary
        for each in tokens:
            if not 0 <= each < vocabulary:
                raise PromptError(f"token {each} is not one of the model's {vocabulary}")
        if len(tokens) > self._ports.most and not self._rotates:
            raise PromptError(
                f"the prompt has {len(tokens)} tokens, and the model takes {self._ports.most}; "
                "shorten it, or build for a longer range"
            )
        return tokens

    def _logits(self, tokens: Sequence[int]) -> tuple[NDArray[Any], int]:
        """Return the logits behind the last token, and how many tokens the cache had."""
        ports = self._ports
        if not ports.has_cache:
            return self._run(tokens, 0), 0
        held = self._reuse(tokens)
        try:
            while len(self._held) < len(tokens):
                begin = len(self._held)
                part = tokens[begin : begin + min(ports.chunk, self._room())]
                logits = self._run(part, begin)
                self._held += part
        except BaseException:
            self.reset()
            raise
        return logits, held

    def _reuse(self, tokens: Sequence[int]) -> int:
        """Keep the tokens of the cache that these begin with, but the last; return how many."""
        same = 0
        while same < min(len(tokens) - 1, len(self._held)) and tokens[same] == self._held[same]:
            same += 1
        if same < len(self._held):
            if self._ports.truncates and not self._dropped:
                self.session.states.truncate(same)
                del self._held[same:]
            else:
                self.reset()
                same = 0
        return same

    def _room(self) -> int:
        """Return how many tokens the cache has room for; a full one drops its oldest token."""
        room = self._ports.most - self.session.states.length
        if room == 0:
            # The newest token takes the place of the oldest, which is the next place each time.
            self.session.states.drop(self._dropped % (self._ports.most - 1))
            self._dropped += 1
            return 1
        return room

    def _run(self, tokens: Sequence[int], past: int) -> NDArray[Any]:
        ports, seen = self._ports, past - self._dropped + len(tokens)
        feeds: dict[str, NDArray[Any]] = dict(self._others)
        feeds[ports.tokens.name] = np.asarray([tokens], ports.tokens.dtype)
        if ports.mask is not None:
            feeds[ports.mask.name] = np.ones((1, seen), ports.mask.dtype)
        if ports.positions is not None:
            places = np.arange(past, past + len(tokens), dtype=ports.positions.dtype)
            feeds[ports.positions.name] = places[None]
        outputs = self.session.run(feeds, copy=False)
        logits = outputs[ports.logits]
        return np.array(logits.reshape(-1, logits.shape[-1])[-1])


class _Ports:
    """The inputs and outputs of a decoder, by what they are for.

    Attributes:
        tokens: Where tokens go in.
        mask: Which of all tokens are there; None if the model takes no mask.
        positions: The place of each new token; None if the model counts them itself.
        logits: Name of the output.
        vocabulary: Number of tokens that the model knows.
        has_cache: Whether past tokens are states.
        truncates: Whether tokens at the end of the cache can be dropped.
        chunk: Most tokens of one run.
        most: Most tokens of all.
    """

    def __init__(self, session: Session, model: str, others: Mapping[str, object]) -> None:
        named = {port.name: port for port in session.inputs}

        def find(names: Sequence[str]) -> SessionPort | None:
            return next((named.pop(each) for each in names if each in named), None)

        tokens = find(TOKENS)
        if tokens is None:
            raise NoDecoderError(
                model,
                f"no input is named {' or '.join(map(repr, TOKENS))}; inputs: {_list(named)}",
            )
        self.tokens, self.mask, self.positions = tokens, find(MASKS), find(POSITIONS)
        left = named.keys() - others.keys()
        if left:
            raise NoDecoderError(
                model,
                f"nobody gives {_list(sorted(left))}; give arrays as `inputs`, or, of a cache, "
                "build with a dimension that grows, such as --dim past_sequence_length=0..1023+",
            )
        outputs = {port.name: port for port in session.outputs}
        logits = outputs.get("logits", session.outputs[0])
        self.logits, self.vocabulary = logits.name, logits.shape[-1]
        growing = [each for each in session.dimensions if each.grows]
        self.has_cache = bool(growing)
        self.truncates = session.states.can_truncate
        highest = {each.name: each.high for each in session.dimensions}
        session.resize({each.name: each.high for each in session.dimensions if not each.grows})
        self.chunk = next(p.shape[-1] for p in session.inputs if p.name == tokens.name)
        self.most = min((highest[each.name] + 1 for each in growing), default=self.chunk)

    def check_rotation(self, model: str) -> None:
        """Return if the cache can drop tokens.

        Raises:
            NoDecoderError: There is none, a run replaces a part of it, or the model counts places
                by the tokens of the cache.
        """
        if not self.has_cache or not self.truncates or self.most < MIN_LENGTH:
            raise NoDecoderError(model, "no cache rotates that has rows of at least 2 tokens")
        if self.positions is None:
            raise NoDecoderError(
                model,
                f"no input is named {POSITIONS[0]!r}: a cache that rotates needs the place of "
                "each token; use a longer cache",
            )


def _list(names: Sequence[str] | Mapping[str, object]) -> str:
    return ", ".join(map(repr, names)) or "none"


def _end_tokens(model: Path) -> frozenset[int]:
    """Return the tokens that end a text, as the files that come with a model state them."""
    for name in ("generation_config.json", "config.json"):
        with suppress(OSError, ValueError, RecursionError):
            stated = json.loads(model.with_name(name).read_text())
            found = stated.get("eos_token_id") if isinstance(stated, dict) else None
            if found is not None:
                ids = found if isinstance(found, list) else [found]
                return frozenset(each for each in ids if type(each) is int)
    return frozenset()
