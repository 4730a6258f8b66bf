"""The graph as written in the file, independent of the runtime."""

from pathlib import Path
from typing import ClassVar

from arenite.pipeline.base.ordering import order_finder
from arenite.pipeline.base.reading import Reading
from arenite.planner import AliasKind, PlanFile, Source, read
from arenite.planner.errors import UnsupportedModelError
from arenite.planner.programs import SAFE_KINDS


class Generic:
    """Tensors as the file states them, for any runtime that takes a plan."""

    name: ClassVar[str] = "generic"
    summary: ClassVar[str] = "the graph as written"
    open_fields: ClassVar[frozenset[str]] = frozenset(
        {"dims", "shapes", "values", "boundary", "alignment", "aliases", "order_name"}
    )
    shares: ClassVar[tuple[AliasKind, ...]] = SAFE_KINDS

    def why_unsupported(self, _path: Path) -> str | None:
        """Return None: every model that can be read can be planned."""
        return None

    def read(self, reading: Reading, path: Path, capacity: int | None) -> Source:
        """Return the records, in the best order unless the user decides it or none is free."""
        if reading.order_name is None:
            try:
                return self._read(reading, path, capacity, "best")
            except UnsupportedModelError:  # operators of subgraphs cannot be moved
                return self._read(reading, path, capacity, "given")
        return self._read(reading, path, capacity, reading.order_name)

    def _read(self, reading: Reading, path: Path, capacity: int | None, order_name: str) -> Source:
        return read(
            path,
            dims=reading.dims,
            shapes=reading.shapes,
            values=reading.values,
            boundary=reading.boundary,
            alignment=reading.alignment,
            capacity=capacity,
            order=order_finder(order_name, reading.limits),
            aliases=self.shares if reading.aliases is None else reading.aliases,
        )

    def reread(self, reading: Reading, path: Path, plan_file: PlanFile) -> Source:
        """Return the records in the order, and with the sharing, that the plan states."""
        problem = plan_file.problem
        # Where records differ in alignment, as those of a CSV may, the file states them.
        uniform = all(record.alignment == plan_file.alignment for record in problem.records)
        return read(
            path,
            dims=reading.dims,
            shapes=reading.shapes,
            values=reading.values,
            boundary=plan_file.boundary,
            alignment=plan_file.alignment if uniform else None,
            order=problem.steps,
            aliases=plan_file.aliases,
            outlines=problem.has_outlines,
        )
