"""What can go wrong with a session.

::

    AreniteError
    ├── ProgramError            the .arena file is not to be trusted
    ├── UnwritableProgramError  a number of the program does not fit the .arena file
    ├── ResourceError           the machine has no memory for it, or what is given is too small
    ├── SessionBusyError        another thread is using the session
    ├── SessionClosedError      the session was closed
    ├── SessionForkedError      the threads of the session are in the process that was forked
    ├── DeadMemoryError         an output depends on what no step wrote
    └── FeedError               what is fed does not fit the model
        ├── InputNameError      an input is missing, or there is none of that name
        ├── InputShapeError     the shape differs
        └── InputTypeError      the element type differs
"""

from collections.abc import Iterable

from arenite.planner.errors import AreniteError, FileError


class ProgramError(FileError):
    """The program file is damaged, hostile, or for another version."""


class UnwritableProgramError(FileError, ValueError):
    """The format of program files has no room for a number, such as a stride beyond 32 bits."""


class ResourceError(AreniteError):
    """The machine refuses what a program needs, or the memory given does not fit it.

    Attributes:
        label: The program.
    """

    def __init__(self, label: str, reason: str) -> None:
        super().__init__(f"{label}: {reason}")
        self.label = label


class SessionBusyError(AreniteError):
    """Another thread is using the session, which is one inference at a time."""

    def __init__(self) -> None:
        super().__init__(
            "another thread is using the session; give each thread a session of its own: those "
            "of one file share its weights"
        )


class SessionClosedError(AreniteError):
    """A session is used after it was closed."""

    def __init__(self) -> None:
        super().__init__("the session is closed; open another")


class SessionForkedError(AreniteError):
    """A session with threads is used in a child process, which has none of them."""

    def __init__(self) -> None:
        super().__init__(
            "the session has threads, and they stayed in the process that was forked; open "
            "sessions in the child, or with one thread where nothing moves beside it"
        )


class UnexpectedRuntimeError(AreniteError):
    """A stock runtime is not what a plan needs, so it places its tensors itself."""


class DeadMemoryError(AreniteError):
    """An output depends on memory that holds nothing: the plan, or a kernel, is wrong.

    Attributes:
        name: The output.
    """

    def __init__(self, name: str) -> None:
        super().__init__(
            f"output {name!r} depends on what dead memory holds: a step reads what none wrote"
        )
        self.name = name


class FeedError(AreniteError):
    """What is fed does not fit the model.

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
