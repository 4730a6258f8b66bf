"""Open a program, run it, and close it."""

import os
import sys
import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from arenite.planner.sizes import Dimension
from arenite.runtime import _core
from arenite.runtime.errors import (
    IndexRangeError,
    InputShapeError,
    InputTypeError,
    ProgramError,
    ResourceError,
    SessionBusyError,
    SessionClosedError,
    SessionForkedError,
    SizeRangeError,
    StageOrderError,
    StatesFullError,
)
from arenite.runtime.session.closing import Closing
from arenite.runtime.session.segments import segments_of
from arenite.runtime.session.stated import (
    ArenaMemory,
    Array,
    SessionMemory,
    SessionPort,
    SessionStage,
    StepProfile,
    Tuned,
    misfit,
    ports_of,
    require_inputs,
)
from arenite.runtime.session.states import States

MAX_THREADS = 256
"""Most threads of a session: more than any machine's worth, few enough to start."""


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """Options of a session.

    Attributes:
        threads: Number of threads that run kernels.
        poison: Byte to fill dead memory with; None to leave it alone.
        guard: Whether to protect the pages around each memory, and to check indices.
        buffers: Memory supplied by the caller, by the name of the memory.
        check: Whether to compare the bytes of the file with their checksums.
    """

    threads: int = 1
    poison: int | None = None
    guard: bool = False
    buffers: Mapping[str, NDArray[Any]] | None = None
    check: bool = False

    def __post_init__(self) -> None:
        if not _is_whole(self.threads):
            raise TypeError(f"threads is {self.threads!r}; give an integer, 1 to {MAX_THREADS}")
        if not 1 <= self.threads <= MAX_THREADS:
            raise ValueError(f"threads is {self.threads}; give 1 to {MAX_THREADS}")
        if self.poison is not None and not (_is_whole(self.poison) and 0 <= self.poison < 256):
            raise ValueError(f"poison {self.poison!r} is not a byte, 0 to 255")


def _is_whole(value: object) -> bool:
    """Tell whether a value is a whole number; in Python, a truth value is one too."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


class _Turn:
    """A lock that one thread can hold; others are refused at once instead of waiting."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise SessionBusyError

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class _Results:
    """Copies of outputs that are made where earlier ones lay, once nobody has these any longer.

    The pages of new arrays cost more than the copies themselves. Two sets are kept: callers have
    the results of a run until those of the next are there.
    """

    __slots__ = ("_kept",)

    def __init__(self, count: int) -> None:
        self._kept: list[deque[Array]] = [deque(maxlen=2) for _ in range(count)]

    def copy(self, index: int, port: SessionPort, native: _core.Session) -> Array:
        """Return a copy of an output, in an array that nobody else refers to."""
        kept, view = self._kept[index], port.view
        for place in range(len(kept)):
            if _references(kept, place) == _UNSHARED and _is_plain(kept[place], view):
                made = kept[place]
                break
        else:
            made = np.empty(view.shape, view.dtype)
            kept.append(made)  # which gives up the older one
        native.fetch(index, made)
        return made


def _references(kept: deque[Any], place: int) -> int:
    return sys.getrefcount(kept[place])


_UNSHARED = _references(deque([object()]), 0)
"""References to an object that only the collection has; views and buffers count as references."""


def _is_plain(array: Array, view: Array) -> bool:
    """Tell whether a caller left the array as it was made: its shape and type can be assigned."""
    flags = array.flags
    return (
        array.shape == view.shape
        and array.dtype == view.dtype
        and bool(flags.c_contiguous and flags.writeable and flags.owndata)
    )


class Session(Closing):
    """A model that can be run, one inference at a time.

    Memory is laid out and kernels are prepared once; a run allocates nothing in the core.
    Sessions of one `.arena` file share its weights, as the file is mapped: replace such a file by
    renaming another to its name, as `arenite build` does. Written over in place it changes the
    weights of open sessions, but nothing that was checked; cut short, as by `cp` of a shorter file
    over it, it ends the process with SIGBUS. A session opened with `copy=True` is not affected.
    Use one session a thread: a call while another thread's goes on raises `SessionBusyError`.

    Args:
        path: An `.arena` file.
        threads: Number of threads that run kernels, at most 256. More than 1 helps large models on
            an otherwise idle machine; a child process that is forked later cannot use the session.
        poison: Fill memory with this byte once it is dead. Outputs that differ between two
            values show a wrong plan; a single run may not, as kernels that clamp turn the NaN
            of 255 into a number.
        guard: Protect the pages around each memory from access, and raise an error for an index
            beyond its axis, which is taken for the nearest one otherwise.
        buffers: Memory to use, by the name of the memory: arrays of bytes with its alignment,
            and 128 B larger than its size. The library allocates the others.
        copy: Read the file into memory instead of mapping it: its weights are then shared with
            no other session, and later changes of the file have no effect.
        check: Read the whole file once and compare it with its checksums. Otherwise a damaged
            program is refused only where it would do harm, and damaged weights are not noticed.

    Raises:
        ProgramError: The file cannot be read or is not to be trusted.
        ResourceError: There is no memory for it, or a buffer does not fit.
        MissingDependencyError: A step needs ONNX Runtime, which is absent.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        threads: int = 1,
        poison: int | None = None,
        guard: bool = False,
        buffers: Mapping[str, Array] | None = None,
        copy: bool = False,
        check: bool = False,
    ) -> None:
        path = Path(path)
        options = SessionOptions(threads, poison, guard, buffers, check)
        if copy:
            try:
                held = path.read_bytes()
            except OSError as error:
                raise ProgramError(f"cannot be read: {error.strerror}", path=path) from error
            self._open_pieces((held,), str(path), options)
            return
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise ProgramError(f"cannot be read: {error.strerror}", path=path) from error
        try:
            self._open(descriptor, str(path), options)
        finally:
            os.close(descriptor)

    def _open(self, descriptor: int, label: str, options: SessionOptions) -> None:
        self._turn = _Turn()
        # Keep these alive for as long as the core uses them.
        self._buffers = dict(options.buffers or {})
        try:
            self._open_core: _core.Session | None = _core.Session(
                descriptor,
                options.threads,
                options.poison,
                options.guard,
                self._buffers,
                options.check,
            )
        except _core.ProgramError as error:
            raise ProgramError(str(error), path=label) from error
        except _core.ResourceError as error:
            raise ResourceError(label, str(error)) from error
        has_threads = options.threads > 1 or self._native.has_lane
        self._process = os.getpid() if has_threads else None
        self._label = label
        self._dimensions = tuple(Dimension(*each) for each in self._native.dimensions())
        counted = [each for each in self._dimensions if each.counted_by]
        self._counted = {each.name: each.counted_by for each in counted}
        self._grows = any(each.grows for each in self._dimensions)
        self._find_ports()
        self._results = _Results(len(self._outputs))
        self._threads = options.threads
        self._stages = tuple(
            SessionStage(name, *(range(*span) for span in spans))
            for name, *spans in self._native.stages()
        )
        self._find_turns()

    def _find_turns(self) -> None:
        self._num_turns = self._native.num_turns
        self._segments = segments_of(self._native, self._label, self._threads)
        counts = self._num_turns, len(self._inputs), len(self._outputs)
        self._parts = self._stages or (SessionStage(self._label, *map(range, counts)),)

    def _find_ports(self) -> None:
        self._inputs = ports_of(self._native.inputs())
        self._inputs_by_name = {port.name: port for port in self._inputs}
        self._outputs = ports_of(self._native.outputs())

    @classmethod
    def of_pieces(
        cls,
        pieces: Sequence[bytes | memoryview],
        label: str,
        *,
        threads: int = 1,
        poison: int | None = None,
        guard: bool = False,
        buffers: Mapping[str, Array] | None = None,
    ) -> Self:
        """Return the session of an `.arena` file that is not on disk.

        Args:
            pieces: The bytes of the file.
            label: Name for messages.
            threads: As in `Session`.
            poison: As in `Session`.
            guard: As in `Session`.
            buffers: As in `Session`.
        """
        session = cls.__new__(cls)
        options = SessionOptions(threads, poison, guard, buffers)
        session._open_pieces(pieces, label, options)  # noqa: SLF001  # its own
        return session

    def _open_pieces(
        self, pieces: Iterable[bytes | memoryview], label: str, options: SessionOptions
    ) -> None:
        descriptor = os.memfd_create(label.encode(errors="replace")[:200].decode(errors="replace"))
        try:
            with os.fdopen(os.dup(descriptor), "wb") as stream:
                stream.writelines(pieces)
            self._open(descriptor, label, options)
        finally:
            os.close(descriptor)

    @property
    def inputs(self) -> tuple[SessionPort, ...]:
        """The model's inputs; write to their views to feed without a copy.

        Their shapes are those of the present `sizes`: take them again after these have changed.
        """
        return self._inputs

    @property
    def outputs(self) -> tuple[SessionPort, ...]:
        """The model's outputs; their views hold the results of the last run until the next."""
        return self._outputs

    @property
    def stages(self) -> tuple[SessionStage, ...]:
        """The models of a system, in the order of their turns; none of a single model."""
        return self._stages

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """The dimensions of a program for a range of sizes; none if all shapes are fixed."""
        return self._dimensions

    @property
    def sizes(self) -> dict[str, int]:
        """The value of each dimension: the highest, until a run or `resize` sets others.

        A dimension that a step counts has the value of the last run. One that grows has the rows
        that states held at its start, 0 before the first.
        """
        names = [each.name for each in self._dimensions]
        return dict(zip(names, self._native.sizes(), strict=True))

    def resize(self, sizes: Mapping[str, int] | None = None, **by_name: int) -> None:
        """Set dimensions; those that are not named keep their values.

        A dimension that grows has the rows that states hold. Set, it is how many they hold from
        then on: rows that no run has made have the elements that are there. After a run of a
        program that has one, resize before you write the inputs of the next.

        `run` does so itself, by the shapes of its inputs. Ports and views from before, and what
        inputs and outputs hold, are void; states whose shapes change are reset. Nothing is
        allocated in the core.

        Args:
            sizes: Values by the names of dimensions.
            by_name: The same, for names that Python can spell.

        Raises:
            SizeRangeError: A value is outside of its range, or there is no such dimension; nothing
                has changed.
            StatesFullError: States hold more rows than a run can begin with; nothing has changed.
            ProgramError: The file does not fit these sizes; nothing has changed.
            TypeError: A value is no integer.
            SessionBusyError: Another thread is using the session.
            SessionForkedError: It has threads, and this is a child of the process that opened it.
        """
        self._check_process()
        wanted = self.sizes
        if self._grows:
            wanted |= self.states.lengths
        for name, value in {**(sizes or {}), **by_name}.items():
            if name in self._counted:
                raise SizeRangeError(
                    self._label,
                    f"dimension {name!r} is counted by step {self._counted[name]!r} in each run; "
                    "it cannot be set",
                )
            if name not in wanted:
                known = ", ".join(map(repr, wanted)) or "none"
                raise SizeRangeError(
                    self._label, f"there is no dimension {name!r}; dimensions: {known}"
                )
            if not _is_whole(value):
                raise TypeError(f"dimension {name!r} is {value!r}; give an integer")
            wanted[name] = max(min(int(value), sys.maxsize), -1)  # what the core can refuse
        with self._turn:
            self._resize(list(wanted.values()))

    def _resize(self, sizes: Sequence[int]) -> None:
        try:
            self._native.resize(sizes)
        except _core.StatesFullError as error:
            raise StatesFullError(self._label, str(error)) from error
        except _core.SizeRangeError as error:
            raise SizeRangeError(self._label, str(error)) from error
        except _core.ProgramError as error:
            raise ProgramError(str(error), path=self._label) from error
        self._find_ports()
        if self._native.num_turns != self._num_turns:  # those of a subrange
            self._find_turns()

    def _fit_to(self, inputs: Mapping[str, Array], port: SessionPort | None) -> None:
        """Set the sizes that the shapes of the inputs and the rows of states say.

        Args:
            inputs: An array for each input; the others have the shapes that they have now.
            port: One that has another shape now, if that is known.
        """
        if port is not None and not self._dimensions:
            raise InputShapeError(port.name, np.shape(inputs[port.name]), port.shape)
        shapes = [np.shape(inputs.get(each.name, each.view)) for each in self._inputs]
        try:
            sizes = self._native.sizes_of(shapes)
        except _core.SizeRangeError as error:
            raise SizeRangeError(self._label, str(error)) from error
        for found, each in zip(shapes, self._inputs, strict=True):
            if len(found) != len(each.shape):
                raise InputShapeError(each.name, found, each.shape)
        before = [
            rows if each.grows else size
            for each, rows, size in zip(
                self._dimensions, self._native.grown(), self._native.sizes(), strict=True
            )
        ]
        self._resize(sizes)
        try:
            other = misfit(inputs, {name: self._inputs_by_name[name] for name in inputs})
            if other is not None:
                raise InputShapeError(other.name, np.shape(inputs[other.name]), other.shape)
        except (InputShapeError, InputTypeError):
            self._resize(before)
            raise

    @property
    def states(self) -> States:
        """The states, by name, to read, change, reset, truncate, save and load."""
        return States(self._native, self._dimensions, self._label, self._turn)

    @property
    def arena_bytes(self) -> int:
        """Bytes of the arena: the height of the plan, summed over its memories.

        Spilled memories are not among them.
        """
        return sum(memory.size for memory in self.memories if not memory.spilled)

    @property
    def memories(self) -> tuple[ArenaMemory, ...]:
        """The memories that the plan is laid over: one, in the ordinary case."""
        return tuple(
            ArenaMemory(name, size, alignment, writable, spilled)
            for name, size, alignment, writable, spilled, _ in self._native.memories()
        )

    def memory(self) -> SessionMemory:
        """Return exactly how many bytes the session holds, by part."""
        held = self._native.memory()
        return SessionMemory(*(getattr(held, each.name) for each in fields(SessionMemory)))

    @property
    def tuned(self) -> Tuned | None:
        """The processor that the program was tuned on; None if it was on none."""
        stated = self._native.tuned_on()
        return None if stated is None else Tuned(*stated)

    def backends(self) -> tuple[str, ...]:
        """Return the library of the kernel of each step: `arenite` or `onnxruntime`."""
        return tuple(self._native.backends())

    def flatbuffer(self) -> bytes:
        """Return the program as its file has it, of the schema `program.fbs`."""
        return self._native.program()

    def run(self, inputs: Mapping[str, Array], *, copy: bool = True) -> dict[str, Array]:
        """Run the model once.

        Args:
            inputs: An array for each input, of its shape and element type; it is read during the
                run, and must not change until then. In a program for a range of sizes the shapes
                set the sizes.
            copy: Return copies, which later runs do not change: their memory is used again once
                nothing refers to them. Otherwise views that the next run overwrites, or of several
                models the next one.

        Raises:
            InputNameError: An input is missing, or there is none of a name.
            InputShapeError: An array has another shape.
            InputTypeError: An array has another element type.
            SizeRangeError: A length is outside of the range of its dimension.
            StatesFullError: States hold more rows than a run can begin with, and stay so.
            IndexRangeError: The session is guarded, and a step reads an index beyond its axis.
            TypeError: `inputs` is no mapping.
            SessionBusyError: Another thread is using the session.
            SessionClosedError: The session is closed.
            SessionForkedError: It has threads, and this is a child of the process that opened it.
        """
        native = self._native
        self._check_process()
        require_inputs(inputs, self._inputs_by_name)
        with self._turn:
            port = None if self._grows else misfit(inputs, self._inputs_by_name)
            if port is not None or self._grows:
                self._fit_to(inputs, port)
            given = [np.ascontiguousarray(inputs[port.name]) for port in self._inputs]
            found: dict[str, Array] = {}
            for stage in self._parts:
                for index in stage.inputs:
                    native.lend(index, given[index])
                self._run_turns(stage.turns)
                for index in stage.outputs:
                    port = self._outputs[index]
                    view = port.view
                    found[port.name] = self._results.copy(index, port, native) if copy else view
            return found

    def run_turns(self, turns: range) -> None:
        """Run some turns on the contents of memory, such as those of a stage, or a part of them.

        Args:
            turns: Turns one after another.

        Raises:
            SessionBusyError: Another thread is using the session.
            SessionForkedError: It has threads, and this is a child of the process that opened it.
        """
        self._check_process()
        with self._turn:
            self._run_turns(turns)

    def fit_to(self, inputs: Mapping[str, Array]) -> None:
        """Set the sizes that the shapes of some inputs say, before these are written.

        Raises:
            InputShapeError: An array has another shape than any size gives it.
            InputTypeError: An array has another element type.
            SizeRangeError: A length is outside of the range of its dimension; nothing has changed.
            SessionBusyError: Another thread is using the session.
        """
        self._check_process()
        with self._turn:
            port = misfit(inputs, {name: self._inputs_by_name[name] for name in inputs})
            if port is not None:
                self._fit_to(inputs, port)

    def guard(self) -> _core.StageGuard:
        """Return what tells which stages may run now. It is for one thread at a time."""
        return _core.StageGuard(self._native)

    def invoke(self) -> None:
        """Run the model on the contents of the input views.

        Raises:
            StageOrderError: These are several models, which take their inputs one after another.
            SessionBusyError: Another thread is using the session.
            SessionForkedError: It has threads, and this is a child of the process that opened it.
        """
        self._check_process()
        if self._stages:
            raise StageOrderError(
                "inputs of several models lie in the same bytes; run them by System"
            )
        with self._turn:
            self._run_steps()

    def reset(self) -> None:
        """Reset the states to their initial values.

        Raises:
            SessionBusyError: Another thread is using the session.
        """
        with self._turn:
            self._native.reset()

    def profile(self) -> tuple[StepProfile, ...]:
        """Run the model once on the contents of its inputs, and return the profile of each step.

        Raises:
            SessionBusyError: Another thread is using the session.
            SessionForkedError: It has threads, and this is a child of the process that opened it.
        """
        self._check_process()
        with self._turn:
            self._native.set_profiling(True)
            try:
                self._run_steps()
            finally:
                self._native.set_profiling(False)
            return tuple(StepProfile(*step) for step in self._native.profile())

    @property
    def _native(self) -> _core.Session:
        if self._open_core is None:
            raise SessionClosedError
        return self._open_core

    def close(self) -> None:
        """Release the memory; views must no longer be used. Closing twice is harmless.

        Raises:
            SessionBusyError: Another thread is using the session.
        """
        with self._turn:
            self._segments = ()
            self._inputs = self._outputs = ()
            self._inputs_by_name = {}
            self._results = _Results(0)
            self._open_core = None

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or pickled.

        Raises:
            TypeError: Always.
        """
        raise TypeError("a Session cannot be copied or pickled; open its file again")

    def _run_steps(self) -> None:
        self._run_turns(range(self._native.num_turns))

    def _run_turns(self, turns: range) -> None:
        if self._open_core is None:
            raise SessionClosedError
        try:
            try:
                if self._grows and turns.start == 0:
                    self._begin()
                for segment in self._segments:
                    first = max(segment.turns.start, turns.start)
                    last = min(segment.turns.stop, turns.stop)
                    if first < last or not segment.turns:
                        segment.run(first, last)
                if self._grows and turns.stop == self._native.num_turns:
                    self._native.end()
            finally:  # a step of another runtime may have been the last, or have failed
                if self._open_core is not None:
                    self._open_core.settle()
        except _core.ResourceError as error:
            raise ResourceError(self._label, str(error)) from error
        except _core.RangeError as error:
            raise IndexRangeError(self._label, str(error)) from error
        except _core.ProgramError as error:
            raise ProgramError(str(error), path=self._label) from error
        finally:
            if self._counted and self._open_core is not None:
                self._find_ports()

    def _begin(self) -> None:
        try:
            self._native.begin()
        except _core.SizeRangeError as error:
            raise SizeRangeError(self._label, str(error)) from error

    def _check_process(self) -> None:
        if self._process is not None and self._process != os.getpid():
            raise SessionForkedError
