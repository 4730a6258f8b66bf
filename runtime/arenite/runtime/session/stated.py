"""Inputs, outputs, profile, memories and processor of a session."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arenite.runtime import _core
from arenite.runtime.errors import InputNameError, InputTypeError

Array: TypeAlias = NDArray[Any]


class SessionPort(NamedTuple):  # quicker to make than a frozen dataclass: each resize makes all
    """An input or output of the model.

    Attributes:
        name: Name in the model.
        dtype: Element type.
        shape: Shape in the model.
        view: View of the elements in the arena, with that shape.
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    view: Array


@dataclass(frozen=True, slots=True)
class SessionStage:
    """A model of a system.

    Attributes:
        name: Its name.
        turns: Its turns among those of the program.
        inputs: Its inputs among those of the session, those that no other model makes.
        outputs: Its outputs among those of the session.
    """

    name: str
    turns: range
    inputs: range
    outputs: range


def ports_of(stated: Iterable[tuple[str, Array]]) -> tuple[SessionPort, ...]:
    """Return ports from the core's names and views."""
    return tuple(SessionPort(name, view.dtype, view.shape, view) for name, view in stated)


def require_inputs(inputs: Mapping[str, Array], ports: Mapping[str, SessionPort]) -> None:
    """Check that there is an array for each input, and no other.

    Raises:
        InputNameError: An input is missing, or there is none of a name.
        TypeError: `inputs` is no mapping.
    """
    if not isinstance(inputs, Mapping):
        raise TypeError(f"inputs is a {type(inputs).__name__}; give a dict of arrays by name")
    if inputs.keys() != ports.keys():
        for name in inputs:
            if name not in ports:
                raise InputNameError(name, ports, missing=False)
        raise InputNameError(next(n for n in ports if n not in inputs), ports, missing=True)


def misfit(inputs: Mapping[str, Array], ports: Mapping[str, SessionPort]) -> SessionPort | None:
    """Return the first input whose array has another shape; None if all arrays can be fed.

    Args:
        inputs: An array for each input.
        ports: The inputs, by name.

    Raises:
        InputTypeError: An array has another element type.
    """
    for name, port in ports.items():
        array = np.asarray(inputs[name])
        if array.dtype != port.dtype:
            raise InputTypeError(name, str(array.dtype), str(port.dtype))
        if array.shape != port.shape:
            return port
    return None


@dataclass(frozen=True, slots=True)
class StepProfile:
    """Time and bytes of one step of the last run.

    Attributes:
        name: Name of the step.
        operator: Name of its operator.
        backend: Library of its kernel: `arenite` or `onnxruntime`.
        nanoseconds: Time in the last run.
        bytes: Bytes that it reads and writes, weights included.
    """

    name: str
    operator: str
    backend: str
    nanoseconds: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ArenaMemory:
    """A memory that a session uses.

    Attributes:
        name: Name of the memory.
        size: Size in bytes: the height of the plan in it.
        alignment: Alignment of its address in bytes, at least 64.
        writable: Whether steps may write to it; if not, the caller fills it.
        spilled: Whether tensors are only carried there and back: a temporary file, in the folder
            that `TMPDIR` names, or a buffer of the caller.
    """

    name: str
    size: int
    alignment: int
    writable: bool
    spilled: bool = False


@dataclass(frozen=True, slots=True)
class SessionMemory:
    """Bytes that a session holds while it is open.

    Not counted: threads and their stacks, of which a run takes at most 48 KiB each, the Python
    interpreter, what ONNX Runtime holds for the steps that it runs, and up to two copies of the
    outputs that `run` keeps to use them again.

    Attributes:
        memories: Memories of the plan, with the 128 B behind each that kernels may read; not
            the file that tensors are spilled to.
        program: The program, copied from the file.
        weights: All weights, mapped from the file.
        weights_resident: The weights that runs read from the file and that stay resident.
        decoded: Decoded constants, and the decoder.
        kernels: Packed weights and tables, and the steps themselves.
        other: Descriptions of tensors, inputs and outputs.
    """

    memories: int
    program: int
    weights: int
    weights_resident: int
    decoded: int
    kernels: int
    other: int

    @property
    def total(self) -> int:
        """Bytes that are resident: everything except weights that runs do not read."""
        return (
            self.memories
            + self.program
            + self.weights_resident
            + self.decoded
            + self.kernels
            + self.other
        )


@dataclass(frozen=True, slots=True)
class Tuned:
    """The processor that a program was tuned on.

    Attributes:
        processor: Its name.
        is_here: Whether it is this one: then kernels are those that were the quickest there.
            Otherwise a table chose them when the program was built.
    """

    processor: str
    is_here: bool


def processor_name() -> str:
    """Return its name as the core finds it, for which programs are tuned.

    It is the name that the system states for the first core or the board; it may be ambiguous.
    """
    return _core.processor_name()


def chrome_trace(name: str, steps: Iterable[StepProfile]) -> str:
    """Return the steps of a run in sequence, as JSON.

    Args:
        name: Name of the model.
        steps: Steps as returned by `Session.profile`.
    """
    events: list[dict[str, object]] = [_label("process_name", 0, name)]
    tracks: dict[str, int] = {}
    begun = 0
    for step in steps:
        if step.backend not in tracks:
            tracks[step.backend] = len(tracks) + 1
            events.append(_label("thread_name", tracks[step.backend], step.backend))
        events.append(
            {
                "name": step.name, "cat": step.operator, "ph": "X", "pid": 1,
                "tid": tracks[step.backend], "ts": begun / 1000, "dur": step.nanoseconds / 1000,
                "args": {"operator": step.operator, "bytes": step.bytes},
            }
        )  # fmt: skip
        begun += step.nanoseconds
    return json.dumps({"traceEvents": events}, separators=(",", ":"))


def _label(what: str, track: int, text: str) -> dict[str, object]:
    return {"name": what, "ph": "M", "pid": 1, "tid": track, "args": {"name": text}}
