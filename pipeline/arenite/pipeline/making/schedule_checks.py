"""Check a system's program for every order that its schedule allows.

It knows neither lifetimes nor how the plan was made: each order is walked model by model over the
bytes that the steps of the program file touch::

    InvalidPlanError
    ├── OverwrittenOutputError  a model may overwrite what another reads, or what is kept
    ├── SharedAtOnceError       models that may run at once touch the same bytes
    └── TooManyOrdersError      more orders than can be walked
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from arenite.planner.errors import InvalidPlanError
from arenite.planner.placement import Rectangle
from arenite.planner.programs import PlacedRows, Rows, Section, SectionKind, StageRun, verify_run
from arenite.runtime.program import Root, rectangles_of, stage_runs_of, system_of

_MOST_ORDERS = 20_000
_ROUNDS = 2
"""How often a section is repeated; another round finds nothing that the second does not."""


class OverwrittenOutputError(InvalidPlanError):
    """In an order that the schedule allows, a model overwrites what is needed."""


class SharedAtOnceError(InvalidPlanError):
    """Models that may run at the same time touch the same bytes."""


class TooManyOrdersError(InvalidPlanError):
    """The schedule allows more orders than can be checked."""


class _Stretch(NamedTuple):
    memory: str
    begin: int
    end: int


_Bytes: TypeAlias = tuple[_Stretch, ...]
"""In order, none touching another."""
_Order: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Model:
    """What a model does to memory.

    Attributes:
        writes: Bytes that it or its caller writes.
        touches: Bytes that it reads or writes.
        outputs: Bytes of its outputs, by name.
        reads: Names of outputs of others.
        keeps: Names of its own outputs that are kept.
    """

    writes: _Bytes
    touches: _Bytes
    outputs: Mapping[str, _Bytes]
    reads: tuple[str, ...]
    keeps: tuple[str, ...]


def check_system(root: Root) -> bool:
    """Check a program of several models; tell whether it is one.

    Args:
        root: The root table of a program that the core has accepted.

    Raises:
        InvalidPlanError: By the subclass of the first rule broken.

    Cost: O(orders that the schedule allows x models x stretches of bytes that they touch).
    """
    system = system_of(root)
    if system is None:
        return False
    check_stages(stage_runs_of(root, system), list(rectangles_of(root)), system.schedule)
    return True


def check_stages(
    runs: Iterable[StageRun], rectangles: Sequence[Rectangle], schedule: Section
) -> None:
    """Check the models of a system for every order that a schedule allows.

    Args:
        runs: The run of each model.
        rectangles: Bytes that are live, and when.
        schedule: The orders.

    Errors and cost are those of `check_system`.
    """
    models: dict[str, _Model] = {}
    for each in runs:
        verify_run(each.run, _among(rectangles, each.turns))
        models[each.stage.name] = _model(each)
    _check_at_once(models, schedule)
    for number, order in enumerate(_orders(schedule)):
        if number == _MOST_ORDERS:
            raise TooManyOrdersError(
                f"the schedule allows more than {_MOST_ORDERS} orders of its models; put some of "
                "those in sections any_order and maybe into sequences"
            )
        _walk(models, order)


def _among(rectangles: Iterable[Rectangle], turns: range) -> Iterator[Rectangle]:
    """Yield what of the rectangles is live at some turns, counted from the first of these."""
    for each in rectangles:
        start, end = max(each.start, turns.start), min(each.end, turns.stop)
        if start < end:
            yield replace(each, start=start - turns.start, end=end - turns.start)


def _model(each: StageRun) -> _Model:
    tensors = {tensor.name: tensor for tensor in each.run.tensors}

    def stretches(some: Iterable[Rows]) -> Iterator[_Stretch]:
        for rows in some:
            yield from _stretches(tensors[rows.tensor], rows.first, rows.stop)

    def whole(name: str) -> Iterator[_Stretch]:
        return _stretches(tensors[name], 0, len(tensors[name].offsets))

    turns = each.run.turns
    given = [stretch for name in each.given for stretch in whole(name)]
    writes = _merged((*given, *stretches(rows for turn in turns for rows in turn.writes)))
    outputs = {name: _merged(whole(tensor)) for name, tensor in each.outputs.items()}
    read = stretches(rows for turn in turns for rows in turn.reads)
    made = (stretch for stretches_of in outputs.values() for stretch in stretches_of)
    return _Model(
        writes, _merged((*writes, *read, *made)), outputs, each.stage.reads, each.stage.keeps
    )


def _stretches(tensor: PlacedRows, first: int, stop: int) -> Iterator[_Stretch]:
    for offset in tensor.offsets[first:stop]:
        yield _Stretch(tensor.memory, offset, offset + tensor.row_bytes)


def _merged(stretches: Iterable[_Stretch]) -> _Bytes:
    found: list[_Stretch] = []
    for each in sorted(set(stretches)):
        if found and found[-1].memory == each.memory and each.begin <= found[-1].end:
            found[-1] = found[-1]._replace(end=max(found[-1].end, each.end))
        else:
            found.append(each)
    return tuple(found)


def _meet(one: _Bytes, other: _Bytes) -> bool:
    a, b = 0, 0
    while a < len(one) and b < len(other):
        left, right = one[a], other[b]
        if left.memory == right.memory and left.begin < right.end and right.begin < left.end:
            return True
        if (left.memory, left.end) < (right.memory, right.end):
            a += 1
        else:
            b += 1
    return False


def _check_at_once(models: Mapping[str, _Model], schedule: Section) -> None:
    for section in schedule.sections():
        if section.kind is not SectionKind.AT_ONCE:
            continue
        parts = [[part] if isinstance(part, str) else [*part.stages()] for part in section.parts]
        for some, others in itertools.combinations(parts, 2):
            for one, other in itertools.product(some, others):
                a, b = models[one], models[other]
                if _meet(a.writes, b.touches) or _meet(b.writes, a.touches):
                    raise SharedAtOnceError(
                        f"{one!r} and {other!r} may run at once and touch the same bytes",
                        sorted((one, other)),
                    )


def _orders(part: str | Section) -> Iterator[_Order]:
    """Yield the orders of models that a part of a schedule allows."""
    if isinstance(part, str):
        yield (part,)
    elif part.kind is SectionKind.ANY_ORDER:
        for parts in itertools.permutations(part.parts):
            yield from _one_after_another(parts)
    elif part.kind in (SectionKind.MAYBE, SectionKind.REPEAT):
        yield ()
        for rounds in range(1, _ROUNDS + 1 if part.kind is SectionKind.REPEAT else 2):
            yield from _one_after_another(part.parts * rounds)
    else:
        # Those at once do not meet, so their order does not matter.
        yield from _one_after_another(part.parts)


def _one_after_another(parts: Sequence[str | Section]) -> Iterator[_Order]:
    if not parts:
        yield ()
        return
    for first in _orders(parts[0]):
        for rest in _one_after_another(parts[1:]):
            yield first + rest


def _walk(models: Mapping[str, _Model], order: _Order) -> None:
    """Run models in an order and check that each finds what it reads."""
    intact: dict[str, _Bytes] = {}
    lost: dict[str, str] = {}
    for name in order:
        model = models[name]
        for each in model.reads:
            if each not in intact:
                raise _overwritten(each, lost, f"{name!r} reads it", order)
        for each, its in list(intact.items()):
            if each not in model.outputs and _meet(model.writes, its):
                del intact[each]
                lost[each] = name
        intact |= model.outputs
    for name in order:
        for each in models[name].keeps:
            if each not in intact:
                raise _overwritten(each, lost, "it is kept", order)


def _overwritten(
    output: str, lost: Mapping[str, str], needed: str, order: _Order
) -> OverwrittenOutputError:
    how = f"overwritten by {lost[output]!r}" if output in lost else "not made"
    return OverwrittenOutputError(
        f"output {output!r} is {how} and {needed}, in the order {', '.join(order)}", [output]
    )
