"""What runs a training step: our runtime, or ONNX Runtime where ours does not take it."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.building import build_program
from arenite.pipeline.making.programs import SUFFIX
from arenite.planner.errors import MissingDataError, ModelError, ModelFormatError, PlanError
from arenite.runtime.session import Session
from arenite.training.runner import StepRunner

Array: TypeAlias = NDArray[Any]


class Engine(Protocol):
    """Runs a step and keeps its states.

    Attributes:
        name: `arenite` or `onnxruntime`.
        arena_bytes: Bytes of the arena; None where there is none.
        note: Why it is not our runtime; empty where it is.
        inputs: Type and shape of the inputs besides the states, by name.
    """

    name: str
    arena_bytes: int | None
    note: str
    inputs: dict[str, tuple[np.dtype[Any], tuple[int, ...]]]

    @property
    def states(self) -> dict[str, Array]:
        """The states as they are now; writing to an array changes the state."""
        ...

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Run once, and return the outputs besides the states."""
        ...


class _Ours:
    """Our runtime."""

    def __init__(self, session: Session) -> None:
        self.name = "arenite"
        self.note = ""
        self.arena_bytes: int | None = session.arena_bytes
        self.inputs = {port.name: (port.dtype, port.shape) for port in session.inputs}
        self.states = session.states
        self.run = session.run


class _Stock:
    """ONNX Runtime."""

    def __init__(self, runner: StepRunner, note: str) -> None:
        self.name = "onnxruntime"
        self.note = note
        self.arena_bytes: int | None = None
        self.inputs = runner.inputs
        self.run = runner.run
        self._runner = runner

    @property
    def states(self) -> dict[str, Array]:
        """The states as they are now."""
        return self._runner.states


@contextmanager
def engine_for(model: Path, threads: int) -> Iterator[Engine]:
    """Give what runs a training step while the block runs.

    Raises:
        ModelError: It cannot be read, or is no training step.
        MissingDependencyError: A package that it takes is absent.
        ProgramError: It is a program file that cannot be read.
    """
    if model.suffix == SUFFIX:
        with Session(model, threads=threads) as session:
            if not session.states:
                raise ModelFormatError(
                    "it has no states, so there is nothing to train", path=model
                )
            yield _Ours(session)
        return
    stock = StepRunner(model, threads=threads)  # refuses what is no step, and loads nothing yet
    with tempfile.TemporaryDirectory(prefix="arenite-step-") as folder:
        program = Path(folder) / f"step{SUFFIX}"
        try:
            build_program(model, program, reading=Reading())
        except MissingDataError:
            raise
        except (ModelError, PlanError) as reason:
            yield _Stock(stock, f"ONNX Runtime runs it: {reason}")
            return
        del stock
        with Session(program, threads=threads) as session:
            yield _Ours(session)
