"""C source, with the kernels that it is exported with."""

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from arenite.pipeline.base.ordering import order_finder
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.targets.compiling_c import compile_for_c, lower_model_for_c
from arenite.planner import AliasKind, PlanFile, Source, derive, model_format
from arenite.planner.errors import UnsupportedModelError
from arenite.runtime.cexport import CompiledForC, LoweredForC


class C:
    """The steps of an exported program; results may overlap the operands they consume."""

    name: ClassVar[str] = "c"
    summary: ClassVar[str] = "C source"
    open_fields: ClassVar[frozenset[str]] = frozenset(
        {"dims", "shapes", "values", "alignment", "order_name"}
    )
    shares: ClassVar[tuple[AliasKind, ...]] = ()  # the compiler's own; a plan file states none

    def why_unsupported(self, path: Path) -> str | None:
        """Return why there is nothing to write of such a file."""
        if model_format(path) == "csv":
            return "a CSV states records alone; there is nothing to write as C"
        return None

    def read(self, reading: Reading, path: Path, capacity: int | None) -> Source:
        return compiled_for_c(reading, path, capacity).source

    def reread(self, reading: Reading, path: Path, plan_file: PlanFile) -> Source:
        return compile_for_c(
            path, replace(reading, alignment=plan_file.alignment), order=plan_file.problem.steps
        ).source


def compiled_for_c(reading: Reading, path: Path, capacity: int | None = None) -> CompiledForC:
    """Return the program of a model: in the best order, unless the user decides it.

    Raises:
        ModelError: The model cannot be read, or has an operator that has no translation.
    """
    return in_order(reading, lower_model_for_c(path, reading, capacity))


def in_order(reading: Reading, lowered: LoweredForC) -> CompiledForC:
    """Return a lowered model in the best order, unless the user decides it.

    Raises:
        UnsupportedModelError: Its steps cannot be put into the order that the user wants.
    """
    try:
        return _ordered(reading, lowered, reading.order_name or "best")
    except UnsupportedModelError:  # steps that cannot be moved
        if reading.order_name is not None:
            raise
        return _ordered(reading, lowered, "given")


def _ordered(reading: Reading, lowered: LoweredForC, order_name: str) -> CompiledForC:
    order = order_finder(order_name, reading.limits)
    return lowered.compiled(derive(lowered.program, lowered.rules, order))
