"""`arenite inspect`: the memory that a model needs, and what limits it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from arenite.cli.commands.inspect.program import show_program
from arenite.cli.commands.inspect.remedies import Remedy, remedies, sharing
from arenite.cli.console.observer import watched
from arenite.cli.console.results import Results
from arenite.cli.console.streams import drawing_width, has_colour, note
from arenite.cli.options.common import json_option, refuse_beside
from arenite.cli.options.model import reading_options
from arenite.cli.options.sections import MODEL, SectionedCommand
from arenite.cli.render import load_chart
from arenite.cli.render.facts import facts, listing, name, range_as_json, range_rows
from arenite.pipeline.base import (
    Reading,
    both,
    distance,
    grouped,
    percent,
    place,
    plural,
    printable,
)
from arenite.pipeline.making import SUFFIX, backends
from arenite.pipeline.targets import ARENITE, Chosen, Compiled, choose_target
from arenite.planner import AliasKind, Diagnosis, Plan, Program, Source, TensorKind, diagnose
from arenite.planner.placement import load_spans
from arenite.planner.programs import StepLoad
from arenite.planner.rewrites import Aliasing
from arenite.strategies import find

_DECIDED_BY_PROGRAM = (
    "target", "order_name", "dims", "shapes", "values", "boundary", "alignment", "aliases",
    "weight_budget",
)  # fmt: skip


@click.command(cls=SectionedCommand, sections=MODEL)
@click.argument("model", type=click.Path(path_type=Path))
@reading_options
@json_option
def inspect(reading: Reading, model: Path, as_json: bool) -> None:
    """Show what MODEL needs, what limits it and what could lower its peak.

    Lists operators, tensors and the load at every step. Where our runtime runs the model, it
    also shows whose kernels run each operator.

    For a program file, MODEL.arena, it lists the steps that run in bands of rows, the step that
    sets the height of the arena, and the kernels of this machine if it was built with --tune.
    """
    if model.suffix.lower() == SUFFIX:
        refuse_beside(f"the {SUFFIX} file", *_DECIDED_BY_PROGRAM)
        show_program(model, as_json=as_json)
        return
    chosen = choose_target(reading, model)
    source = chosen.source
    ran = backends(Compiled(source)) if chosen.target is ARENITE else ()
    notes = source.program.notes if source.program else ()
    plan = place(find("best"), source.problem.with_capacity(None), watched()).plan
    diagnosis = None if source.program is None else diagnose(source.program, source.problem)
    aliasing = sharing(chosen, model)
    found = () if diagnosis is None else tuple(remedies(chosen, model, aliasing))
    if chosen.note is not None:
        note(chosen.note)

    def text(console: Console) -> None:
        console.print(name(source.name, "bold"), soft_wrap=True)
        console.print(_summary(chosen, plan, diagnosis))
        console.print("" if source.program is None else _contents(source.program))
        if ran and source.program is not None:
            console.print(_backends(source.program, ran))
        console.print(_chart(source, diagnosis, console))
        if diagnosis is not None:
            console.print()
            console.print(printable(diagnosis.advice))
            if found:
                console.print()
                console.print(facts(_remedy_row(remedy, source) for remedy in found))
                console.print(f"With {found[-1].options}: {printable(found[-1].advice)}")
            if aliasing is not None and (aliasing.num_shared or aliasing.refusals):
                console.print()
                console.print(_sharing(aliasing))
        for each in notes:
            console.print(f"note: {printable(each)}")

    Results(as_json=as_json).show(
        _as_json(model, source, diagnosis, found, aliasing, ran)
        | {
            "target": chosen.target.name,
            "order": chosen.order_name,
            "aliases": [kind.value for kind in chosen.aliases],
            "fallback": chosen.fallback,
            "height": plan.height,
            "strategy": plan.strategy,
            "optimal": plan.optimal,
            **range_as_json(source.problem, plan, source.dimensions),
            "notes": list(notes),
        },
        text,
    )


@dataclass(frozen=True, slots=True)
class _Tensors:
    """Tensors of one kind that have storage of their own."""

    count: int
    size: int


def _tensors_by_kind(program: Program) -> dict[TensorKind, _Tensors]:
    by_kind: dict[TensorKind, _Tensors] = {}
    for kind in TensorKind:
        sizes = [
            tensor.size
            for tensor in program.tensors.values()
            if tensor.kind is kind and tensor.alias is None
        ]
        if kind is TensorKind.SCRATCH:
            scratch = (s.operator.scratch(program.operands(s)) for s in program.steps)
            sizes += [size for size in scratch if size]
        if sizes:
            by_kind[kind] = _Tensors(len(sizes), sum(sizes))
    return by_kind


def _operators_by_type(program: Program) -> list[tuple[str, int]]:
    counts = Counter(step.operator.label for step in program.steps)
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _num_aliases(program: Program) -> int:
    return sum(tensor.alias is not None for tensor in program.tensors.values())


def _remedy_row(remedy: Remedy, source: Source) -> tuple[str, str]:
    saved = 1 - remedy.lower_bound / source.problem.lower_bound
    return remedy.options, f"lower bound {both(remedy.lower_bound)}, {percent(saved)} less"


def _sharing(aliasing: Aliasing) -> RenderableType:
    rows: list[tuple[RenderableType, ...]] = []
    for kind in AliasKind:
        shared = aliasing.num_shared.get(kind, 0)
        left = [refusal for refusal in aliasing.refusals if refusal.kind is kind]
        if shared or left:
            why = f"{left[0].operator}: {left[0].reason}" if left else ""
            rows.append((kind.value, grouped(shared), grouped(len(left)), name(why)))
    return listing(("could share storage", "tensors>", "not>", "because, for one"), rows)


def _as_json(
    model: Path,
    source: Source,
    diagnosis: Diagnosis | None,
    found: Sequence[Remedy],
    aliasing: Aliasing | None,
    ran: Sequence[str],
) -> dict[str, object]:
    problem, program = source.problem, source.program
    steps = () if diagnosis is None else diagnosis.steps
    binding = None if diagnosis is None else diagnosis.binding
    return {
        "model": str(model),
        "name": source.name,
        "digest": source.digest,
        "num_operators": len(problem.steps),
        "num_records": len(problem.records),
        "operators": dict(_operators_by_type(program)) if program else {},
        "tensors": {
            kind.value: {"count": tensors.count, "bytes": tensors.size}
            for kind, tensors in (_tensors_by_kind(program) if program else {}).items()
        },
        "num_aliases": _num_aliases(program) if program else 0,
        "naive": problem.naive,
        "lower_bound": problem.lower_bound,
        "capacity": problem.capacity,
        "load": [
            {"start": span.start, "end": span.end, "load": span.load}
            for span in load_spans(problem.records)
        ],
        "backends": dict(sorted(Counter(ran).items())),
        "steps": [
            _step_as_json(step) | {"backend": ran[step.step] if ran else None} for step in steps
        ],
        "binding": None if binding is None else _step_as_json(binding),
        "advice": None if diagnosis is None else diagnosis.advice,
        "remedies": list(map(asdict, found)),
        "sharing": None if aliasing is None else _sharing_as_json(aliasing),
    }


def _sharing_as_json(aliasing: Aliasing) -> dict[str, object]:
    return {
        "shared": {kind.value: count for kind, count in aliasing.num_shared.items()},
        "refused": list(map(asdict, aliasing.refusals)),
    }


def _step_as_json(step: StepLoad) -> dict[str, object]:
    return asdict(step) | {"carried": step.carried}


def _summary(chosen: Chosen, plan: Plan, diagnosis: Diagnosis | None) -> RenderableType:
    source, problem = chosen.source, chosen.source.problem
    rows: list[tuple[str, RenderableType]] = [
        ("digest", source.digest),
        (
            "to place",
            f"{plural(len(problem.records), 'record')} over {plural(problem.num_steps, 'step')}"
            f", {chosen.phrase}",
        ),
        ("no reuse", both(problem.naive)),
        ("height", f"{both(plan.height)}, {distance(plan)}"),
        ("lower bound", _bound(problem.lower_bound, problem.naive)),
        *range_rows(problem, plan, source.dimensions),
    ]
    if problem.capacity is not None:
        rows.append(("capacity", both(problem.capacity)))
    binding = None if diagnosis is None else diagnosis.binding
    if binding is not None:
        rows += [
            ("binds at", name(f"step {binding.step}, {binding.operator}")),
            ("working set", both(binding.working_set)),
            ("carried", both(binding.carried)),
        ]
    return facts(rows)


def _bound(lower_bound: int, naive: int) -> str:
    share = f", {percent(lower_bound / naive)} of no reuse" if naive else ""
    return f"{both(lower_bound)}{share}"


def _contents(program: Program) -> RenderableType:
    operators = listing(
        ("operator", "number>"),
        ((name(label), grouped(count)) for label, count in _operators_by_type(program)),
    )
    rows: list[tuple[RenderableType, ...]] = [
        (kind.value, grouped(tensors.count), both(tensors.size))
        for kind, tensors in _tensors_by_kind(program).items()
    ]
    if aliases := _num_aliases(program):
        rows.append(("in another's storage", grouped(aliases), Text("")))
    tensors_table = listing(("tensors", "number>", "bytes>"), rows)
    side_by_side = Table.grid(padding=(0, 4))
    side_by_side.add_row(operators, tensors_table)
    return side_by_side


def _backends(program: Program, ran: Sequence[str]) -> RenderableType:
    by_backend: dict[str, Counter[str]] = {}
    for step, backend in zip(program.steps, ran, strict=True):
        by_backend.setdefault(backend, Counter())[step.operator.label] += 1
    return listing(
        ("kernels of", "steps>", "operators"),
        (
            (
                backend,
                grouped(counts.total()),
                name(", ".join(f"{number} {kind}" for kind, number in counts.most_common())),
            )
            for backend, counts in sorted(
                by_backend.items(), key=lambda item: (-item[1].total(), item[0])
            )
        ),
    )


def _chart(source: Source, diagnosis: Diagnosis | None, console: Console) -> RenderableType:
    width = drawing_width(console)
    if diagnosis is None:
        return load_chart.draw_spans(list(load_spans(source.problem.records)), width)
    return load_chart.draw_steps(diagnosis.steps, width, colour=has_colour(console))
