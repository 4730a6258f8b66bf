"""Runs whose dead memory is filled, so that a wrong plan shows."""

from collections.abc import Mapping
from pathlib import Path

from arenite.planner import Array
from arenite.runtime import DeadMemoryError, Session

NAN, LARGE = 0xFF, 0x4B
"""Bytes of NaN, and of a large number: a kernel that clamps turns NaN into what looks right."""


def check_again(
    program: Path, threads: int, inputs: Mapping[str, Array], outputs: Mapping[str, Array]
) -> None:
    """Run once more on dead memory of large numbers, and compare with a run on NaN.

    Raises:
        DeadMemoryError: An output differs.
    """
    with Session(program, threads=threads, poison=LARGE) as session:
        again = session.run(inputs)
    for name, array in outputs.items():
        if array.tobytes() != again[name].tobytes():
            raise DeadMemoryError(name)
