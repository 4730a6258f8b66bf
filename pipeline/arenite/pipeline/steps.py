"""Training steps in our runtime, or in ONNX Runtime where ours does not support them."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from numpy.typing import NDArray

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.building import build_program
from arenite.pipeline.making.programs import SUFFIX
from arenite.planner.errors import MissingDataError, ModelError, ModelFormatError, PlanError
from arenite.runtime import Session
from arenite.training import StepEngine, StepInputs, StepRunner

Array: TypeAlias = NDArray[Any]


@dataclass(frozen=True, slots=True)
class OpenStep:
    """A training step in an engine, which keeps its states.

    Attributes:
        engine: Session of our runtime, or a runner of ONNX Runtime.
        name: `arenite` or `onnxruntime`.
        inputs: Type and shape of the inputs besides the states, by name.
        arena_bytes: Bytes of the arena; None in ONNX Runtime.
        note: Why our runtime does not run it; empty where it does.
    """

    engine: Session | StepEngine
    name: str
    inputs: StepInputs
    arena_bytes: int | None = None
    note: str = ""

    @property
    def states(self) -> Mapping[str, Array]:
        """The current states; writing to an array changes the state."""
        return self.engine.states

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Run once, and return the outputs besides the states."""
        return self.engine.run(feeds)


@contextmanager
def open_step(model: Path, threads: int = 1) -> Iterator[OpenStep]:
    """Open a training step, .onnx or .arena, while the block runs.

    Raises:
        ModelError: It cannot be read, or is no training step.
        MissingDependencyError: A package that it takes is absent.
        ProgramError: It is a program file that cannot be read.
    """
    if model.suffix == SUFFIX:
        with Session(model, threads=threads) as session:
            if not session.states:
                raise ModelFormatError(
                    "the model has no states to train; `arenite train` makes a step that has",
                    path=model,
                )
            yield _ours(session)
        return
    stock = StepRunner(model, threads=threads)  # refuses a model that is no step
    with tempfile.TemporaryDirectory(prefix="arenite-step-") as folder:
        program = Path(folder) / f"step{SUFFIX}"
        try:
            build_program(model, program, reading=Reading())
        except MissingDataError:
            raise
        except (ModelError, PlanError) as reason:
            yield OpenStep(
                stock, "onnxruntime", stock.inputs, note=f"ONNX Runtime runs it: {reason}"
            )
            return
        del stock
        with Session(program, threads=threads) as session:
            yield _ours(session)


def _ours(session: Session) -> OpenStep:
    inputs = {port.name: (port.dtype, port.shape) for port in session.inputs}
    return OpenStep(session, "arenite", inputs, session.arena_bytes)
