"""The output of `arenite fit`: in the terminal, and as JSON."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.text import Text

from arenite.cli.commands.fit import weights
from arenite.cli.console.streams import drawing_width, has_colour
from arenite.cli.render import operator_map
from arenite.cli.render.facts import (
    facts,
    held_as_json,
    held_row,
    listing,
    memories_as_json,
    memory_rows,
    name,
    spread_as_json,
    spread_row,
)
from arenite.pipeline.base import (
    both,
    distance,
    duration,
    gap,
    grouped,
    percent,
    plural,
    printable,
)
from arenite.pipeline.making import FittedModel, Fitting, Rescheduled, in_speeds
from arenite.pipeline.report import Point, frontier_rows, record_facts
from arenite.planner import Budget, Candidate, Program, Source
from arenite.planner.operators import Strips
from arenite.runtime import SessionMemory
from arenite.strategies import InBands, OverMemories, Region

Show = Callable[[Console], None]


def fit_as_json(
    fitted: FittedModel, budget: Budget | None, held: SessionMemory, output: Path | None
) -> dict[str, Any]:
    """Return the chosen program as JSON."""
    fitting, fit = fitted.fitting, fitted.fit
    bands = InBands.of(fit)
    return {
        "model": str(fitting.model),
        "budget": _budget_of(fitted, budget),
        **_figures(fit),
        "costs": fitting.machine.words,
        "link": {
            "out_bytes_per_s": fitting.link.out,
            "back_bytes_per_s": fitting.link.back,
            "origin": fitting.link_origin,
        },
        "resident_bytes": held.total,
        "held": held_as_json(held),
        **weights.figures(fitted),
        "whole_height": fitting.whole.height,
        "callers_bytes": fitting.callers_bytes(fit),
        "regions": [_region_as_json(bands.base, region) for region in bands.regions],
        "strips": [
            {
                "first": each.layers[0].name,
                "last": each.layers[-1].name,
                "steps": len(each.layers),
                "strips": each.num_across,
            }
            for each in _strips(bands.base)
        ],
        **_rescheduled_as_json(fit),
        **_memories_as_json(fit),
        "output": output and str(output),
    }


def with_map(show: Show, fit: Candidate, *, wanted: bool | None) -> Show:
    """Return a function that prints the map of a program below other output.

    Args:
        show: Prints the output above it.
        wanted: Whether it is drawn; None for on a terminal only.
    """

    def both_shown(console: Console) -> None:
        show(console)
        is_one = len(fit.plan.heights) == 1  # of several memories there is no one map
        if is_one and (console.is_terminal if wanted is None else wanted):
            source = Source.derived("", "", fit.derivation)
            labels = [fact.label for fact in record_facts(source)]
            console.print()
            console.print(
                operator_map.draw(
                    fit.problem, fit.plan, labels, drawing_width(console),
                    colour=has_colour(console),
                )
            )  # fmt: skip

    return both_shown


def fit_text(
    fitted: FittedModel, budget: Budget | None, held: SessionMemory, output: Path | None
) -> Show:
    """Return a function that prints the chosen program."""
    fitting, fit = fitted.fitting, fitted.fit

    def show(console: Console) -> None:
        console.print(name(fitting.lowered.name, "bold"), soft_wrap=True)
        rows: list[tuple[str, RenderableType]] = [
            ("arena", f"{both(fit.height)}, {_distance(fit)}"),
            ("whole", _whole(fit)),
            *_rows_of_memories(fit),
        ]
        if fitting.has_callers:
            callers = both(fitting.callers_bytes(fit))
            rows.append(("caller", f"{callers} of inputs and outputs, in a memory of their own"))
        rows += weights.rows(fitted)
        size = _budget_of(fitted, budget)
        if size is not None:
            covered = "" if fitted.budget is None else " of arena and weights"
            taken = fit.height if fitted.budget is None else fitted.total
            rows.append(("budget", f"{both(size)}{covered}, {both(size - taken)} free"))
        rows += [
            *_means(fit),
            ("turns", f"{grouped(fit.num_turns)} of {plural(_steps(fitting), 'step')}"),
            ("price", _price(fit)),
            ("predicted", f"by the {fitting.machine.words}"),
            *(
                [("link", f"{in_speeds(fitting.link)}, {fitting.link_origin}")]
                if fit.note(Rescheduled)
                else []
            ),
            held_row(held),
        ]
        if output is not None:
            rows.append(("written", str(output)))
        console.print(facts((label, _lines(cell)) for label, cell in rows))

    return show


def frontier_as_json(
    fitting: Fitting, fits: Sequence[Candidate], latencies: Sequence[float], output: Path | None
) -> dict[str, Any]:
    """Return the frontier, for programs; latencies are those measured, if any were."""
    entries = [_figures(fit) for fit in fits]
    for entry, latency in zip(entries, latencies, strict=False):
        entry["latency_ms"] = 1000 * latency
    return {
        "model": str(fitting.model),
        "lower_bound_whole": fitting.whole.plan.lower_bound,
        "costs": fitting.machine.words,
        "frontier": entries,
        "output": output and str(output),
    }


def frontier_text(
    fitting: Fitting, fits: Sequence[Candidate], latencies: Sequence[float], output: Path | None
) -> Show:
    def show(console: Console) -> None:
        console.print(name(fitting.lowered.name, "bold"), soft_wrap=True)
        columns = ["arena>", "of whole>", "multiply-adds>", "turns>", "predicted>"]
        if latencies:
            columns += ["measured>", "of whole>"]
        rows = frontier_rows([Point.of(fit) for fit in fits], latencies)
        console.print(
            listing(
                columns,
                (
                    (both(fit.height), *(cell.text for cell in cells[1:]))
                    for fit, cells in zip(fits, rows, strict=True)
                ),
            )
        )
        console.print(name(f"Predicted by the {fitting.machine.words}."), soft_wrap=True)
        if len(fits) == 1:
            console.print("Nothing in it can run in bands for less.")
        if output is not None:
            console.print(facts([("written", name(str(output)))]))

    return show


def _figures(fit: Candidate) -> dict[str, Any]:
    return {
        **Point.of(fit).as_json(),
        "bytes_moved": _bytes_moved(fit),
        "lower_bound": fit.plan.lower_bound,
    }


def _region_as_json(program: Program, region: Region) -> dict[str, Any]:
    names = _step_names(program, region)
    return {
        "first": names[0], "last": names[-1], "steps": len(names), "rows": region.rows,
        "columns": region.columns or None,
    }  # fmt: skip


def _budget_of(fitted: FittedModel, budget: Budget | None) -> int | None:
    """Return the bytes of a budget, of the arena or of arena and weights."""
    if fitted.budget is not None or budget is None:
        return fitted.budget
    return budget.bytes_of(fitted.whole_height)


def _steps(fitting: Fitting) -> int:
    return len(fitting.program.steps)


def _regions_in_words(program: Program, regions: Sequence[Region]) -> str:
    if not regions:
        return "nothing: the model fits whole"
    lines = []
    for region in regions:
        names = _step_names(program, region)
        rows = "row by row" if region.rows == 1 else f"{region.rows} rows at a time"
        if region.columns:
            rows += f", in strips of {plural(region.columns, 'column')}"
        lines.append(f"{plural(len(names), 'step')}, {rows}: {_ends(names)}")
    return "\n".join(lines)


def _step_names(program: Program, region: Region) -> list[str]:
    names: list[str] = []
    for step in program.steps[region.start : region.stop]:
        operator = step.operator
        layers = operator.layers if isinstance(operator, Strips) else (step,)
        names += [each.name for each in layers]
    return names


def _ends(names: Sequence[str]) -> str:
    return f"{printable(names[0])} to {printable(names[-1])}"


def _strips(program: Program) -> list[Strips]:
    return [step.operator for step in program.steps if isinstance(step.operator, Strips)]


def _strips_in_words(operator: Strips) -> str:
    names = [layer.name for layer in operator.layers]
    return f"{plural(len(names), 'step')}, {plural(operator.num_across, 'strip')}: {_ends(names)}"


def _lines(text: RenderableType) -> RenderableType:
    """Return lines as a cell; names in them are printable already, or alone on the line."""
    if not isinstance(text, str):
        return text
    return Text("\n").join(name(line) for line in text.split("\n"))


def _distance(fit: Candidate) -> str:
    """Return the gap of the arena to its bound; spilled tensors are not counted."""
    plan = fit.plan
    if len(plan.heights) > 1 and fit.note(OverMemories) is not None:
        return f"in {len(plan.heights)} memories"
    if fit.note(Rescheduled) is None:
        return distance(plan)
    height, bound = plan.heights[0], plan.lower_bounds[0]
    return "optimal" if height == bound else f"{gap(height, bound)} above the bound"


def _means(fit: Candidate) -> list[tuple[str, str]]:
    """Return the rows that name the bands, strips, recomputed steps and spills."""
    rescheduled, bands = fit.note(Rescheduled), InBands.of(fit)
    in_bands = [
        ("in bands", _regions_in_words(bands.base, bands.regions)),
        *(("in strips", _strips_in_words(each)) for each in _strips(bands.base)),
    ]
    if rescheduled is None:
        return in_bands
    timeline = rescheduled.timeline
    moved = "nothing"
    if fit.spilled:
        moved = (
            f"{both(timeline.bytes_out)} out, {both(timeline.bytes_back)} back; "
            f"{both(fit.spilled)} in a temporary file"
        )
    return [
        *(in_bands if bands.regions else []),
        ("policy", rescheduled.policy),
        ("again", plural(rescheduled.num_repeated, "step")),
        ("spilled", moved),
        *_rounding(rescheduled),
        (
            "time",
            f"{duration(timeline.seconds)} instead of {duration(fit.whole.seconds)}, predicted",
        ),
    ]


def _rounding(rescheduled: Rescheduled) -> list[tuple[str, str]]:
    if not rescheduled.num_rounded:
        return []
    count = plural(rescheduled.num_rounded, "tensor")
    return [("rounded", f"{count} to fp16 meanwhile: outputs are not the same to the bit")]


def _rescheduled_as_json(fit: Candidate) -> dict[str, Any]:
    rescheduled = fit.note(Rescheduled)
    if rescheduled is None:
        return {"policy": None}
    return {
        "policy": rescheduled.policy,
        "steps_again": rescheduled.num_repeated,
        "rounded": rescheduled.num_rounded,
        "bytes_out": rescheduled.timeline.bytes_out,
        "bytes_back": rescheduled.timeline.bytes_back,
        "spilled_bytes": fit.spilled,
        "predicted_s": fit.seconds,
        "predicted_whole_s": fit.whole.seconds,
    }


def _bytes_moved(fit: Candidate) -> int:
    rescheduled = fit.note(Rescheduled)
    return 0 if rescheduled is None else rescheduled.bytes_moved


def _price(fit: Candidate) -> str:
    is_given = fit.note(Rescheduled) is None and not InBands.of(fit).regions
    if is_given and not fit.slowdown:
        return "none"
    than = (
        ""
        if fit.note(OverMemories) is None
        else " than whole in one memory, a byte at a cost of 1"
    )
    return (
        f"{percent(fit.slowdown)} more time{than}, predicted; {fit.multiply_adds_ratio:.3f} times "
        "the multiply-adds"
    )


def _whole(fit: Candidate) -> str:
    """Return the arena of the whole program, and its time over several memories."""
    size = both(fit.whole.height)
    if fit.note(OverMemories) is None:
        return size
    slowdown = _slowdown_of_whole(fit)
    if slowdown is None:
        return f"{size}; these memories have no room for that"
    return f"{size}, over these memories {percent(slowdown)} more time, predicted"


def _slowdown_of_whole(fit: Candidate) -> float | None:
    """Return the predicted time of the whole program over several memories, over one, less 1."""
    over = fit.note(OverMemories)
    if over is None or over.whole_s is None:
        return None
    seconds = fit.whole.seconds
    return over.whole_s / seconds - 1 if seconds else 0.0


def _rows_of_memories(fit: Candidate) -> list[tuple[str, RenderableType]]:
    """Return a row for each memory, and one for the cost of reads and writes."""
    over = fit.note(OverMemories)
    if over is None:
        return []
    found = memory_rows(fit.problem, fit.plan)
    return [*found, spread_row(over.spread)] if found else []


def _memories_as_json(fit: Candidate) -> dict[str, Any]:
    """Return the memories and the cost of reads and writes, as JSON."""
    over = fit.note(OverMemories)
    if over is None:
        return {}
    return {
        "memories": memories_as_json(fit.problem, fit.plan),
        "spread": spread_as_json(over.spread),
        "predicted_slowdown_whole": _slowdown_of_whole(fit),
    }
