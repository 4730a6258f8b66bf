"""A graph as the order searches see it: who makes, touches and frees which storage."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from arenite.planner.graph import Graph, TensorKind
from arenite.planner.liveness import Boundary
from arenite.planner.ordering import MemoryModel, Order, ShouldStop
from arenite.planner.rewrites.aliasing import AliasKind, alias, overwritable
from arenite.planner.units import align_up
from arenite.strategies import native


@dataclass(frozen=True, slots=True)
class MemoryGraph:
    """Operators and storages by index, in the graph's order.

    Attributes:
        names: Names of the operators.
        predecessors: For each operator, those that must run before it.
        problem: The same graph in the native core.
    """

    names: tuple[str, ...]
    predecessors: tuple[tuple[int, ...], ...]
    problem: "native.core.OrderProblem"

    @classmethod
    def of(cls, graph: Graph, model: MemoryModel) -> Self:
        """Return the memory graph of `graph`.

        Views share storage whatever the order; what dies where, and so what may be
        overwritten, the searches find out step by step.

        Raises:
            MissingDependencyError: The native core was not built.

        Cost: O(tensors + operator operands).
        """
        native.require("ordering operators (the native core)")
        if AliasKind.VIEWS in model.aliases:
            graph = alias(graph, [AliasKind.VIEWS])
        roots = {name: graph.root(name)[0] for name in graph.tensors}
        storages = _storages(graph, roots, model)
        touchers: list[list[int]] = [[] for _ in storages]
        writers = [-1] * len(storages)
        predecessors: list[tuple[int, ...]] = []
        replaceable: list[list[int]] = []
        made_by: dict[str, int] = {}
        touched_state: dict[str, int] = {}
        for step, operator in enumerate(graph.operators):
            before = {made_by[name] for name in operator.reads if name in made_by}
            for name in dict.fromkeys((*operator.reads, *operator.writes)):
                storage = storages.get(roots[name])
                if storage is not None and step not in touchers[storage]:
                    touchers[storage].append(step)
                if graph.tensors[roots[name]].kind is TensorKind.STATE:
                    # Reads and writes of a state keep the order they have.
                    if roots[name] in touched_state:
                        before.add(touched_state[roots[name]])
                    touched_state[roots[name]] = step
            for name in operator.writes:
                made_by[name] = step
                storage = storages.get(name)
                if storage is not None and graph.tensors[name].kind is not TensorKind.STATE:
                    writers[storage] = step
            predecessors.append(tuple(sorted(before)))
            operands: tuple[str, ...] = ()
            if storages.keys() & operator.outputs[:1]:
                operands = overwritable(graph, operator, model.aliases)
            replaceable.append([storages[roots[n]] for n in operands if roots[n] in storages])
        kept = {roots[name] for name in graph.outputs}
        problem = native.core.OrderProblem(
            predecessors,
            [align_up(operator.scratch, model.alignment) for operator in graph.operators],
            [align_up(graph.tensors[name].size, model.alignment) for name in storages],
            writers,
            touchers,
            [name in kept or graph.tensors[name].kind is TensorKind.STATE for name in storages],
            replaceable,
        )
        names = tuple(operator.name for operator in graph.operators)
        return cls(names, tuple(predecessors), problem)

    def given(self) -> "native.core.OrderResult":
        """Return the graph's own order, of which nothing is proved."""
        result = native.core.OrderResult()
        result.order = list(range(len(self.names)))
        result.peak = self.problem.peak_of(result.order)
        return result

    def beam(
        self, width: int, max_bytes: int, should_stop: ShouldStop
    ) -> "native.core.OrderResult":
        """Return the best order that keeps `width` sets of operators at each step.

        Fewer are kept where `max_bytes` of tables cannot hold so many. Told to stop, the
        search goes on with the best set alone.
        """
        return native.core.beam_order(self.problem, width, max_bytes, should_stop)

    def exact(
        self,
        incumbent: "native.core.OrderResult",
        max_states: int,
        max_bytes: int,
        should_stop: ShouldStop,
    ) -> "native.core.OrderResult":
        """Return an order below the incumbent, or the incumbent with what was proved."""
        return native.core.exact_order(self.problem, incumbent, max_states, max_bytes, should_stop)

    def is_proved(self, result: "native.core.OrderResult") -> bool:
        """Tell whether no order has a lower peak."""
        return result.optimal or result.peak == self.problem.least_peak()

    def order(self, steps: Sequence[int], *, proved: bool = False) -> Order:
        """Return the order of these operators.

        Args:
            steps: Every operator's index, once.
            proved: Whether no order has a lower peak.
        """
        peak = self.problem.peak_of(steps)
        lower_bound = peak if proved else min(peak, self.problem.least_peak())
        return Order(tuple(self.names[step] for step in steps), peak, lower_bound)


def _storages(graph: Graph, roots: dict[str, str], model: MemoryModel) -> dict[str, int]:
    """Number the storages that take memory."""
    left_out: set[str] = set()
    if model.boundary is Boundary.EXCLUDE:
        left_out = {roots[name] for name in (*graph.inputs, *graph.outputs)}
    return {
        name: index
        for index, name in enumerate(
            name
            for name in dict.fromkeys(roots.values())
            if graph.tensors[name].kind is not TensorKind.CONSTANT
            and graph.tensors[name].size
            and name not in left_out
        )
    }
