"""The user before a terminal as the observer of searches: progress, Ctrl-C, notes."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import ClassVar

import click
from rich.status import Status

from arenite.cli.console.interrupt import StopRequest, stop_on_interrupt
from arenite.cli.console.streams import complain, note, progress
from arenite.pipeline.base import Observer, Search, SearchLimits


class TerminalSearch(Search):
    """A search that is shown in a status line and stopped by the first Ctrl-C."""

    def __init__(self, name: str, keeps: str, request: StopRequest, status: Status | None) -> None:
        self._name = name
        self._keeps = keeps
        self._request = request
        self._status = status

    def should_stop(self) -> bool:
        """Tell whether the user pressed Ctrl-C; the first time, confirm it."""
        if self._request.asked and not self.was_stopped:
            self.was_stopped = True
            click.echo(
                f"{self._name}: stopping; the best {self._keeps} so far is kept "
                "(Ctrl-C again to abort)",
                err=True,
            )
        return self.was_stopped

    def show(self, text: str) -> None:
        if self._status is not None:
            self._status.update(text)

    def abandoning(self) -> AbstractContextManager[None]:
        """Return a block that the first Ctrl-C ends at once."""
        return self._request.abandoning()


class TerminalObserver(Observer):
    """Draws progress on a terminal; the first Ctrl-C stops a search that keeps its best result."""

    is_shown: ClassVar[bool] = True

    @contextmanager
    def searching(self, name: str, keeps: str = "") -> Iterator[Search]:
        console = progress()
        stopping = stop_on_interrupt() if keeps else nullcontext(StopRequest())
        shown = console.status(f"{name}: running") if console.is_terminal else nullcontext()
        with stopping as request, shown as status:
            search = TerminalSearch(name, keeps, request, status)
            try:
                yield search
            finally:
                search.was_stopped = request.asked

    def note(self, text: str) -> None:
        note(text)

    def complain(self, text: str) -> None:
        complain(text)


TERMINAL = TerminalObserver()


def watched(time_limit_s: float | None = None) -> SearchLimits:
    return SearchLimits(time_limit_s, TERMINAL)
