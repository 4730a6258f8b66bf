"""When each step of a program runs, and the bytes that are live and moved."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """One step in time, in seconds from the start of the run.

    Attributes:
        issued: When its turn comes in the order; its results take memory from then on.
        start: When it begins; later than `issued` where its lane or its operands are not ready.
        end: When it is done.
    """

    step: str
    lane: str
    issued: float
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Timeline:
    """A run of a program.

    Attributes:
        spans: One for each step, in the order of the program.
        peaks: Most bytes live at once, by memory.
        bytes_out: Bytes that cross the link outwards.
        bytes_back: Bytes that come back.
    """

    spans: tuple[Span, ...]
    peaks: dict[str, int]
    bytes_out: int = 0
    bytes_back: int = 0

    @property
    def seconds(self) -> float:
        """Time until the last step is done."""
        return max((span.end for span in self.spans), default=0.0)

    def busy_s(self, lane: str) -> float:
        """Return the time for which a lane is at work."""
        return sum(span.end - span.start for span in self.spans if span.lane == lane)

    def stalled_s(self, lane: str) -> float:
        """Return the time for which a lane is not at work."""
        return self.seconds - self.busy_s(lane)
