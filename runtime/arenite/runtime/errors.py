"""Errors of programs and sessions.

::

    AreniteError
    ├── ProgramError            the .arena file is damaged or of another version
    ├── UnwritableProgramError  a number of the program does not fit the .arena file
    ├── ResourceError           out of memory, or a buffer of the caller is too small
    ├── SessionBusyError        another thread is using the session
    ├── SessionClosedError      the session was closed
    ├── SessionForkedError      a session with threads is used after fork()
    ├── UnexpectedRuntimeError  a stock runtime is not one that plans were tested with
    ├── StageOrderError         a model of a system cannot run now
    ├── IndexRangeError         an index that a step reads lies beyond its axis
    ├── SizeRangeError          a size is outside of the range of its dimension
    │   └── StatesFullError     states hold as many rows as a run can begin with
    ├── StatesFileError         saved states are damaged, or of another program
    ├── DeadMemoryError         an output depends on uninitialised memory
    └── FeedError               an array does not fit its input
        ├── InputNameError      an input is missing, or there is none of that name
        ├── InputShapeError     the shape differs
        └── InputTypeError      the element type differs
"""

from collections.abc import Iterable

from arenite.planner import AreniteError
from arenite.planner.errors import FileError


class ProgramError(FileError):
    """The program file is damaged, hostile, or for another version."""


class UnwritableProgramError(FileError, ValueError):
    """A number does not fit its field of the program file, such as a stride beyond 32 bits."""


class ResourceError(AreniteError):
    """The system has no memory for a program, or a buffer of the caller is too small.

    Attributes:
        label: The program.
    """

    def __init__(self, label: str, reason: str) -> None:
        super().__init__(f"{label}: {reason}")
        self.label = label


class SessionBusyError(AreniteError):
    """Another thread is using the session."""

    def __init__(self) -> None:
        super().__init__(
            "another thread is using this session; open one session per thread, sessions of one "
            "file share its weights"
        )


class SessionClosedError(AreniteError):
    """A session is used after it was closed."""

    def __init__(self) -> None:
        super().__init__("the session is closed; open another")


class SessionForkedError(AreniteError):
    """A session with threads is used after fork()."""

    def __init__(self) -> None:
        super().__init__(
            "sessions with threads cannot be used after fork(); open the session in the child "
            "process"
        )


class UnexpectedRuntimeError(AreniteError):
    """A stock runtime is not one that plans were tested with, so it places its own tensors."""


class StageOrderError(AreniteError):
    """A model of a system would overwrite what another needs, or reads what is not there."""


class IndexRangeError(AreniteError, IndexError):
    """An index that a step reads lies beyond its axis, in a session with `guard=True`.

    Attributes:
        label: The program.
    """

    def __init__(self, label: str, reason: str) -> None:
        super().__init__(f"{label}: {reason}")
        self.label = label


class SizeRangeError(AreniteError, ValueError):
    """A size is outside of the range of its dimension, or there is no dimension of a name.

    Attributes:
        label: The program.
    """

    def __init__(self, label: str, reason: str) -> None:
        super().__init__(f"{label}: {reason}")
        self.label = label


class StatesFullError(SizeRangeError):
    """States hold as many rows as a run can begin with, or more: nothing has changed."""


class StatesFileError(FileError):
    """Saved states cannot be read, are damaged, or are those of another program."""


class DeadMemoryError(AreniteError):
    """An output depends on uninitialised memory: the plan or a kernel is wrong.

    Attributes:
        name: The output.
    """

    def __init__(self, name: str) -> None:
        super().__init__(
            f"output {name!r} depends on uninitialised memory: the plan or a kernel is wrong"
        )
        self.name = name


class FeedError(AreniteError):
    """An array does not fit its input.

    Attributes:
        name: The input.
    """

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


class InputNameError(FeedError):
    """An input is missing, or the model has none of that name."""

    def __init__(self, name: str, known: Iterable[str], *, missing: bool) -> None:
        what = "is missing" if missing else "is not an input of the model"
        super().__init__(name, f"input {name!r} {what}; inputs: {', '.join(map(repr, known))}")


class InputShapeError(FeedError):
    """An input has another shape."""

    def __init__(self, name: str, found: tuple[int, ...], expected: tuple[int, ...]) -> None:
        super().__init__(
            name, f"input {name!r} has the shape {_text(found)}; expected {_text(expected)}"
        )


class InputTypeError(FeedError):
    """An input has another element type."""

    def __init__(self, name: str, found: str, expected: str) -> None:
        super().__init__(
            name, f"input {name!r} is {found}; expected {expected}, convert it with astype"
        )


def _text(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "scalar"
