"""Budgets of bytes, and the time of steps: multiply-adds, memory and links."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from arenite.planner.operators.operator import Operator
from arenite.planner.programs.program import Program, Step
from arenite.planner.units import parse_size


@dataclass(frozen=True, slots=True)
class Budget:
    """Bytes, a percentage of the peak without a policy, or the fewest possible.

    Attributes:
        amount: Bytes, or a percentage if `is_percent`; None for the fewest possible.
        is_percent: Whether the amount is a percentage.
    """

    amount: float | None = None
    is_percent: bool = False

    def __post_init__(self) -> None:
        if self.amount is None:
            return
        if not self.amount > 0:
            raise ValueError(f"a budget of {self.amount} is not above 0")
        if self.amount >= 2**63:
            raise ValueError(f"a budget of {self.amount} is above 2^63 - 1")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a budget such as `4MiB` or `75%`.

        Raises:
            ValueError: It is neither a size nor a percentage above 0.
        """
        if not text.endswith("%"):
            return cls(parse_size(text))
        try:
            return cls(float(text[:-1]), is_percent=True)
        except ValueError as error:
            raise ValueError(f"{text!r} is not a budget; write 4MiB or 75%") from error

    def __str__(self) -> str:
        """Return a text that `parse` reads, or `least`."""
        if self.amount is None:
            return "least"
        return f"{self.amount:.9g}%" if self.is_percent else str(int(self.amount))

    def bytes_of(self, peak: int) -> int | None:
        """Return the budget in bytes for a program with this peak; None for the least."""
        if self.amount is None:
            return None
        return int(self.amount / 100 * peak) if self.is_percent else int(self.amount)


LEAST = Budget()
"""The fewest bytes that the policy reaches."""


@dataclass(frozen=True, slots=True)
class Link:
    """The link over which tensors are spilled to another memory and fetched back.

    Attributes:
        out: Bytes a second to the other memory.
        back: Bytes a second from it.
        latency_s: Seconds before the first byte of each transfer.
        duplex: Whether it can transfer both ways at once.

    Raises:
        ValueError: A speed is not above 0, or the latency is below it.
    """

    out: float
    back: float
    latency_s: float = 0.0
    duplex: bool = True

    def __post_init__(self) -> None:
        if self.out <= 0 or self.back <= 0 or self.latency_s < 0:
            raise ValueError(f"{self}: speeds must be above 0, the latency not below")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a speed such as `12GB/s`, or those out and back such as `24.5MB/s:45.5MB/s`.

        Raises:
            ValueError: It is neither.
        """
        speeds = [_speed(part, text) for part in text.split(":")]
        if len(speeds) > 2:
            raise ValueError(f"{text!r} has more than two speeds; write 12GB/s or OUT:BACK")
        return cls(speeds[0], speeds[-1])

    @property
    def lanes(self) -> tuple[str, str]:
        """Names of the lanes out and back."""
        return ("link out", "link back") if self.duplex else ("link", "link")

    def out_s(self, size: int) -> float:
        """Return the seconds of a transfer out."""
        return self.latency_s + size / self.out

    def back_s(self, size: int) -> float:
        """Return the seconds of a transfer back."""
        return self.latency_s + size / self.back


@dataclass(frozen=True, slots=True)
class Costs:
    """Speeds of a machine, measured or stated.

    Attributes:
        multiply_adds_per_s: Multiply-adds a second of operators that are not in `by_operator`.
        bytes_per_s: Bytes a second that steps read and write.
        link: Link to the memory that tensors are spilled to.
        by_operator: Multiply-adds a second of some operators, by the names of their classes.
        step_s: Seconds that every step takes besides.

    Raises:
        ValueError: A speed is not above 0.
    """

    multiply_adds_per_s: float
    bytes_per_s: float
    link: Link
    by_operator: Mapping[str, float] = field(default_factory=dict)
    step_s: float = 0.0

    def __post_init__(self) -> None:
        speeds = (self.multiply_adds_per_s, self.bytes_per_s, *self.by_operator.values())
        if min(speeds) <= 0 or self.step_s < 0:
            raise ValueError(f"{self}: speeds must be above 0, the time of a step not below")

    def speed_of(self, operator: Operator) -> float:
        """Return the multiply-adds a second of an operator."""
        return self.by_operator.get(operator.computes_as.__name__, self.multiply_adds_per_s)

    def seconds(self, program: Program, step: Step) -> float:
        """Return the seconds of a step that does not have to wait.

        A step computes and reads memory at once, so the longer of the two counts.
        """
        operands = program.operands(step)
        out, back = step.operator.bytes_moved(operands)
        if out or back:
            return (self.link.out_s(out) if out else 0) + (self.link.back_s(back) if back else 0)
        touched = step.operator.bytes_touched(operands)
        multiply_adds = step.operator.multiply_adds(operands)
        if not touched and not multiply_adds:
            return 0.0
        speed = self.speed_of(step.operator)
        return self.step_s + max(multiply_adds / speed, touched / self.bytes_per_s)


PCIE = Costs(2.5e12, 500e9, Link(12e9, 12e9))
"""A desktop GPU of the papers: 5 TFLOP/s, 500 GB/s, PCI Express at 12 GB/s."""

SD_CARD = Costs(10e9, 4e9, Link(24.5e6, 45.5e6))
"""A small board with an SD card: 20 GFLOP/s, 4 GB/s, 24.5 MB/s out and 45.5 MB/s back."""

PRESETS: Mapping[str, Costs] = {"pcie": PCIE, "sd": SD_CARD}
"""Stated machines by name."""


def _speed(part: str, text: str) -> float:
    match = re.fullmatch(r"\s*(.*?)(?:/s)?\s*", part)
    try:
        speed = float(parse_size(match[1])) if match else 0.0
    except ValueError:
        speed = 0.0
    if speed <= 0:
        raise ValueError(f"{text!r} is not a speed; write 12GB/s or OUT:BACK")
    return speed
