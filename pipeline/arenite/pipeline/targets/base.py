"""What a target is: whose memory a plan lays out."""

from pathlib import Path
from typing import ClassVar, Protocol

from arenite.pipeline.base.reading import Reading
from arenite.planner import AliasKind, PlanFile, Source


class Target(Protocol):
    """The graph as written, or a runtime whose own records are planned.

    Attributes:
        name: As on the command line.
        summary: What it stands for, in a few words.
        open_fields: Fields of a `Reading` that the user may still decide.
        shares: What shares storage unless the user decides it.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    open_fields: ClassVar[frozenset[str]]
    shares: ClassVar[tuple[AliasKind, ...]]

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
