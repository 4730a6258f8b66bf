"""The page of a frontier: memory against time, and the memory maps."""

import shlex
from collections.abc import Sequence

import click

from arenite.pipeline.base import both, plural, printable
from arenite.pipeline.making import Fitting
from arenite.pipeline.report import (
    Frontier,
    Groups,
    check_packages,
    frontier_columns,
    frontier_rows,
    made_with,
    maps_of,
    remark,
    render,
)
from arenite.planner import Candidate
from arenite.planner.units import format_size

_MAPS = ("map-whole", "map-least")
_UNITS = ("B", "KiB", "MiB", "GiB")


def frontier_page(fitting: Fitting, fits: Sequence[Candidate], latencies: Sequence[float]) -> str:
    """Return the page.

    Args:
        fits: The frontier, the whole program first.
        latencies: Median seconds of each; none if they were not measured.
    """
    check_packages()
    from arenite.pipeline.report import FRONTIER, as_item, frontier_figure, row_figure

    ratios = [latency / latencies[0] for latency in latencies]
    frontier = Frontier.of(fits, fitting.machine.words)
    maps = maps_of(fits)
    groups = Groups.of_maps(rows for _, rows in maps)
    figures = {FRONTIER: as_item(frontier_figure(frontier.points, ratios))}
    for (_, rows), name in zip(maps, _MAPS, strict=False):
        figures[name] = as_item(row_figure(rows, groups, name))
    model = printable(fitting.lowered.name)
    before, figure, after = _headline(fits, ratios)
    command: Sequence[str] = click.get_current_context().obj or ()
    page = {
        "model": model,
        "before": before,
        "figure": figure,
        "after": after,
        "remark": remark(frontier, is_measured=bool(latencies)),
        "measured": bool(latencies),
        "columns": frontier_columns(latencies),
        "rows": list(frontier_rows(frontier.points, latencies)),
        "colours": list(zip(groups.colours, groups.names, strict=True)),
        "maps": [
            {
                "title": title,
                "about": f"{both(rows.height)}, {plural(rows.turns, 'turn')}",
                "figure": name,
                "height": rows.height,  # both maps share a scale
            }
            for (title, rows), name in zip(maps, _MAPS, strict=False)
        ],
        "binding": printable(frontier.binding),
        "command": printable(shlex.join(("arenite", *command))),
        "made_with": made_with(),
        "digest": fitting.lowered.digest,
    }
    return render("fit.html.j2", page, figures)


def _headline(fits: Sequence[Candidate], ratios: Sequence[float]) -> tuple[str, str, str]:
    whole, least = fits[0], fits[-1]
    if len(fits) == 1:
        return "runs in", format_size(whole.height), "; nothing in it can run in bands for less."
    price = f"{1 + least.slowdown:.2f} times the time, predicted"
    if ratios:
        price = f"{ratios[-1]:.2f} times the time, measured"
    little, much = _in_one_unit(least.height, whole.height)
    return "runs in", little, f"instead of {much}, bit for bit, at {price}."


def _in_one_unit(little: int, much: int) -> tuple[str, str]:
    """Return two sizes in the unit of the smaller, so that they compare at a glance."""
    power = min(max(0, (little.bit_length() - 1) // 10), len(_UNITS) - 1)
    sizes = (size / 1024**power for size in (little, much))
    little_words, much_words = (f"{size:,.0f}" if size >= 100 else f"{size:.3g}" for size in sizes)
    return f"{little_words} {_UNITS[power]}", f"{much_words} {_UNITS[power]}"
