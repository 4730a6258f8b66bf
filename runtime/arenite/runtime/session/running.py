"""Run the models of a system in one arena."""

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np

from arenite.planner.programs import Section, SectionKind
from arenite.runtime import _core
from arenite.runtime.errors import ProgramError, StageOrderError
from arenite.runtime.session.closing import Closing
from arenite.runtime.session.session import Session
from arenite.runtime.session.stated import Array, SessionPort, SessionStage, require_inputs

_SLACK = 128
"""Bytes behind each memory that kernels may read."""

Arrays: TypeAlias = Mapping[str, Array]
"""Arrays by the names that ports have in their model."""


class SystemStage:
    """A model of a system, to be run whole or some steps at a time.

    Attributes:
        name: Its name in the system.
    """

    def __init__(self, session: Session, number: int, shared: "_Shared") -> None:
        self._session = session
        self._number = number
        self._shared = shared
        self._stage: SessionStage = session.stages[number]
        self._next: int | None = None
        self.name = self._stage.name

    @property
    def inputs(self) -> dict[str, SessionPort]:
        """Its inputs by name, without those that another model makes."""
        return dict(self._named(self._session.inputs, self._stage.inputs))

    @property
    def outputs(self) -> dict[str, SessionPort]:
        """Its outputs by name.

        Their views hold what its last run made, until another model needs the bytes: never where
        an output is kept, or read by a model that has not run.
        """
        return dict(self._named(self._session.outputs, self._stage.outputs))

    @property
    def num_steps(self) -> int:
        """Number of steps that a run takes; a band of rows counts as one."""
        return len(self._stage.turns)

    def run(self, inputs: Arrays | None = None) -> dict[str, Array]:
        """Run the model once and return copies of its outputs.

        Args:
            inputs: An array for each of its `inputs`.

        Raises:
            StageOrderError: It reads what is not there, or would overwrite what another model
                still needs.
            FeedError: An array does not fit.
            SessionBusyError: Another thread is using the same session.
        """
        self.start(inputs)
        self.advance(self.num_steps)
        return {name: np.array(port.view) for name, port in self.outputs.items()}

    def start(self, inputs: Arrays | None = None) -> None:
        """Begin a run, for `advance` to continue. Arguments and errors are those of `run`."""
        inputs = inputs or {}
        require_inputs(inputs, self.inputs)
        before = self._session.sizes
        self._session.fit_to({f"{self.name}.{name}": array for name, array in inputs.items()})
        try:
            self._shared.begin(self._number)
        except StageOrderError:
            self._session.resize(before)
            raise
        for name, its in self.inputs.items():
            np.copyto(its.view, inputs[name])
        self._next = self._stage.turns.start

    def advance(self, steps: int) -> bool:
        """Run the next steps, and tell whether that was the last of them.

        Raises:
            StageOrderError: No run was begun.
        """
        if self._next is None:
            raise StageOrderError(f"no run of {self.name!r} has begun; call start")
        last = min(self._next + steps, self._stage.turns.stop)
        self._session.run_turns(range(self._next, last))
        self._next = last
        if last < self._stage.turns.stop:
            return False
        self._next = None
        self._shared.end(self._number)
        return True

    def skip(self) -> None:
        """Leave the model out, or give up the run that was begun: it needs nothing any more."""
        self._next = None
        self._shared.skip(self._number)

    def _named(
        self, ports: tuple[SessionPort, ...], some: range
    ) -> Iterator[tuple[str, SessionPort]]:
        for number in some:
            port = ports[number]
            yield port.name.removeprefix(f"{self.name}."), port


@dataclass(slots=True)
class _Shared:
    """What the models of a system know of each other."""

    guard: _core.StageGuard
    lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, number: int) -> None:
        with self.lock:
            try:
                self.guard.begin(number)
            except _core.StageError as error:
                raise StageOrderError(str(error)) from error

    def end(self, number: int) -> None:
        with self.lock:
            self.guard.end(number)

    def skip(self, number: int) -> None:
        with self.lock:
            self.guard.skip(number)

    def finish(self) -> None:
        with self.lock:
            self.guard.finish()


class System(Closing):
    """Several models in one arena.

    `system["detector"]` is a model. A run that would overwrite what another model still needs
    raises `StageOrderError` and changes nothing, whatever order the models run in. What one model
    hands to another stays where it is.

    Args:
        path: An `.arena` file that was built from the description of a system.
        threads: Number of threads that run the kernels of each model.
        poison: Byte to fill dead memory with, which shows a wrong plan.
        check: Read the whole file once and compare it with its checksums.

    Raises:
        ProgramError: The file cannot be read, is not to be trusted, or has a single model.
        ResourceError: There is no memory for it.
        MissingDependencyError: A step needs ONNX Runtime, which is absent.
    """

    def __init__(
        self, path: Path | str, *, threads: int = 1, poison: int | None = None, check: bool = False
    ) -> None:
        # Late, as a session of a single model takes none of it.
        from arenite.runtime.program import root_of, system_of

        first = Session(path, check=check)
        found = system_of(root_of(first.flatbuffer()))
        if found is None:
            first.close()
            raise ProgramError("has a single model; open it as a Session", path=path)
        self._schedule = found.schedule
        buffers = {
            each.name: _aligned(each.size + _SLACK, each.alignment) for each in first.memories
        }
        first.close()

        def opened() -> Session:
            return Session(path, threads=threads, poison=poison, buffers=buffers)

        # Models that run at once need sessions of their own; all have the same memory.
        self._sessions = [opened()]
        self._shared = _Shared(self._sessions[0].guard())
        self._stages: dict[str, SystemStage] = {}
        apart = {
            name
            for section in self._schedule.sections()
            if section.kind is SectionKind.AT_ONCE
            for name in section.stages()
        }
        for number, stage in enumerate(found.stages):
            session = self._sessions[0]
            if stage.name in apart:
                session = opened()
                self._sessions.append(session)
            self._stages[stage.name] = SystemStage(session, number, self._shared)

    def __getitem__(self, name: str) -> SystemStage:
        return self._stages[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._stages)

    def __len__(self) -> int:
        return len(self._stages)

    @property
    def schedule(self) -> Section:
        """Which orders the system was planned for."""
        return self._schedule

    @property
    def arena_bytes(self) -> int:
        """Bytes of the arena: the height of the plan, summed over its memories."""
        return self._sessions[0].arena_bytes

    def run(
        self,
        inputs: "Mapping[str, Arrays | Callable[[System], Arrays]] | None" = None,
        when: "Mapping[str, Callable[[System], bool]] | None" = None,
    ) -> dict[str, dict[str, Array]]:
        """Run the models along the schedule, and return the outputs of each that ran.

        Models that run at once do so on threads of their own.

        Args:
            inputs: For each model that has inputs, arrays for these, or a function of the system
                that returns them when the model is to run.
            when: Conditions of the sections `maybe` and `repeat`, by the first model in them: the
                section runs if the function returns true, and is repeated as long as it does. A
                section without a condition runs once.

        Raises:
            StageOrderError: Models run already, in an order of the caller's.
            FeedError: An array does not fit.
        """
        self.finish()
        found: dict[str, dict[str, Array]] = {}
        _Walk(self, inputs or {}, when or {}, found).section(self._schedule)
        return found

    def finish(self) -> None:
        """End the schedule: what was kept is needed no more, and runs that were begun end."""
        for stage in self._stages.values():
            stage.skip()
        self._shared.finish()

    def reset(self) -> None:
        """Reset the states of all models to their initial values."""
        self._sessions[0].reset()

    def close(self) -> None:
        """Release the memory; views must no longer be used. Closing twice is harmless."""
        for session in self._sessions:
            session.close()


@dataclass(frozen=True, slots=True)
class _Walk:
    """A run along the schedule."""

    system: System
    inputs: "Mapping[str, Arrays | Callable[[System], Arrays]]"
    when: Mapping[str, Callable[[System], bool]]
    found: dict[str, dict[str, Array]]

    def section(self, section: Section) -> None:
        condition = self.when.get(next(section.stages()))
        if section.kind is SectionKind.AT_ONCE:
            self._at_once(section)
        elif section.kind is SectionKind.MAYBE and condition is not None:
            self._parts(section, runs=condition(self.system))
        elif section.kind is SectionKind.REPEAT and condition is not None:
            while condition(self.system):
                self._parts(section)
            self._parts(section, runs=False)
        else:
            self._parts(section)

    def _parts(self, section: Section, *, runs: bool = True) -> None:
        for part in section.parts:
            self._part(part, runs=runs)

    def _part(self, part: str | Section, *, runs: bool = True) -> None:
        if not runs:
            for name in (part,) if isinstance(part, str) else part.stages():
                self.system[name].skip()
        elif isinstance(part, Section):
            self.section(part)
        else:
            given = self.inputs.get(part, {})
            arrays = given(self.system) if callable(given) else given
            self.found[part] = self.system[part].run(arrays)

    def _at_once(self, section: Section) -> None:
        errors: list[BaseException] = []

        def runs(part: str | Section) -> None:
            try:
                self._part(part)
            except BaseException as error:  # raised again below
                errors.append(error)

        names = [part if isinstance(part, str) else next(part.stages()) for part in section.parts]
        threads = [
            threading.Thread(target=runs, args=(part,), name=f"arenite {name}")
            for part, name in zip(section.parts, names, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]


def _aligned(size: int, alignment: int) -> Array:
    """Return bytes that begin at a multiple of an alignment."""
    room = np.zeros(size + alignment, np.uint8)
    begin = -room.ctypes.data % alignment
    return room[begin : begin + size]
