"""What a target is, the targets, and which of them a model is read for."""

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Final, Protocol

from arenite.pipeline.base.errors import OptionsError
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.targets.arenite import Arenite
from arenite.pipeline.targets.c import C
from arenite.pipeline.targets.generic import Generic
from arenite.pipeline.targets.runtimes import RUNTIMES
from arenite.planner import AliasKind, PlanFile, Source
from arenite.planner.errors import MissingDataError, ModelError, ModelFormatError


class Target(Protocol):
    """The graph as written, or a runtime whose own records are planned.

    Attributes:
        name: As on the command line.
        summary: What it stands for, in a few words.
        open_fields: Fields of a `Reading` that the user may still decide.
        shares: What shares storage unless the user decides it.
    """

    @property
    def name(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def open_fields(self) -> frozenset[str]: ...
    @property
    def shares(self) -> tuple[AliasKind, ...]: ...

    def why_unsupported(self, path: Path) -> str | None:
        """Return why it takes no file of this format, or None if it takes it."""
        ...

    def read(self, reading: Reading, path: Path, capacity: int | None) -> Source:
        """Return the records to place for a model.

        Args:
            reading: What the user asked for, in its open fields alone.
            path: The model.
            capacity: Bytes the arena may have.

        Raises:
            ModelError: The model is damaged, of another format, or refused by the runtime.
            MissingDependencyError: The runtime's package is absent.
        """
        ...

    def reread(self, reading: Reading, path: Path, plan_file: PlanFile) -> Source:
        """Return the records of a model as they were when a plan was made.

        Args:
            reading: Dimensions and shapes.
            path: The model.
            plan_file: States all else: the order, sharing, boundary and alignment.

        Raises:
            ModelError: As `read`.
            OrderError: The model does not have the steps of the plan.
        """
        ...


GENERIC: Final = Generic()
ARENITE: Final = Arenite()
C_SOURCE: Final = C()

_IN_ORDER: tuple[Target, ...] = (GENERIC, ARENITE, *RUNTIMES, C_SOURCE)

TARGETS: Final[dict[str, Target]] = {target.name: target for target in _IN_ORDER}
"""By name, in the order of the help."""


_WORDS = {
    "dims": "dimensions", "values": "values of inputs", "boundary": "boundary",
    "alignment": "alignment", "aliases": "sharing", "order_name": "order",
    "weight_budget": "weight budget",
}  # fmt: skip
"""Fields of a `Reading`, as messages call them."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A model, read for the target that was named or chosen.

    Attributes:
        reading: How the model was read; its target is known.
        aliases: What shares storage, where the target leaves that open.
        source: The program and its records.
        fallback: Why it is the graph as written, where nobody asked for that.
    """

    target: Target
    reading: Reading
    aliases: tuple[AliasKind, ...]
    source: Source
    fallback: str | None = None

    @property
    def order_name(self) -> str:
        """What ordered the operators."""
        return "given" if self.source.order is None else self.reading.order_name or "best"

    @property
    def phrase(self) -> str:
        """For whom the model was read and in which order, in a few words."""
        whose = "as written" if self.target is GENERIC else f"for {self.target.name}"
        if self.source.program is None:  # records alone: nothing was ordered
            return whose
        order = "in the given order" if self.order_name == "given" else f"order {self.order_name}"
        return f"{whose}, {order}"

    @property
    def note(self) -> str | None:
        """What the user should know of the choice, if anything."""
        if self.fallback is None:
            return None
        return f"planned as written, with --target {self.target.name}: {self.fallback}"


def choose_target(reading: Reading, path: Path, capacity: int | None = None) -> Chosen:
    """Read a model for the target that is named, or else for our runtime if it runs it.

    Raises:
        ModelError: It cannot be planned as it is written either.
        OptionsError: The user asks for something that the target decides itself.
    """
    if reading.target is not None:
        return _read(TARGETS[reading.target], reading, path, capacity)
    if ARENITE.why_unsupported(path) is not None:  # records alone: no choice to tell of
        return _read(GENERIC, reading, path, capacity)
    if {"boundary", "alignment", "aliases"} & _asked_for(reading):
        fallback = "--boundary, --align and --alias are about the graph as it is written"
    else:
        try:
            return _read(ARENITE, reading, path, capacity)
        except MissingDataError:  # half a model: not another target but its file is wanted
            raise
        except ModelError as error:
            fallback = str(error)
    return choose_as_written(reading, path, capacity, fallback)


def choose_as_written(reading: Reading, path: Path, capacity: int | None, reason: str) -> Chosen:
    """Read a model as the graph that is written, since our runtime does not run it.

    Args:
        reason: Why our runtime does not.

    Raises:
        ModelError: It cannot be planned as it is written either.
        OptionsError: The user asks for something that the target decides itself.
    """
    return replace(_read(GENERIC, reading, path, capacity), fallback=reason)


def check_options(reading: Reading) -> None:
    """Return if the options go together, as far as that can be told without the model.

    Raises:
        OptionsError: The user asks for something that the target decides itself.
    """
    if reading.target is not None:
        _check(TARGETS[reading.target], reading)


def _read(target: Target, reading: Reading, path: Path, capacity: int | None) -> Chosen:
    _check(target, reading)
    unsupported = target.why_unsupported(path)
    if unsupported is not None:
        raise ModelFormatError(unsupported, path=path)
    source = target.read(reading, path, capacity)
    aliases = reading.aliases
    if aliases is None:
        aliases = () if source.program is None else target.shares
    return Chosen(target, replace(reading, target=target.name), aliases, source)


def _check(target: Target, reading: Reading) -> None:
    refused = _asked_for(reading) - target.open_fields
    if refused == {"weight_budget"}:
        raise OptionsError(f"--weights is for --target {ARENITE.name}")
    if refused:
        decided = [word for field, word in _WORDS.items() if field not in target.open_fields]
        raise OptionsError(
            f"--target {target.name} decides {', '.join(decided[:-1])} and {decided[-1]} "
            "itself; leave those options out"
        )


def _asked_for(reading: Reading) -> frozenset[str]:
    """Return the fields in which a reading differs from that of no options."""
    plain = Reading(target=reading.target)
    return frozenset(
        field.name
        for field in fields(Reading)
        if field.compare and getattr(reading, field.name) != getattr(plain, field.name)
    )
