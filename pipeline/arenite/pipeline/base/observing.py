"""Who waits for a search: told how far it is, and able to stop it."""

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import ClassVar

from arenite.planner import ShouldStop
from arenite.strategies import time_is_up

logger = logging.getLogger(__name__)


class Search:
    """A search under way, as its observer sees it; this one is neither shown nor stopped."""

    was_stopped: bool = False
    """Whether the observer stopped it."""

    def should_stop(self) -> bool:
        """Tell whether the observer stops the search."""
        return self.was_stopped

    def show(self, text: str) -> None:
        """Show how far the search is."""

    def abandoning(self) -> AbstractContextManager[None]:
        """Return a block that the observer may end at once, by an `AbandonedError`."""
        return nullcontext()


class Observer:
    """An observer of searches that shows nothing and stops nothing; others derive from it."""

    is_shown: ClassVar[bool] = False
    """Whether the progress of searches is shown."""

    @contextmanager
    def searching(self, _name: str, _keeps: str = "") -> Iterator[Search]:
        """Return a block in which a search runs.

        Args:
            _keeps: The noun for the result that a stopped search keeps.
        """
        yield Search()

    def note(self, text: str) -> None:
        """Show a note on a result."""
        logger.info(text)

    def complain(self, text: str) -> None:
        """Pass on an error after which the work goes on."""
        logger.error(text)


SILENT = Observer()


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """How long a search may take, and who observes it.

    Attributes:
        time_limit_s: Seconds after which a search keeps its best result; None for no limit.
    """

    time_limit_s: float | None = None
    observer: Observer = field(default=SILENT)

    def is_over(self) -> ShouldStop:
        """Return a function that tells whether the time limit has passed, counted from now."""
        return time_is_up(float("inf") if self.time_limit_s is None else self.time_limit_s)


UNLIMITED = SearchLimits()
