"""From a model file to a program with a plan."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from arenite.planner.errors import ModelFormatError, about_file
from arenite.planner.files import model_digest
from arenite.planner.importers import check_fixed_shapes, model_format
from arenite.planner.liveness import liveness
from arenite.planner.ordering import FindOrder, MemoryModel, Order, choose_order
from arenite.planner.plan import Plan
from arenite.planner.rewrites.aliasing import AliasKind, alias
from arenite.planner.source import Source
from arenite.planner.verify import verify
from arenite.runtime import _core
from arenite.runtime.lowering.lowered import Lowered
from arenite.runtime.lowering.streaming import Streaming, WeightBudget, stream_weights
from arenite.runtime.program.assembly import Assembly, Code, assemble

ALIGNMENT = 64
"""Bytes: every offset keeps a cache line to itself."""

ALIASES = (
    AliasKind.IN_PLACE,
    AliasKind.NORMALISATION,
    AliasKind.REUSE_INPUTS,
    AliasKind.SLICES,
    AliasKind.CONCAT,
)
"""What shares storage in a program; views have no step, so they need no alias."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A model ready to be placed.

    Attributes:
        lowered: Its steps.
        source: Its graph in the order it runs, aliases included, and its records.
        streaming: How a weight budget is met, if there is one.
    """

    lowered: Lowered
    source: Source
    streaming: Streaming | None = None

    def assemble(self, plan: Plan, code: Code | None = None) -> Assembly:
        """Return the program with this plan.

        Args:
            plan: Of the records of the source.
            code: Codes constants, if they are to be coded.

        Raises:
            InvalidPlanError: The plan is not right for the records.
        """
        verify(self.source.problem, plan)
        graph = self.source.graph
        assert graph is not None
        return assemble(
            self.lowered,
            graph,
            self.source.problem,
            plan,
            digest=self.source.digest,
            producer=f"arenite {version('arenite')}",
            code=code,
        )


def compile_model(
    path: Path,
    *,
    dims: Mapping[str, int] | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    order: FindOrder | tuple[str, ...] | None = None,
    capacity: int | None = None,
    weight_budget: WeightBudget | None = None,
) -> Compiled:
    """Return the program of a model, not yet placed.

    Args:
        path: An ONNX or TFLite file.
        dims: Values of free dimensions, by name; ONNX only.
        shapes: Shapes of graph inputs, by name; ONNX only.
        order: The steps by name, or what finds their order; by default the model's own.
        capacity: Bytes the arena may have.
        weight_budget: Weights that may be resident while the program runs, windows included;
            the others are streamed.

    Raises:
        ModelError: The model cannot be read, or has an operator that nothing runs.
        WeightBudgetError: The budget cannot be met.
        MissingDependencyError: The package of its format is absent.
    """
    with about_file(path):
        lowered = _lower(path, dims or {}, shapes or {})
    streaming = None
    if weight_budget is not None:
        streaming = stream_weights(lowered, weight_budget.bytes_of(lowered))
        lowered = streaming.lowered
    graph = lowered.graph
    found: Order | None = None
    if callable(order):
        found = choose_order(graph, order, MemoryModel(ALIASES, alignment=ALIGNMENT))
        order = found.operators
    if order is not None:
        graph = graph.reordered(order)
    graph = alias(graph, ALIASES)
    problem = liveness(graph, alignment=ALIGNMENT, capacity=capacity)
    source = Source(path.name, model_digest(path), graph, problem, found)
    return Compiled(replace(lowered, graph=graph), source, streaming)


def _lower(path: Path, dims: Mapping[str, int], shapes: Mapping[str, tuple[int, ...]]) -> Lowered:
    kind = model_format(path)
    supported = frozenset(_core.supported())
    if kind == "tflite":
        from arenite.runtime.lowering.tflite.model import lower_tflite

        lowered = lower_tflite(path, supported=supported)
        check_fixed_shapes(lowered.graph, dims, shapes)
        return lowered
    if kind == "onnx":
        from arenite.runtime.lowering.onnx.model import lower_onnx

        return lower_onnx(path, dims=dims, shapes=shapes, supported=supported)
    raise ModelFormatError("it states records alone; give a model to run")
