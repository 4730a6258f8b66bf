"""A program as order searches see it: which steps make, touch and free each storage."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from arenite.planner import AliasKind, Boundary, Order, Program, Rules, ShouldStop, TensorKind
from arenite.planner.programs import Uses
from arenite.planner.rewrites import overwritable, share
from arenite.planner.tensors import alignments
from arenite.planner.units import align_up
from arenite.strategies.base import native

UNLIMITED = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class MemoryGraph:
    """Steps and storages by index, in the program's order.

    Attributes:
        predecessors: For each step, the steps that must run before it.
        problem: The same graph in the native core.
    """

    names: tuple[str, ...]
    predecessors: tuple[tuple[int, ...], ...]
    problem: "native.core.OrderProblem"

    @classmethod
    def of(cls, program: Program, rules: Rules) -> Self:
        """Return the memory graph of a program.

        Views share storage in any order. Where each storage has its last use, and so what may
        be overwritten, the searches determine step by step.

        Raises:
            MissingDependencyError: The native core was not built.
            SizeLimitError: The sizes add up to more than it can hold.

        Cost: O(tensors + operands of the steps).
        """
        native.require("ordering operators (the native core)")
        if AliasKind.VIEWS in rules.aliases:
            program = share(program, [AliasKind.VIEWS])
        roots = {name: program.root(name)[0] for name in program.tensors}
        storages = _storages(program, roots, rules)
        touchers: list[list[int]] = [[] for _ in storages]
        writers = [-1] * len(storages)
        predecessors: list[tuple[int, ...]] = []
        replaceable: list[list[int]] = []
        made_by: dict[str, int] = {}
        parts_by: dict[str, set[int]] = {}  # by what they lie in
        touched_state: dict[str, int] = {}
        uses = Uses.of(program)
        kept, with_states = set(uses.kept), program.state_storages
        for number, (step, touched) in enumerate(zip(program.steps, uses.touched(), strict=True)):
            made = [_written(program, name, made_by) for name in step.reads]
            before = {made_by[name] for name in made if name in made_by}
            before.update(*(parts_by.get(name, ()) for name in made if name not in made_by))
            for root in touched:
                if root in storages:
                    touchers[storages[root]].append(number)
                if root in with_states:
                    # Reads and writes of a state keep their order.
                    if root in touched_state:
                        before.add(touched_state[root])
                    touched_state[root] = number
            for name in step.writes:
                made_by[name] = number
                alias = program.tensors[name].alias
                while alias is not None:
                    parts_by.setdefault(alias.tensor, set()).add(number)
                    alias = program.tensors[alias.tensor].alias
                storage = storages.get(name)
                if storage is not None and program.tensors[name].kind is not TensorKind.STATE:
                    writers[storage] = number
            predecessors.append(tuple(sorted(before)))
            operands: tuple[str, ...] = ()
            if storages.keys() & step.outputs[:1]:
                # Beside a view that the step reads too, neither may be overwritten.
                shared = Counter(roots[name] for name in dict.fromkeys(step.reads))
                operands = tuple(
                    name
                    for name in overwritable(program, step, rules.aliases)
                    if shared[roots[name]] == 1
                )
            replaceable.append([storages[roots[n]] for n in operands if roots[n] in storages])
        names = tuple(step.name for step in program.steps)
        aligned = alignments(program.memories, rules.alignment)
        workplace = program.memories[0].name
        scratch = [
            align_up(step.operator.scratch(program.operands(step)), aligned[workplace])
            for step in program.steps
        ]
        sizes = [
            align_up(tensor.size, aligned[tensor.memory])
            for tensor in map(program.tensors.__getitem__, storages)
        ]
        native.check_sizes(
            "tensor or step",
            (*zip(storages, sizes, strict=True), *zip(names, scratch, strict=True)),
        )
        problem = native.core.OrderProblem(
            predecessors,
            scratch,
            sizes,
            writers,
            touchers,
            [name in kept for name in storages],
            replaceable,
        )
        return cls(names, tuple(predecessors), problem)

    def given(self) -> "native.core.OrderResult":
        """Return the program's own order, about which nothing is proved."""
        result = native.core.OrderResult()
        result.order = list(range(len(self.names)))
        result.peak = self.problem.peak_of(result.order)
        return result

    def beam(
        self, width: int, max_bytes: int, should_stop: ShouldStop, max_work: int = UNLIMITED
    ) -> "native.core.OrderResult":
        """Return the best order that keeps `width` sets of operators at each step.

        Fewer are kept if `max_bytes` of tables cannot hold them. When stopped, or after
        `max_work`, what is left runs after the best set in the program's order or depth first.
        """
        return native.core.beam_order(self.problem, width, max_bytes, max_work, should_stop)

    def exact(
        self,
        incumbent: "native.core.OrderResult",
        max_states: int,
        max_bytes: int,
        should_stop: ShouldStop,
    ) -> "native.core.OrderResult":
        """Return an order lower than the incumbent, or the incumbent with its proof."""
        return native.core.exact_order(self.problem, incumbent, max_states, max_bytes, should_stop)

    def is_proved(self, result: "native.core.OrderResult") -> bool:
        """Tell whether no order has a lower peak."""
        return result.optimal or result.peak == self.problem.least_peak()

    def order(self, steps: Sequence[int], *, proved: bool = False) -> Order:
        """Return the order of these steps.

        Args:
            steps: Every step's index, once.
            proved: Whether no order has a lower peak.
        """
        peak = self.problem.peak_of(steps)
        lower_bound = peak if proved else min(peak, self.problem.least_peak())
        return Order(tuple(self.names[step] for step in steps), peak, lower_bound)


def _written(program: Program, name: str, made_by: Mapping[str, int]) -> str:
    """Return the tensor that a view is of; the tensor itself if it is not a view."""
    while name not in made_by and (alias := program.tensors[name].alias) is not None:
        name = alias.tensor
    return name


def _storages(program: Program, roots: dict[str, str], rules: Rules) -> dict[str, int]:
    """Number the storages that take memory."""
    left_out: set[str] = set()
    if rules.boundary is Boundary.EXCLUDE:
        left_out = {roots[name] for name in (*program.input_tensors, *program.output_tensors)}
        left_out -= program.state_storages
    return {
        name: index
        for index, name in enumerate(
            name
            for name in dict.fromkeys(roots.values())
            if program.tensors[name].kind is not TensorKind.CONSTANT
            and program.tensors[name].size
            and name not in left_out
        )
    }
