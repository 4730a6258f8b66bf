"""The plan of a program in bands as a picture: time across, address up, one colour an operator.

Its records are rows, too many and too small to tell apart; the operators are few.
"""

from collections import Counter
from collections.abc import Sequence
from string import ascii_uppercase

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from arenite.cli.render.axes import Grid, TimeScale, framed, rasterise
from arenite.cli.render.facts import name
from arenite.cli.render.memory_map import FREE, NUM_ROWS, PALETTE, colour_rows
from arenite.pipeline.base import percent
from arenite.planner import Plan, Problem

_OTHERS = "others"


def draw(
    problem: Problem,
    plan: Plan,
    labels: Sequence[str],
    width: int,
    height: int = NUM_ROWS,
    *,
    colour: bool = False,
) -> RenderableType:
    """Return the map and its legend, the operator with the largest share first.

    Args:
        labels: For each record, the operator that makes it.
        width: Columns, the axis included.
        height: Rows of the map, without axis and legend.
        colour: Whether colours reach the reader.
    """
    if not plan.height:
        return Text("The arena is empty.")
    scale = TimeScale.fit(problem.num_steps, width)
    cells = rasterise(problem, plan, scale, 2 * height if colour else height)
    counts = Counter(labels[cell] for row in cells for cell in row if cell is not None)
    names = [label for label, _ in counts.most_common(len(PALETTE) - 1)]
    if len(counts) > len(names):
        names.append(_OTHERS)
    places = {label: names.index(label if label in names else _OTHERS) for label in counts}
    grid: Grid = [
        [None if cell is None else places[labels[cell]] for cell in row] for row in cells
    ]
    styles = dict(enumerate(PALETTE)) if colour else {}
    rows = colour_rows(grid, styles, {}) if colour else _letter_rows(grid)
    total = sum(len(row) for row in grid)
    taken = Counter(cell for row in grid for cell in row)
    table = Table.grid(padding=(0, 2))
    for place, label in enumerate(names):
        style = f"bold black on {styles[place]}" if styles else ""
        share = f"{percent(taken[place] / total)} of the map"
        table.add_row(Text(f" {ascii_uppercase[place]} ", style), name(label), share)
    return Group(framed(rows, plan.height, scale), Text(), table)


def _letter_rows(grid: Grid) -> list[Text]:
    return [
        Text("".join(FREE if cell is None else ascii_uppercase[cell] for cell in row))
        for row in grid
    ]
