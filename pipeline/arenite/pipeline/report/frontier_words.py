"""The text of a frontier on pages: its table, and the origin of its times."""

from collections.abc import Iterator, Sequence

from arenite.pipeline.base.text import both, duration, exact, grouped, percent, plural, printable
from arenite.pipeline.report.frontier import Frontier, Point
from arenite.pipeline.report.model import Cell, Trade
from arenite.planner.units import format_size

_LEFT_OUT = "Its map is left out: the maps of this page would make it too large. "


def trade(frontier: Frontier, *, has_map: bool) -> Trade:
    """Return the section on a frontier in the page of a comparison.

    Args:
        has_map: Whether the page holds the map of its least program.
    """
    least = frontier.points[-1]
    return Trade(
        frontier_columns(),
        tuple(frontier_rows(frontier.points)),
        remark(frontier),
        f"{both(least.height)}, {plural(least.turns, 'turn')}",
        ("" if has_map else _LEFT_OUT) + printable(frontier.binding),
        has_map,
    )


def price(point: Point) -> str:
    """Return the price of a program, in a few words."""
    return f"{1 + point.slowdown:.2f} times the time, predicted"


def remark(frontier: Frontier, *, is_measured: bool = False) -> str:
    """Return the origin of the times, and why outputs are unchanged.

    Args:
        is_measured: Whether there are measured times too.
    """
    measured = "measured on one thread and " if is_measured else ""
    most = max(point.multiply_adds_ratio for point in frontier.points)
    again = f"at most {percent(most - 1)} is" if most > 1 else "nothing is"
    return (
        f"Times are {measured}predicted, as a multiple of the whole program's. Predictions stand "
        f"on the {printable(frontier.costs)}. Parts of the network run in bands of rows: {again} "
        "computed twice, and the results are the same to the bit."
    )


def frontier_columns(latencies: Sequence[float] = ()) -> tuple[str, ...]:
    """Return the columns of the table; some are there only where latencies were measured."""
    columns = ("arena", "of whole", "multiply-adds", "turns", "predicted time")
    return (*columns, "latency", "measured time") if latencies else columns


def frontier_rows(
    points: Sequence[Point], latencies: Sequence[float] = ()
) -> Iterator[tuple[Cell, ...]]:
    """Yield its rows.

    Args:
        points: The frontier, the whole program first.
        latencies: Median seconds of each; none if they were not measured.
    """
    whole = points[0]
    for number, point in enumerate(points):
        share = point.height / whole.height if whole.height else 1.0
        cells = [
            Cell(exact(point.height), point.height, format_size(point.height)),
            Cell(percent(share), share),
            Cell(f"{point.multiply_adds_ratio:.3f}", point.multiply_adds_ratio),
            Cell(grouped(point.turns), point.turns),
            Cell(f"{1 + point.slowdown:.2f}", point.slowdown),
        ]
        if latencies:
            ratio = latencies[number] / latencies[0]
            cells += [
                Cell(duration(latencies[number]), latencies[number]),
                Cell(f"{ratio:.2f}", ratio),
            ]
        yield tuple(cells)
