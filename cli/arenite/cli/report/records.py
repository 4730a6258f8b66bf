"""What a reader wants to know of a record beside where it lies."""

from collections.abc import Iterable
from dataclasses import dataclass

from arenite.cli.render.text import elided, printable
from arenite.planner.graph import Graph, TensorKind
from arenite.planner.problem import UsageRecord
from arenite.planner.source import Source

_MAX_CONSUMERS = 3
_NAME_LENGTH = 64
_UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class RecordFacts:
    """One record in words.

    Attributes:
        kind: Of its first tensor.
        op_type: Type of the operator that makes it.
        about: Element type, shape and kind.
        producer: Who makes it.
        consumers: Who reads it, the first few.
    """

    kind: str
    op_type: str
    about: str
    producer: str
    consumers: str


def record_facts(source: Source) -> list[RecordFacts]:
    """Return the facts of each record of the problem, in its order."""
    graph = source.graph
    if graph is None:
        nothing = RecordFacts("record", "record", "record", _UNKNOWN, _UNKNOWN)
        return [nothing] * len(source.problem.records)
    makers: dict[str, int] = {}
    readers: dict[str, list[int]] = {}
    for step, operator in enumerate(graph.operators):
        for name in operator.writes:
            makers.setdefault(name, step)
        for name in operator.reads:
            readers.setdefault(name, []).append(step)
    return [_facts(graph, record, makers, readers) for record in source.problem.records]


def _facts(
    graph: Graph, record: UsageRecord, makers: dict[str, int], readers: dict[str, list[int]]
) -> RecordFacts:
    if not record.tensors:
        operator = graph.operators[record.start]
        who = _called(graph, record.start)
        return RecordFacts("scratch", operator.op_type, "scratch", who, who)
    tensors = [graph.tensors[name] for name in record.tensors]
    first = graph.tensors.get(record.name, tensors[0])
    steps = [makers[tensor.name] for tensor in tensors if tensor.name in makers]
    made_at = min(steps, default=None)
    shape = "x".join(map(str, first.shape)) or "scalar"
    about = f"{first.dtype.label} {shape}, {first.kind.value}"
    if len(tensors) > 1:
        about += f", {len(tensors)} tensors in one storage"
    by = "the caller" if first.kind is TensorKind.INPUT else "nobody"
    return RecordFacts(
        first.kind.value,
        by if made_at is None else graph.operators[made_at].op_type,
        about,
        by if made_at is None else _called(graph, made_at),
        _consumers(
            graph, record, (step for each in tensors for step in readers.get(each.name, ()))
        ),
    )


def _consumers(graph: Graph, record: UsageRecord, steps: Iterable[int]) -> str:
    ordered = sorted(set(steps))
    words = [_called(graph, step) for step in ordered[:_MAX_CONSUMERS]]
    if len(ordered) > _MAX_CONSUMERS:
        words.append(f"{len(ordered) - _MAX_CONSUMERS} more")
    if not set(graph.outputs).isdisjoint(record.tensors):
        words.append("the caller")
    return ", ".join(words) or "nobody"


def _called(graph: Graph, step: int) -> str:
    operator = graph.operators[step]
    name = elided(printable(operator.name), _NAME_LENGTH)
    return f"{name} ({printable(operator.op_type)}, step {step})"
