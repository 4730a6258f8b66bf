"""Tokens to text as they come, up to a text that ends it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from arenite.pipeline.generation.errors import PromptError
from arenite.planner.errors import needing

_PARTIAL = "\ufffd"  # what a part of a character becomes


class Tokenizer(Protocol):
    """Text to tokens and back."""

    def encode(self, text: str) -> Sequence[int]:
        """Return the tokens of a text."""

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens."""


class FileTokenizer:
    """A tokenizer of a file `tokenizer.json`, by the library `tokenizers`.

    Raises:
        MissingDependencyError: The library is absent.
        PromptError: It cannot read the file.
    """

    def __init__(self, path: Path) -> None:
        with needing("tokenizers", "generate", f"reading {path.name!r}"):
            import tokenizers
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # the library has no class of its own
            raise PromptError(
                f"{path}: is no tokenizer that 'tokenizers' reads: {error}"
            ) from error

    def encode(self, text: str) -> Sequence[int]:
        return list(self._tokenizer.encode(text).ids)

    def decode(self, tokens: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(tokens)))


class TextStream:
    """The text of tokens as they come.

    A part of a character waits for the rest, and what may be the beginning of a stop waits until
    it is none.

    Args:
        tokenizer: Decodes tokens.
        stops: Texts that end the text and are no part of it.

    Attributes:
        is_stopped: Whether a stop was found.
    """

    def __init__(self, tokenizer: Tokenizer, stops: Sequence[str]) -> None:
        self._tokenizer, self._stops = tokenizer, tuple(filter(None, stops))
        self._tokens: list[int] = []
        self._given = 0  # characters
        self.is_stopped = False

    def add(self, token: int) -> str:
        """Return the text that is new and certain with another token."""
        self._tokens.append(token)
        text = self._tokenizer.decode(self._tokens)
        found = [place for stop in self._stops if (place := text.find(stop)) >= 0]
        if found:
            self.is_stopped = True
            return self._new(text[: min(found)])
        certain = text.rstrip(_PARTIAL)
        return self._new(certain[: len(certain) - self._possible(certain)])

    def rest(self) -> str:
        """Return the text that is left when no token follows."""
        return "" if self.is_stopped else self._new(self._tokenizer.decode(self._tokens))

    def _new(self, text: str) -> str:
        new = text[self._given :]
        self._given = max(self._given, len(text))
        return new

    def _possible(self, text: str) -> int:
        """Return how many characters at the end may be the beginning of a stop."""
        return max(
            (n for stop in self._stops for n in range(1, len(stop)) if text.endswith(stop[:n])),
            default=0,
        )
