"""Ctrl-C during a search: the first asks it to stop, the second ends the program."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from arenite.planner.placement import AbandonedError


@dataclass(slots=True)
class StopRequest:
    """Whether the user asked the search to stop."""

    asked: bool = False
    _abandons: bool = False

    @contextmanager
    def abandoning(self) -> Iterator[None]:
        """Return a block that the request ends at once.

        Raises:
            AbandonedError: Inside the block, wherever it is.
        """
        self._abandons = True
        try:
            if self.asked:
                raise AbandonedError
            yield
        finally:
            self._abandons = False

    def ask(self) -> None:
        """Ask the search to stop.

        Raises:
            KeyboardInterrupt: It was asked before.
            AbandonedError: What runs is to be abandoned.
        """
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        if self._abandons:
            self._abandons = False
            raise AbandonedError


@contextmanager
def stop_on_interrupt() -> Iterator[StopRequest]:
    """Turn the first Ctrl-C inside the block into a request.

    Outside the main thread, where no signal arrives, the request stays unasked.

    Raises:
        KeyboardInterrupt: At the second.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def handle(_number: int, _frame: FrameType | None) -> None:
        request.ask()

    previous = signal.signal(signal.SIGINT, handle)
    try:
        yield request
    finally:
        signal.signal(signal.SIGINT, previous)
