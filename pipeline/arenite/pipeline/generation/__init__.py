"""Text, token by token, by a decoder whose cache is a state of its session."""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.pipeline.generation.errors import NoDecoderError, PromptError
    from arenite.pipeline.generation.generator import Generated, Generator, Piece
    from arenite.pipeline.generation.sampling import Sampling
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = ["Generated", "Generator", "NoDecoderError", "Piece", "PromptError", "Sampling"]
