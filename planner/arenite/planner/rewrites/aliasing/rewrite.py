"""The rewrite: its passes over the operators, and why storage was not shared."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from arenite.planner.operators.parts import Part
from arenite.planner.programs.program import Program, Step
from arenite.planner.programs.records import liveness
from arenite.planner.programs.rules import DEFAULT_ALIGNMENT, AliasKind, Boundary
from arenite.planner.rewrites.aliasing.loads import Loads
from arenite.planner.rewrites.aliasing.overlap import overlap_at_peaks
from arenite.planner.rewrites.aliasing.storages import Storages
from arenite.planner.sizes import same
from arenite.planner.tensors import Alias, TensorKind


@dataclass(frozen=True, slots=True)
class Refusal:
    """A case in which storage could not be shared.

    Attributes:
        tensor: The tensor that would have used another's storage.
        reason: Why it could not.
    """

    kind: AliasKind
    operator: str
    tensor: str
    reason: str


def overwriting_kind(step: Step) -> AliasKind:
    """Return the kind of sharing that must be allowed for the step to run in place."""
    return AliasKind.NORMALISATION if step.operator.reduces_groups else AliasKind.IN_PLACE


def overwritable(program: Program, step: Step, kinds: Collection[AliasKind]) -> tuple[str, ...]:
    """Return the operands that the first output may overwrite if this is their last use."""
    if overwriting_kind(step) not in kinds:
        return ()
    operands = program.operands(step)
    result = operands.result
    if result is None or result.alias is not None or result.kind is TensorKind.STATE:
        return ()
    updated = {step.inputs[position] for position in step.operator.updates}
    spared = () if AliasKind.REUSE_INPUTS in kinds else program.input_tensors
    names = (step.inputs[position] for position in step.operator.overwritable(operands))
    return tuple(
        name
        for name in dict.fromkeys(names)
        if name not in updated and program.root(name)[0] not in spared
    )


@dataclass(frozen=True, slots=True)
class Aliasing:
    """The result of the rewrite.

    Attributes:
        program: The program with storage shared.
        num_shared: Number of tensors that lie in another's storage, by kind.
        refusals: Where storage could not be shared, by pass, then by step.
    """

    program: Program
    num_shared: Mapping[AliasKind, int]
    refusals: tuple[Refusal, ...]


def share(
    program: Program,
    kinds: Collection[AliasKind],
    boundary: Boundary = Boundary.INCLUDE,
    alignment: int = DEFAULT_ALIGNMENT,
) -> Program:
    """Return `program` with storage shared as `kinds` allow, its steps in their present order.

    Args:
        program: The program; its order decides the last use of each operand, so reorder first.
        boundary: Where program inputs and outputs are the caller's, they are neither
            overwritten nor laid over what is not.
        alignment: Alignment of a part's offset in the whole, in bytes.

    Cost: O(tensors + operator operands); with slices and concat, for each operator of
    those kinds also O(parts x steps they live + pairs of tensors in the storages joined).
    """
    return explain(program, kinds, boundary, alignment).program


def explain(
    program: Program,
    kinds: Collection[AliasKind],
    boundary: Boundary = Boundary.INCLUDE,
    alignment: int = DEFAULT_ALIGNMENT,
) -> Aliasing:
    """Share storage as `share` does, and report the gain and the refusals of each kind."""
    rewrite = _Rewrite(program, kinds, boundary, alignment)
    for step in program.steps:  # first, as a kept tensor may be a view of a result
        rewrite.view(step)
    for number, step in enumerate(program.steps):
        rewrite.overwrite(step, number)
    parts = list(_parts(program, kinds))
    if parts or AliasKind.OVERLAP in kinds:
        loads = Loads(liveness(rewrite.result(), boundary=boundary, alignment=alignment))
        for step, kind, found in parts:
            rewrite.pack(step, kind, found, loads)
        if AliasKind.OVERLAP in kinds:
            rewrite.overlap(loads)
    return Aliasing(rewrite.result(), dict(rewrite.num_shared), tuple(rewrite.refusals))


def has_parts(program: Program, kinds: Collection[AliasKind]) -> bool:
    """Tell whether `kinds` may let tensors share some of their bytes, not all."""
    return AliasKind.OVERLAP in kinds or any(True for _ in _parts(program, kinds))


def _parts(
    program: Program, kinds: Collection[AliasKind]
) -> Iterator[tuple[Step, AliasKind, tuple[Part, ...]]]:
    """Yield the steps that cut or join tensors, of the kinds that are wanted."""
    if {AliasKind.SLICES, AliasKind.CONCAT}.isdisjoint(kinds):
        return
    for step in program.steps:
        parts = step.operator.parts(program.operands(step))
        if parts:
            cuts = parts[0].inner in step.outputs
            kind = AliasKind.SLICES if cuts else AliasKind.CONCAT
            if kind in kinds:
                yield step, kind, parts


class _Rewrite:
    def __init__(
        self, program: Program, kinds: Collection[AliasKind], boundary: Boundary, alignment: int
    ) -> None:
        self.num_shared: Counter[AliasKind] = Counter()
        self.refusals: list[Refusal] = []
        self._program = program
        self._kinds = kinds
        self._boundary = boundary
        self._alignment = alignment
        self._storages = Storages(program, kinds, boundary)

    def result(self) -> Program:
        return replace(self._program, tensors=dict(self._storages.tensors))

    def view(self, step: Step) -> None:
        """Let the result of a view lie in its operand."""
        if AliasKind.VIEWS not in self._kinds:
            return
        if not step.operator.is_view(self._program.operands(step)):
            return
        source, result = step.inputs[0], step.outputs[0]
        reason = _why_not_viewed(self._program, source, result)
        if reason is None and not self._storages.share_memory(source, result):
            reason = f"{source!r} lies in another memory"
        if reason is not None:
            self._refuse(AliasKind.VIEWS, step, result, reason)
            return
        self._storages.put_into(result, Alias(source), same_bytes=True)
        self.num_shared[AliasKind.VIEWS] += 1

    def overwrite(self, step: Step, number: int) -> None:
        """Let the result overwrite the first operand that no later step reads."""
        kind = overwriting_kind(step)
        operands = overwritable(self._program, step, self._kinds)
        if not operands:
            return
        result = step.outputs[0]
        reasons: list[str] = []
        for source in operands:
            reason = self._why_not_over(step, number, source)
            if reason is None:
                over_input = self._storages.holds_input(source)
                self._storages.put_into(result, Alias(source), same_bytes=False)
                self.num_shared[AliasKind.REUSE_INPUTS if over_input else kind] += 1
                return
            reasons.append(reason)
        self._refuse(kind, step, result, reasons[0])

    def _why_not_over(self, step: Step, number: int, source: str) -> str | None:
        storages = self._storages
        if self._program.tensors[source].kind is TensorKind.CONSTANT:
            return f"{source!r} is a constant"
        if not storages.share_memory(source, step.outputs[0]):
            return f"{source!r} lies in another memory"
        if self._boundary is Boundary.EXCLUDE and storages.is_kept(step.outputs[0]):
            return "the caller owns the memory"
        if storages.is_kept(source):
            return f"the caller or the next run needs {source!r}"
        if storages.last_read(source) > number:
            return f"step {storages.last_read(source)} still reads {source!r}"
        for other in step.reads:
            if other != source and storages.owner(other) == storages.owner(source):
                return f"{other!r} would be overwritten before it is read"
        return None

    def pack(self, step: Step, kind: AliasKind, parts: tuple[Part, ...], loads: Loads) -> None:
        """Put parts inside the whole where that lowers the load."""
        storages = self._storages
        possible: dict[str, tuple[Part, int]] = {}
        for part in parts:
            reason = self._why_not_inside(step, kind, part)
            if part.offset is None or reason is not None:
                self._refuse(kind, step, part.inner, reason or part.reason)
            else:
                possible[storages.owner(part.inner)] = (part, part.offset)
        if not possible:
            return
        outer = storages.owner(next(iter(possible.values()))[0].outer)
        moved = [root for root, (part, _) in possible.items() if part.moves]
        kept = loads.cheapest(outer, moved) if moved else None
        for root in moved:
            if root != kept:
                part, _ = possible.pop(root)
                self._refuse(kind, step, part.inner, "another operand shares that storage")
        chosen = loads.best(outer, tuple(possible))
        for root, (part, offset) in possible.items():
            if root in chosen:
                loads.lay(outer, root)
                alias = Alias(part.outer, offset)
                storages.put_into(part.inner, alias, same_bytes=not part.moves)
                self.num_shared[kind] += 1
            else:
                self._refuse(kind, step, part.inner, "sharing would not lower the load")

    def _why_not_inside(self, step: Step, kind: AliasKind, part: Part) -> str | None:
        storages = self._storages
        if part.offset is None:
            return part.reason
        if not storages.share_memory(part.inner, part.outer):
            return f"{part.outer!r} lies in another memory"
        place = storages.offset(part.outer) + part.offset
        if (reason := storages.why_not_at(place, self._alignment)) is not None:
            return reason
        if kind is AliasKind.CONCAT and step.inputs.count(part.inner) > 1:
            return "the tensor is joined more than once"
        theirs = storages.is_callers(part.inner), storages.is_callers(part.outer)
        if theirs[0] or (kind is AliasKind.CONCAT and theirs[1]):
            return "the caller owns the memory"
        if part.moves:
            return self._why_not_moved(step, part)
        return storages.why_not_inside(part, part.offset)

    def _why_not_moved(self, step: Step, part: Part) -> str | None:
        storages = self._storages
        if storages.is_kept(part.inner):
            return f"the caller or the next run needs {part.inner!r}"
        for other in step.reads:
            if other != part.inner and storages.owner(other) == storages.owner(part.inner):
                return f"{other!r} would be overwritten before it is read"
        return storages.why_not_inside(part, 0 if part.offset is None else part.offset)

    def overlap(self, loads: Loads) -> None:
        """Let results overlap the operands that they consume, wherever that lowers the peak."""
        found = overlap_at_peaks(self._program, self._storages, loads, self._alignment)
        self._storages = found.storages
        if found.num_overlaps:
            self.num_shared[AliasKind.OVERLAP] = found.num_overlaps
        if found.reason:
            step = self._program.steps[found.step]
            self._refuse(AliasKind.OVERLAP, step, step.outputs[0], found.reason)

    def _refuse(self, kind: AliasKind, step: Step, tensor: str, reason: str) -> None:
        self.refusals.append(Refusal(kind, step.name, tensor, reason))


def _why_not_viewed(program: Program, source: str, result: str) -> str | None:
    """Return why the result of a view cannot lie in its operand, None if it can."""
    one, other = program.tensors[source], program.tensors[result]
    kinds = {one.kind, program.tensors[program.root(source)[0]].kind}
    if TensorKind.CONSTANT in kinds:
        return "a constant has no storage in the arena"
    if TensorKind.STATE in kinds:
        return "the state's bytes may change under the view"
    if other.alias is not None:
        return "the tensor shares another storage already"
    if not same(one.size, other.size):
        return "the sizes differ"
    return None
