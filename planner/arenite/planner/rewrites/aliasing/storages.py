"""Which tensors share a storage, which of its bytes they take, and when they need them."""

import copy
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from arenite.planner.operators.parts import Part
from arenite.planner.programs.program import Program, Step
from arenite.planner.programs.rules import AliasKind, Boundary
from arenite.planner.sizes import Ranges, Size, depends, same
from arenite.planner.tensors import Alias, Tensor, TensorKind


@dataclass(slots=True)
class _Place:
    """Where a tensor lies, when it is needed, and whose bytes it holds.

    Tensors with the same `value` may overlap where they hold the same bytes of that value.
    """

    root: str
    offset: int
    size: int
    written: int
    needed: int
    value: str
    value_offset: int = 0

    @property
    def end(self) -> int:
        return self.offset + self.size

    def disturbs(self, other: "_Place", ranges: Ranges) -> bool:
        """Tell whether both may need a byte of one storage for different values at one step."""
        return (
            max(self.written, other.written) <= min(self.needed, other.needed)
            and not self.holds_same(other)
            and not (self.is_below(other, ranges) or other.is_below(self, ranges))
        )

    def is_below(self, other: "_Place", ranges: Ranges) -> bool:
        """Tell whether it ends where the other begins, or before, at all sizes."""
        if not depends(self.offset) and not depends(other.offset):  # no size exceeds the highest
            return int(self.end) <= other.offset
        return ranges.never_exceeds(self.end, other.offset)

    def holds_same(self, other: "_Place") -> bool:
        """Tell whether bytes that both take are the same bytes of one value."""
        return self.value == other.value and same(
            self.offset - self.value_offset, other.offset - other.value_offset
        )


class Storages:
    """The state of a rewrite; the program itself is not changed.

    Attributes:
        tensors: Tensors by name, including storages made for several tensors.
    """

    def __init__(self, program: Program, kinds: Collection[AliasKind], boundary: Boundary) -> None:
        self.tensors = dict(program.tensors)
        self._program = program
        self._ranges = Ranges(program.dimensions)
        self._counted = {each.name for each in program.dimensions if each.counted_by}
        self._places: dict[str, _Place] = {}
        self._members: dict[str, list[str]] = {}
        self._holders: dict[str, list[str]] = {}  # of each value, all in one storage
        self._last_read: dict[str, int] = {}
        self._views: dict[str, Alias] = {}
        self._kept: set[str] = set()
        self._callers: set[str] = set()
        self._fill()
        lasting = [t.name for t in program.tensors.values() if t.kind in _LASTING]
        outputs = [name for name in program.output_tensors if name not in program.spans]
        self._keep((*outputs, *lasting))
        if boundary is Boundary.EXCLUDE:
            names = (*program.input_tensors, *program.output_tensors)
            self._callers = {self.owner(name) for name in names}
        if boundary is Boundary.EXCLUDE or AliasKind.REUSE_INPUTS not in kinds:
            self._keep(program.input_tensors)

    def _fill(self) -> None:
        program = self._program
        for name, tensor in program.tensors.items():
            root, offset = program.root(name)
            self._places[name] = _Place(root, offset, tensor.size, -1, -1, name)
            self._members.setdefault(root, []).append(name)
            self._holders[name] = [name]
        written = {name for step in program.steps for name in step.writes}
        for name, tensor in program.tensors.items():
            if tensor.alias is not None and name not in written:
                self._views[name] = tensor.alias
        for number, step in enumerate(program.steps):
            for name in step.writes:
                place = self._places[name]
                place.written = number
                place.needed = max(place.needed, number)
                alias = self.tensors[name].alias
                if alias is not None and _copies(program, step, alias):
                    self._join(name, alias)
            for name in step.reads:
                place = self._places[name]
                place.needed = self._last_read[place.root] = number
                self._need_viewed(name, number)
        for name, (first, last) in program.numbered_spans().items():
            place = self._places[name]
            place.written = first if place.written < 0 else min(place.written, first)
            place.needed = max(place.needed, last)
            self._last_read[place.root] = max(self._last_read.get(place.root, -1), last)
            self._need_viewed(name, last)
        for name, alias in self._views.items():
            self._join(name, alias)

    def _need_viewed(self, name: str, step: int) -> None:
        """Extend the need for the tensors under a view to that of the view."""
        while name in self._views:
            name = self._views[name].tensor
            self._places[name].needed = max(self._places[name].needed, step)

    def _keep(self, names: Iterable[str]) -> None:
        """Protect the storages of these tensors from being overwritten."""
        for name in names:
            self._kept.add(self.owner(name))
            self._places[name].needed = len(self._program.steps)
            self._need_viewed(name, len(self._program.steps))

    def owner(self, name: str) -> str:
        """Return the tensor in whose storage `name` lies."""
        return self._places[name].root

    def offset(self, name: str) -> int:
        """Return the first byte of `name` in its storage."""
        return self._places[name].offset

    def why_not_at(self, offset: int, alignment: int) -> str | None:
        """Return why no part can begin at a byte of a storage, None if one can."""
        if isinstance(offset, Size) and self._counted & offset.expression.names:
            return "its place depends on what a step counts in the run"
        if not self._ranges.never_exceeds(offset % alignment, 0):
            return f"byte {offset} is not aligned to {alignment}" + " at all sizes" * depends(
                offset
            )
        return None

    def is_kept(self, name: str) -> bool:
        """Tell whether the caller or the next run needs the storage's bytes."""
        return self.owner(name) in self._kept

    def share_memory(self, one: str, other: str) -> bool:
        """Tell whether the storages of two tensors lie in one memory."""
        memories = [self.tensors[self.owner(name)].memory for name in (one, other)]
        return memories[0] == memories[1]

    def holds_input(self, name: str) -> bool:
        """Tell whether the bytes of `name` are those of a program input."""
        return self._places[name].value in self._program.input_tensors

    def is_callers(self, name: str) -> bool:
        """Tell whether the storage belongs to the caller, outside the arena."""
        return self.owner(name) in self._callers

    def last_read(self, name: str) -> int:
        """Return the last step that reads the storage, -1 if none does."""
        return self._last_read.get(self.owner(name), -1)

    def why_not_inside(self, part: Part, offset: int) -> str | None:
        """Return why the storage of `part.inner` cannot lie inside `part.outer`, None if it can.

        Cost: O(tensors of the one storage x tensors of the other).
        """
        inner, outer = self._places[part.inner], self._places[part.outer]
        if self.tensors[inner.root].kind in _BOUND or inner.root in self._program.input_tensors:
            return f"{part.inner!r} is placed already"
        is_first = same(inner.offset, 0)
        if not is_first or not same(inner.size, self._places[inner.root].size):
            return f"{part.inner!r} is itself a part of {inner.root!r}"
        if outer.root == inner.root:
            return f"{part.inner!r} shares the storage of {part.outer!r} already"
        if self.tensors[outer.root].kind in _LASTING:
            return f"{outer.root!r} is not an activation"
        for name in self._members[inner.root]:
            place = self._places[name]
            moved = self._moved(place, part, offset)
            used_up = part.moves and place.needed == outer.written and place.holds_same(inner)
            for other in self._members[outer.root]:
                there = self._places[other]
                if used_up and there.holds_same(outer):
                    continue
                if moved.disturbs(there, self._ranges):
                    return f"{other!r} and {name!r} would need the same bytes at one step"
        return None

    def put_into(self, name: str, alias: Alias, *, same_bytes: bool) -> None:
        """Move the whole storage of `name`, which begins with it, inside another.

        Args:
            name: A tensor as large as its storage.
            alias: Where to put it.
            same_bytes: Whether `name` holds the bytes that are there; if not, it overwrites
                them.
        """
        old = self.owner(name)
        self.tensors[old] = replace(self.tensors[old], alias=alias)
        target = self._places[alias.tensor]
        if same_bytes:
            self._join(name, alias)
        for member in self._members.pop(old):
            place = self._places[member]
            place.root, place.offset = target.root, place.offset + target.offset + alias.offset
            self._members[target.root].append(member)
        last_read = max(self._last_read.get(root, -1) for root in (old, target.root))
        self._last_read[target.root] = last_read
        if old in self._kept:
            self._kept.add(target.root)
        if old in self._callers:
            self._callers.add(target.root)

    def why_not_overlapped(self, result: str, source: str, step: int, shift: int) -> str | None:
        """Return why two storages cannot overlap, with `source` consumed at `step`.

        Args:
            result: Written at `step`.
            source: Read at `step`, its storage `shift` bytes above that of `result`.
            step: Step of the operator.
            shift: Bytes; may be negative.

        Cost: O(tensors of the one storage x tensors of the other).
        """
        above, below = self._places[source], self._places[result]
        for place in (above, below):
            if self.tensors[place.root].kind in _LASTING:
                return f"{place.root!r} is not an activation"
        if below.root in self._program.input_tensors:
            return f"{result!r} is placed already"
        if above.root == below.root:
            return "they share a storage already"
        for name in self._members[above.root]:
            place = self._places[name]
            moved = replace(place, offset=place.offset + shift)
            used_up = place.needed == step and place.holds_same(above)
            for other in self._members[below.root]:
                there = self._places[other]
                if not (used_up and other == result) and moved.disturbs(there, self._ranges):
                    return f"{other!r} and {name!r} would need the same bytes at one step"
        return None

    def merge(self, storage: Tensor, offsets: Mapping[str, int]) -> None:
        """Put whole storages into a new one, at these offsets."""
        self.tensors[storage.name] = storage
        self._members[storage.name] = []
        self._places[storage.name] = _Place(storage.name, 0, 0, -1, -1, storage.name)
        for root, offset in offsets.items():
            self.put_into(root, Alias(storage.name, offset), same_bytes=False)

    def copy(self) -> "Storages":
        """Return a state that changes independently of this one.

        Cost: O(tensors).
        """
        # Program and tensors never change; they need no copies.
        unchanging = {id(each): each for each in (self._program, *self.tensors.values())}
        return copy.deepcopy(self, unchanging)

    def _join(self, name: str, alias: Alias) -> None:
        """Record that `name`, and every tensor with its value, holds the bytes at `alias`."""
        target, place = self._places[alias.tensor], self._places[name]
        old = place.value
        shift = target.value_offset + alias.offset - place.value_offset
        holders = self._holders.pop(old)
        for holder in holders:
            other = self._places[holder]
            other.value, other.value_offset = target.value, other.value_offset + shift
        self._holders.setdefault(target.value, []).extend(holders)

    def _moved(self, place: _Place, part: Part, offset: int) -> _Place:
        """Return where a tensor of `part.inner`'s storage would lie."""
        inner, outer = self._places[part.inner], self._places[part.outer]
        value, value_offset = place.value, place.value_offset
        if value == inner.value and not part.moves:
            value = outer.value
            value_offset += outer.value_offset + offset - inner.value_offset
        return _Place(
            outer.root,
            place.offset + outer.offset + offset,
            place.size,
            place.written,
            place.needed,
            value,
            value_offset,
        )


def _copies(program: Program, step: Step, alias: Alias) -> bool:
    """Tell whether the step, whose output lies at `alias`, would copy it there."""
    operands = program.operands(step)
    same = step.operator.is_view(operands) or step.operator.changes_nothing(operands)
    return same and step.inputs[:1] == (alias.tensor,)


_LASTING = (TensorKind.CONSTANT, TensorKind.STATE)
_BOUND = (*_LASTING, TensorKind.INPUT)
