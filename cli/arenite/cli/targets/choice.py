"""What `plan` plans when no target is named: what our runtime runs, if it can."""

from dataclasses import dataclass, replace
from pathlib import Path

import click

from arenite.cli.options.shared import Reading
from arenite.cli.targets.table import ARENITE, GENERIC
from arenite.planner.errors import ModelError
from arenite.planner.importers import model_format
from arenite.planner.source import Source


@dataclass(frozen=True, slots=True)
class Settled:
    """A model, read for the target that was named or chosen.

    Attributes:
        reading: How it was read; its target is known.
        target: That target.
        source: What was read.
        reason: Why it is the graph as written, where nobody asked for that.
    """

    reading: Reading
    target: str
    source: Source
    reason: str | None


def settle(reading: Reading, model: Path, capacity: int | None) -> Settled:
    """Read a model for the target that is named, or else for our runtime if it runs it.

    Raises:
        ModelError: It cannot be planned as it is written either.
        UsageError: Something is asked for that the target decides itself.
    """
    if reading.target is not None:
        return Settled(reading, reading.target, reading.read(model, capacity), None)
    generic = replace(reading, target=GENERIC)
    if model_format(model) == "csv":
        return Settled(generic, GENERIC, generic.read(model, capacity), None)
    native = replace(reading, target=ARENITE)
    try:
        return Settled(native, ARENITE, native.read(model, capacity), None)
    except click.UsageError:
        reason = "--boundary, --align and --alias are about the graph as it is written"
    except ModelError as error:
        reason = str(error)
    return Settled(generic, GENERIC, generic.read(model, capacity), reason)
