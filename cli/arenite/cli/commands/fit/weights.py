"""Weights in the output of `arenite fit`: resident ones, loaded ones, and runs a second."""

from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console, RenderableType

from arenite.cli.render.facts import listing, name
from arenite.pipeline.base import both, duration, percent
from arenite.pipeline.making import FittedModel, in_speeds


def figures(fitted: FittedModel) -> dict[str, Any]:
    """Return bytes of the weights of a program, and the time of its shortest run, as JSON."""
    return {
        "total": fitted.total,
        "resident_weights": fitted.resident_weights,
        "loaded_weights": fitted.loaded_weights,
        "run_ms": 1000 * fitted.run_s,
    }


def rows(fitted: FittedModel) -> list[tuple[str, RenderableType]]:
    """Return the same as rows of facts; none if nothing limits the weights."""
    if fitted.budget is None and fitted.fitting.lowered.streaming is None:
        return []
    speed = in_speeds(fitted.fitting.link)
    loaded = f"{both(fitted.loaded_weights)} loaded in each run"
    return [
        ("weights", f"{both(fitted.resident_weights)} resident, {loaded}"),
        ("run", f"{duration(fitted.run_s)}, {_rate(fitted, fitted.run_s)}, predicted"),
        ("link", f"{speed}, {fitted.fitting.link_origin}"),
    ]


def as_json(models: Sequence[FittedModel], seconds: Sequence[float]) -> dict[str, Any]:
    """Return programs with fewer and fewer resident weights.

    Args:
        seconds: Measured ones of each; none if they were not measured.
    """
    entries = [{"height": each.height, **figures(each)} for each in models]
    for entry, measured in zip(entries, seconds, strict=False):
        entry["measured_ms"] = 1000 * measured
    fitting = models[0].fitting
    return {
        "model": str(fitting.model),
        "costs": fitting.machine.words,
        "link": {"back_bytes_per_s": fitting.link.back, "origin": fitting.link_origin},
        "frontier": entries,
        "output": None,
    }


def as_text(models: Sequence[FittedModel], seconds: Sequence[float]) -> Callable[[Console], None]:
    """Return a function that prints the same."""

    def show(console: Console) -> None:
        fitting = models[0].fitting
        console.print(name(fitting.lowered.name, "bold"), soft_wrap=True)
        columns = ["arena and weights>", "of all>", "arena>", "resident>", "loaded>", "predicted>"]
        cells = [
            [
                both(each.total), percent(each.total / models[0].total), both(each.height),
                both(each.resident_weights), both(each.loaded_weights), _rate(each, each.run_s),
            ]
            for each in models
        ]  # fmt: skip
        if seconds:
            columns.append("measured>")
        for row, each, measured in zip(cells, models, seconds, strict=False):
            row.append(_rate(each, measured))
        console.print(listing(columns, cells))
        console.print(
            name(
                f"Predicted by the {fitting.machine.words}, and {in_speeds(fitting.link)}, "
                f"{fitting.link_origin}."
            ),
            soft_wrap=True,
        )

    return show


def _rate(fitted: FittedModel, seconds: float) -> str:
    grows = any(each.grows for each in fitted.fitting.program.dimensions)
    return f"{1 / seconds:,.1f} {'tokens' if grows else 'runs'}/s"
