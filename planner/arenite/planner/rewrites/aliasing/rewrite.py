"""The rewrite: both passes over the operators, and what became of each chance."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from arenite.planner.graph import Alias, Graph, Operator, TensorKind
from arenite.planner.liveness import DEFAULT_ALIGNMENT, Boundary, liveness
from arenite.planner.rewrites.aliasing.kinds import AliasKind
from arenite.planner.rewrites.aliasing.loads import Loads
from arenite.planner.rewrites.aliasing.lowering import lowered
from arenite.planner.rewrites.aliasing.overwriting import overwritable, overwriting_kind
from arenite.planner.rewrites.aliasing.parts import Part, parting_kind, parts
from arenite.planner.rewrites.aliasing.storages import Storages
from arenite.planner.rewrites.aliasing.verdict import Refusal
from arenite.planner.rewrites.aliasing.views import is_view, why_not_viewed


@dataclass(frozen=True, slots=True)
class Aliasing:
    """What the rewrite did.

    Attributes:
        graph: With the storage shared.
        num_shared: Tensors that each kind laid into another.
        refusals: The chances it left, in the order of the operators within each pass.
    """

    graph: Graph
    num_shared: Mapping[AliasKind, int]
    refusals: tuple[Refusal, ...]


def alias(
    graph: Graph,
    kinds: Collection[AliasKind],
    boundary: Boundary = Boundary.INCLUDE,
    alignment: int = DEFAULT_ALIGNMENT,
) -> Graph:
    """Return `graph` with the storage shared that `kinds` allow, in its present order.

    Args:
        graph: Its order decides which operand dies where, so reorder first.
        kinds: What may share storage.
        boundary: Where graph inputs and outputs are the caller's, they are neither
            overwritten nor laid over what is not.
        alignment: Bytes that the place of a part in the whole is a multiple of.

    Cost: O(tensors + operator operands); with slices and concat, for each operator of
    those kinds also O(parts x steps they live + pairs of tensors in the storages joined).
    """
    return explain(graph, kinds, boundary, alignment).graph


def explain(
    graph: Graph,
    kinds: Collection[AliasKind],
    boundary: Boundary = Boundary.INCLUDE,
    alignment: int = DEFAULT_ALIGNMENT,
) -> Aliasing:
    """Return what `alias` returns, with what each kind brought and why not more."""
    rewrite = _Rewrite(graph, kinds, boundary, alignment)
    for step, operator in enumerate(graph.operators):
        rewrite.view(operator)
        rewrite.overwrite(operator, step)
    if has_parts(graph, kinds) or AliasKind.OVERLAP in kinds:
        loads = Loads(liveness(rewrite.result(), boundary=boundary, alignment=alignment))
        rewrite.pack(loads)
        if AliasKind.OVERLAP in kinds:
            rewrite.overlap(loads)
    return Aliasing(rewrite.result(), dict(rewrite.num_shared), tuple(rewrite.refusals))


def has_parts(graph: Graph, kinds: Collection[AliasKind]) -> bool:
    """Tell whether `kinds` may let tensors share some of their bytes, not all."""
    return AliasKind.OVERLAP in kinds or any(
        parting_kind(operator) in kinds for operator in graph.operators
    )


class _Rewrite:
    def __init__(
        self, graph: Graph, kinds: Collection[AliasKind], boundary: Boundary, alignment: int
    ) -> None:
        self.num_shared: Counter[AliasKind] = Counter()
        self.refusals: list[Refusal] = []
        self._graph = graph
        self._kinds = kinds
        self._boundary = boundary
        self._alignment = alignment
        self._storages = Storages(graph, kinds, boundary)

    def result(self) -> Graph:
        return replace(self._graph, tensors=dict(self._storages.tensors))

    def view(self, operator: Operator) -> None:
        """Let the result of a view lie in its operand."""
        if AliasKind.VIEWS not in self._kinds or not is_view(operator):
            return
        source, result = operator.inputs[0], operator.outputs[0]
        reason = why_not_viewed(self._graph, operator)
        if reason is not None:
            self._refuse(AliasKind.VIEWS, operator, result, reason)
            return
        self._storages.put_into(result, Alias(source), same_bytes=True)
        self.num_shared[AliasKind.VIEWS] += 1

    def overwrite(self, operator: Operator, step: int) -> None:
        """Let the result lie over the first operand that dies at `step`."""
        kind = overwriting_kind(operator)
        operands = overwritable(self._graph, operator, self._kinds)
        if kind is None or not operands:
            return
        result = operator.outputs[0]
        reasons: list[str] = []
        for source in operands:
            reason = self._why_not_over(operator, step, source)
            if reason is None:
                over_input = self._storages.holds_input(source)
                self._storages.put_into(result, Alias(source), same_bytes=False)
                self.num_shared[AliasKind.REUSE_INPUTS if over_input else kind] += 1
                return
            reasons.append(reason)
        self._refuse(kind, operator, result, reasons[0])

    def _why_not_over(self, operator: Operator, step: int, source: str) -> str | None:
        storages = self._storages
        if self._graph.tensors[source].kind is TensorKind.CONSTANT:
            return f"{source!r} is a constant"
        if self._boundary is Boundary.EXCLUDE and storages.is_kept(operator.outputs[0]):
            return "the caller owns its memory"
        if storages.is_kept(source):
            return f"the caller or the next run needs {source!r}"
        if storages.last_read(source) > step:
            return f"step {storages.last_read(source)} still reads {source!r}"
        for other in operator.reads:
            if other != source and storages.owner(other) == storages.owner(source):
                return f"{other!r} would be overwritten before it is read"
        return None

    def pack(self, loads: Loads) -> None:
        """Let parts lie in the whole wherever that lowers the load."""
        for operator in self._graph.operators:
            kind = parting_kind(operator)
            if kind is not None and kind in self._kinds:
                self._pack(operator, kind, loads)

    def _pack(self, operator: Operator, kind: AliasKind, loads: Loads) -> None:
        storages = self._storages
        possible: dict[str, tuple[Part, int]] = {}
        for part in parts(self._graph, operator):
            reason = self._why_not_inside(operator, kind, part)
            if part.offset is None or reason is not None:
                self._refuse(kind, operator, part.inner, reason or part.reason)
            else:
                possible[storages.owner(part.inner)] = (part, part.offset)
        if not possible:
            return
        outer = storages.owner(next(iter(possible.values()))[0].outer)
        chosen = loads.best(outer, tuple(possible))
        for root, (part, offset) in possible.items():
            if root in chosen:
                loads.lay(outer, root)
                storages.put_into(part.inner, Alias(part.outer, offset), same_bytes=True)
                self.num_shared[kind] += 1
            else:
                self._refuse(kind, operator, part.inner, "it would not lower the load")

    def _why_not_inside(self, operator: Operator, kind: AliasKind, part: Part) -> str | None:
        storages = self._storages
        if part.offset is None:
            return part.reason
        if (storages.offset(part.outer) + part.offset) % self._alignment:
            return f"byte {part.offset} is not aligned to {self._alignment}"
        if kind is AliasKind.CONCAT and operator.inputs.count(part.inner) > 1:
            return "it is joined more than once"
        theirs = storages.is_callers(part.inner), storages.is_callers(part.outer)
        if theirs[0] or (kind is AliasKind.CONCAT and theirs[1]):
            return "the caller owns its memory"
        return storages.why_not_inside(part, part.offset)

    def overlap(self, loads: Loads) -> None:
        """Let results reach into operands that are used up, wherever that lowers the peak."""
        found = lowered(self._graph, self._storages, loads, self._alignment)
        self._storages = found.storages
        if found.num_overlaps:
            self.num_shared[AliasKind.OVERLAP] = found.num_overlaps
        if found.reason:
            operator = self._graph.operators[found.step]
            self._refuse(AliasKind.OVERLAP, operator, operator.outputs[0], found.reason)

    def _refuse(self, kind: AliasKind, operator: Operator, tensor: str, reason: str) -> None:
        self.refusals.append(Refusal(kind, operator.name, tensor, reason))
