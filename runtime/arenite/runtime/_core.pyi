"""The native core: loads a program file and runs it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

class ProgramError(RuntimeError):
    """The file is not a program, is damaged, or makes impossible demands."""

class ResourceError(RuntimeError):
    """The operating system refuses memory or a file."""

class ForkedError(RuntimeError):
    """A session with threads is used in a child process."""

class RangeError(RuntimeError):
    """An index that a step reads lies beyond its axis."""

class SizeRangeError(RuntimeError):
    """A size is outside of the range of its dimension."""

class StageError(RuntimeError):
    """A stage would overwrite what another needs, or reads what is not there."""

class ExternalStep:
    """A turn of a step that another runtime runs."""

    @property
    def turn(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def model(self) -> int: ...
    @property
    def input_names(self) -> list[str]: ...
    @property
    def inputs(self) -> list[int]: ...
    @property
    def output_names(self) -> list[str]: ...
    @property
    def outputs(self) -> list[int]: ...

class SessionMemory:
    """Bytes that a session holds."""

    @property
    def memories(self) -> int: ...
    @property
    def program(self) -> int: ...
    @property
    def weights(self) -> int: ...
    @property
    def weights_resident(self) -> int: ...
    @property
    def decoded(self) -> int: ...
    @property
    def kernels(self) -> int: ...
    @property
    def other(self) -> int: ...

class Session:
    """A program ready to run."""

    def __init__(
        self,
        descriptor: int,
        threads: int,
        poison: int | None,
        guard: bool,
        buffers: Mapping[str, NDArray[np.uint8]],
        check: bool,
    ) -> None: ...
    def run(self, first: int, last: int) -> None: ...
    def settle(self) -> None: ...
    def lend(self, input: int, array: NDArray[Any]) -> None: ...  # noqa: A002  # as bound
    def fetch(self, output: int, array: NDArray[Any]) -> None: ...
    def reset(self) -> None: ...
    def dimensions(self) -> list[tuple[str, int, int, int, str]]:
        """Return name, lowest value, highest value and step of each."""
    def sizes(self) -> list[int]:
        """Return the value of each dimension."""
    def sizes_of(self, shapes: Sequence[Sequence[int]]) -> list[int]:
        """Return the value of each dimension where inputs have these shapes."""
    def resize(self, sizes: Sequence[int]) -> None: ...
    def view(self, tensor: int) -> NDArray[Any]: ...
    def inputs(self) -> Sequence[tuple[str, int, Sequence[int]]]: ...
    def outputs(self) -> Sequence[tuple[str, int, Sequence[int]]]: ...
    def states(self) -> list[tuple[str, int]]: ...
    def external_steps(self) -> list[ExternalStep]: ...
    def stages(self) -> list[tuple[str, tuple[int, int], tuple[int, int], tuple[int, int]]]:
        """Return name, turns, inputs and outputs of each stage; none of a single model."""
    def backends(self) -> list[str]: ...
    def tuned_on(self) -> tuple[str, bool] | None:
        """Return the processor whose tuned kernels are stated, and whether it is this one."""
    def set_profiling(self, wanted: bool) -> None: ...
    def note_nanoseconds(self, turn: int, value: int) -> None: ...
    def profile(self) -> list[tuple[str, str, str, int, int]]: ...
    def program(self) -> bytes: ...
    @property
    def num_steps(self) -> int: ...
    @property
    def num_turns(self) -> int:
        """Return how many turns a run has: as many as steps, unless some run by rows."""
    @property
    def has_lane(self) -> bool:
        """Tell whether a thread of its own moves tensors beside the computation."""
    def memories(self) -> list[tuple[str, int, int, bool, bool, int]]:
        """Return name, size, alignment, whether writable, whether spilled, address of each."""
    def memory(self) -> SessionMemory: ...

class StageGuard:
    """Which stages of a system may run now. Not for several threads at once."""

    def __init__(self, session: Session) -> None: ...
    def begin(self, stage: int) -> None: ...
    def end(self, stage: int) -> None: ...
    def skip(self, stage: int) -> None: ...
    def finish(self) -> None: ...

def supported() -> list[str]:
    """Return the names of the operators that have a kernel."""

def processor_name() -> str:
    """Return the name of this processor."""
