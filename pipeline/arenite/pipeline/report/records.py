"""Facts of a record beside its place."""

from collections.abc import Iterable
from dataclasses import dataclass

from arenite.pipeline.base.text import elided, printable
from arenite.planner import Program, Source, TensorKind, UsageRecord

_MAX_CONSUMERS = 3
_NAME_LENGTH = 64
_UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class RecordFacts:
    """One record in words.

    Attributes:
        kind: Of its first tensor.
        label: Of the operator that makes it, or that it is an input.
        about: Element type, shape and kind.
        consumers: Who reads it, the first few.
    """

    kind: str
    label: str
    about: str
    producer: str
    consumers: str


def record_facts(source: Source) -> list[RecordFacts]:
    """Return the facts of each record of the problem, in its order."""
    program = source.program
    if program is None:
        nothing = RecordFacts("record", "record", "record", _UNKNOWN, _UNKNOWN)
        return [nothing] * len(source.problem.records)
    makers: dict[str, int] = {}
    readers: dict[str, list[int]] = {}
    for number, step in enumerate(program.steps):
        for name in step.writes:
            makers.setdefault(name, number)
        for name in step.reads:
            readers.setdefault(name, []).append(number)
    return [_facts(program, record, makers, readers) for record in source.problem.records]


def _facts(
    program: Program, record: UsageRecord, makers: dict[str, int], readers: dict[str, list[int]]
) -> RecordFacts:
    if not record.tensors:
        who = _called(program, record.start)
        label = program.steps[record.start].operator.label
        return RecordFacts("scratch", label, "scratch", who, who)
    tensors = [program.tensors[name] for name in record.tensors]
    first = program.tensors.get(record.name, tensors[0])
    steps = [makers[tensor.name] for tensor in tensors if tensor.name in makers]
    made_at = min(steps, default=None)
    shape = "x".join(map(str, first.shape)) or "scalar"
    about = f"{first.dtype.label} {shape}, {first.kind.value}"
    if len(tensors) > 1:
        about += f", {len(tensors)} tensors in one storage"
    by, label = "nobody", "nobody"
    if first.kind is TensorKind.INPUT:
        by, label = "the caller", "graph input"
    return RecordFacts(
        first.kind.value,
        label if made_at is None else program.steps[made_at].operator.label,
        about,
        by if made_at is None else _called(program, made_at),
        _consumers(
            program, record, (step for each in tensors for step in readers.get(each.name, ()))
        ),
    )


def _consumers(program: Program, record: UsageRecord, steps: Iterable[int]) -> str:
    ordered = sorted(set(steps))
    words = [_called(program, step) for step in ordered[:_MAX_CONSUMERS]]
    if len(ordered) > _MAX_CONSUMERS:
        words.append(f"{len(ordered) - _MAX_CONSUMERS} more")
    if not set(program.output_tensors).isdisjoint(record.tensors):
        words.append("the caller")
    return ", ".join(words) or "nobody"


def _called(program: Program, number: int) -> str:
    step = program.steps[number]
    name = elided(printable(step.name), _NAME_LENGTH)
    return f"{name} ({printable(step.operator.label)}, step {number})"
